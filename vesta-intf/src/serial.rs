//! Serials: numbers formatted by a pattern, such as `INV-261122-0000427`, with a counter that restarts
//! each day, week, month, quarter or year. Pure: the date is passed in as a value.
//!
//! ```text
//!  civil.rs    dates, and the periods of a counter
//!  pattern.rs  patterns and their parts
//!  read.rs     from the text of a pattern to its parts, checked
//!  text.rs     from a counter and a date to a serial, and back
//! ```
//!
//! # Why no serial repeats
//! The counter of a period and the period itself form one number, a **position**: `period << 40 | n`.
//! The positions of a tag are issued like the numbers of any segment tag: each once, and ascending. Date
//! and counter of a serial both come from its position, so they always belong to the same period. Since
//! positions only grow, a period that has ended is never continued, whatever a clock shows.

mod civil;
mod pattern;
mod read;
#[cfg(feature = "shuffle")]
mod shuffled;
mod text;

pub use civil::{CivilHour, Period, Reset, YearStart};
pub use pattern::Pattern;
pub use text::ParsedSerial;

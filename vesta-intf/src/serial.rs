//! Serials: numbers that read as a pattern says, such as `INV-261122-0000427`, with a counter that starts
//! anew each day, month or year. Pure: the date comes in as a value.
//!
//! ```text
//!  civil.rs    dates, and the periods of a counter
//!  pattern.rs  patterns and their parts
//!  read.rs     from the text of a pattern to its parts, checked
//!  text.rs     from a counter and a date to a serial, and back
//! ```
//!
//! # Why no serial repeats
//! The counter of a period and the period itself are one number, a **position**: `period << 40 | n`. The
//! positions of a tag are handed out like the numbers of any segment tag, each once, and only grow. Date
//! and counter of a serial both come from its position, so that they are always of one period; and since
//! positions only grow, a period that is over is never continued, whatever a clock shows.

mod civil;
mod pattern;
mod read;
#[cfg(feature = "shuffle")]
mod shuffled;
mod text;

pub use civil::{CivilHour, Period, Reset};
pub use pattern::Pattern;
pub use text::ParsedSerial;

//! Serials: the numbers of a tag formatted by its pattern, with a counter that restarts each day,
//! month or year of a time zone.
//!
//! ```text
//!  civil.rs       dates, and the periods of a counter                     pure
//!  pattern.rs     patterns and their parts; read.rs from their text       pure
//!  text.rs        from a counter and a date to a serial, and back         pure
//!  shuffled.rs    the permutation of a pattern's counters                 pure
//!  zone.rs        the date of a moment in a time zone
//!  definition.rs  the definition of a tag; the current start of its numbers pure
//!  template.rs    names of templates, and of the tags made from them; pure
//!  store.rs       serial tags in a store, as a store of segments
//!  service.rs, tag.rs   the public API
//! ```
//!
//! A serial tag is a segment tag whose numbers are positions, `period << 40 | n` (see [`Pattern`]). Its
//! ranges, its threads and its local record on this host are those of any segment tag. Only two things
//! are added. The store starts a range at the present period, if it has not reached it yet; and the
//! rest of an ended period is given up.
//!
//! # Why each (period, n) occurs once, and date and counter belong to one period
//! Positions are handed out once and only grow (the guarantee of segments), and a serial's date and
//! counter both come from its position. A single clock reading determines the present period. A position
//! of an earlier one is not used. A position of a later one is used, with the date on which that period
//! began: another process, or this one before its clock was set back, had already reached it.

mod civil;
mod definition;
mod pattern;
mod read;
mod service;
mod shuffled;
mod store;
mod tag;
mod template;
mod text;
mod zone;

pub use civil::{CivilHour, Period, Reset, YearStart};
pub(crate) use definition::Definition;
pub use definition::NewSerialTag;
pub use pattern::Pattern;
pub use service::{SerialBuilder, SerialService, SerialStatus};
pub use tag::{Serial, SerialTag};
pub use vesta_intf::{CheckSymbol, ParsedSerial, Shuffle, ShuffleKey};

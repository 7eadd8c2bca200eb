//! Serials: the numbers of a tag as its pattern writes them, with a counter that starts anew each day,
//! month or year of a time zone.
//!
//! ```text
//!  zone.rs        the date of a moment in a time zone
//!  definition.rs  the definition of a tag; where its numbers begin now     pure
//!  store.rs       serial tags in a store, as a store of segments
//!  service.rs, tag.rs   the faces
//! ```
//!
//! A serial tag is a segment tag whose numbers are positions, `period << 40 | n` (see
//! [`Pattern`]): its ranges, its threads and what this host remembers of it are those
//! of any other. Only two things come on top. The store begins a range at the present period, if it had
//! not come there yet; and what is left of a period that is over is given up.
//!
//! # Why each (period, n) comes once, and date and counter are of one period
//! Positions are handed out once and only grow (the promise of segments), and a serial's date and counter
//! both come from its position. One reading of the clock says which period it is. A position of an earlier
//! one is not used; one of a later one is, with the date on which that period began: another process, or
//! this one before its clock was set back, had come there already.

mod definition;
mod service;
mod store;
mod tag;
mod zone;

pub use definition::NewSerialTag;
pub use service::{SerialBuilder, SerialService, SerialStatus};
pub use tag::{Serial, SerialTag};
pub use vesta_intf::{
    CheckSymbol, CivilHour, ParsedSerial, Pattern, Period, Reset, Shuffle, ShuffleKey,
};

//! Identifies numbers from elsewhere: their form, the layouts that may have made them, the effect of rounding, and
//! whether two sets of IDs can meet. Designs layouts.
//!
//! ```
//! use vesta_explain::{Form, layouts, read};
//! use vesta_intf::{IdError, IdFormat};
//!
//! fn main() -> Result<(), IdError> {
//!     let it = read("1WxWNOqQKdL")?.one("a format")?;
//!     assert_eq!((it.id, it.form), (1_285_482_222_412_933_127, Form::Format(IdFormat::Base62)));
//!     assert_eq!(layouts::named("discord")?, layouts::DISCORD);
//!     Ok(())
//! }
//! ```
//!
//! Like `vesta-intf`, it has no clock, no thread and no I/O.
#![forbid(unsafe_code)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::cast_precision_loss
)]

mod any_form;
mod cosid;
mod design;
mod guess;
pub mod layouts;
mod overlap;
mod rounded;
mod tally;

pub use any_form::{Around, Form, Reading, Written, read, read_as};
pub use cosid::{friendly, is_friendly, parse_friendly};
pub use design::design;
pub use guess::{Guess, Guesses, guess};
pub use overlap::{IdSet, overlap};
pub use rounded::{Rounded, in_javascript, rounded};
pub use tally::{ColumnRounding, Tally};

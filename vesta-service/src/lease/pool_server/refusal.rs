//! Why a pool server refuses a change.

use std::fmt;

/// Reason why no owner would make a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, without anything that was sent.
    pub reason: &'static str,
    /// Figures, for the sender.
    pub(super) detail: String,
    /// True if the same change is allowed later.
    pub for_now: bool,
}

impl Refusal {
    /// A reason that needs no figure.
    pub const fn of(reason: &'static str) -> Self {
        Self {
            reason,
            detail: String::new(),
            for_now: false,
        }
    }

    /// Text that is not an entry.
    pub fn undecoded(why: String) -> Self {
        Self {
            detail: format!(": {why}"),
            ..Self::of("it is not an entry of Vesta")
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.reason, self.detail)
    }
}

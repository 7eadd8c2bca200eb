//! The meaning of a serial. vesta-numbers has the language of serials.

use crate::CheckSymbol;

/// The meaning of a serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedSerial {
    /// The date, as precisely as the pattern contains it: in a form of `period`, or `2026-11-22T09`.
    pub date: Option<String>,
    /// The period of the counter: `2026`, `2026-Q4`, `2026-11`, `2026-W47` or `2026-11-22`; of a fiscal year, its first
    /// day; `None` if it never restarts.
    pub period: Option<String>,
    /// The counter as written: for a shuffling pattern, still shuffled.
    pub counter: u64,
    /// The verified check symbol method; `None` if the pattern has no check symbol.
    pub check: Option<CheckSymbol>,
}

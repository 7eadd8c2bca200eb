//! A serial, as the servers send it.

/// A serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// The serial, formatted by its pattern: `INV-261122-0000427`.
    pub text: String,
    /// The counter of the period, before shuffling.
    pub counter: u64,
}

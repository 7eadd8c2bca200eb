//! Machine IDs that another system has handed out, taken over once, so that a running fleet can move
//! without a clash.

use vesta_service::UnixMillis;

/// A machine ID that a predecessor of Vesta uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessor {
    /// The machine ID.
    pub machine: u64,
    /// Who has it, as far as the other system knows: an address, perhaps with a port.
    pub host: String,
    /// The last moment for which it is known to have made IDs.
    pub last_used: Option<UnixMillis>,
}

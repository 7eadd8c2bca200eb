//! A machine ID in use by another system.

use vesta_service::contract::UnixMillis;

/// A machine ID that a predecessor of Vesta uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignOwner {
    /// The machine ID.
    pub machine: u64,
    /// Its holder, as far as the other system knows: an address, perhaps with a port.
    pub host: String,
    /// The last moment for which it is known to have made IDs.
    pub last_used: Option<UnixMillis>,
}

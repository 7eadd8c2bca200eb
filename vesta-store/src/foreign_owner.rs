//! A machine ID in use by another system.

use vesta_service::contract::UnixMillis;

/// A machine ID in use by a foreign system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignOwner {
    /// The machine ID.
    pub machine: u64,
    /// Its holder, as known to that system: an address, perhaps with a port.
    pub host: String,
    /// The last moment for which it may have made IDs.
    pub last_used: Option<UnixMillis>,
}

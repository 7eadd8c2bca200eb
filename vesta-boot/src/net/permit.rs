//! The right to one open connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

/// The right to one open connection, given back on drop.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
    counts: Vec<Arc<()>>,
    _share: Option<Share>,
}

impl Permit {
    pub(super) const fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit, counts: Vec::new(), _share: None }
    }

    pub(super) fn with(mut self, share: Option<Share>) -> Self {
        self._share = share;
        self
    }

    /// Counts the connection: while it is open, it holds a reference of `count`.
    #[must_use]
    pub fn counted(mut self, count: &Arc<()>) -> Self {
        self.counts.push(Arc::clone(count));
        self
    }
}

/// The open connections of each address.
#[derive(Debug, Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl Addresses {
    /// A place among the connections of this address; `None` if it has `most` of them.
    pub(super) fn share_of(&self, peer: IpAddr, most: usize) -> Option<Share> {
        let owner = owner(peer);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(&owner).copied().unwrap_or(0);
        (count < most).then(|| {
            open.insert(owner, count + 1);
            Share { owner, all: self.clone() }
        })
    }
}

/// One connection of an address, given back on drop.
#[derive(Debug)]
pub(super) struct Share {
    owner: IpAddr,
    all: Addresses,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut open = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = open.entry(self.owner) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// The identity of a peer: an IPv4 address, or the /64 that an IPv6 host may choose its addresses
/// from.
fn owner(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        let addresses = Addresses::default();
        let share = |peer: &str| addresses.share_of(peer.parse().expect("an address"), 2);
        let (first, second) = (share("192.0.2.1"), share("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some() && share("192.0.2.1").is_none());
        let (_other, _v6) = (share("192.0.2.2"), share("2001:db8::1"));
        let v6 = share("2001:db8::2:0:0:1");
        assert!(v6.is_some() && share("2001:db8::3").is_none());
        assert!(share("2001:db8:0:1::1").is_some());
        drop(first);
        assert!(share("192.0.2.1").is_some(), "given back");
        drop((second, v6));
        assert_eq!(addresses.0.lock().expect("no panic").len(), 2, "others are forgotten");
    }
}

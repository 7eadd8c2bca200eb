//! Permits for open connections, and connections that give way to others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::OwnedSemaphorePermit;

use super::requests::Requests;

/// Permit for one open connection, returned on drop.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
    counts: Vec<Arc<()>>,
    share: Option<Share>,
}

impl Permit {
    pub(super) const fn new(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: permit,
            counts: Vec::new(),
            share: None,
        }
    }

    pub(super) fn with(mut self, share: Option<Share>) -> Self {
        self.share = share;
        self
    }

    /// Counts the connection: while open, it holds a reference to `count`.
    #[must_use]
    pub fn counted(mut self, count: &Arc<()>) -> Self {
        self.counts.push(Arc::clone(count));
        self
    }
}

/// Permit of a connection that gives way to another one while it has no request in flight.
#[derive(Debug)]
pub(super) struct Seat {
    requests: Requests,
    taken: Mutex<Taken>,
}

#[derive(Debug)]
struct Taken {
    /// `None` once another connection has taken over the permit.
    permit: Option<Permit>,
    waker: Option<Waker>,
}

impl Seat {
    pub(super) fn new(permit: Permit) -> Arc<Self> {
        let taken = Mutex::new(Taken {
            permit: Some(permit),
            waker: None,
        });
        Arc::new(Self {
            requests: Requests::default(),
            taken,
        })
    }

    /// Requests of the connection.
    pub(super) const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Gives up the permit, unless a request is in flight or the connection belongs to another address than
    /// `peer`.
    pub(super) fn give_way(&self, peer: Option<IpAddr>) -> bool {
        let mut it = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let owner_of = |permit: &mut Permit| permit.share.as_ref().map(|share| share.owner);
        let busy = self.requests.quiet_since().is_none();
        let ended = it
            .permit
            .take_if(|it| !busy && (peer.is_none() || owner_of(it) == peer.map(owner)));
        if let (Some(_), Some(waker)) = (&ended, &it.waker) {
            waker.wake_by_ref();
        }
        ended.is_some()
    }

    /// Ready once another connection has taken over the permit.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut it = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        it.waker = Some(cx.waker().clone());
        if it.permit.is_some() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

/// Open connections per address.
#[derive(Debug, Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl Addresses {
    /// A share of the connections of this address; `None` if it already has `most`.
    pub(super) fn share_of(&self, peer: IpAddr, most: usize) -> Option<Share> {
        let owner = owner(peer);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(&owner).copied().unwrap_or(0);
        (count < most).then(|| {
            open.insert(owner, count + 1);
            Share {
                owner,
                all: self.clone(),
            }
        })
    }
}

/// One connection of an address, returned on drop.
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

/// Identity of a peer: an IPv4 address, or the /64 from which an IPv6 host may choose its
/// addresses.
fn owner(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::task::Wake;

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
        assert_eq!(
            addresses.0.lock().expect("no panic").len(),
            2,
            "others are forgotten"
        );
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }

    #[test]
    fn a_seat_gives_way_once_unless_it_has_a_request_or_is_of_another_address() {
        let (addresses, places) = (
            Addresses::default(),
            Arc::new(tokio::sync::Semaphore::new(1)),
        );
        let [one, other] = [1, 2].map(|last| Some(IpAddr::from([192, 0, 2, last])));
        let permit = Permit::new(Arc::clone(&places).try_acquire_owned().expect("a place"));
        let seat = Seat::new(permit.with(addresses.share_of(one.expect("an address"), 1)));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        assert!(seat.poll(&cx).is_pending());
        let request = seat.requests().begin();
        assert!(!seat.give_way(None) && !seat.give_way(one), "at work");
        drop(request);
        assert!(!seat.give_way(other) && places.available_permits() == 0);
        assert!(!woken.0.load(Relaxed));
        assert!(
            seat.give_way(one) && woken.0.load(Relaxed) && !seat.give_way(None),
            "once"
        );
        assert!(seat.poll(&cx).is_ready() && places.available_permits() == 1);
    }
}

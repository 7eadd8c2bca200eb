//! The record of one machine ID in a store, and the namespace it belongs to.

use std::cmp::Ordering;
use std::time::Duration;

use vesta_intf::UnixMillis;

/// The state of one machine ID, as a store keeps it. Never deleted, never given a time to live.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The uuid of the namespace it belongs to.
    pub namespace: u128,
    /// A random number drawn when the record was created, which never changes: tells it from one
    /// that was created anew after somebody deleted it.
    pub birth: u64,
    /// The number of claims so far; grows by one with each.
    pub epoch: u64,
    /// The random number of the incarnation that holds the record; 0 if nobody does.
    pub owner: u128,
    /// The first position of the last claim: where its IDs begin.
    pub from: u64,
    /// The first position that no owner so far may have used.
    pub bound: u64,
    /// The random number of the request that wrote this state: a writer whose reply was lost
    /// recognises its own success by it.
    pub attempt: u64,
    /// True if the last owner gave the record back after sealing.
    pub released: bool,
    /// The host of the last owner, for people.
    pub host: String,
    /// The process ID of the last owner, for people.
    pub pid: u32,
    /// The version of Vesta that the last owner runs, for people.
    pub version: String,
    /// The last owner's wall clock at its claim, for people.
    pub claimed: UnixMillis,
    /// The writer's wall clock at this change, for people.
    pub info_time: UnixMillis,
}

/// A namespace: machine IDs whose outputs must never meet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// Made once, at creation; tells a namespace from another of the same name.
    pub uuid: u128,
    /// [`IdMeta::fingerprint`](vesta_intf::IdMeta::fingerprint) of the one layout it is for.
    pub fingerprint: String,
    /// The low-water mark: no claim starts below this position.
    pub floor: u64,
    /// The longest window announced by a process whose window is longer than the store's usual one;
    /// zero if there is none. The reach of a doubt covers it.
    pub window: Duration,
    /// Set once a process has seen that the store may forget what it acknowledged; only an operator
    /// clears it. Claims then keep a distance from what may have been forgotten.
    pub doubt: Option<Doubt>,
}

/// Why a store may forget what it acknowledged, written down where a fail-over keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The moment at which it was written.
    pub since: UnixMillis,
    /// All that was reserved by processes that did not know of the doubt ends before this moment.
    pub reach: UnixMillis,
    /// The longest window announced by a process that knows of the doubt; zero if none is longer than
    /// the usual one.
    pub window: Duration,
    /// The reason, for people.
    pub why: String,
}

/// Facts that a process adds to a namespace. Each raises a value and clears none, so their order does
/// not matter and several of them are one change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Amendment {
    /// The uuid of the namespace.
    pub(crate) namespace: u128,
    pub(crate) floor: u64,
    pub(crate) window: Duration,
    /// Added to the doubt, where there is one.
    pub(crate) doubtful_window: Duration,
    /// Written only where there is no doubt yet: an earlier one reaches as far as it has to.
    pub(crate) doubt: Option<Doubt>,
}

impl Amendment {
    /// Both together.
    pub(crate) fn and(&mut self, other: &Self) {
        self.floor = self.floor.max(other.floor);
        self.window = self.window.max(other.window);
        self.doubtful_window = self.doubtful_window.max(other.doubtful_window);
        self.doubt = self.doubt.take().or_else(|| other.doubt.clone());
    }

    /// The namespace with these facts.
    pub(crate) fn of(&self, old: &Namespace) -> Namespace {
        let doubt = old.doubt.as_ref().or(self.doubt.as_ref()).cloned();
        let widened = |doubt: Doubt| Doubt {
            window: doubt.window.max(self.doubtful_window),
            ..doubt
        };
        Namespace {
            floor: old.floor.max(self.floor),
            window: old.window.max(self.window),
            doubt: doubt.map(widened),
            ..old.clone()
        }
    }
}

/// The outcome of a compare-and-set whose reply arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cas<T> {
    /// The entry is now the new one.
    Done,
    /// The entry was not as expected: it is this one, or there is none.
    Conflict(Option<T>),
}

impl Record {
    /// True if a store that acknowledged this record, and shows `current` instead, went back to an
    /// earlier state: no claim, release or repair since leads from one to the other.
    pub(crate) fn is_ahead_of(&self, current: &Self) -> bool {
        if current.birth != self.birth || current.bound < self.bound {
            return true;
        }
        match current.epoch.cmp(&self.epoch) {
            Ordering::Less => true,
            // An operator may have freed it.
            Ordering::Equal => ![self.owner, 0].contains(&current.owner),
            Ordering::Greater => current.from < self.bound,
        }
    }

    /// The [`owner`](Self::owner) of a machine ID that a process of another system uses. A pool never
    /// hands it out; whoever names it, or an operator who frees it, says that the other process is gone.
    pub const FOREIGN: u128 = u128::MAX;
}

//! The record of one machine ID in a store.

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Made once, at creation; tells a namespace from another of the same name.
    pub uuid: u128,
    /// [`IdMeta::fingerprint`](vesta_intf::IdMeta::fingerprint) of the one layout it is for.
    pub fingerprint: String,
    /// The low-water mark: no claim starts below this position.
    pub floor: u64,
    /// Set once anybody has seen that the store may forget what it acknowledged; only an operator
    /// clears it. Claims then keep a distance from whatever may have been forgotten.
    pub doubt: Option<Doubt>,
}

/// Why a store may forget what it acknowledged, written down where a fail-over keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The moment at which it was written.
    pub since: UnixMillis,
    /// All that was reserved by those who did not know of it ends before this moment.
    pub reach: UnixMillis,
    /// The reason, for people.
    pub why: String,
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
    /// The [`owner`](Self::owner) of a machine ID that a process of another system uses. A pool never
    /// hands it out; whoever names it, or an operator who frees it, says that the other process is gone.
    pub const FOREIGN: u128 = u128::MAX;
}

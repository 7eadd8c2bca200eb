//! Questions of the state machine, their answers, and the outcomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::ClockPair;
use crate::lease::{
    Amendment, BuildError, Cas, Doubt, Local, Look, Marks, Namespace, Record, Snapshot, StoreError,
};

/// A change of one entry: a record, or a bucket of marks.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all changes are of records"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    Record { old: Option<Record>, new: Record },
    Marks { old: Option<Marks>, new: Marks },
}

/// Question to the store or to this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Read the namespace itself.
    Namespace,
    /// Compare the store's clock with this host's.
    Clock,
    /// Read a part of the namespace's machine IDs, and what this host remembers. The first survey of a search
    /// names no part; [`Plan::home_part`](super::Plan::home_part) is read. If the namespace does not exist and is not remembered, it is
    /// created.
    Survey(Option<u64>),
    /// Read the namespace itself, and whether the store may forget: a [`Look`] no older than [`DOUBT_CHECK`].
    Doubt,
    /// Add facts to the namespace.
    Amend(Amendment),
    /// Read the record of this machine ID.
    Record(u64),
    /// Make a change that concerns this machine ID.
    Write(u64, Box<Write>),
    /// Find out whether the machine ID is free of every living process on this host.
    IsFree(u64),
    /// Lock the machine ID on this host.
    Keep(u64),
}

/// Input of a search: the survey's findings.
#[derive(Debug, Clone)]
pub(crate) struct Findings {
    /// Reason why the store may forget what it acknowledged, if it may.
    pub(crate) doubt: Option<Doubt>,
    /// Server that answered, if each has its own data.
    pub(crate) server: Option<String>,
    /// Doubt after which no machine ID was found to be claimed, in a server that took over from no other one: it
    /// reaches nothing.
    pub(crate) reaches_nothing: Option<Doubt>,
    /// Part of the machine IDs that was read.
    pub(crate) part: u64,
    /// Their records, and those of other machine IDs of the block that this host remembers.
    pub(crate) snapshot: Snapshot,
    /// Records that this host remembers, by machine ID.
    pub(crate) locals: BTreeMap<u64, Local>,
    /// Records that this process held.
    pub(crate) own: Vec<Local>,
}

/// Answer to an [`Ask`].
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Namespace(Namespace),
    /// `None` if the store has no clock.
    Clock(Option<ClockPair>),
    /// The namespace is gone, so nothing was added to it.
    NoNamespace,
    /// The namespace does not exist, but this host or process remembers this record of it.
    Forgotten(Box<Local>),
    /// Shared by all slots that ask at the same time.
    Survey(Arc<Findings>),
    Doubt(Look),
    Found(Option<Record>),
    Record(Cas<Record>),
    Marks(Cas<Marks>),
    Free(bool),
    /// Another slot of this process holds or tries the machine ID.
    Taken,
    Kept(bool),
    /// The outcome is unknown: a change may or may not have happened.
    Failed(StoreError),
}

/// A claim that the store acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) machine: u64,
    /// The record as acknowledged. Its bound is the exclusive upper bound of the positions that may be
    /// issued.
    pub(crate) record: Record,
    /// First position that may be issued.
    pub(crate) next: u64,
    /// A moment of the monotonic clock before the claim was made.
    pub(crate) before: Duration,
}

/// Next step of the driver.
#[derive(Debug)]
pub(crate) enum Action {
    /// Do nothing before this moment of the monotonic clock.
    Wait(Duration),
    /// Ask, and pass the answer to [`Machine::on_answer`](super::Machine::on_answer).
    Ask(Ask),
    /// No machine ID could be claimed, for this reason; the search restarts a little later.
    Refused(BuildError),
    /// Stop: nothing is ever due again.
    Stop,
}

/// Outcome of an answer.
#[derive(Debug)]
pub(crate) enum Event {
    /// Nothing to do.
    None,
    /// Positions of this machine ID may be issued.
    Claimed(Claimed),
    /// No machine ID was claimed; the search restarts a little later.
    Refused(BuildError),
    /// Positions below the record's bound may be issued.
    Raised(Record),
    /// Outcome unknown; the same request is sent again.
    Unsure(StoreError),
    /// The record was released.
    Released(Record),
    /// The store went back to an earlier state. Nothing more may be issued. The machine ID is given up once
    /// the namespace's floor lies above it.
    WentBack(Option<Record>),
    /// The machine ID is given up after [`WentBack`](Self::WentBack). `true` if the namespace's floor lies
    /// above everything issued, `false` if the namespace is gone.
    GivenUp(bool),
    /// Another process owns the record. The machine ID must be sealed.
    Fenced(Record),
    /// The file behind the store was replaced or cannot be written, or an older store stands behind the same URL. The
    /// machine ID must be sealed.
    Broken(StoreError),
}

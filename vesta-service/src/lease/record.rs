//! Record of one machine ID in a store, and the namespace it belongs to.

use std::cmp::Ordering;
use std::time::Duration;

use vesta_intf::{IdError, UnixMillis, check_name};

use super::Secret;

/// Checks a name that becomes part of file names.
pub(crate) fn check_namespace(name: &str) -> Result<(), IdError> {
    check_name(name).map_err(|must| IdError::invalid("namespace", format!("`{name}` {must}")))
}

/// State of one machine ID, as a store keeps it. Never deleted, never given a time to live.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Uuid of the namespace it belongs to.
    pub namespace: u128,
    /// Random number drawn when the record is created; it never changes. If a record was deleted and created
    /// again, the new one has another birth.
    pub birth: u64,
    /// Number of claims so far; each claim adds one.
    pub epoch: u64,
    /// Incarnation that holds the record: the hash of a secret that it drew; 0 if none does.
    pub owner: u128,
    /// The secret, if this process or its predecessor on this host drew it. No store keeps it.
    pub secret: Secret,
    /// First position of the last claim: its IDs begin there.
    pub from: u64,
    /// Exclusive upper bound: no owner so far may have used a position at or above it.
    pub bound: u64,
    /// Random number of the request that wrote this state. A writer whose reply was lost recognises its own
    /// success by it.
    pub attempt: u64,
    /// True if the last owner released the record after sealing.
    pub released: bool,
    /// Host of the last owner, for people.
    pub host: String,
    /// Process ID of the last owner, for people; 0 if it was not a process of Vesta.
    pub pid: u32,
    /// Version of Vesta that the last owner ran, for people.
    pub version: String,
    /// Wall clock of the last owner at its claim, for people.
    pub claimed: UnixMillis,
    /// Wall clock of the writer at this change, for people.
    pub info_time: UnixMillis,
    /// Set if the owner's IDs stay ordered over a fail-over.
    pub standby: Option<Standby>,
}

/// Terms of an owner whose IDs stay ordered over a fail-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standby {
    /// The owner issues nothing later than this after it made its last acknowledged change, measured by its
    /// monotonic clock.
    pub window: Duration,
    /// The owner's ID at position 0. IDs with other fixed fields would not be in one order with its own.
    pub base: u64,
}

/// Namespace: machine IDs whose outputs must never collide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// Drawn once, at creation; distinguishes a namespace from another of the same name.
    pub uuid: u128,
    /// [`IdMeta::fingerprint`](vesta_intf::IdMeta::fingerprint) of its only layout.
    pub fingerprint: String,
    /// Low-water mark: no claim starts below this position.
    pub floor: u64,
    /// Longest window announced by a process whose window is longer than the store's usual one; zero if none
    /// was. The reach of a doubt covers it.
    pub window: Duration,
    /// Set once a process has seen that the store may forget what it acknowledged; only an operator clears
    /// it. While it is set, claims keep a distance from what may have been forgotten.
    pub doubt: Option<Doubt>,
    /// Identity of the server that wrote last, if each server of the store has its own data.
    pub writer: Option<String>,
}

/// Doubt: a store may forget what it acknowledged. A store [reports](Doubt::of) the reason; a namespace keeps it with
/// its moments, where a fail-over preserves it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doubt {
    /// Moment at which it was written.
    pub since: UnixMillis,
    /// Reach of the doubt: everything reserved by processes unaware of the doubt ends before this moment.
    pub reach: UnixMillis,
    /// Longest window announced by a process that knows of the doubt; zero if none is longer than the usual
    /// one.
    pub window: Duration,
    /// True if the server took over from another one: it may lack what the other acknowledged, claims too, to
    /// processes that did not doubt it.
    pub took_over: bool,
    /// Reason, for people.
    pub why: String,
}

impl Doubt {
    /// A doubt as a store reports it.
    pub fn of(why: impl Into<String>, took_over: bool) -> Self {
        Self {
            took_over,
            why: why.into(),
            ..Self::default()
        }
    }
}

/// Facts that a process adds to a namespace. Each raises a value and clears none, so their order does not
/// matter and several of them merge into one change. All slots of a process see the same server. The end of a reach
/// names the doubt that it was found for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Amendment {
    /// Uuid of the namespace.
    pub(crate) namespace: u128,
    pub(crate) floor: u64,
    pub(crate) window: Duration,
    /// Applied to the doubt, if the namespace has one.
    pub(crate) doubtful_window: Duration,
    /// Written only if the namespace has no doubt yet: an earlier one already reaches far enough.
    pub(crate) doubt: Option<Doubt>,
    /// Server that writes now.
    pub(crate) writer: Option<String>,
    /// Doubt that reaches nothing: no machine ID was claimed before it was written.
    pub(crate) reaches_nothing: Option<Doubt>,
}

impl Amendment {
    /// Merges other facts into these.
    pub(crate) fn and(&mut self, other: &Self) {
        self.floor = self.floor.max(other.floor);
        self.window = self.window.max(other.window);
        self.doubtful_window = self.doubtful_window.max(other.doubtful_window);
        self.doubt = self.doubt.take().or_else(|| other.doubt.clone());
        self.writer = self.writer.take().or_else(|| other.writer.clone());
        let known = self.reaches_nothing.take();
        self.reaches_nothing = known.or_else(|| other.reaches_nothing.clone());
    }

    /// The namespace with these facts.
    pub(crate) fn of(&self, old: &Namespace) -> Namespace {
        let mut doubt = old.doubt.as_ref().or(self.doubt.as_ref()).cloned();
        if let Some(it) = doubt.as_mut()
            && self.reaches_nothing.as_ref() == Some(it)
        {
            it.reach = it.since;
        }
        let widened = |doubt: Doubt| Doubt {
            window: doubt.window.max(self.doubtful_window),
            ..doubt
        };
        Namespace {
            floor: old.floor.max(self.floor),
            window: old.window.max(self.window),
            doubt: doubt.map(widened),
            writer: self.writer.as_ref().or(old.writer.as_ref()).cloned(),
            ..old.clone()
        }
    }
}

/// Outcome of a compare-and-set whose reply arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cas<T> {
    /// The entry now has the new value.
    Done,
    /// The entry was not as expected: it has this value, or does not exist.
    Conflict(Option<T>),
}

impl Record {
    /// True if a store that acknowledged this record, and now shows `current`, went back to an earlier state:
    /// no claim, release or repair leads from this record to `current`.
    pub(crate) fn is_ahead_of(&self, current: &Self) -> bool {
        if current.birth != self.birth || current.bound < self.bound {
            return true;
        }
        match current.epoch.cmp(&self.epoch) {
            Ordering::Less => true,
            // 0 is possible too: an operator may have freed the record.
            Ordering::Equal => ![self.owner, 0].contains(&current.owner),
            Ordering::Greater => current.from < self.bound,
        }
    }

    /// True if this is the record as the owner of `claim` released it: nothing at or above its bound was issued from
    /// that claim.
    pub(crate) fn is_release_of(&self, claim: &Self) -> bool {
        let of = |record: &Self| (record.namespace, record.birth, record.epoch);
        self.released && of(self) == of(claim)
    }

    /// True if a process of Vesta may have claimed the machine ID. A record that was made for a process of another
    /// system has epoch 1.
    pub(crate) const fn was_ever_claimed(&self) -> bool {
        self.epoch > (self.owner == Self::FOREIGN) as u64
    }

    /// True if the last claim was not made by a process of Vesta: an operator reserved the machine ID, or imported it
    /// from another system. It may have been freed since.
    pub(crate) const fn was_reserved(&self) -> bool {
        self.epoch > 0 && self.pid == 0
    }

    /// Time for which the record must stay unchanged before another process takes it over, measured by that
    /// process's monotonic clock. Longer than the owner's window by a 32nd: the rates of the two clocks may differ by
    /// 3 % (SAFETY.md, rule 11).
    pub(crate) fn silence(&self) -> Duration {
        let window = self.standby.as_ref().map_or(Duration::ZERO, |it| it.window);
        window.saturating_add(window / 32)
    }

    /// [`owner`](Self::owner) of a machine ID that a process of another system uses. A pool never hands it
    /// out. A start that names it, or an operator who frees it, asserts that the other process is gone.
    pub const FOREIGN: u128 = u128::MAX;
}

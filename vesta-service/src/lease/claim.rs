//! Choosing a record and claiming it.

pub(super) mod candidates;
mod error;
pub(super) mod terms;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{Field, IdError, IdMeta, UnixMillis};

use super::shadow::Memory;
use super::{FileStore, LeaseStore, Namespace, Record, StoreError, Timing, ask_store};
use crate::clock::{Clock, MAX_LEAD};
use crate::machine::WorkerNodeStore;
use crate::random;
use crate::sequence::Rules;
use candidates::{Candidate, Survey};
pub use error::ClaimError;
use terms::{Terms, took_effect};

/// How far a claim may start ahead of the clock.
pub(crate) const ROLLBACK_LEAD: Duration = Duration::from_secs(5);
/// For how long a store that does not answer is asked at start, unless it is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How often, and how long apart, to look again at state files that others have locked.
const GLANCES: u32 = 5;
const GLANCE: Duration = Duration::from_millis(100);
/// From this difference between our clock and the store's on, one of them is wrong.
const CLOCK_WRONG: Duration = Duration::from_secs(60);
const CLOCK_DOUBTFUL: Duration = Duration::from_millis(500);
/// How far the clocks of two hosts may be apart that share a store that may forget: each at most half
/// of it from the store's.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// Which of the free machine IDs of a pool is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ClaimOrder {
    /// The one this host had last; then one that was never used, then one that was given back, then
    /// one whose owner has long been silent. A host keeps its number, and a number that was just used
    /// elsewhere comes last.
    #[default]
    Stable,
    /// The lowest free number. Numbers stay small and are used again soon.
    Lowest,
}

impl ClaimOrder {
    /// Both of them.
    pub const ALL: [ClaimOrder; 2] = [Self::Stable, Self::Lowest];

    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            ClaimOrder::Stable => "stable",
            ClaimOrder::Lowest => "lowest",
        }
    }
}

impl fmt::Display for ClaimOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ClaimOrder {
    type Err = IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|order| order.name() == name).ok_or_else(|| {
            IdError::invalid("claim order", format!("`{name}` is not one of stable, lowest"))
        })
    }
}

/// Which machine IDs come into question.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Any free one of these.
    Any(RangeInclusive<u64>),
    /// This one. `alone` if the store proves that nobody else can hold it.
    Only { machine: u64, alone: bool },
}

impl Choice {
    /// The durations for this choice in a store: who names an ID wants it back soon after a crash.
    pub(crate) fn timing(&self, store: &dyn LeaseStore) -> Timing {
        let timing = store.timing();
        match self {
            Choice::Only { .. } if timing.window > Timing::ONE_HOST.window => Timing::ONE_HOST,
            _ => timing,
        }
    }
}

/// All that a claim needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    pub(crate) store: Arc<dyn LeaseStore>,
    pub(crate) namespace: String,
    pub(crate) meta: IdMeta,
    pub(crate) rules: Rules,
    pub(crate) timing: Timing,
    pub(crate) choice: Choice,
    pub(crate) order: ClaimOrder,
    /// For how long a store that does not answer is asked.
    pub(crate) patience: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) host: String,
    /// The store's record may be older than what was lost, by at most a window: keep that distance.
    pub(crate) guard: bool,
}

/// A claim that the store acknowledged.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) machine: u64,
    /// The record as it now stands; its bound is the limit.
    pub(crate) record: Record,
    /// The first position that may be issued.
    pub(crate) next: u64,
    /// The uuid of the namespace.
    pub(crate) store_uuid: u128,
}

/// What became of one candidate.
enum Attempt {
    Granted(Granted),
    Taken,
    TooFarAhead(UnixMillis),
    InUseHere,
    Spent,
}

impl Claimant {
    /// How many ticks a window has.
    pub(crate) fn window_ticks(&self) -> u64 {
        ticks(self.window(), &self.meta)
    }

    /// From a store that may forget, windows count from the wall clock, while IDs may be as far ahead
    /// of it as the lead: a shorter window would end before it begins.
    fn window(&self) -> Duration {
        let shortest = if self.store.may_forget() { 2 * MAX_LEAD } else { Duration::ZERO };
        self.timing.window.max(shortest)
    }

    /// Claims a machine ID, with what this host remembers.
    /// Waits: for a store that does not answer, for a silent owner to show that it is gone, for a
    /// clock that stands a little behind.
    pub(crate) fn claim(&self, memory: &mut Memory) -> Result<Granted, ClaimError> {
        self.tick()?;
        self.open()?;
        self.compare_clocks()?;

        let deadline = self.clock.monotonic().saturating_add(PATIENCE);
        let mut earlier: Option<Vec<(u64, Record)>> = None;
        let mut glances = 0;
        loop {
            // Each time: the loop lasts up to half a minute, in which the floor may be raised.
            let namespace = self.open()?;
            let records = self.insist(|| self.store.list(&self.namespace))?;
            if let Some((machine, shadow)) = memory.unknown_to(&namespace, &records) {
                return Err(self.regressed(machine, &shadow));
            }
            let now = self.tick()?;
            let survey = Survey {
                records: &records,
                earlier: earlier.as_deref(),
                shadows: &memory.records(),
                choice: &self.choice,
                order: self.order,
                now: self.rules.position(now),
                grace_ticks: match self.choice {
                    Choice::Any(_) => ticks(self.timing.takeover_grace, &self.meta),
                    // Whoever names an ID wants that one: its window is grace enough.
                    Choice::Only { .. } => 0,
                },
                rules: &self.rules,
                start_at: crc32c::crc32c(self.host.as_bytes()).into(),
                floor: namespace.floor,
            };
            let (mut contested, mut in_use_here) = (false, false);
            let mut ahead = None;
            for candidate in survey.candidates() {
                match self.attempt(&candidate, &namespace, memory)? {
                    Attempt::Granted(granted) => return Ok(granted),
                    Attempt::Taken => contested = true,
                    Attempt::InUseHere => in_use_here = true,
                    Attempt::Spent => {}
                    Attempt::TooFarAhead(until) => {
                        ahead = Some(ahead.map_or(until, |a: UnixMillis| a.min(until)));
                    }
                }
            }
            let out_of_patience = self.clock.monotonic() >= deadline;
            if contested && !out_of_patience {
                continue; // others were faster; look again
            }
            // A starter on this host has all free files for a moment; a living owner keeps its own.
            if in_use_here && glances < GLANCES {
                glances += 1;
                self.clock.park(GLANCE);
                memory.read_again();
                continue;
            }
            if let Some(used_until) = ahead {
                if !out_of_patience && self.waited_for_clock(used_until) {
                    continue;
                }
                if let Choice::Only { machine, .. } = self.choice {
                    let now = self.clock.wall();
                    return Err(ClaimError::ClockBehind { machine, used_until, now });
                }
            }
            if out_of_patience || !survey.may_end_within(ticks(PATIENCE, &self.meta)) {
                return Err(self.exhausted(&records, ahead));
            }
            // A silent owner is only believed dead if its record also does not change while we
            // watch, by our own clock.
            earlier = Some(records);
            self.clock.park(self.timing.renew_every * 3 / 2);
        }
    }

    fn tick(&self) -> Result<u64, ClaimError> {
        self.meta.tick_at(self.clock.wall()).map_err(ClaimError::Time)
    }

    /// The namespace as it is now, for the layout that is configured.
    fn open(&self) -> Result<Namespace, ClaimError> {
        let ours = self.meta.fingerprint();
        let namespace = self.insist(|| self.store.open_namespace(&self.namespace, &ours))?;
        if namespace.fingerprint != ours {
            let (name, theirs) = (self.namespace.clone(), namespace.fingerprint);
            return Err(ClaimError::Fingerprint { namespace: name, theirs, ours });
        }
        Ok(namespace)
    }

    fn compare_clocks(&self) -> Result<(), ClaimError> {
        let Some(theirs) = self.insist(|| self.store.now())? else { return Ok(()) };
        let ours = self.clock.wall();
        let apart = Duration::from_millis(ours.0.abs_diff(theirs.0));
        let wrong = if self.store.may_forget() { MAX_SKEW / 2 } else { CLOCK_WRONG };
        if apart > wrong {
            return Err(ClaimError::ClocksDiffer { ours, theirs });
        }
        if apart > CLOCK_DOUBTFUL {
            tracing::warn!(%ours, %theirs, "this host's clock and the store's differ");
        }
        Ok(())
    }

    fn insist<T>(&self, ask: impl Fn() -> Result<T, StoreError>) -> Result<T, ClaimError> {
        insist(&*self.clock, self.patience, || self.store.describe(), ask)
    }

    fn attempt(
        &self,
        candidate: &Candidate,
        namespace: &Namespace,
        memory: &Memory,
    ) -> Result<Attempt, ClaimError> {
        let machine = candidate.machine;
        if memory.is_in_use(machine) {
            return Ok(Attempt::InUseHere);
        }
        let shadow = memory.of(machine);
        let ahead = self.ahead();
        let (mut record, mut floor) = (candidate.record.clone(), namespace.floor);
        let mut mine = None;
        loop {
            let terms = Terms {
                rules: &self.rules,
                window_ticks: self.window_ticks(),
                floor,
                remembered: shadow.map_or(0, |shadow| shadow.record().bound),
                guard: self.guard || shadow.is_some_and(FileStore::is_damaged),
                from_tick: self.tick()? + ticks_or_none(ahead, &self.meta),
            };
            let next = terms.start(&record);
            let tick = self.rules.tick(next);
            let starts = match (self.meta.moment_of(tick), &self.choice) {
                (Ok(moment), _) => moment,
                (Err(_), Choice::Any(_)) => return Ok(Attempt::Spent),
                (Err(_), Choice::Only { .. }) => {
                    return Err(ClaimError::Time(IdError::TimeExhausted));
                }
            };
            let wall = self.clock.wall();
            let lead = starts.since(wall).map_or(Duration::ZERO, Duration::from_millis);
            if lead > ROLLBACK_LEAD + ahead {
                if let Some(unused) = mine {
                    self.give_back(machine, &record, unused)?;
                }
                return Ok(Attempt::TooFarAhead(starts));
            }
            let mut claimed = Record {
                host: self.host.clone(),
                pid: std::process::id(),
                info_time: wall,
                ..terms.claimed(&record, next, random::u128(), random::u63())
            };
            if self.store.may_forget() {
                // Were this very claim forgotten, the next one could begin at the same position: so it
                // buys nothing, and the first extend does.
                claimed.bound = next;
            }
            if !self.change(machine, &record, &claimed)? {
                return Ok(Attempt::Taken);
            }
            // Once more: a floor that was acknowledged before the claim took effect must not be missed.
            let now = self.open()?;
            if now.uuid != namespace.uuid {
                return Ok(Attempt::Taken); // of a store that is gone
            }
            if now.floor <= next {
                let store_uuid = namespace.uuid;
                return Ok(Attempt::Granted(Granted {
                    machine,
                    record: claimed,
                    next,
                    store_uuid,
                }));
            }
            // Nothing was issued yet: the claim is made anew, above the floor.
            (record, floor, mine) = (claimed, now.floor, Some(next));
        }
    }

    /// Replaces a record. A request whose reply was lost is sent again unchanged: the record then shows
    /// its attempt.
    fn change(&self, machine: u64, old: &Record, new: &Record) -> Result<bool, ClaimError> {
        let outcome =
            self.insist(|| self.store.cas(&self.namespace, machine, &old.expect(), new))?;
        Ok(took_effect(&outcome, new))
    }

    /// Releases a claim of which nothing was issued.
    fn give_back(&self, machine: u64, claimed: &Record, unused: u64) -> Result<(), ClaimError> {
        let free = Record { owner: 0, released: true, attempt: random::u63(), ..claimed.clone() };
        let bound = unused.min(claimed.bound);
        self.change(machine, claimed, &Record { bound, ..free }).map(drop)
    }

    /// How far ahead of the clock a claim begins: beyond every window that the store may have
    /// forgotten. None of those ended more than a window ahead of the clock of whoever bought it.
    pub(crate) fn ahead(&self) -> Duration {
        if self.store.may_forget() { self.window() + MAX_SKEW } else { Duration::ZERO }
    }

    fn regressed(&self, machine: u64, shadow: &Record) -> ClaimError {
        ClaimError::StoreRegressed {
            store: self.store.describe(),
            namespace: self.namespace.clone(),
            machine,
            used_until: self.used_until(shadow.bound),
        }
    }

    /// The moment before which every position below the bound lies. Rounded up: a floor there lies
    /// above the bound.
    fn used_until(&self, bound: u64) -> UnixMillis {
        let tick = self.rules.tick(bound);
        let tick = tick + u64::from(self.rules.position(tick) < bound);
        self.meta.moment_of(tick).unwrap_or(self.meta.end())
    }

    /// Waits for the clock to come near enough to `used_until`, if that is a matter of seconds.
    fn waited_for_clock(&self, used_until: UnixMillis) -> bool {
        let now = self.clock.wall();
        let ahead = Duration::from_millis(used_until.since(now).unwrap_or(0));
        let wait = ahead.saturating_sub(ROLLBACK_LEAD) + Duration::from_millis(1);
        if wait > PATIENCE {
            return false;
        }
        tracing::info!(%used_until, %now, ?wait, "waiting for the clock to reach the last bound");
        self.clock.park(wait);
        true
    }

    fn exhausted(&self, records: &[(u64, Record)], ahead: Option<UnixMillis>) -> ClaimError {
        let range = match &self.choice {
            Choice::Any(range) => range.clone(),
            Choice::Only { machine, .. } => *machine..=*machine,
        };
        let holders = records
            .iter()
            .filter(|(machine, record)| range.contains(machine) && record.owner != 0)
            .map(|(machine, record)| (*machine, record.host.clone(), record.pid))
            .collect();
        let free = records
            .iter()
            .filter(|(machine, record)| range.contains(machine) && record.owner == 0)
            .map(|(_, record)| self.used_until(record.bound));
        let now = self.clock.wall();
        let ahead = free.chain(ahead).filter(|until| *until > now).min().map(|until| (until, now));
        ClaimError::Exhausted { holders, range, ahead }
    }
}

/// Asks a store until it answers, for as long as there is patience.
fn insist<T>(
    clock: &dyn Clock,
    patience: Duration,
    store: impl Fn() -> String,
    ask: impl Fn() -> Result<T, StoreError>,
) -> Result<T, ClaimError> {
    let deadline = clock.monotonic().saturating_add(patience);
    let mut pause = Duration::from_millis(100);
    loop {
        match ask_store(&ask) {
            Ok(answer) => return Ok(answer),
            Err(source) if source.is_permanent() || clock.monotonic() >= deadline => {
                return Err(ClaimError::Store { store: store(), source });
            }
            Err(error) => {
                tracing::warn!(store = store(), %error, "the store does not answer; trying again");
                clock.park(pause);
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}

/// A machine ID that is used once.
pub(crate) fn use_up_number(
    nodes: &dyn WorkerNodeStore,
    meta: &IdMeta,
    clock: &dyn Clock,
    patience: Duration,
) -> Result<u64, ClaimError> {
    let (host, pid) = (crate::machine::host_name(), std::process::id());
    let number = insist(clock, patience, || nodes.describe(), || nodes.insert(&host, pid))?;
    let max = meta.max(Field::Machine);
    if number > max {
        return Err(ClaimError::WorkerNodesUsedUp { store: nodes.describe(), number, max });
    }
    Ok(number)
}

/// A duration in whole ticks, rounded up; no duration is no tick.
fn ticks_or_none(duration: Duration, meta: &IdMeta) -> u64 {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    millis.div_ceil(meta.spec().unit.millis())
}

/// A duration in whole ticks, at least one.
pub(crate) fn ticks(duration: Duration, meta: &IdMeta) -> u64 {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    (millis / meta.spec().unit.millis()).max(1)
}

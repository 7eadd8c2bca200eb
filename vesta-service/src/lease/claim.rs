//! Choosing a record and claiming it.

mod candidates;

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, IdMeta, UnixMillis};

use super::shadow::Memory;
use super::{Cas, FileStore, LeaseStore, Namespace, Record, StoreError, Timing};
use crate::clock::Clock;
use crate::random;
use crate::sequence::Rules;
use candidates::{Candidate, Survey};

/// How far a claim may start ahead of the clock.
pub(crate) const ROLLBACK_LEAD: Duration = Duration::from_secs(5);
/// For how long a store that does not answer is asked at start.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often, and how long apart, to look again at state files that others have locked.
const GLANCES: u32 = 5;
const GLANCE: Duration = Duration::from_millis(100);
/// From this difference between our clock and the store's on, one of them is wrong.
const CLOCK_WRONG: Duration = Duration::from_secs(60);
const CLOCK_DOUBTFUL: Duration = Duration::from_millis(500);

/// Which machine IDs come into question.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Any free one of these.
    Any(RangeInclusive<u64>),
    /// This one. `alone` if the store proves that nobody else can hold it.
    Only { machine: u64, alone: bool },
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
}

/// Why no machine ID was claimed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClaimError {
    /// The store did not answer for as long as it was asked, or it refused for good.
    Store {
        /// The store, without secrets.
        store: String,
        /// What it said.
        source: StoreError,
    },
    /// The namespace is for another layout.
    Fingerprint {
        /// The namespace.
        namespace: String,
        /// The layout it is for.
        theirs: String,
        /// The layout that was configured.
        ours: String,
    },
    /// Every machine ID in question is held.
    Exhausted {
        /// Who holds them: machine ID, host, process.
        holders: Vec<(u64, String, u32)>,
        /// The machine IDs in question.
        range: RangeInclusive<u64>,
    },
    /// The fixed machine ID was used up to a moment too far ahead of the clock.
    ClockBehind {
        /// The machine ID.
        machine: u64,
        /// Up to when it was used.
        used_until: UnixMillis,
        /// What the clock shows.
        now: UnixMillis,
    },
    /// This host's clock and the store's differ too much.
    ClocksDiffer {
        /// This host's.
        ours: UnixMillis,
        /// The store's.
        theirs: UnixMillis,
    },
    /// The clock stands before the layout's epoch or after its end.
    Time(IdError),
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { store, source } => write!(f, "{store}: {source}"),
            Self::Fingerprint { namespace, theirs, ours } => write!(
                f,
                "namespace `{namespace}` is for layout {theirs}, but {ours} is configured; use \
                 another namespace for another layout"
            ),
            Self::Exhausted { holders, range } => {
                write!(f, "every machine ID of {} to {} is in use:", range.start(), range.end())?;
                for (machine, host, pid) in holders.iter().take(10) {
                    write!(f, " {machine} by {host} (pid {pid}),")?;
                }
                if holders.len() > 10 {
                    write!(f, " … {} in all;", holders.len())?;
                }
                f.write_str(" stop one, or widen machine.range")
            }
            Self::ClockBehind { machine, used_until, now } => write!(
                f,
                "machine ID {machine} was used up to {used_until}, but the clock shows {now}; set \
                 the clock, or use another machine ID"
            ),
            Self::ClocksDiffer { ours, theirs } => write!(
                f,
                "this host's clock shows {ours}, the store's {theirs}; synchronise them (NTP)"
            ),
            Self::Time(error) => error.fmt(f),
        }
    }
}

impl Error for ClaimError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store { source, .. } => Some(source),
            _ => None,
        }
    }
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
        ticks(self.timing.window, &self.meta)
    }

    /// Claims a machine ID, with what this host remembers.
    /// Waits: for a store that does not answer, for a silent owner to show that it is gone, for a
    /// clock that stands a little behind.
    pub(crate) fn claim(&self, memory: &mut Memory) -> Result<Granted, ClaimError> {
        self.tick()?;
        let namespace = self.insist(|| self.open())?;
        let ours = self.meta.fingerprint();
        if namespace.fingerprint != ours {
            let (name, theirs) = (self.namespace.clone(), namespace.fingerprint);
            return Err(ClaimError::Fingerprint { namespace: name, theirs, ours });
        }
        self.compare_clocks()?;

        let deadline = self.clock.monotonic() + PATIENCE;
        let mut earlier: Option<Vec<(u64, Record)>> = None;
        let mut glances = 0;
        loop {
            let records = self.insist(|| self.store.list(&self.namespace))?;
            let now = self.tick()?;
            let survey = Survey {
                records: &records,
                earlier: earlier.as_deref(),
                shadows: &memory.records(),
                choice: &self.choice,
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
                return Err(self.exhausted(&records));
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

    fn open(&self) -> Result<Namespace, StoreError> {
        self.store.open_namespace(&self.namespace, &self.meta.fingerprint())
    }

    fn compare_clocks(&self) -> Result<(), ClaimError> {
        let Some(theirs) = self.insist(|| self.store.now())? else { return Ok(()) };
        let ours = self.clock.wall();
        let apart = Duration::from_millis(ours.0.abs_diff(theirs.0));
        if apart > CLOCK_WRONG {
            return Err(ClaimError::ClocksDiffer { ours, theirs });
        }
        if apart > CLOCK_DOUBTFUL {
            tracing::warn!(%ours, %theirs, "this host's clock and the store's differ");
        }
        Ok(())
    }

    /// Asks a store until it answers, for as long as there is patience.
    fn insist<T>(&self, ask: impl Fn() -> Result<T, StoreError>) -> Result<T, ClaimError> {
        let deadline = self.clock.monotonic() + PATIENCE;
        let mut pause = Duration::from_millis(100);
        loop {
            match ask() {
                Ok(answer) => return Ok(answer),
                Err(source) if source.is_permanent() || self.clock.monotonic() >= deadline => {
                    return Err(ClaimError::Store { store: self.store.describe(), source });
                }
                Err(error) => {
                    tracing::warn!(store = self.store.describe(), %error, "the store does not answer; trying again");
                    self.clock.park(pause);
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
    }

    fn attempt(
        &self,
        candidate: &Candidate,
        namespace: &Namespace,
        memory: &Memory,
    ) -> Result<Attempt, ClaimError> {
        let Candidate { machine, record } = candidate;
        if memory.is_in_use(*machine) {
            return Ok(Attempt::InUseHere);
        }
        let shadow = memory.of(*machine);
        let now = self.tick()?;
        let known =
            record.bound.max(namespace.floor).max(shadow.map_or(0, |shadow| shadow.record().bound));
        let guarded = if self.guard || shadow.is_some_and(FileStore::is_damaged) {
            self.rules.position(self.rules.tick(known) + 1 + self.window_ticks())
        } else {
            known
        };
        let next = guarded.max(self.rules.position(now));
        let tick = self.rules.tick(next);
        let starts = match (self.meta.moment_of(tick), &self.choice) {
            (Ok(moment), _) => moment,
            (Err(_), Choice::Any(_)) => return Ok(Attempt::Spent),
            (Err(_), Choice::Only { .. }) => return Err(ClaimError::Time(IdError::TimeExhausted)),
        };
        let wall = self.clock.wall();
        if starts.since(wall).is_some_and(|ahead| Duration::from_millis(ahead) > ROLLBACK_LEAD) {
            return Ok(Attempt::TooFarAhead(starts));
        }
        let claimed = Record {
            epoch: record.epoch + 1,
            owner: random::u128(),
            bound: self.rules.position(tick.saturating_add(self.window_ticks())),
            attempt: random::u63(),
            released: false,
            host: self.host.clone(),
            pid: std::process::id(),
            info_time: wall,
        };
        // A request whose reply was lost is sent again unchanged: the record then shows its attempt.
        let outcome =
            self.insist(|| self.store.cas(&self.namespace, *machine, &record.expect(), &claimed))?;
        Ok(match outcome {
            Cas::Conflict(current)
                if current.attempt != claimed.attempt || !current.meets(&claimed.expect()) =>
            {
                Attempt::Taken
            }
            Cas::Done | Cas::Conflict(_) => {
                Attempt::Granted(Granted { machine: *machine, record: claimed, next })
            }
        })
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

    fn exhausted(&self, records: &[(u64, Record)]) -> ClaimError {
        let range = match &self.choice {
            Choice::Any(range) => range.clone(),
            Choice::Only { machine, .. } => *machine..=*machine,
        };
        let holders = records
            .iter()
            .filter(|(machine, record)| range.contains(machine) && record.owner != 0)
            .map(|(machine, record)| (*machine, record.host.clone(), record.pid))
            .collect();
        ClaimError::Exhausted { holders, range }
    }
}

/// A duration in whole ticks, at least one.
pub(crate) fn ticks(duration: Duration, meta: &IdMeta) -> u64 {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    (millis / meta.spec().unit.millis()).max(1)
}

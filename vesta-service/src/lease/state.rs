//! State machine of a process and its machine ID: survey, claim, hold, extend, release, lost. Pure: time,
//! random numbers and the store's answers come in as values, requests go out as values.
//!
//! ```text
//!  state.rs       the state machine of both phases, and its types
//!  claiming.rs    the search: surveys, candidates, waits
//!  candidates.rs  machine IDs to try, in order
//!  round.rs       tries those of one survey
//!  attempt.rs     one attempt: create, mark, claim, read the floor again
//!  extending.rs   the lease after its claim: extend, release, fenced
//! ```

mod attempt;
mod candidates;
mod claiming;
#[cfg(all(test, not(any(loom, shuttle))))]
mod crash_loop;
mod extending;
mod now;
mod round;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, IdMeta, UnixMillis};

use super::{
    Amendment, BuildError, Cas, Choice, ClaimOrder, Doubt, Local, Look, Marks, Namespace, Record,
    Snapshot, Standby, StoreError, Suspicion, Timing, block_of,
};
use crate::clock::{ClockPair, MAX_LEAD};
use crate::sequence::{MAX_BORROW_MILLIS, Rules};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(in crate::lease) use attempt::{Attempt, Ground, Step, Verdict};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(in crate::lease) use candidates::Survey;
pub(crate) use claiming::CLAIM_TIMEOUT;
use claiming::Claiming;
pub(in crate::lease) use extending::Holding;
pub(crate) use now::Now;

/// Window under a doubt (with a store that may forget), unless a process announces a longer one.
pub(crate) const USUAL_DOUBTFUL_WINDOW: Duration = Timing::IN_MEMORY.window;
/// Maximum difference between the clocks of two hosts that share a store that may forget: each clock is at
/// most half of it from the store's.
pub(in crate::lease) const MAX_SKEW: Duration = Duration::from_secs(2);
/// Time for which a holder relies on its last check for a doubt. Two thirds of a minute, because it checks
/// only when a renewal is due.
pub(in crate::lease) const DOUBT_CHECK: Duration = Duration::from_secs(40);
/// Time for which the namespace must have shown a window longer than the usual one before a process uses it.
/// A fail-over that forgets the announcement then has to lose that much.
const WIDE_AFTER: Duration = Duration::from_secs(600);
/// Pause after a failed search while running.
pub(crate) const CLAIM_AGAIN: Duration = Duration::from_secs(1);

/// Claim plan: the unchanging part of a claim, namely its target and its process.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Display name of the store.
    pub(crate) store: String,
    pub(crate) namespace: String,
    pub(crate) meta: IdMeta,
    pub(crate) rules: Rules,
    pub(crate) timing: Timing,
    pub(crate) choice: Choice,
    pub(crate) order: ClaimOrder,
    /// Number of machine IDs that the process claims.
    pub(crate) count: usize,
    /// Time after which the claim gives up on a store that does not answer.
    pub(crate) claim_timeout: Duration,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// Index at which the search among unused machine IDs begins, counted from the first of the range.
    pub(crate) start_at: u64,
    /// The store's record may lack up to one window of what was acknowledged: a claim keeps that distance
    /// from it.
    pub(crate) guard: bool,
    /// The store is a pool server, which keeps a record for its owner until the bound has passed.
    pub(crate) keeps_owners: bool,
    /// Operator's setting on whether the store may forget what it acknowledged. If it is not set, the store's
    /// own report counts.
    pub(crate) may_forget: Option<bool>,
    /// Longest window that a process uses without announcing it in the namespace.
    pub(crate) usual_window: Duration,
    /// Window under a doubt.
    pub(crate) doubtful_window: Duration,
    /// Set if the process stands by while another one holds its machine ID, and keeps the order of IDs.
    pub(crate) standby: Option<Standby>,
}

impl Plan {
    /// True if rule 11 of SAFETY.md alone decides about a takeover, and no lock of this host: a holder that is paused
    /// keeps its locks.
    pub(crate) const fn goes_by_record(&self) -> bool {
        self.standby.is_some()
    }

    /// Window in use. Under a doubt windows are short, because claims keep a distance of one window. They
    /// count from the wall clock, while IDs may be ahead of it by up to the lead: a shorter window would end
    /// before it begins. `wide` is true once the namespace has shown the windows of this process for long
    /// enough.
    fn window(&self, may_forget: bool, wide: bool) -> Duration {
        let [own, usual] = match may_forget {
            true => [
                self.doubtful_window.max(2 * MAX_LEAD),
                USUAL_DOUBTFUL_WINDOW,
            ],
            false => [self.timing.window, self.usual_window],
        };
        if wide { own } else { own.min(usual) }
    }

    /// Takes over the longest window that is used on the store without being announced, once it is known.
    pub(crate) fn learn(&mut self, usual: Duration) {
        // Other processes may borrow ahead.
        let usual = usual + Duration::from_millis(MAX_BORROW_MILLIS);
        self.usual_window = self.usual_window.max(usual);
    }

    /// Interval of renewals: short enough for the window in use.
    fn renew_every(&self, may_forget: bool, wide: bool) -> Duration {
        let own = self.timing.renew_every;
        let own = own.min(self.window(may_forget, wide) / 3);
        if may_forget {
            own.min(Timing::IN_MEMORY.renew_every)
        } else {
            own
        }
    }

    pub(crate) fn window_ticks(&self, may_forget: bool, wide: bool) -> u64 {
        let millis = u64::try_from(self.window(may_forget, wide).as_millis()).unwrap_or(u64::MAX);
        (millis / self.meta.spec().unit.millis()).max(1)
    }

    /// Block that a search reads first: that of a machine ID which this host remembers, or else the one that its
    /// index falls into. So the hosts of a large namespace spread over its blocks.
    pub(crate) fn home_block(&self, locals: &BTreeMap<u64, Local>) -> u64 {
        let range = self.choice.range();
        if let Some((machine, _)) = locals.range(range.clone()).next() {
            return block_of(*machine);
        }
        let index = match self.order {
            ClaimOrder::Stable => self.start_at % (range.end() - range.start() + 1),
            ClaimOrder::Lowest => 0,
        };
        block_of(range.start() + index)
    }

    /// Distance ahead of the clock at which a claim begins: beyond every window that the store may have
    /// forgotten. Each of those windows ended at most the longest window ahead of its buyer's clock, or was
    /// bought before the doubt was known and ended before the doubt's reach.
    pub(crate) fn distance(doubt: Option<&Doubt>, wall: UnixMillis) -> Duration {
        doubt.map_or(Duration::ZERO, |doubt| {
            let left = Duration::from_millis(doubt.reach.since(wall).unwrap_or(0));
            (doubt.window.max(USUAL_DOUBTFUL_WINDOW) + MAX_SKEW).max(left)
        })
    }

    /// Doubt to write down where nothing has been reserved yet, with the reason that the store gives. If the
    /// server took over from another one, the doubt's reach covers what the other may have acknowledged.
    pub(crate) fn first_doubt(&self, seen: Option<&Suspicion>, wall: UnixMillis) -> Option<Doubt> {
        let why = match self.may_forget {
            Some(false) => return None,
            Some(true) => "the settings say so",
            None => seen?.why.as_str(),
        };
        let took_over = seen.is_some_and(|seen| seen.took_over);
        let reach = if took_over {
            self.reach(Duration::ZERO, Duration::ZERO, wall)
        } else {
            wall
        };
        Some(Doubt {
            since: wall,
            reach,
            window: Duration::ZERO,
            took_over,
            why: why.into(),
        })
    }

    /// End of all windows of processes that do not know of a doubt and buy their last window up to `later`
    /// from now. `announced` is the longest window that the namespace shows.
    fn reach(&self, later: Duration, announced: Duration, wall: UnixMillis) -> UnixMillis {
        let longest = announced.max(self.usual_window).max(self.timing.window);
        let reach = later + longest + MAX_LEAD + MAX_SKEW;
        let reach = u64::try_from(reach.as_millis()).unwrap_or(u64::MAX);
        UnixMillis(wall.0.saturating_add(reach))
    }

    /// True if a claim now would wait for the reach of this doubt, which may reach nothing. That of a server that took
    /// over stays: claims may be missing.
    pub(crate) fn waits_for_reach(doubt: &Doubt, wall: UnixMillis) -> bool {
        let without = Doubt {
            reach: doubt.since,
            ..doubt.clone()
        };
        !doubt.took_over && Self::distance(Some(doubt), wall) > Self::distance(Some(&without), wall)
    }

    /// Facts that this process adds to a namespace: the windows that it announces before it uses them, the doubt that
    /// it writes down, and the server that it writes to.
    pub(crate) fn facts(
        &self,
        namespace: u128,
        doubt: Option<Doubt>,
        writer: Option<String>,
    ) -> Amendment {
        let unusual = |window: Duration, usual| {
            if window > usual {
                window
            } else {
                Duration::ZERO
            }
        };
        Amendment {
            namespace,
            window: unusual(self.timing.window, self.usual_window),
            doubtful_window: unusual(self.doubtful_window, USUAL_DOUBTFUL_WINDOW),
            doubt,
            writer,
            ..Amendment::default()
        }
    }

    /// Facts that a namespace in use lacks; `None` if it shows them all.
    fn missing_from(
        &self,
        of: &Namespace,
        seen: Option<&Suspicion>,
        server: Option<&String>,
        wall: UnixMillis,
    ) -> Option<Amendment> {
        // Other processes buy long windows until their next check.
        let doubt = self.first_doubt(seen, wall).filter(|_| of.doubt.is_none());
        let reach = self.reach(DOUBT_CHECK, of.window, wall);
        let doubt = doubt.map(|doubt| Doubt { reach, ..doubt });
        let facts = self.facts(of.uuid, doubt, server.cloned());
        (facts.of(of) != *of).then_some(facts)
    }

    /// Sample plan: a pool of this many machine IDs, with a layout that counts seconds.
    #[cfg(test)]
    pub(in crate::lease) fn sample(rules: Rules, window: Duration, machines: u64) -> Self {
        Self {
            store: String::new(),
            namespace: String::new(),
            meta: IdMeta::MAX_PEAK,
            rules,
            timing: Timing {
                window,
                renew_every: Duration::from_secs(1),
                ..Timing::ONE_HOST
            },
            choice: Choice::Any(0..=machines - 1),
            order: ClaimOrder::Lowest,
            count: 1,
            claim_timeout: Duration::ZERO,
            host: String::new(),
            pid: 0,
            start_at: 0,
            guard: false,
            keeps_owners: false,
            may_forget: None,
            usual_window: window,
            doubtful_window: USUAL_DOUBTFUL_WINDOW,
            standby: None,
        }
    }

    /// A duration in whole ticks, rounded up.
    fn ticks(&self, duration: Duration) -> u64 {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        millis.div_ceil(self.meta.spec().unit.millis())
    }

    fn check(&self, namespace: &Namespace) -> Result<(), BuildError> {
        let (ours, theirs) = (self.meta.fingerprint(), namespace.fingerprint.clone());
        if ours == theirs {
            return Ok(());
        }
        Err(BuildError::Fingerprint {
            namespace: self.namespace.clone(),
            theirs,
            ours,
        })
    }

    /// Refuses an order that another process's IDs would break: their fixed fields differ, and genMethod, version and
    /// type are above the time.
    fn check_order(&self, records: &BTreeMap<u64, Record>) -> Result<(), BuildError> {
        let record = records.get(self.choice.range().start());
        let theirs = record.filter(|record| record.owner != 0);
        match (&self.standby, theirs.and_then(|it| it.standby.as_ref())) {
            (Some(own), Some(theirs)) if own.base != theirs.base => Err(IdError::invalid(
                "standby",
                "the process that holds the machine ID makes IDs with another genMethod or version, which are not in \
                 one order with those of this one; give both the same",
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Moment before which every position below the bound lies. Rounded up: a floor at that moment lies above
    /// the bound.
    fn used_until(&self, bound: u64) -> UnixMillis {
        let tick = self.rules.tick(bound);
        let tick = tick + u64::from(self.rules.position(tick) < bound);
        self.meta.moment_of(tick).unwrap_or(self.meta.end())
    }

    /// Fields of a record that are for people only.
    fn signature(&self, now: &Now) -> Record {
        let (host, pid) = (self.host.clone(), self.pid);
        Record {
            host,
            pid,
            info_time: now.wall,
            ..Record::default()
        }
    }
}

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
    /// Read a block of the namespace's machine IDs, and what this host remembers. The first survey of a search
    /// names no block; [`Plan::home_block`] is read. If the namespace does not exist and is not remembered, it is
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
    pub(crate) doubt: Option<Suspicion>,
    /// Server that answered, if each has its own data.
    pub(crate) server: Option<String>,
    /// Doubt after which no machine ID was found to be claimed, in a server that took over from no other one: it
    /// reaches nothing.
    pub(crate) reaches_nothing: Option<Doubt>,
    /// Block of machine IDs that was read.
    pub(crate) block: u64,
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
    /// Ask, and pass the answer to [`Machine::on_answer`].
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

/// State machine of one machine slot: first it searches, then it holds a machine ID.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) plan: Plan,
    /// Doubt about the store, as the namespace records it.
    pub(crate) doubt: Option<Doubt>,
    phase: Phase,
}

#[derive(Debug, Clone)]
enum Phase {
    Claiming(Box<Claiming>),
    Holding(Box<Holding>),
    Over,
}

impl Machine {
    /// Starts a search for a machine ID.
    pub(crate) fn new(plan: Plan, now: &Now) -> Self {
        let phase = Phase::Claiming(Box::new(Claiming::new(&plan, Duration::ZERO, now)));
        Self {
            plan,
            doubt: None,
            phase,
        }
    }

    pub(crate) const fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Holding(_))
    }

    /// True if a search is under way, and not only due.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(&self.phase, Phase::Claiming(claiming) if claiming.begun && !claiming.stands_by)
    }

    /// The process that holds the machine ID, for people, while this one stands by.
    pub(crate) fn stands_by_for(&self) -> Option<String> {
        match &self.phase {
            Phase::Claiming(claiming) if claiming.stands_by => Some(claiming.holder(&self.plan)),
            _ => None,
        }
    }

    /// End of the right to issue by the last acknowledged change, on the monotonic clock (SAFETY.md, rule 11).
    /// Called when that change is acknowledged, before the next one is made.
    pub(crate) fn ends_at(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Holding(holding) => Some(holding.made + self.plan.standby.as_ref()?.window),
            _ => None,
        }
    }

    /// True while an attempt is under way: the record may already belong to this process.
    pub(crate) fn is_attempting(&self) -> bool {
        matches!(&self.phase, Phase::Claiming(claiming) if claiming.is_attempting())
    }

    /// Brings forward a renewal that is due soon, because other slots of this process renew now.
    pub(crate) fn hurry(&mut self, now: &Now) {
        if let Phase::Holding(holding) = &mut self.phase {
            holding.hurry(&self.plan, now);
        }
    }

    /// True if the lease is to be given up, because a successor may have been forgotten.
    pub(crate) fn is_overdue(&self) -> bool {
        matches!(&self.phase, Phase::Holding(holding) if holding.is_overdue())
    }

    /// Releases the record, after sealing at this position.
    pub(crate) fn release(&mut self, sealed_at: u64) {
        if let Phase::Holding(holding) = &mut self.phase {
            holding.release(sealed_at);
        }
    }

    /// Ends the search. A held lease ends by its release.
    pub(crate) fn stop(&mut self) {
        if let Phase::Claiming(_) = self.phase {
            self.phase = Phase::Over;
        }
    }

    /// Returns the next action.
    pub(crate) fn next(&mut self, now: &Now) -> Action {
        match &mut self.phase {
            Phase::Over => Action::Stop,
            Phase::Holding(holding) => holding.next(&self.plan, now),
            Phase::Claiming(claiming) => {
                let action = claiming.next(&self.plan, now);
                if let Action::Refused(_) = action {
                    self.search_again(now, CLAIM_AGAIN);
                }
                action
            }
        }
    }

    /// Handles an answer.
    pub(crate) fn on_answer(&mut self, answer: Answer, now: &Now) -> Event {
        let event = match &mut self.phase {
            Phase::Over => Event::None,
            Phase::Claiming(claiming) => {
                let event = claiming.on_answer(&self.plan, answer, now);
                self.doubt.clone_from(&claiming.doubt);
                event
            }
            Phase::Holding(holding) => {
                let event = holding.on_answer(&self.plan, answer, now);
                self.doubt.clone_from(&holding.doubt);
                event
            }
        };
        match &event {
            Event::Claimed(Claimed {
                machine,
                record,
                before,
                ..
            }) => {
                let doubt = self.doubt.clone();
                let mut holding = Holding::new(&self.plan, *machine, doubt, record.clone(), now);
                if self.plan.standby.is_some() {
                    holding.made_before(&self.plan, *before, now);
                }
                self.phase = Phase::Holding(Box::new(holding));
            }
            Event::Refused(_) => self.search_again(now, CLAIM_AGAIN),
            Event::Released(_) | Event::Fenced(_) | Event::GivenUp(_) => {
                self.search_again(now, Duration::ZERO);
            }
            Event::Broken(_) => self.phase = Phase::Over,
            Event::None | Event::Raised(_) | Event::Unsure(_) | Event::WentBack(_) => {}
        }
        event
    }

    fn search_again(&mut self, now: &Now, pause: Duration) {
        let from = now.monotonic.saturating_add(pause);
        self.phase = Phase::Claiming(Box::new(Claiming::new(&self.plan, from, now)));
    }
}

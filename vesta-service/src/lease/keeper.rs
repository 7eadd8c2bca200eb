//! What keeps a lease alive: the thread that does what [`state`](super::state) says, and the list of
//! grants that it leaves behind.

#[cfg(all(test, loom))]
mod races;
#[cfg(all(test, shuttle))]
mod schedules;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::claim::{Choice, Claimant, Granted, PATIENCE};
use super::shadow::Memory;
use super::state::{Action, Event, Lease, Now, Reply};
use super::timing::RETRY_AFTER;
use super::{Cas, FileStore, ask_store};
use crate::clock::MAX_LEAD;
use crate::held_lease::{HeldLease as Grant, HeldLeaseFactory as GrantFactory};
use crate::random;
use crate::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, thread};

/// After a claim that failed while running.
const CLAIM_AGAIN: Duration = Duration::from_secs(1);

/// One line of positions after another: the grants of a service, the last of which is in force.
#[derive(Debug)]
pub(crate) struct Line {
    /// The number of the grant in force: 0 is the first, the others count from 1.
    current: AtomicUsize,
    /// The first stands here, where it is reached without following a pointer: most services never
    /// have another.
    first: Grant,
    others: boxcar::Vec<Grant>,
    pub(crate) counters: Counters,
    /// Why the last attempt to claim a machine ID failed.
    failure: Mutex<Option<String>>,
    signal: Signal,
}

/// What happened to the lease so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) renewals_ok: AtomicU64,
    pub(crate) renewals_failed: AtomicU64,
    pub(crate) fenced: AtomicU64,
    /// How often another machine ID, or the same one anew, was claimed while running.
    pub(crate) rehomed: AtomicU64,
    /// Monotonic clock of the last acknowledged renewal, in milliseconds.
    pub(crate) renewed_at: AtomicU64,
}

/// Wakes the keeper, and tells it and those who wait for it about the end.
#[derive(Debug, Default)]
struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    stop: bool,
    over: bool,
}

impl Line {
    pub(crate) fn new(first: Grant) -> Self {
        Self {
            current: AtomicUsize::new(0),
            first,
            others: boxcar::Vec::new(),
            counters: Counters::default(),
            failure: Mutex::default(),
            signal: Signal::default(),
        }
    }

    /// The grant in force.
    #[inline]
    pub(crate) fn current(&self) -> &Grant {
        // Acquire, with the release in `follow`: the grant is complete before its number is seen.
        match self.current.load(Ordering::Acquire) {
            0 => &self.first,
            number => &self.others[number - 1],
        }
    }

    /// Puts a new grant in force. The one before must be sealed.
    fn follow(&self, next: Grant) {
        // Under the lock: whoever asks to stop finds this grant in force, or it comes sealed.
        let state = self.signal.state.lock();
        if state.stop {
            next.seal("it was shut down");
        }
        let index = self.others.push(next);
        self.current.store(index + 1, Ordering::Release);
    }

    /// Why the last attempt to claim a machine ID failed.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed); // a statistic
    }

    /// Asks the keeper to seal, save the bound and release.
    pub(crate) fn request_stop(&self) {
        self.signal.state.lock().stop = true;
        self.signal.changed.notify_all();
    }

    /// Waits until the keeper has ended; `false` if it takes longer than `limit`.
    pub(crate) fn wait_until_over(&self, limit: Duration) -> bool {
        let mut state = self.signal.state.lock();
        self.signal.changed.wait_while_for(&mut state, |state| !state.over, limit);
        state.over
    }

    /// Whether a sealed grant will have a successor: nobody asked to stop, and the keeper has not
    /// given up.
    pub(crate) fn will_follow(&self) -> bool {
        let state = self.signal.state.lock();
        !state.stop && !state.over
    }

    /// Has the keeper look at once whether there is something to do.
    pub(crate) fn wake_keeper(&self) {
        self.signal.changed.notify_all();
    }

    fn stopping(&self) -> bool {
        self.signal.state.lock().stop
    }

    /// Sleeps for `duration`, or until somebody asks to stop.
    fn sleep(&self, duration: Duration) {
        let mut state = self.signal.state.lock();
        if !state.stop {
            self.signal.changed.wait_for(&mut state, duration);
        }
    }

    fn end(&self) {
        self.signal.state.lock().over = true;
        self.signal.changed.notify_all();
    }
}

/// Does what the state machine of the lease says.
#[derive(Debug)]
pub(crate) struct Driver {
    claimant: Claimant,
    factory: GrantFactory,
    /// `None` between the loss of a machine ID and the claim of the next.
    lease: Option<Lease>,
    /// What this host will remember of the record; not for state files, which are their own memory.
    shadow: Option<FileStore>,
    /// It can no longer be written. It stays locked: that is how this host knows that the machine ID
    /// is in use.
    shadow_is_old: bool,
    remember_in: Option<PathBuf>,
    /// The uuid of the namespace, as the store gave it with the last claim.
    store_uuid: u128,
    /// How far ahead of the clock the last claim began.
    ahead: Duration,
}

impl Driver {
    /// Claims a machine ID and puts its first grant on a line.
    pub(crate) fn start(
        claimant: Claimant,
        factory: GrantFactory,
        remember_in: Option<PathBuf>,
    ) -> Result<(Self, Line), crate::BuildError> {
        let (store_uuid, ahead) = (0, Duration::ZERO);
        let mut driver = Self {
            claimant,
            factory,
            lease: None,
            shadow: None,
            shadow_is_old: false,
            remember_in,
            store_uuid,
            ahead,
        };
        let grant = driver.claim()?;
        // Whoever waits for a store at start need not be deaf to a stop later.
        driver.claimant.patience = driver.claimant.patience.min(PATIENCE);
        Ok((driver, Line::new(grant)))
    }

    fn claim(&mut self) -> Result<Grant, crate::BuildError> {
        let Claimant { namespace, meta, .. } = &self.claimant;
        let fingerprint = meta.fingerprint();
        self.shadow = None; // unlocks it, so that it is found below
        let mut memory = Memory::read(self.remember_in.clone(), namespace, fingerprint);
        let Granted { machine, record, next, store_uuid } = self.claimant.claim(&mut memory)?;
        self.store_uuid = store_uuid;
        self.ahead = self.claimant.ahead();
        self.shadow = memory.keep(machine);
        self.shadow_is_old = false;
        self.remember(&record);
        let grant = self.factory.make(machine, record.epoch, next, record.bound)?;
        let now = self.now(&grant);
        let Claimant { rules, timing, .. } = &self.claimant;
        let window = self.claimant.window_ticks();
        self.lease = Some(Lease::new(*rules, window, timing.renew_every, record, now));
        Ok(grant)
    }

    fn remember(&mut self, record: &super::Record) {
        let Some(shadow) = self.shadow.as_ref().filter(|_| !self.shadow_is_old) else { return };
        if let Err(error) = shadow.write_shadow(self.store_uuid, record) {
            tracing::warn!(%error, "this host no longer remembers how far its machine ID was used");
            self.shadow_is_old = true;
        }
    }

    fn now(&self, grant: &Grant) -> Now {
        Now {
            monotonic: self.claimant.clock.monotonic(),
            // From a store that may forget no window reaches further ahead of the wall clock than where
            // the next claim would begin.
            tick: match self.claimant.store.may_forget() {
                true => grant.ticks().wall_tick(),
                false => grant.ticks().effective_tick(),
            },
            wall: self.claimant.clock.wall(),
            random: random::u63(),
        }
    }

    /// Does what is due. Returns how long there is nothing more to do, or `None` if it is over.
    fn step(&mut self, line: &Line) -> Option<Duration> {
        let stopping = line.stopping();
        let grant = line.current();
        let Some(mut lease) = self.lease.take() else {
            return if stopping { None } else { self.claim_again(line) };
        };
        let now = self.now(grant);
        if stopping {
            lease.release(grant.seal("it was shut down"));
        } else if grant.ticks().lead() > MAX_LEAD + self.ahead
            && matches!(self.claimant.choice, Choice::Any(_))
        {
            tracing::warn!(
                machine = grant.machine(),
                "the clock stands far behind: changing the machine ID"
            );
            lease.release(grant.seal("the clock stands far behind what it issued"));
        }
        match lease.next(now) {
            Action::Wait(until) => {
                self.lease = Some(lease);
                Some(until.saturating_sub(now.monotonic))
            }
            // Released or fenced: `self.lease` stays empty.
            Action::Stop => Some(Duration::ZERO),
            Action::Write(expect, new) => {
                let Claimant { store, namespace, .. } = &self.claimant;
                let reply = match ask_store(|| store.cas(namespace, grant.machine(), &expect, &new))
                {
                    Ok(Cas::Done) => Reply::Done,
                    Ok(Cas::Conflict(current)) => Reply::Conflict(current),
                    Err(error) => {
                        Line::count(&line.counters.renewals_failed);
                        let store = store.describe();
                        if error.is_permanent() {
                            tracing::error!(store, %error, "the store failed for good: no more IDs");
                            grant.seal(&error.to_string());
                            return None;
                        }
                        tracing::warn!(store, %error, "renewal was not answered; trying again");
                        Reply::Unknown
                    }
                };
                let event = lease.on_reply(reply, self.now(grant));
                let record = lease.record().clone();
                self.lease = Some(lease);
                self.carry_out(event, &record, grant, line);
                Some(Duration::ZERO)
            }
        }
    }

    fn carry_out(&mut self, event: Event, record: &super::Record, grant: &Grant, line: &Line) {
        match event {
            Event::Raised(limit) => {
                self.remember(record);
                grant.raise(limit);
                Line::count(&line.counters.renewals_ok);
                let now = self.claimant.clock.monotonic().as_millis();
                let now = u64::try_from(now).unwrap_or(u64::MAX);
                line.counters.renewed_at.store(now, Ordering::Relaxed);
            }
            Event::Released => {
                self.remember(record);
                tracing::info!(machine = grant.machine(), "machine ID released");
            }
            Event::Fenced(current) => {
                Line::count(&line.counters.fenced);
                grant.seal("another process took its machine ID over");
                tracing::error!(
                    machine = grant.machine(),
                    by_host = current.host,
                    by_pid = current.pid,
                    "another process took this machine ID over"
                );
            }
            Event::Unsure => {}
        }
    }

    fn claim_again(&mut self, line: &Line) -> Option<Duration> {
        if line.current().ticks().read().suspect {
            tracing::error!("no machine ID is claimed by a clock that is not believed");
            return Some(CLAIM_AGAIN);
        }
        match self.claim() {
            Ok(grant) => {
                tracing::warn!(
                    machine = grant.machine(),
                    epoch = grant.epoch(),
                    "going on with this machine ID"
                );
                grant.ticks().trust_as(line.current().ticks());
                line.follow(grant);
                *line.failure.lock() = None;
                Line::count(&line.counters.rehomed);
                Some(Duration::ZERO)
            }
            Err(error) => {
                tracing::error!(%error, "no machine ID; trying again");
                *line.failure.lock() = Some(error.to_string());
                Some(CLAIM_AGAIN)
            }
        }
    }
}

#[derive(Debug)]
enum Runs {
    InThread,
    /// Empty once it is over: what the driver has locked is free then.
    ByHand(Mutex<Option<Box<Driver>>>),
}

/// A driver, and who runs it: a thread of its own, or whoever calls [`maintain`](Self::maintain).
#[derive(Debug)]
pub(crate) struct Keeper {
    runs: Runs,
    patience: Duration,
}

impl Keeper {
    /// Runs the driver in a thread that ends when the line is stopped.
    pub(crate) fn in_thread(driver: Driver, line: &Arc<Line>) -> std::io::Result<Self> {
        let patience = patience(&driver);
        let line = line.clone();
        let mut driver = driver;
        thread::Builder::new().name("vesta-keeper".into()).spawn(move || {
            while let Some(pause) = driver.step(&line) {
                if !pause.is_zero() {
                    line.sleep(pause);
                }
                if line.stopping() && pause > Duration::ZERO {
                    // An unanswered release is tried again soon, but never in a tight loop.
                    driver.claimant.clock.park(RETRY_AFTER.min(pause));
                }
            }
            drop(driver); // unlocks its files before anybody hears of the end
            line.end();
        })?;
        Ok(Self { runs: Runs::InThread, patience })
    }

    /// Leaves the driving to [`maintain`](Self::maintain).
    pub(crate) fn by_hand(driver: Driver) -> Self {
        Self { patience: patience(&driver), runs: Runs::ByHand(Mutex::new(Some(Box::new(driver)))) }
    }

    /// Does what is due, if no thread does it. Returns how long there is nothing more to do.
    pub(crate) fn maintain(&self, line: &Line) -> Option<Duration> {
        let Runs::ByHand(driver) = &self.runs else { return None };
        let mut slot = driver.lock();
        while let Some(driver) = slot.as_mut() {
            match driver.step(line) {
                Some(Duration::ZERO) => {}
                Some(pause) => return Some(pause),
                None => *slot = None,
            }
        }
        line.end();
        None
    }

    /// Seals the line and gives the record back, as far as the store answers in time. Whatever
    /// happens, nothing is issued afterwards and the durable bound covers what was.
    pub(crate) fn close(&self, line: &Line) {
        line.request_stop();
        line.current().seal("it was shut down");
        let over = match &self.runs {
            Runs::InThread => line.wait_until_over(self.patience),
            Runs::ByHand(driver) => {
                let over = self.maintain(line).is_none();
                *driver.lock() = None;
                over
            }
        };
        if !over {
            tracing::warn!("the store did not confirm the release; the bound stays where it is");
        }
    }
}

/// How long a release may take: one request and its repetition.
fn patience(driver: &Driver) -> Duration {
    driver.claimant.timing.request_timeout * 2 + Duration::from_millis(500)
}

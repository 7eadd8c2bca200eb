//! The tick to go by, cheaply: the clock is read for each claim, but judged only when its tick
//! changes.

use std::time::Duration;

use vesta_intf::{IdMeta, TimeUnit, UnixMillis};

use crate::clock::{AnyClock, EffectiveClock, MAX_LEAD, Reading};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The effective tick of one lease.
#[derive(Debug)]
pub(crate) struct Ticks {
    clock: AnyClock,
    /// The process that it was made in.
    process: u32,
    scale: Scale,
    /// The tick that the effective clock showed last. While the wall clock shows the same one,
    /// nothing needs to be judged.
    current: AtomicU64,
    suspect: AtomicBool,
    state: Mutex<EffectiveClock>,
}

/// Time unit of a layout. Seconds from a whole second on can be told by the cheapest clock.
#[derive(Debug, Clone, Copy)]
enum Scale {
    WholeSeconds { epoch: u64 },
    Millis { epoch: u64 },
    Other { epoch: u64, millis: u64 },
}

impl Scale {
    fn of(meta: &IdMeta) -> Self {
        let epoch = meta.spec().epoch.0;
        match meta.spec().unit {
            TimeUnit::Second if epoch.is_multiple_of(1000) => {
                Scale::WholeSeconds { epoch: epoch / 1000 }
            }
            TimeUnit::Millisecond => Scale::Millis { epoch },
            unit => Scale::Other { epoch, millis: unit.millis() },
        }
    }

    /// The tick of a moment; 0 before the epoch, where no claim is made.
    fn tick(self, moment: UnixMillis) -> u64 {
        match self {
            Scale::WholeSeconds { epoch } => (moment.0 / 1000).saturating_sub(epoch),
            Scale::Millis { epoch } => moment.0.saturating_sub(epoch),
            Scale::Other { epoch, millis } => moment.0.saturating_sub(epoch) / millis,
        }
    }

    fn begin(self, tick: u64) -> UnixMillis {
        UnixMillis(match self {
            Scale::WholeSeconds { epoch } => (epoch + tick) * 1000,
            Scale::Millis { epoch } => epoch + tick,
            Scale::Other { epoch, millis } => epoch + tick * millis,
        })
    }
}

impl Ticks {
    /// Starts at the wall clock, or at `not_before` if that tick is later.
    pub(crate) fn new(clock: AnyClock, meta: &IdMeta, not_before: u64) -> Self {
        let scale = Scale::of(meta);
        let (wall, monotonic) = (clock.wall(), clock.monotonic());
        let mut effective = EffectiveClock::new(wall, monotonic, scale.begin(not_before));
        let first = effective.observe(wall, monotonic);
        Self {
            clock,
            process: std::process::id(),
            scale,
            current: AtomicU64::new(scale.tick(first.effective)),
            suspect: AtomicBool::new(false),
            state: Mutex::new(effective),
        }
    }

    /// Believes the wall clock as far as the lease before did.
    pub(crate) fn trust_as(&self, before: &Ticks) {
        let before = before.state.lock().clone();
        self.state.lock().trust_as(&before);
    }

    /// The tick to go by, or how long to wait until the wall clock has come near enough to it.
    #[inline]
    pub(crate) fn now(&self) -> Result<u64, Duration> {
        let shown = match self.scale {
            Scale::WholeSeconds { epoch } => self.clock.wall_seconds().wrapping_sub(epoch),
            Scale::Millis { epoch } => self.clock.wall().0.wrapping_sub(epoch),
            scale @ Scale::Other { .. } => scale.tick(self.clock.wall()),
        };
        // Relaxed: a tick is a hint for the time field; the populator orders what is issued.
        if shown == self.current.load(Ordering::Relaxed) { Ok(shown) } else { self.judge() }
    }

    /// True in the child of a fork, where the parent issues from the same positions. It is looked for
    /// when the tick changes or is used up, so that an ID costs no system call.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// The tick to go by, when the clock shows another than last time.
    #[cold]
    #[inline(never)]
    fn judge(&self) -> Result<u64, Duration> {
        if self.is_forked() {
            return Err(Duration::ZERO);
        }
        // The cheap clock of seconds lags by some milliseconds: perhaps nothing has changed.
        let wall = self.clock.wall();
        if self.scale.tick(wall) == self.current.load(Ordering::Relaxed) {
            return Ok(self.scale.tick(wall));
        }
        self.judge_precisely()
    }

    /// As [`now`](Self::now), by the precise clocks.
    pub(crate) fn judge_precisely(&self) -> Result<u64, Duration> {
        if self.is_forked() {
            return Err(Duration::ZERO);
        }
        let reading = self.read();
        match reading.lead.checked_sub(MAX_LEAD) {
            Some(behind) if !behind.is_zero() => Err(whole_millis(behind)),
            _ => Ok(self.scale.tick(reading.effective)),
        }
    }

    /// The monotonic clock.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// The effective clock, read now.
    pub(crate) fn read(&self) -> Reading {
        let mut state = self.state.lock();
        let reading = state.observe(self.clock.wall(), self.clock.monotonic());
        self.current.store(self.scale.tick(reading.effective), Ordering::Relaxed);
        if self.suspect.swap(reading.suspect, Ordering::Relaxed) != reading.suspect {
            if reading.suspect {
                tracing::error!(
                    following = %reading.effective,
                    "the wall clock jumped ahead by more than an hour and is not followed; \
                     correct it, or restart to accept it"
                );
            } else {
                tracing::info!("the wall clock is believed again");
            }
        }
        reading
    }

    /// The tick of the effective clock, however far it is ahead.
    pub(crate) fn effective_tick(&self) -> u64 {
        self.scale.tick(self.read().effective)
    }

    /// The tick of the wall clock, as far as that is believed.
    pub(crate) fn wall_tick(&self) -> u64 {
        let Reading { effective, lead, .. } = self.read();
        let lead = u64::try_from(lead.as_millis()).unwrap_or(u64::MAX);
        self.scale.tick(UnixMillis(effective.0.saturating_sub(lead)))
    }

    /// Time until a tick begins, by the effective clock.
    pub(crate) fn until(&self, tick: u64) -> Duration {
        let begin = self.scale.begin(tick);
        let reading = self.read();
        if reading.lead.is_zero() && !reading.suspect {
            return self.clock.until(begin);
        }
        let left = Duration::from_millis(begin.since(reading.effective).unwrap_or(0));
        // Ahead of the wall clock it goes 10 % slow until the wall clock is there, rounded down each time
        // that somebody looks; one that is not followed goes by the monotonic clock.
        (left + left / 9 + Duration::from_micros(1)).min(left + reading.lead)
    }

    /// Time until a tick begins, counted from the effective clock; for people.
    pub(crate) fn distance(&self, tick: u64) -> Duration {
        let reading = self.read();
        Duration::from_millis(self.scale.begin(tick).since(reading.effective).unwrap_or(0))
    }
}

/// Rounded up, as far as the wall clock has to go on: it counts whole milliseconds.
fn whole_millis(duration: Duration) -> Duration {
    let nanos = duration.as_nanos().next_multiple_of(1_000_000);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

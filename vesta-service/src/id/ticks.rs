//! The time for generation: the cheap clock reading shows whether it advanced, and only then is it evaluated.

use std::time::Duration;

use vesta_intf::{IdMeta, TimeUnit, UnixMillis};

use crate::clock::{AnyClock, ClockKind, ClockPair, EffectiveClock, Glance, MAX_LEAD, Reading};
use crate::fork::Process;
use crate::number::millis;
use crate::sequence::Rules;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// The effective clock of one lease, in ticks of the layout and their slices.
#[derive(Debug)]
pub(crate) struct Ticks {
    clock: AnyClock,
    glance: Glance,
    process: Process,
    scale: Scale,
    suspect: AtomicBool,
    state: Mutex<EffectiveClock>,
}

/// Converts milliseconds to ticks and slices, and back.
#[derive(Debug, Clone, Copy)]
struct Scale {
    epoch: u64,
    tick_millis: u64,
    slice_bits: u8,
}

impl Scale {
    /// The tick of a moment; 0 before the epoch, where no claim is made.
    fn tick(self, moment: UnixMillis) -> u64 {
        self.slice(moment) >> self.slice_bits
    }

    /// The slice of a moment, counted from the epoch.
    fn slice(self, moment: UnixMillis) -> u64 {
        let slices = u128::from(moment.0.saturating_sub(self.epoch)) << self.slice_bits;
        u64::try_from(slices / u128::from(self.tick_millis)).unwrap_or(u64::MAX)
    }

    /// The first millisecond of a slice.
    fn begin(self, slice: u64) -> UnixMillis {
        let millis = u128::from(slice) * u128::from(self.tick_millis);
        let millis = millis.div_ceil(1 << self.slice_bits) + u128::from(self.epoch);
        UnixMillis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

impl Ticks {
    /// Starts at the wall clock, or where a generator at this position may continue, if that is later.
    pub(crate) fn new(
        clock: AnyClock,
        kind: ClockKind,
        meta: &IdMeta,
        rules: &Rules,
        next: u64,
    ) -> Self {
        let (epoch, unit) = (meta.spec().epoch.0, meta.spec().unit);
        let seconds = unit == TimeUnit::Second && epoch.is_multiple_of(1000);
        let glance = Glance::new(&clock, seconds, kind);
        let slice_bits = rules.slice_bits();
        let scale = Scale {
            epoch,
            tick_millis: unit.millis(),
            slice_bits,
        };
        let not_before = scale.begin(rules.earliest_tick(next) << slice_bits);
        let effective = EffectiveClock::new(clock.wall(), clock.monotonic(), not_before);
        Self {
            clock,
            glance,
            process: Process::this(),
            scale,
            suspect: AtomicBool::new(false),
            state: Mutex::new(effective),
        }
    }

    /// Believes the wall clock as far as the previous lease did.
    pub(crate) fn trust_as(&self, before: &Ticks) {
        let before = before.state.lock().clone();
        self.state.lock().trust_as(&before);
    }

    /// Takes a comparison with the store's clock into account.
    pub(crate) fn compare(&self, pair: &ClockPair) {
        self.state.lock().compare(pair);
    }

    /// The cheap clock of [`glance`](Self::glance).
    pub(crate) fn cheap_clock(&self) -> &Glance {
        &self.glance
    }

    /// A number that changes when the time advances.
    #[inline(always)]
    pub(crate) fn glance(&self) -> u64 {
        self.glance.read()
    }

    /// True in the child of a fork, where the parent issues from the same positions. For slow paths
    /// only: it costs a system call.
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_another()
    }

    /// The current slice, or the time to wait until the wall clock is near enough to it.
    pub(crate) fn now(&self) -> Result<u64, Duration> {
        if self.is_forked() {
            return Err(Duration::ZERO);
        }
        let reading = self.read();
        match reading.lead.checked_sub(MAX_LEAD) {
            Some(behind) if !behind.is_zero() => Err(whole_millis(behind)),
            _ => Ok(self.scale.slice(reading.effective)),
        }
    }

    /// The monotonic clock.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// A fresh reading of the effective clock.
    pub(crate) fn read(&self) -> Reading {
        let mut state = self.state.lock();
        let reading = state.observe(self.clock.wall(), self.clock.monotonic());
        if self.suspect.swap(reading.suspect, Ordering::Relaxed) != reading.suspect {
            if reading.suspect {
                tracing::error!(
                    following = %reading.effective,
                    "the wall clock jumped ahead by more than an hour and is ignored; correct it. \
                     It is accepted once the store's clock agrees, after 10 minutes if the \
                     store has none, or after a restart"
                );
            } else {
                tracing::info!("the wall clock is believed again");
            }
        }
        reading
    }

    /// The tick of the effective clock, regardless of its lead.
    pub(crate) fn effective_tick(&self) -> u64 {
        self.scale.tick(self.read().effective)
    }

    /// The tick of the wall clock, as far as it is believed.
    pub(crate) fn wall_tick(&self) -> u64 {
        self.scale.tick(self.read().wall())
    }

    /// Number of slices that begin in a duration.
    pub(crate) fn slices(&self, duration: Duration) -> u64 {
        let millis = UnixMillis(millis(duration));
        Scale {
            epoch: 0,
            ..self.scale
        }
        .slice(millis)
    }

    /// True if a slice has begun, by the effective clock.
    pub(crate) fn has_reached(&self, slice: u64) -> bool {
        self.scale.slice(self.read().effective) >= slice
    }

    /// Time until a slice begins, by the effective clock.
    pub(crate) fn until(&self, slice: u64) -> Duration {
        let begin = self.scale.begin(slice);
        let reading = self.read();
        if reading.lead.is_zero() && !reading.suspect {
            return self.clock.until(begin);
        }
        let left = Duration::from_millis(begin.since(reading.effective).unwrap_or(0));
        // While it leads the wall clock, it runs 10 % slow until the wall clock has caught up, rounded
        // down at each observation. While the wall clock is ignored, it follows the monotonic clock.
        (left + left / 9 + Duration::from_micros(1)).min(left + reading.lead)
    }

    /// Time until a tick begins, from the effective clock's view; for people.
    pub(crate) fn distance(&self, tick: u64) -> Duration {
        let reading = self.read();
        let begin = self.scale.begin(tick << self.scale.slice_bits);
        Duration::from_millis(begin.since(reading.effective).unwrap_or(0))
    }
}

/// Rounds up by how far the wall clock has to advance: it counts whole milliseconds.
fn whole_millis(duration: Duration) -> Duration {
    let nanos = duration.as_nanos().next_multiple_of(1_000_000);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

//! The clock port and the system's clocks. No other code in Vesta reads time or puts a thread to sleep.
//!
//! Uniqueness does not depend on any clock. A clock here may lag slightly, be stepped, or stand
//! still: issued IDs stay unique, only their time field gets less accurate.

mod cycles;
mod effective;
mod pair;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vesta_intf::UnixMillis;

pub(crate) use effective::{EffectiveClock, MAX_LEAD, Reading};
pub use pair::ClockPair;

/// Time source of a generator.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock, accurate to the millisecond. Moments before 1970 read as 0.
    fn wall(&self) -> UnixMillis;

    /// The wall clock in whole seconds since 1970. May lag behind [`wall`](Self::wall) by a few
    /// milliseconds where that is cheaper.
    fn wall_seconds(&self) -> u64 {
        self.wall().0 / 1000
    }

    /// A number that changes when the wall clock advances, and has no other meaning. May lag by a
    /// timer interrupt (1 to 10 ms) where that is cheaper.
    fn wall_coarse(&self) -> u64 {
        self.wall().0
    }

    /// Time until the wall clock reaches `moment`; zero if it has.
    fn until(&self, moment: UnixMillis) -> Duration {
        Duration::from_millis(moment.since(self.wall()).unwrap_or(0))
    }

    /// Time since an arbitrary moment, never stepped; includes the time that the machine is
    /// suspended where the system supports that.
    fn monotonic(&self) -> Duration;

    /// Puts the calling thread to sleep.
    fn park(&self, duration: Duration);

    /// A random number, never 0, that identifies an incarnation, a record or a request. Two equal ones
    /// could merge two owners into one, so only a simulation with reproducible histories may use
    /// another source than the operating system.
    #[doc(hidden)]
    fn random(&self) -> u128 {
        crate::random::u128()
    }
}

/// The machine's own clocks.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl SystemClock {
    /// The machine's own clocks.
    pub const fn new() -> Self {
        Self
    }
}

impl Clock for SystemClock {
    #[inline]
    fn wall(&self) -> UnixMillis {
        cycles::wall()
    }

    #[inline]
    fn wall_seconds(&self) -> u64 {
        coarse_seconds()
    }

    #[inline]
    fn wall_coarse(&self) -> u64 {
        coarse_nanos()
    }

    fn until(&self, moment: UnixMillis) -> Duration {
        Duration::from_millis(moment.0).saturating_sub(since_1970())
    }

    fn monotonic(&self) -> Duration {
        monotonic()
    }

    fn park(&self, duration: Duration) {
        #[allow(
            clippy::disallowed_methods,
            reason = "this is the place where it is allowed"
        )]
        std::thread::sleep(duration);
    }
}

/// The wall clock, read precisely.
fn since_1970() -> Duration {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the place where it is allowed"
    )]
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
}

/// `CLOCK_BOOTTIME`: unlike `CLOCK_MONOTONIC` it advances while the machine is suspended, so that
/// the wall clock of a laptop that slept for hours does not appear to have jumped.
#[cfg(target_os = "linux")]
fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// `CLOCK_MONOTONIC`, which advances during suspension on these systems; the standard library's
/// clock on macOS does not.
#[cfg(all(unix, not(target_os = "linux")))]
fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// `QueryPerformanceCounter`, which includes the time that the machine sleeps.
#[cfg(windows)]
fn monotonic() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the place where it is allowed"
    )]
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// `time(2)`: 2 ns where `clock_gettime` costs 4 to 7 (coarse) or 27 (precise), because the kernel keeps
/// the second ready to read. It lags by at most one timer interrupt (1 to 10 ms).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[inline]
fn coarse_seconds() -> u64 {
    // SAFETY: time(2) with a null pointer only returns the time; it has no other effect and cannot
    // fail. No crate offers it as a safe function.
    #[allow(unsafe_code)]
    let seconds = unsafe { libc::time(std::ptr::null_mut()) };
    seconds.cast_unsigned()
}

/// The coarse clock: musl's `time(2)` reads the precise one, with which an ID would cost 28 ns instead of 5.
#[cfg(all(target_os = "linux", not(target_env = "gnu")))]
#[inline]
fn coarse_seconds() -> u64 {
    coarse().tv_sec.cast_unsigned()
}

#[cfg(not(target_os = "linux"))]
fn coarse_seconds() -> u64 {
    since_1970().as_secs()
}

/// Second and nanosecond in one number: callers only compare them for change.
#[cfg(target_os = "linux")]
#[inline]
fn coarse_nanos() -> u64 {
    let now = coarse();
    // Nanoseconds fit in 30 bits.
    now.tv_sec.cast_unsigned() << 30 | now.tv_nsec.cast_unsigned()
}

/// `CLOCK_REALTIME_COARSE`: the time that the kernel recorded at the last timer interrupt.
#[cfg(target_os = "linux")]
#[inline]
fn coarse() -> rustix::time::Timespec {
    rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse)
}

#[cfg(not(target_os = "linux"))]
fn coarse_nanos() -> u64 {
    crate::number::millis(since_1970())
}

/// A moment of this process, precise to the nanosecond, for measuring pauses that are shorter than any sleep.
pub(crate) fn instant() -> std::time::Instant {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the place where it is allowed"
    )]
    std::time::Instant::now()
}

/// The processor's time-stamp counter: 10 ns where the precise wall clock costs 27.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[inline]
fn cycle_counter() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and only returns a number. It faults only if
    // the kernel forbids it (CR4.TSD), and then the kernel would not use it as its clock source,
    // which `cycles` checks first.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
}

/// No counter is available: `cycles` then never trusts one.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn cycle_counter() -> u64 {
    0
}

/// Precision of the cheap clock reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClockKind {
    /// The time field is accurate to the millisecond. The default.
    #[default]
    Precise,
    /// The time field of a layout of milliseconds may lag by one timer interrupt (1 to 10 ms), and
    /// never leads; an ID then costs half as much. Whether a tick is used up is decided by the precise
    /// clock only. Layouts of whole seconds are always this cheap.
    Coarse,
}

impl ClockKind {
    /// All kinds.
    pub const ALL: [ClockKind; 2] = [Self::Precise, Self::Coarse];

    /// Name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            ClockKind::Precise => "precise",
            ClockKind::Coarse => "coarse",
        }
    }
}

/// The system's clocks, or a custom one.
#[derive(Debug, Clone)]
pub enum AnyClock {
    /// The system's.
    System(SystemClock),
    /// A custom one.
    Other(Arc<dyn Clock>),
}

impl Default for AnyClock {
    fn default() -> Self {
        Self::System(SystemClock::new())
    }
}

/// The cheapest reading that shows whether the time of a layout has advanced.
///
/// The two cheapest readings have a flag each: a `match` over all readings would jump through a table for
/// each ID, and the inlined code of the others would use up the registers.
#[derive(Debug, Clone)]
pub(crate) struct Glance {
    /// Read the second of the system's clock.
    seconds: bool,
    /// Read its coarse time.
    coarse: bool,
    other: Reader,
}

/// Any other reading.
#[derive(Debug, Clone)]
enum Reader {
    Precise,
    Clock(Arc<dyn Clock>, fn(&dyn Clock) -> u64),
}

impl Glance {
    /// Chooses the reading of a clock, for a layout of whole seconds or a finer one.
    pub(crate) fn new(clock: &AnyClock, seconds: bool, kind: ClockKind) -> Self {
        let is_coarse = kind == ClockKind::Coarse;
        match clock {
            AnyClock::System(_) => Self {
                seconds,
                coarse: is_coarse && !seconds,
                other: Reader::Precise,
            },
            AnyClock::Other(clock) => Self {
                seconds: false,
                coarse: false,
                other: Reader::Clock(
                    clock.clone(),
                    match kind {
                        _ if seconds => |clock| clock.wall_seconds(),
                        ClockKind::Coarse => |clock| clock.wall_coarse(),
                        ClockKind::Precise => |clock| clock.wall().0,
                    },
                ),
            },
        }
    }

    /// True if it reads [`seconds`](Self::seconds).
    pub(crate) fn reads_seconds(&self) -> bool {
        self.seconds
    }

    /// True if it reads the [`coarse`](Self::coarse) time.
    pub(crate) fn reads_coarse(&self) -> bool {
        self.coarse
    }

    /// The reading of a glance that reads the second of the system's clock.
    #[inline(always)]
    pub(crate) fn seconds() -> u64 {
        coarse_seconds()
    }

    /// The reading of a glance that reads the system's coarse time.
    #[inline(always)]
    pub(crate) fn coarse() -> u64 {
        coarse_nanos()
    }

    /// A number that changes when the time advances, and has no other meaning.
    #[inline(always)] // on the path of every ID: a call would be measurable
    pub(crate) fn read(&self) -> u64 {
        if self.seconds {
            Self::seconds()
        } else if self.coarse {
            Self::coarse()
        } else {
            crate::hint::unlikely();
            self.read_other()
        }
    }

    #[inline(never)]
    fn read_other(&self) -> u64 {
        match &self.other {
            Reader::Precise => cycles::wall().0,
            Reader::Clock(clock, read) => read(&**clock),
        }
    }
}

impl Deref for AnyClock {
    type Target = dyn Clock;

    fn deref(&self) -> &Self::Target {
        match self {
            AnyClock::System(clock) => clock,
            AnyClock::Other(clock) => &**clock,
        }
    }
}

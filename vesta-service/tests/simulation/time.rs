//! Simulated time: true time, which no service can read, and the hosts' clocks, which differ from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use vesta_service::clock::Clock;
use vesta_service::contract::UnixMillis;
use vesta_testkit::Rng;

pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MILLI;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;
pub(crate) const YEAR: u64 = 365 * DAY;

/// Maximum lag of the coarse clock.
pub(crate) const COARSE_MILLIS: u64 = 4;

/// Maximum of a clock: 64 bits of nanoseconds end in 2554.
const LATEST: u64 = 500 * YEAR;

/// The renewal interval given to services. It is so short that its random ± 10 %, which comes from the operating
/// system, is less than any step of simulated time. The world decides when a keeper runs, jitter included.
pub(crate) const RENEW_EVERY: Duration = Duration::from_micros(1);
/// The time for which a claim watches an expired owner, as requested by the services.
const WATCH: Duration = Duration::from_nanos(1500);
/// The time between two renewals by a waiting call, which requests [`RENEW_EVERY`].
const UNTIL_RENEWAL: u64 = 500 * MILLI;
/// A service that parks more often than this in one history makes no progress.
const MAX_PARKS: u64 = 1_000_000;

/// True time, and a record of it.
#[derive(Debug)]
pub(crate) struct Time {
    start: u64,
    now: AtomicU64,
    hands: Mutex<Vec<Arc<Hands>>>,
    /// The time for which a claim actually watches an expired owner.
    watch: AtomicU64,
    parks: AtomicU64,
    /// The number of random numbers drawn so far.
    draws: AtomicU64,
    trace: Option<Mutex<Vec<String>>>,
}

#[derive(Debug, Default)]
struct Hands {
    wall: AtomicU64,
    monotonic: AtomicU64,
    /// Parts per million by which it runs fast.
    wall_ppm: AtomicI64,
    monotonic_ppm: AtomicI64,
}

impl Time {
    pub(crate) fn starting(at: UnixMillis, traced: bool) -> Arc<Self> {
        Arc::new(Self {
            start: at.0 * MILLI,
            now: AtomicU64::new(at.0 * MILLI),
            hands: Mutex::default(),
            watch: AtomicU64::new(SECOND),
            parks: AtomicU64::new(0),
            draws: AtomicU64::new(0),
            trace: traced.then(Mutex::default),
        })
    }

    /// Nanoseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    pub(crate) fn millis(&self) -> UnixMillis {
        UnixMillis(self.now() / MILLI)
    }

    pub(crate) fn watch_for(&self, nanos: u64) {
        self.watch.store(nanos, Relaxed);
    }

    pub(crate) fn advance(&self, nanos: u64) {
        self.now.fetch_add(nanos, Relaxed);
        for hands in self.hands.lock().iter() {
            let add = |hand: &AtomicU64, ppm: &AtomicI64| {
                let drift = i128::from(nanos) * i128::from(ppm.load(Relaxed)) / 1_000_000;
                let passed = i128::from(nanos) + drift;
                hand.fetch_add(
                    u64::try_from(passed).expect("no clock goes back by itself"),
                    Relaxed,
                );
            };
            add(&hands.wall, &hands.wall_ppm);
            add(&hands.monotonic, &hands.monotonic_ppm);
        }
    }

    /// Writes a line into the trace, if tracing is on.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            let since = self.now() - self.start;
            let (seconds, nanos) = (since / SECOND, since % SECOND);
            trace
                .lock()
                .push(format!("{seconds:>8}.{nanos:09} s  {}", line()));
        }
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.trace
            .as_ref()
            .map(|trace| trace.lock().clone())
            .unwrap_or_default()
    }
}

/// The clock of one host.
#[derive(Debug, Clone)]
pub(crate) struct HostClock {
    time: Arc<Time>,
    hands: Arc<Hands>,
    /// The wall clock shows up to this many milliseconds less, differently at each reading.
    trembles: u64,
    looks: Arc<AtomicU64>,
}

impl HostClock {
    /// A clock that is right.
    pub(crate) fn new(time: &Arc<Time>) -> Self {
        let hands = Arc::new(Hands::default());
        hands.wall.store(time.now(), Relaxed);
        time.hands.lock().push(hands.clone());
        Self {
            time: time.clone(),
            hands,
            trembles: 0,
            looks: Arc::default(),
        }
    }

    pub(crate) fn trembling(self, millis: u64) -> Self {
        Self {
            trembles: millis,
            ..self
        }
    }

    pub(crate) fn step(&self, by: i64) {
        let wall = self.hands.wall.load(Relaxed).saturating_add_signed(by);
        self.hands.wall.store(wall.min(LATEST), Relaxed);
    }

    pub(crate) fn drift(&self, wall_ppm: i64, monotonic_ppm: i64) {
        self.hands.wall_ppm.store(wall_ppm, Relaxed);
        self.hands.monotonic_ppm.store(monotonic_ppm, Relaxed);
    }

    pub(crate) fn drifts(&self) -> bool {
        let drift = |ppm: &AtomicI64| ppm.load(Relaxed) != 0;
        drift(&self.hands.wall_ppm) || drift(&self.hands.monotonic_ppm)
    }

    /// Sets the wall clock right, and ends its drift.
    pub(crate) fn correct(&self) {
        self.hands.wall.store(self.time.now(), Relaxed);
        self.drift(0, 0);
    }

    /// Its distance from true time, in nanoseconds.
    pub(crate) fn error(&self) -> i128 {
        i128::from(self.hands.wall.load(Relaxed)) - i128::from(self.time.now())
    }
}

impl Clock for HostClock {
    fn wall(&self) -> UnixMillis {
        let wall = self.hands.wall.load(Relaxed) / MILLI;
        if self.trembles == 0 {
            return UnixMillis(wall);
        }
        let look = self
            .looks
            .fetch_add(1, Relaxed)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        UnixMillis(wall - (look >> 33) % (self.trembles + 1))
    }

    fn wall_coarse(&self) -> u64 {
        self.hands.wall.load(Relaxed) / (COARSE_MILLIS * MILLI)
    }

    fn until(&self, moment: UnixMillis) -> Duration {
        let wall = self.hands.wall.load(Relaxed);
        Duration::from_nanos(moment.0.saturating_mul(MILLI).saturating_sub(wall))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.hands.monotonic.load(Relaxed))
    }

    /// Time passes for all nodes; the others do nothing meanwhile.
    fn park(&self, duration: Duration) {
        let parks = self.time.parks.fetch_add(1, Relaxed);
        assert!(parks < MAX_PARKS, "it keeps waiting without progress");
        let nanos = if duration == WATCH {
            self.time.watch.load(Relaxed)
        } else if duration <= RENEW_EVERY * 11 / 10 {
            UNTIL_RENEWAL
        } else {
            u64::try_from(duration.as_nanos()).expect("no wait lasts for centuries")
        };
        self.time
            .note(|| format!("        … waits for {:?}", Duration::from_nanos(nanos)));
        // Never zero, and enough even with a slow clock.
        self.time.advance(nanos + nanos / 8 + 1000);
    }

    /// The same numbers in the same history.
    fn random(&self) -> u128 {
        let draw = self.time.draws.fetch_add(1, Relaxed);
        let mut rng = Rng::new(self.time.now() ^ draw.rotate_right(16));
        (u128::from(rng.bits()) << 64 | u128::from(rng.bits())).max(1)
    }
}

//! Service of callers that want more IDs than a machine ID provides: share of the capacity, fairness, waits, and cost.
//!
//! Callers take single IDs as fast as they can. Once a tick is used up they wait for the next tick, or, with pacing,
//! for the next slice. So the rate is that of the layout, and the processor time is the cost of waiting. Each row is
//! run twice: to count IDs and processor time, and again with a clock around each call. Two more measurements follow: a
//! burst at the start of a second, and the floor of waiting, which is threads that only sleep until each tick or slice.
//!
//! `cargo bench -p vesta-service --features async --bench capacity [-- SECONDS [WAY]]` (Linux: reads /proc)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use vesta_service::{Builder, IdError, IdMeta, LayoutSpec, LocalIdService, MachineSource};
use vesta_testkit::figures::Figures;

/// Processor time of all threads of this process so far. A unit of /proc is 10 ms.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit_once(") ").expect("a process name").1;
    let ticks = |n: usize| {
        after_name
            .split(' ')
            .nth(n)
            .and_then(|t| t.parse::<u32>().ok())
    };
    Duration::from_millis(10) * (ticks(11).expect("utime") + ticks(12).expect("stime"))
}

/// A way to configure a service.
type Way = fn(Builder) -> Builder;

const QUESTION: &str = "Callers who want more than a machine ID has";
const NOTHING_SET: &str = "nothing set";

/// Settings that users change for high rates, next to the defaults.
const WAYS: [(&str, Way); 2] = [
    (NOTHING_SET, |builder| builder),
    // The first caller to wake may take a whole second, so waits are long.
    ("without pacing", |builder| {
        builder.pacing(false).max_wait(Duration::from_secs(60))
    }),
];

fn service(layout: IdMeta, way: Way, folder: &tempfile::TempDir) -> Arc<LocalIdService> {
    let builder = LocalIdService::builder()
        .namespace(vesta_testkit::namespace_of(folder.path()))
        .layout(layout)
        .machine(MachineSource::Fixed(1))
        .state_dir(folder.path());
    Arc::new(way(builder).build().expect("a service"))
}

/// A layout in seconds with this many IDs in each.
fn per_second(seq_bits: u8) -> IdMeta {
    let spec = *IdMeta::MAX_PEAK.spec();
    IdMeta::new(LayoutSpec { seq_bits, ..spec }).expect("a layout")
}

/// Callers that block a thread each, or tasks of a runtime.
#[derive(Debug, Clone, Copy)]
enum Callers {
    Threads(usize),
    Tasks(usize),
}

impl fmt::Display for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(count) => write!(f, "callers: {count}"),
            Self::Tasks(count) => write!(f, "async callers: {count}"),
        }
    }
}

/// Runs callers twice, prints and notes the row.
fn row(
    figures: &mut Figures,
    layout: IdMeta,
    (name, way): (&str, Way),
    callers: Callers,
    period: Duration,
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = service(layout, way, &folder);
    let (load, timed) = (
        run(&service, callers, period, false),
        run(&service, callers, period, true),
    );
    let of_capacity = 100.0 * load.ids.iter().sum::<u64>() as f64 / load.capacity;
    let processor = 100.0 * load.cpu.as_secs_f64() / period.as_secs_f64();
    let (least, most) = load.shares();
    let [slow, longest] = [0.001, 0.0].map(|part| millis(timed.slowest(part)));
    let errors = load.errors + timed.errors;
    let layout = match layout.name() {
        "custom" => format!("{} IDs/s", layout.capacity_per_second()),
        name => name.to_owned(),
    };
    let row = format!("{layout}, {name}, {callers}");
    println!(
        "| {row} | {of_capacity:.2} % | {processor:.1} % | {slow:.2} | {longest:.1} | {least:.2} to {most:.2} \
         | {errors} |",
    );
    for (question, figure) in [
        ("% of the capacity", of_capacity),
        ("processor, % of a core", processor),
        ("longest wait, ms", longest),
        ("least of a caller, of its fair share", least),
        ("most of a caller", most),
        ("errors", errors as f64),
    ] {
        figures.note(&format!("{QUESTION}: {question}"), &row, figure);
    }
}

fn main() {
    let (arguments, mut figures) = Figures::from_arguments();
    let seconds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(20);
    let period = Duration::from_secs(seconds);
    let only = arguments
        .iter()
        .find(|argument| argument.parse::<u64>().is_err());
    let is_wanted = |name: &str| only.is_none_or(|only| name.contains(only));
    println!(
        "| layout, settings, callers | of the capacity | processor (of one core) | p99.9 of a call, ms | longest, ms \
         | least and most of a caller, of its fair share | errors |"
    );
    println!("|---|---|---|---|---|---|---|");
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        for way in WAYS.into_iter().filter(|(name, _)| is_wanted(name)) {
            for callers in [1, 8] {
                row(&mut figures, layout, way, Callers::Threads(callers), period);
            }
        }
    }
    // Many callers, also of layouts in which each of them waits for a second.
    for layout in [
        per_second(6),
        per_second(8),
        per_second(14),
        IdMeta::MAX_PEAK,
    ] {
        for callers in [Callers::Threads(64), Callers::Tasks(64)] {
            if is_wanted("many") {
                row(&mut figures, layout, WAYS[0], callers, period / 2);
            }
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = service(IdMeta::MAX_PEAK, WAYS[0].1, &folder);
    let bursts = (0..5).map(|_| {
        sleep_until_a_second_begins(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        let begin = Instant::now();
        (0..100_000).for_each(|_| assert!(service.gen_id().is_ok()));
        millis(begin.elapsed())
    });
    let mut bursts: Vec<_> = bursts.collect();
    bursts.sort_by(f64::total_cmp);
    println!(
        "\n100,000 IDs one by one when a second begins: {:.1} ms (median of 5)",
        bursts[2]
    );
    figures.note(
        "A burst: 100,000 IDs one by one when a second begins, ms",
        NOTHING_SET,
        bursts[2],
    );
    println!(
        "\n| threads that only sleep until each | threads | processor (of one core) |\n|---|---|---|"
    );
    for millis in [4, 1] {
        let used = sleeping(8, Duration::from_millis(millis), period);
        let share = 100.0 * used.as_secs_f64() / period.as_secs_f64();
        println!("| {millis} ms | 8 | {share:.1} % |");
        let row = format!("8 threads that only sleep until each {millis} ms");
        figures.note(&format!("{QUESTION}: processor, % of a core"), &row, share);
    }
    figures.write();
}

/// Processor time of threads that wake up at every multiple of `tick` and then do nothing.
fn sleeping(threads: usize, tick: Duration, period: Duration) -> Duration {
    let before = cpu();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(left) = period.checked_sub(start.elapsed()) {
                    let into_tick = start.elapsed().as_nanos() % tick.as_nanos();
                    let rest = tick - Duration::from_nanos(into_tick as u64);
                    std::thread::sleep(rest.min(left));
                }
            });
        }
    });
    cpu() - before
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Outcome of one run of callers.
#[derive(Default)]
struct Seen {
    /// IDs of each caller.
    ids: Vec<u64>,
    calls: usize,
    errors: u64,
    /// Durations of the calls that waited, longest first, if they were measured.
    waits: Vec<Duration>,
    cpu: Duration,
    capacity: f64,
}

impl Seen {
    /// Duration of the fastest call in this share of the slowest calls.
    fn slowest(&self, share: f64) -> Duration {
        let place = (self.calls as f64 * share) as usize;
        self.waits.get(place).copied().unwrap_or_default()
    }

    /// IDs of the caller that got the least, and of the one that got the most, as parts of a fair share.
    fn shares(&self) -> (f64, f64) {
        let fair = self.ids.iter().sum::<u64>().max(1) as f64 / self.ids.len() as f64;
        let least = self.ids.iter().min().expect("a caller");
        let most = self.ids.iter().max().expect("a caller");
        (*least as f64 / fair, *most as f64 / fair)
    }
}

/// Phases of a run: its IDs count once every caller has had to wait.
const WARM: u8 = 0;
const COUNTS: u8 = 1;
const STOP: u8 = 2;

/// Calls of one caller. With `timed`, the clock is read after each.
struct Caller<'a> {
    phase: &'a AtomicU8,
    timed: bool,
    before: Instant,
    ids: u64,
    errors: u64,
    waits: Vec<Duration>,
}

impl<'a> Caller<'a> {
    fn new(phase: &'a AtomicU8, timed: bool) -> Self {
        Self {
            phase,
            timed,
            before: Instant::now(),
            ids: 0,
            errors: 0,
            waits: Vec::new(),
        }
    }

    /// Notes the end of a call; `false` once it is time to stop.
    fn goes_on(&mut self, result: Result<u64, IdError>) -> bool {
        /// Longer than any call without a wait.
        const WAITED: Duration = Duration::from_micros(20);
        let phase = self.phase.load(Ordering::Relaxed);
        let counts = u64::from(phase == COUNTS);
        match result {
            Ok(_) => self.ids += counts,
            Err(_) => self.errors += counts,
        }
        if self.timed {
            let now = Instant::now();
            let took = now - std::mem::replace(&mut self.before, now);
            let waited = Some(took).filter(|took| counts == 1 && *took > WAITED);
            self.waits.extend(waited);
        }
        phase != STOP
    }
}

/// Lets callers take IDs for whole seconds, from just before a second begins, when they have all that the second
/// before had, until just before another one.
fn run(service: &Arc<LocalIdService>, callers: Callers, period: Duration, timed: bool) -> Seen {
    /// More than any clock lags.
    const BEFORE: Duration = Duration::from_millis(30);
    let phase = Arc::new(AtomicU8::new(WARM));
    sleep_until_a_second_begins(Duration::ZERO);
    let measure = || {
        std::thread::sleep(Duration::from_secs(1));
        sleep_until_a_second_begins(BEFORE);
        let before = cpu();
        phase.store(COUNTS, Ordering::Relaxed);
        std::thread::sleep(period);
        phase.store(STOP, Ordering::Relaxed);
        cpu() - before
    };
    let (cpu, all): (Duration, Vec<(u64, u64, Vec<Duration>)>) = match callers {
        Callers::Threads(count) => std::thread::scope(|scope| {
            let one = || {
                let mut caller = Caller::new(&phase, timed);
                while caller.goes_on(service.gen_id()) {}
                (caller.ids, caller.errors, caller.waits)
            };
            let workers: Vec<_> = (0..count).map(|_| scope.spawn(one)).collect();
            let cpu = measure();
            let joined = workers.into_iter().map(|it| it.join().expect("no panic"));
            (cpu, joined.collect())
        }),
        Callers::Tasks(count) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().build();
            let runtime = runtime.expect("a runtime");
            let one = |service: Arc<LocalIdService>, phase: Arc<AtomicU8>| async move {
                let mut caller = Caller::new(&phase, timed);
                while caller.goes_on(service.gen_id_async().await) {}
                (caller.ids, caller.errors, caller.waits)
            };
            let tasks: Vec<_> = (0..count)
                .map(|_| runtime.spawn(one(service.clone(), phase.clone())))
                .collect();
            let cpu = measure();
            let joined = tasks
                .into_iter()
                .map(|it| runtime.block_on(it).expect("no panic"));
            (cpu, joined.collect())
        }
    };
    let per_second = service.meta().capacity_per_second() as f64;
    let mut seen = Seen {
        capacity: per_second * period.as_secs_f64(),
        cpu,
        ..Seen::default()
    };
    for (ids, errors, waits) in all {
        seen.calls += (ids + errors) as usize;
        seen.ids.push(ids);
        seen.errors += errors;
        seen.waits.extend(waits);
    }
    seen.waits.sort_by(|one, other| other.cmp(one));
    seen
}

/// Sleeps until so long before a second begins.
fn sleep_until_a_second_begins(before: Duration) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = now.map_or(Duration::ZERO, |since| since + before);
    let into_second = Duration::from_nanos(since.subsec_nanos().into());
    std::thread::sleep(Duration::from_secs(1) - into_second);
}

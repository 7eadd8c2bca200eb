//! Service of callers that want more IDs than a machine ID provides: share of the capacity, fairness, waits, and cost.
//!
//! Callers take single IDs as fast as they can. Once a tick is used up they wait for the next tick, or, with pacing,
//! for the next slice. So the rate is that of the layout, and the processor time is the cost of waiting. Each row is
//! run twice: to count IDs and processor time, and again with a clock around each call. Two more measurements follow: a
//! burst at the start of a second, and the floor of waiting, which is threads that only sleep until each tick or slice.
//!
//! `cargo bench -p vesta-service --bench capacity [-- SECONDS [WAY]]` (Linux: reads /proc)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vesta_service::{Builder, IdMeta, LocalIdService, MachineSource};
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

fn service(layout: IdMeta, way: Way, folder: &tempfile::TempDir) -> LocalIdService {
    let builder = LocalIdService::builder()
        .namespace(vesta_testkit::namespace_of(folder.path()))
        .layout(layout)
        .machine(MachineSource::Fixed(1))
        .state_dir(folder.path());
    way(builder).build().expect("a service")
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
        "| layout | settings | callers | of the capacity | processor (of one core) | p99.9 of a call, ms \
         | longest, ms | least and most of a caller, of its fair share | errors |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        for (name, way) in WAYS.into_iter().filter(|(name, _)| is_wanted(name)) {
            for callers in [1, 8] {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let service = service(layout, way, &folder);
                let load = load(&service, callers, period);
                let waits = waits(&service, callers, period);
                let ids: u64 = load.ids.iter().sum();
                let of_capacity = 100.0 * ids as f64 / load.capacity;
                let processor = 100.0 * load.cpu.as_secs_f64() / period.as_secs_f64();
                let share = |of: Option<&u64>| {
                    *of.expect("a caller") as f64 * callers as f64 / ids.max(1) as f64
                };
                let (least, most) = (share(load.ids.iter().min()), share(load.ids.iter().max()));
                let [slow, longest] = [0.001, 0.0].map(|part| millis(waits.share(part)));
                let errors = load.errors + waits.errors;
                println!(
                    "| {} | {name} | {callers} | {of_capacity:.2} % | {processor:.1} % | {slow:.2} \
                     | {longest:.1} | {least:.2} to {most:.2} | {errors} |",
                    layout.name(),
                );
                let row = format!("{}, {name}, callers: {callers}", layout.name());
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
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = service(IdMeta::MAX_PEAK, WAYS[0].1, &folder);
    let bursts = (0..5).map(|_| {
        sleep_until_a_second_begins(Duration::from_millis(1));
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

/// Durations of the calls that waited, and the number of all calls.
#[derive(Default)]
struct Waits {
    calls: usize,
    errors: u64,
    longest_first: Vec<Duration>,
}

impl Waits {
    /// Duration of the fastest call in this share of the slowest calls.
    fn share(&self, share: f64) -> Duration {
        let place = (self.calls as f64 * share) as usize;
        self.longest_first.get(place).copied().unwrap_or_default()
    }
}

/// Duration of each call that took longer than any call without a wait.
fn waits(service: &LocalIdService, callers: usize, period: Duration) -> Waits {
    const WAITED: Duration = Duration::from_micros(20);
    let stop = AtomicBool::new(false);
    let mut all = Waits::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..callers)
            .map(|_| {
                scope.spawn(|| {
                    let (mut calls, mut errors, mut waits) = (0, 0, Vec::new());
                    let mut before = Instant::now();
                    while !stop.load(Ordering::Relaxed) {
                        errors += u64::from(service.gen_id().is_err());
                        let now = Instant::now();
                        calls += 1;
                        waits.extend(Some(now - before).filter(|took| *took > WAITED));
                        before = now;
                    }
                    (calls, errors, waits)
                })
            })
            .collect();
        std::thread::sleep(period);
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            let (calls, errors, waits) = worker.join().expect("no panic");
            all.calls += calls;
            all.errors += errors;
            all.longest_first.extend(waits);
        }
    });
    all.longest_first.sort_by(|one, other| other.cmp(one));
    all
}

/// IDs of each caller, and the IDs that the capacity allowed.
struct Load {
    ids: Vec<u64>,
    errors: u64,
    capacity: f64,
    cpu: Duration,
}

/// Sleeps until a second begins, plus `and`.
fn sleep_until_a_second_begins(and: Duration) {
    let into_second = Duration::from_nanos(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos().into()),
    );
    std::thread::sleep(Duration::from_secs(1).saturating_sub(into_second) + and);
}

/// Lets callers take IDs for whole seconds, so that a partial tick does not distort the count: from
/// just after a second begins, when even lagging clocks show it, until just before another ends.
fn load(service: &LocalIdService, callers: usize, period: Duration) -> Load {
    const MARGIN: Duration = Duration::from_millis(30);
    let stop = AtomicBool::new(false);
    sleep_until_a_second_begins(MARGIN);
    let (start, cpu_before) = (Instant::now(), cpu());
    let taken: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..callers)
            .map(|_| {
                scope.spawn(|| {
                    let (mut taken, mut errors) = (0, 0);
                    while !stop.load(Ordering::Relaxed) {
                        match service.gen_id() {
                            Ok(_) => taken += 1,
                            Err(_) => errors += 1,
                        }
                    }
                    (taken, errors)
                })
            })
            .collect();
        std::thread::sleep((period - 2 * MARGIN).saturating_sub(start.elapsed()));
        stop.store(true, Ordering::Relaxed);
        let counts = workers.into_iter().map(|it| it.join().expect("no panic"));
        counts.collect()
    });
    // With a layout of seconds, all of each second counts, except, with pacing, what the end of the last one
    // has; with the other layout, the margins are excluded.
    let margins = match service.meta().spec().unit {
        vesta_intf::TimeUnit::Second => MARGIN.mul_f64(7.0 / 8.0),
        _ => 2 * MARGIN,
    };
    let per_second = service.meta().capacity_per_second() as f64;
    Load {
        ids: taken.iter().map(|(ids, _)| *ids).collect(),
        errors: taken.iter().map(|(_, errors)| *errors).sum(),
        capacity: per_second * (period - margins).as_secs_f64(),
        cpu: cpu() - cpu_before,
    }
}

//! Does one machine ID reach its layout's capacity, do four reach four times as much, and what does
//! the waiting cost: the processor, and the callers?
//!
//! Callers take single IDs as fast as they can. What is used up makes them wait for the next tick, or
//! with pacing for the next slice, so the rate is the layout's and the processor time is the price of
//! waiting. Each row is run twice: to count IDs and processor time, and again with a clock around each
//! call. Then the floor: threads that do nothing but sleep until each tick or slice. The last line is a
//! service that nobody calls: only the keeper's renewal wakes the process.
//!
//! `cargo bench -p vesta-service --bench capacity [-- SECONDS [WAY]]` (Linux: reads /proc)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vesta_service::clock::ClockKind;
use vesta_service::options::PopulatorKind;
use vesta_service::testing::MemoryStore;
use vesta_service::{IdMeta, LocalIdService, MachineSource};

/// The processor time of this process so far, of all its threads. A unit of /proc is 10 ms.
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

/// Voluntary context switches of this process.
fn sleeps() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .filter_map(|status| {
            let line = status
                .lines()
                .find(|line| line.starts_with("voluntary_ctxt_switches"))?;
            line.split_ascii_whitespace().last()?.parse::<u64>().ok()
        })
        .sum()
}

/// A way to set a service up.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    populator: PopulatorKind,
    clock: ClockKind,
    pacing: bool,
    borrowed: Duration,
    machines: usize,
}

const WAYS: [Way; 12] = {
    use PopulatorKind::{Atomic, Local, Lock, Sync};
    const fn way(
        name: &'static str,
        populator: PopulatorKind,
        pacing: bool,
        machines: usize,
    ) -> Way {
        Way {
            name,
            populator,
            clock: ClockKind::Precise,
            pacing,
            borrowed: Duration::ZERO,
            machines,
        }
    }
    const BORROWED: Duration = Duration::from_millis(8);
    [
        way("atomic", Atomic, false, 1),
        way("lock", Lock, false, 1),
        way("sync", Sync, false, 1),
        way("local", Local, false, 1),
        way("atomic, pacing", Atomic, true, 1),
        Way {
            clock: ClockKind::Coarse,
            ..way("atomic, pacing, coarse", Atomic, true, 1)
        },
        way("local, pacing", Local, true, 1),
        Way {
            borrowed: BORROWED,
            ..way("atomic, pacing, 8 ms borrowed", Atomic, true, 1)
        },
        Way {
            clock: ClockKind::Coarse,
            borrowed: BORROWED,
            ..way("atomic, pacing, coarse, 8 ms borrowed", Atomic, true, 1)
        },
        Way {
            clock: ClockKind::Coarse,
            borrowed: BORROWED,
            ..way("local, pacing, coarse, 8 ms borrowed", Local, true, 1)
        },
        way("atomic", Atomic, false, 4),
        way("atomic, pacing", Atomic, true, 4),
    ]
};

fn service(layout: IdMeta, way: Way, folder: &tempfile::TempDir) -> LocalIdService {
    let source = match way.machines {
        1 => MachineSource::Fixed(1),
        _ => MachineSource::Pool {
            store: Arc::new(MemoryStore::new()),
            range: None,
        },
    };
    LocalIdService::builder()
        .namespace(vesta_testkit::namespace_of(folder.path()))
        .layout(layout)
        .populator(way.populator)
        .clock_kind(way.clock)
        .pacing(way.pacing)
        .borrow_ahead(way.borrowed)
        .machine(source)
        .machine_count(way.machines)
        .state_dir(folder.path())
        // Callers that never stop are served unevenly without pacing: who wakes first may empty a whole
        // second.
        .max_wait(Duration::from_secs(60))
        .build()
        .expect("a service")
}

fn main() {
    let seconds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10);
    let period = Duration::from_secs(seconds);
    let only = std::env::args()
        .skip(1)
        .find(|argument| argument.parse::<u64>().is_err() && !argument.starts_with('-'));
    let is_wanted = |way: &Way| only.as_ref().is_none_or(|only| way.name.contains(only));
    println!(
        "| layout | populator | machine IDs | callers | IDs/s | of capacity | processor (of one core) \
         | p99.9 of a call, ms | longest, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let tick = Duration::from_millis(layout.spec().unit.millis());
        let fits = |way: &Way| way.borrowed.is_zero() || tick <= way.borrowed;
        for way in WAYS.into_iter().filter(|way| fits(way) && is_wanted(way)) {
            for callers in [1, 8] {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let service = service(layout, way, &folder);
                let (ids, took, used) = load(&service, way.pacing, callers, period);
                let waits = waits(&service, callers, period);
                let rate = ids as f64 / took.as_secs_f64();
                let capacity = layout.capacity_per_second() as f64 * way.machines as f64;
                println!(
                    "| {} | {} | {} | {callers} | {rate:.0} | {:.2} % | {:.1} % | {:.2} | {:.1} |",
                    layout.name(),
                    way.name,
                    way.machines,
                    100.0 * rate / capacity,
                    100.0 * used.as_secs_f64() / took.as_secs_f64(),
                    millis(waits.share(0.001)),
                    millis(waits.share(0.0)),
                );
            }
        }
    }
    println!(
        "\n| threads that only sleep until each | threads | processor (of one core) |\n|---|---|---|"
    );
    for millis in [4, 1] {
        for threads in [1, 8] {
            let used = sleeping(threads, Duration::from_millis(millis), period);
            let share = 100.0 * used.as_secs_f64() / period.as_secs_f64();
            println!("| {millis} ms | {threads} | {share:.1} % |");
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = service(IdMeta::MAX_PEAK, WAYS[0], &folder);
    service.gen_id().expect("an ID");
    let (cpu_before, sleeps_before) = (cpu(), sleeps());
    std::thread::sleep(period);
    println!(
        "\nidle for {seconds} s: {} ms of processor, {:.1} wake-ups a second (one is this program's), \
         renewals {}",
        (cpu() - cpu_before).as_millis(),
        (sleeps() - sleeps_before) as f64 / period.as_secs_f64(),
        service.status().renewals_ok,
    );
}

/// The processor time of threads that wake up at every multiple of `tick`, and do nothing then.
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

/// Durations of the calls that waited, and the number of all.
#[derive(Default)]
struct Waits {
    calls: usize,
    longest_first: Vec<Duration>,
}

impl Waits {
    /// So long took the fastest of that share of calls that took longest.
    fn share(&self, share: f64) -> Duration {
        let place = (self.calls as f64 * share) as usize;
        self.longest_first.get(place).copied().unwrap_or_default()
    }
}

/// The time of each call that took longer than any that does not wait.
fn waits(service: &LocalIdService, callers: usize, period: Duration) -> Waits {
    const WAITED: Duration = Duration::from_micros(20);
    let stop = AtomicBool::new(false);
    let mut all = Waits::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..callers)
            .map(|_| {
                scope.spawn(|| {
                    let (mut calls, mut waits) = (0, Vec::new());
                    let mut before = Instant::now();
                    while !stop.load(Ordering::Relaxed) {
                        service.gen_id().expect("an ID");
                        let now = Instant::now();
                        calls += 1;
                        waits.extend(Some(now - before).filter(|took| *took > WAITED));
                        before = now;
                    }
                    (calls, waits)
                })
            })
            .collect();
        std::thread::sleep(period);
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            let (calls, waits) = worker.join().expect("no panic");
            all.calls += calls;
            all.longest_first.extend(waits);
        }
    });
    all.longest_first.sort_by(|one, other| other.cmp(one));
    all
}

/// Lets callers take IDs for whole seconds, so that the count is not distorted by a part of a tick:
/// from a moment after one begins, when even the laggard clocks show it, to one before another ends.
fn load(
    service: &LocalIdService,
    pacing: bool,
    callers: usize,
    period: Duration,
) -> (u64, Duration, Duration) {
    const MARGIN: Duration = Duration::from_millis(30);
    let stop = AtomicBool::new(false);
    let into_second = Duration::from_nanos(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos().into()),
    );
    std::thread::sleep(Duration::from_secs(1).saturating_sub(into_second) + MARGIN);
    let (start, cpu_before) = (Instant::now(), cpu());
    let ids = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..callers)
            .map(|_| {
                scope.spawn(|| {
                    let mut taken = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        service.gen_id().expect("an ID");
                        taken += 1;
                    }
                    taken
                })
            })
            .collect();
        std::thread::sleep((period - 2 * MARGIN).saturating_sub(start.elapsed()));
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .sum()
    });
    // Of a layout of seconds everything of each second was taken, but with pacing what its end has;
    // of the other one not the margins.
    let took = match service.meta().spec().unit {
        vesta_intf::TimeUnit::Second if pacing => period - MARGIN,
        vesta_intf::TimeUnit::Second => period,
        _ => period - 2 * MARGIN,
    };
    (ids, took, cpu() - cpu_before)
}

//! Does one machine ID reach its layout's capacity, do four reach four times as much, and what does
//! the waiting cost?
//!
//! Callers take single IDs as fast as they can. What is used up makes them wait for the next tick, so
//! the rate is the layout's and the processor time is the price of waiting. The last rows are a
//! service that nobody calls: only the keeper's renewal wakes the process.
//!
//! `cargo bench -p vesta-service --bench capacity [-- SECONDS]` (Linux: reads /proc)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vesta_service::{IdMeta, IdService, LocalIdService, MachineSource, MemoryStore, PopulatorKind};

/// The processor time of this process so far, of all its threads. A unit of /proc is 10 ms.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit_once(") ").expect("a process name").1;
    let ticks = |n: usize| after_name.split(' ').nth(n).and_then(|t| t.parse::<u32>().ok());
    Duration::from_millis(10) * (ticks(11).expect("utime") + ticks(12).expect("stime"))
}

/// Voluntary context switches of this process.
fn sleeps() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .filter_map(|status| {
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
            line.split_ascii_whitespace().last()?.parse::<u64>().ok()
        })
        .sum()
}

fn service(
    layout: IdMeta,
    populator: PopulatorKind,
    machines: usize,
    folder: &tempfile::TempDir,
) -> LocalIdService {
    let source = match machines {
        1 => MachineSource::Fixed(1),
        _ => MachineSource::Pool { store: Arc::new(MemoryStore::new()), range: None },
    };
    LocalIdService::builder()
        .layout(layout)
        .populator(populator)
        .machine(source)
        .machine_count(machines)
        .state_dir(folder.path())
        // Callers that never stop are served unevenly: who wakes first may empty a whole second.
        .max_wait(Duration::from_secs(60))
        .build()
        .expect("a service")
}

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10);
    let period = Duration::from_secs(seconds);
    println!(
        "| layout | populator | machine IDs | callers | IDs/s | of capacity | processor (of one core) |"
    );
    println!("|---|---|---|---|---|---|---|");
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let of_one = PopulatorKind::ALL.map(|populator| (populator, 1));
        let of_four = [PopulatorKind::Lock, PopulatorKind::Atomic].map(|populator| (populator, 4));
        for (populator, machines) in of_one.into_iter().chain(of_four) {
            for callers in [1, 8] {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let service = service(layout, populator, machines, &folder);
                let (ids, took, used) = load(&service, callers, period);
                let rate = ids as f64 / took.as_secs_f64();
                let capacity = layout.capacity_per_second() as f64 * machines as f64;
                println!(
                    "| {} | {} | {machines} | {callers} | {rate:.0} | {:.2} % | {:.1} % |",
                    layout.name(),
                    populator.name(),
                    100.0 * rate / capacity,
                    100.0 * used.as_secs_f64() / took.as_secs_f64(),
                );
            }
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = service(IdMeta::MAX_PEAK, PopulatorKind::Lock, 1, &folder);
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

/// Lets callers take IDs for whole seconds, so that the count is not distorted by a part of a tick:
/// from a moment after one begins, when even the laggard clocks show it, to one before another ends.
fn load(service: &LocalIdService, callers: usize, period: Duration) -> (u64, Duration, Duration) {
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
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    // Of a layout of seconds everything of each second was taken; of the other one not the margins.
    let took = match service.meta().spec().unit {
        vesta_intf::TimeUnit::Second => period,
        _ => period - 2 * MARGIN,
    };
    (ids, took, cpu() - cpu_before)
}

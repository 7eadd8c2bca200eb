//! Times of calls that take nanoseconds, on a machine that is also busy with other work.
//!
//! Each thread is pinned to a core and measured in slices of a fraction of a millisecond. A slice in which the
//! scheduler took the core away from any of them does not count. So other programs make a measurement longer but
//! not worse. The machine itself remains an influence: frequency, caches, the neighbours of a virtual one.

use std::fs::File;
use std::hint::{black_box, spin_loop};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Short enough to fit between two turns of the scheduler.
const SLICE: Duration = Duration::from_micros(400);
/// The median of this many successive slices counts.
const WANTED: usize = 7;
/// Maximum slices: on a busy machine, the result is taken from those.
const MOST: usize = 200;

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// The cores that this process may use.
#[must_use]
pub fn cores() -> Vec<usize> {
    let all = sched_getaffinity(None).expect("the cores of this process");
    let cores = 0..CpuSet::MAX_CPU;
    cores.filter(|core| all.is_set(*core)).collect()
}

/// Pins the calling thread to a core.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("a core of this process");
}

/// How often the calling thread gave up its core, and how long it waited for one.
struct Disturbances(File);

impl Disturbances {
    fn new() -> Self {
        Self(File::open("/proc/thread-self/schedstat").expect("statistics of the scheduler"))
    }

    /// Time spent waiting and number of turns, as text: it is only compared.
    fn read(&self) -> Vec<u8> {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0).expect("it can be read");
        let text = &text[..length];
        let running = text.iter().position(|byte| *byte == b' ');
        text[running.unwrap_or(0)..].to_vec()
    }
}

/// Does work on this core, from now on the calling thread's. `true` if no other program disturbed it.
pub fn on<T>(core: usize, work: impl FnOnce() -> T) -> (T, bool) {
    pin(core);
    let disturbances = Disturbances::new();
    let before = disturbances.read();
    let done = work();
    (done, disturbances.read() == before)
}

/// Measurements of a thread in one slice.
#[derive(Clone, Copy)]
struct Part {
    calls: u64,
    begin: Instant,
    took: Duration,
    disturbed: bool,
}

/// Work between two calls that uses no memory, of about this many nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    steps: u64,
    /// Its duration, including the loop around it.
    pub nanos: f64,
}

impl Work {
    /// No work.
    pub const NONE: Self = Self {
        steps: 0,
        nanos: 0.0,
    };

    /// Work calibrated now.
    #[must_use]
    pub fn of(nanos: u32) -> Self {
        if nanos == 0 {
            return Self::NONE;
        }
        let time = |steps| {
            let work = Self { steps, nanos: 0.0 };
            per_call(1, work, &|| 0)[0]
        };
        let (few, many) = (time(100), time(1100));
        let steps = (f64::from(nanos) / ((many - few) / 1000.0)) as u64;
        let nanos = time(steps);
        Self { steps, nanos }
    }

    #[inline(always)]
    fn perform(self, mut seed: u64) {
        for _ in 0..self.steps {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
        }
        black_box(seed);
    }
}

/// A barrier for running threads: the last to arrive releases the others at once.
struct Start {
    arrived: AtomicUsize,
    threads: usize,
}

impl Start {
    fn wait(&self, turn: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0_u32;
        while self.arrived.load(Ordering::Acquire) < turn * self.threads {
            spins += 1;
            if spins.is_multiple_of(1000) {
                std::thread::yield_now(); // the other thread may need this core to arrive
            }
            spin_loop();
        }
    }
}

/// Nanoseconds of wall time per call of a thread, in some undisturbed slices: at least one.
fn per_call(threads: usize, work: Work, next: &(impl Fn() -> u64 + Sync)) -> Vec<f64> {
    let cores = cores();
    let enough_cores = threads <= cores.len();
    // The number of calls between two clock readings takes some microseconds.
    let block = if work.steps == 0 { 1000 } else { 100 };
    let start = Start {
        arrived: AtomicUsize::new(0),
        threads,
    };
    let stop = AtomicBool::new(false);
    let slices = std::sync::Mutex::new(Vec::<Vec<Part>>::new());
    let one = |number: usize| {
        pin(cores[number % cores.len()]);
        let disturbances = Disturbances::new();
        for turn in 1.. {
            // Two barriers: the first thread decides between them whether to stop.
            start.wait(2 * turn - 1);
            if number == 0 {
                let slices = slices.lock().expect("no panic");
                let good = slices.iter().filter(|slice| is_good(slice)).count();
                let enough = if enough_cores { good } else { slices.len() } >= WANTED;
                stop.store(enough || slices.len() >= MOST, Ordering::Release);
            }
            let before = disturbances.read();
            start.wait(2 * turn);
            if stop.load(Ordering::Acquire) {
                break;
            }
            let begin = now();
            let mut calls = 0;
            let length = if enough_cores { SLICE } else { 40 * SLICE };
            let took = loop {
                if work.steps == 0 {
                    call(block, next);
                } else {
                    call_and_work(block, work, next);
                }
                calls += block;
                let took = begin.elapsed();
                if took >= length {
                    break took;
                }
            };
            let disturbed = disturbances.read() != before;
            let part = Part {
                calls,
                begin,
                took,
                disturbed,
            };
            let mut slices = slices.lock().expect("no panic");
            if slices.len() < turn {
                slices.push(Vec::new());
            }
            slices[turn - 1].push(part);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..threads {
            let one = &one;
            scope.spawn(move || one(number));
        }
    });
    let slices = slices.into_inner().expect("no panic");
    let good: Vec<_> = slices.iter().filter(|slice| is_good(slice)).collect();
    let counted = if good.is_empty() || !enough_cores {
        slices.iter().collect()
    } else {
        good
    };
    counted.into_iter().map(|slice| cost(slice)).collect()
}

/// Not inlined, so that the measured code gets all registers. The compiler splits a loop with optional work only if
/// the call is small, and large calls would look more expensive.
#[inline(never)]
fn call(calls: u64, next: &impl Fn() -> u64) {
    for _ in 0..calls {
        black_box(next());
    }
}

#[inline(never)]
fn call_and_work(calls: u64, work: Work, next: &impl Fn() -> u64) {
    for _ in 0..calls {
        work.perform(next());
    }
}

fn is_good(slice: &[Part]) -> bool {
    slice.iter().all(|part| !part.disturbed)
}

/// Wall time of a call of one of the threads.
fn cost(slice: &[Part]) -> f64 {
    let begin = slice.iter().map(|part| part.begin).min();
    let end = slice.iter().map(|part| part.begin + part.took).max();
    let took = begin
        .zip(end)
        .map_or(Duration::ZERO, |(begin, end)| end - begin);
    let calls = slice.iter().map(|part| part.calls).sum::<u64>();
    slice.len() as f64 * took.as_nanos() as f64 / calls as f64
}

/// Nanoseconds per call of one of several threads, without the work between calls: the median of a few
/// slices. Divide by the number of threads for the machine's time per ID.
#[must_use]
pub fn measure(threads: usize, work: Work, next: impl Fn() -> u64 + Sync) -> f64 {
    median(&per_call(threads, work, &next)) - work.nanos
}

/// The latency that only one call in a thousand exceeds, in nanoseconds, with two or more threads that work between
/// calls. `stamp` is the machine's cheapest counter.
#[must_use]
pub fn one_in_a_thousand(
    threads: usize,
    work: Work,
    stamp: impl Fn() -> u64 + Sync,
    next: impl Fn() -> u64 + Sync,
) -> f64 {
    const CALLS: usize = 5_000; // some hundred microseconds
    let cores = cores();
    let start = Start {
        arrived: AtomicUsize::new(0),
        threads,
    };
    let one = |number: usize| {
        pin(cores[number % cores.len()]);
        let disturbances = Disturbances::new();
        let mut good = Vec::new();
        let mut took = vec![0; CALLS];
        for turn in 1..=MOST {
            let before = disturbances.read();
            start.wait(turn);
            for took in &mut took {
                let before = stamp();
                let id = black_box(next());
                *took = stamp().wrapping_sub(before);
                work.perform(id);
            }
            if disturbances.read() == before {
                good.extend_from_slice(&took);
            }
        }
        good
    };
    let per_nano = per_nano(&stamp);
    let nothing = (0..1000).map(|_| {
        let before = stamp();
        stamp().wrapping_sub(before)
    });
    let nothing = nothing.min().unwrap_or(0);
    let mut all = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || one(number)))
            .collect();
        let all = threads
            .into_iter()
            .flat_map(|it| it.join().expect("no panic"));
        all.collect::<Vec<_>>()
    });
    all.sort_unstable();
    let slow = all.get(all.len() * 999 / 1000).copied().unwrap_or(0);
    slow.saturating_sub(nothing) as f64 / per_nano
}

/// Counts of a counter per nanosecond.
fn per_nano(stamp: &impl Fn() -> u64) -> f64 {
    let (begin, first) = (now(), stamp());
    while begin.elapsed() < 25 * SLICE {
        spin_loop();
    }
    stamp().wrapping_sub(first) as f64 / begin.elapsed().as_nanos() as f64
}

/// The median.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median of the ratios of each round.
#[must_use]
pub fn ratio(of: &[f64], to: &[f64]) -> f64 {
    let ratios = of.iter().zip(to).map(|(of, to)| of / to);
    median(&ratios.collect::<Vec<_>>())
}

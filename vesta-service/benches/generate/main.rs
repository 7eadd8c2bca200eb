//! Cost of an ID inside the process, next to the cost of the machine's own steps and to the fastest other generator.
//!
//! Layouts called *roomy* have so many sequence numbers per tick that the benchmark measures the generator and
//! not the wait for the next tick. The bound is real: a state file that a keeper renews. Every row is measured
//! once in each round, in slices that no other program disturbed; a ratio is the median of the ratios within
//! rounds. The code is compiled as an embedding program compiles it by default: without link-time optimisation.
//!
//! `cargo bench -p vesta-service --features async --bench generate [-- ROUNDS] [-- NAME] [-- --figures FILE]`

mod floors;
mod peers;

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use vesta_intf::{FieldOrder, IdService, LayoutSpec, TimeUnit};
use vesta_numbers::segment::{NewSegmentTag, Segment, SegmentService, SegmentStore as _};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::clock::ClockKind;
use vesta_service::options::PopulatorKind;
use vesta_service::testing::MemoryStore;
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_testkit::figures::Figures;
use vesta_testkit::slices::{self, Work, median, ratio};

/// 2^32 IDs per second: as many as batches can ask for.
fn roomy_seconds() -> IdMeta {
    layout(30, 32, 1, TimeUnit::Second)
}

/// 2^28 IDs per second, and four machine IDs.
fn four_machines() -> IdMeta {
    layout(30, 28, 5, TimeUnit::Second)
}

/// 2^20 IDs per millisecond.
fn roomy_millis() -> IdMeta {
    layout(41, 20, 2, TimeUnit::Millisecond)
}

fn layout(time_bits: u8, seq_bits: u8, machine_bits: u8, unit: TimeUnit) -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits,
        seq_bits,
        machine_bits,
        order: FieldOrder::TimeSeqMachine,
        unit,
        epoch: IdMeta::MAX_PEAK.spec().epoch,
    })
    .expect("the layout adds up")
}

/// A service and its state directory.
struct Embedded {
    service: LocalIdService,
    _folder: tempfile::TempDir,
}

fn embedded(
    layout: IdMeta,
    populator: PopulatorKind,
    clock: ClockKind,
    machines: usize,
) -> Embedded {
    let source = match machines {
        1 => MachineSource::Fixed(1),
        _ => MachineSource::Pool {
            store: Arc::new(MemoryStore::new()),
            range: None,
        },
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = LocalIdService::builder()
        .namespace(vesta_testkit::namespace_of(folder.path()))
        .layout(layout)
        .populator(populator)
        .clock_kind(clock)
        .machine(source)
        .machine_count(machines)
        .state_dir(folder.path())
        .build()
        .expect("a service");
    Embedded {
        service,
        _folder: folder,
    }
}

/// A service that lives as long as the benchmark.
fn leaked(service: Embedded) -> &'static LocalIdService {
    &Box::leak(Box::new(service)).service
}

type Measure = Box<dyn Fn(usize, Work) -> f64>;

struct Row {
    name: String,
    /// The row that ratios refer to, at the same number of threads.
    floor: &'static str,
    measure: Measure,
    one_in_a_thousand: Measure,
}

/// A row: its name, its floor, and the expression that makes an ID. The expression is compiled into each loop, as in a
/// program's own loop.
macro_rules! row {
    ($name:expr, $floor:expr, $next:expr $(,)?) => {
        $crate::Row {
            name: $name.into(),
            floor: $floor,
            measure: Box::new(move |threads, work| {
                vesta_testkit::slices::measure(
                    threads,
                    work,
                    #[inline(always)]
                    || $next,
                )
            }),
            one_in_a_thousand: Box::new(move |threads, work| {
                vesta_testkit::slices::one_in_a_thousand(
                    threads,
                    work,
                    $crate::floors::cycles,
                    #[inline(always)]
                    || $next,
                )
            }),
        }
    };
}
pub(crate) use row;

/// A row of a service that `$make` builds. One thread alone gets a service that no other thread has used.
macro_rules! of_service {
    ($name:expr, $floor:expr, $make:expr, |$service:ident: $type:ty| $next:expr $(,)?) => {{
        let make = $make;
        let all = leaked(make());
        let $service: $type = black_box(all);
        let of_all = row!($name, $floor, $next);
        let measure = of_all.measure;
        Row {
            measure: Box::new(move |threads, work| match threads {
                1 => {
                    let own = make();
                    let $service: $type = black_box(&own.service);
                    slices::measure(
                        1,
                        work,
                        #[inline(always)]
                        || $next,
                    )
                }
                _ => measure(threads, work),
            }),
            name: of_all.name,
            floor: of_all.floor,
            one_in_a_thousand: of_all.one_in_a_thousand,
        }
    }};
}

const SECONDS: &str = "Vesta `atomic`, seconds";

/// The output of a future that is ready at once, as a future of an ID nearly always is.
#[inline(always)]
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("an ID was not ready"),
    }
}

/// The rows of single IDs.
fn rows() -> Vec<Row> {
    use ClockKind::{Coarse, Precise};
    let mut rows = floors::rows();
    for kind in [
        PopulatorKind::Atomic,
        PopulatorKind::Lock,
        PopulatorKind::Sync,
    ] {
        for (what, layout, clock, floor) in [
            ("seconds", roomy_seconds(), Precise, floors::SECONDS),
            (
                "milliseconds, precise",
                roomy_millis(),
                Precise,
                floors::CYCLES,
            ),
            (
                "milliseconds, coarse",
                roomy_millis(),
                Coarse,
                floors::COARSE,
            ),
        ] {
            let floor = match (kind, floor) {
                (PopulatorKind::Lock | PopulatorKind::Sync, floors::SECONDS) => floors::LOCK,
                _ => floor,
            };
            rows.push(of_service!(
                format!("Vesta `{}`, {what}", kind.name()),
                floor,
                move || embedded(layout, kind, clock, 1),
                |service: &LocalIdService| service.gen_id().expect("an ID"),
            ));
        }
    }
    let seconds = || embedded(roomy_seconds(), PopulatorKind::Atomic, Precise, 1);
    let shared = leaked(seconds());
    for _ in 0..16 {
        let taken = std::thread::scope(|scope| scope.spawn(|| shared.gen_id()).join());
        taken.expect("no panic").expect("an ID");
    }
    rows.push(row!(
        format!("{SECONDS}, after other threads"),
        floors::SECONDS,
        shared.gen_id().expect("an ID"),
    ));
    rows.push(of_service!(
        format!("{SECONDS}, 4 machine IDs"),
        SECONDS,
        || embedded(four_machines(), PopulatorKind::Atomic, Precise, 4),
        |service: &LocalIdService| service.gen_id().expect("an ID"),
    ));
    rows.push(of_service!(
        format!("{SECONDS}, `next`"),
        SECONDS,
        seconds,
        |service: &LocalIdService| service.next::<u64>().expect("an ID"),
    ));
    rows.push(of_service!(
        format!("{SECONDS}, async"),
        SECONDS,
        seconds,
        |service: &LocalIdService| ready(service.gen_id_async()).expect("an ID"),
    ));
    rows.push(of_service!(
        format!("{SECONDS}, `dyn IdService`"),
        SECONDS,
        seconds,
        |service: &dyn IdService| service.gen_id().expect("an ID"),
    ));
    rows.extend(segments());
    rows.extend(peers::rows());
    rows
}

/// Numbers of a segment tag, from an in-memory store that answers at once.
fn segments() -> [Row; 2] {
    let store = MemorySegmentStore::new();
    let tag = NewSegmentTag::new("orders", 1_000_000).expect("valid");
    store.create(&tag).expect("a new tag");
    let service = SegmentService::builder(Arc::new(store));
    let service: &'static _ = Box::leak(Box::new(service.build().expect("a service")));
    let orders = service.segment("orders").expect("a tag");
    for _ in 0..20_000 {
        orders.next_runs(10_000).expect("numbers"); // until its ranges have reached their full size
    }
    [
        row!(
            "Vesta segments, by handle",
            floors::ADD,
            orders.next().expect("a number")
        ),
        row!(
            "Vesta segments, by name",
            floors::ADD,
            service
                .segment(black_box("orders"))
                .and_then(Segment::next)
                .expect("a number"),
        ),
    ]
}

const THREADS: [usize; 3] = [1, 2, 8];

/// Nanoseconds per ID generated on the machine: of every row, by number of threads and round.
fn measure(rows: &[Row], rounds: usize) -> Vec<[Vec<f64>; 3]> {
    let mut all: Vec<[Vec<f64>; 3]> = rows.iter().map(|_| Default::default()).collect();
    for round in 0..rounds {
        eprint!("\rround {} of {rounds}", round + 1);
        for (at, threads) in THREADS.into_iter().enumerate() {
            for (number, row) in rows.iter().enumerate() {
                let of_one = (row.measure)(threads, Work::NONE);
                all[number][at].push(of_one / threads as f64);
            }
        }
    }
    eprintln!();
    all
}

fn print_singles(rows: &[Row], all: &[[Vec<f64>; 3]], figures: &mut Figures) {
    let find = |name: &str| rows.iter().position(|row| row.name == name);
    println!("| ns an ID | 1 thread | 2 | 8 | / its floor: 1 | 2 | 8 | floor |");
    println!("|---|---|---|---|---|---|---|---|");
    for (row, times) in rows.iter().zip(all) {
        print!("| {} |", row.name);
        for (threads, times) in THREADS.iter().zip(times) {
            print!(" {:.2} |", median(times));
            let question = format!("An ID in a process, ns: {}", in_words(*threads));
            figures.note(&question, &row.name, median(times));
        }
        for (at, threads) in THREADS.iter().enumerate() {
            match find(row.floor) {
                Some(floor) if row.floor != row.name => {
                    let ratio = ratio(&times[at], &all[floor][at]);
                    print!(" {ratio:.2} |");
                    let question = format!("An ID / its floor: {}", in_words(*threads));
                    figures.note(&question, &format!("{} / {}", row.name, row.floor), ratio);
                }
                _ => print!(" |"),
            }
        }
        println!(" {} |", row.floor);
    }
    let Some(peer) = find(peers::BEST) else {
        return;
    };
    println!(
        "\n| {} / it, same rounds | 1 | 2 | 8 |\n|---|---|---|---|",
        peers::BEST
    );
    for (row, times) in rows.iter().zip(all) {
        if row.name.starts_with("Vesta") {
            let ratios = [0, 1, 2].map(|at| ratio(&all[peer][at], &times[at]));
            let [one, two, eight] = ratios;
            println!("| {} | {one:.2} | {two:.2} | {eight:.2} |", row.name);
            for (threads, ratio) in THREADS.iter().zip(ratios) {
                let question = format!("Times as fast as {}: {}", peers::BEST, in_words(*threads));
                figures.note(&question, &row.name, ratio);
            }
        }
    }
}

fn in_words(threads: usize) -> String {
    let s = if threads == 1 { "" } else { "s" };
    format!("{threads} thread{s}")
}

const AT_WORK: &str = "A call of one of two callers, ns, with work between its calls";

/// Two callers that do other work between two IDs.
fn print_at_work(rows: &[Row], rounds: usize, figures: &mut Figures) {
    const NANOS: [u32; 5] = [0, 20, 50, 100, 200];
    let compared = [
        floors::SECONDS,
        SECONDS,
        "Vesta `atomic`, milliseconds, precise",
        "Vesta `lock`, seconds",
        peers::BEST,
    ];
    let works = NANOS.map(Work::of);
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| compared.contains(&&*row.name))
        .collect();
    let mut costs: Vec<[Vec<f64>; 5]> = rows.iter().map(|_| Default::default()).collect();
    let mut slow: Vec<Vec<f64>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        eprint!("\rround {} of {rounds} with work", round + 1);
        for (at, work) in works.into_iter().enumerate() {
            for (row, costs) in rows.iter().zip(&mut costs) {
                costs[at].push((row.measure)(2, work));
            }
        }
        for (row, slow) in rows.iter().zip(&mut slow) {
            slow.push((row.one_in_a_thousand)(2, works[2]));
        }
    }
    eprintln!();
    println!(
        "\n| a call of one of two callers, ns, with work between its calls | 0 ns | 20 | 50 | 100 | 200 | more than {}, 50 ns of work | one call in 1,000 takes longer than, 50 ns of work |",
        floors::SECONDS
    );
    println!("|---|---|---|---|---|---|---|---|");
    let floor = rows.iter().position(|row| row.name == floors::SECONDS);
    for ((row, cost), slow) in rows.iter().zip(&costs).zip(&slow) {
        print!("| {} |", row.name);
        for (nanos, cost) in NANOS.iter().zip(cost) {
            print!(" {:.1} |", median(cost));
            let question = format!("{AT_WORK}: {nanos} ns");
            figures.note(&question, &row.name, median(cost));
        }
        let more = floor.map_or(f64::NAN, |floor| {
            let pairs = cost[2].iter().zip(&costs[floor][2]);
            median(&pairs.map(|(cost, floor)| cost - floor).collect::<Vec<_>>())
        });
        let slow = median(slow);
        println!(" {more:.1} | {slow:.0} |");
        let question = format!("{AT_WORK}: 50 ns, more than {}", floors::SECONDS);
        figures.note(&question, &row.name, more);
        let question = format!("{AT_WORK}: 50 ns, one call in 1,000 takes longer");
        figures.note(&question, &row.name, slow);
    }
}

fn print_batches(rounds: usize, figures: &mut Figures) {
    const SIZES: [usize; 3] = [100, 1_000, 10_000];
    println!("\n| ns an ID of a batch | 100 IDs | 1,000 | 10,000 |\n|---|---|---|---|");
    for kind in PopulatorKind::ALL {
        let service = leaked(embedded(roomy_seconds(), kind, ClockKind::Precise, 1));
        let name = format!("Vesta `{}`", kind.name());
        print!("| {name} |");
        for size in SIZES {
            let times = (0..rounds).map(|_| {
                let batch = || {
                    thread_local! {
                        static OUT: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
                    }
                    OUT.with_borrow_mut(|out| {
                        out.resize(size, 0);
                        service.gen_ids(black_box(out)).expect("IDs");
                        out[0]
                    })
                };
                slices::measure(1, Work::NONE, batch) / size as f64
            });
            let time = median(&times.collect::<Vec<_>>());
            print!(" {time:.2} |");
            figures.note(&format!("An ID of a batch, ns: {size} IDs"), &name, time);
        }
        println!();
    }
}

/// The first ID of a thread that takes the word away from another one, which takes IDs meanwhile. As in slices, a time
/// in which the scheduler took a core away from one of them does not count.
fn print_joining(figures: &mut Figures) {
    const SERVICES: usize = 1000;
    let mut times: Vec<_> = (0..SERVICES).filter_map(|_| joining()).collect();
    times.sort_unstable_by(f64::total_cmp);
    if times.len() < SERVICES / 2 {
        println!(
            "\nThe first ID of a second thread: not measured, another program needs the cores"
        );
        return;
    }
    println!(
        "\n| first ID of a second thread, µs | median | one in 100 takes longer |\n|---|---|---|"
    );
    let (median, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("| nothing set | {median:.1} | {slow:.1} |");
    let question = "The first ID of a second thread, µs";
    figures.note(&format!("{question}: median"), "nothing set", median);
    figures.note(
        &format!("{question}: one in 100 takes longer"),
        "nothing set",
        slow,
    );
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn joining() -> Option<f64> {
    let service = LocalIdService::builder().layout(roomy_seconds());
    let service = service.machine(MachineSource::Stateless(1)).build();
    let service = service.expect("a service");
    let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let cores = slices::cores();
    let owner = || {
        while !over.load(Ordering::Relaxed) {
            black_box(service.gen_id().expect("an ID"));
            begun.store(true, Ordering::Release);
        }
    };
    let joiner = || {
        while !begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let (took, alone) = slices::on(cores[0], || {
            let begin = Instant::now();
            black_box(service.gen_id().expect("an ID"));
            begin.elapsed()
        });
        over.store(true, Ordering::Relaxed);
        (took, alone)
    };
    let last = cores[cores.len() - 1];
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| slices::on(last, owner));
        let (took, alone) = scope.spawn(joiner).join().expect("no panic");
        let ((), owner_alone) = owner.join().expect("no panic");
        (alone && owner_alone).then_some(took.as_secs_f64() * 1e6)
    })
}

fn main() {
    let (arguments, mut figures) = Figures::from_arguments();
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(11);
    let wanted = arguments
        .iter()
        .find(|argument| argument.parse::<usize>().is_err());
    let mut rows = rows();
    if let Some(wanted) = wanted {
        let floors: Vec<_> = rows
            .iter()
            .filter(|row| row.name.contains(wanted))
            .map(|row| row.floor)
            .collect();
        rows.retain(|row| row.name.contains(wanted) || floors.contains(&row.name.as_str()));
    }
    print_singles(&rows, &measure(&rows, rounds), &mut figures);
    print_at_work(&rows, rounds, &mut figures);
    if wanted.is_none() {
        print_batches(rounds, &mut figures);
        print_joining(&mut figures);
    }
    figures.write();
}

//! Cost of an ID inside the process, as multiples of what the machine's own steps cost.
//!
//! Layouts called *roomy* have so many sequence numbers in a tick that it is the generator that is
//! measured and not the wait for the next tick; the rounds of each row cross hundreds of ticks of a
//! millisecond and dozens of a second. The bound is real: a state file that a keeper renews. Every
//! row is measured once in each round, so that all of them meet the same disturbances; a ratio is the
//! median of the ratios within rounds. Peers are measured in the same run, with the same layout where
//! they have one to choose.
//!
//! `cargo bench -p vesta-service --bench generate [-- ROUNDS] [-- NAME]`

mod floors;
mod peers;

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::clock::ClockKind;
use vesta_service::options::PopulatorKind;
use vesta_service::testing::MemoryStore;
use vesta_service::{IdMeta, LocalIdService, MachineSource};

/// 2^28 IDs in a second.
fn roomy_seconds() -> IdMeta {
    layout(30, 28, 5, TimeUnit::Second)
}

/// 2^32 IDs in a second: as many as batches can ask for.
fn roomiest_seconds() -> IdMeta {
    layout(30, 32, 1, TimeUnit::Second)
}

/// 2^20 IDs in a millisecond.
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

/// A service that lives as long as the benchmark.
fn embedded(
    layout: IdMeta,
    populator: PopulatorKind,
    clock: ClockKind,
    machines: usize,
) -> &'static LocalIdService {
    let source = match machines {
        1 => MachineSource::Fixed(1),
        _ => MachineSource::Pool {
            store: std::sync::Arc::new(MemoryStore::new()),
            range: None,
        },
    };
    let folder: &tempfile::TempDir =
        Box::leak(Box::new(tempfile::tempdir().expect("a temporary folder")));
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
    Box::leak(Box::new(service))
}

/// Makes so many IDs with so many threads, and says how long that took.
type Work = Box<dyn Fn(u64, u64) -> Duration>;

struct Row {
    name: String,
    /// The row that ratios refer to, at one thread.
    floor: &'static str,
    work: Work,
}

/// The loop is compiled with what it measures.
fn work(next: impl Fn() -> u64 + Sync + 'static) -> Work {
    Box::new(move |threads, n| match threads {
        1 => {
            let start = now();
            for _ in 0..n {
                black_box(next());
            }
            start.elapsed()
        }
        _ => share(threads, n, &next),
    })
}

/// Makes `n` IDs with several threads and says how long that took.
fn share(threads: u64, n: u64, next: &(impl Fn() -> u64 + Sync)) -> Duration {
    let barrier = Barrier::new(usize::try_from(threads + 1).expect("few threads"));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..n.div_ceil(threads) {
                        black_box(next());
                    }
                })
            })
            .collect();
        barrier.wait();
        let start = now();
        workers
            .into_iter()
            .for_each(|worker| worker.join().expect("no panic"));
        start.elapsed()
    })
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// The rows of single IDs.
fn rows() -> Vec<Row> {
    use ClockKind::{Coarse, Precise};
    let mut rows = Vec::new();
    floors::each(&mut |name, work| {
        rows.push(Row {
            name: name.into(),
            floor: name,
            work,
        })
    });
    let mut add = |name: String, floor, service: &'static LocalIdService| {
        let work = work(|| service.gen_id().expect("an ID"));
        rows.push(Row { name, floor, work });
    };
    for kind in PopulatorKind::ALL {
        let name = kind.name();
        let local = kind == PopulatorKind::Local;
        let of = |floor| if local { floors::ADD } else { floor };
        let seconds = embedded(roomy_seconds(), kind, Precise, 1);
        add(
            format!("Vesta `{name}`, seconds"),
            of(floors::SECONDS),
            seconds,
        );
        let millis = embedded(roomy_millis(), kind, Precise, 1);
        add(
            format!("Vesta `{name}`, milliseconds, precise"),
            of(floors::CYCLES),
            millis,
        );
        let coarse = embedded(roomy_millis(), kind, Coarse, 1);
        add(
            format!("Vesta `{name}`, milliseconds, coarse"),
            of(floors::COARSE),
            coarse,
        );
    }
    let four = embedded(roomy_seconds(), PopulatorKind::Atomic, Precise, 4);
    add(
        "Vesta `atomic`, seconds, 4 machine IDs".into(),
        ONE_MACHINE,
        four,
    );
    peers::each(&mut |name, work| {
        rows.push(Row {
            name: name.into(),
            floor: floors::ADD,
            work,
        })
    });
    rows
}

/// The row of one machine ID that the one of four is compared with.
const ONE_MACHINE: &str = "Vesta `atomic`, seconds";

const THREADS: [u64; 4] = [1, 2, 4, 8];
/// Long enough that a time slice of another program is a part of it only.
const ROUND: Duration = Duration::from_millis(15);

/// Nanoseconds for each ID: of every row, by number of threads and round.
fn measure(rows: &[Row], rounds: usize) -> Vec<[Vec<f64>; 4]> {
    let mut all: Vec<[Vec<f64>; 4]> = rows.iter().map(|_| Default::default()).collect();
    let sizes: Vec<[u64; 4]> = rows
        .iter()
        .map(|row| THREADS.map(|n| size(row, n)))
        .collect();
    for round in 0..rounds {
        eprint!("\rround {} of {rounds}", round + 1);
        for (at, threads) in THREADS.into_iter().enumerate() {
            for (number, row) in rows.iter().enumerate() {
                let n = sizes[number][at];
                let took = (row.work)(threads, n);
                all[number][at].push(took.as_nanos() as f64 / n as f64);
            }
        }
    }
    eprintln!();
    all
}

/// The number of IDs in a round.
fn size(row: &Row, threads: u64) -> u64 {
    let mut n = 8000;
    loop {
        let took = (row.work)(threads, n);
        if took >= ROUND / 2 {
            return n;
        }
        n *= 2;
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ratio(of: &[f64], to: &[f64]) -> f64 {
    median(
        &of.iter()
            .zip(to)
            .map(|(of, to)| of / to)
            .collect::<Vec<_>>(),
    )
}

fn print_singles(rows: &[Row], all: &[[Vec<f64>; 4]]) {
    let find = |name: &str| rows.iter().position(|row| row.name == name);
    println!(
        "| ns per ID | 1 caller | 2 callers | 4 callers | 8 callers | / floor, 1 caller | 8 callers | floor |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (row, times) in rows.iter().zip(all) {
        let floor = find(row.floor).map(|number| &all[number][0]);
        let ratios = [0, 3].map(|at| {
            floor.map_or("–".into(), |floor| {
                format!("{:.2}", ratio(&times[at], floor))
            })
        });
        let times = times
            .each_ref()
            .map(|times| format!("{:.1}", median(times)));
        println!(
            "| {} | {} | {} | {} |",
            row.name,
            times.join(" | "),
            ratios.join(" | "),
            row.floor
        );
    }
    let Some(peer) = find(peers::BEST) else {
        return;
    };
    println!(
        "\n| {} / Vesta, same round | 1 caller | 2 callers | 4 callers | 8 callers |",
        peers::BEST
    );
    println!("|---|---|---|---|---|");
    for (row, times) in rows
        .iter()
        .zip(all)
        .filter(|(row, _)| row.name.starts_with("Vesta"))
    {
        let ratios: Vec<_> = (0..4)
            .map(|at| format!("{:.2}", ratio(&all[peer][at], &times[at])))
            .collect();
        println!("| {} | {} |", row.name, ratios.join(" | "));
    }
}

fn print_batches(rounds: usize) {
    const SIZES: [usize; 3] = [100, 1_000, 10_000];
    println!("\n| ns per ID of a batch | 100 IDs | 1,000 IDs | 10,000 IDs |\n|---|---|---|---|");
    for kind in PopulatorKind::ALL {
        let service = embedded(roomiest_seconds(), kind, ClockKind::Precise, 1);
        let cells = SIZES.map(|size| {
            let mut out = vec![0; size];
            let calls = 2_000_000 / size;
            let times: Vec<_> = (0..rounds)
                .map(|_| {
                    let start = now();
                    (0..calls).for_each(|_| service.gen_ids(black_box(&mut out)).expect("IDs"));
                    start.elapsed().as_nanos() as f64 / (calls * size) as f64
                })
                .collect();
            format!("{:.2}", median(&times))
        });
        println!("| Vesta `{}` | {} |", kind.name(), cells.join(" | "));
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(41);
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
    print_singles(&rows, &measure(&rows, rounds));
    if wanted.is_none() {
        print_batches(rounds);
    }
}

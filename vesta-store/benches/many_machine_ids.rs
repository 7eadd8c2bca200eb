//! Cost of many machine IDs in one process: claiming them, and holding them.
//!
//! SQLite by default; `VESTA_BENCH_STORES` names other stores by their URLs, separated by spaces.
//! Those are reached through a connection that delays every response by 5 ms. Prints a row per store
//! and number: medians of five starts.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{Leases, Record};
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::{Kind, StoreUrl};

const DELAY: Duration = Duration::from_millis(5);
const SLOW_LINE: &str = "slow-line";
const STARTS: usize = 5;
const IDLE: Duration = Duration::from_secs(15);

fn main() {
    let stores = std::env::var("VESTA_BENCH_STORES").unwrap_or_default();
    let numbers = [1, 64, 1024];
    println!("store, machine IDs: first start, restart; threads, processor time while idle");
    if stores.is_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vesta.db");
        let url = format!("sqlite:{}", path.display());
        for number in numbers {
            measure(&url, number);
        }
        among_others(&url);
    }
    for url in stores.split_whitespace() {
        let slow = through_a_slow_line(url);
        for number in numbers {
            measure(&slow, number);
        }
        among_others(&slow);
    }
}

/// First starts in an empty namespace, and in one with 16,660 records of other hosts, in turns. 980 of each 1,024
/// machine IDs are taken.
fn among_others(url: &str) {
    const MACHINES: u64 = 17 * 1024;
    const ROUNDS: usize = 15;
    let layout = IdMeta::new(LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: 30,
        seq_bits: 13,
        machine_bits: 20,
        order: FieldOrder::TimeMachineSeq,
        unit: TimeUnit::Second,
        epoch: IdMeta::MAX_PEAK.spec().epoch,
    });
    let layout = layout.expect("it adds up");
    let clock = SystemClock::new();
    let open = || vesta_store::open(&url.parse().unwrap()).expect("a store");
    let namespace = |what: &str| format!("bench-{what}-{}", std::process::id());
    let leases = Leases::new(open(), &namespace("full"));
    let taken = || (0..MACHINES).filter(|machine| machine % 1024 < 980);
    let uuid = leases.open(&layout.fingerprint()).expect("a store").uuid;
    let owned = |birth| Record {
        namespace: uuid,
        birth,
        epoch: 1,
        owner: 7,
        bound: (1 << 42) - 1,
        host: "orders-6d4cf56db6-x7k2p".into(),
        ..Record::default()
    };
    for machine in taken() {
        leases
            .change(machine, None, &owned(machine))
            .expect("a store");
    }
    let seen = leases.snapshot().expect("a store");
    for machine in taken() {
        leases
            .mark_birth(&seen, machine, &owned(machine))
            .expect("a store");
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (what, times) in ["empty", "full"].iter().zip(&mut times) {
            let (folder, begun) = (tempfile::tempdir().expect("a folder"), clock.monotonic());
            let namespace = match *what {
                "empty" => namespace(&format!("empty-{round}")),
                _ => namespace("full"),
            };
            let service = LocalIdService::builder()
                .layout(layout)
                .namespace(namespace)
                .machine(MachineSource::Pool {
                    store: open(),
                    range: Some(0..=MACHINES - 1),
                })
                .state_dir(folder.path())
                .build()
                .expect("a machine ID is free");
            service.gen_id().expect("an ID");
            times.push(clock.monotonic() - begun);
        }
    }
    let [empty, full] = times.each_mut().map(|times| median(times));
    let more = (full.as_secs_f64() / empty.as_secs_f64() - 1.0) * 100.0;
    println!(
        "start to first ID: {empty:.1?} in an empty namespace, {full:.1?} among {} records ({more:+.0} %)",
        taken().count()
    );
}

fn measure(url: &str, number: usize) {
    let clock = SystemClock::new();
    let kind: Kind = url.parse::<StoreUrl>().expect("a URL").kind();
    let start = |namespace: &str, folder: &std::path::Path| {
        let begun = clock.monotonic();
        let store = vesta_store::open(&url.parse().unwrap()).expect("a store");
        let service = LocalIdService::builder()
            .namespace(namespace)
            .machine(MachineSource::Pool { store, range: None })
            .machine_count(number)
            .state_dir(folder)
            .build()
            .expect("enough machine IDs");
        service.gen_id().expect("an ID");
        (service, clock.monotonic() - begun)
    };
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for run in 0..STARTS {
        let folder = tempfile::tempdir().expect("a folder");
        let namespace = format!("bench-{number}-{}-{run}", std::process::id());
        let (service, took) = start(&namespace, folder.path());
        first.push(took);
        drop(service);
        let (service, took) = start(&namespace, folder.path());
        again.push(took);
        if run + 1 < STARTS {
            continue;
        }
        let threads = threads();
        let before = processor_time();
        clock.park(IDLE);
        let used = processor_time().saturating_sub(before);
        drop(service);
        let (first, again) = (median(&mut first), median(&mut again));
        let share = used.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
        println!(
            "{kind:?}, {number}: {first:.0?}, {again:.0?}; {threads} threads, {share:.2} % of a core"
        );
    }
}

/// The threads of this process, without those of the delaying proxy.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let names = tasks.flat_map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.filter(|name| name.trim() != SLOW_LINE).count()
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    let named = std::thread::Builder::new().name(SLOW_LINE.into());
    named.spawn(work).expect("a thread");
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// CPU time of this process, in user and kernel mode.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2);
    Duration::from_millis(10) * ticks.filter_map(|ticks| ticks.parse::<u32>().ok()).sum()
}

/// The URL of the same store behind a proxy that delays its responses. The proxy's threads belong to
/// this process.
fn through_a_slow_line(url: &str) -> String {
    let (_, rest) = url.split_once("://").expect("a URL");
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let server = place.split('/').next().expect("an address").to_owned();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let slow = url.replacen(&server, &address.to_string(), 1);
    spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.expect("a client"), TcpStream::connect(&server));
            let server = server.expect("a server");
            for side in [&client, &server] {
                side.set_nodelay(true).expect("a socket");
            }
            let requests = (
                client.try_clone().expect("a copy"),
                server.try_clone().expect("a copy"),
            );
            pass_on(requests.0, requests.1, Duration::ZERO);
            pass_on(server, client, DELAY);
        }
    });
    slow
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let clock = Arc::new(SystemClock::new());
    let (sender, arrived) = channel::<(Duration, Vec<u8>)>();
    let reader = clock.clone();
    spawn(move || {
        let mut buffer = [0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let due = reader.monotonic() + delay;
            if sender.send((due, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    spawn(move || {
        for (due, bytes) in arrived {
            clock.park(due.saturating_sub(clock.monotonic()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

//! Servers that stand by for one machine ID: they name its holder, and IDs follow real time over kills, pauses and
//! stops of the holder, and while it is cut off from its store. `--nocapture` shows the silences.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use vesta_client::{Client, ErrorKind, Order, Retry};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_store::conformance::Proxy;
use vesta_testkit::fleet::{StoreServers, free_ports, now, random};
use vesta_testkit::lacks;

use crate::support::{FREE_PORTS, Program, folder, program, run, serve, text};

const MILLI: Duration = Duration::from_millis(1);
/// Longest silence of a takeover: twice the window. About 2.3 s after a kill or a pause on a quiet machine, and 0.3 s
/// after a stop.
const LIMIT: Duration = Duration::from_secs(4);

/// A layout of milliseconds shows inversions inside a second; in one of seconds a lease ends within a tick.
const MILLIS: &str = "min-granularity";
const SECONDS: &str = "max-peak";

/// A call that returned an ID, on the monotonic clock of this host.
#[derive(Debug, Clone, Copy)]
struct Call {
    begin: Duration,
    end: Duration,
    id: u64,
}

/// Number of calls that returned an ID below that of a call which had ended before they began.
fn inversions(calls: &[Call]) -> usize {
    let (mut by_begin, mut by_end) = (calls.to_vec(), calls.to_vec());
    by_begin.sort_by_key(|call| call.begin);
    by_end.sort_by_key(|call| call.end);
    let (mut ended, mut largest) = (by_end.iter().peekable(), 0);
    let is_inverted = |call: &&Call| {
        while let Some(before) = ended.next_if(|it| it.end < call.begin) {
            largest = largest.max(before.id);
        }
        call.id <= largest
    };
    by_begin.iter().filter(is_inverted).count()
}

/// Longest time from one answer to the next, between these moments.
fn longest_silence(calls: &[Call], from: Duration, to: Duration) -> Duration {
    let mut ends: Vec<_> = calls.iter().map(|call| call.end).collect();
    ends.retain(|end| (from..=to).contains(end));
    ends.sort_unstable();
    let gaps = ends.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or(to - from)
}

#[test]
fn a_planted_inversion_is_found() {
    let call = |begin, end, id| Call {
        begin: begin * MILLI,
        end: end * MILLI,
        id,
    };
    let calls = [
        call(0, 10, 1),
        call(1, 12, 3), // overlaps with the next one: any order is right
        call(2, 9, 2),
        call(13, 20, 4),
        call(20, 21, 6), // begins at the end of the one before
        call(22, 30, 7),
    ];
    assert_eq!(inversions(&calls), 0);
    for (late, id) in [(3, 3), (3, 2), (4, 3), (5, 6), (5, 1)] {
        let mut planted = calls;
        planted[late].id = id;
        assert_eq!(inversions(&planted), 1, "call {late} with ID {id}");
    }
    assert_eq!(longest_silence(&calls, 10 * MILLI, 30 * MILLI), 9 * MILLI);
}

struct Fleet<'a> {
    folder: &'a Path,
    store: String,
    layout: &'static str,
    /// Servers that share a state directory, as those of one host do; otherwise each plays a separate host.
    one_host: bool,
    ports: Vec<u16>,
    servers: Vec<Option<Program>>,
    /// The way of each server to a store on the network.
    ways: Vec<Proxy>,
}

impl<'a> Fleet<'a> {
    fn start(
        folder: &'a Path,
        store: &str,
        layout: &'static str,
        one_host: bool,
        count: usize,
    ) -> Self {
        let mut fleet = Self {
            folder,
            store: store.into(),
            layout,
            one_host,
            ports: free_ports(count),
            servers: (0..count).map(|_| None).collect(),
            ways: match StoreServers::address(store) {
                Some(at) => (0..count)
                    .map(|_| Proxy::start(at).expect("a free port"))
                    .collect(),
                None => Vec::new(),
            },
        };
        (0..count).for_each(|server| fleet.revive(server));
        fleet
    }

    fn revive(&mut self, server: usize) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.ports[server])).to_string();
        let mut command = program(self.folder);
        command.args(["--grpc-listen", &address, "--admin-listen", "127.0.0.1:0"]);
        let host = if self.one_host { 0 } else { server };
        command.args(["--state-dir", &format!("host-{host}")]);
        command.args(["--machine-id", "7", "--machine-standby"]);
        let store = match (self.ways.get(server), StoreServers::address(&self.store)) {
            (Some(way), Some(at)) => {
                let (at, way) = (at.to_string(), way.address().to_string());
                self.store.replace(&at, &way)
            }
            _ => self.store.clone(),
        };
        command.args(["--machine-store", &store, "--layout", self.layout]);
        let mut program = serve(&mut command);
        program.ignore_log();
        self.servers[server] = Some(program);
    }

    fn urls(&self) -> Vec<String> {
        let url = |port| format!("http://127.0.0.1:{port}");
        self.ports.iter().map(url).collect()
    }

    fn server(&self, server: usize) -> &Program {
        self.servers[server].as_ref().expect("it runs")
    }

    /// The server that is ready; none while a takeover is under way. Paused ones are not asked.
    fn holder(&self, paused: Option<usize>) -> Option<usize> {
        let is_up = |server: &usize| Some(*server) != paused && self.servers[*server].is_some();
        let is_ready = |server: &usize| self.server(*server).get("/readyz").0 == 200;
        (0..self.servers.len()).filter(is_up).find(is_ready)
    }

    fn until_held(&self, paused: Option<usize>) -> usize {
        loop {
            if let Some(holder) = self.holder(paused) {
                return holder;
            }
            SystemClock::new().park(10 * MILLI); // a probe of readiness has no event
        }
    }
}

/// Calls of one thread until the end, one after another, about a thousand a second.
fn calls(client: &vesta_client::blocking::Client, over: &AtomicBool) -> Vec<Call> {
    let mut calls = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let begin = now();
        if let Ok(id) = client.gen_id() {
            let end = now();
            calls.push(Call { begin, end, id });
        }
        SystemClock::new().park(MILLI);
    }
    calls
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Kill,
    Stop,
    Pause,
    /// The holder's connections to its store are closed, or nothing arrives over them.
    Cut,
}

/// How long a holder is cut off after its successor answers.
fn cut() -> Duration {
    Duration::from_secs(vesta_testkit::full_or(60, 4) as u64)
}

/// Plays faults of the holder while callers follow it, and others insist on one server each.
fn play(store: &str, layout: &'static str, one_host: bool, faults: &[Fault]) {
    let folder = folder();
    let mut fleet = Fleet::start(folder.path(), store, layout, one_host, 3);
    let urls = fleet.urls();
    let follower = || {
        let client = Client::builder().endpoints(urls.clone());
        let client = client.order(Order::Strict).deadline(10_000 * MILLI);
        client.build_blocking().expect("a client")
    };
    let insister = |url: &String| {
        let retry = Retry {
            max_attempts: 1,
            ..Retry::default()
        };
        let client = Client::builder().endpoint(url.clone()).retry(retry);
        client
            .deadline(1_000 * MILLI)
            .build_blocking()
            .expect("a client")
    };
    let clients: Vec<_> = (0..3)
        .map(|_| follower())
        .chain(urls.iter().map(insister))
        .collect();
    let (over, mut moments) = (AtomicBool::new(false), Vec::new());
    let all = thread::scope(|scope| {
        let over = &over;
        let callers: Vec<_> = clients
            .iter()
            .map(|client| scope.spawn(move || calls(client, over)))
            .collect();
        for fault in faults {
            let holder = fleet.until_held(None);
            SystemClock::new().park(Duration::from_millis(100 + random(600))); // anywhere between two renewals
            let began = now();
            match fault {
                Fault::Kill => drop(fleet.servers[holder].take().map(Program::kill)),
                Fault::Stop => {
                    let stopped = fleet.servers[holder].take().map(Program::stop);
                    assert_eq!(stopped.map(|it| it.0), Some(Some(0)));
                }
                Fault::Pause => fleet.server(holder).pause(),
                Fault::Cut if moments.len().is_multiple_of(2) => fleet.ways[holder].refuse(),
                Fault::Cut => fleet.ways[holder].freeze(),
            }
            let lives = matches!(fault, Fault::Pause | Fault::Cut);
            let paused = Some(holder).filter(|_| lives);
            let successor = fleet.until_held(paused);
            assert_ne!(successor, holder);
            moments.push((*fault, began, now() + 100 * MILLI));
            SystemClock::new().park(200 * MILLI);
            match fault {
                Fault::Pause => fleet.server(holder).resume(),
                Fault::Cut => {
                    SystemClock::new().park(cut());
                    fleet.ways[holder].heal();
                }
                Fault::Kill | Fault::Stop => fleet.revive(holder),
            }
        }
        SystemClock::new().park(500 * MILLI);
        over.store(true, Ordering::Relaxed);
        let calls = callers
            .into_iter()
            .map(|caller| caller.join().expect("calls"));
        calls.collect::<Vec<_>>().concat()
    });
    let wrong = inversions(&all);
    println!("{} IDs, {wrong} inversions", all.len());
    for fault in [Fault::Kill, Fault::Pause, Fault::Stop, Fault::Cut] {
        let of_kind = moments.iter().filter(|it| it.0 == fault);
        let mut silences: Vec<_> = of_kind
            .map(|(_, began, over)| {
                let silence = longest_silence(&all, *began - 50 * MILLI, *over);
                if silence > Duration::from_secs(4) {
                    println!("{fault:?} at {began:.1?}: silence {silence:.2?}");
                }
                silence
            })
            .collect();
        silences.sort_unstable();
        if let Some(longest) = silences.last() {
            let (count, median) = (silences.len(), silences[silences.len() / 2]);
            println!("{fault:?}: {count} times, silence {median:.2?}, at most {longest:.2?}");
            assert!(*longest < LIMIT, "{fault:?} over {store}: {longest:?}");
        }
    }
    assert_eq!(wrong, 0);
    assert!(all.len() > faults.len() * 200, "{}", all.len());
}

/// Every fault in turn.
fn faults(rounds: usize) -> Vec<Fault> {
    let cycle = [Fault::Pause, Fault::Kill, Fault::Stop];
    cycle.into_iter().cycle().take(rounds).collect()
}

/// Stores with a server.
const SERVERS: [&str; 5] = ["mysql", "postgres", "redis", "etcd", "zookeeper"];

#[test]
fn ids_follow_real_time_over_kills_pauses_and_stops_of_the_holder_on_every_store() {
    let faults = faults(vesta_testkit::full_or(60, 3));
    let play = |store: &str, one_host| play(store, MILLIS, one_host, &faults);
    let store = "sqlite:shared/vesta.db";
    play(store, false);
    play(store, true);
    let pool_server_in = folder();
    let mut pool_server = program(pool_server_in.path());
    let pool_server = serve(
        pool_server
            .args(FREE_PORTS)
            .args(["--pool-server-namespaces", "*"]),
    );
    play(&format!("vesta://{}", pool_server.address()), false);
    for store in SERVERS.into_iter().filter(|store| !lacks(store)) {
        let servers = StoreServers::start(&[store]);
        println!("{store}:");
        play(&StoreServers::url(servers.folder(), store), false);
    }
}

/// Callers go on asking the server that is cut off.
#[test]
fn ids_follow_real_time_while_a_holder_is_cut_off_from_its_store() {
    let mut stores = vec!["mysql", "postgres", "etcd", "pool_server"];
    stores.retain(|store| !lacks(store));
    let servers = StoreServers::start(&stores);
    for store in stores {
        println!("{store}");
        let url = StoreServers::url(servers.folder(), store);
        play(&url, SECONDS, false, &[Fault::Cut; 2]);
    }
}

#[test]
fn a_server_that_stands_by_says_so_everywhere() {
    let folder = folder();
    let mut fleet = Fleet::start(folder.path(), "sqlite:shared/vesta.db", MILLIS, false, 2);
    let (holder, waiting) = (fleet.server(0), fleet.server(1));
    assert_eq!(holder.get("/readyz").0, 200);
    assert!(holder.first_id() > 0);
    let (status, said) = waiting.get("/readyz");
    let names = format!("(pid {}) holds machine ID 7, and this server", holder.id());
    assert_eq!(status, 503);
    assert!(
        said.starts_with("not ready: standing by: ") && said.contains(&names),
        "{said}"
    );
    assert_eq!(waiting.get("/healthz").0, 200, "a restart would not help");
    let metrics = waiting.get("/metrics").1;
    assert!(metrics.contains("\nvesta_standing_by 1\n"), "{metrics}");
    assert!(holder.get("/metrics").1.contains("\nvesta_standing_by 0\n"));
    let status: serde_json::Value = serde_json::from_str(&waiting.get("/status").1).unwrap();
    let by = status["lease"]["standingByFor"]
        .as_str()
        .expect("the holder");
    assert!(by.ends_with(&format!("(pid {})", holder.id())), "{by}");
    assert!(waiting.get("/events").1.contains("standing-by"));
    let first = waiting.fact("first ID");
    assert!(
        first.starts_with("not yet: another server holds the machine ID"),
        "{first}"
    );

    let ask = |server: usize| {
        let client = Client::builder().endpoint(fleet.urls()[server].clone());
        let retry = Retry {
            max_attempts: 1,
            ..Retry::default()
        };
        client
            .retry(retry)
            .build_blocking()
            .expect("a client")
            .gen_id()
    };
    let error = ask(1).expect_err("it stands by");
    assert_eq!(error.kind(), ErrorKind::NotHolder);
    assert!(error.retry_after().expect("a hint") <= 100 * MILLI);
    let last = ask(0).expect("the holder answers");

    // A server without the setting is refused as before, because the machine ID is in use.
    let store = [
        "--machine-store",
        "sqlite:shared/vesta.db",
        "--layout",
        "min-granularity",
    ];
    let args = [
        &["--machine-id", "7", "--state-dir", "other"],
        store.as_slice(),
    ]
    .concat();
    let free = [
        ("VESTA_GRPC_LISTEN", "127.0.0.1:0"),
        ("VESTA_ADMIN_LISTEN", "127.0.0.1:0"),
    ];
    let refused = run(folder.path(), &args, &free);
    assert_eq!(refused.status.code(), Some(64));
    assert!(
        text(&refused.stderr).contains("machine ID 7"),
        "{}",
        text(&refused.stderr)
    );
    // A server whose IDs would sort elsewhere is refused, too.
    let args = [&args[..], &["--machine-standby", "--gen-method", "2"]].concat();
    let refused = run(folder.path(), &args, &free);
    assert_eq!(refused.status.code(), Some(64));
    assert!(
        text(&refused.stderr).contains("another genMethod"),
        "{}",
        text(&refused.stderr)
    );

    let stopped = fleet.servers[0].take().map(Program::stop);
    assert_eq!(stopped.map(|it| it.0), Some(Some(0)));
    assert_eq!(fleet.until_held(None), 1);
    let url = fleet.urls()[1].clone();
    let client = Client::builder()
        .endpoint(url)
        .build_blocking()
        .expect("a client");
    assert!(client.gen_id().expect("it took over") > last);
}

//! Servers that stand by for one machine ID: they name its holder, and IDs follow real time over kills, pauses and
//! stops of the holder. `--nocapture` shows the silences.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use vesta_client::{Client, ErrorKind, Order, Retry};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_testkit::fleet::{StoreServers, now, pause, random, resume};

use crate::support::{Program, folder, program, run, serve, text};

const MILLI: Duration = Duration::from_millis(1);

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

/// A port below those that systems give to outgoing connections: it stays free while its server is down.
fn port() -> u16 {
    let port = || u16::try_from(20_000 + random(10_000)).expect("small");
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(port)
        .find(is_free)
        .expect("a free port")
}

struct Fleet<'a> {
    folder: &'a Path,
    store: String,
    ports: Vec<u16>,
    servers: Vec<Option<Program>>,
}

impl<'a> Fleet<'a> {
    fn start(folder: &'a Path, store: &str, count: usize) -> Self {
        let mut fleet = Self {
            folder,
            store: store.into(),
            ports: (0..count).map(|_| port()).collect(),
            servers: (0..count).map(|_| None).collect(),
        };
        (0..count).for_each(|server| fleet.revive(server));
        fleet
    }

    fn revive(&mut self, server: usize) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.ports[server])).to_string();
        let mut command = program(self.folder);
        command.args(["--listen", &address, "--admin-listen", "127.0.0.1:0"]);
        // Each plays a separate host: it does not see the state folders of the others.
        command.args(["--state-dir", &format!("host-{server}")]);
        command.args(["--machine-id", "7", "--machine-standby"]);
        command.args([
            "--machine-store",
            &self.store,
            "--layout",
            "min-granularity",
        ]);
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
}

/// Plays faults of the holder while callers follow it, and others insist on one server each.
fn play(store: &str, faults: &[Fault]) {
    let folder = folder();
    let mut fleet = Fleet::start(folder.path(), store, 3);
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
                Fault::Pause => pause(fleet.server(holder).id()),
            }
            let paused = Some(holder).filter(|_| *fault == Fault::Pause);
            let successor = fleet.until_held(paused);
            assert_ne!(successor, holder);
            moments.push((*fault, began, now() + 100 * MILLI));
            SystemClock::new().park(200 * MILLI);
            match paused {
                Some(paused) => resume(fleet.server(paused).id()),
                None => fleet.revive(holder),
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
    for fault in [Fault::Kill, Fault::Pause, Fault::Stop] {
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
            // About 2.3 and 0.3 s on a quiet machine.
            assert!(*longest < Duration::from_secs(30), "{fault:?}: {longest:?}");
        }
    }
    assert_eq!(wrong, 0);
    assert!(all.len() > faults.len() * 200, "{}", all.len());
}

/// Two kills for each clean stop.
fn faults(rounds: usize, middle: Fault) -> Vec<Fault> {
    let cycle = [Fault::Kill, middle, Fault::Kill];
    cycle.into_iter().cycle().take(rounds).collect()
}

#[test]
fn ids_follow_real_time_over_kills_and_stops_of_the_holder() {
    let rounds = vesta_testkit::full_or(300, 3);
    play("sqlite:shared/vesta.db", &faults(rounds, Fault::Stop));
}

/// The store is on the network, so a paused holder is taken over, and wakes up as one among others.
#[test]
fn of_etcd_ids_follow_real_time_over_pauses_of_the_holder() {
    let servers = StoreServers::start(&["etcd"]);
    let store = StoreServers::url(servers.folder(), "etcd");
    let rounds = vesta_testkit::full_or(60, 2);
    let faults = [Fault::Pause, Fault::Stop].into_iter().cycle();
    play(&store, &faults.take(rounds).collect::<Vec<_>>());
}

#[test]
fn a_server_that_stands_by_says_so_everywhere() {
    let folder = folder();
    let mut fleet = Fleet::start(folder.path(), "sqlite:shared/vesta.db", 2);
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
        ("VESTA_LISTEN", "127.0.0.1:0"),
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

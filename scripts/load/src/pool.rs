//! A pool server as its members grow: the cost of a claim, of renewals and of members that only hold, and the start of
//! all members at once. Claims and starts are those of real members; renewals come from sessions that keep one record
//! each, thousands of them in this process.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Barrier, LazyLock};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{Instant, sleep_until};
use vesta_intf::{IdMeta, LayoutSpec};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{AT_ONCE, KvStore, Leases, Put, Record, Secret};
use vesta_service::testing::MemoryStore;
use vesta_service::{LocalIdService, MachineSource};

mod session;

use crate::Failure;
use crate::child::Server;
use crate::proc::{cpu_seconds, resident};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};
use session::Session;

/// Layout with room for all members.
static LAYOUT: LazyLock<IdMeta> = LazyLock::new(|| {
    let spec = LayoutSpec {
        time_bits: 34,
        machine_bits: 16,
        ..*IdMeta::UID.spec()
    };
    IdMeta::new(spec).expect("64 bits")
});
const RANGE: RangeInclusive<u64> = 0..=16_383;
const NAMESPACE: &str = "many";
/// Interval of renewals on a network store, by default.
const RENEW_EVERY: Duration = Duration::from_secs(15);
/// Renewals in flight, and connections opened at a time.
const AT_A_TIME: usize = 64;

/// Numbers of members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Members that hold a machine ID.
    members: u64,
    /// Members that claim one, in each round.
    claims: usize,
    /// Members that start at once.
    starters: usize,
}

impl Sizes {
    pub(crate) const fn of(is_quick: bool) -> Self {
        match is_quick {
            true => Self {
                members: 200,
                claims: 4,
                starters: 20,
            },
            false => Self {
                members: 10_000,
                claims: 100,
                starters: 1000,
            },
        }
    }
}

pub(crate) async fn measure(
    programs: &Programs,
    sizes: Sizes,
    rounds: usize,
    (round, long_round): (Duration, Duration),
) -> Result<Table, Failure> {
    let Sizes {
        members, starters, ..
    } = sizes;
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    let secrets = seed(programs, members)?;
    let (full, empty) = (serve(programs, "full")?, serve(programs, "empty")?);

    let (mut at_none, mut at_many) = (Vec::new(), Vec::new());
    for number in 0..=rounds {
        let fresh = format!("round-{number}");
        let sides = [
            (&empty, &*fresh, &mut at_none),
            (&full, NAMESPACE, &mut at_many),
        ];
        for (server, namespace, times) in sides {
            let used = block_in_place(|| claims(server, namespace, sizes.claims))?;
            // Round 0 is a warm-up.
            times.extend((number > 0).then_some(used * 1e3));
        }
    }
    let before = resident(full.pid())?;
    let sessions = connected(full.address, secrets).await?;
    let (mut renewals, mut cpu) = (Vec::new(), Vec::new());
    for number in 0..=rounds {
        let renewed = renew(&full, &sessions, round).await?;
        let held = hold(&full, &sessions, long_round).await?;
        if number > 0 {
            renewals.push(renewed);
            cpu.push(held * 100.0);
        }
    }
    let after = resident(full.pid())?;
    let memory = after.saturating_sub(before) as f64 / 1e3 / members as f64;
    drop(sessions);

    let mut starts = Vec::new();
    for number in 0..rounds {
        let namespace = format!("cold-{number}");
        starts.push(block_in_place(|| {
            cold_start(empty.address, &namespace, starters)
        })?);
    }
    let ratios = at_many.iter().zip(&at_none).map(|(many, none)| many / none);
    let ratios = ratios.collect();
    let mut table = Table {
        title: "Pool server",
        about: format!(
            "Over SQLite. Each member has its own connection. Those that hold a machine ID renew it every {} s; they \
             hold {} to {} of the namespace.",
            RENEW_EVERY.as_secs(),
            RANGE.start(),
            RANGE.end()
        ),
        headings: vec!["", "members", "value"],
        rows: vec![],
        bars: vec![],
    };
    let mut row = |what: &str, members: u64, values: Vec<f64>, decimals, limit| {
        let what = what.to_owned();
        if let Some(limit) = limit {
            table.bars.push(Bar {
                what: format!("pool server, {members} members: {what}"),
                values: values.clone(),
                limit,
            });
        }
        table.rows.push(Row {
            labels: vec![what, members.to_string()],
            cells: vec![Cell(values, decimals)],
        });
    };
    let most = |limit| Some(Limit::AtMost(limit));
    row("claim: server CPU, ms", 0, at_none, 2, None);
    row("claim: server CPU, ms", members, at_many, 2, None);
    row("claim, compared with none", members, ratios, 2, most(1.3));
    let least = Some(Limit::AtLeast(3000.0));
    row("renewals per second of CPU", members, renewals, 0, least);
    row(
        "holding: server CPU, % of a core",
        members,
        cpu,
        1,
        most(20.0),
    );
    row(
        "holding: server memory, kB each",
        members,
        vec![memory],
        1,
        most(100.0),
    );
    let at_once = starters as u64;
    row("start of all at once, s", at_once, starts, 2, most(10.0));
    Ok(table)
}

/// A pool server over a SQLite file of this name.
fn serve(programs: &Programs, name: &str) -> Result<Server, Failure> {
    let flags = [
        format!("--machine-store=sqlite:{name}.db"),
        format!("--state-dir={name}"),
        "--namespace=server".to_owned(),
        "--pool-server-namespaces=*".to_owned(),
        "--max-connections=16384".to_owned(),
        "--max-connections-per-address=16384".to_owned(),
    ];
    programs.server("max-peak", &flags.each_ref().map(String::as_str), None)
}

/// Fills a database with the records of members, spread over the namespace.
fn seed(programs: &Programs, members: u64) -> Result<Vec<(u64, Record)>, Failure> {
    let memory = Arc::new(MemoryStore::new());
    let leases = Leases::new(memory.clone(), NAMESPACE);
    let namespace = leases.open(&LAYOUT.fingerprint())?.uuid;
    let (seen, now) = (leases.snapshot()?, SystemClock::new().wall());
    let count = RANGE.end() + 1;
    // An odd step leads through all.
    let machines = (0..members).map(|at| at.wrapping_mul(6_151) % count);
    let record = |machine| {
        let secret = Secret::new(u128::from(machine) + 1);
        let record = Record {
            namespace,
            birth: machine + 1,
            epoch: 1,
            owner: secret.owner(),
            secret,
            host: format!("host-{machine} via pool1"),
            pid: 4711,
            version: env!("CARGO_PKG_VERSION").into(),
            claimed: now,
            info_time: now,
            bound: session::bound(now),
            ..Record::default()
        };
        leases.change(machine, None, &record)?;
        leases.mark_birth(&seen, machine, &record)?;
        Ok((machine, record))
    };
    let records = machines.map(record).collect::<Result<Vec<_>, Failure>>()?;
    let file = programs.file("full.db");
    let store = vesta_store::open(&format!("sqlite:{}", file.display()).parse()?)?;
    for area in records
        .iter()
        .map(|it| session::area(it.0))
        .collect::<BTreeSet<_>>()
    {
        let put = |(key, new)| Put {
            key,
            old: None,
            new,
            secret: Secret::default(),
        };
        let mut puts: Vec<_> = memory.list(&area)?.into_iter().map(put).collect();
        puts.sort_by(|one, other| one.key.cmp(&other.key));
        for puts in puts.chunks(AT_ONCE) {
            store.put_all(&area, puts)?;
        }
    }
    Ok(records)
}

/// A member on a separate host, with its state in the folder.
fn member(
    address: SocketAddr,
    namespace: &str,
    folder: &TempDir,
) -> Result<LocalIdService, Failure> {
    let store = vesta_store::open(&format!("vesta://{address}").parse()?)?;
    let service = LocalIdService::builder()
        .namespace(namespace)
        .layout(*LAYOUT)
        .machine(MachineSource::Pool {
            store,
            range: Some(RANGE),
        })
        .state_dir(folder.path())
        .build()?;
    Ok(service)
}

/// CPU of the server for each of some claims, in seconds.
fn claims(server: &Server, namespace: &str, count: usize) -> Result<f64, Failure> {
    let folders = (0..count).map(|_| TempDir::with_prefix("vesta-load-"));
    let folders = folders.collect::<Result<Vec<_>, _>>()?;
    let before = cpu_seconds(server.pid())?;
    let members = folders
        .iter()
        .map(|folder| member(server.address, namespace, folder))
        .collect::<Result<Vec<_>, _>>()?;
    let used = cpu_seconds(server.pid())? - before;
    drop(members); // which releases their machine IDs
    Ok(used / count as f64)
}

type Sessions = Vec<Arc<Mutex<Session>>>;

/// Opens a connection for each record, and renews each once.
async fn connected(address: SocketAddr, records: Vec<(u64, Record)>) -> Result<Sessions, Failure> {
    let identity = session::identity(address).await?;
    let mut sessions = Vec::new();
    for some in records.chunks(AT_A_TIME) {
        let mut opened = JoinSet::new();
        for (machine, record) in some.iter().cloned() {
            opened.spawn(async move {
                let mut session = Session::open(address, identity, machine, record).await?;
                session.renew().await?;
                Ok::<_, Failure>(session)
            });
        }
        while let Some(session) = opened.join_next().await {
            sessions.push(Arc::new(Mutex::new(session??)));
        }
    }
    Ok(sessions)
}

/// Renews as fast as the server answers. Returns the renewals per second of its CPU.
async fn renew(server: &Server, sessions: &Sessions, round: Duration) -> Result<f64, Failure> {
    let before = cpu_seconds(server.pid())?;
    let end = Instant::now() + round;
    let mut callers = JoinSet::new();
    for some in sessions.chunks(sessions.len().div_ceil(AT_A_TIME)) {
        let some = some.to_vec();
        callers.spawn(async move {
            let mut count = 0_u32;
            for session in some.iter().cycle() {
                if Instant::now() >= end {
                    break;
                }
                session.lock().await.renew().await?;
                count += 1;
            }
            Ok::<_, Failure>(count)
        });
    }
    let mut count = 0.0;
    while let Some(done) = callers.join_next().await {
        count += f64::from(done??);
    }
    Ok(count / (cpu_seconds(server.pid())? - before))
}

/// Renews each session when it is due, evenly over time. Returns the CPU that the server used per second.
async fn hold(server: &Server, sessions: &Sessions, round: Duration) -> Result<f64, Failure> {
    let gap = RENEW_EVERY.div_f64(sessions.len() as f64);
    let (before, began) = (cpu_seconds(server.pid())?, Instant::now());
    let mut renewals = JoinSet::new();
    let mut due = began;
    for session in sessions.iter().cycle() {
        due += gap;
        if due > began + round {
            break;
        }
        sleep_until(due).await;
        let session = session.clone();
        renewals.spawn(async move { session.lock().await.renew().await });
    }
    while let Some(done) = renewals.join_next().await {
        done??;
    }
    Ok((cpu_seconds(server.pid())? - before) / began.elapsed().as_secs_f64())
}

/// Seconds until each of these members, which start at once on an empty namespace, has its first ID.
fn cold_start(address: SocketAddr, namespace: &str, starters: usize) -> Result<f64, Failure> {
    let start = Arc::new(Barrier::new(starters + 1));
    let starter = |_| {
        let (start, namespace) = (start.clone(), namespace.to_owned());
        let folder = TempDir::with_prefix("vesta-load-")?;
        let run = move || {
            start.wait();
            let service = member(address, &namespace, &folder)?;
            service.gen_id()?;
            Ok::<_, Failure>((Instant::now(), service, folder))
        };
        let small = thread::Builder::new().stack_size(512 << 10);
        Ok::<_, Failure>(small.spawn(run)?)
    };
    let running = (0..starters).map(starter).collect::<Result<Vec<_>, _>>()?;
    start.wait();
    let (began, mut last, mut started) = (Instant::now(), Duration::ZERO, Vec::new());
    for running in running {
        let (at, service, folder) = running.join().map_err(|_| "a starter panicked")??;
        last = last.max(at.saturating_duration_since(began));
        started.push((service, folder));
    }
    Ok(last.as_secs_f64())
}

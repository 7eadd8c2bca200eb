//! Members without a database, and two pool servers of one store that are killed, paused, cut off, and stood in
//! for by a pool server of another store. Members are killed and paused, too.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::lease::Leases;
use vesta_store::conformance::Proxy;
use vesta_testkit::fleet::free_ports;
use vesta_testkit::programs::Program;
use vesta_testkit::{Rng, folder, full_or};

use crate::callers::Api;
use crate::plan::Kind;
use crate::process::{Process, program};
use crate::watch::Watch;
use crate::world::World;

/// Faults between which the members go on, in milliseconds.
const PACE: u64 = 400;

mod torture {
    #[test]
    fn members_of_two_pool_servers_repeat_nothing() {
        super::members_of_two_pool_servers_repeat_nothing();
    }
}

/// A pool server that can be stopped, behind an address that can be cut off.
struct PoolServer {
    folder: PathBuf,
    address: SocketAddr,
    proxy: Proxy,
    running: Option<Program>,
}

impl PoolServer {
    fn start(folder: PathBuf, store: &Path, namespace: &str) -> Self {
        let address = (Ipv4Addr::LOCALHOST, free_ports(1)[0]).into();
        let proxy = Proxy::start(address).expect("a free port");
        let mut pool_server = Self {
            folder,
            address,
            proxy,
            running: None,
        };
        pool_server.serve(store, namespace);
        pool_server
    }

    /// Starts it with the store in this file.
    fn serve(&mut self, store: &Path, namespace: &str) {
        let mut command = Command::new(program("vesta-server"));
        let store = format!("sqlite:{}", store.display());
        let listen = self.address.to_string();
        command.env_clear().args(["--grpc-listen", &listen]);
        command.args(["--admin-listen", "127.0.0.1:0", "--log-level", "error"]);
        command.args([
            "--machine-store",
            &store,
            "--pool-server-namespaces",
            namespace,
        ]);
        command.arg("--state-dir").arg(&self.folder);
        let running = Program::serve(&mut command);
        self.running = Some(running.unwrap_or_else(|ended| panic!("{ended:?}")));
    }

    fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    fn running(&self) -> &Program {
        self.running.as_ref().expect("it runs")
    }
}

/// Members that do not outlive a failed test.
struct Members(Vec<Arc<Process>>);

impl Drop for Members {
    fn drop(&mut self) {
        for member in &self.0 {
            member.kill();
        }
    }
}

fn members_of_two_pool_servers_repeat_nothing() {
    let (count, seconds, without) = full_or((50, 180, 25), (30, 20, 6));
    let (folder, watch) = (folder(), Arc::new(Watch::new()));
    let mut rng = Rng::new(37);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let api = Api::Grpc(runtime.handle().clone());

    let store = folder.path().join("pool-server.db");
    let namespace = vesta_testkit::namespace_of(folder.path());
    let served = format!("{namespace}-pool_server");
    let mut pool_servers = ["a", "b"].map(|name| {
        let folder = folder.path().join(name);
        PoolServer::start(folder, &store, &served)
    });
    let addresses = pool_servers
        .each_ref()
        .map(|it| it.proxy.address().to_string());
    let url = format!("vesta://{}", addresses.join(","));
    let kind = Kind::Network {
        can_fail_over: false,
        can_refuse: false,
    };
    let world = World::with_own_durations("pool_server", kind, url, folder.path());
    let world = Arc::new(world);
    let member = |number: usize, rng: &mut Rng| {
        let name = format!("member {number}");
        let state = world.state(&name);
        fs::create_dir_all(&state).expect("a folder");
        let mut command = world.command(&program("vesta-server"), &state, 0, rng);
        Process::start(&mut command, &name, &world, &watch, api.clone())
    };
    let mut members = Members(Vec::new());
    for number in 0..count {
        members.0.push(member(number, &mut rng));
    }
    let mut ended = Vec::new();

    let (mut counts, mut paused) = ([0; 5], None::<usize>);
    while watch.elapsed() < Duration::from_secs(seconds) {
        watch.over.within(Duration::from_millis(PACE));
        if let Some(number) = paused.take() {
            members.0[number].resume();
        }
        let (number, at) = (
            usize::try_from(rng.below(count as u64)).expect("small"),
            usize::from(rng.percent(50)),
        );
        let away = Duration::from_millis(rng.span(2000));
        let pool_server = &mut pool_servers[at];
        let what = rng.weighed(&[(30, 0), (15, 1), (25, 2), (15, 3), (15, 4)]);
        counts[what] += 1;
        match what {
            0 => {
                members.0[number].kill();
                let again = member(number, &mut rng);
                ended.push(std::mem::replace(&mut members.0[number], again));
            }
            1 => {
                members.0[number].pause();
                paused = Some(number);
            }
            2 => {
                pool_server.kill();
                watch.over.within(away);
                pool_server.serve(&store, &served);
            }
            3 => {
                pool_server.running().pause();
                watch.over.within(away);
                pool_server.running().resume();
            }
            _ => {
                pool_server.proxy.refuse();
                watch.over.within(away);
                pool_server.proxy.heal();
            }
        }
    }
    if let Some(number) = paused {
        members.0[number].resume();
    }
    let [kills, pauses, pool_server_kills, pool_server_pauses, cuts] = counts;

    // A pool server of another store stands in: no member claims there.
    let others = folder.path().join("other.db");
    for pool_server in &mut pool_servers {
        pool_server.kill();
    }
    let own = std::mem::replace(&mut pool_servers[0].folder, folder.path().join("other"));
    pool_servers[0].serve(&others, &served);
    watch.over.within(Duration::from_secs(2));
    pool_servers[0].kill();
    pool_servers[0].folder = own;
    let other = format!("sqlite:{}", others.display())
        .parse()
        .expect("a URL");
    let other = Leases::new(vesta_store::open(&other).expect("it opens"), &served);
    assert_eq!(
        other.find().expect("it answers"),
        None,
        "somebody claimed there"
    );

    // Without any pool server, members go on with what they have reserved.
    let (ids, awaiting) = (world.ledger().ids, world.awaiting());
    watch.over.within(Duration::from_secs(without));
    let (made, errors) = (world.ledger().ids - ids, world.awaiting() - awaiting);
    for pool_server in &mut pool_servers {
        pool_server.serve(&store, &served);
    }
    watch.over.set();
    for process in members.0.iter().chain(&ended) {
        process.kill();
        assert!(process.join());
    }
    let ledger = world.ledger();
    println!(
        "pool_server  | {count} members: {kills} kills, {pauses} pauses; pool_servers: {pool_server_kills} kills, \
         {pool_server_pauses} pauses, {cuts} times cut off; {} IDs of {} machine IDs, {} twice; {without} s without \
         a pool_server: {made} IDs, {errors} errors",
        ledger.ids,
        ledger.machines(),
        ledger.duplicates,
    );
    assert!(ledger.findings.is_empty(), "{:#?}", ledger.findings);
    assert_eq!(errors, 0, "without a pool_server");
    assert!(made > 0 && ledger.ids >= 20_000_000);
}

//! A real fail-over to a real lagging replica: the store forgets acknowledged writes.

use std::time::Duration;

use vesta_store::conformance::Proxy;
use vesta_store::{Options, open_worker_nodes};

use vesta_testkit::fleet::{Ledger, StoreServers, now};

use crate::refusals::make_table;
use crate::server::Server;
use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::World;

/// How long the new owner continues once the old one is back: longer than a renewal takes.
const AFTERWARDS: Duration = Duration::from_secs(16);
const KNOWS_THE_NAMESPACE: bool = true;

/// One process starts just before and continues; another starts just after and wants the same
/// machine ID.
pub(crate) fn nothing_repeats_when_a_lagging_replica_takes_over(store: &Store) {
    let server = Server::with_replica(store);
    let doubt = |url: &str| {
        vesta_store::open(&url.parse().unwrap())
            .unwrap()
            .doubt()
            .unwrap()
            .expect("a doubt")
    };
    assert!(doubt(&server.url()).why.contains("replicas"));
    fail_over(&server, store, KNOWS_THE_NAMESPACE, Server::fail_over);
    assert!(doubt(&server.replica_url()).took_over);
}

/// Only the doubt recorded in the namespace shows that there was a replica.
pub(crate) fn nothing_repeats_when_a_restarted_replica_takes_over(store: &Store) {
    let server = Server::with_replica(store);
    fail_over(&server, store, KNOWS_THE_NAMESPACE, |server| {
        server.fail_over();
        server.restart_replica();
    });
    assert_eq!(
        vesta_store::open(&server.replica_url().parse().unwrap())
            .unwrap()
            .doubt()
            .unwrap(),
        None
    );
}

/// As if it had been cut off for a long time.
pub(crate) fn nothing_repeats_when_a_replica_without_the_namespace_takes_over(store: &Store) {
    fail_over(
        &Server::with_replica(store),
        store,
        !KNOWS_THE_NAMESPACE,
        Server::fail_over,
    );
}

fn fail_over(server: &Server, store: &Store, knows_the_namespace: bool, switch: fn(&Server)) {
    let urls = [server.url(), server.replica_url()];
    let addresses = urls
        .each_ref()
        .map(|url| StoreServers::address(url).expect("a server"));
    // The server that takes over gets the old address.
    let [proxy, proxy_of_before] =
        [(); 2].map(|()| Proxy::start(&addresses[..]).expect("a free port"));
    let through =
        |proxy: &Proxy| urls[0].replace(&addresses[0].to_string(), &proxy.address().to_string());
    let url = through(&proxy);
    let world = World::at(store, &url);
    let namespace = world.namespace();
    let task = |host: &str| Task {
        timing: None, // the defaults
        range: Some(5..=5),
        ..world.task(&namespace, host)
    };

    // The replica has the tables, but no data.
    make_table(&url);
    if knows_the_namespace {
        // It has no record of that machine ID.
        launch(&Task {
            range: Some(6..=6),
            ..task("other")
        })
        .until_ids();
    }
    server.run("lag");
    let mut before = launch(&Task {
        url: through(&proxy_of_before),
        ..task("before")
    });
    let waited = before.until_first_id();
    let failed = now();
    // If the old owner reached the new server first, it would claim its machine ID again.
    proxy_of_before.refuse();
    switch(server);
    let mut after = launch(&task("after"));
    after.until_ids();
    let there = now() - failed;
    before.until_held(); // it continued alone, to the end of its window
    proxy_of_before.heal();
    after.listen(AFTERWARDS);
    before.listen(Duration::ZERO);
    before.kill();
    after.close();

    let mut checker = Ledger::new(LAYOUT);
    for process in [&before, &after] {
        checker.check(&process.ids).unwrap();
    }
    println!(
        "{:9} | fail-over to a replica that lags: {} and {} IDs of one machine ID, 0 twice; \
         first ID {waited:.1?} after a start, {there:.1?} after the fail-over",
        world.name,
        before.ids.len(),
        after.ids.len(),
    );
}

/// Outside the promise: only the table records such a number, and no distance in time protects it. The
/// start warns about it instead.
pub(crate) fn a_disposable_number_repeats_after_a_fail_over_to_a_lagging_replica(store: &Store) {
    let server = Server::with_replica(store);
    // The test must know every number, so it waits even if the disk is busy.
    let options = Options {
        request_timeout: Some(Duration::from_secs(60)),
        ..Options::default()
    };
    let insert = |url: &str| {
        let nodes = open_worker_nodes(&url.parse().unwrap(), &options).unwrap();
        let number = nodes.insert("host", 1).unwrap();
        (number, nodes.doubt().unwrap())
    };
    assert!(insert(&server.url()).1.is_some());
    server.run("lag");
    // PostgreSQL logs 32 numbers at a time.
    let lost: Vec<_> = (0..40).map(|_| insert(&server.url()).0).collect();
    server.fail_over();
    let (number, doubt) = insert(&server.replica_url());
    println!(
        "{:9} | of {lost:?}, used once, {number} comes again",
        store.name
    );
    assert!(lost.contains(&number) && doubt.is_some());
}

//! Processes at another server than the one that wrote to their namespace last. It is a replica that can be written and
//! hides that it is one, or it took over.

use vesta_service::lease::Leases;
use vesta_store::Options;

use vesta_testkit::fleet::Ledger;

use crate::refusals::{as_app, make_table};
use crate::server::Server;
use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::World;

/// The namespace as the replica shows it, once it has arrived there.
fn replicated(url: &str, namespace: &str) -> Leases {
    let options = Options {
        one_writer: true,
        ..Options::default()
    };
    let store = vesta_store::open_with(&url.parse().unwrap(), &options).unwrap();
    let leases = Leases::new(store, namespace);
    while !leases
        .find()
        .is_ok_and(|it| it.is_some_and(|it| it.writer.is_some()))
    {}
    leases
}

/// One process at the primary; another at a writable replica whose replication is stopped, first without the privilege
/// to see that, then with it, then once nothing is configured any more.
pub(crate) fn another_server_is_refused_or_doubted(store: &Store) {
    let server = Server::start(store);
    let world = World::at(store, &server.url());
    make_table(&server.url());
    let namespace = world.namespace();
    let mut first = launch(&Task {
        range: Some(5..=5),
        ..world.task(&namespace, "first")
    });
    first.until_ids();
    server.replicate_writable();
    let replica = server.replica_url();
    let leases = replicated(&replica, &namespace);
    let written = leases.find().unwrap().and_then(|it| it.writer);
    let written = written.expect("the primary");

    let second = World::at(store, &as_app(&replica));
    let second = |host: &str| Task {
        range: Some(5..=5),
        ..second.task(&namespace, host)
    };
    if store.name == "mysql" {
        server.run("lag");
        server.sql_on_replica(
            "SET sql_log_bin = 0; SET GLOBAL read_only = 0; CREATE USER app@'%' IDENTIFIED BY 'app';
             GRANT SELECT, INSERT, UPDATE ON vesta.* TO app@'%'",
        );
        let said = launch(&second("unseen")).until_refused();
        println!(
            "{:9} | {}",
            store.name,
            said.lines().next().unwrap_or_default()
        );
        for part in [
            &*format!("server `{written}` wrote"),
            "GRANT REPLICA MONITOR ON *.* TO 'app'@'%'",
            "machine.store_trust = \"one_writer\"",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        server.sql_on_replica("GRANT REPLICA MONITOR ON *.* TO app@'%'");
        let said = launch(&second("stopped")).until_refused();
        assert!(said.contains("replicates from 127.0.0.1:"), "{said}");
    } else {
        // Everyone sees subscriptions, and a disabled one still counts.
        server.sql_on_replica(
            "CREATE ROLE app LOGIN PASSWORD 'app'; GRANT ALL ON vesta_kv TO app;
             ALTER SUBSCRIPTION vesta DISABLE",
        );
        let said = launch(&second("stopped")).until_refused();
        assert!(said.contains("replicates from another one by"), "{said}");
    }
    let now = leases.find().unwrap().expect("as before");
    assert_eq!(now.writer.as_ref(), Some(&written), "nothing was written");

    // A fail-over: the old server and its holder are gone.
    first.kill();
    server.run("promote");
    let defaults = |host: &str| Task {
        timing: None,
        ..second(host)
    };
    let mut after = launch(&defaults("after"));
    let now = loop {
        let now = leases.find().unwrap().expect("as before");
        if now.doubt.is_some() {
            break now;
        }
    };
    let (writer, doubt) = (now.writer.expect("a server"), now.doubt.expect("a doubt"));
    let took_over = format!("server `{writer}` took over from server `{written}`");
    assert!(doubt.why.contains(&took_over), "{}", doubt.why);
    if !vesta_testkit::full_or(true, false) {
        return; // the first ID comes only after the reach of the doubt, two minutes later
    }
    after.until_first_id();
    after.close();
    let mut checker = Ledger::new(LAYOUT);
    for process in [&first, &after] {
        checker.check(&process.ids).unwrap();
    }
    println!(
        "{:9} | {} and {} IDs of one machine ID at two servers, 0 twice",
        store.name,
        first.ids.len(),
        after.ids.len()
    );
    if store.name == "mysql" {
        // The new server is known now.
        server.sql_on_replica("REVOKE REPLICA MONITOR ON *.* FROM app@'%'");
        let mut again = launch(&defaults("again"));
        again.until_first_id();
        again.close();
        checker.check(&again.ids).unwrap();
    }
}

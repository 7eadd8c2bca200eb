//! Databases that refuse for a while (a privilege is revoked, a table renamed, an account locked, a password
//! changed), and databases that replicate from another one.

use vesta_service::lease::StoreError;
use vesta_store::{Options, open_segments, open_worker_nodes};

use vesta_testkit::fleet::{Ledger, now};

use crate::segments::{Switch, outages};
use crate::server::Server;
use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::{HASTY, PATIENT, World};

/// Statements that make a server replicate from an unreachable one, and statements that stop this.
fn replication(store: &Store) -> [&'static str; 2] {
    match store.name {
        "mysql" => [
            "CHANGE MASTER TO master_host = '127.0.0.1', master_port = 1, master_user = 'x'",
            "STOP SLAVE; RESET SLAVE ALL",
        ],
        _ => [
            "CREATE SUBSCRIPTION other CONNECTION 'host=127.0.0.1 port=1 dbname=x' PUBLICATION x
               WITH (connect = false, slot_name = NONE);
             INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)
               SELECT oid, 'vesta_kv'::regclass, 'r' FROM pg_subscription",
            "DROP SUBSCRIPTION other",
        ],
    }
}

/// Every use of this database that hands out IDs or numbers.
fn uses(url: &str) -> [Result<(), StoreError>; 4] {
    let options = Options {
        auto_init: false,
        ..Options::default()
    };
    let store = vesta_store::open_with(&url.parse().unwrap(), &options).unwrap();
    [
        store.doubt().map(drop),
        store.put_if("lease/x", "1", None, "x").map(drop),
        open_segments(&url.parse().unwrap(), &options)
            .unwrap()
            .next_range("orders", 1)
            .map(drop),
        open_worker_nodes(&url.parse().unwrap(), &options)
            .unwrap()
            .insert("host", 1)
            .map(drop),
    ]
}

/// One process on the primary, one on a writable replica.
pub(crate) fn a_server_that_replicates_from_another_is_refused(store: &Store) {
    let server = Server::start(store);
    let world = World::at(store, &server.url());
    let namespace = world.namespace();
    let mut first = launch(&world.task(&namespace, "first"));
    first.until_ids();
    open_segments(&server.url().parse().unwrap(), &Options::default())
        .unwrap()
        .tags()
        .unwrap();
    open_worker_nodes(&server.url().parse().unwrap(), &Options::default())
        .unwrap()
        .insert("host", 1)
        .unwrap();
    server.replicate_writable();

    let replica = server.replica_url();
    let second = World::at(store, &replica);
    let task = second.task(&namespace, "second");
    let said = launch(&task).until_refused();
    println!(
        "{:9} | {}",
        store.name,
        said.split(" Store").next().unwrap_or_default()
    );
    for answer in uses(&replica) {
        let said = answer.expect_err("refused").to_string();
        assert!(
            said.contains("replicates from") && said.contains("use the primary"),
            "{said}"
        );
    }
    assert!(said.contains("replicates from"), "{said}");
    if store.name == "mysql" {
        let (_, source) = world.url().rsplit_once('@').expect("a password");
        assert!(said.contains(source.trim_end_matches("/vesta")), "{said}");
        // A user who may not see which source it is.
        server.sql_on_replica(
            "SET sql_log_bin = 0; CREATE USER app@'%' IDENTIFIED BY 'app';
             GRANT SELECT, INSERT, UPDATE ON vesta.* TO app@'%'",
        );
        let said = vesta_store::open(&as_app(&replica).parse().unwrap())
            .unwrap()
            .list("lease/x")
            .unwrap_err();
        assert!(
            said.to_string().contains("which this user may not see"),
            "{said}"
        );
    }
    let word = Options {
        one_writer: true,
        ..Options::default()
    };
    let doubt = vesta_store::open_with(&replica.parse().unwrap(), &word)
        .unwrap()
        .doubt()
        .unwrap();
    let why = doubt.expect("a doubt").why;
    assert!(why.contains("replicates from"), "{why}");
    first.kill();
    server.run("promote");
    if store.name == "postgres" {
        // Logical replication does not copy sequences: an operator advances them.
        server.sql_on_replica(
            "SELECT setval(pg_get_serial_sequence('worker_node', 'id'), max(id)) FROM worker_node",
        );
    }
    for answer in uses(&replica) {
        answer.expect("it is an independent server");
    }
    if store.name == "mysql" {
        // Without the privilege two looks show that it no longer replicates; only a claim waits for the
        // second.
        let app = vesta_store::open(&as_app(&replica).parse().unwrap()).unwrap();
        app.list("lease/x").unwrap();
        let said = app.doubt().unwrap_err();
        assert!(
            !said.is_permanent() && said.to_string().contains("within a second"),
            "{said}"
        );
        while app.doubt().is_err() {}
    }
}

/// The server of a holder becomes a replica between two looks.
pub(crate) fn a_server_that_becomes_a_replica_is_unused_until_primary_again(store: &Store) {
    let server = Server::start(store);
    let world = World::at(store, &server.url());
    let namespace = world.namespace();
    let mut holder = launch(&world.task(&namespace, "holder"));
    holder.until_ids();
    let looked_at = vesta_store::open(&world.url().parse().unwrap()).unwrap();
    looked_at.doubt().unwrap();
    let [follow, lead] = replication(store);
    server.sql(follow);
    let said = looked_at
        .doubt()
        .expect_err("seen over the open connection")
        .to_string();
    assert!(said.contains("replicates from"), "{said}");
    server.run("kill"); // new connections inspect it
    server.run("start");
    holder.until_held();
    holder.listen(HASTY.window);
    let before = holder.ids.len();
    server.sql(lead);
    let is_back = now();
    let recovered = holder.until_ids_after(is_back) - is_back;
    println!(
        "{:9} | turned replica: {before} IDs, then none; recovered in {recovered:.0?}",
        store.name
    );
    holder.check_holds();
    holder.close();
    assert_eq!(holder.machines.len(), 1);
    Ledger::new(LAYOUT).check(&holder.ids).unwrap();
}

/// The privileges without `CREATE`: an empty table would block the original.
const GRANT: &str = "GRANT SELECT, INSERT, UPDATE ON vesta.vesta_kv TO app@'%'; \
                     GRANT SELECT, INSERT, UPDATE ON vesta.leaf_alloc TO app@'%'";

/// Ways to refuse: name, start and end of each.
fn refusals(store: &Store) -> [[&'static str; 3]; 4] {
    match store.name {
        "mysql" => [
            [
                "privileges revoked",
                "REVOKE ALL ON vesta.vesta_kv FROM app@'%'; REVOKE ALL ON vesta.leaf_alloc FROM app@'%'",
                GRANT,
            ],
            [
                "tables renamed",
                "RENAME TABLE vesta_kv TO kv_away, leaf_alloc TO leaf_away",
                "RENAME TABLE kv_away TO vesta_kv, leaf_away TO leaf_alloc",
            ],
            [
                "account locked",
                "ALTER USER app@'%' ACCOUNT LOCK; KILL USER app",
                "ALTER USER app@'%' ACCOUNT UNLOCK",
            ],
            [
                "password changed",
                "ALTER USER app@'%' IDENTIFIED BY 'other'; KILL USER app",
                "ALTER USER app@'%' IDENTIFIED BY 'app'",
            ],
        ],
        _ => [
            [
                "privileges revoked",
                "REVOKE ALL ON vesta_kv, leaf_alloc FROM app",
                "GRANT ALL ON vesta_kv, leaf_alloc TO app",
            ],
            [
                "tables renamed",
                "ALTER TABLE vesta_kv RENAME TO kv_away; ALTER TABLE leaf_alloc RENAME TO leaf_away",
                "ALTER TABLE kv_away RENAME TO vesta_kv; ALTER TABLE leaf_away RENAME TO leaf_alloc",
            ],
            [
                "account locked",
                "ALTER ROLE app NOLOGIN;
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'",
                "ALTER ROLE app LOGIN",
            ],
            [
                "password changed",
                "ALTER ROLE app PASSWORD 'other';
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'",
                "ALTER ROLE app PASSWORD 'app'",
            ],
        ],
    }
}

/// The URL of a user whose privileges, password and account change.
pub(crate) fn as_app(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a scheme");
    let (_, place) = rest.rsplit_once('@').expect("a password");
    format!("{scheme}://app:app@{place}")
}

/// The first entry creates the table of machine IDs.
pub(crate) fn make_table(url: &str) {
    assert!(
        vesta_store::open(&url.parse().unwrap())
            .unwrap()
            .put_if("lease/none", "x", None, "x")
            .unwrap()
    );
}

/// A server with its tables, and such a user.
fn with_app(store: &Store) -> (Server, String) {
    let server = Server::start(store);
    let url = server.url();
    make_table(&url);
    open_segments(&url.parse().unwrap(), &Options::default())
        .unwrap()
        .tags()
        .unwrap();
    if store.name == "mysql" {
        server.sql(&format!("CREATE USER app@'%' IDENTIFIED BY 'app'; {GRANT}"));
    } else {
        server
            .sql("CREATE ROLE app LOGIN PASSWORD 'app'; GRANT ALL ON vesta_kv, leaf_alloc TO app");
    }
    (server, as_app(&url))
}

/// A process that restarts meanwhile remembers its machine ID; its user may create tables.
pub(crate) fn a_restart_leaves_no_empty_table_in_place_of_a_renamed_one(store: &Store) {
    let (server, _) = with_app(store);
    let world = World::at(store, &server.url());
    let task = world.task(&world.namespace(), "host");
    let [_, [_, begin, end], ..] = refusals(store);
    let mut before = launch(&task);
    before.until_ids();
    before.kill();
    server.sql(begin);
    let said = launch(&task).until_refused();
    assert!(said.contains("has forgotten that machine ID"), "{said}");
    server.sql(end);
    let mut after = launch(&task);
    after.until_ids();
    after.close();
    assert_eq!(after.machines, before.machines);
    let mut checker = Ledger::new(LAYOUT);
    checker.check(&before.ids).unwrap();
    checker.check(&after.ids).unwrap();
}

/// One process whose window outlasts the refusal, one whose window does not, and one that starts meanwhile
/// and waits for its store. A wrong password fails a start at once.
pub(crate) fn a_refusal_ends_neither_holders_nor_waiting_starters(store: &Store) {
    let (server, url) = with_app(store);
    let world = World::at(store, &url);
    let namespace = world.namespace();
    let task = |host: &str, timing| Task {
        timing: Some(timing),
        ..world.task(&namespace, host)
    };
    let [mut patient, mut hasty] = [PATIENT, HASTY].map(|timing| {
        let mut process = launch(&task(&format!("{timing:?}"), timing));
        process.until_ids();
        process
    });
    let mut checker = Ledger::new(LAYOUT);
    for [way, begin, end] in refusals(store) {
        server.sql(begin);
        let started = Task {
            patient: true,
            ..task(way, HASTY)
        };
        let mut starter = launch(&started);
        hasty.until_held();
        let refused = (way == "password changed").then(|| starter.until_refused());
        hasty.listen(HASTY.window);
        server.sql(end);
        let is_back = now();
        let recovered = hasty.until_ids_after(is_back) - is_back;
        patient.until_ids_after(is_back + recovered);
        println!(
            "{:9} | {way}: held, recovered in {recovered:.0?}",
            store.name
        );
        match refused {
            Some(said) => assert!(said.contains("check the user, the password"), "{said}"),
            None => {
                starter.until_ids();
                starter.close();
                checker.check(&starter.ids).unwrap();
            }
        }
        assert_eq!(patient.held, [""; 0], "{way}");
        hasty.check_holds();
    }
    for process in [&mut patient, &mut hasty] {
        process.close();
        assert_eq!(process.machines.len(), 1, "nobody lost its machine ID");
        checker.check(&process.ids).unwrap();
    }
}

pub(crate) fn nothing_repeats_while_calls_wait_for_refused_tags(store: &Store) {
    let (server, url) = with_app(store);
    let (server, ways) = (&server, refusals(store));
    let switches =
        ways.map(|[way, begin, end]| (way, move || server.sql(begin), move || server.sql(end)));
    let ways: Vec<(_, Switch<'_>, Switch<'_>)> = switches
        .iter()
        .map(|(way, begin, end)| (*way, begin as _, end as _))
        .collect();
    outages(&World::at(store, &url), &ways);
}

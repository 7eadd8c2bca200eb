//! IDs of PostgreSQL beside other readers, roles and transactions.

use vesta_testkit::lacks;

use super::super::databases::Database;
use super::crashes::Server;
use super::generate;

#[test]
fn ids_of_postgres_are_not_seen_in_change_data_capture() {
    if lacks("faketime") {
        return;
    }
    let server = Server::start();
    for sql in [
        "ALTER SYSTEM SET wal_level = 'logical'",
        "ALTER ROLE vesta REPLICATION",
    ] {
        server.servers.run("sql", &["postgres", sql]);
    }
    server.crash("+0");
    let mut session = server.connect();
    server.run(&mut session, &generate("min-granularity", 7, "public"));
    let slot = "SELECT pg_create_logical_replication_slot('captured', 'test_decoding')::text";
    server.run(&mut session, slot);
    server.run(&mut session, "CREATE TABLE orders (id bigint)");
    let mut captured = |work: &str| -> Vec<String> {
        server.run(&mut session, work);
        let changes = "SELECT data FROM pg_logical_slot_get_changes('captured', NULL, NULL, \
                       'skip-empty-xacts', '1') WHERE data NOT LIKE 'BEGIN%' \
                       AND data NOT LIKE 'COMMIT%'";
        server.texts(&mut session, changes)
    };
    let read = "SELECT vesta_id() FROM generate_series(1, 2000)";
    assert_eq!(captured(read), [""; 0]);
    let rows = captured("INSERT INTO orders SELECT vesta_id() FROM generate_series(1, 2000)");
    assert_eq!(rows.len(), 2000);
    assert!(rows.iter().all(|row| row.contains("orders: INSERT")));
    // A message would be seen.
    let planted = captured("SELECT pg_logical_emit_message(true, 'vesta', '')::text");
    assert!(planted.len() == 1 && planted[0].contains("vesta"));
}

#[test]
fn a_role_of_postgres_that_can_only_log_in_can_stop_no_insert() {
    if lacks("faketime") {
        return;
    }
    let server = Server::start();
    let mut session = server.connect();
    server.run(&mut session, &generate("min-granularity", 7, "public"));
    let role = "CREATE ROLE guest LOGIN; GRANT guest TO vesta";
    server.servers.run("sql", &["postgres", role]);
    let mut guest = server.connect();
    server.run(&mut guest, "SET ROLE guest");
    let locks = "BEGIN; SELECT pg_advisory_lock(hashtextextended('public.vesta_id', 0))";
    server.run(&mut guest, locks);
    for denied in [
        "LOCK TABLE vesta_lock IN ACCESS SHARE MODE",
        "LOCK TABLE vesta_lock IN SHARE UPDATE EXCLUSIVE MODE",
        "SELECT FROM vesta_lock FOR UPDATE",
        "ALTER SEQUENCE vesta_base OWNED BY NONE",
        "SELECT setval('vesta_base', 0)",
        "SELECT nextval('vesta_count')",
        "SELECT last_value FROM vesta_home",
        "DROP TABLE vesta_lock",
    ] {
        let sql = format!("SAVEPOINT it; {denied}");
        let said = server.ask(&mut guest, &sql).expect_err(denied);
        let refused = said.contains("permission denied") || said.contains("must be owner");
        assert!(refused, "{denied}: {said}");
        server.run(&mut guest, "ROLLBACK TO it");
    }
    // It takes IDs itself in a transaction that stays open.
    let call = "SELECT vesta_id() FROM generate_series(1, 2000)";
    server.run(&mut guest, call);
    server.run(&mut session, "SET statement_timeout = '20s'");
    server.run(&mut session, call);
}

/// A commit in two phases keeps the locks of its transaction until it is ended.
#[test]
fn a_prepared_transaction_of_postgres_that_took_ids_keeps_no_other_waiting() {
    if lacks("faketime") {
        return;
    }
    let server = Server::start();
    let set = "ALTER SYSTEM SET max_prepared_transactions = 5";
    server.servers.run("sql", &["postgres", set]);
    server.crash("+0");
    let mut session = server.connect();
    server.run(&mut session, &generate("min-granularity", 7, "public"));
    let call = "SELECT vesta_id() FROM generate_series(1, 2000)";
    server.run(&mut session, "BEGIN");
    let mut all = server.ids(&mut session, call);
    server.run(&mut session, "PREPARE TRANSACTION 'mine'");
    server.run(&mut session, "SET statement_timeout = '20s'");
    all.extend(server.ids(&mut session, call));
    server.crash("+0");
    let mut session = server.connect();
    server.run(&mut session, "SET statement_timeout = '20s'");
    all.extend(server.ids(&mut session, call));
    server.run(&mut session, "COMMIT PREPARED 'mine'");
    all.extend(server.ids(&mut session, call));
    assert!(all.is_sorted_by(|a, b| a < b));
}

#[test]
fn parallel_workers_of_postgres_take_no_ids() {
    let mut database = Database::of_postgres();
    let schema = database.name().to_owned();
    database.rows(&generate("max-peak", 7, &schema));
    database.rows(
        "CREATE TABLE many AS SELECT FROM generate_series(1, 1000); SET parallel_setup_cost = 0; \
         SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
    );
    let plan = |database: &mut Database, call: &str| {
        let rows = database.rows(&format!("EXPLAIN SELECT {call} FROM many"));
        let lines = rows.into_iter().filter_map(|mut row| row.remove(0));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert!(plan(&mut database, "1").contains("Parallel"));
    let with = plan(&mut database, "vesta_id()");
    assert!(!with.contains("Parallel"), "{with}");
}

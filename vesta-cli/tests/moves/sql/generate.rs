//! `vesta sql --generate` and `--gapless`: IDs and numbers that databases make themselves.

mod copies;
mod costs;
mod crashes;
mod others;

use std::fs;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use vesta_explain::layouts;
use vesta_intf::{Field, Id, IdMeta, UnixMillis};
use vesta_testkit::fleet::store_url;
use vesta_testkit::folder;

use super::databases::Database;
use super::vesta;

/// The SQL of a layout, for one schema.
fn generate(layout: &str, machine: u64, schema: &str) -> String {
    generate_with(layout, machine, schema, &[]).replace("\\set ON_ERROR_STOP on\n", "")
}

/// The same with more options, as for psql.
fn generate_with(layout: &str, machine: u64, schema: &str, more: &[&str]) -> String {
    let machine = machine.to_string();
    let what = ["sql", "--generate", "--dialect", "postgres"];
    let of = [
        "--layout",
        layout,
        "--machine",
        &machine,
        "--schema",
        schema,
    ];
    vesta(&[&what[..], &of, more].concat())
}

/// The IDs that a query returns, in order.
fn ids(database: &mut Database, sql: &str) -> Vec<u64> {
    let rows = database.rows(sql).into_iter();
    let id = |row: Vec<Option<String>>| row[0].as_ref()?.parse().ok();
    rows.map(|row| id(row).expect("a positive ID")).collect()
}

/// The clock of the database.
fn clock(database: &mut Database) -> UnixMillis {
    let now = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    UnixMillis(ids(database, now)[0])
}

fn uninstall(database: &mut Database) {
    let schema = database.name().to_owned();
    database.rows(&format!(
        "DROP FUNCTION {schema}.vesta_id(), {schema}.vesta_here(); DROP TABLE {schema}.vesta_lock; \
         DROP SEQUENCE {schema}.vesta_base, {schema}.vesta_count, {schema}.vesta_home"
    ));
}

/// Layouts in which PostgreSQL can make IDs today.
fn layouts() -> Vec<IdMeta> {
    let last = |layout: &IdMeta| {
        let id = Id {
            time: layout.max(Field::Time),
            gen_method: layout.max(Field::GenMethod),
            ..layout.blank()
        };
        layout.pack(&id).expect("an ID")
    };
    layouts::all()
        .filter(|layout| layout.check_generates().is_ok() && last(layout) < 1 << 63)
        .filter(|layout| layout.name() != "uid")
        .collect()
}

#[test]
fn ids_of_postgres_have_the_fields_of_each_layout_and_ascend() {
    let mut database = Database::of_postgres();
    let schema = database.name().to_owned();
    assert!(layouts().len() > 10);
    for layout in layouts() {
        let (name, machine) = (layout.name(), layout.max(Field::Machine) - 1);
        database.rows(&generate(name, machine, &schema));
        let before = layout.tick_at(clock(&mut database)).expect("inside");
        let found = ids(
            &mut database,
            "SELECT vesta_id() FROM generate_series(1, 300)",
        );
        let after = layout.tick_at(clock(&mut database)).expect("inside");
        assert_eq!(found.len(), 300);
        assert!(found.is_sorted_by(|a, b| a < b), "{name}");
        for id in found {
            let fields = layout.unpack(id).expect("an ID of the layout");
            let expected = Id {
                machine,
                gen_method: layout.max(Field::GenMethod),
                time: fields.time,
                seq: fields.seq,
                ..layout.blank()
            };
            assert_eq!(fields, expected, "{name}");
            // 300 IDs in one tick: a layout with few of them has gone ahead.
            let ahead = 300 >> layout.bits(Field::Seq);
            assert!((before..=after + ahead).contains(&fields.time), "{name}");
        }
        uninstall(&mut database);
    }
}

#[test]
fn positions_of_postgres_are_packed_as_the_library_packs_them() {
    let mut database = Database::of_postgres();
    let schema = database.name().to_owned();
    for layout in layouts() {
        let (name, machine) = (layout.name(), layout.max(Field::Machine));
        database.rows(&generate(name, machine, &schema));
        let (seq_bits, last_seq) = (layout.bits(Field::Seq), layout.max(Field::Seq));
        let last_tick = layout.max(Field::Time);
        for (time, seq) in [
            (last_tick - last_tick / 9, last_seq / 2),
            (last_tick - 1, last_seq),
            (last_tick, 0),
            (last_tick, last_seq),
        ] {
            let position = time << seq_bits | seq;
            let id = ids(
                &mut database,
                &format!(
                    "SELECT setval('vesta_base', {position} - last_value - is_called::int) \
                     FROM vesta_count; SELECT vesta_id()"
                ),
            );
            let expected = Id {
                time,
                seq,
                machine,
                gen_method: layout.max(Field::GenMethod),
                ..layout.blank()
            };
            assert_eq!(id.last().copied(), layout.pack(&expected).ok(), "{name}");
        }
        let refused = database
            .ask("SELECT vesta_id()")
            .expect_err("no position is left");
        let said = format!("vesta_id: the layout {name} has no IDs left");
        assert!(refused.contains(&said), "{refused}");
        uninstall(&mut database);
    }
}

#[test]
fn a_clock_outside_the_layout_of_postgres_ids_is_refused() {
    let mut database = Database::of_postgres();
    let schema = database.name().to_owned();
    let folder = folder();
    let file = folder.path().join("later.toml");
    let later = "[layout.custom]\ntype_bits = 0\ngen_method_bits = 1\ntime_bits = 31\nseq_bits = 14\n\
                 machine_bits = 8\nunit = \"second\"\nepoch = \"2090-01-01T00:00:00Z\"\n";
    fs::write(&file, later).expect("a file");
    for (layout, name) in [("uid", "uid"), (file.to_str().expect("a path"), "custom")] {
        database.rows(&generate(layout, 7, &schema));
        let refused = database.ask("SELECT vesta_id()").expect_err("no such time");
        let said = format!("but the layout {name} is for ");
        assert!(
            refused.contains("vesta_id: the clock shows 20"),
            "{refused}"
        );
        assert!(refused.contains(&said), "{refused}");
        uninstall(&mut database);
    }
}

#[test]
fn a_layout_or_version_that_postgres_cannot_make_is_refused() {
    let refused = |args: &[&str]| {
        let args = [&["sql", "--generate", "--dialect", "postgres"], args].concat();
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"));
        let done = program.args(args).output().expect("it starts");
        assert_eq!(done.status.code(), Some(64));
        String::from_utf8(done.stderr).expect("text")
    };
    for (args, said) in [
        (&["--machine", "1024"][..], "machine must be 0 to 1023"),
        (
            &["--machine", "1", "--id-version", "1"],
            "do not fit a bigint",
        ),
        (
            &["--machine", "1", "--layout", "discord"],
            "do not fit a bigint",
        ),
        (
            &["--machine", "1", "--layout", "seata"],
            "only explains IDs",
        ),
        (
            &["--machine", "1", "--layout", "bluesky"],
            "shorter than a millisecond",
        ),
        (
            &["--machine", "1", "--gen-method", "4"],
            "genMethod must be 0 to 3",
        ),
        (&["--machine", "1", "--schema", "a b"], "lower-case letters"),
        (&["--machine", "1", "--gapless"], "cannot be used with"),
        (&[], "--machine <N>"),
        (
            &["--machine", "1", "--dialect", "mysql"],
            "cannot be used multiple times",
        ),
    ] {
        let error = refused(args);
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

/// Another session of the same user.
async fn session() -> PgConnection {
    let options: PgConnectOptions = store_url("postgres").parse().expect("a URL");
    options.connect().await.expect("the server answers")
}

async fn run(session: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(session).await?;
    Ok(())
}

/// The answer to a query of one value.
async fn one(session: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_one(session)
        .await
        .expect("one value")
}

/// Cancels a call that waits while `blocker` holds something, and returns the locks that its session then holds.
fn cancelled(blocker: &str) -> i64 {
    let mut database = Database::of_postgres();
    let schema = database.name().to_owned();
    database.rows(&generate("max-peak", 7, &schema));
    let blocker = blocker.replace("SCHEMA", &schema);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (call, cancelled_locks) = (format!("SELECT {schema}.vesta_id()"), async {
        let (mut holder, mut caller, mut admin) =
            (session().await, session().await, session().await);
        run(&mut holder, blocker).await.expect("a lock");
        let pid = one(&mut caller, "SELECT pg_backend_pid()::bigint").await;
        let call = format!("SELECT {schema}.vesta_id()");
        let cancel = async {
            let waits = format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND NOT granted");
            while one(&mut admin, &waits).await == 0 {}
            let cancel = format!("SELECT pg_cancel_backend({pid})");
            run(&mut admin, cancel).await.expect("it is cancelled");
        };
        let (said, ()) = tokio::join!(run(&mut caller, call.clone()), cancel);
        let said = said.expect_err("it was cancelled").to_string();
        assert!(said.contains("canceling statement"), "{said}");
        // The error is sent before the transaction ends; an answer is sent after that.
        one(&mut caller, "SELECT 1::bigint").await;
        let locks = format!(
            "SELECT count(*) FROM pg_locks WHERE pid = {pid} AND locktype = 'relation' \
             AND mode LIKE '%Exclusive%'"
        );
        let left = one(&mut admin, &locks).await;
        run(&mut holder, "ROLLBACK".to_owned())
            .await
            .expect("it lets go");
        // Both go on, the caller in the same session.
        one(&mut caller, &call).await;
        one(&mut admin, &call).await;
        let _ = caller.close().await;
        left
    });
    let left = runtime.block_on(cancelled_locks);
    assert_eq!(database.rows(&call).len(), 1);
    left
}

#[test]
fn a_call_of_postgres_cancelled_while_it_waits_for_the_lock_holds_none() {
    let lock = "BEGIN; LOCK TABLE SCHEMA.vesta_lock IN SHARE UPDATE EXCLUSIVE MODE";
    assert_eq!(cancelled(lock), 0);
}

#[test]
fn a_call_of_postgres_cancelled_while_it_waits_for_a_sequence_holds_no_lock() {
    let lock = "BEGIN; ALTER SEQUENCE SCHEMA.vesta_base OWNED BY NONE";
    assert_eq!(cancelled(lock), 0);
}

#[test]
fn a_transaction_of_postgres_that_took_ids_keeps_no_other_waiting() {
    let mut database = Database::of_postgres();
    let schema = database.name().to_owned();
    // In milliseconds, nearly every call raises the base.
    database.rows(&generate("min-granularity", 7, &schema));
    database.rows("BEGIN; SELECT vesta_id() FROM generate_series(1, 2000)");
    let locks = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() \
                 AND mode = 'ShareUpdateExclusiveLock'";
    assert_eq!(ids(&mut database, locks), [0]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let call = format!("SELECT {schema}.vesta_id()");
        one(&mut session().await, &call).await;
    });
    database.rows("ROLLBACK");
}

/// Takes numbers with rollbacks in between: each committed one is the next.
fn numbers_have_no_gaps(mut database: Database) {
    let sql = vesta(&["sql", "--gapless", "--dialect", database.dialect()]);
    let (table, next) = sql.split_once(";\n").expect("two statements");
    database.rows(table);
    let name = "'invoices-2026'";
    let next = ["$1", "@name", ":name"]
        .into_iter()
        .fold(next.to_owned(), |sql, it| sql.replace(it, name));
    let next = next.lines().filter(|line| !line.starts_with("--"));
    let mut next = next.collect::<Vec<_>>().join("\n");
    if database.dialect() == "mysql" {
        next += "SELECT LAST_INSERT_ID()";
    }
    for expected in 1..20 {
        for end in ["ROLLBACK", "COMMIT"] {
            database.rows("BEGIN");
            assert_eq!(ids(&mut database, &next).last(), Some(&expected), "{end}");
            database.rows(end);
        }
    }
    let other = next.replace("invoices", "orders");
    assert_eq!(ids(&mut database, &other).last(), Some(&1), "another name");
}

#[test]
fn gapless_numbers_of_postgres_have_no_gaps() {
    numbers_have_no_gaps(Database::of_postgres());
}

#[test]
fn gapless_numbers_of_mysql_have_no_gaps() {
    numbers_have_no_gaps(Database::of_mysql());
}

#[test]
fn gapless_numbers_of_sqlite_have_no_gaps() {
    numbers_have_no_gaps(Database::of_sqlite());
}

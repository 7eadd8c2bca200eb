//! IDs of PostgreSQL in a database that is a copy, and after a second installation.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use vesta_intf::IdMeta;
use vesta_testkit::fleet::{StoreServers, store_url};

use super::super::databases::Database;
use super::{generate_with, ids, layouts};

/// The output of a program of PostgreSQL that reads this text, or its exit code and its errors.
fn program(name: &str, args: &[&str], text: &str) -> Result<String, (Option<i32>, String)> {
    let mut program = Command::new(name);
    program.args(args).stdin(Stdio::piped());
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = program.spawn().expect("a program of PostgreSQL");
    let mut input = started.stdin.take().expect("its input");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let done = started.wait_with_output().expect("it ends");
    writer.join().expect("it wrote");
    let said = |bytes| String::from_utf8(bytes).expect("text");
    match done.status.success() {
        true => Ok(said(done.stdout)),
        false => Err((done.status.code(), said(done.stderr))),
    }
}

fn psql(url: &str, sql: &str) -> Result<String, (Option<i32>, String)> {
    program("psql", &["-XqAt", url], sql)
}

/// The same in psql, after which a failed statement is a failure.
fn ask(url: &str, sql: &str) -> Result<String, String> {
    let said = psql(url, &format!("\\set ON_ERROR_STOP on\n{sql}"));
    said.map_err(|(_, errors)| errors)
}

/// Databases of a server that are gone after the test.
struct Databases {
    server: String,
    names: Vec<String>,
}

impl Databases {
    /// Creates one, and returns its URL.
    fn create(&mut self, options: &str) -> String {
        let name = super::super::databases::own();
        ask(&self.server, &format!("CREATE DATABASE {name} {options}")).expect("a database");
        let url = self.server.rsplit_once('/').expect("a URL").0;
        let url = format!("{url}/{name}");
        self.names.push(name);
        url
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        for name in self.names.iter().rev() {
            let _ = ask(&self.server, &format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

const TAKE: &str = "INSERT INTO orders SELECT FROM generate_series(1, 2000) RETURNING id";

fn taken(url: &str) -> Result<HashSet<u64>, String> {
    let said = ask(url, TAKE)?;
    Ok(said
        .lines()
        .map(|id| id.parse().expect("a positive ID"))
        .collect())
}

#[test]
fn a_copy_of_a_postgres_database_refuses_ids_until_it_has_another_machine_id() {
    let server = store_url("postgres");
    let names = Vec::new();
    let mut databases = Databases { server, names };
    let original = databases.create("");
    let install = generate_with("max-peak", 7, "public", &[]);
    psql(&original, &install).expect("installed");
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT vesta_id())";
    ask(&original, table).expect("a table");
    let before = taken(&original).expect("IDs");
    // A copy that was not noticed would go on from here, ahead of all clocks.
    let ahead = "SELECT setval('vesta_base', last_value + (3600::bigint << 20)) FROM vesta_base";
    ask(&original, ahead).expect("an hour ahead");
    let dump = program("pg_dump", &["--no-owner", &original], "").expect("a dump");
    let schema = program("pg_dump", &["--schema-only", &original], "").expect("a dump");

    let name = original.rsplit_once('/').expect("a name").1;
    let template = databases.create(&format!("TEMPLATE {name}"));
    let other_server = StoreServers::start(&["postgres"]);
    let elsewhere = StoreServers::url(other_server.folder(), "postgres");
    let mut copies = vec![template];
    for (url, text) in [
        (databases.create(""), &dump),
        (databases.create(""), &schema),
        (elsewhere, &dump),
    ] {
        psql(&url, text).expect("restored");
        copies.push(url);
    }
    let mut all = before;
    all.extend(taken(&original).expect("the original goes on"));
    let mut expected = 4000;
    for (copy, machine) in copies.iter().zip(8..) {
        for _ in 0..2 {
            let refused = taken(copy).expect_err("it is a copy");
            assert!(refused.contains("this database is a copy"), "{refused}");
            assert!(refused.contains("with another machine ID"), "{refused}");
        }
        let again = generate_with("max-peak", machine, "public", &["--replace"]);
        // Cut off before its end, it changes nothing.
        let (all_but_last, _) = again.split_once("COMMIT").expect("a transaction");
        psql(copy, &format!("{all_but_last}ROLLBACK;")).expect("undone");
        taken(copy).expect_err("it is a copy");
        psql(copy, &again).expect("replaced");
        let found = taken(copy).expect("IDs");
        let of = |id: &u64| IdMeta::MAX_PEAK.unpack(*id).expect("an ID").machine;
        assert!(found.iter().all(|id| of(id) == machine), "{copy}");
        all.extend(found);
        expected += 2000;
        assert_eq!(all.len(), expected);
    }
    // Without the look, a dump repeats what the original made.
    let look = "CREATE OR REPLACE FUNCTION vesta_here() RETURNS bigint LANGUAGE sql IMMUTABLE \
                AS 'SELECT last_value FROM public.vesta_home'; ";
    let blind = databases.create("");
    psql(&blind, &dump).expect("restored");
    ask(&blind, look).expect("blind");
    let repeated = taken(&blind).expect("it makes IDs");
    assert!(repeated.iter().all(|id| all.contains(id)));
}

#[test]
fn a_second_installation_in_postgres_is_one_error_and_changes_nothing() {
    let mut database = Database::of_postgres();
    let (url, schema) = (store_url("postgres"), database.name().to_owned());
    let of = |machine, more: &[&str]| {
        let sql = generate_with("max-peak", machine, &schema, more);
        psql(&url, &sql).map_err(|(code, errors)| (code, errors.matches("ERROR").count(), errors))
    };
    let (code, count, said) = of(7, &["--replace"]).expect_err("nothing is there");
    assert_eq!((code, count), (Some(3), 1), "{said}");
    assert!(said.contains("has no vesta_id() of the layout max-peak; nothing was changed"));
    assert_eq!(of(7, &[]), Ok(String::new()));
    let (code, count, said) = of(8, &[]).expect_err("it is there");
    assert_eq!((code, count), (Some(3), 1), "{said}");
    assert!(
        said.contains("already installed") && said.contains("add --replace"),
        "{said}"
    );
    let id = ids(&mut database, "SELECT vesta_id()")[0];
    assert_eq!(IdMeta::MAX_PEAK.unpack(id).expect("an ID").machine, 7);
    // IDs of two layouts could be equal, and their positions mean something else.
    let other = generate_with("snowflake", 8, &schema, &["--replace"]);
    let (code, said) = psql(&url, &other).expect_err("another layout");
    assert_eq!(code, Some(3));
    assert!(
        said.contains("has no vesta_id() of the layout snowflake"),
        "{said}"
    );
}

#[test]
fn a_replacement_in_postgres_goes_on_a_minute_ahead_with_its_machine_id() {
    let mut database = Database::of_postgres();
    let (url, schema) = (store_url("postgres"), database.name().to_owned());
    for layout in layouts() {
        let name = layout.name();
        psql(&url, &generate_with(name, 0, &schema, &[])).expect("installed");
        let position = |id| {
            let id = layout.unpack(id).expect("an ID");
            (id.time, id.seq)
        };
        let mut last = 0;
        for hours in [0, 2] {
            // Once behind the clock, once ahead of it.
            let ahead = (hours * 3_600_000 / layout.spec().unit.millis())
                << layout.bits(vesta_intf::Field::Seq);
            database.rows(&format!(
                "SELECT setval('vesta_base', last_value + {ahead}) FROM vesta_base"
            ));
            let before = ids(
                &mut database,
                "SELECT vesta_id() FROM generate_series(1, 9)",
            )[8];
            let machine = 1 + hours / 2;
            psql(&url, &generate_with(name, machine, &schema, &["--replace"])).expect("replaced");
            let after = ids(&mut database, "SELECT vesta_id()")[0];
            assert_eq!(layout.unpack(after).expect("an ID").machine, machine);
            assert!(position(after) > position(before), "{name}");
            assert!(before > last && after > before, "{name}");
            let [before, after] = [before, after].map(|id| {
                let made = layout.moment_of(position(id).0);
                made.expect("inside").0
            });
            let (unit, minute) = (layout.spec().unit.millis(), 60_000);
            assert!(after >= before + minute, "{name}");
            // The rest is what passed in between.
            assert!(after < before + minute + unit + 60_000, "{name}");
            last = ids(&mut database, "SELECT vesta_id()")[0];
        }
        super::uninstall(&mut database);
    }
}

//! Every SQL statement of the documents runs, on tables of 200 rows.

use std::fs;
use std::path::Path;

use vesta_intf::{Field, Id, IdMeta};

use super::databases::{Database, Row};
use super::documents::all_statements;
use super::vesta;

/// The set-up of a statement, and its expected outcome.
struct Check {
    /// The words with which the statement begins.
    begins: &'static str,
    /// Creates the tables, with their rows.
    tables: fn() -> String,
    /// Values for `?` and `…`, in order.
    values: &'static [&'static str],
    /// Query for the statement's effect; if empty, its own rows are compared.
    then: &'static str,
    expects: fn(Vec<Row>) -> bool,
}

/// Statements that are not run, with the reason.
const NOT_RUN: [(&str, &str); 4] = [
    (
        "CREATE DATABASE … TEMPLATE",
        "names a command; the test of copies carries it out",
    ),
    (
        "UPDATE … RETURNING",
        "names a kind of statement; the store's own is tested with the store",
    ),
    (
        "INSERT INTO orders (id) VALUES ($1)",
        "is part of a program, which scripts/check/outside.sh tests",
    ),
    (
        "DROP SUBSCRIPTION",
        "names a command; vesta_testkit::stores carries it out in a test",
    ),
];

const MYSQL: &[Check] = &[
    Check {
        begins: "SELECT CONCAT(IP, '=', ID)",
        tables: hosts,
        values: &[],
        then: "",
        expects: |rows| texts(rows) == (0..200).map(host).collect::<Vec<_>>(),
    },
    Check {
        begins: "UPDATE tiny_id_info SET max_id = LAST_INSERT_ID(",
        tables: tinyid,
        values: &["1000", "'tag7'", "1000", "1", "0"],
        then: "SELECT CONCAT(biz_type, ' ', max_id, ' ', LAST_INSERT_ID()) FROM tiny_id_info \
               WHERE version = 1",
        expects: |rows| texts(rows) == ["tag7 1007 1007"],
    },
    Check {
        begins: "UPDATE tiny_id_info SET delta = 2, remainder = 0",
        tables: || tinyid() + "INSERT INTO tiny_id_info (biz_type, max_id) VALUES ('test', 1);",
        values: &[],
        then: "SELECT CONCAT(delta, ' ', remainder) FROM tiny_id_info WHERE biz_type = 'test'",
        expects: |rows| texts(rows) == ["2 1"],
    },
    Check {
        begins: "SELECT biz_type, delta, remainder FROM tiny_id_info",
        tables: tinyid,
        values: &[],
        then: "",
        expects: |rows| rows.len() == 200 && rows.iter().all(|row| row.len() == 3),
    },
    Check {
        begins: "INSERT INTO tiny_id_token",
        tables: tinyid,
        values: &["token"],
        then: "SELECT token FROM tiny_id_token WHERE biz_type = 'shop.order'",
        expects: |rows| texts(rows) == ["token"],
    },
    MAX_WORKER,
    Check {
        begins: "ALTER TABLE WORKER_NODE AUTO_INCREMENT",
        ..NEXT_WORKER
    },
    ALL_TAGS,
    UPDATED_TAG,
    Check {
        begins: "SELECT * FROM tiny_id_info",
        tables: tinyid,
        ..ALL_TAGS
    },
    Check {
        begins: "UPDATE cosid SET last_max_id = ",
        tables: || made("mysql/cosid") + &insert("cosid (name, last_max_id)", tag),
        values: &["7777", "'tag7'"],
        then: "SELECT name FROM cosid WHERE last_max_id = 7777",
        expects: |rows| texts(rows) == ["tag7"],
    },
    KEPT_TAGS,
    ORDERS,
    GAPLESS,
];

const POSTGRES: &[Check] = &[
    Check {
        begins: "SELECT id, vesta_max_peak_time(id)",
        tables: || vesta(&["sql", "--dialect", "postgres"]) + &orders(),
        values: &[],
        then: "",
        expects: |rows| sorted(rows) == in_january(None),
    },
    MAX_WORKER,
    Check {
        begins: "SELECT setval(pg_get_serial_sequence",
        ..NEXT_WORKER
    },
    ALL_TAGS,
    UPDATED_TAG,
    KEPT_TAGS,
    Check {
        begins: "SELECT convert_from(name, 'UTF8')",
        expects: |rows| {
            rows.len() == 200 && rows[0] == ["tag0", "{}"].map(|it| Some(it.to_owned()))
        },
        ..KEPT_TAGS
    },
    ORDERS,
    Check {
        begins: "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT vesta_id()",
        // Its schema is the current one.
        tables: || {
            let of = ["sql", "--generate", "--dialect", "postgres"];
            let sql = vesta(&[&of[..], &["--machine", "1000"]].concat());
            sql.replace("\\set ON_ERROR_STOP on\n", "")
                .replace("public.", "")
                .replace(
                    "SET search_path = pg_catalog, pg_temp AS",
                    "SET search_path FROM CURRENT AS",
                )
        },
        values: &[],
        then: "INSERT INTO orders (customer) VALUES ('ann'), ('bob'); SELECT id FROM orders",
        expects: |rows| rows.len() == 2,
    },
    GAPLESS,
];

const GAPLESS: Check = Check {
    begins: "CREATE TABLE vesta_gapless",
    tables: String::new,
    values: &[],
    then: "INSERT INTO vesta_gapless VALUES ('invoices-2026', 1); SELECT last FROM vesta_gapless",
    expects: |rows| texts(rows) == ["1"],
};

const SQLITE: &[Check] = &[
    MAX_WORKER,
    Check {
        begins: "UPDATE sqlite_sequence SET seq = 255",
        ..NEXT_WORKER
    },
    KEPT_TAGS,
    Check {
        begins: "SELECT area, name, value FROM vesta_kv",
        ..KEPT_TAGS
    },
    ORDERS,
    GAPLESS,
];

const MAX_WORKER: Check = Check {
    begins: "SELECT MAX(ID) FROM WORKER_NODE",
    tables: String::new,
    values: &[],
    then: "",
    expects: |rows| texts(rows) == ["200"],
};

const NEXT_WORKER: Check = Check {
    begins: "",
    tables: String::new,
    values: &[],
    then: "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
             VALUES ('host', '1', 1, '2026-01-01', '2026-01-01', '2026-01-01'); \
           SELECT MAX(ID) FROM WORKER_NODE",
    expects: |rows| texts(rows) == ["256"],
};

const ALL_TAGS: Check = Check {
    begins: "SELECT * FROM leaf_alloc",
    tables: String::new,
    values: &[],
    then: "",
    expects: |rows| rows.len() == 200,
};

const UPDATED_TAG: Check = Check {
    begins: "UPDATE leaf_alloc SET max_id = ",
    tables: String::new,
    values: &["7777", "'tag7'"],
    then: "SELECT biz_tag FROM leaf_alloc WHERE max_id = 7777",
    expects: |rows| texts(rows) == ["tag7"],
};

const KEPT_TAGS: Check = Check {
    begins: "SELECT name, value FROM vesta_kv",
    tables: String::new,
    values: &[],
    then: "",
    expects: |rows| rows.len() == 200,
};

const ORDERS: Check = Check {
    begins: "SELECT * FROM orders WHERE id >= ",
    tables: orders,
    values: &[],
    then: "",
    expects: |rows| sorted(rows) == in_january(Some(2)),
};

/// The first column.
fn texts(rows: Vec<Row>) -> Vec<String> {
    rows.into_iter()
        .filter_map(|mut row| row.swap_remove(0))
        .collect()
}

fn sorted(rows: Vec<Row>) -> Vec<String> {
    let mut texts = texts(rows);
    texts.sort_unstable();
    texts
}

/// A statement that inserts 200 rows.
fn insert(into: &str, values: impl Fn(u64) -> String) -> String {
    let rows: Vec<_> = (0..200).map(|i| format!("({})", values(i))).collect();
    format!("INSERT INTO {into} VALUES {};", rows.join(", "))
}

fn tag(i: u64) -> String {
    format!("'tag{i}', {i}")
}

fn host(i: u64) -> String {
    format!("192.168.100.{i}={i}")
}

fn hosts() -> String {
    let row = |i| format!("{i}, '192.168.100.{i}'");
    "CREATE TABLE DB_MACHINE_ID_PROVIDER (ID bigint NOT NULL, IP varchar(64) DEFAULT NULL, \
     PRIMARY KEY (ID), UNIQUE KEY UK_IP (IP)); \
     INSERT INTO DB_MACHINE_ID_PROVIDER VALUES (200, NULL), (201, NULL);"
        .to_owned()
        + &insert("DB_MACHINE_ID_PROVIDER", row)
}

/// A table as the store creates it.
fn made(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vesta-store/src/backends");
    let sql = fs::read_to_string(folder.join(format!("{name}.sql"))).expect("a table of the store");
    sql.trim_end().trim_end_matches(';').to_owned() + "\n;"
}

fn tinyid() -> String {
    made("mysql/tiny_id_info")
        + &insert("tiny_id_info (biz_type, max_id)", tag)
        + "CREATE TABLE tiny_id_token (id int(11) unsigned NOT NULL AUTO_INCREMENT, \
           token varchar(255) NOT NULL DEFAULT '', biz_type varchar(63) NOT NULL DEFAULT '', \
           remark varchar(255) NOT NULL DEFAULT '', \
           create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', \
           update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', PRIMARY KEY (id));"
        + &insert("tiny_id_token (token, biz_type)", |i| {
            format!("'token{i}', 'tag{i}'")
        })
}

/// The tables of Vesta's own stores.
fn own(dialect: &str) -> String {
    let worker = "WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)";
    let launch = |_| "'host', '1', 1, '2026-01-01', '2026-01-01', '2026-01-01'".to_owned();
    let kept = |i| format!("'segment/tags', 'tag{i}', '{{}}'");
    let tags = match dialect {
        "sqlite" => String::new(),
        _ => {
            made(&format!("{dialect}/leaf_alloc"))
                + &insert("leaf_alloc (biz_tag, max_id, step)", |i| tag(i) + ", 1000")
        }
    };
    made(&format!("{dialect}/worker_node"))
        + &insert(worker, launch)
        + &made(&format!("{dialect}/vesta_kv"))
        + &insert("vesta_kv", kept)
        + &tags
}

/// IDs of every genMethod, from 11 days before January 2026 to 15 days after it.
fn order(i: u64) -> Id {
    let january = 347_184_000; // ticks
    Id {
        gen_method: i % 4,
        time: january + i / 4 * 100_000 - 1_000_000,
        seq: i,
        ..IdMeta::MAX_PEAK.blank()
    }
}

fn orders() -> String {
    let row = |i| IdMeta::MAX_PEAK.pack(&order(i)).expect("an ID").to_string();
    "CREATE TABLE orders (id BIGINT PRIMARY KEY);".to_owned() + &insert("orders", row)
}

/// The orders of January 2026, of every genMethod or of one.
fn in_january(gen_method: Option<u64>) -> Vec<String> {
    let days = 347_184_000..347_184_000 + 31 * 86_400;
    let all = (0..200).map(order).filter(|id| days.contains(&id.time));
    let all = all.filter(|id| gen_method.is_none_or(|it| it == id.get(Field::GenMethod)));
    let mut ids: Vec<_> = all
        .map(|id| IdMeta::MAX_PEAK.pack(&id).expect("an ID").to_string())
        .collect();
    ids.sort_unstable();
    ids
}

/// Runs the statements that the documents have for a database; every check must find its statement.
fn the_statements_run(make: fn() -> Database, checks: &[Check]) {
    let all = all_statements();
    for check in checks {
        let mut found = all
            .iter()
            .filter(|(_, sql)| sql.starts_with(check.begins))
            .peekable();
        assert!(
            found.peek().is_some(),
            "no document has `{}` any more",
            check.begins
        );
        for (document, sql) in found {
            let mut database = make();
            database.rows(&(own(database.dialect()) + &(check.tables)()));
            let put = |sql: String, value: &&str| sql.replacen(['?', '…'], value, 1);
            let sql = check.values.iter().fold(sql.clone(), put);
            let mut rows = database.rows(&sql);
            if !check.then.is_empty() {
                rows = database.rows(check.then);
            }
            let shown = format!("{rows:?}");
            assert!((check.expects)(rows), "{document}: {sql}\n{shown}");
        }
    }
}

#[test]
fn statements_of_the_documents_run_in_databases_of_mysql() {
    the_statements_run(Database::of_mysql, MYSQL);
}

#[test]
fn statements_of_the_documents_run_in_databases_of_postgres() {
    the_statements_run(Database::of_postgres, POSTGRES);
}

#[test]
fn statements_of_the_documents_run_in_databases_of_sqlite() {
    the_statements_run(Database::of_sqlite, SQLITE);
}

#[test]
fn every_statement_of_the_documents_is_run_or_named() {
    let checks = [MYSQL, POSTGRES, SQLITE]
        .into_iter()
        .flatten()
        .map(|check| check.begins);
    let known: Vec<_> = checks.chain(NOT_RUN.map(|it| it.0)).collect();
    let all = all_statements();
    for (document, sql) in &all {
        assert!(
            known.iter().any(|begins| sql.starts_with(begins)),
            "{document}: `{sql}` is not run: add it to the checks, or to NOT_RUN with the reason"
        );
    }
    assert!(
        all.len() >= 20,
        "{} statements: the documents are not read",
        all.len()
    );
}

/// The database truncates joined text without an error, so the guide must not join.
#[test]
fn mysql_truncates_joined_text_by_default() {
    let mut database = Database::of_mysql();
    database.rows(&hosts());
    let joined = "SELECT GROUP_CONCAT(CONCAT(IP, '=', ID) ORDER BY ID) FROM DB_MACHINE_ID_PROVIDER";
    let text = texts(database.rows(joined)).concat();
    assert_eq!((text.len(), text.ends_with(&host(199))), (1024, false));
}

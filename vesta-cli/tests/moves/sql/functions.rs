//! The functions and statements of `vesta sql`, at every boundary of a layout.

use vesta_explain::layouts;
use vesta_intf::{Field, Id, IdMeta, UnixMillis};

use super::databases::Database;
use super::vesta;

const LAYOUTS: [&str; 9] = [
    "max-peak",
    "min-granularity",
    "snowflake",
    "uid",
    "js-safe",
    "sonyflake",
    "discord",
    "cosid-second",
    "yitter",
];

/// IDs at the ends of every field, each with its time, machine and sequence number; and one of another
/// layout, with `None`.
fn ids(layout: &IdMeta) -> Vec<(u64, Option<[String; 3]>)> {
    let max = |field| layout.max(field);
    let last = max(Field::Time);
    let mut cases = Vec::new();
    for time in [0, 1, last / 2, last - 1, last] {
        for (seq, machine) in [
            (0, 0),
            (1, 1),
            (max(Field::Seq), 0),
            (0, max(Field::Machine)),
            (max(Field::Seq), max(Field::Machine)),
        ] {
            for (gen_method, version) in
                [(0, 0), (max(Field::GenMethod), 0), (0, max(Field::Version))]
            {
                let seq = seq & max(Field::Seq);
                let machine = machine & max(Field::Machine);
                let id = Id {
                    version,
                    gen_method,
                    time,
                    seq,
                    machine,
                    ..layout.blank()
                };
                let raw = layout.pack(&id).expect("inside");
                let made = layout.moment_of(time).expect("inside").to_string();
                cases.push((raw, Some([made, machine.to_string(), seq.to_string()])));
            }
        }
    }
    if layout.is_vesta() {
        cases.push((cases[0].0 ^ 1 << 62, None));
    } else if layout.total_bits() < 64 {
        cases.push((1 << layout.total_bits(), None));
    }
    cases
}

/// Times around the ends of ticks and of the layout.
fn times(layout: &IdMeta) -> impl Iterator<Item = u64> {
    let (begin, end, unit) = (
        layout.spec().epoch.0,
        layout.end().0,
        layout.spec().unit.millis(),
    );
    let middle = 1_767_225_600_000;
    let inside = [
        begin,
        begin + unit - 1,
        begin + unit,
        middle - 1,
        middle,
        middle + 1,
        end - 1,
    ];
    inside.into_iter().chain([begin - 1, end])
}

/// A time in UTC, as a literal that the database reads correctly in a session of another zone.
fn literal(dialect: &str, time: u64) -> String {
    let text = UnixMillis(time)
        .to_string()
        .replace('T', " ")
        .replace('Z', "");
    match dialect {
        "postgres" => format!("timestamptz '{text}+00'"),
        _ => format!("'{text}'"),
    }
}

/// Converts a UTC time from the database's notation to Vesta's.
fn written(shown: &str) -> String {
    let (seconds, fraction) = shown
        .trim_end_matches('Z')
        .split_once('.')
        .unwrap_or((shown, ""));
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    format!("{}.{fraction}Z", seconds.replace(' ', "T"))
}

/// The SQL for a layout, and the layout.
struct Sql {
    text: String,
    prefix: String,
}

impl Sql {
    fn of(database: &Database, layout: &IdMeta, version: u64) -> Self {
        let (name, version) = (layout.name(), version.to_string());
        let dialect = ["--dialect", database.dialect(), "--layout", name];
        let text = vesta(&[&["sql"], &dialect[..], &["--id-version", &version]].concat());
        Self {
            text,
            prefix: format!("vesta_{}", name.replace('-', "_")),
        }
    }

    /// The result of a function, or of the statement of that name with its parameters set.
    #[track_caller]
    fn ask(&self, database: &mut Database, name: &str, given: &[(&str, &str)]) -> Option<String> {
        let name = format!("{}_{name}", self.prefix);
        let values: Vec<_> = given.iter().map(|it| it.1).collect();
        let mut rows = match database.dialect() {
            "postgres" => {
                let zone = if name.ends_with("_time") {
                    " AT TIME ZONE 'UTC'"
                } else {
                    ""
                };
                database.rows(&format!("SELECT {name}({}){zone}", values.join(", ")))
            }
            "mysql" => {
                let set: Vec<_> = given
                    .iter()
                    .map(|it| format!("@{} = {}", it.0, it.1))
                    .collect();
                database.rows(&format!(
                    "SET {}; {}",
                    set.join(", "),
                    self.statement(&name)
                ))
            }
            _ => {
                let set = |sql: String, it: &(&str, &str)| sql.replace(&format!(":{}", it.0), it.1);
                database.rows(&given.iter().fold(self.statement(&name).to_owned(), set))
            }
        };
        rows.pop().and_then(|mut row| row.pop()).expect("one value")
    }

    fn statement(&self, name: &str) -> &str {
        let start = self.text.find(&format!("-- {name}:")).expect("it is there");
        self.text[start..].lines().nth(1).expect("a statement")
    }

    /// The expression of a statement, for a table with a column of the parameter's name.
    fn expression(&self, name: &str) -> &str {
        let name = format!("{}_{name}", self.prefix);
        let statement = self
            .statement(&name)
            .strip_prefix("SELECT ")
            .expect("a statement");
        statement.split_once(" AS vesta_").expect("a name").0
    }
}

fn the_answers_are_those_of_the_library(mut make: impl FnMut() -> Database) {
    for version in [0, 1] {
        // Both in one database.
        let mut database = make();
        let layouts = LAYOUTS.map(|name| layouts::named(name).expect("a layout"));
        let layouts: Vec<_> = layouts
            .into_iter()
            .filter(|it| it.max(Field::Version) >= version)
            .collect();
        let all: Vec<_> = layouts
            .iter()
            .map(|it| Sql::of(&database, it, version))
            .collect();
        if database.dialect() == "postgres" {
            for sql in &all {
                database.rows(&sql.text);
            }
        }
        for (layout, sql) in layouts.iter().zip(&all) {
            ids_are_taken_apart(&mut database, layout, sql);
            bounds_are_found(&mut database, layout, sql, version);
        }
    }
}

fn ids_are_taken_apart(database: &mut Database, layout: &IdMeta, sql: &Sql) {
    for (id, parts) in ids(layout) {
        let mut forms = vec![id.cast_signed().to_string()];
        match database.dialect() {
            "postgres" => forms = vec![format!("'{}'::bigint", forms[0])],
            "mysql" => forms.push(id.to_string()),
            _ => {}
        }
        for form in forms {
            let found =
                ["time", "machine", "seq"].map(|it| sql.ask(database, it, &[("id", &form)]));
            let [made, machine, seq] = found;
            let found = [made.map(|it| written(&it)), machine, seq];
            let expected = parts
                .clone()
                .map_or([const { None }; 3], |parts| parts.map(Some));
            assert_eq!(found, expected, "{} {form}", layout.name());
        }
    }
}

fn bounds_are_found(database: &mut Database, layout: &IdMeta, sql: &Sql, version: u64) {
    let is_unsigned = database.dialect() == "mysql";
    let shown = |id: u64| {
        if is_unsigned {
            id.to_string()
        } else {
            id.cast_signed().to_string()
        }
    };
    let max = layout.max(Field::GenMethod);
    for time in times(layout) {
        let at = literal(database.dialect(), time);
        for gen_method in 0..=max {
            let base = Id {
                version,
                gen_method,
                ..layout.blank()
            };
            let time = UnixMillis(time);
            let expected = [
                layout.lower_bound(time, &base),
                layout.upper_bound(time, &base),
            ];
            let method = gen_method.to_string();
            let mut given = vec![("at", at.as_str())];
            given.extend((max > 0).then_some(("gen_method", method.as_str())));
            let found = ["lower", "upper"].map(|it| sql.ask(database, it, &given));
            assert_eq!(
                found,
                expected.map(|it| it.ok().map(shown)),
                "{} {given:?}",
                layout.name()
            );
        }
        if max > 0 {
            let given = [("at", at.as_str()), ("gen_method", "4")];
            assert_eq!(
                sql.ask(database, "lower", &given),
                None,
                "a genMethod that cannot be"
            );
        }
    }
}

#[test]
fn the_answers_of_postgres_are_the_same() {
    the_answers_are_those_of_the_library(Database::of_postgres);
}

#[test]
fn the_answers_of_mysql_are_the_same() {
    the_answers_are_those_of_the_library(Database::of_mysql);
}

#[test]
fn the_answers_of_sqlite_are_the_same() {
    the_answers_are_those_of_the_library(Database::of_sqlite);
}

#[test]
fn postgres_functions_are_not_replaced_and_take_other_types() {
    let mut database = Database::of_postgres();
    let sql = Sql::of(&database, &IdMeta::MAX_PEAK, 0);
    database.rows(&sql.text);
    let again = database.ask(&sql.text).expect_err("it is there");
    assert!(
        again.contains("\"vesta_max_peak_time\" already exists"),
        "{again}"
    );
    // In the session's zone, eight hours ahead.
    let given = [("at", "'2026-01-01 08:00:00'"), ("gen_method", "2")];
    let lower = sql.ask(&mut database, "lower", &given);
    assert_eq!(lower.as_deref(), Some("2678628990637309952"));
    // The conversion that the notes give for numeric columns.
    let start = sql.text.find("(CASE WHEN id <").expect("a note");
    let (expression, _) = sql.text[start..].split_once('\n').expect("its end");
    for id in [1, (1 << 63) - 1, 1 << 63, u64::MAX] {
        let asked = format!("SELECT {expression} FROM (SELECT {id}::numeric AS id) AS given");
        assert_eq!(
            database.rows(&asked),
            [[Some(id.cast_signed().to_string())]]
        );
    }
}

/// The binary log is on and the user is an ordinary one, so the database refuses functions.
#[test]
fn an_ordinary_mysql_user_creates_a_view_of_the_statements() {
    let mut database = Database::of_mysql();
    let function = "CREATE FUNCTION f(id BIGINT) RETURNS BIGINT DETERMINISTIC NO SQL RETURN id";
    let refused = database.ask(function).expect_err("it needs SUPER");
    assert!(refused.contains("1419"), "{refused}");
    let sql = Sql::of(&database, &IdMeta::MAX_PEAK, 0);
    let columns = ["time", "machine", "seq"].map(|it| format!("{} AS {it}", sql.expression(it)));
    database.rows(&format!(
        "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY);
         INSERT INTO orders VALUES (2407837855670862845), (13835058055282163711);
         CREATE VIEW parts AS SELECT id, {} FROM orders",
        columns.join(", ")
    ));
    let row = |row: [&str; 4]| row.map(|it| Some(it.to_owned())).to_vec();
    let [first, second] = ["2018-01-04 02:08:23.000000", "2049-01-09 05:37:03.000000"];
    let expected = [
        row(["2407837855670862845", first, "1021", "0"]),
        row(["13835058055282163711", second, "1023", "1048575"]),
    ];
    assert_eq!(database.rows("SELECT * FROM parts ORDER BY id"), expected);
}

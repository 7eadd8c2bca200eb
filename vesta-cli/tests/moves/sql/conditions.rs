//! The condition of `vesta bound --sql` finds the IDs of a time in every kind of column.

use std::collections::BTreeSet;

use vesta_explain::layouts;
use vesta_intf::{Field, Id, IdMeta, UnixMillis};

use super::databases::Database;
use super::vesta;

/// A time range, and further arguments.
struct Case {
    layout: &'static str,
    from: &'static str,
    until: &'static str,
    words: &'static [&'static str],
}

const CASES: [Case; 8] = [
    // Every genMethod, one of them, and IDs that are negative in a signed column.
    case(
        "max-peak",
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
        &[],
    ),
    case(
        "max-peak",
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
        &["--gen-method", "1"],
    ),
    case(
        "max-peak",
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
        &["--id-version", "1"],
    ),
    case(
        "min-granularity",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.002Z",
        &[],
    ),
    // Without genMethod.
    case(
        "js-safe",
        "2014-12-31T16:00:00Z",
        "2014-12-31T16:00:02Z",
        &[],
    ),
    case(
        "snowflake",
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
        &["--id-version", "1"],
    ),
    // From below 2^63 to above it, and only above it.
    case(
        "discord",
        "2084-09-06T00:00:00Z",
        "2084-09-07T00:00:00Z",
        &[],
    ),
    case(
        "discord",
        "2090-01-01T00:00:00Z",
        "2090-01-02T00:00:00Z",
        &[],
    ),
];

const fn case(
    layout: &'static str,
    from: &'static str,
    until: &'static str,
    words: &'static [&'static str],
) -> Case {
    Case {
        layout,
        from,
        until,
        words,
    }
}

impl Case {
    fn layout(&self) -> IdMeta {
        layouts::named(self.layout).expect("a layout")
    }

    fn word(&self, name: &str) -> Option<u64> {
        let at = self.words.iter().position(|word| *word == name)?;
        self.words[at + 1].parse().ok()
    }

    fn condition(&self) -> String {
        let range = format!("{}/{}", self.from, self.until);
        vesta(
            &[
                &["bound", &range, "--layout", self.layout, "--sql", "id"],
                self.words,
            ]
            .concat(),
        )
    }

    /// IDs around both ends, of every genMethod and version.
    fn ids(&self) -> BTreeSet<u64> {
        let layout = self.layout();
        let (from, until) = (tick(&layout, self.from), tick(&layout, self.until));
        let times = [
            from.saturating_sub(1),
            from,
            from + 1,
            until - 1,
            until,
            until + 1,
        ];
        let (mut all, max) = (BTreeSet::new(), |field| layout.max(field));
        for version in 0..=max(Field::Version) {
            for gen_method in 0..=max(Field::GenMethod) {
                for time in times {
                    let id = Id {
                        version,
                        gen_method,
                        time,
                        ..layout.blank()
                    };
                    let last = Id {
                        seq: max(Field::Seq),
                        machine: max(Field::Machine),
                        ..id
                    };
                    all.extend([id, last].map(|id| layout.pack(&id).expect("an ID")));
                }
            }
        }
        all
    }

    fn has(&self, id: u64) -> bool {
        let layout = self.layout();
        let it = layout.unpack(id).expect("an ID");
        let time = tick(&layout, self.from)..tick(&layout, self.until);
        let version = self.word("--id-version").unwrap_or(0);
        let gen_method = self.word("--gen-method").unwrap_or(it.gen_method);
        time.contains(&it.time) && it.version == version && it.gen_method == gen_method
    }
}

fn tick(layout: &IdMeta, time: &str) -> u64 {
    let time: jiff::Timestamp = time.parse().expect("a time");
    let millis = u64::try_from(time.as_millisecond()).expect("after 1970");
    layout.tick_at(UnixMillis(millis)).expect("a tick")
}

/// A database's column types for IDs: signed ones, and unsigned ones.
fn columns(dialect: &str) -> &'static [(&'static str, bool)] {
    match dialect {
        "mysql" => &[("BIGINT", true), ("BIGINT UNSIGNED", false)],
        "postgres" => &[("bigint", true), ("numeric(20)", false)],
        _ => &[("INTEGER", true)],
    }
}

fn conditions_find_the_ids_of_a_time(make: impl Fn() -> Database) {
    for case in &CASES {
        let (condition, ids) = (case.condition(), case.ids());
        for (column, is_signed) in columns(make().dialect()) {
            let mut database = make();
            let number = |id: u64| match is_signed {
                true => id.cast_signed().to_string(),
                false => id.to_string(),
            };
            let values: Vec<_> = ids.iter().map(|id| format!("({})", number(*id))).collect();
            database.rows(&format!(
                "CREATE TABLE orders (id {column} PRIMARY KEY); INSERT INTO orders VALUES {}",
                values.join(", ")
            ));
            let mut found = |rest: &str| -> BTreeSet<String> {
                let rows = database.rows(&format!("SELECT id FROM orders WHERE {condition}{rest}"));
                rows.into_iter().flatten().flatten().collect()
            };
            let expected = ids
                .iter()
                .filter(|id| case.has(**id))
                .map(|id| number(*id))
                .collect();
            assert_eq!(found(""), expected, "{column} {} {condition}", case.layout);
            assert!(
                found("AND 1 = 0").is_empty(),
                "it is one condition: {condition}"
            );
        }
    }
}

#[test]
fn conditions_find_the_ids_of_a_time_in_columns_of_mysql() {
    conditions_find_the_ids_of_a_time(Database::of_mysql);
}

#[test]
fn conditions_find_the_ids_of_a_time_in_columns_of_postgres() {
    conditions_find_the_ids_of_a_time(Database::of_postgres);
}

#[test]
fn conditions_find_the_ids_of_a_time_in_columns_of_sqlite() {
    conditions_find_the_ids_of_a_time(Database::of_sqlite);
}

#[test]
fn an_invalid_column_name_is_refused() {
    let bound = |args: &[&str]| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"));
        let done = program
            .args([&["bound", "2026-01-01/2026-02-01"], args].concat())
            .output();
        let done = done.expect("it starts");
        (
            done.status.success(),
            String::from_utf8(done.stderr).expect("text"),
        )
    };
    for column in ["id", "orders.id", "_id$2"] {
        assert!(bound(&["--sql", column]).0, "{column}");
    }
    for column in [
        "", "1id", "order id", "id;", "`id`", "\"id\"", "id)--", ".id", "größe",
    ] {
        let (done, said) = bound(&["--sql", column]);
        assert!(!done && said.contains("must be letters"), "{column} {said}");
    }
}

#[test]
fn a_range_inside_one_tick_is_refused() {
    let range = "2026-01-01T00:00:00.100Z/2026-01-01T00:00:00.200Z";
    for words in [&[][..], &["--sql", "id"]] {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"));
        let done = program
            .args(["bound", range])
            .args(words)
            .output()
            .expect("it starts");
        let said = String::from_utf8(done.stderr).expect("text");
        assert!(
            done.status.code() == Some(64) && said.contains("in a later tick"),
            "{said}"
        );
    }
}

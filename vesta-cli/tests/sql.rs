//! The functions of `vesta sql` on real databases, at every boundary of a layout.

use std::process::Command;

use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use vesta_intf::{Field, Id, IdMeta, UnixMillis};

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

fn functions(dialect: &str, layout: &str) -> String {
    let args = ["sql", "--dialect", dialect, "--layout", layout];
    let done = Command::new(env!("CARGO_BIN_EXE_vesta")).args(args).output().expect("it starts");
    assert!(done.status.success());
    String::from_utf8(done.stdout).expect("text")
}

/// An ID of a layout, or of another one, as a database has it: signed.
struct Case {
    id: i64,
    /// Moment in milliseconds, machine and sequence; `None` if it is no ID of the layout.
    parts: Option<(i64, i64, i64)>,
}

/// IDs at the ends of every field.
fn ids(layout: &IdMeta) -> Vec<Case> {
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
            for gen_method in [0, max(Field::GenMethod)] {
                let id = Id {
                    time,
                    seq: seq & max(Field::Seq),
                    machine: machine & max(Field::Machine),
                    gen_method,
                    ..layout.blank()
                };
                let raw = layout.pack(&id).expect("inside");
                let moment = layout.moment_of(time).expect("inside").0.cast_signed();
                let parts = (moment, id.machine.cast_signed(), id.seq.cast_signed());
                cases.push(Case { id: raw.cast_signed(), parts: Some(parts) });
            }
        }
    }
    if layout.is_vesta() {
        cases.push(Case { id: (cases[0].id.cast_unsigned() ^ 1 << 62).cast_signed(), parts: None });
    } else if layout.total_bits() < 64 {
        cases.push(Case { id: 1 << layout.total_bits(), parts: None });
    }
    cases
}

/// Moments around the ends of ticks and of the layout, with the bounds that the layout has.
fn moments(layout: &IdMeta) -> Vec<(u64, Option<(i64, i64)>)> {
    let gen_method = if layout.bits(Field::GenMethod) == 0 { 0 } else { 2 };
    let base = Id { gen_method, ..layout.blank() };
    let (begin, end, unit) = (layout.spec().epoch.0, layout.end().0, layout.spec().unit.millis());
    let middle = 1_767_225_600_000;
    let mut all =
        vec![begin, begin + unit - 1, begin + unit, middle - 1, middle, middle + 1, middle + 999];
    all.extend([begin.checked_sub(1), Some(end - 1), Some(end)].into_iter().flatten());
    // Years of four digits are what dates are made for.
    all.retain(|moment| *moment < 253_402_300_800_000);
    let bounds = |moment: u64| {
        let moment = UnixMillis(moment);
        let lower = layout.lower_bound(moment, &base).ok()?.cast_signed();
        Some((lower, layout.upper_bound(moment, &base).ok()?.cast_signed()))
    };
    all.into_iter().map(|moment| (moment, bounds(moment))).collect()
}

/// A moment as SQL writes it, in UTC.
fn written(moment: u64) -> String {
    UnixMillis(moment).to_string().replace('T', " ").replace('Z', "")
}

fn url(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} must name a throw-away server; scripts/test.sh starts one")
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

#[test]
fn the_answers_of_postgres_are_the_same() {
    block_on(async {
        let options: PgConnectOptions = url("VESTA_TEST_POSTGRES").parse().expect("a URL");
        let mut connection = options.connect().await.expect("the test server answers");
        // Of this session alone.
        sqlx::raw_sql("SET search_path TO pg_temp")
            .execute(&mut connection)
            .await
            .expect("a schema");
        for name in LAYOUTS {
            let layout = IdMeta::known(name).expect("a layout");
            let sql =
                functions("postgres", name).replace("FUNCTION vesta_", "FUNCTION pg_temp.vesta_");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("functions");
            for case in ids(&layout) {
                let sql = "SELECT (extract(epoch FROM pg_temp.vesta_time($1)) * 1000)::bigint, \
                           pg_temp.vesta_machine($1), pg_temp.vesta_seq($1)";
                let row =
                    sqlx::query(sql).bind(case.id).fetch_one(&mut connection).await.expect("a row");
                let found: [Option<i64>; 3] = [row.get(0), row.get(1), row.get(2)];
                assert_eq!(found, parts(&case), "{name} {}", case.id);
            }
            for (moment, bounds) in moments(&layout) {
                let sql = "SELECT pg_temp.vesta_lower($1::text::timestamptz), pg_temp.vesta_upper($1::text::timestamptz)";
                let at = written(moment) + "+00";
                let row =
                    sqlx::query(sql).bind(at).fetch_one(&mut connection).await.expect("a row");
                let found: [Option<i64>; 2] = [row.get(0), row.get(1)];
                assert_eq!(found, ends(bounds), "{name} {}", written(moment));
            }
        }
        connection.close().await.expect("the end");
    });
}

fn parts(case: &Case) -> [Option<i64>; 3] {
    let of = |part: fn((i64, i64, i64)) -> i64| case.parts.map(part);
    [of(|it| it.0), of(|it| it.1), of(|it| it.2)]
}

fn ends(bounds: Option<(i64, i64)>) -> [Option<i64>; 2] {
    [bounds.map(|it| it.0), bounds.map(|it| it.1)]
}

#[test]
fn the_answers_of_mysql_are_the_same() {
    block_on(async {
        let options: MySqlConnectOptions = url("VESTA_TEST_MYSQL").parse().expect("a URL");
        let mut connection = options.connect().await.expect("the test server answers");
        let own = format!("vesta_sql_{}", std::process::id());
        let prepare = format!("CREATE DATABASE {own}; USE {own}; SET time_zone = '+08:00'");
        sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut connection).await.expect("a database");
        for name in LAYOUTS {
            let layout = IdMeta::known(name).expect("a layout");
            let sql = functions("mysql", name);
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("functions");
            for case in ids(&layout) {
                let sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', vesta_time(?)) DIV 1000, vesta_machine(?), vesta_seq(?)";
                let asked = sqlx::query(sql).bind(case.id).bind(case.id).bind(case.id);
                let row = asked.fetch_one(&mut connection).await.expect("a row");
                let found: [Option<i64>; 3] = [row.get(0), row.get(1), row.get(2)];
                assert_eq!(found, parts(&case), "{name} {}", case.id);
            }
            for (moment, bounds) in moments(&layout) {
                let asked = sqlx::query("SELECT vesta_lower(?), vesta_upper(?)");
                let row = asked
                    .bind(written(moment))
                    .bind(written(moment))
                    .fetch_one(&mut connection)
                    .await
                    .expect("a row");
                let found: [Option<i64>; 2] = [row.get(0), row.get(1)];
                assert_eq!(found, ends(bounds), "{name} {}", written(moment));
            }
        }
        sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {own}")))
            .execute(&mut connection)
            .await
            .expect("gone");
        connection.close().await.expect("the end");
    });
}

/// SQLite has no functions: the statements themselves, by their names.
#[test]
fn the_answers_of_sqlite_are_the_same() {
    let connection = rusqlite::Connection::open_in_memory().expect("memory");
    for name in LAYOUTS {
        let layout = IdMeta::known(name).expect("a layout");
        let text = functions("sqlite", name);
        let statement = |function: &str| {
            let start = text.find(&format!("-- vesta_{function}:")).expect("it is there");
            text[start..].lines().nth(1).expect("a statement").trim_end_matches(';').to_owned()
        };
        for case in ids(&layout) {
            let number = |function: &str| -> Option<i64> {
                connection
                    .query_row(&statement(function), [case.id], |row| row.get(0))
                    .expect("a row")
            };
            let time: Option<String> = connection
                .query_row(&statement("time"), [case.id], |row| row.get(0))
                .expect("a row");
            let expected = case.parts.map(|parts| UnixMillis(parts.0.cast_unsigned()).to_string());
            // Beyond the year 9999 SQLite has no dates.
            if case.parts.is_none_or(|parts| parts.0 < 253_402_300_800_000) {
                assert_eq!(time, expected, "{name} {}", case.id);
            }
            assert_eq!([number("machine"), number("seq")], parts(&case)[1..], "{name} {}", case.id);
        }
        for (moment, bounds) in moments(&layout) {
            let at = UnixMillis(moment).to_string();
            let number = |function: &str| -> Option<i64> {
                connection.query_row(&statement(function), [&at], |row| row.get(0)).expect("a row")
            };
            assert_eq!([number("lower"), number("upper")], ends(bounds), "{name} {at}");
        }
    }
}

//! `vesta audit table` on real databases: every planted fault is found, and nothing else.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use vesta_intf::{Id, IdMeta};
use vesta_testkit::fleet::store_url;

use crate::sql::databases::Database;

const ROWS: u64 = 60_000;

/// IDs of three machines in creation order, with 100 repeated ones, 3 clocks that went back, and 1
/// unplanned machine.
fn planted() -> Vec<u64> {
    let layout = IdMeta::MAX_PEAK;
    let pack = |time, seq, machine| {
        layout
            .pack(&Id {
                time,
                seq,
                machine,
                gen_method: 2,
                ..layout.blank()
            })
            .expect("inside")
    };
    let mut ids = Vec::new();
    for row in 0..ROWS {
        let (time, machine) = (370_000_000 + row / 30, 1 + row % 3);
        // A minute back, for three blocks of rows of one machine.
        let back = matches!(row, 9_000..9_009 | 30_003..30_012 | 45_000..45_009) && machine == 1;
        let (time, seq) = if back { (time - 60, 200) } else { (time, 100) };
        ids.push(pack(time, seq + row % 30, machine));
    }
    ids[20_000] = pack(370_000_000 + 20_000 / 30, 7, 999);
    for copy in 0..100 {
        ids.push(ids[usize::try_from(copy * 599).expect("it is small")]);
    }
    ids
}

/// The audit of a source as JSON, and its exit code.
fn audit(args: &[&str], input: Option<String>) -> (Value, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args(["audit", "table", "-o", "json", "--machines", "1-3"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || {
        stdin
            .write_all(input.unwrap_or_default().as_bytes())
            .expect("it reads");
    });
    let done = child.wait_with_output().expect("it ends");
    writing.join().expect("all is written");
    let json = serde_json::from_slice(&done.stdout).expect("JSON");
    (json, done.status.code().unwrap_or(-1))
}

fn finds_all(found: &Value) {
    let count = |name: &str| found["findings"][name]["count"].as_u64();
    assert_eq!(found["rows"], ROWS + 100);
    assert_eq!(count("repeated"), Some(100));
    assert_eq!(count("unplanned"), Some(1));
    assert_eq!(count("future"), Some(0));
    assert_eq!(count("unreadable"), Some(0));
    // Three are planted, and the copies at the end add one per machine.
    assert_eq!(count("clockBack"), Some(3 + 3), "{found}");
    let first = found["findings"]["unplanned"]["examples"][0].as_str();
    assert!(
        first.is_some_and(|text| text.starts_with("machine 999: 1 IDs")),
        "{found}"
    );
}

#[test]
fn standard_input() {
    let text = |ids: &[u64]| ids.iter().map(|id| format!("{id},x\n")).collect::<String>();
    let ids = planted();
    let (found, code) = audit(&["--from", "-"], Some(format!("id,name\n{}", text(&ids))));
    finds_all(&found);
    assert_eq!(code, 1);
    // Without the faults, the audit finds nothing.
    let clean: Vec<_> = ids[..9_000].to_vec();
    let (found, code) = audit(&["-", "--column", "1"], Some(text(&clean)));
    assert_eq!((code, &found["rows"]), (0, &json!(9000)), "{found}");
    let (found, code) = audit(&["--from", "-"], Some("1\nnonsense\n".into()));
    assert_eq!(
        (code, &found["findings"]["unreadable"]["count"]),
        (1, &json!(1))
    );
}

/// Statements that insert the rows of a table `audited` with an ascending key.
fn inserts(ids: &[u64]) -> Vec<String> {
    let numbered: Vec<_> = ids.iter().enumerate().collect();
    let chunk = |rows: &[(usize, &u64)]| {
        let mut sql = "INSERT INTO audited (pk, id) VALUES ".to_owned();
        for (index, (key, id)) in rows.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(sql, "{comma}({key},{id})").expect("a String takes everything");
        }
        sql
    };
    numbered.chunks(5000).map(chunk).collect()
}

#[test]
fn the_table_of_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shop.db");
    let connection = rusqlite::Connection::open(&path).expect("a file");
    connection
        .execute_batch("CREATE TABLE audited (pk INTEGER PRIMARY KEY, id INTEGER)")
        .expect("a table");
    for sql in inserts(&planted()) {
        connection.execute_batch(&sql).expect("rows");
    }
    let url = format!("sqlite:{}", path.display());
    let table = [
        "--from",
        &url,
        "--table",
        "audited",
        "--column",
        "id",
        "--order-by",
        "pk",
    ];
    finds_all(&audit(&table, None).0);
    let missing = Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args([
            "audit", "table", "--from", &url, "--table", "nothing", "--column", "id",
        ])
        .output()
        .expect("it starts");
    assert_eq!(missing.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no such table: nothing"));
    let said = refusal(
        &["--from", &url, "--table", "audited", "--column", "nothing"],
        "",
    );
    assert!(said.contains("no such column"), "{said}");
    connection
        .execute_batch("DELETE FROM audited")
        .expect("no rows");
    let said = refusal(
        &["--from", &url, "--table", "audited", "--column", "id"],
        "",
    );
    assert!(
        said.contains("column `id` of audited has no rows"),
        "{said}"
    );
}

/// The message of an audit that is refused and prints nothing.
fn refusal(args: &[&str], input: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args(["audit", "table", "-o", "json"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes()); // it may have ended
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(
        (done.stdout.len(), done.status.code()),
        (0, Some(64)),
        "{args:?}"
    );
    String::from_utf8(done.stderr).expect("text")
}

#[test]
fn an_audit_reports_its_column_or_asks_for_one() {
    let input = "user_id,id\n1,1785223470585921538\n2,1785223470585921538\n";
    let snowflake = ["--layout", "snowflake"];
    let (found, code) = audit(
        &[&["--from", "-", "--column", "id"], &snowflake[..]].concat(),
        Some(input.into()),
    );
    assert_eq!(
        (code, &found["findings"]["repeated"]["count"]),
        (1, &json!(1)),
        "{found}"
    );
    assert_eq!(found["lookedAt"], "column 2 of standard input (`id`)");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("orders.csv");
    let excel =
        "\u{feff}\"user;id\";id\r\n\"a\nb\";1785223470585921538\r\nc;1785223470585921539\r\n";
    std::fs::write(&path, excel).expect("a file");
    let (found, code) = audit(
        &[&[path.to_str().expect("text")], &snowflake[..]].concat(),
        None,
    );
    assert_eq!(
        (code, &found["rows"], &found["machines"]),
        (1, &json!(2), &json!([876])),
        "{found}"
    );
    assert_eq!(found["findings"]["repeated"]["count"], 0, "{found}");

    for (args, input, why) in [
        (
            &["-"][..],
            "a,b\n1,2\n",
            "several columns (a, b); choose one with --column",
        ),
        (
            &["-", "--column", "id"],
            "a,b\n1,2\n",
            "no column `id`: a, b",
        ),
        (&["-"], "", "it is empty"),
        (&["-"], "id\n", "has no rows: nothing was audited"),
        (&["/nonexistent/x.csv"], "", "/nonexistent/x.csv"),
        (
            &[],
            "",
            "name a CSV file, - for standard input, or --from URL",
        ),
        (
            &["--from", "sqlite:x.db", "--table", "orders"],
            "",
            "needs --table and --column",
        ),
    ] {
        let said = refusal(args, input);
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn small_numbers_of_a_migrated_table_are_reported_apart() {
    let numbers = (1..=5000)
        .map(|number| format!("{number}\n"))
        .collect::<String>();
    let mut child = Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args(["audit", "table", "-", "--layout", "snowflake"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let input = format!("{numbers}1785223470585921538\n");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes())
        .expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(done.stdout).expect("text");
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(
        said.contains("5,000  rows are 1 to 5,000: not IDs of the layout snowflake"),
        "{said}"
    );
    assert!(said.contains("machine.range = \"877-1023\""), "{said}");
    assert!(
        said.contains("raise-floor --to 2024-04-30T08:23:37.893Z"),
        "{said}"
    );

    let (found, code) = audit(&["-", "--layout", "snowflake"], Some(numbers.clone()));
    assert_eq!(code, 1, "no row holds an ID: {found}");
    assert_eq!(
        found["small"],
        json!({ "count": 5000, "from": "1", "until": "5000" })
    );
    let (found, code) = audit(
        &["-", "--layout", "snowflake"],
        Some(format!("{numbers}7\n")),
    );
    assert_eq!(
        (code, &found["findings"]["repeated"]["count"]),
        (1, &json!(1)),
        "{found}"
    );
}

fn finds_all_in(mut database: Database, server: &str, types: [&str; 2]) {
    let [whole, long] = types;
    database.rows(&format!(
        "CREATE TABLE audited (pk {whole} PRIMARY KEY, id {long})"
    ));
    inserts(&planted())
        .iter()
        .for_each(|sql| _ = database.rows(sql));
    let table = format!("{}.audited", database.name());
    let table = [
        "--from",
        server,
        "--table",
        &table,
        "--column",
        "id",
        "--order-by",
        "pk",
    ];
    finds_all(&audit(&table, None).0);
}

#[test]
fn the_table_of_mysql() {
    finds_all_in(
        Database::of_mysql(),
        &store_url("mysql"),
        ["INT", "BIGINT UNSIGNED"],
    );
}

#[test]
fn the_table_of_postgres() {
    finds_all_in(
        Database::of_postgres(),
        &store_url("postgres"),
        ["int", "bigint"],
    );
}

#[test]
fn the_first_row_may_be_names_or_an_id_in_any_form() {
    for (input, rows, repeated) in [
        ("2rrvDihMXHR\n2407837855670862845\n", 2, 1),
        ("total,ID\n7,2407837855670862845\n", 1, 0),
        ("\"id\"\n\"2407837855670862845\"\nnone\n", 2, 0),
    ] {
        let (found, _) = audit(&["--from", "-"], Some(input.to_owned()));
        assert_eq!(found["rows"], rows, "{input}");
        assert_eq!(found["findings"]["repeated"]["count"], repeated, "{input}");
    }
}

/// 163,000 IDs of three machines, in bursts of up to 4,096 in a millisecond.
fn bursts() -> Vec<u64> {
    let layout = IdMeta::SNOWFLAKE;
    let id = |n: u64| Id {
        time: 425_630_443_235 + n / 4096 * 7,
        seq: n % 4096,
        machine: [44, 3, 876][usize::try_from(n % 3).expect("below 3")],
        ..layout.blank()
    };
    let ids = (0..163_000).map(|n| layout.pack(&id(n)).expect("inside"));
    ids.collect()
}

/// Three files from public data: integers that were doubles, pandas with a missing value, 15 digits of Excel.
#[test]
fn an_audit_of_rounded_ids_says_so_first() {
    let ids = bursts();
    #[allow(clippy::cast_precision_loss, reason = "as pandas does")]
    let double = |id: &u64| *id as f64;
    let lines = |name: &str, line: &dyn Fn(&u64) -> String| {
        name.to_owned() + "\n" + &ids.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let python = |id: &u64| {
        let text = format!("{:e}", double(id));
        text.replace('e', "e+")
    };
    let excel = |id: &u64| (id / 10_000 * 10_000).to_string();
    for (input, first) in [
        (
            lines("id", &|id| format!("{:.0}", double(id))),
            "163,000 of 163,000 IDs look rounded by a program that keeps numbers as doubles: repetitions below may \
             come from that",
        ),
        (
            lines("id,name", &|id| python(id) + ",x") + "\n,missing\n",
            "163,000 of 163,001 rows: scientific notation; export the column as text",
        ),
        (
            lines("id", &|id| format!("{:.1}", double(id))),
            "163,000 of 163,000 rows: decimal fraction; store the column as a whole number",
        ),
        (
            lines("id", &excel),
            "163,000 of 163,000 IDs look rounded by Excel: repetitions below may",
        ),
        (
            lines("id", &|id| vesta_explain::in_javascript(*id)),
            "IDs look rounded by JavaScript: repetitions below may",
        ),
    ] {
        let args = ["-", "--layout", "snowflake"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
        command.args(["audit", "table"]).args(args);
        let text = output_of(&mut command, &input);
        let second = text.lines().nth(1).expect("two lines");
        assert!(second.contains(first), "{text}");
    }
    let plain: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let (found, _) = audit(&["-", "--layout", "snowflake"], Some(plain));
    assert_eq!(found["findings"]["rounded"]["count"], 0, "{found}");
}

/// Standard output of a command that reads this.
fn output_of(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let done = child.wait_with_output().expect("it ends");
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn an_audit_names_what_is_written_around_the_ids() {
    let ids = [1_785_223_470_585_921_538u64, 1_785_223_470_585_921_539];
    for (line, form) in [
        ("=\"{}\"", "formula of a spreadsheet"),
        ("ID_{}", "label"),
        ("| {} |", "table border"),
        ("{}L", "literal of a language"),
        ("NumberLong('{}')", "constructor"),
    ] {
        let rows: String = ids
            .iter()
            .map(|id| line.replace("{}", &id.to_string()) + "\n")
            .collect();
        let (found, _) = audit(&["-", "--column", "1", "--layout", "snowflake"], Some(rows));
        assert_eq!(
            (&found["rows"], &found["written"][form]),
            (&json!(2), &json!(2)),
            "{found}"
        );
        assert_eq!(found["machines"], json!([876]), "{line}");
    }
    // Base36 looks like Crockford's base32: it must be chosen.
    let rows = "0IAKJA8DRATQ5\n0IAKJA8DRATQ6\n";
    let (found, _) = audit(&["-"], Some(rows.to_owned()));
    assert_eq!(found["findings"]["unreadable"]["count"], 2, "{found}");
    let (found, _) = audit(&["-", "--format", "base36"], Some(rows.to_owned()));
    assert_eq!(found["machines"], json!([1021, 1022]), "{found}");
    // Each number ends in a check digit.
    let damm = vesta_intf::IdFormat::DecimalDamm;
    let rows: String = (0..9)
        .map(|n| damm.encode(ids[0] / 16 + n) + "\n")
        .collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
    command.args(["audit", "table", "-", "--layout", "snowflake"]);
    let text = output_of(&mut command, &rows);
    assert!(
        text.contains("each row also fits decimal-damm: pass --format decimal-damm"),
        "{text}"
    );
}

//! The real program: start, answers, end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use vesta_testkit::programs::{FREE_PORTS, Program};

use crate::support::Raw;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_vesta-rest");

fn command(dir: &Path, args: &[&str]) -> Command {
    prepare(Command::new(PROGRAM), dir, args)
}

pub(crate) fn prepare(mut command: Command, dir: &Path, args: &[&str]) -> Command {
    command.current_dir(dir).args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("VESTA_")) {
            command.env_remove(name);
        }
    }
    command.env("VESTA_STATE_DIR", "vesta-data");
    command
}

/// A run that ends by itself.
fn run(args: &[&str]) -> Output {
    command(TempDir::new().unwrap().path(), args)
        .output()
        .unwrap()
}

/// Starts the program in a folder, on free ports, and reads its output until it is ready.
pub(crate) fn start(dir: &Path, args: &[&str]) -> Program {
    start_by(Command::new(PROGRAM), dir, args)
}

fn start_by(command: Command, dir: &Path, args: &[&str]) -> Program {
    Program::serve(&mut prepare(command, dir, &[&FREE_PORTS, args].concat()))
        .unwrap_or_else(|ended| panic!("ended: {ended:?}"))
}

#[test]
fn it_starts_with_nothing_configured_answers_and_stops_with_0() {
    let dir = TempDir::new().unwrap();
    let program = start(dir.path(), &[]);
    assert!(program.said().contains("max-peak"), "{}", program.said());

    let mut client = Raw::connect(program.address());
    let id: u64 = client.get("/genid").body.parse().unwrap();
    let first = program
        .said()
        .split("first ID")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(id > first.trim().parse().unwrap());
    assert_eq!(client.get(&format!("/v1/ids/{id}")).json()["genMethod"], 2);
    assert_eq!(
        client.get("/expid?id=2407837855670862845").body,
        r#"{"genMethod":2,"machine":1021,"seq":0,"time":94990103,"type":0,"version":0}"#
    );

    let mut admin = Raw::connect(program.admin());
    assert_eq!(admin.get("/readyz").status, 200);
    let metrics = admin.get("/metrics").body;
    let counted = r#"vesta_requests_total{method="/genid",outcome="OK"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.contains("vesta_open_connections 1"), "{metrics}");

    let (code, log) = program.stop();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(
        client.closed(),
        "",
        "an idle connection is closed by the stop"
    );
}

#[test]
fn restarts_never_repeat_even_after_a_kill() {
    let dir = TempDir::new().unwrap();
    let namespace = vesta_testkit::namespace_of(dir.path());
    let mut seen = std::collections::HashSet::new();
    for round in 0..6 {
        let program = start(
            dir.path(),
            &["--machine-id", "7", "--namespace", &namespace],
        );
        let mut client = Raw::connect(program.address());
        for id in client.get("/v1/ids?count=1000").json()["ids"]
            .as_array()
            .unwrap()
        {
            assert!(
                seen.insert(id.as_str().unwrap().to_owned()),
                "{id} twice, round {round}"
            );
        }
        if round % 2 == 0 {
            program.signal("-KILL");
        } else {
            assert_eq!(program.stop().0, Some(0));
        }
    }
    assert_eq!(seen.len(), 6000);
}

#[test]
fn its_most_verbose_log_has_no_token() {
    let dir = TempDir::new().unwrap();
    let made = run(&["token", "new", "--name", "maker", "--scopes", "generate"]).stdout;
    let made = String::from_utf8(made).unwrap();
    let (token, table) = made.split_once("\n\n").unwrap();
    std::fs::write(dir.path().join("vesta.toml"), table).unwrap();
    // Into a file: a pipe would not be read in the meantime.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec "$0" "$@" 2>trace.log"#, PROGRAM]);
    let args = [
        "--config",
        "vesta.toml",
        "--log-level",
        "trace,actix_http=trace",
    ];
    let program = start_by(shell, dir.path(), &args);

    let unknown = "unknown-s3cret-token";
    for (address, uri, token, expected) in [
        (program.address(), "/genid", token, 200),
        (program.address(), "/v1/id", token, 200),
        (program.address(), "/v1/layout", token, 403),
        (program.address(), "/genid", unknown, 401),
        (program.address(), "/no-such-path", unknown, 401),
        (program.admin(), "/metrics", unknown, 401),
        (program.admin(), "/metrics", token, 403),
    ] {
        let mut client = Raw::connect(address);
        let head =
            format!("GET {uri} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
        client.send(&(head + "connection: close\r\n\r\n"));
        let answer = client.closed();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected} ")),
            "{uri}: {answer}"
        );
        assert!(!answer.contains(token), "{answer}");
    }
    let said = program.said().to_owned();
    assert!(said.contains("  tokens      maker\n"), "{said}");
    assert_eq!(program.stop().0, Some(0));
    let log = std::fs::read_to_string(dir.path().join("trace.log")).unwrap();
    assert!(log.contains("TRACE"), "it talks");
    let digest = table.split('"').nth(3).unwrap();
    for secret in [token, unknown, digest] {
        assert!(
            secret.len() > 16 && !(said.clone() + &log).contains(secret),
            "{secret}"
        );
    }
}

#[test]
fn two_programs_in_one_folder_get_different_machine_ids() {
    let dir = TempDir::new().unwrap();
    let programs = [start(dir.path(), &[]), start(dir.path(), &[])];
    let machines = programs
        .each_ref()
        .map(|program| Raw::connect(program.address()).get("/v1/layout").json()["machine"].clone());
    assert_ne!(machines[0], machines[1]);
}

#[test]
fn it_survives_running_out_of_file_descriptors() {
    let dir = TempDir::new().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"ulimit -n 64; exec "$0" "$@""#, PROGRAM]);
    let program = start_by(shell, dir.path(), &[]);
    assert_eq!(Raw::connect(program.address()).get("/genid").status, 200);
    let crowd: Vec<_> = (0..100).map(|_| Raw::connect(program.address())).collect();
    drop(crowd);
    assert_eq!(Raw::connect(program.address()).get("/genid").status, 200);
    let (code, log) = program.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("os error 24"),
        "the limit was not reached: {log}"
    );
}

#[test]
fn a_wrong_setting_exits_with_64_and_one_sentence() {
    for args in [
        &["--machine-id", "1024"][..],
        &["--http-listen", "0.0.0.0:0"],
        &["--http-listen", "0.0.0.0:0", "--machine-id", "7"],
        &["--layout", "no-such-layout"],
        &["--gen-method", "4"],
        &["--no-such-flag"],
    ] {
        let output = run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}: {said}");
        assert!(
            !said.is_empty() && output.stdout.is_empty(),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn it_has_the_store_commands_too() {
    let dir = TempDir::new().unwrap();
    let store = |args: &[&str]| {
        let output = command(dir.path(), &[&["store"], args].concat())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    assert_eq!(store(&["show"]), (Some(64), String::new()));
    let (code, said) = store(&["init"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.starts_with("created namespace default in SQLite vesta-data/vesta.db"),
        "{said}"
    );
    let (code, said) = store(&["show"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.ends_with("machine IDs  none was ever claimed\n"),
        "{said}"
    );
}

#[test]
fn help_and_print_config_are_worth_reading() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for part in [
        "--http-listen",
        "127.0.0.1:8088",
        "--machine-id",
        "VESTA_MACHINE_ID",
        "Examples:",
    ] {
        assert!(help.contains(part), "{part} in {help}");
    }
    let config = String::from_utf8(run(&["--print-config", "--machine-id", "7"]).stdout).unwrap();
    for part in ["listen = \"127.0.0.1:8088\"", "gen_method = 2", "id = 7"] {
        assert!(config.contains(part), "{part} in {config}");
    }
}

#[test]
fn a_server_that_stands_by_answers_not_holder_and_takes_over() {
    let dir = TempDir::new().unwrap();
    let namespace = vesta_testkit::namespace_of(dir.path());
    let start = |state| {
        let own = ["--state-dir", state, "--namespace", &namespace];
        let shared = ["--machine-id", "7", "--machine-standby"];
        let store = ["--machine-store", "sqlite:shared/vesta.db"];
        start(dir.path(), &[&own[..], &shared, &store].concat())
    };
    let (holder, mut waiting) = (start("one"), start("two"));
    let mut client = Raw::connect(waiting.address());
    for path in ["/genid", "/v1/id", "/v1/ids?count=5"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 503, "{path}");
        assert_eq!(answer.header("retry-after"), "1", "{path}");
        let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem["kind"], "NOT_HOLDER", "{path}");
    }
    let answer = Raw::connect(holder.address()).get("/genid").body;
    let last: u64 = answer.parse().unwrap_or_else(|_| panic!("{answer}"));
    let explained = client.get(&format!("/v1/ids/{last}"));
    assert_eq!(explained.status, 200, "it explains IDs all the same");
    assert_eq!(holder.stop().0, Some(0));
    waiting.logs("took over this machine ID");
    // The line is logged a moment before the first ID is ready.
    let mut answers = (0..10_000).map(|_| client.get("/genid").body);
    let first: u64 = answers.find_map(|it| it.parse().ok()).expect("an ID");
    assert!(first > last);
}

#[test]
fn a_server_that_waits_for_its_store_says_so_on_its_public_port() {
    let dir = TempDir::new().unwrap();
    let away = [
        "--machine-store",
        "redis://127.0.0.1:1/0",
        "--wait-for-store",
    ];
    let path = ["--readiness-public-path", "/readyz"];
    let mut waiting = Program::start(&mut command(
        dir.path(),
        &[&FREE_PORTS[..], &away, &path].concat(),
    ));
    let line = waiting.logs(" listen=");
    let address = line.split(" listen=").nth(1).expect("an address");
    let address = address.split_whitespace().next().expect("an address");
    let mut client = Raw::connect(address.trim_matches('"').parse().unwrap());
    let answer = client.get("/readyz");
    assert_eq!(answer.status, 503);
    let why = "not ready: no machine ID yet; waiting for redis://127.0.0.1:1/0\n";
    assert_eq!(answer.body, why);
    for path in ["/genid", "/v1/ids?count=5", "/"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 503, "{path}");
        assert_eq!(answer.header("retry-after"), "1", "{path}");
        let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem["kind"], "AWAITING_LEASE", "{path}");
    }
    assert_eq!(waiting.stop().0, Some(0));
}

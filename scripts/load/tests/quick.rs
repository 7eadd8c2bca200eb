//! Smoke run of the program, in which the bare servers replace Vesta's.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_quick_calibration_finds_requests_in_every_round() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let output = Command::new(env!("CARGO_BIN_EXE_vesta-load"))
        .args(["run", "--quick", "--calibrate", "--json"])
        .arg(&json)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "and a runtime of one thread for each core.",
        "## gRPC, unary `GenId`",
        "## REST, `GET /genid`",
        "| 8 | **ratio** |",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let results: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let unary = results["unary"].as_array().unwrap();
    assert_eq!(unary.len(), 4, "two protocols, two levels");
    for comparison in unary {
        for side in ["vesta", "peer"] {
            let rounds = comparison[side].as_array().unwrap();
            assert_eq!(rounds.len(), 1);
            let number = |name: &str| rounds[0][name].as_f64().unwrap();
            assert!(number("requests") > 0.0, "{comparison}");
            assert!(
                number("p50") > 0.0 && number("p50") <= number("p99"),
                "{comparison}"
            );
            assert!(number("p99") <= number("p999"), "{comparison}");
        }
    }
}

#[test]
fn a_missing_program_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_vesta-load"))
        .args(["run", "--quick", "--server", "/no/such/vesta-server"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("/no/such/vesta-server: No such file"),
        "{errors}"
    );
    assert!(errors.contains("--help"), "{errors}");
}

/// Names of a process's threads without the prefix, which is the name of the process.
fn threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap();
    let mut names: Vec<_> = tasks
        .map(|task| name(task.unwrap()).trim_end().to_owned())
        .collect();
    names.sort();
    names
}

/// Like vesta-server's: compared with one multi-threaded runtime its requests/s would say little about
/// Vesta.
#[test]
fn the_bare_tonic_has_an_acceptor_and_a_worker_for_each_core() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_vesta-load"))
        .arg("echo-grpc")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It starts its workers before it prints its address; they name themselves.
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut names = threads(server.id());
    while names.iter().filter(|name| *name == "vesta-load").count() > 1 {
        names = threads(server.id());
    }
    server.kill().unwrap();
    server.wait().unwrap();

    assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
    let cores = std::thread::available_parallelism().unwrap().get();
    let workers = (0..cores).map(|number| format!("bare-worker-{number}"));
    let mut expected: Vec<_> = workers.chain(["vesta-load".to_owned()]).collect();
    expected.sort();
    assert_eq!(names, expected);
}

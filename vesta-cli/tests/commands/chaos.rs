//! `vesta chaos` on the unmodified program: no ID repeats. `scripts/chaos.sh` has a planted fault.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The run in the documentation; a shorter one unless there is time for all of it.
#[test]
fn no_id_repeats_under_kills_pauses_and_clock_steps() {
    check("0.25", &[]);
}

/// The pool server is one of the servers that are killed and paused, and single members are cut off from it.
#[test]
fn no_id_repeats_through_a_pool_server_that_is_killed_too() {
    check("0.3", &["--pool-server"]);
}

/// Single processes are cut off from the database.
#[test]
fn no_id_repeats_while_processes_of_mysql_are_cut_off() {
    check(
        "0.3",
        &["--store", &vesta_testkit::fleet::store_url("mysql")],
    );
}

fn check(minutes: &str, more: &[&str]) {
    let is_full = std::env::var_os("VESTA_TEST_FULL").is_some();
    let minutes = if is_full { "1" } else { minutes };
    let args = ["chaos", "--minutes", minutes, "--processes", "6"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
    command.args(args).args(["--seed", "7", "-o", "csv"]);
    // Requests to its servers bypass the proxy.
    let proxied = command.env("ALL_PROXY", "http://127.0.0.1:9").args(more);
    let done = proxied.output().expect("it runs");
    let (said, words) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert_eq!(done.status.code(), Some(0), "{said}{words}");
    let (names, counts) = said.trim().split_once('\n').expect("names and numbers");
    assert_eq!(
        names,
        "repeated,ids,kills,pauses,clockSteps,cuts,failedRequests,seed"
    );
    let counts: Vec<u64> = counts
        .split(',')
        .map(|it| it.parse().expect("a number"))
        .collect();
    assert_eq!((counts[0], counts[7]), (0, 7));
    assert_eq!(counts[5] > 0, !more.is_empty(), "{said}");
    assert!(
        counts[1] > 10_000 && counts[2..4].iter().all(|count| *count > 0),
        "{said}"
    );
}

#[test]
fn a_server_that_does_not_start_is_an_error_with_its_cause() {
    let args = ["chaos", "--minutes", "0.1", "--store", "mysql://nobody"];
    let done = Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args(args)
        .output()
        .expect("it runs");
    let words = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(64), "{words}");
    assert!(words.contains("machine.store"), "{words}");
}

/// Number of processes with this text on their command line.
fn processes_of(text: &str) -> usize {
    let folders = std::fs::read_dir("/proc").expect("Linux").flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

#[test]
fn a_signal_ends_it_and_leaves_no_server_and_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a plain path");
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vesta"))
            .args(["chaos", "--processes", "4", "--seed", "1"])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut words = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let going = words
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains(" IDs, "));
        assert!(going && processes_of(path) > 0);
        kill_process(Pid::from_child(&child), signal).expect("it is there");
        let rest: Vec<_> = words.map_while(Result::ok).collect();
        let done = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(70), "{said}{rest:?}");
        assert!(
            said.starts_with("0 of ") && rest.iter().any(|it| it.contains("stopped by a signal")),
            "{said}{rest:?}"
        );
        assert_eq!(processes_of(path), 0);
        assert_eq!(folder.path().read_dir().expect("it is there").count(), 0);
    }
}

//! Several machine IDs, the store commands, and a store that is unreachable at start.

use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;
use tonic_health::pb::health_client::HealthClient;
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1::GenIdRequest;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;

use crate::support::{folder, namespace_of, run, start, start_waiting, text};

/// Exit code and output of both channels.
fn store(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = run(folder, &[&["store"], args].concat(), &[]);
    (
        output.status.code(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

/// The rows of `store show`.
fn records(folder: &Path, args: &[&str]) -> Vec<Value> {
    let (code, said) = store(folder, &[&["show", "-o", "json"], args].concat());
    assert_eq!(code, Some(0), "{said}");
    let shown: Value = serde_json::from_str(&said).expect("JSON");
    shown["records"].as_array().expect("rows").clone()
}

#[test]
fn several_machine_ids_are_printed_and_used() {
    let folder = folder();
    let args = [
        "--machine-count",
        "3",
        "--machine-range",
        "5-9",
        "--machine-strategy",
        "lowest",
    ];
    let running = start(folder.path(), &args);
    let machines = "5, 6, 7 (pool 5 to 9 of SQLite vesta-data/vesta.db)";
    assert_eq!(running.fact("machine IDs"), machines);
    assert_eq!(
        running.fact("capacity"),
        "3,145,728 IDs/s with 3 machine IDs"
    );
    let first = IdMeta::MAX_PEAK
        .unpack(running.first_id())
        .expect("its parts");
    assert!((5..=7).contains(&first.machine));
    let (_, metrics) = running.get("/metrics");
    assert!(
        metrics.contains("vesta_pool_machine_ids{state=\"held\"} 3\n"),
        "{metrics}"
    );
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    let states: Vec<_> = records(folder.path(), &[])
        .iter()
        .map(|row| row["state"].clone())
        .collect();
    assert_eq!(states, ["released", "released", "released"]);
}

#[test]
fn a_machine_id_for_each_start_is_never_used_again() {
    let folder = folder();
    let mut machines = Vec::new();
    for _ in 0..3 {
        let running = start(folder.path(), &["--machine-strategy", "disposable"]);
        assert!(
            running
                .fact("machine ID")
                .ends_with("(used once, from SQLite vesta-data/vesta.db)")
        );
        machines.push(running.machine());
    }
    assert_eq!(machines, [1, 2, 3]);
    let (code, said) = store(folder.path(), &["show", "--layout", "max-peak"]);
    assert_eq!(
        (code, said.lines().count()),
        (Some(64), 1),
        "no lease was ever made: {said}"
    );
}

#[test]
fn only_init_creates_missing_tables_and_databases() {
    let folder = folder();
    let missing = "the database does not exist; create it with `vesta-server store init`";
    for args in [
        &["show"][..],
        &["free", "7", "--yes"],
        &["repair", "7", "--yes"],
        &["raise-floor", "--yes"],
    ] {
        let (code, said) = store(folder.path(), args);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains(missing), "{said}");
    }
    let args = [
        "--auto-init=false",
        "--grpc-listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let output = run(folder.path(), &args, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(
        said.contains("does not exist, and auto_init is off; create it with"),
        "{said}"
    );
    assert!(!folder.path().join("vesta-data/vesta.db").exists());

    let (code, said) = store(folder.path(), &["init"]);
    assert_eq!(code, Some(0), "{said}");
    let namespace = namespace_of(folder.path());
    let created = format!("created namespace {namespace} in SQLite vesta-data/vesta.db");
    assert!(said.starts_with(&created), "{said}");
    let (code, said) = store(folder.path(), &["init"]);
    assert_eq!(
        (code, said.starts_with("already there, nothing to do")),
        (Some(0), true),
        "{said}"
    );
    let (code, said) = store(folder.path(), &["init", "--layout", "snowflake"]);
    assert_eq!(code, Some(64), "{said}");
    let theirs = format!("namespace `{namespace}` is for layout 1/1/2/30/20/10");
    assert!(said.contains(&theirs), "{said}");
    let running = start(folder.path(), &["--auto-init=false"]);
    assert!(running.first_id() > 0);
}

#[test]
fn a_machine_id_is_freed_only_once_its_owner_has_expired() {
    let folder = folder();
    // A layout in milliseconds, so that a short window has enough ticks.
    let layout = ["--layout", "min-granularity"];
    let lease = [
        "--machine-window-ms",
        "1500",
        "--machine-renew-every-ms",
        "500",
    ];
    let timeout = ["--machine-request-timeout-ms", "500"];
    let running = start(folder.path(), &[&layout[..], &lease, &timeout].concat());
    let machine = running.machine().to_string();
    let free = [&["free", &machine, "--yes"], &layout[..]].concat();

    let (code, said) = store(folder.path(), &free);
    assert_eq!(code, Some(64), "{said}");
    assert!(
        said.contains(&format!("machine ID {machine} is in use by ")),
        "{said}"
    );
    running.signal("-KILL");
    let _ = running.wait();
    while records(folder.path(), &layout)[0]["state"] != "expired" {}
    let (code, said) = store(
        folder.path(),
        &["free", &machine, "--layout", "min-granularity"],
    );
    assert_eq!(code, Some(64), "{said}");
    assert!(
        said.ends_with("nothing changed: no terminal to confirm on; pass --yes\n"),
        "{said}"
    );
    let (code, said) = store(folder.path(), &free);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.ends_with(&format!("Machine ID {machine} is free.\n")),
        "{said}"
    );
    assert_eq!(records(folder.path(), &layout)[0]["state"], "released");
}

#[test]
fn a_floor_is_raised_and_shown() {
    let folder = folder();
    assert_eq!(store(folder.path(), &["init"]).0, Some(0));
    let (code, said) = store(folder.path(), &["raise-floor"]);
    assert_eq!(code, Some(64), "{said}");
    let (code, said) = store(
        folder.path(),
        &["raise-floor", "--yes", "--to", "2020-01-01T00:00:00Z"],
    );
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("is now 2020-01-01T00:00:00.000Z.\n"),
        "{said}"
    );
    let (_, shown) = store(folder.path(), &["show"]);
    assert!(
        shown.contains("floor        2020-01-01T00:00:00.000Z\n"),
        "{shown}"
    );
}

#[test]
fn store_commands_require_a_store_in_the_settings() {
    let folder = folder();
    for (args, expected) in [
        (
            &["--machine-id", "7", "store", "show"][..],
            "not in a store; set machine.store",
        ),
        (
            &["--machine-strategy", "disposable", "store", "show"],
            "WORKER_NODE",
        ),
        (
            &["store", "import", "leaf", "--from", "mysql://u:s3cret@h/d"],
            "write zookeeper://",
        ),
        (
            &["store", "import", "vesta-db", "--from", "h"],
            "`h` is not the URL of a store",
        ),
    ] {
        let output = run(folder.path(), args, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn a_program_waiting_for_its_store_is_alive_but_not_ready() {
    let folder = folder();
    assert_eq!(store(folder.path(), &["init"]).0, Some(0));
    let database = folder.path().join("vesta-data/vesta.db");
    let database = rusqlite::Connection::open(database).expect("the pool");
    database.execute_batch("BEGIN IMMEDIATE").expect("a lock");

    let mut waiting = start_waiting(folder.path(), &[]);
    waiting.logs("the store does not answer; trying again");
    let (status, body) = waiting.get("/readyz");
    assert_eq!(status, 503);
    let expected = "not ready: no machine ID yet; waiting for sqlite:vesta-data/vesta.db\n";
    assert_eq!(body, expected);
    assert_eq!(waiting.get("/healthz").0, 200);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (served, refusal) = runtime.block_on(async {
        let channel =
            tonic::transport::Endpoint::from_shared(format!("http://{}", waiting.address()))
                .expect("an address")
                .connect_lazy();
        let health = tonic_health::pb::HealthCheckRequest::default();
        let health = HealthClient::new(channel.clone()).check(health).await;
        let refusal = IdServiceClient::new(channel)
            .gen_id(GenIdRequest::default())
            .await;
        (
            health.expect("an answer").into_inner().status,
            refusal.expect_err("no ID"),
        )
    });
    assert_eq!(served, tonic_health::ServingStatus::NotServing as i32);
    let refusal = vesta_intf::IdError::from(refusal);
    assert_eq!(refusal.kind(), vesta_intf::ErrorKind::AwaitingLease);
    assert_eq!(
        refusal.retry_after(),
        Some(std::time::Duration::from_secs(1))
    );

    database
        .execute_batch("ROLLBACK")
        .expect("the lock is given back");
    assert!(waiting.is_ready());
    assert!(TcpStream::connect(waiting.address()).is_ok());
    assert_eq!(waiting.get("/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(waiting.stop().0, Some(0));
}

#[test]
fn a_waiting_program_can_be_stopped() {
    let folder = folder();
    assert_eq!(store(folder.path(), &["init"]).0, Some(0));
    let database = folder.path().join("vesta-data/vesta.db");
    let database = rusqlite::Connection::open(database).expect("the pool");
    database.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let (code, said) = start_waiting(folder.path(), &[]).stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("stopped before a machine ID was claimed"),
        "{said}"
    );
}

//! The program's life from the start-up lines to the exit code.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tonic::transport::Endpoint;
use vesta_intf::grpc::v1::{GenIdRequest, id_service_client::IdServiceClient};
use vesta_intf::{IdMeta, UnixMillis};

use crate::support::{
    FREE_PORTS, Program, folder, namespace_of, program, run, serve, start, start_waiting, text,
};

#[tokio::test]
async fn the_start_up_lines_say_what_matters() {
    let folder = folder();
    let running = start(folder.path(), &["--machine-id", "7"]);
    let lines: Vec<_> = running.said().lines().collect();
    assert_eq!(lines[0], format!("vesta-server {}", vesta_boot::VERSION));
    assert!(
        running
            .fact("layout")
            .starts_with("max-peak (version 1 + type 1 + genMethod 2 + ")
    );
    assert_eq!(running.fact("epoch"), "2014-12-31T16:00:00Z");
    assert!(running.fact("runs out").starts_with("2049-01-09 (in "));
    assert_eq!(running.fact("capacity"), "1,048,576 IDs/s");
    assert!(running.fact("machine ID").starts_with("7 (fixed"));
    assert_eq!(running.fact("namespace"), namespace_of(folder.path()));
    let expected = format!(
        "grpcurl -plaintext {} vesta.v1.IdService/GenId",
        running.address()
    );
    assert_eq!(running.fact("try"), expected);
    let parts = IdMeta::MAX_PEAK
        .unpack(running.first_id())
        .expect("its parts");
    assert_eq!((parts.machine, parts.gen_method, parts.version), (7, 1, 0));
    // Every label ends in the same column.
    let column = lines[1].find("max-peak");
    assert!(
        lines[1..]
            .iter()
            .all(|line| line.find(line[14..].trim()) == column)
    );

    let channel = Endpoint::from_shared(format!("http://{}", running.address())).expect("a URL");
    let mut client = IdServiceClient::new(channel.connect().await.expect("a connection"));
    let next = client
        .gen_id(GenIdRequest {})
        .await
        .expect("an ID")
        .into_inner()
        .id;
    assert!(next > running.first_id());
}

#[test]
fn the_admin_listener_answers_scrapers_probes_and_people() {
    let folder = folder();
    let running = start(folder.path(), &["--machine-id", "7"]);
    assert_eq!(running.get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(running.get("/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(running.get("/nothing").0, 404);

    let (status, body) = running.get("/status");
    let state: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status, 200);
    assert_eq!(state["machine"], 7);
    assert_eq!(state["ready"], true);
    assert_eq!(state["capacityPerSecond"], 1_048_576);
    assert!(
        state["lease"]["windowLeftMs"]
            .as_u64()
            .is_some_and(|left| left > 0),
        "{state}"
    );

    let (_, metrics) = running.get("/metrics");
    for line in [
        "vesta_errors_total{kind=\"INTERNAL\"} 0",
        "vesta_machine_id 7",
        "vesta_ready 1",
        "vesta_ids_issued_total{token=\"\"} 0",
        "vesta_fenced_total 0",
        "vesta_build_info{program=\"vesta-server\",version=\"",
        "# TYPE vesta_fenced_total counter",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    let (_, page) = running.get("/");
    for link in ["status", "metrics", "readyz", "healthz"] {
        assert!(page.contains(&format!("href=\"{link}\"")), "{page}");
    }
}

#[test]
fn json_logs_carry_the_start_up_as_one_event() {
    let folder = folder();
    let mut command = program(folder.path());
    let args = ["--machine-id", "7", "--log-format", "json"];
    let mut running = Program::start(command.args(FREE_PORTS).args(args));
    running.logs("\"started\"");
    let output = running.kill();
    let log = text(&output.stderr);
    let mut events = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON in each line"));
    let event = events.find(|event| event["message"] == "started");
    let event = event.expect("an event");
    assert_eq!(event["machine_id"], 7);
    assert_eq!(event["layout"], "max-peak");
    let first: u64 = event["first_id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("an ID");
    assert_eq!(
        IdMeta::MAX_PEAK.unpack(first).expect("its parts").machine,
        7
    );
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

#[test]
fn sigterm_exits_with_0_and_releases_the_machine_id() {
    for machine in [&["--machine-id", "7"][..], &[]] {
        let folder = folder();
        let mut last = 0;
        let mut machines = Vec::new();
        for signal in ["-TERM", "-INT", "-TERM"] {
            let running = start(folder.path(), machine);
            assert!(
                last < running.first_id(),
                "an ID after a restart is larger than all before"
            );
            last = running.first_id();
            machines.push(running.machine());
            running.signal(signal);
            let (code, said) = running.wait();
            assert_eq!(code, Some(0), "{said}");
            assert!(
                said.contains("released") && said.contains("stopped"),
                "{said}"
            );
        }
        assert!(machines.iter().all(|id| *id == machines[0]), "{machines:?}");
        // No ID was held back: three starts within a few ticks of now.
        let moment = IdMeta::MAX_PEAK.unpack(last).expect("its parts").time;
        let moment = IdMeta::MAX_PEAK.moment_of(moment).expect("a moment");
        let file = std::fs::metadata(folder.path().join("vesta-data")).and_then(|it| it.modified());
        let now = file
            .expect("a folder")
            .duration_since(UnixMillis(0).to_system_time());
        let now = u64::try_from(now.expect("after 1970").as_millis()).expect("not too late");
        assert!(
            moment.0 < now + 3_000,
            "{moment} is too far ahead of {}",
            UnixMillis(now)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_signal_exits_at_once_unless_within_a_second() {
    let folder = folder();
    let mut running = start(
        folder.path(),
        &[
            "--machine-id",
            "7",
            "--drain-limit-ms",
            "600000",
            "--request-timeout-ms",
            "100",
        ],
    );
    let channel = Endpoint::from_shared(format!("http://{}", running.address())).expect("a URL");
    let channel = channel.connect().await.expect("a connection");
    // An endless stream delays the shutdown.
    let mut client =
        tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let open = client.server_reflection_info(tokio_stream::pending()).await;
    running.signal("-TERM");
    while running.get("/readyz").0 != 503 {
        tokio::task::yield_now().await;
    }
    assert!(running.get("/readyz").1.contains("the server is stopping"));
    assert_eq!(running.get("/healthz").0, 200);
    let began = tokio::time::Instant::now();
    running.signal("-TERM");
    if began.elapsed() < Duration::from_millis(500) {
        running.logs("within a second");
        assert_eq!(running.get("/healthz").0, 200, "the stop goes on");
    }
    while TcpStream::connect(running.admin()).is_ok() {
        running.signal("-TERM");
    }
    let (code, said) = running.wait();
    assert_eq!(code, Some(128 + 15), "{said}");
    assert!(
        began.elapsed() >= Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    drop(open);
}

#[tokio::test]
async fn readiness_drops_first_and_a_second_signal_ends_the_delay() {
    let folder = folder();
    let mut running = start(
        folder.path(),
        &["--machine-id", "7", "--shutdown-delay-ms", "600000"],
    );
    running.signal("-TERM");
    let began = tokio::time::Instant::now();
    running.logs("stopping in 600000 ms");
    while running.get("/readyz").0 != 503 {}
    assert_eq!(running.get("/healthz").0, 200);
    let url = format!("http://{}", running.address());
    let channel = Endpoint::from_shared(url)
        .expect("a URL")
        .connect()
        .await
        .expect("a connection");
    IdServiceClient::new(channel)
        .gen_id(GenIdRequest {})
        .await
        .expect("an ID");
    while TcpStream::connect(running.address()).is_ok() {
        running.signal("-TERM"); // signals within a second are echoes of the first
    }
    assert!(
        began.elapsed() >= Duration::from_millis(900),
        "{:?}",
        began.elapsed()
    );
    let (code, said) = running.wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("machine ID released") && said.contains("stopped"),
        "{said}"
    );
    let echoes = said.matches("within a second of the first").count();
    assert!(
        (1..=2).contains(&echoes),
        "{echoes} lines for those of the delay and of the stop"
    );
}

#[test]
fn without_anything_to_serve_a_stop_has_no_delay() {
    let folder = folder();
    let args = [
        "--shutdown-delay-ms",
        "600000",
        "--machine-store",
        "redis://127.0.0.1:1",
    ];
    let (code, said) = start_waiting(folder.path(), &args).stop();
    assert_eq!(code, Some(0), "{said}");
}

/// `timeout` and process groups send signals like this.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_signals_at_once_drain_once_and_release_the_machine_id() {
    let folder = folder();
    let mut running = start(
        folder.path(),
        &[
            "--machine-id",
            "7",
            "--drain-limit-ms",
            "1500",
            "--request-timeout-ms",
            "100",
        ],
    );
    let url = format!("http://{}", running.address());
    let channel = Endpoint::from_shared(url)
        .expect("a URL")
        .connect()
        .await
        .expect("a connection");
    let mut client =
        tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let open = client.server_reflection_info(tokio_stream::pending()).await; // the stop drains it
    running.signal("-TERM");
    running.logs("stopping");
    running.signal("-TERM");
    let (code, said) = running.wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("machine ID released") && said.contains("stopped"),
        "{said}"
    );
    drop(open);
}

#[test]
fn unread_output_does_not_block_the_program() {
    let folder = folder();
    let mut running = start(
        folder.path(),
        &["--machine-id", "7", "--log-level", "trace"],
    );
    running.ignore_log();
    assert_eq!(running.get("/readyz").0, 200);
    running.signal("-TERM"); // the stop is logged
    assert_eq!(running.wait().0, Some(0));
}

#[test]
fn two_programs_with_no_configuration_in_one_folder_get_different_machine_ids() {
    let folder = folder();
    let (one, other) = (start(folder.path(), &[]), start(folder.path(), &[]));
    assert_ne!(one.machine(), other.machine());
    assert_ne!(one.first_id(), other.first_id());
}

#[test]
fn the_same_fixed_machine_id_twice_is_refused() {
    let folder = folder();
    let _one = start(folder.path(), &["--machine-id", "7"]);
    let output = run(
        folder.path(),
        &[&["--machine-id", "7"], &FREE_PORTS[..]].concat(),
        &[],
    );
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn the_first_id_is_ready_within_a_second() {
    let folder = folder();
    let began = tokio::time::Instant::now();
    let running = start(folder.path(), &[]);
    assert!(running.first_id() > 0);
    // Generous: tests share their machine.
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn an_unresponsive_store_does_not_delay_the_exit() {
    let folder = folder();
    let running = start(folder.path(), &["--drain-limit-ms", "300"]);
    let database = folder.path().join("vesta-data/vesta.db");
    let database = rusqlite::Connection::open(database).expect("the pool");
    database.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let began = tokio::time::Instant::now();
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("the store did not confirm the release in time"),
        "{said}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn running_out_of_file_descriptors_is_survived() {
    let folder = folder();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 40 && exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_vesta-server"),
    ]);
    command.args(FREE_PORTS).args(["--machine-id", "7"]);
    command
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null());
    command.env("VESTA_STATE_DIR", "vesta-data");
    let running = serve(&mut command);
    let crowd: Vec<_> = (0..60)
        .map(|_| TcpStream::connect(running.address()))
        .collect();
    assert!(crowd.iter().all(Result::is_ok), "the kernel takes them");
    drop(crowd);
    let url = format!("http://{}", running.address());
    let channel = Endpoint::from_shared(url).expect("a URL").connect_lazy();
    let mut client = IdServiceClient::new(channel);
    while client.gen_id(GenIdRequest {}).await.is_err() {}
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("could not accept a connection"), "{said}");
    assert!(
        said.contains("max_connections = 4096 and 1 machine IDs need 4161 file descriptors"),
        "{said}"
    );
}

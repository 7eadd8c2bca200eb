//! Members of a pool server that are killed: their records belong to them until the bounds have passed.

use std::fs;

use tokio::time::Instant;
use tonic::Request;
use tonic::transport::Endpoint;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_intf::grpc::v1::{OpenPoolRequest, PutEntriesRequest, PutEntry};

use crate::support::{folder, program, start};
use vesta_testkit::programs::{FREE_PORTS, Program};

/// Its state directory has the secret. A start elsewhere waits for the bound, and says so.
#[test]
fn a_killed_members_record_is_replaced_at_once_only_on_its_own_host() {
    let [of_pool_server, of_member, elsewhere] = [(); 3].map(|()| folder());
    let file = format!(
        "sqlite:{}",
        of_pool_server.path().join("pool-server.db").display()
    );
    let pool_server = start(
        of_pool_server.path(),
        &[
            "--machine-store",
            &file,
            "--pool-server-namespaces",
            "orders",
        ],
    );
    let url = format!("vesta://{}", pool_server.address());
    let args = [
        "--namespace",
        "orders",
        "--machine-id",
        "7",
        "--machine-store",
        &url,
        // As short as the rules allow.
        "--machine-window-ms",
        "9000",
        "--machine-renew-every-ms",
        "3000",
    ];
    let first = start(of_member.path(), &args);
    let before = first.first_id();
    first.kill();
    let began = Instant::now();
    let second = start(of_member.path(), &args);
    assert!(
        began.elapsed().as_secs() < 5,
        "at once: {:?}",
        began.elapsed()
    );
    assert!(second.first_id() > before);
    second.kill();
    fs::create_dir_all(elsewhere.path()).expect("it is there");
    let began = Instant::now();
    let mut command = program(elsewhere.path());
    let mut third = Program::start(command.args(FREE_PORTS).args(args));
    third.logs("has no secret of it: waiting until");
    while !third.is_ready() {
        assert!(began.elapsed().as_secs() < 60, "{}", third.said());
    }
    assert!(began.elapsed().as_secs() >= 5, "its bound was 9 s ahead");
    third.kill();
    let _ = pool_server.stop();
}

/// No caller can fill the log.
#[test]
fn a_refused_change_is_logged_once_for_each_reason() {
    let folder = folder();
    let file = format!("sqlite:{}", folder.path().join("pool-server.db").display());
    let arguments = [
        "--machine-store",
        &file,
        "--pool-server-namespaces",
        "orders",
    ];
    let pool_server = start(folder.path(), &arguments);
    let put = |key: &str, new: &str| PutEntry {
        key: key.into(),
        old: None,
        new: new.into(),
        secret: None,
    };
    let long = "x".repeat(1 << 20);
    let forged = [put("7", "no record"), put("7", &long)];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let url = format!("http://{}", pool_server.address());
        let channel = Endpoint::from_shared(url).expect("a URL").connect().await;
        let mut client = PoolServiceClient::new(channel.expect("it listens"));
        let opened = client.open(Request::new(OpenPoolRequest::default())).await;
        let identity = opened.expect("it answers").into_inner().identity;
        for change in [&forged[0], &forged[1], &forged[0], &forged[1], &forged[0]] {
            let request = PutEntriesRequest {
                area: "lease/orders".into(),
                puts: vec![change.clone()],
                identity,
            };
            client
                .put(Request::new(request))
                .await
                .expect_err("refused");
        }
    });
    let (_, metrics) = pool_server.get("/metrics");
    let counted = metrics.contains("vesta_pool_server_refused_total{token=\"\"} 5");
    assert!(counted, "{metrics}");
    let (_, said) = pool_server.stop();
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.contains("a change that no owner would make was refused"))
        .collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        !said.contains("no record") && !said.contains("xxxx"),
        "without the content"
    );
}

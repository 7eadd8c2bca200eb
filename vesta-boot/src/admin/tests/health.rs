//! Liveness and readiness.

use super::*;

#[tokio::test]
async fn readiness_follows_the_service_and_liveness_fails_only_if_a_restart_helps() {
    let admin = admin();
    assert_eq!(
        admin.get("/readyz").await,
        (StatusCode::OK, "ready\n".to_owned())
    );
    admin.service.close();
    let (status, body) = admin.get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        body.starts_with("not ready: the generator has stopped"),
        "{body}"
    );
    let (status, body) = admin.get("/healthz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.starts_with("restart me: "), "{body}");
    let (_, status) = admin.get("/status").await;
    assert!(
        status.contains("\"notReadyBecause\": \"the generator has stopped"),
        "{status}"
    );
    let (_, metrics) = admin.get("/metrics").await;
    assert!(metrics.contains("\nvesta_ready 0\n"), "{metrics}");
    assert!(
        metrics.contains("vesta_sealed{reason=\"it was shut down\"} 1"),
        "{metrics}"
    );
    admin.shutdown.cancel();
    assert_eq!(
        admin.get("/healthz").await.0,
        StatusCode::OK,
        "it is on its way out"
    );
}

/// The clock jumped by two hours, and another process has the machine ID.
#[tokio::test]
async fn liveness_asks_for_a_restart_while_no_machine_id_is_claimed_by_a_suspect_clock() {
    let clock = ManualClock::at(UnixMillis(1_600_000_000_000));
    let store = Arc::new(MemoryStore::new());
    let service = LocalIdService::builder()
        .machine(MachineSource::Pool {
            store: store.clone(),
            range: Some(1..=1),
        })
        .state_dir(tempfile::tempdir().expect("a folder").path())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .expect("a service");
    let admin = admin_of(Assembled::from(service));
    let pass = |seconds| {
        clock.advance(Duration::from_secs(seconds));
        admin.service.maintain();
    };
    clock.set_wall(UnixMillis(1_600_007_200_000));
    pass(0);
    assert!(admin.service.status().clock_suspect);
    assert_eq!(
        admin.get("/healthz").await.0,
        StatusCode::OK,
        "it has its machine ID"
    );
    let leases = Leases::new(store, "default");
    let record = leases.record(1).expect("memory").expect("it was claimed");
    let thief = Record {
        epoch: record.epoch + 1,
        owner: 99,
        attempt: 1,
        ..record.clone()
    };
    leases.change(1, Some(&record), &thief).expect("memory");
    pass(5);
    let (status, body) = admin.get("/healthz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.starts_with("restart me: "), "{body}");
    let (_, body) = admin.get("/readyz").await;
    assert!(
        body.contains("the clock jumped ahead by more than an hour"),
        "{body}"
    );
    pass(600);
    assert_eq!(admin.get("/healthz").await.0, StatusCode::OK);
    admin.service.gen_id().expect("it was claimed anew");
}

#[tokio::test]
async fn a_draining_program_is_not_ready_although_its_service_is() {
    let admin = admin();
    admin.shutdown.cancel();
    let (status, body) = admin.get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "not ready: the server is stopping\n");
    let state: serde_json::Value =
        serde_json::from_str(&admin.get("/status").await.1).expect("JSON");
    assert_eq!(state["ready"], false);
    assert_eq!(state["notReadyBecause"], "the server is stopping");
    assert_eq!(state["machine"], 5);
    assert!(state["lease"]["windowLeftMs"].is_null());
}

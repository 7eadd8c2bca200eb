//! Answers of the admin listener, whatever the program behind it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;
use vesta_intf::{ErrorKind, Pattern, Reset, ShuffleKey, UnixMillis};
use vesta_service::lease::{Leases, Record};
use vesta_service::options::Drive;
use vesta_service::segment::{NewSegmentTag, SegmentService, SegmentStore as _, SegmentTag};
use vesta_service::serial::{NewSerialTag, SerialService};
use vesta_service::testing::{ManualClock, MemorySegmentStore, MemoryStore};
use vesta_service::{LocalIdService, MachineSource};

use super::{AdminState, router};
use crate::start::assemble::Origin;
use crate::{
    Assembled, Caller, CancellationToken, Config, Invocation, Metrics, Outcome, Role, Security,
    assemble,
};

mod access;

struct Admin {
    service: Arc<LocalIdService>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    router: Router,
}

impl From<LocalIdService> for Assembled {
    fn from(service: LocalIdService) -> Self {
        Self {
            service: Arc::new(service),
            pool: None,
            segments: None,
            tinyid: None,
            serials: None,
            store: None,
            origin: Origin::default(),
        }
    }
}

const WAITING_FOR: &str = "mysql://vesta:***@db/ids";

fn admin() -> Admin {
    let service = LocalIdService::builder()
        .machine(MachineSource::Stateless(5))
        .clock(Arc::new(ManualClock::at(UnixMillis(1_600_000_000_000))))
        .drive(Drive::ByHand)
        .build()
        .expect("a service");
    admin_of(Assembled::from(service))
}

fn admin_of(assembled: Assembled) -> Admin {
    let metrics = Arc::new(Metrics::new(&["genid", "expid"]));
    let shutdown = CancellationToken::new();
    let state = AdminState::new(
        Role::Rest,
        WAITING_FOR,
        [Arc::clone(&metrics)],
        shutdown.clone(),
        &Security::default(),
    );
    state.started(&assembled);
    Admin {
        service: assembled.service,
        metrics,
        shutdown,
        router: router(state),
    }
}

/// A service with `count` machine IDs of a pool of five.
fn admin_of_pool(count: &str) -> (Admin, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let state_dir = folder.path().to_str().expect("a plain path");
    let args = [
        "--machine-count",
        count,
        "--machine-range",
        "5-9",
        "--state-dir",
        state_dir,
    ];
    let Ok(Invocation::Run(raw)) = Invocation::read(Role::Rest, args) else {
        panic!("right settings")
    };
    let config = Config::check(&raw).expect("right settings");
    (admin_of(assemble(&config).expect("a service")), folder)
}

impl Admin {
    async fn get(&self, path: &str) -> (StatusCode, String) {
        get(&self.router, path).await
    }
}

async fn get(router: &Router, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let answer = router.clone().oneshot(request).await.expect("an answer");
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test]
async fn before_there_is_a_machine_id_it_is_alive_and_not_ready() {
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let router = router(AdminState::new(
        Role::Rest,
        WAITING_FOR,
        [metrics],
        CancellationToken::new(),
        &Security::default(),
    ));
    let (status, body) = get(&router, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        body,
        format!("not ready: there is no machine ID yet; waiting for {WAITING_FOR}\n")
    );
    assert_eq!(
        get(&router, "/healthz").await.0,
        StatusCode::OK,
        "a restart would not help"
    );
    let state: serde_json::Value =
        serde_json::from_str(&get(&router, "/status").await.1).expect("JSON");
    assert_eq!(
        (&state["ready"], state.get("machine")),
        (&false.into(), None)
    );
    let again: serde_json::Value =
        serde_json::from_str(&get(&router, "/status").await.1).expect("JSON");
    let started = state["started"].as_str().expect("text");
    assert!(
        crate::moment(started).is_ok() && again["started"] == started,
        "{again}"
    );
    let (_, metrics) = get(&router, "/metrics").await;
    assert!(metrics.contains("\nvesta_ready 0\n"), "{metrics}");
    assert!(!metrics.contains("vesta_machine_id"), "{metrics}");
    assert!(
        state["notReadyBecause"]
            .to_string()
            .contains("waiting for mysql://"),
        "{state}"
    );
}

#[tokio::test]
async fn every_line_and_the_pool_are_shown() {
    let (admin, _folder) = admin_of_pool("3");

    let (_, text) = admin.get("/metrics").await;
    let machines = admin.service.status().machines;
    assert_eq!(machines.len(), 3);
    for (line, machine) in machines.iter().enumerate() {
        let labels = format!("{{slot=\"{line}\",machine=\"{machine}\"");
        for sample in [
            format!("vesta_machine_ready{labels}}} 1"),
            format!("vesta_machine_epoch{labels}}} 1"),
            format!("vesta_machine_fenced_total{labels}}} 0"),
            format!("vesta_machine_rehomed_total{labels}}} 0"),
            format!("vesta_machine_renewals_total{labels},outcome=\"failed\"}} 0"),
            format!("vesta_machine_sealed{labels},reason=\"\"}} 0"),
        ] {
            assert!(text.lines().any(|it| it == sample), "{sample} in\n{text}");
        }
        for start in [
            "window_left_seconds",
            "lead_seconds",
            "last_renewal_age_seconds",
        ] {
            let start = format!("vesta_machine_{start}{labels}}} ");
            assert!(
                text.lines().any(|it| it.starts_with(&start)),
                "{start} in\n{text}"
            );
        }
    }
    for sample in [
        "vesta_ready 1",
        "vesta_rehomed_total 0",
        "vesta_positions_lost_total 0",
        "vesta_pool_machine_ids{state=\"free\"} 2",
        "vesta_pool_machine_ids{state=\"held\"} 3",
        "vesta_pool_machine_ids{state=\"released\"} 0",
        "vesta_pool_machine_ids{state=\"expired\"} 0",
        "vesta_pool_machine_ids{state=\"foreign\"} 0",
    ] {
        assert!(text.lines().any(|it| it == sample), "{sample} in\n{text}");
    }

    let state: serde_json::Value =
        serde_json::from_str(&admin.get("/status").await.1).expect("JSON");
    assert_eq!(state["machine"]["ids"], serde_json::json!(machines));
    assert_eq!(state["machines"][2]["machine"], machines[2]);
    assert_eq!(state["machines"][2]["ready"], true);
    assert!(
        state["machines"][2]["windowLeftMs"]
            .as_u64()
            .is_some_and(|left| left > 0),
        "{state}"
    );
    assert_eq!(state["layout"]["idsPerSecond"], 3 * 1_048_576);
    assert_eq!(state["pool"]["held"], 3);
}

#[tokio::test]
async fn the_pool_and_the_events_of_the_keeper_are_shown() {
    let (admin, _folder) = admin_of_pool("2");
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");

    let (status, pool) = admin.get("/pool").await;
    let pool = json(&pool);
    assert_eq!(
        (status, &pool["range"]),
        (StatusCode::OK, &json(r#"{"first":5,"last":9}"#))
    );
    let records = pool["records"].as_array().expect("records");
    assert_eq!(records.len(), 2);
    assert!(
        records
            .iter()
            .all(|it| it["state"] == "held" && it["pid"] == std::process::id())
    );

    // Behind the two claims may be what a busy disk caused.
    let (status, text) = admin.get("/events").await;
    let events = json(&text);
    let first = &events["events"][0];
    assert_eq!(
        (status, &first["number"], &first["kind"]),
        (StatusCode::OK, &1.into(), &"claimed".into()),
        "{text}"
    );
    assert_eq!(first["text"], "claimed, epoch 1");
    let last = events["last"].as_u64().expect("a number");
    assert!(last >= 2, "{text}");
    let since_1 = json(&admin.get("/events?since=1").await.1);
    assert_eq!(
        (
            &since_1["events"][0]["number"],
            &since_1["events"][0]["kind"]
        ),
        (&2.into(), &"claimed".into())
    );
    let none = json(&admin.get("/events?since=1000000").await.1);
    assert_eq!(
        (&none["events"], none["last"].as_u64() >= Some(last)),
        (&json("[]"), true),
        "{none}"
    );
    assert_eq!(
        admin.get("/events?since=x").await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        self::admin().get("/pool").await.0,
        StatusCode::NOT_FOUND,
        "there is none"
    );
}

#[tokio::test]
async fn readiness_follows_the_service_and_liveness_asks_for_a_restart_only_if_that_helps() {
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
    assert_eq!(state["machine"]["id"], 5);
    assert!(state["lease"]["windowLeftMs"].is_null());
}

#[tokio::test]
async fn before_the_first_request_there_are_only_series_that_alerts_need_from_zero_on() {
    let (_, text) = admin().get("/metrics").await;
    assert!(!text.contains("vesta_requests_total{"), "{text}");
    assert!(!text.contains("_bucket{"), "{text}");
    for kind in ErrorKind::all() {
        let line = format!("vesta_errors_total{{kind=\"{}\"}} 0", kind.name());
        assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
    }
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 60, "{series} series in\n{text}");
}

#[tokio::test]
async fn errors_of_all_methods_are_added_up_by_kind() {
    let admin = admin();
    for method in [0, 1, 1] {
        admin
            .metrics
            .observe(method, Outcome::Error(ErrorKind::Internal), Duration::ZERO);
    }
    admin.metrics.observe(0, Outcome::Cancelled, Duration::ZERO);
    let (_, text) = admin.get("/metrics").await;
    assert!(
        text.contains("vesta_errors_total{kind=\"INTERNAL\"} 3\n"),
        "{text}"
    );
    assert!(
        !text.contains("vesta_errors_total{kind=\"CANCELLED\"}"),
        "{text}"
    );
}

#[tokio::test]
async fn requests_are_counted_by_method_and_outcome() {
    let admin = admin();
    admin
        .metrics
        .observe(0, Outcome::Ok, Duration::from_micros(10));
    admin
        .metrics
        .observe(0, Outcome::Ok, Duration::from_micros(11));
    admin
        .metrics
        .observe(0, Outcome::Ok, Duration::from_secs(3));
    admin
        .metrics
        .observe(1, Outcome::Error(ErrorKind::OutOfRange), Duration::ZERO);
    admin.metrics.start(1).done(Outcome::Ok);
    drop(admin.metrics.start(1));
    admin.metrics.issue(Caller::default(), 7);
    admin.metrics.opened.inc();
    admin.metrics.opened.inc();
    let _one = Arc::clone(&admin.metrics.open);
    admin.metrics.refused.inc();

    let (_, text) = admin.get("/metrics").await;
    let of_genid = "method=\"genid\",outcome=\"OK\"";
    for line in [
        format!("vesta_requests_total{{{of_genid}}} 3"),
        format!("vesta_request_duration_seconds_bucket{{le=\"0.00001\",{of_genid}}} 1"),
        format!("vesta_request_duration_seconds_bucket{{le=\"0.00005\",{of_genid}}} 2"),
        format!("vesta_request_duration_seconds_bucket{{le=\"2.5\",{of_genid}}} 2"),
        format!("vesta_request_duration_seconds_bucket{{le=\"+Inf\",{of_genid}}} 3"),
        format!("vesta_request_duration_seconds_count{{{of_genid}}} 3"),
        format!("vesta_request_duration_seconds_sum{{{of_genid}}} 3.000021"),
        "vesta_requests_total{method=\"expid\",outcome=\"OUT_OF_RANGE\"} 1".to_owned(),
        "vesta_requests_total{method=\"expid\",outcome=\"OK\"} 1".to_owned(),
        "vesta_requests_total{method=\"expid\",outcome=\"CANCELLED\"} 1".to_owned(),
        "vesta_ids_issued_total{token=\"\"} 7".to_owned(),
        "vesta_connections_total 2".to_owned(),
        "vesta_open_connections 1".to_owned(),
        "vesta_connections_refused_total 1".to_owned(),
        "vesta_lead_seconds 0.0".to_owned(),
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
    }
    // Nobody asked for the others, and without a lease there is no window.
    assert!(!text.contains("vesta_window_left_seconds"), "{text}");
    let of_requests = |line: &&str| line.starts_with("vesta_request");
    let pairs = |line: &str| line.contains("AWAITING_LEASE");
    assert!(!text.lines().filter(of_requests).any(pairs), "{text}");
}

/// Segment mode over a store in memory, whose tags were read.
fn segments(tags: &[&str]) -> Arc<SegmentService> {
    let store = MemorySegmentStore::new();
    for key in tags {
        store
            .create(&NewSegmentTag::new(*key, 1000).expect("a tag"))
            .expect("memory");
    }
    let clock = ManualClock::at(UnixMillis(1_600_000_000_000));
    let segments = SegmentService::builder(Arc::new(store))
        .clock(Arc::new(clock))
        .drive(Drive::ByHand)
        .build();
    let segments = segments.expect("a service");
    segments.maintain();
    Arc::new(segments)
}

fn admin_with(segments: Arc<SegmentService>) -> Admin {
    let service = LocalIdService::builder()
        .machine(MachineSource::Stateless(5))
        .clock(Arc::new(ManualClock::at(UnixMillis(1_600_000_000_000))))
        .drive(Drive::ByHand)
        .build()
        .expect("a service");
    let mut assembled = Assembled::from(service);
    assembled.segments = Some(segments);
    admin_of(assembled)
}

impl Admin {
    async fn post(&self, kind: &str, body: &str) -> (StatusCode, serde_json::Value) {
        let request = Request::post("/segments").header("host", "127.0.0.1:50052");
        let request = request.header("content-type", kind);
        let request = request
            .body(Body::from(body.to_owned()))
            .expect("a request");
        let answer = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("an answer");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        let json = serde_json::from_slice(&body).unwrap_or_else(|_| {
            serde_json::Value::String(String::from_utf8_lossy(&body).into_owned())
        });
        (status, json)
    }
}

#[tokio::test]
async fn each_tag_is_shown_with_its_range_and_how_far_it_is_used() {
    let segments = segments(&["orders", "users"]);
    for _ in 0..250 {
        segments
            .segment("orders")
            .and_then(|tag| tag.next())
            .expect("a number");
    }
    let admin = admin_with(segments);

    let (status, body) = admin.get("/segments").await;
    assert_eq!(status, StatusCode::OK);
    let state: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (&state["store"], &state["ready"]),
        (&"memory".into(), &true.into())
    );
    let orders = &state["segments"][0];
    assert_eq!(orders["key"], "orders");
    assert_eq!(
        orders["current"],
        serde_json::json!({"from": "1", "below": "1001"})
    );
    assert_eq!(
        (&orders["position"], &orders["usedPercent"]),
        (&"251".into(), &25.into())
    );
    assert_eq!(
        (&orders["taken"], &orders["tableStep"]),
        (&250.into(), &1000.into())
    );
    let users = &state["segments"][1];
    assert_eq!(
        (&users["key"], users["taken"].as_u64()),
        (&"users".into(), Some(0))
    );

    let (_, metrics) = admin.get("/metrics").await;
    for line in [
        "vesta_segments_ready 1",
        "vesta_segments_may_forget 0",
        "vesta_segment_tags 2",
        "vesta_segment_taken_total{key=\"orders\"} 250",
        "vesta_segment_taken_total{key=\"users\"} 0",
        "vesta_segment_lost_total{key=\"orders\"} 0",
        "vesta_segment_ready{key=\"users\"} 1",
        "vesta_segment_fetches_total{key=\"orders\",outcome=\"failed\"} 0",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in\n{metrics}");
    }
    assert_eq!(
        admin.get("/readyz").await,
        (StatusCode::OK, "ready\n".to_owned())
    );
    let (_, status) = admin.get("/status").await;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["segments"]["tags"], 2);
    assert_eq!(status["segments"]["notReady"], serde_json::json!([]));
}

#[tokio::test]
async fn each_serial_tag_is_shown_with_its_pattern_and_the_room_of_its_counter() {
    let clock = ManualClock::at(UnixMillis(1_600_000_000_000)); // 2020-09-13T12:26:40Z
    let serials = SerialService::builder(Arc::new(MemoryStore::new()))
        .segments(|it| it.clock(Arc::new(clock)).drive(Drive::ByHand))
        .build()
        .expect("a service");
    let pattern = |text, reset| Pattern::new(text, reset).expect("a pattern");
    let days = pattern("{date:yyMMdd}{n:3}", Reset::Day);
    let days = NewSerialTag::new("days", days, Some("Asia/Shanghai"));
    let coupons = NewSerialTag::new("coupons", pattern("{shuffle:8}", Reset::Never), None);
    let key = ShuffleKey::new(&[7; 32]);
    let coupons = coupons.and_then(|tag| tag.shuffled_with(&key));
    for tag in [days, coupons] {
        assert!(serials.create(&tag.expect("a tag")).expect("memory"));
    }
    serials
        .tag("days")
        .and_then(|tag| tag.next_many(5))
        .expect("serials");
    let service = LocalIdService::builder()
        .machine(MachineSource::Stateless(5))
        .build();
    let mut assembled = Assembled::from(service.expect("a service"));
    assembled.serials = Some(Arc::new(serials));
    let admin = admin_of(assembled);

    let (status, body) = admin.get("/serials").await;
    assert_eq!(status, StatusCode::OK);
    let state: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (&state["store"], &state["tags"]),
        (&"memory, serials".into(), &2.into())
    );
    let [coupons, days] = &state["serials"].as_array().expect("tags")[..] else {
        panic!("two tags: {state:#}");
    };
    let expected = serde_json::json!({
        "key": "days", "pattern": "{date:yyMMdd}{n:3}", "reset": "day", "zone": "Asia/Shanghai",
        "period": "2020-09-13", "next": "6", "last": "999", "room": 994, "ready": true, "taken": 5,
    });
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&days[field], value, "{field}");
    }
    assert_eq!(
        (&coupons["ready"], &coupons["period"]),
        (&false.into(), &().into())
    );
    assert_eq!(coupons["fingerprint"], key.fingerprint());
    let why = coupons["notReadyBecause"].as_str().expect("a reason");
    assert!(why.contains("needs the key with fingerprint"), "{why}");

    let (_, metrics) = admin.get("/metrics").await;
    for line in [
        "vesta_serials_ready 1",
        "vesta_serial_tags 2",
        "vesta_serial_taken_total{key=\"days\"} 5",
        "vesta_serial_room{key=\"days\"} 994",
        "vesta_serial_ready{key=\"coupons\"} 0",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in\n{metrics}");
    }
    let (_, status) = admin.get("/status").await;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(
        status["serials"]["notReady"],
        serde_json::json!(["coupons"])
    );
    let ready = (StatusCode::OK, format!("ready\nserials: {why}\n"));
    assert_eq!(admin.get("/readyz").await, ready);
}

#[tokio::test]
async fn beyond_a_hundred_tags_the_metrics_add_the_rest_up() {
    let keys: Vec<_> = (0..103).map(|n| format!("tag-{n:03}")).collect();
    let segments = segments(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    for key in &keys[99..] {
        segments
            .segment(key)
            .and_then(|tag| tag.next())
            .expect("a number");
    }
    let (_, metrics) = admin_with(segments).get("/metrics").await;
    let of = "vesta_segment_taken_total{key=";
    assert_eq!(
        metrics.lines().filter(|line| line.starts_with(of)).count(),
        101
    );
    for line in [format!("{of}\"tag-099\"}} 1"), format!("{of}\"\"}} 3")] {
        assert!(
            metrics.lines().any(|it| *it == line),
            "{line} in\n{metrics}"
        );
    }
}

#[tokio::test]
async fn a_tag_is_added_once_and_gives_numbers_at_once() {
    let segments = segments(&[]);
    let admin = admin_with(Arc::clone(&segments));
    let body = r#"{"key":"orders","step":500,"first":77,"description":"the orders"}"#;
    let (status, said) = admin.post("application/json; charset=utf-8", body).await;
    assert_eq!(status, StatusCode::CREATED, "{said}");
    assert_eq!(
        (&said["key"], &said["first"]),
        (&"orders".into(), &"77".into())
    );
    assert_eq!(
        segments
            .segment("orders")
            .and_then(|tag| tag.next())
            .expect("a number"),
        77
    );

    let (status, said) = admin.post("application/json", body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(said["detail"], "there is a tag `orders` already");
    for (kind, body, expected, about) in [
        (
            "text/plain",
            body,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "application/json",
        ),
        (
            "application/json",
            "{",
            StatusCode::BAD_REQUEST,
            "the body must be like",
        ),
        (
            "application/json",
            r#"{"key":"a"}"#,
            StatusCode::BAD_REQUEST,
            "step",
        ),
        (
            "application/json",
            r#"{"key":"a","step":1,"x":1}"#,
            StatusCode::BAD_REQUEST,
            "`x`",
        ),
        (
            "application/json",
            r#"{"key":"a","step":0}"#,
            StatusCode::BAD_REQUEST,
            "step must be 1",
        ),
        (
            "application/json",
            r#"{"key":"","step":1}"#,
            StatusCode::BAD_REQUEST,
            "key",
        ),
    ] {
        let (status, said) = admin.post(kind, body).await;
        assert_eq!(status, expected, "{body}: {said}");
        assert!(
            said["detail"]
                .as_str()
                .is_some_and(|said| said.contains(about)),
            "{said}"
        );
    }
    let (status, said) = admin.post("application/json", &" ".repeat(20_000)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(said["kind"], "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn errors_are_problems_like_those_of_rest() {
    let admin = admin();
    for (method, path, status, kind) in [
        ("GET", "/pool", 404, "NOT_FOUND"),
        ("GET", "/nothing", 404, "NOT_FOUND"),
        ("GET", "/events?since=x", 400, "INVALID"),
        ("DELETE", "/metrics", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/segments", 404, "NOT_FOUND"),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost");
        let request = request
            .header("origin", "http://localhost")
            .body(Body::empty());
        let answer = admin
            .router
            .clone()
            .oneshot(request.expect("a request"))
            .await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(
            answer.headers()["content-type"],
            "application/problem+json",
            "{path}"
        );
        let allowed = answer
            .headers()
            .get("allow")
            .map(|it| it.to_str().expect("text"));
        assert_eq!(allowed, (status == 405).then_some("GET,HEAD"));
        let body = to_bytes(answer.into_body(), 9_999).await.expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(
            (&body["status"], &body["kind"]),
            (&status.into(), &kind.into())
        );
        let urn = format!(
            "urn:vesta:problem:{}",
            kind.to_ascii_lowercase().replace('_', "-")
        );
        assert_eq!(body["type"], urn);
        assert!(
            ["title", "detail"]
                .iter()
                .all(|name| body[name].is_string()),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_bad_tag_shows_beside_readiness_and_harms_no_other() {
    let store = MemorySegmentStore::new();
    for (key, max_id) in [("bad\u{202e}", -1), ("orders", 1)] {
        let (key, description, update_time) = (key.to_owned(), None, None);
        store.put(SegmentTag {
            description,
            update_time,
            ..SegmentTag::new(key, max_id, 10)
        });
    }
    let segments = SegmentService::builder(Arc::new(store))
        .drive(Drive::ByHand)
        .build();
    let segments = Arc::new(segments.expect("a service"));
    segments.maintain();
    let admin = admin_with(Arc::clone(&segments));
    let (status, said) = admin.get("/readyz").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        said.starts_with("ready\nsegments: the row of tag `bad\\u202e` needs"),
        "{said}"
    );
    let (_, status) = admin.get("/status").await;
    assert!(
        !status.contains('\u{202e}'),
        "nothing changes the direction of writing: {status}"
    );
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(
        status["segments"]["notReady"],
        serde_json::json!(["bad\u{202e}"])
    );
    assert!(
        segments
            .segment("orders")
            .and_then(|tag| tag.next())
            .is_ok()
    );
}

#[tokio::test]
async fn without_segment_mode_its_page_says_which_setting_is_missing() {
    let admin = admin();
    let (status, body) = admin.get("/segments").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(body.contains("set segment.store"), "{body}");
    assert!(!admin.get("/metrics").await.1.contains("vesta_segment"));
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let state = AdminState::new(
        Role::Rest,
        WAITING_FOR,
        [metrics],
        CancellationToken::new(),
        &Security::default(),
    );
    assert_eq!(
        get(&router(state), "/segments").await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
}

#[tokio::test]
async fn tags_that_cannot_be_read_leave_the_ids_ready() {
    let segments = segments(&["orders"]);
    segments.close();
    let admin = admin_with(segments);
    assert_eq!(admin.get("/readyz").await.0, StatusCode::OK);
    let (_, metrics) = admin.get("/metrics").await;
    assert!(metrics.contains("\nvesta_segments_ready 0\n"), "{metrics}");
    let (_, status) = admin.get("/status").await;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(
        (&status["ready"], &status["segments"]["ready"]),
        (&true.into(), &false.into())
    );
}

//! Responses of the admin listener, independent of the program behind it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;
use vesta_intf::{ErrorKind, ShuffleKey, UnixMillis};
use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStore as _, SegmentTag};
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::lease::{Leases, Record};
use vesta_service::options::Drive;
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{LocalIdService, MachineSource};

use vesta_net::{Limiter, Limits};

use super::{AdminState, router};
use crate::assemble::Origin;
use crate::{
    Api, Assembled, Caller, CancellationToken, Config, Invocation, Metrics, Outcome, Security,
    assemble,
};

mod access;
mod health;
mod rates;
mod tags;

struct Admin {
    service: Arc<LocalIdService>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    state: AdminState,
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
        "vesta",
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
        router: router(state.clone()),
        state,
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
    let Ok(Invocation::Run(raw)) = Invocation::read("vesta", &Api::ALL, args) else {
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
async fn without_a_machine_id_the_program_is_alive_and_not_ready() {
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let router = router(AdminState::new(
        "vesta",
        WAITING_FOR,
        [metrics],
        CancellationToken::new(),
        &Security::default(),
    ));
    let (status, body) = get(&router, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        body,
        format!("not ready: no machine ID yet; waiting for {WAITING_FOR}\n")
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
async fn status_and_metrics_show_every_machine_id_and_the_pool() {
    let (admin, _folder) = admin_of_pool("3");

    let (_, text) = admin.get("/metrics").await;
    let machines = admin.service.status().machines;
    assert_eq!(machines.len(), 3);
    for (line, machine) in machines.iter().enumerate() {
        let labels = format!("{{slot=\"{line}\",machine=\"{machine}\"");
        for sample in [
            format!("vesta_machine_ready{labels}}} 1"),
            format!("vesta_machine_claim{labels}}} 1"),
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
    let held = state["machines"].as_array().expect("a list").iter();
    let held: Vec<_> = held.filter_map(|it| it["machine"].as_u64()).collect();
    assert_eq!(held, machines);
    assert_eq!(state["machinesHeld"], 3);
    assert_eq!(state["machines"][2]["ready"], true);
    assert!(
        state["machines"][2]["windowLeftMs"]
            .as_u64()
            .is_some_and(|left| left > 0),
        "{state}"
    );
    assert_eq!(state["capacityPerSecond"], 3 * 1_048_576);
    assert_eq!(state["pool"]["held"], 3);
}

#[tokio::test]
async fn the_pool_and_lease_events_are_shown() {
    let (admin, _folder) = admin_of_pool("2");
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");

    let (status, pool) = admin.get("/pool").await;
    let pool = json(&pool);
    assert_eq!(
        (status, &pool["firstMachine"], &pool["lastMachine"]),
        (StatusCode::OK, &5.into(), &9.into())
    );
    let records = pool["records"].as_array().expect("records");
    assert_eq!(records.len(), 2);
    assert!(
        records
            .iter()
            .all(|it| it["state"] == "held" && it["pid"] == std::process::id())
    );

    // A busy disk may add events after the two claims.
    let (status, text) = admin.get("/events").await;
    let events = json(&text);
    let first = &events["events"][0];
    assert_eq!(
        (status, &first["number"], &first["kind"]),
        (StatusCode::OK, &1.into(), &"claimed".into()),
        "{text}"
    );
    assert_eq!(first["text"], "claimed; this is claim 1");
    let last = events["lastNumber"].as_u64().expect("a number");
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
        (&none["events"], none["lastNumber"].as_u64() >= Some(last)),
        (&json("[]"), true),
        "{none}"
    );
    assert_eq!(
        admin.get("/events?since=x").await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        self::admin().get("/pool").await.0,
        StatusCode::NOT_IMPLEMENTED,
        "there is none"
    );
}

/// Kinds of errors that the alerts in ops/ name.
fn kinds_of_alerts() -> BTreeSet<&'static str> {
    let rules = include_str!("../../../ops/vesta-alerts.yml").split("kind=");
    let named = rules.skip(1).filter_map(|rest| rest.split('"').nth(1));
    named.flat_map(|kinds| kinds.split('|')).collect()
}

#[tokio::test]
async fn an_idle_program_exports_at_most_60_series_among_them_those_that_alerts_rate() {
    let (admin, _folder) = admin_of_pool("1");
    let (_, text) = admin.get("/metrics").await;
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series <= 60, "{series} series in\n{text}");

    let errors = text
        .lines()
        .filter_map(|line| line.strip_prefix("vesta_errors_total{kind=\""));
    let zero: BTreeSet<_> = errors
        .filter_map(|rest| rest.strip_suffix("\"} 0"))
        .collect();
    assert!(zero.contains("INTERNAL"), "{text}");
    assert_eq!(zero, kinds_of_alerts());
    assert!(!text.contains("vesta_request"), "{text}");
    assert!(text.contains("\nvesta_machine_ready{slot=\"0\","), "{text}");
    assert!(
        !text.contains("vesta_machine_lead_seconds"),
        "the program has it: {text}"
    );
    assert!(text.contains("\nvesta_lead_seconds "), "{text}");
}

#[tokio::test]
async fn requests_to_a_store_have_few_buckets_that_add_up() {
    let (admin, _folder) = admin_of_pool("1");
    let (_, text) = admin.get("/metrics").await;
    let of_writes = |what: &str| {
        let start = format!("vesta_store_request_duration_seconds_{what}");
        let lines = text.lines().filter(move |line| line.starts_with(&start));
        let lines = lines.filter(|line| line.contains("op=\"write\""));
        lines
            .map(|line| line.rsplit_once(' ').expect("a value").1.to_owned())
            .collect::<Vec<_>>()
    };
    let (buckets, count) = (of_writes("bucket"), of_writes("count"));
    assert_eq!(buckets.len(), 7, "{text}");
    assert!(
        buckets.is_sorted_by_key(|it| it.parse::<u64>().expect("a number")),
        "{text}"
    );
    assert_eq!([&buckets[6]], [&count[0]], "{text}");
}

#[tokio::test]
async fn errors_of_all_methods_are_summed_by_kind() {
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
    let counted = Arc::clone(&admin.metrics.connections);
    let limits = Limits {
        opening: Duration::MAX,
        opening_bytes: 1,
        stall: Duration::MAX,
        idle: Duration::MAX,
        unused: Duration::MAX,
        lifetime: Duration::MAX,
        misdirected: None,
    };
    let limiter = Limiter::new(1, 1, limits, None, counted);
    drop(limiter.try_permit(None));
    let _one = limiter.try_permit(None).expect("a place");
    assert!(limiter.try_permit(None).is_none());

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
    // The other series have no requests; without a lease there is no window.
    assert!(!text.contains("vesta_window_left_seconds"), "{text}");
    let of_requests = |line: &&str| line.starts_with("vesta_request");
    let pairs = |line: &str| line.contains("AWAITING_LEASE");
    assert!(!text.lines().filter(of_requests).any(pairs), "{text}");
}

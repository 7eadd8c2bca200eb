//! Segment tags and serial tags: their page, their metrics, and adding one.

use super::*;
use vesta_numbers::Created;

/// Segment mode over a memory store whose tags have been read.
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
async fn each_tag_is_shown_with_its_range_and_its_usage() {
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
    let orders = &state["tags"][0];
    assert_eq!(orders["tag"], "orders");
    assert_eq!(
        orders["current"],
        serde_json::json!({"from": "1", "below": "1001"})
    );
    assert_eq!(
        (&orders["next"], &orders["usedPercent"]),
        (&"251".into(), &25.into())
    );
    assert_eq!(
        (&orders["taken"], &orders["tableStep"]),
        (&250.into(), &1000.into())
    );
    let users = &state["tags"][1];
    assert_eq!(
        (&users["tag"], users["taken"].as_u64()),
        (&"users".into(), Some(0))
    );

    let (_, metrics) = admin.get("/metrics").await;
    for line in [
        "vesta_segments_ready 1",
        "vesta_segments_doubt 0",
        "vesta_segment_tags 2",
        "vesta_segment_taken_total{tag=\"orders\"} 250",
        "vesta_segment_taken_total{tag=\"users\"} 0",
        "vesta_segment_lost_total{tag=\"orders\"} 0",
        "vesta_segment_ready{tag=\"users\"} 1",
        "vesta_segment_fetches_total{tag=\"orders\",outcome=\"failed\"} 0",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in\n{metrics}");
    }
    assert_eq!(
        admin.get("/readyz").await,
        (StatusCode::OK, "ready\n".to_owned())
    );
    let (_, status) = admin.get("/status").await;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["segments"]["tagCount"], 2);
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
        assert_eq!(
            serials.create(&tag.expect("a tag")).expect("memory"),
            Created::New
        );
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
        (&state["store"], &state["tagCount"]),
        (&"memory, serials".into(), &2.into())
    );
    let [coupons, days] = &state["tags"].as_array().expect("tags")[..] else {
        panic!("two tags: {state:#}");
    };
    let expected = serde_json::json!({
        "tag": "days", "pattern": "{date:yyMMdd}{n:3}", "reset": "day", "zone": "Asia/Shanghai",
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
        "vesta_serial_taken_total{tag=\"days\"} 5",
        "vesta_serial_room{tag=\"days\"} 994",
        "vesta_serial_ready{tag=\"coupons\"} 0",
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
async fn a_tag_with_a_last_number_reports_how_much_of_it_is_used() {
    let segments = segments(&["orders"]);
    let admin = admin_with(Arc::clone(&segments));
    let body = r#"{"tag":"few","step":10,"last":40}"#;
    let (status, tag) = admin.post("application/json", body).await;
    assert_eq!((status, &tag["last"]), (StatusCode::CREATED, &"40".into()));
    let (status, said) = admin
        .post("application/json", r#"{"tag":"none","step":1,"last":0}"#)
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(said.to_string().contains("last must be 1 to"), "{said}");
    let few = segments.segment("few").expect("the tag");
    let mut shares = Vec::new();
    loop {
        let (_, metrics) = admin.get("/metrics").await;
        let line = metrics
            .lines()
            .find(|it| it.starts_with("vesta_segment_used_percent"));
        shares.push(line.expect("a gauge").to_owned());
        if few.next().is_err() {
            break;
        }
    }
    shares.dedup();
    let share = |percent| format!("vesta_segment_used_percent{{tag=\"few\"}} {percent}");
    assert_eq!(shares.first(), Some(&share(0)));
    assert_eq!(shares.last(), Some(&share(100)));
    assert!(shares.len() > 2, "it grows in between: {shares:?}");
    let (_, shown) = admin.get("/segments").await;
    assert!(
        shown.contains("has used up its numbers: 40 was the last"),
        "{shown}"
    );
}

#[tokio::test]
async fn beyond_a_hundred_tags_the_metrics_sum_the_rest() {
    let keys: Vec<_> = (0..103).map(|n| format!("tag-{n:03}")).collect();
    let segments = segments(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    for key in &keys[99..] {
        segments
            .segment(key)
            .and_then(|tag| tag.next())
            .expect("a number");
    }
    let (_, metrics) = admin_with(segments).get("/metrics").await;
    let of = "vesta_segment_taken_total{tag=";
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
async fn a_tag_is_added_once_and_serves_numbers_at_once() {
    let segments = segments(&[]);
    let admin = admin_with(Arc::clone(&segments));
    let body = r#"{"tag":"orders","step":500,"first":77,"description":"the orders"}"#;
    let (status, said) = admin.post("application/json; charset=utf-8", body).await;
    assert_eq!(
        (status, &said["created"]),
        (StatusCode::CREATED, &true.into())
    );
    assert_eq!(
        (&said["tag"], &said["first"]),
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
    assert_eq!((status, &said["created"]), (StatusCode::OK, &false.into()));
    let other = body.replace("500", "501");
    let (status, said) = admin.post("application/json", &other).await;
    assert_eq!(
        (status, &said["kind"]),
        (StatusCode::CONFLICT, &"ALREADY_EXISTS".into())
    );
    assert_eq!(
        said["detail"],
        "tag `orders` already exists, and is another; nothing was changed"
    );
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
            r#"{"tag":"a"}"#,
            StatusCode::BAD_REQUEST,
            "step",
        ),
        (
            "application/json",
            r#"{"tag":"a","step":1,"x":1}"#,
            StatusCode::BAD_REQUEST,
            "`x`",
        ),
        (
            "application/json",
            r#"{"tag":"a","step":0}"#,
            StatusCode::BAD_REQUEST,
            "step must be 1",
        ),
        (
            "application/json",
            r#"{"tag":"","step":1}"#,
            StatusCode::BAD_REQUEST,
            "tag",
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
        ("GET", "/pool", 501, "UNSUPPORTED"),
        ("GET", "/nothing", 404, "NOT_FOUND"),
        ("GET", "/events?since=x", 400, "INVALID"),
        ("DELETE", "/metrics", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/segments", 501, "UNSUPPORTED"),
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
async fn a_bad_tag_is_reported_by_readyz_and_affects_no_other() {
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
        "no character changes the text direction: {status}"
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
async fn without_segment_mode_its_page_names_the_missing_setting() {
    let admin = admin();
    let (status, body) = admin.get("/segments").await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
    assert!(body.contains("set segment.store"), "{body}");
    assert!(!admin.get("/metrics").await.1.contains("vesta_segment"));
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let state = AdminState::new(
        "vesta",
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
async fn unreadable_tags_leave_ids_ready() {
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

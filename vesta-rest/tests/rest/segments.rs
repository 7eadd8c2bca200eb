//! Segment mode over HTTP, with the requests of a Leaf client.

use std::sync::Arc;

use actix_web::test::TestRequest;
use actix_web::web;
use vesta_boot::Running;
use vesta_boot::admin::PAGE_POLICY;
use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStore};
use vesta_numbers::testing::MemorySegmentStore;

use crate::support::{Answer, ask_with, get, service, state_with};

struct Segments {
    state: web::Data<Running>,
}

fn started() -> Segments {
    Segments {
        state: state_with(service(), Some(leafs())),
    }
}

/// Segment mode with a tag from Leaf's own tests.
pub(crate) fn leafs() -> Arc<SegmentService> {
    let store = Arc::new(MemorySegmentStore::new());
    for (key, step) in [("leaf-segment-test", 2000), ("a/b <i>", 10)] {
        let tag = NewSegmentTag::new(key, step).and_then(|tag| tag.described_as("test & <b>"));
        assert!(
            store
                .create(&tag.expect("it is right"))
                .expect("memory answers")
        );
    }
    let segments = SegmentService::builder(store).build().expect("a service");
    segments.refresh().expect("memory answers");
    Arc::new(segments)
}

impl Segments {
    async fn get(&self, uri: &str) -> Answer {
        ask_with(self.state.clone(), TestRequest::get().uri(uri)).await
    }

    async fn accepting(&self, uri: &str, accept: &str) -> Answer {
        let request = TestRequest::get()
            .uri(uri)
            .insert_header(("accept", accept));
        ask_with(self.state.clone(), request).await
    }
}

#[actix_web::test]
async fn leaf_clients_get_the_numbers_of_a_tag_as_digits() {
    let segments = started();
    for expected in 1..=5 {
        let answer = segments.get("/api/segment/get/leaf-segment-test").await;
        assert_eq!(
            (answer.status, &*answer.body),
            (200, &*expected.to_string()),
            "{answer:?}"
        );
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let answer = segments
        .accepting("/api/segment/get/leaf-segment-test", "application/json")
        .await;
    assert_eq!(
        (&*answer.body, answer.header("content-type")),
        ("6", "application/json")
    );
}

#[actix_web::test]
async fn the_json_api_returns_one_or_several_numbers() {
    let segments = started();
    let uri = "/v1/segments/leaf-segment-test/next";
    assert_eq!(segments.get(uri).await.body, r#"{"id":"1"}"#);
    assert_eq!(
        segments.get(&format!("{uri}?count=3")).await.body,
        r#"{"ids":["2","3","4"]}"#
    );
    assert_eq!(
        segments.get(&format!("{uri}?count=1")).await.body,
        r#"{"ids":["5"]}"#
    );
    let many = segments.get(&format!("{uri}?count=1000")).await.json();
    assert_eq!(many["ids"].as_array().expect("a list").len(), 1000);
    for count in ["0", "1001"] {
        segments
            .get(&format!("{uri}?count={count}"))
            .await
            .problem(400, "OUT_OF_RANGE");
    }
    assert_eq!(
        segments.get(uri).await.body,
        r#"{"id":"1006"}"#,
        "what was refused took nothing"
    );
    let odd = segments.get("/v1/segments/a%2Fb%20%3Ci%3E/next").await;
    assert_eq!(odd.body, r#"{"id":"1"}"#, "names are decoded");
}

#[actix_web::test]
async fn an_unknown_tag_is_404_and_a_disabled_mode_501_never_0() {
    let segments = started();
    for uri in ["/api/segment/get/nothing", "/v1/segments/nothing/next"] {
        let detail = segments.get(uri).await.problem(404, "NOT_FOUND");
        assert!(detail.contains("nothing"), "{detail}");
    }
    let off = service();
    for uri in [
        "/api/segment/get/orders",
        "/v1/segments/orders/next",
        "/v1/segments/orders/next?count=2",
        "/cache",
        "/db",
    ] {
        let detail = get(&off, uri).await.problem(501, "UNSUPPORTED");
        assert!(detail.contains("--segment-store"), "{detail}");
    }
}

#[actix_web::test]
async fn the_pages_show_each_tag_and_escape_its_name() {
    let segments = started();
    segments.get("/api/segment/get/leaf-segment-test").await;
    for uri in ["/cache", "/db"] {
        let page = segments.accepting(uri, "text/html,*/*;q=0.8").await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, "text/html; charset=utf-8")
        );
        assert!(
            page.body.contains(">leaf-segment-test</td>"),
            "{}",
            page.body
        );
        assert_eq!(page.header("content-security-policy"), PAGE_POLICY);
        assert!(
            page.body.contains("a/b &lt;i&gt;") && !page.body.contains("<i>"),
            "{}",
            page.body
        );
    }
    let cache = segments
        .accepting("/cache", "application/json")
        .await
        .json();
    let tag = cache
        .as_array()
        .expect("a list")
        .iter()
        .find(|tag| tag["key"] == "leaf-segment-test");
    let tag = tag.expect("it is listed");
    assert_eq!(
        (&tag["position"], &tag["current"][0]),
        (&"2".into(), &"1".into()),
        "{tag}"
    );
    let rows = segments.accepting("/db", "application/json").await.json();
    let row = rows
        .as_array()
        .expect("a list")
        .iter()
        .find(|row| row["step"] == 2000);
    assert_eq!(row.expect("it is listed")["biz_tag"], "leaf-segment-test");
}

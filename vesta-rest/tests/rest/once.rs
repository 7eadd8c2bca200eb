//! An answer names its question: `once` comes back, and only its own.

use std::sync::Arc;

use actix_web::test::TestRequest;
use actix_web::web::Data;
use vesta_boot::settings::Compat;
use vesta_intf::IdMeta;
use vesta_rest::app::ENDPOINTS;

use crate::leaf::{WIDTHS, uid_layout};
use crate::limits::Server;
use crate::segments::leafs;
use crate::serials::serials;
use crate::support::{Raw, ask_with, get, get_at, post, running, service, service_of, state_with};

const ONCE: &str = "x7Gk2mQ9vB4tR1nZ";

/// Texts that a request may carry, and the longest.
fn fits() -> [String; 4] {
    [ONCE, "0", "~._-", &"Z".repeat(64)].map(str::to_owned)
}

#[actix_web::test]
async fn json_repeats_the_once_of_its_request_beside_what_it_has_without() {
    let mut running = running(service(), Some(leafs()));
    running.serials = Some(serials());
    let state = Data::new(running);
    for (uri, members) in [
        ("/v1/id", vec!["id"]),
        ("/v1/ids?count=2", vec!["ids"]),
        ("/v1/runs?count=100", vec!["runs"]),
        ("/v1/segments/leaf-segment-test/next", vec!["id"]),
        ("/v1/segments/leaf-segment-test/next?count=2", vec!["ids"]),
        ("/v1/serials/invoices/next", vec!["counter", "serial"]),
        ("/v1/serials/invoices/next?count=2", vec!["serials"]),
    ] {
        let names = |answer: &serde_json::Value| {
            let mut names: Vec<_> = answer.as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(names(&get_at(&state, uri).await.json()), members, "{uri}");
        let sign = if uri.contains('?') { '&' } else { '?' };
        for once in fits() {
            let answer = get_at(&state, &format!("{uri}{sign}once={once}")).await;
            assert_eq!(
                (answer.status, answer.header("cache-control")),
                (200, "no-store")
            );
            let mut body = answer.json();
            assert_eq!(body["once"], once, "{uri}");
            body.as_object_mut().unwrap().remove("once");
            assert_eq!(names(&body), members, "{uri}");
            assert_eq!(answer.body.matches("once").count(), 1, "{}", answer.body);
        }
    }
    let made = post(
        &service(),
        "/v1/ids:make?once=a",
        r#"{"time":94990103,"seq":0,"machine":1021}"#,
    )
    .await;
    assert_eq!(
        made.json(),
        serde_json::json!({"id": "2407837855670862845", "once": "a"})
    );
}

#[actix_web::test]
async fn text_repeats_the_once_of_its_request_after_a_blank() {
    for (layout, uri) in [
        (IdMeta::MAX_PEAK, "/genid"),
        (IdMeta::MAX_PEAK, "/genid?format=hex"),
        (IdMeta::MAX_PEAK, "/makeid?time=1&seq=1"),
        (IdMeta::MAX_PEAK, "/transtime?time=1"),
        (IdMeta::MAX_PEAK, "/api/snowflake/get/a"),
        (IdMeta::MAX_PEAK, "/api/segment/get/leaf-segment-test"),
        (uid_layout(WIDTHS[1]), "/uid/get"),
    ] {
        let state = state_with(service_of(layout), Some(leafs()));
        let plain = get_at(&state, uri).await;
        assert_eq!(plain.status, 200, "{uri}: {plain:?}");
        assert!(!plain.body.contains(' '), "{uri}");
        let sign = if uri.contains('?') { '&' } else { '?' };
        let request = TestRequest::get().uri(&format!("{uri}{sign}once={ONCE}"));
        let request = request.insert_header(("accept", "application/json"));
        let answer = ask_with(state, request).await;
        let (text, once) = answer.body.split_once(' ').expect("two words");
        assert_eq!((text.len(), once), (plain.body.len(), ONCE), "{uri}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(
            answer.header("cache-control"),
            plain.header("cache-control")
        );
    }
}

#[actix_web::test]
async fn a_once_that_does_not_fit_is_refused_and_takes_no_id() {
    let service = service();
    let before = service.gen_id().unwrap();
    let long = "a".repeat(65);
    for once in ["", "a%20b", "%22", "a%5Cb", "%C3%A9", "a%0Ab", &long] {
        for uri in [
            "/v1/id?",
            "/v1/ids?count=1&",
            "/v1/runs?count=1&",
            "/genid?",
        ] {
            let answer = get(&service, &format!("{uri}once={once}")).await;
            let detail = answer.problem(400, "INVALID");
            let start = "once must be 1 to 64 letters, digits or -._~, but is `";
            assert!(detail.starts_with(start), "{detail}");
            assert_eq!(answer.json()["parameter"], "once");
        }
    }
    let twice = get(&service, "/v1/id?once=a&once=a").await;
    assert_eq!(
        twice.problem(400, "INVALID"),
        "once must be given only once"
    );
    let step = service.meta().step();
    assert_eq!(service.gen_id().unwrap(), before + step);
}

#[actix_web::test]
async fn calls_that_return_ids_or_numbers_take_it_and_no_other_does() {
    let takes = |path: &str| {
        [
            "/genid",
            "/makeid",
            "/transtime",
            "/uid/get",
            "/v1/id",
            "/v1/ids",
            "/v1/runs",
            "/v1/ids:make",
        ]
        .contains(&path)
            || ["/get/{key}", "/get/{tag}", "/next"]
                .iter()
                .any(|end| path.ends_with(end))
            || path.starts_with("/tinyid/")
    };
    let mut running = running(service(), None);
    running.config.compat = Compat::Tinyid;
    let document = get_at(&Data::new(running), "/openapi.json").await.json();
    for endpoint in ENDPOINTS.iter() {
        let Some(item) = document["paths"].get(endpoint.path) else {
            continue;
        };
        for operation in item.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array();
            let has = parameters
                .into_iter()
                .flatten()
                .any(|parameter| parameter["name"] == "once");
            assert_eq!(has, takes(endpoint.path), "{}", endpoint.path);
        }
    }
}

#[test]
fn two_requests_in_one_packet_are_told_apart_by_their_answers() {
    let server = Server::usual(Arc::clone(&service()), None);
    let mut client = Raw::connect(server.address);
    let of = |once: &str| {
        format!("GET /v1/runs?count=5&once={once} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    };
    client.send(&(of("first") + &of("second")));
    for once in ["first", "second"] {
        assert_eq!(client.answer().json()["once"], once);
    }
}

//! Which scopes open which endpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::test::TestRequest;
use actix_web::web;
use vesta_boot::{Auth, Metrics, Outcome, Running, Scopes, Security, Token};
use vesta_intf::ErrorKind;
use vesta_rest::METHODS;
use vesta_rest::app::{ENDPOINTS, Verb};

use crate::limits::{PATIENT, Server};
use crate::segments::leafs;
use crate::serials::serials;
use crate::support::{Answer, Raw, ask_with, running, service};

const NAMES: [(&str, Scopes); 6] = [
    ("t-generate", Scopes::GENERATE),
    ("t-read", Scopes::READ),
    ("t-segments", Scopes::SEGMENTS),
    ("t-serials", Scopes::SERIALS),
    ("t-metrics", Scopes::METRICS),
    ("t-admin", Scopes::ADMIN),
];

fn auth() -> Auth {
    Auth::new(NAMES.map(|(name, scopes)| Token::of_text(name, name, scopes)))
}

pub(crate) fn guarded() -> Running {
    let security = Security {
        auth: Some(auth()),
        ..Security::default()
    };
    let metrics = Arc::new(Metrics::new(vesta_rest::METHODS).of_tokens(NAMES.len()));
    let serials = Some(serials());
    Running {
        security,
        metrics,
        serials,
        pool_server: None,
        ..running(service(), Some(leafs()))
    }
}

/// A request to an endpoint that returns 200 to authorized callers.
fn request(path: &str) -> (String, &'static str) {
    match path {
        "/v1/ids" => ("/v1/ids?count=2".into(), ""),
        "/v1/runs" => ("/v1/runs?count=2".into(), ""),
        "/expid" => ("/expid?id=1".into(), ""),
        "/transtime" => ("/transtime?time=1".into(), ""),
        "/makeid" => ("/makeid?time=1&seq=1".into(), ""),
        "/v1/ids/{id}" => ("/v1/ids/1".into(), ""),
        "/v1/ids:make" => (path.into(), r#"{"time":1,"seq":1}"#),
        "/v1/ids:bound" => ("/v1/ids:bound?time=2026-01-01T00:00:00Z".into(), ""),
        "/v1/serials" => (path.into(), r#"{"tag":"new","pattern":"{n:6}"}"#),
        "/decodeSnowflakeId" => ("/decodeSnowflakeId?snowflakeId=1".into(), ""),
        "/uid/parse" => ("/uid/parse?uid=1".into(), ""),
        "/v1/serials/{tag}/parse" => (
            "/v1/serials/invoices/parse?serial=INV-261122-0000427".into(),
            "",
        ),
        _ => {
            let of_segments = path.contains("/segment");
            let tag = if of_segments {
                "leaf-segment-test"
            } else {
                "invoices"
            };
            let path = path.replace("{key}", "any").replace("{tag}", tag);
            (path.replace("{file:.*}", "index.html"), "")
        }
    }
}

async fn ask(state: &web::Data<Running>, verb: Verb, path: &str, header: Option<&str>) -> Answer {
    let (uri, body) = request(path);
    let mut asked = match verb {
        Verb::Get | Verb::Any | Verb::Every => TestRequest::get().uri(&uri),
        Verb::Post => TestRequest::post()
            .uri(&uri)
            .set_payload(body)
            .insert_header(("content-type", "application/json")),
    };
    if let Some(header) = header {
        asked = asked.insert_header(("authorization", header));
    }
    ask_with(state.clone(), asked).await
}

/// True for an endpoint that refuses every token: its layout is another, or Tinyid's clients are
/// not served.
fn is_elsewhere(path: &str) -> bool {
    path.starts_with("/uid/") || path.starts_with("/tinyid/")
}

#[actix_web::test]
async fn each_endpoint_opens_to_tokens_of_its_scope_only() {
    let state = web::Data::new(guarded());
    let mut scopes = BTreeSet::new();
    for (method, endpoint) in ENDPOINTS.iter().enumerate() {
        let (verb, path) = (endpoint.verb, endpoint.path);
        scopes.insert(endpoint.needs.to_string());
        let expected = |let_in: bool, answer: &Answer| match let_in {
            true if is_elsewhere(path) => {
                assert!(![401, 403].contains(&answer.status), "{path}: {answer:?}");
            }
            true => assert!([200, 308].contains(&answer.status), "{path}: {answer:?}"),
            false => {
                let detail = answer.problem(403, "PERMISSION_DENIED");
                assert!(
                    detail.ends_with(&format!("it needs the scope {}", endpoint.needs)),
                    "{detail}"
                );
                let challenge = r#"Bearer realm="vesta", error="insufficient_scope""#;
                assert_eq!(answer.header("www-authenticate"), challenge);
                assert_eq!(answer.header("cache-control"), "no-store");
            }
        };
        let open = endpoint.needs == Scopes::NONE;
        for (name, scope) in NAMES {
            let answer = ask(&state, verb, path, Some(&format!("Bearer {name}"))).await;
            expected(open || scope == endpoint.needs, &answer);
        }
        for (header, challenge, says) in [
            (
                None,
                r#"Bearer realm="vesta""#,
                "send the header authorization: Bearer TOKEN",
            ),
            (
                Some("Bearer t-unknown"),
                r#"error="invalid_token""#,
                "unknown token",
            ),
            (
                Some("Basic dDp0"),
                r#"error="invalid_request""#,
                "must be Bearer TOKEN",
            ),
        ] {
            let answer = ask(&state, verb, path, header).await;
            if open {
                expected(true, &answer);
                continue;
            }
            let detail = answer.problem(401, "UNAUTHENTICATED");
            assert!(detail.contains(says), "{detail}");
            assert!(
                answer.header("www-authenticate").ends_with(challenge),
                "{answer:?}"
            );
            assert!(!answer.body.contains("t-unknown"), "{answer:?}");
        }
        let counted = |kind| state.metrics.requests(method, Outcome::Error(kind));
        let refused = if open { (0, 0) } else { (3, 5) };
        let kinds = (
            counted(ErrorKind::Unauthenticated),
            counted(ErrorKind::PermissionDenied),
        );
        assert_eq!(kinds, refused, "{}", METHODS[method]);
    }
    let all = ["", "admin", "generate", "read", "segments", "serials"];
    assert_eq!(scopes.into_iter().collect::<Vec<_>>(), all);
}

#[actix_web::test]
async fn unknown_paths_require_a_token() {
    let state = web::Data::new(guarded());
    for path in ["/no-such-path", "/v1", "/v1/id/", "/GENID"] {
        ask(&state, Verb::Get, path, None)
            .await
            .problem(401, "UNAUTHENTICATED");
        ask(&state, Verb::Get, path, Some("Bearer t-metrics"))
            .await
            .problem(404, "NOT_FOUND");
    }
    ask(&state, Verb::Post, "/v1/id", None)
        .await
        .problem(401, "UNAUTHENTICATED");
    let answer = ask(&state, Verb::Post, "/v1/id", Some("Bearer t-generate")).await;
    answer.problem(405, "METHOD_NOT_ALLOWED");
}

#[test]
fn no_spelling_of_a_path_bypasses_its_scope() {
    let server = Server::start_with(service(), PATIENT, |config| config.auth = Some(auth()));
    let mut client = Raw::connect(server.address);
    let mut get = |uri: &str, token: &str| {
        client.send(&format!(
            "GET {uri} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
        ));
        client.answer()
    };
    assert_eq!(
        get("/genid", "t-generate").status,
        200,
        "the way around the router"
    );
    assert_eq!(get("/%67enid", "t-generate").status, 200, "the router");
    for uri in [
        "/genid",
        "/%67enid",
        "/gen%69d",
        "/genid?format=hex",
        "http://test/genid",
    ] {
        get(uri, "t-read").problem(403, "PERMISSION_DENIED");
        get(uri, "t-unknown").problem(401, "UNAUTHENTICATED");
    }
    for uri in ["//genid", "/genid/", "/uid//get/"] {
        get(uri, "t-read").problem(403, "PERMISSION_DENIED");
        get(uri, "t-unknown").problem(401, "UNAUTHENTICATED");
        assert!([200, 501].contains(&get(uri, "t-generate").status), "{uri}");
    }
    for uri in [
        "//v1/id",
        "/v1/id/",
        "//gen%69d/",
        "/./genid",
        "/docs/../genid",
        "/genid;x",
        "/genid%00",
    ] {
        let answer = get(uri, "t-unknown");
        assert_ne!(answer.status, 200, "{uri}: {answer:?}");
    }
    client.send("HEAD /genid HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let said = client.closed();
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
}

#[actix_web::test]
async fn the_document_says_where_tokens_are_needed() {
    let document = ask(&web::Data::new(guarded()), Verb::Get, "/openapi.json", None)
        .await
        .json();
    let scheme = &document["components"]["securitySchemes"]["token"];
    assert_eq!(
        (&scheme["type"], &scheme["scheme"]),
        (&"http".into(), &"bearer".into())
    );
    for endpoint in ENDPOINTS {
        let verb = if endpoint.verb == Verb::Post {
            "post"
        } else {
            "get"
        };
        let operation = &document["paths"][endpoint.path][verb];
        if operation.is_null() {
            let is_uids = endpoint.path.starts_with("/uid/"); // of another layout
            assert!(
                is_uids || endpoint.needs == Scopes::NONE,
                "{}",
                endpoint.path
            );
            continue;
        }
        let needs = endpoint.needs != Scopes::NONE;
        let security = serde_json::json!([{"token": []}]);
        assert_eq!(
            operation["security"] == security,
            needs,
            "{}",
            endpoint.path
        );
        for status in ["401", "403"] {
            assert_eq!(
                operation["responses"][status].is_object(),
                needs,
                "{}",
                endpoint.path
            );
        }
    }
}

#[actix_web::test]
async fn the_document_of_a_server_without_tokens_has_no_padlocks() {
    let document = crate::support::get(&crate::support::service(), "/openapi.json")
        .await
        .body;
    for word in [
        "securitySchemes",
        "\"security\"",
        "UNAUTHENTICATED",
        "PERMISSION_DENIED",
    ] {
        assert!(!document.contains(word), "{word}");
    }
}

#[actix_web::test]
async fn two_tokens_in_one_request_are_refused() {
    let state = web::Data::new(guarded());
    for uri in ["/genid", "/v1/id"] {
        let request = TestRequest::get().uri(uri);
        let request = request.append_header(("authorization", "Bearer t-generate"));
        let request = request.append_header(("authorization", "Bearer t-generate"));
        ask_with(state.clone(), request)
            .await
            .problem(400, "INVALID");
    }
}

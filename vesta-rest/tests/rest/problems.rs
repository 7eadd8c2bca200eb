//! Unknown paths and unsupported methods.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use vesta_rest::app::{ENDPOINTS, Verb};

use crate::support::{ask, get, service};

#[actix_web::test]
async fn unknown_paths_are_404() {
    let service = service();
    for uri in [
        "/nothing",
        "/genid/",
        "/GENID",
        "/v1",
        "/v1/ids/1/2",
        "/v2/id",
        "/%2e%2e/etc/passwd",
    ] {
        let detail = get(&service, uri).await.problem(404, "NOT_FOUND");
        assert!(detail.starts_with("unknown path `/"), "{uri}: {detail}");
    }
    let long = get(&service, &format!("/{}", "x".repeat(5000))).await;
    assert!(
        long.problem(404, "NOT_FOUND").len() < 200,
        "the path is not repeated in full"
    );
}

#[actix_web::test]
async fn other_methods_get_405_with_the_supported_ones() {
    let service = service();
    for endpoint in ENDPOINTS {
        let uri = endpoint
            .path
            .replace("{id}", "1")
            .replace("{file:.*}", "index.html");
        let (wrong, allow): (&[_], _) = match endpoint.verb {
            Verb::Get => (
                &[Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS],
                "GET, HEAD",
            ),
            Verb::Post => (&[Method::GET, Method::HEAD, Method::PUT], "POST"),
            Verb::Any => (
                &[Method::PUT, Method::DELETE, Method::OPTIONS],
                "GET, HEAD, POST",
            ),
            Verb::Every => (&[Method::OPTIONS], "GET, HEAD, POST, PUT, PATCH, DELETE"),
        };
        for method in wrong {
            let request = TestRequest::default().method(method.clone()).uri(&uri);
            let answer = ask(&service, request).await;
            assert_eq!(answer.header("allow"), allow, "{method} {uri}");
            answer.problem(405, "METHOD_NOT_ALLOWED");
        }
    }
}

#[actix_web::test]
async fn legacy_paths_take_forms_and_ignore_unknown_parameters() {
    let service = service();
    let post = |uri| TestRequest::post().uri(uri);
    let form = "application/x-www-form-urlencoded; charset=UTF-8";
    let form = |uri, body: &'static str| {
        post(uri)
            .insert_header(("content-type", form))
            .set_payload(body)
    };
    for (uri, body) in [
        (
            "/makeid?_=1769904000000",
            "time=94990103&seq=0&machine=1021",
        ),
        ("/makeid?time=94990103&seq=0", "machine=1021&x=y"),
    ] {
        let answer = ask(&service, form(uri, body)).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "2407837855670862845")
        );
    }
    for uri in ["/genid?_=1", "/api/snowflake/get/any?_=1"] {
        assert_eq!(get(&service, uri).await.status, 200, "{uri}");
        assert_eq!(ask(&service, post(uri)).await.status, 200, "{uri}");
        assert_eq!(ask(&service, form(uri, "a=b")).await.status, 200, "{uri}");
    }
    // Known parameters are as strict as elsewhere, and the JSON API stays strict.
    ask(&service, form("/expid?id=1", "id=1"))
        .await
        .problem(400, "INVALID");
    ask(&service, form("/expid", "id=%FF"))
        .await
        .problem(400, "INVALID");
    get(&service, "/v1/id?_=1").await.problem(400, "INVALID");
    ask(&service, post("/v1/id"))
        .await
        .problem(405, "METHOD_NOT_ALLOWED");
    let long = "x".repeat(20 * 1024);
    let answer = ask(&service, form("/genid", "").set_payload(long)).await;
    answer.problem(413, "PAYLOAD_TOO_LARGE");
}

#[actix_web::test]
async fn head_is_answered_wherever_get_is() {
    let service = service();
    for uri in [
        "/genid",
        "/expid?id=1",
        "/v1/layout",
        "/",
        "/docs/",
        "/openapi.json",
    ] {
        let answer = ask(
            &service,
            TestRequest::default().method(Method::HEAD).uri(uri),
        )
        .await;
        assert_eq!(answer.status, 200, "{uri}");
    }
}

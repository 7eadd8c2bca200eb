//! Paths and methods that are not there.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use vesta_rest::app::{ENDPOINTS, Verb};

use crate::support::{ask, get, service};

#[actix_web::test]
async fn unknown_paths_are_404() {
    let service = service();
    for uri in
        ["/nothing", "/genid/", "/GENID", "/v1", "/v1/ids/1/2", "/v2/id", "/%2e%2e/etc/passwd"]
    {
        let detail = get(&service, uri).await.problem(404, "NOT_FOUND");
        assert!(detail.starts_with("nothing is at `/"), "{uri}: {detail}");
    }
    let long = get(&service, &format!("/{}", "x".repeat(5000))).await;
    assert!(long.problem(404, "NOT_FOUND").len() < 200, "the path is not repeated in full");
}

#[actix_web::test]
async fn other_methods_are_405_and_say_what_there_is() {
    let service = service();
    for endpoint in ENDPOINTS {
        let uri = endpoint.path.replace("{id}", "1").replace("{file:.*}", "index.html");
        let (wrong, allow): (&[_], _) = match endpoint.verb {
            Verb::Get => {
                (&[Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS], "GET, HEAD")
            }
            Verb::Post => (&[Method::GET, Method::HEAD, Method::PUT], "POST"),
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
async fn head_is_answered_wherever_get_is() {
    let service = service();
    for uri in ["/genid", "/expid?id=1", "/v1/layout", "/", "/docs/", "/openapi.json"] {
        let answer = ask(&service, TestRequest::default().method(Method::HEAD).uri(uri)).await;
        assert_eq!(answer.status, 200, "{uri}");
    }
}

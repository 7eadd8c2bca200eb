//! CORS: requests of web pages from other origins, as browsers send them.

use crate::limits::{PATIENT, Server};
use crate::support::{Raw, service};

const SHOP: &str = "https://shop.example.com";

fn server(origins: &[&str]) -> Server {
    let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
    Server::start_with(service(), PATIENT, |config| config.cors_origins = origins)
}

/// The status of an answer, and the origin that may read it.
fn ask(server: &Server, request: &str, origin: &str, more: &str) -> (u16, String, String) {
    let mut client = Raw::connect(server.address);
    client.send(&format!(
        "{request} HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\n{more}\r\n"
    ));
    let answer = client.answer();
    let allowed = answer.header("access-control-allow-origin").to_owned();
    (answer.status, allowed, answer.body)
}

const PREFLIGHT: &str = "access-control-request-method: POST\r\naccess-control-request-headers: authorization, content-type\r\n";

#[test]
fn pages_of_listed_origins_may_read_the_answers() {
    let server = server(&[SHOP]);
    for path in ["/genid", "/v1/id", "/v1/layout"] {
        let (status, allowed, _) = ask(&server, &format!("GET {path}"), SHOP, "");
        assert_eq!((status, allowed.as_str()), (200, SHOP), "{path}");
    }
    let (status, allowed, body) = ask(&server, "GET /v1/id?x=1", SHOP, "");
    assert_eq!((status, allowed.as_str()), (400, SHOP), "errors too");
    assert!(body.contains("unknown parameter"));
    let (status, allowed, _) = ask(&server, "OPTIONS /v1/ids:make", SHOP, PREFLIGHT);
    assert_eq!((status, allowed.as_str()), (200, SHOP));
    let (_, allowed, _) = ask(&server, "GET /genid", "https://evil.example.com", "");
    assert_eq!(allowed, "");
    let (status, allowed, _) = ask(
        &server,
        "OPTIONS /genid",
        "https://evil.example.com",
        PREFLIGHT,
    );
    assert_eq!((status, allowed.as_str()), (400, ""));
}

#[test]
fn a_star_allows_every_origin_and_the_default_none() {
    let all = server(&["*"]);
    assert_eq!(ask(&all, "GET /genid", SHOP, "").1, "*");
    let none = server(&[]);
    assert_eq!(
        (
            ask(&none, "GET /genid", SHOP, "").1,
            ask(&none, "OPTIONS /v1/id", SHOP, PREFLIGHT).0
        ),
        (String::new(), 405)
    );
}

//! CORS: requests of web pages from other origins, as browsers send them.

use crate::limits::{PATIENT, Server};
use crate::support::{Answer, Raw, service};

const SHOP: &str = "https://shop.example.com";
const EVIL: &str = "https://evil.example.com";

fn server(origins: &[&str]) -> Server {
    let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
    Server::start_with(service(), PATIENT, |config| config.cors_origins = origins)
}

fn ask(server: &Server, request: &str, origin: &str, more: &str) -> Answer {
    let mut client = Raw::connect(server.address);
    client.send(&format!(
        "{request} HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\nconnection: close\r\n{more}\r\n"
    ));
    client.answer()
}

/// Asks as a browser does before a request with this method and these headers.
fn preflight(server: &Server, path: &str, origin: &str, method: &str, headers: &str) -> Answer {
    let lines = headers.lines();
    let lines = lines.map(|names| format!("access-control-request-headers: {names}\r\n"));
    let more = format!(
        "access-control-request-method: {method}\r\n{}",
        lines.collect::<String>()
    );
    ask(server, &format!("OPTIONS {path}"), origin, &more)
}

/// The origin that may read an answer.
fn reader(answer: &Answer) -> &str {
    answer.header("access-control-allow-origin")
}

#[test]
fn preflights_of_a_listed_origin_get_the_headers_they_ask_for() {
    let server = server(&[SHOP, "http://localhost:3000"]);
    for (path, method, asked, allowed) in [
        ("/genid", "GET", "", ""),
        ("/v1/id", "GET", "authorization", "authorization"),
        (
            "/v1/ids:make",
            "POST",
            "authorization,content-type",
            "authorization, content-type",
        ),
        (
            "/v1/ids?count=3",
            "GET",
            "baggage,sentry-trace",
            "baggage, sentry-trace",
        ),
        (
            "/v1/runs?count=9",
            "GET",
            "traceparent,tracestate",
            "traceparent, tracestate",
        ),
        (
            "/v1/id",
            "GET",
            "X-Request-ID, X-Requested-With",
            "x-request-id, x-requested-with",
        ),
        (
            "/v1/layout",
            "HEAD",
            "cache-control,pragma",
            "cache-control, pragma",
        ),
        (
            "/nothing",
            "GET",
            "x-b3-traceid\nuber-trace-id",
            "x-b3-traceid, uber-trace-id",
        ),
        ("/v1/id", "GET", " ,x-a,, x-b ,", "x-a, x-b"),
        (
            "/openapi.json",
            "GET",
            "x-datadog-trace-id",
            "x-datadog-trace-id",
        ),
    ] {
        let answer = preflight(&server, path, SHOP, method, asked);
        let headers = ["allow-origin", "allow-headers", "allow-methods", "max-age"]
            .map(|name| answer.header(&format!("access-control-{name}")).to_owned());
        let expected = [SHOP, allowed, "GET, HEAD, POST", "3600"];
        assert_eq!(
            (answer.status, headers),
            (204, expected.map(str::to_owned)),
            "{asked}"
        );
        let vary = answer.header("vary");
        for name in [
            "origin",
            "access-control-request-method",
            "access-control-request-headers",
        ] {
            assert!(vary.split(", ").any(|it| it == name), "{vary}");
        }
    }
}

#[test]
fn refusals_of_a_preflight_are_problems_that_an_allowed_page_can_read() {
    let listed = server(&[SHOP]);
    let none = server(&[]);
    let all = server(&["*"]);
    for (server, origin, method, headers, status, kind, why, allowed) in [
        (
            &listed,
            EVIL,
            "GET",
            "",
            403,
            "PERMISSION_DENIED",
            "cors.origins",
            "",
        ),
        (
            &listed,
            "null",
            "GET",
            "",
            403,
            "PERMISSION_DENIED",
            "`null`",
            "",
        ),
        (
            &listed,
            "https://shop.example.com:8443",
            "GET",
            "",
            403,
            "PERMISSION_DENIED",
            ":8443`",
            "",
        ),
        (
            &none,
            SHOP,
            "POST",
            "",
            403,
            "PERMISSION_DENIED",
            "cors.origins",
            "",
        ),
        (
            &listed,
            SHOP,
            "PUT",
            "",
            405,
            "METHOD_NOT_ALLOWED",
            "GET, HEAD, POST",
            SHOP,
        ),
        (
            &listed, SHOP, "GET", "x-a, b c", 400, "INVALID", "`b c`", SHOP,
        ),
        (
            &all,
            EVIL,
            "DELETE",
            "",
            405,
            "METHOD_NOT_ALLOWED",
            "GET, HEAD, POST",
            "*",
        ),
    ] {
        let answer = preflight(server, "/v1/id", origin, method, headers);
        let detail = answer.problem(status, kind);
        assert!(detail.contains(why), "{detail}");
        assert_eq!(reader(&answer), allowed, "{answer:?}");
        assert_eq!(
            answer.header("access-control-allow-headers"),
            "",
            "{answer:?}"
        );
    }
}

#[test]
fn pages_of_listed_origins_may_read_every_answer() {
    let server = Server::start_with(service(), PATIENT, |config| {
        config.cors_origins = [SHOP.to_owned()].into();
        config.base_path = "/ids".to_owned();
        config.readiness_path = Some("/readyz".to_owned());
    });
    for (request, status) in [
        ("GET /ids/genid", 200),
        ("GET /ids/v1/id", 200),
        ("GET /ids/v1/layout", 200),
        ("GET /readyz", 200),
        ("GET /ids/v1/id?x=1", 400),
        ("GET /ids/nothing", 404),
        ("GET /genid", 404),
        ("POST /ids/v1/layout", 405),
        ("OPTIONS /ids/v1/layout", 405),
    ] {
        let answer = ask(&server, request, SHOP, "");
        assert_eq!(
            (answer.status, reader(&answer)),
            (status, SHOP),
            "{request}"
        );
        assert_eq!(
            answer.header("access-control-expose-headers"),
            "retry-after",
            "{request}"
        );
        if status >= 400 {
            assert_eq!(
                answer.header("content-type"),
                "application/problem+json",
                "{request}"
            );
        }
        let stranger = ask(&server, request, EVIL, "");
        assert_eq!(
            (stranger.status, reader(&stranger)),
            (status, ""),
            "{request}"
        );
        for answer in [answer, stranger] {
            assert!(answer.header("vary").contains("origin"), "{answer:?}");
        }
    }
    let mut foreign = Raw::connect(server.address);
    foreign.send(&format!(
        "GET /ids/genid HTTP/1.1\r\nhost: evil.example\r\norigin: {SHOP}\r\n\r\n"
    ));
    let foreign = foreign.answer();
    foreign.problem(403, "PERMISSION_DENIED");
    assert_eq!(reader(&foreign), SHOP);
}

#[test]
fn a_star_allows_every_origin_and_the_default_none() {
    let all = server(&["*"]);
    let answer = ask(&all, "GET /genid", SHOP, "");
    assert_eq!((reader(&answer), answer.header("vary")), ("*", ""));
    let none = server(&[]);
    let answer = ask(&none, "GET /genid", SHOP, "");
    assert_eq!(
        (answer.status, reader(&answer), answer.header("vary")),
        (200, "", "")
    );
}

//! Access to the admin listener: tokens, other sites, and what TLS exposes.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;
use vesta_testkit::certificates::{Authority, Usage};

use crate::admin::{AdminState, router};
use crate::{CancellationToken, Metrics, Scopes, Security, Tls, TlsFiles};

fn token(text: &str, scopes: Scopes) -> crate::Token {
    crate::Token::of_text(text, text, scopes)
}

#[tokio::test]
async fn the_admin_listener_shows_each_token_what_its_scopes_allow() {
    let auth = crate::Auth::new([
        token("maker", Scopes::GENERATE | Scopes::READ | Scopes::SEGMENTS),
        token("watcher", Scopes::METRICS),
        token("boss", Scopes::ADMIN),
    ]);
    let security = Security {
        auth: Some(auth),
        ..Security::default()
    };
    let metrics = Arc::new(Metrics::new(&["genid"]).of_tokens(3));
    let maker = security
        .check([&b"Bearer maker"[..]], Scopes::GENERATE)
        .expect("its scope");
    metrics.issue(maker, 5);
    let state = AdminState::new("vesta", "x", [metrics], CancellationToken::new(), &security);
    let router = router(state);
    let ask = async |method: &str, path: &str, token: Option<&str>| {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "[::1]");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let challenge = answer.headers().get("www-authenticate").cloned();
        let (status, body) = (answer.status(), answer.into_body());
        let body = to_bytes(body, 1 << 20).await.expect("a body");
        let challenge = challenge.map(|it| it.to_str().expect("text").to_owned());
        (
            status,
            challenge.unwrap_or_default(),
            String::from_utf8_lossy(&body).into_owned(),
        )
    };

    for path in ["/healthz", "/readyz"] {
        let (status, ..) = ask("GET", path, None).await;
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let (_, _, scraped) = ask("GET", "/metrics", Some("watcher")).await;
    for line in [
        r#"ids_issued_total{token="maker"} 5"#,
        r#"ids_issued_total{token=""} 0"#,
    ] {
        assert!(scraped.contains(line), "{line} in\n{scraped}");
    }
    assert_eq!(
        ask("GET", "/", None).await.0,
        StatusCode::OK,
        "it shows nothing of the process"
    );
    assert_eq!(ask("POST", "/", None).await.0, StatusCode::UNAUTHORIZED);
    for path in [
        "/metrics",
        "/status",
        "/pool",
        "/events",
        "/segments",
        "/no-such-page",
        "//metrics",
    ] {
        let (status, challenge, body) = ask("GET", path, None).await;
        assert_eq!(
            (status, &*challenge),
            (StatusCode::UNAUTHORIZED, r#"Bearer realm="vesta""#)
        );
        assert!(
            body.contains("send the header authorization: Bearer TOKEN"),
            "{body}"
        );
        let (status, challenge, body) = ask("GET", path, Some("watchers")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(
            challenge.ends_with(r#"error="invalid_token""#),
            "{challenge}"
        );
        assert!(!body.contains("watchers"), "{body}");
        let (status, challenge, body) = ask("GET", path, Some("maker")).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(
            challenge.ends_with(r#"error="insufficient_scope""#),
            "{challenge}"
        );
        assert!(
            body.contains("the token `maker`") && body.contains("metrics or admin"),
            "{body}"
        );
        for good in ["watcher", "boss"] {
            let (status, ..) = ask("GET", path, Some(good)).await;
            let let_in = ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
            assert!(let_in, "{path} {good}: {status}");
        }
    }
    let post = async |token| ask("POST", "/segments", token).await.0;
    assert_eq!(post(None).await, StatusCode::UNAUTHORIZED);
    assert_eq!(post(Some("watcher")).await, StatusCode::FORBIDDEN);
    assert_eq!(
        post(Some("boss")).await,
        StatusCode::SERVICE_UNAVAILABLE,
        "it got through"
    );
}

#[tokio::test]
async fn the_metrics_report_the_expiry_of_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Authority::new("one").issue(&["a.test"], Usage::ServerAuth, 2030);
    let files = issued.write(folder.path(), TlsFiles::new);
    let tls = Tls::load(&files, crate::Protocol::Http1).expect("sound");
    let security = Security {
        admin_tls: Some(tls),
        ..Security::default()
    };
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let state = AdminState::new("vesta", "x", [metrics], CancellationToken::new(), &security);
    let request = Request::get("/metrics")
        .body(Body::empty())
        .expect("a request");
    let answer = router(state).oneshot(request).await.expect("an answer");
    let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    let body = String::from_utf8_lossy(&body);
    for line in [
        "vesta_tls_certificate_expires{listener=\"admin\"} 1893456000",
        "vesta_tls_handshakes_failed_total{listener=\"admin\"} 0",
    ] {
        assert!(body.contains(line), "{line} in\n{body}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let security = Security {
        admin_hosts: Arc::new(["vesta.example".into()]),
        ..Security::default()
    };
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let state = AdminState::new("vesta", "x", [metrics], CancellationToken::new(), &security);
    let router = router(state);
    let ask = async |method: &str, path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        router
            .clone()
            .oneshot(request)
            .await
            .expect("an answer")
            .status()
    };
    let own = ("host", "127.0.0.1:50052");
    for headers in [
        &[][..],
        &[("host", "evil.example:50052")],
        &[("host", "evil.example"), ("origin", "http://evil.example")],
        &[own, ("origin", "http://evil.example")],
        &[own, ("origin", "null")],
    ] {
        for method in ["POST", "PUT", "DELETE"] {
            let status = ask(method, "/segments", headers).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{method} {headers:?}");
        }
        assert_eq!(
            ask("GET", "/", headers).await,
            StatusCode::OK,
            "it only reads"
        );
    }
    for headers in [
        &[own][..],
        &[own, ("origin", "http://127.0.0.1:50052")],
        &[
            ("host", "vesta.example"),
            ("origin", "https://vesta.example"),
        ],
    ] {
        // The request reached a program that has no machine ID yet.
        let status = ask("POST", "/segments", headers).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{headers:?}");
    }
}

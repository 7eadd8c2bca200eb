//! Settings of TLS and tokens, and who may see what on the admin listener.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;
use vesta_boot::admin::{AdminState, router};
use vesta_boot::commands::TokenCommand;
use vesta_boot::settings::Values;
use vesta_boot::{
    CancellationToken, Config, Invocation, Metrics, Role, Scopes, Security, Tls, TlsFiles,
};
use vesta_testkit::certificates::{Authority, Usage};

/// SHA-256 of "abc" and of "abd".
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const ABD: &str = "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9";

fn raw(args: &[&str]) -> Result<Values, String> {
    match Invocation::read(Role::Server, args) {
        Ok(Invocation::Run(raw)) => Ok(raw),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn config(args: &[&str]) -> Result<Config, String> {
    Config::check(&raw(args)?).map_err(|error| error.to_string())
}

/// A file with this text in a folder, and the flag that names it.
fn file(folder: &Path, text: &str) -> [String; 2] {
    let path = folder.join("vesta.toml");
    fs::write(&path, text).expect("a file");
    ["--config".to_owned(), path.to_str().expect("a plain path").to_owned()]
}

fn with_file(text: &str) -> Result<(Values, Config), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let args = file(folder.path(), text);
    let raw = raw(&[&args[0], &args[1]])?;
    Config::check(&raw).map(|config| (raw, config)).map_err(|error| error.to_string())
}

fn table(name: &str, sha256: &str, scopes: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\nscopes = [{scopes}]\n")
}

const PUBLIC: [&str; 4] = ["--tls-cert", "c.pem", "--tls-key", "k.pem"];
const ADMIN: [&str; 4] = ["--admin-tls-cert", "c.pem", "--admin-tls-key", "k.pem"];

#[test]
fn tls_is_off_unless_certificate_and_key_are_named() {
    let config = self::config(&[]).expect("right settings");
    assert!(config.tls.is_none() && config.admin_tls.is_none() && config.auth.is_none());

    let text = "[tls]\ncert = \"a\"\nkey = \"b\"\nclient_ca = \"c\"\n[admin]\ntls.cert = \"d\"\n\
        tls.key = \"e\"\n";
    let (raw, config) = with_file(text).expect("right settings");
    let files = config.tls.clone().expect("it is on");
    assert_eq!((files.setting, files.cert.to_str()), ("tls", Some("a")));
    assert_eq!(
        files.client_ca.and_then(|path| path.to_str().map(str::to_owned)).as_deref(),
        Some("c")
    );
    let files = config.admin_tls.clone().expect("it is on");
    assert_eq!((files.setting, files.key.to_str()), ("admin.tls", Some("e")));
    assert!(files.client_ca.is_none());
    let printed = config.print(&raw);
    for line in ["[tls]", "cert = \"a\" ", "client_ca = \"c\" ", "tls.cert = \"d\" "] {
        assert!(printed.lines().any(|it| it.starts_with(line)), "{line} in\n{printed}");
    }
    let again = with_file(&printed).expect("what was printed is a file").1;
    assert_eq!(format!("{again:?}"), format!("{config:?}"));

    for (args, expected) in [
        (&["--tls-cert", "c"][..], "tls.cert needs tls.key too"),
        (&["--tls-key", "k"], "tls.key needs tls.cert too"),
        (&["--tls-client-ca", "a"], "tls.client_ca needs tls.cert and tls.key too"),
        (&["--admin-tls-cert", "c"], "admin.tls.cert needs admin.tls.key too"),
        (
            &[&ADMIN[..], &["--admin-listen", "off"]].concat(),
            "admin.tls is for the admin listener, which is off",
        ),
    ] {
        let said = self::config(args).map(|config| config.role).expect_err(expected);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_listener_beyond_loopback_is_encrypted_or_allowed_not_to_be() {
    let open = ["--listen", "0.0.0.0:5", "--machine-id", "1"];
    let both = [&open[..], &["--admin-listen", "0.0.0.0:6"]].concat();
    for args in [
        &[&open[..], &PUBLIC].concat()[..],
        &[&both[..], &PUBLIC, &ADMIN].concat(),
        &[&both[..], &["--allow-plaintext"]].concat(),
        &[&both[..], &PUBLIC, &["--allow-plaintext"]].concat(),
    ] {
        assert_eq!(config(args).map(|config| config.role), Ok(Role::Server), "{args:?}");
    }
    for (args, expected) in [
        (
            &open[..],
            "listen (0.0.0.0:5) is reachable from other hosts and not encrypted; set tls.cert",
        ),
        (&[&open[..], &ADMIN].concat(), "listen (0.0.0.0:5) is reachable"),
        (
            &[&both[..], &PUBLIC].concat(),
            "admin.listen (0.0.0.0:6) is reachable from other hosts and not encrypted; set \
             admin.tls.cert and admin.tls.key, or set allow_plaintext = true",
        ),
    ] {
        let said = config(args).map(|config| config.role).expect_err(expected);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn tokens_do_not_go_over_a_network_in_plain_text_unless_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [flag, path] = file(folder.path(), &table("ci", ABC, "\"generate\""));
    let on_loopback = [flag.as_str(), &path];
    assert!(config(&on_loopback).expect("right settings").auth.is_some());
    let open = [&on_loopback[..], &["--listen", "10.0.0.1:5", "--machine-id", "1"]].concat();
    let said = config(&open).map(|config| config.role).expect_err("not encrypted");
    assert!(said.contains("so that tokens could be read on their way; set tls.cert"), "{said}");
    for also in [&PUBLIC[..], &["--allow-plaintext"]] {
        assert!(config(&[&open[..], also].concat()).is_ok(), "{also:?}");
    }
}

#[test]
fn tokens_are_tables_of_the_file() {
    let two = table("ci", ABC, "\"read\", \"generate\"")
        + &table("web.1", &ABD.to_uppercase(), "\"metrics\"");
    let (raw, config) = with_file(&two).expect("right settings");
    let auth = config.auth.as_ref().expect("there are some");
    let shown: Vec<_> = auth.tokens().iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(shown, ["ci (generate, read)", "web.1 (metrics)"]);
    assert!(auth.check([&b"Bearer abc"[..]], Scopes::READ).is_ok());
    assert!(auth.check([&b"Bearer abd"[..]], Scopes::METRICS).is_ok());
    assert!(auth.check([&b"Bearer abd"[..]], Scopes::READ).is_err());

    // A digest of a token that is not random would tell it to whoever tries enough of them.
    let shown = format!("{raw:?} {config:?} {}", config.print(&raw));
    assert!(shown.contains("web.1") && shown.contains("sha256 = \"***\""), "{shown}");
    assert!(!shown.to_lowercase().contains(&ABC[..8]), "{shown}");
    assert!(!shown.to_lowercase().contains(&ABD[..8]), "{shown}");
    assert!(with_file("[auth]\n").expect("right settings").1.auth.is_none());
}

#[test]
fn a_token_that_is_not_right_is_refused_and_not_repeated() {
    let fine = table("ci", ABC, "\"read\"");
    for (text, expected) in [
        (table("", ABC, "\"read\""), "line 2: name must be 1 to 64 letters"),
        (table("s3cret token", ABC, "\"read\""), "line 2: name must be 1 to 64 letters"),
        (table("ci", "s3cret", "\"read\""), "line 3: sha256 must be the SHA-256"),
        (table("ci", &ABC[1..], "\"read\""), "line 3: sha256 must be the SHA-256"),
        (table("ci", ABC, ""), "line 4: scopes must be some of generate, read, segments"),
        (table("ci", ABC, "\"s3cret\""), "line 4: scopes must be some of generate, read, segments"),
        (
            fine.clone() + &table("ci", ABD, "\"read\""),
            "[[auth.tokens]]: `ci` and `ci` have the same name or sha256",
        ),
        (
            fine.clone() + &table("web", ABC, "\"read\""),
            "[[auth.tokens]]: `ci` and `web` have the same name or sha256",
        ),
        (fine + "token = \"s3cret\"\n", "line 5: unknown field `token`"),
        ("[[auth.tokens]]\nname = \"ci\"\n".to_owned(), "missing field `sha256`"),
        ("[auth]\ntokens = [\"s3cret\"]\n".to_owned(), "line 2: invalid type: string"),
    ] {
        let said = with_file(&text).map(|_| ()).expect_err(expected);
        assert!(said.contains(expected), "{text}: {said}");
        assert!(!said.contains("s3cret") && !said.contains('\n'), "{said}");
    }
}

#[test]
fn making_a_token_needs_no_settings() {
    let new = |args: &[&str]| match Invocation::read(Role::Server, args) {
        Ok(Invocation::Token(TokenCommand::New { name, scopes }, _)) => {
            Ok((name, scopes.join(" ")))
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let usual = Ok(("ci".to_owned(), "generate read segments serials".to_owned()));
    assert_eq!(new(&["token", "new", "--name", "ci"]), usual);
    let broken = ["--config", "/no/such/file", "token", "new", "--name", "ci"];
    assert_eq!(new(&broken), usual, "nothing is read");
    let some = ["token", "new", "--name", "p", "--scopes", "metrics,admin"];
    assert_eq!(new(&some), Ok(("p".to_owned(), "metrics admin".to_owned())));
    for args in
        [&["token"][..], &["token", "new"], &["token", "new", "--name", "a", "--scopes=all"]]
    {
        assert!(new(args).is_err(), "{args:?}");
    }
}

fn token(text: &str, scopes: Scopes) -> vesta_boot::Token {
    vesta_boot::Token::of_text(text, text, scopes)
}

#[tokio::test]
async fn the_admin_listener_shows_each_token_what_it_is_for() {
    let auth = vesta_boot::Auth::new([
        token("maker", Scopes::GENERATE | Scopes::READ | Scopes::SEGMENTS),
        token("watcher", Scopes::METRICS),
        token("boss", Scopes::ADMIN),
    ]);
    let security = Security { auth: Some(auth), ..Security::default() };
    let metrics = Arc::new(Metrics::new(&["genid"]).of_tokens(3));
    let maker = security.check([&b"Bearer maker"[..]], Scopes::GENERATE).expect("its scope");
    metrics.issue(maker, 5);
    let state = AdminState::new(Role::Rest, "x", [metrics], CancellationToken::new(), &security);
    let router = router(state);
    let ask = async |method: &str, path: &str, token: Option<&str>| {
        let mut request = Request::builder().method(method).uri(path).header("host", "[::1]");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let challenge = answer.headers().get("www-authenticate").cloned();
        let (status, body) = (answer.status(), answer.into_body());
        let body = to_bytes(body, 1 << 20).await.expect("a body");
        let challenge = challenge.map(|it| it.to_str().expect("text").to_owned());
        (status, challenge.unwrap_or_default(), String::from_utf8_lossy(&body).into_owned())
    };

    for path in ["/healthz", "/readyz"] {
        let (status, ..) = ask("GET", path, None).await;
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let (_, _, scraped) = ask("GET", "/metrics", Some("watcher")).await;
    for line in [r#"ids_issued_total{token="maker"} 5"#, r#"ids_issued_total{token=""} 0"#] {
        assert!(scraped.contains(line), "{line} in\n{scraped}");
    }
    assert_eq!(ask("GET", "/", None).await.0, StatusCode::OK, "it shows nothing of the process");
    assert_eq!(ask("POST", "/", None).await.0, StatusCode::UNAUTHORIZED);
    for path in
        ["/metrics", "/status", "/pool", "/events", "/segments", "/no-such-page", "//metrics"]
    {
        let (status, challenge, body) = ask("GET", path, None).await;
        assert_eq!((status, &*challenge), (StatusCode::UNAUTHORIZED, r#"Bearer realm="vesta""#));
        assert!(body.contains("send the header authorization: Bearer TOKEN"), "{body}");
        let (status, challenge, body) = ask("GET", path, Some("watchers")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(challenge.ends_with(r#"error="invalid_token""#), "{challenge}");
        assert!(!body.contains("watchers"), "{body}");
        let (status, challenge, body) = ask("GET", path, Some("maker")).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(challenge.ends_with(r#"error="insufficient_scope""#), "{challenge}");
        assert!(body.contains("the token `maker`") && body.contains("metrics or admin"), "{body}");
        for good in ["watcher", "boss"] {
            let (status, ..) = ask("GET", path, Some(good)).await;
            let let_in = ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
            assert!(let_in, "{path} {good}: {status}");
        }
    }
    let post = async |token| ask("POST", "/segments", token).await.0;
    assert_eq!(post(None).await, StatusCode::UNAUTHORIZED);
    assert_eq!(post(Some("watcher")).await, StatusCode::FORBIDDEN);
    assert_eq!(post(Some("boss")).await, StatusCode::SERVICE_UNAVAILABLE, "it got through");
}

#[tokio::test]
async fn the_metrics_tell_when_certificates_expire() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Authority::new("one").issue(&["a.test"], Usage::ServerAuth, 2030);
    let files = issued.write(folder.path(), TlsFiles::new);
    let tls = Tls::load(&files, vesta_boot::Protocol::Http1).expect("sound");
    let security = Security { admin_tls: Some(tls), ..Security::default() };
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let state = AdminState::new(Role::Rest, "x", [metrics], CancellationToken::new(), &security);
    let request = Request::get("/metrics").body(Body::empty()).expect("a request");
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
    let security =
        Security { admin_hosts: Arc::new(["vesta.example".into()]), ..Security::default() };
    let metrics = Arc::new(Metrics::new(&["genid"]));
    let state = AdminState::new(Role::Rest, "x", [metrics], CancellationToken::new(), &security);
    let router = router(state);
    let ask = async |method: &str, path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        router.clone().oneshot(request).await.expect("an answer").status()
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
        assert_eq!(ask("GET", "/", headers).await, StatusCode::OK, "it only reads");
    }
    for headers in [
        &[own][..],
        &[own, ("origin", "http://127.0.0.1:50052")],
        &[("host", "vesta.example"), ("origin", "https://vesta.example")],
    ] {
        // It got through to a program that has no machine ID yet.
        let status = ask("POST", "/segments", headers).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{headers:?}");
    }
}

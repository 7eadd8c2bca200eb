//! The program with TLS and tokens: from `token new` to an ID, what it refuses, and what it never
//! prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use vesta_boot::TlsFiles;
use vesta_client::{Client, ErrorKind};
use vesta_intf::grpc::v1::GenIdRequest;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_testkit::certificates::{Authority, Issued};
use vesta_testkit::shape_in;

use crate::support::{FREE_PORTS, folder, program, run, serve, text};

/// A new token and its table, made by the program itself.
fn token(folder: &Path, name: &str, scopes: &str) -> (String, String) {
    let output = run(
        folder,
        &["token", "new", "--name", name, "--scopes", scopes],
        &[],
    );
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    let (token, table) = said.split_once("\n\n").expect("a token and a table");
    (token.to_owned(), table.to_owned())
}

fn args(files: &TlsFiles) -> [String; 4] {
    let path = |path: &Path| path.to_str().expect("a plain path").to_owned();
    [
        "--tls-cert".into(),
        path(&files.cert),
        "--tls-key".into(),
        path(&files.key),
    ]
}

#[test]
fn a_new_token_is_random_and_printed_once() {
    let folder = folder();
    let (one, table) = token(folder.path(), "ci", "generate,read");
    let (other, _) = token(folder.path(), "ci", "generate,read");
    assert_ne!(one, other);
    let hex = one.strip_prefix("vesta_").expect("a token");
    assert!(
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()),
        "256 bits: {one}"
    );
    assert!(
        !table.contains(hex) && table.contains("scopes = [\"generate\", \"read\"]"),
        "{table}"
    );
    let output = run(folder.path(), &["token", "new", "--name", "two words"], &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("for '--name <NAME>': must be 1 to 64 letters"));
    assert!(output.stdout.is_empty());
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        0,
        "nothing is stored"
    );
}

#[test]
fn unusable_tls_files_exit_with_64_and_one_sentence() {
    let folder = folder();
    let authority = Authority::new("one");
    let files = authority.server().write(folder.path(), TlsFiles::new);
    let other = folder.path().join("other.pem");
    fs::write(&other, authority.server().key).expect("a file");
    let encrypted = folder.path().join("encrypted.pem");
    let pem =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nczNjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(&encrypted, pem).expect("a file");
    let empty = folder.path().join("empty.pem");
    fs::write(&empty, "").expect("a file");
    for (files, expected) in [
        (
            TlsFiles::new("none.pem", &files.key),
            "tls.cert: cannot read none.pem: No such file",
        ),
        (
            TlsFiles::new(&empty, &files.key),
            "tls.cert: no certificate in ",
        ),
        (
            TlsFiles::new(&files.cert, &empty),
            "tls.key: no private key in ",
        ),
        (
            TlsFiles::new(&files.cert, &other),
            "does not belong to the certificate in ",
        ),
        (
            TlsFiles::new(&files.cert, &encrypted),
            "is encrypted, and its password cannot be entered",
        ),
        (
            TlsFiles::new(&files.cert, &files.key).client_ca(&empty),
            "tls.client_ca: no",
        ),
    ] {
        let mut command = program(folder.path());
        command.args(FREE_PORTS).args(args(&files));
        if let Some(path) = &files.client_ca {
            command.arg("--tls-client-ca").arg(path);
        }
        let output = command.output().expect("the program runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(
            said.starts_with("vesta-server: tls.") && said.contains(expected),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    // Settings needed only for serving are not required by the other commands.
    let mut store = program(folder.path());
    store
        .args(args(&TlsFiles::new("none.pem", "none.pem")))
        .args(["store", "init"]);
    assert_eq!(
        store.output().expect("the program runs").status.code(),
        Some(0)
    );
}

#[test]
fn an_expired_certificate_is_reported() {
    let folder = folder();
    let files = Authority::new("one")
        .expired()
        .write(folder.path(), TlsFiles::new);
    let running = serve(program(folder.path()).args(FREE_PORTS).args(args(&files)));
    assert_eq!(running.fact("TLS"), "certificate until 2020-01-01");
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("cert.pem expired on 2020-01-01T00:00:00"),
        "{said}"
    );
}

/// The status of an admin listener page, by curl.
fn curl(ca: &Path, client: &TlsFiles, token: &str, url: &str) -> String {
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--max-time",
            "120",
            "--noproxy",
            "*",
        ])
        .args([
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            "--cacert",
        ])
        .arg(ca)
        .arg("--cert")
        .arg(&client.cert)
        .arg("--key")
        .arg(&client.key)
        .args(["--header", &format!("authorization: Bearer {token}"), url])
        .output()
        .expect("these tests need curl");
    text(&output.stdout)
}

/// Secret lines of a PEM file.
fn lines_of(key: &str) -> impl Iterator<Item = &str> {
    key.lines().filter(|line| !line.starts_with("-----"))
}

#[tokio::test]
async fn with_all_security_on_it_serves_and_logs_no_secret() {
    let folder = folder();
    let path = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(&path).expect("a folder");
        path
    };
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let (server, client) = (servers.server(), clients.client());
    let files = server
        .write(&path("server"), TlsFiles::new)
        .client_ca(clients.write(path("server").join("clients.pem")));
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, servers.pem()).expect("a file");
    let client_files = client.write(&path("client"), TlsFiles::new);
    let (maker, first) = token(folder.path(), "maker", "generate");
    let (watcher, second) = token(folder.path(), "watcher", "metrics");
    let clients_ca = files
        .client_ca
        .clone()
        .expect("it asks")
        .display()
        .to_string();
    let (cert, key) = (files.cert.display(), files.key.display());
    let settings = format!(
        "tls.cert = \"{cert}\"\ntls.key = \"{key}\"\ntls.client_ca = \"{clients_ca}\"\n\
         admin.tls.cert = \"{cert}\"\nadmin.tls.key = \"{key}\"\n\
         admin.tls.client_ca = \"{clients_ca}\"\nlog.level = \"trace\"\n{first}{second}"
    );
    fs::write(folder.path().join("vesta.toml"), settings).expect("a file");

    // Into a file: a pipe would not be read in the meantime.
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        r#"exec "$0" "$@" 2>trace.log"#,
        env!("CARGO_BIN_EXE_vesta-server"),
    ]);
    shell
        .current_dir(folder.path())
        .env_clear()
        .env("VESTA_STATE_DIR", "vesta-data");
    shell.stdin(Stdio::null());
    let running = serve(shell.args(FREE_PORTS).args(["--config", "vesta.toml"]));
    assert_eq!(
        running.fact("TLS"),
        "certificate until 4096-01-01; clients need one too"
    );
    assert_eq!(running.fact("tokens"), "maker, watcher");
    let try_it = "grpcurl -cacert CA.pem -cert CLIENT.pem -key CLIENT.key -H 'authorization: \
                  Bearer TOKEN' 127.0.0.1:";
    assert!(
        running.fact("try").starts_with(try_it),
        "{}",
        running.fact("try")
    );

    let endpoint = format!("https://{}", running.address());
    let calling = |own: &Issued, token: &str| {
        Client::builder()
            .endpoint(&endpoint)
            .ca_certificate(servers.pem())
            .client_certificate(own.cert.clone(), own.key.clone())
            .bearer_token(token)
            .build()
            .expect("right options")
    };
    let good = calling(&client, &maker);
    good.gen_id().await.expect("an ID");
    let denied = good.exp_id(1_u64).await.expect_err("another scope");
    assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
    let unknown = "unknown-s3cret-token";
    let denied = calling(&client, unknown)
        .gen_id()
        .await
        .expect_err("an unknown token");
    assert_eq!(denied.kind(), ErrorKind::Unauthenticated);

    // A client that does not mark its token as sensitive.
    let tls = tonic::transport::ClientTlsConfig::new()
        .ca_certificate(tonic::transport::Certificate::from_pem(servers.pem()))
        .identity(tonic::transport::Identity::from_pem(
            &client.cert,
            &client.key,
        ));
    let channel = tonic::transport::Endpoint::from_shared(endpoint.clone()).expect("a URL");
    let channel = channel
        .tls_config(tls)
        .expect("right options")
        .connect()
        .await;
    let mut careless = IdServiceClient::new(channel.expect("a connection"));
    for token in [maker.as_str(), unknown] {
        let mut request = tonic::Request::new(GenIdRequest {});
        let header = format!("Bearer {token}").parse().expect("a header");
        request.metadata_mut().insert("authorization", header);
        assert_eq!(careless.gen_id(request).await.is_ok(), token == maker);
    }

    let admin = running.fact("admin").to_owned();
    assert!(admin.starts_with("https://127.0.0.1:"), "{admin}");
    for (token, page, expected) in [
        (watcher.as_str(), "metrics", "200"),
        (&watcher, "readyz", "200"),
        (&maker, "metrics", "403"),
        (unknown, "status", "401"),
        (unknown, "healthz", "200"),
    ] {
        assert_eq!(
            curl(&ca, &client_files, token, &format!("{admin}{page}")),
            expected,
            "{page}"
        );
    }
    // A key in place of a certificate is not quoted either.
    fs::write(&files.cert, &server.key).expect("a file");

    running.signal("-TERM");
    let mut said = running.said().to_owned();
    assert_eq!(running.wait().0, Some(0));
    let log = fs::read_to_string(folder.path().join("trace.log")).expect("a log");
    assert!(log.contains("TRACE"), "it talks");
    said += &log;
    said += &text(
        &run(
            folder.path(),
            &["--config", "vesta.toml", "--print-config"],
            &[],
        )
        .stdout,
    );
    let digests = [&first, &second].map(|table| {
        table
            .split("sha256 = \"")
            .nth(1)
            .and_then(|it| it.split('"').next())
            .expect("a digest")
    });
    let secrets = [maker.as_str(), &watcher, unknown]
        .into_iter()
        .chain(digests);
    let secrets = secrets
        .chain(lines_of(&server.key))
        .chain(lines_of(&client.key));
    for secret in secrets {
        assert_eq!(shape_in(secret, &said), None, "{secret}");
    }
}

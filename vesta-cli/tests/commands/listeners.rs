//! Unix sockets instead of ports, and the health check of a server.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use tonic::transport::Endpoint;
use vesta_client::Client;
use vesta_testkit::certificates::{Authority, Issued};
use vesta_testkit::programs::{FREE_PORTS, Program};

fn vesta(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
    command
        .current_dir(folder)
        .env_clear()
        .env("VESTA_STATE_DIR", folder.join("state"));
    command
}

fn healthcheck(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let done = vesta(folder)
        .arg("healthcheck")
        .args(args)
        .output()
        .expect("the program runs");
    (
        done.status.code(),
        String::from_utf8([done.stdout, done.stderr].concat()).expect("text"),
    )
}

#[tokio::test]
async fn all_listeners_can_be_unix_sockets() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let at = |name: &str| format!("unix:{}", folder.join(name).display());
    let (http, grpc, admin) = (at("http.sock"), at("grpc.sock"), at("admin.sock"));
    let listeners = [
        "--http-listen",
        &http,
        "--grpc-listen",
        &grpc,
        "--admin-listen",
        &admin,
    ];
    let running = Program::serve(vesta(folder).arg("serve").args(listeners)).expect("it starts");

    let mut stream = UnixStream::connect(folder.join("http.sock")).expect("a listener");
    write!(stream, "GET /genid HTTP/1.0\r\nhost: localhost\r\n\r\n").expect("a request");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an answer");
    let (head, by_http) = said.split_once("\r\n\r\n").expect("HTTP");
    assert!(
        head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200"),
        "{head}"
    );

    let channel = Endpoint::from_shared(grpc.clone())
        .expect("an address")
        .connect_lazy();
    let client = Client::builder()
        .channel("socket", channel)
        .build()
        .expect("a client");
    let by_grpc = client.gen_id().await.expect("an ID");
    assert!(by_grpc != by_http.parse::<u64>().expect("an ID"));

    let asked = ["--admin-listen", admin.as_str()];
    assert_eq!(healthcheck(folder, &asked), (Some(0), "ready\n".to_owned()));
    let second = vesta(folder)
        .arg("serve")
        .args(listeners)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        second.status.code() == Some(64) && said.contains("is already in use"),
        "{said}"
    );

    assert_eq!(running.stop().0, Some(0));
    assert!(
        !folder.join("http.sock").exists(),
        "removed with its listener"
    );
    let (code, said) = healthcheck(folder, &asked);
    assert!(
        code == Some(69) && said.contains("does not answer"),
        "{code:?} {said}"
    );
}

#[test]
fn a_health_check_needs_no_authority_and_reports_the_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let issued = Authority::new("vesta").server_named(&["vesta.internal"]);
    std::fs::write(folder.join("cert.pem"), issued.cert).expect("a file");
    std::fs::write(folder.join("key.pem"), issued.key).expect("a file");
    let tls = ["--admin-tls-cert", "cert.pem", "--admin-tls-key", "key.pem"];
    let mut serve = vesta(folder);
    serve.arg("serve").args(FREE_PORTS).args(tls);
    let running = Program::serve(&mut serve).expect("it starts");
    let admin = running.admin().to_string();
    let asked = [&["--admin-listen", &admin][..], &tls].concat();
    assert_eq!(healthcheck(folder, &asked), (Some(0), "ready\n".to_owned()));

    for (url, hint) in [
        (format!("http://{admin}"), "write https://"),
        (format!("https://{}", running.address()), "write http://"),
    ] {
        let asked = vesta(folder)
            .args(["gen", "--server", &url])
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&asked.stderr);
        assert!(
            asked.status.code() == Some(69) && said.contains(hint),
            "{said}"
        );
    }

    let (code, said) = healthcheck(folder, &["--admin-listen", "off"]);
    assert!(
        code == Some(64) && said.contains("admin.listen is off"),
        "{said}"
    );
    drop(running);

    let unreachable = "redis://127.0.0.1:1/0";
    let mut serve = vesta(folder);
    serve.args([
        "serve",
        "rest",
        "--wait-for-store",
        "--machine-store",
        unreachable,
    ]);
    let mut waiting = Program::start(serve.args(FREE_PORTS));
    let line = waiting.logs("admin_listen=");
    let admin = line
        .split("admin_listen=")
        .nth(1)
        .expect("an address")
        .trim()
        .to_owned();
    let (code, said) = healthcheck(folder, &["--admin-listen", &admin]);
    assert!(
        code == Some(1) && said.starts_with("not ready: "),
        "{code:?} {said}"
    );
}

#[test]
fn a_wrong_port_scheme_or_certificate_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let authority = Authority::new("vesta");
    authority.write(folder.join("ca.pem"));
    let start = |name: &str, shown: Option<Issued>| {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let mut serve = vesta(&folder);
        serve.arg("serve").args(FREE_PORTS);
        if let Some(shown) = shown {
            shown.write(&folder, |cert, key| {
                serve.arg("--tls-cert").arg(cert).arg("--tls-key").arg(key);
            });
        }
        let running = Program::serve(&mut serve).expect("it starts");
        let grpc = running.grpc().expect("a listener");
        (running.address(), grpc, running)
    };
    let (rest, grpc, plain) = start("plain", None);
    let admin = plain.admin();
    let (secure_rest, secure_grpc, _secure) = start("secure", Some(authority.server()));
    let (itself_rest, itself_grpc, _itself) = start("itself", Some(authority.itself()));
    let pool = |url: String| ["store", "show", "--machine-store", &url].map(str::to_owned);
    let top = |url: String| ["top", "-n=1", &url, "--ca=ca.pem"].map(str::to_owned);
    // `gen` finds out by itself what a port speaks.
    let done = vesta(folder)
        .args(["gen", "--server", &format!("http://{grpc}")])
        .output();
    assert!(done.expect("it runs").status.success());
    for (args, hint) in [
        (
            top(format!("http://{grpc}")),
            "this port speaks gRPC (HTTP/2)",
        ),
        (pool(format!("vesta://{rest}")), "this port speaks REST"),
        (
            pool(format!("vesta://{admin}")),
            "this is the admin listener",
        ),
        (top(format!("https://{rest}")), "this port has no TLS"),
        (
            pool(format!("vestas://{grpc}?ca=ca.pem")),
            "this port has no TLS",
        ),
        (top(format!("http://{secure_rest}")), "this port has TLS"),
        (pool(format!("vesta://{secure_grpc}")), "this port has TLS"),
        (
            pool(format!("vestas://{secure_grpc}")),
            "its CA is not trusted here",
        ),
        (
            top(format!("https://{itself_rest}")),
            "shows a CA as its own certificate",
        ),
        (
            pool(format!("vestas://{itself_grpc}?ca=ca.pem")),
            "shows a CA as its own certificate",
        ),
    ] {
        let done = vesta(folder).args(&args).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.code() != Some(0) && said.contains(hint),
            "{args:?}: {said}"
        );
    }
}

//! Between callers and the program: offers of another protocol, host names of another site, and a load balancer that
//! notices a stop late.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpListener;
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio::time::{Instant, interval, sleep, timeout};
use vesta_testkit::programs::Program;

use crate::program::start;
use crate::support::Raw;

/// Java's client offers HTTP/2 like this.
const H2C: &str = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
    HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n";
/// nginx sends these headers for WebSocket; a browser sends the handshake.
const WEBSOCKET: &str = "connection: upgrade\r\n";
const HANDSHAKE: &str = "connection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[test]
fn an_offer_of_another_protocol_is_declined_and_no_request_is_lost() {
    let dir = TempDir::new().unwrap();
    let program = start(dir.path(), &[]);
    let body = r#"{"time":1,"seq":0}"#;
    let make = format!(
        "content-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for offer in [H2C, WEBSOCKET, HANDSHAKE] {
        let mut admin = Raw::connect(program.admin());
        for (request, body, status) in [
            ("GET /genid", String::new(), 200),
            ("POST /v1/ids:make", format!("{make}\r\n{body}"), 200),
            ("GET /nothing", String::new(), 404),
        ] {
            let body = if body.is_empty() { "\r\n" } else { &body };
            let mut client = Raw::connect(program.address());
            client.send(&format!(
                "{request} HTTP/1.1\r\nhost: localhost\r\n{offer}{body}"
            ));
            let answer = client.answer();
            // A client that reads this sends its next request on a new connection.
            let seen = (answer.status, answer.header("connection"));
            // actix-http takes everything after this offer for the other protocol.
            let unread = offer == HANDSHAKE && request.starts_with("POST");
            let status = if unread { 408 } else { status };
            assert_eq!(seen, (status, "close"), "{request} {offer}");
            assert_eq!(client.closed(), "", "{request} {offer}");
            admin.send(&format!(
                "GET /readyz HTTP/1.1\r\nhost: localhost\r\n{offer}\r\n"
            ));
            let ready = admin.answer();
            assert_eq!(
                (ready.body.as_str(), ready.header("connection")),
                ("ready\n", ""),
                "{offer}"
            );
        }
    }
}

/// nginx in front of a program; stops with its test.
struct Nginx(Child);

impl Nginx {
    /// Listens at the socket `nginx.sock` in the folder.
    fn start(folder: &Path, program: SocketAddr, location: &str) -> Self {
        let conf = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr; events {{}}\n\
             http {{ access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f;\n\
             uwsgi_temp_path u; scgi_temp_path s; upstream vesta {{ server {program}; keepalive 8; }}\n\
             server {{ listen unix:nginx.sock; location / {{ proxy_pass http://vesta; proxy_http_version 1.1;\n\
             {location} }} }} }}\n"
        );
        std::fs::write(folder.join("nginx.conf"), conf).unwrap();
        let mut nginx = Command::new("nginx");
        let path = std::env::var("PATH").unwrap_or_default();
        nginx.env("PATH", path + ":/usr/sbin"); // its path on Debian
        nginx
            .current_dir(folder)
            .args(["-e", "stderr", "-p", ".", "-c", "nginx.conf"]);
        let nginx = Self(
            nginx
                .stdin(Stdio::null())
                .spawn()
                .expect("nginx, of Debian's nginx-light"),
        );
        while std::os::unix::net::UnixStream::connect(folder.join("nginx.sock")).is_err() {
            std::thread::yield_now();
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends `times` requests over one connection to nginx; returns the count of each status.
fn curl(folder: &Path, times: usize, path: &str, more: &[&str]) -> BTreeMap<String, usize> {
    let mut curl = Command::new("curl");
    curl.current_dir(folder)
        .args(["-s", "--unix-socket", "nginx.sock", "-o", "/dev/null"]);
    curl.args(["-w", "%{http_code}\n"]).args(more);
    let output = curl
        .arg(format!("http://localhost{path}#[1-{times}]"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut statuses = BTreeMap::new();
    for status in String::from_utf8(output.stdout).unwrap().lines() {
        *statuses.entry(status.to_owned()).or_default() += 1;
    }
    statuses
}

#[test]
fn the_websocket_headers_of_nginx_break_nothing() {
    if vesta_testkit::lacks("nginx") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let program = start(dir.path(), &["--hosts", "ids.example"]);
    let lines = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";";
    let location = format!("proxy_set_header Host ids.example; {lines}");
    let _nginx = Nginx::start(dir.path(), program.address(), &location);
    let json = [
        "-H",
        "content-type: application/json",
        "-d",
        r#"{"time":1,"seq":0}"#,
    ];
    let upgrade = ["-H", "connection: upgrade", "-H", "upgrade: websocket"];
    let all_right = BTreeMap::from([("200".to_owned(), 300)]);
    assert_eq!(curl(dir.path(), 300, "/v1/ids:make", &json), all_right);
    assert_eq!(curl(dir.path(), 300, "/genid", &[]), all_right);
    assert_eq!(curl(dir.path(), 300, "/genid", &upgrade), all_right);
}

#[test]
fn a_proxy_on_the_same_host_needs_its_name_in_the_settings() {
    if vesta_testkit::lacks("nginx") {
        return;
    }
    let dir = TempDir::new().unwrap();
    for (hosts, status) in [("", "403"), ("vesta", "200"), ("*", "200")] {
        let program = start(dir.path(), &["--hosts", hosts]);
        let nginx = Nginx::start(dir.path(), program.address(), ""); // proxies under the name of the upstream
        let expected = BTreeMap::from([(status.to_owned(), 1)]);
        assert_eq!(curl(dir.path(), 1, "/genid", &[]), expected, "{hosts}");
        drop(nginx);
        std::fs::remove_file(dir.path().join("nginx.sock")).unwrap();
    }
}

#[test]
fn javas_client_offers_http_2_with_each_request_and_loses_none() {
    if vesta_testkit::lacks("javac") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let program = start(dir.path(), &[]);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rest/Offers.java");
    let url = format!("http://{}", program.address());
    let java = Command::new("java")
        .args(["-Xint", source, &url, "200"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&java.stdout),
        "{200=400}\n",
        "{java:?}"
    );
}

#[test]
fn a_name_of_another_site_is_refused_on_loopback() {
    let dir = TempDir::new().unwrap();
    let args = ["--hosts", "ids.example,admin.example"];
    let program = start(dir.path(), &args);
    let (public, admin) = (program.address(), program.admin());
    let ask = |to: SocketAddr, path: &str, host: &str| {
        let mut client = Raw::connect(to);
        client.send(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        client.answer()
    };
    for path in [
        "/genid",
        "/v1/id",
        "/genid?x",
        "/",
        "/docs/",
        "/openapi.json",
        "/nothing",
    ] {
        for host in ["evil.example", "evil.example:8088"] {
            let said = ask(public, path, host).problem(403, "PERMISSION_DENIED");
            assert!(
                said.ends_with("or by a name in the setting hosts (--hosts)"),
                "{said}"
            );
        }
        for host in ["ids.example", "localhost:1", &public.to_string()] {
            assert_ne!(ask(public, path, host).status, 403, "{path} of {host}");
        }
    }
    for path in [
        "/", "/healthz", "/readyz", "/metrics", "/status", "/pool", "/events", "/nothing",
    ] {
        for host in ["evil.example", "ids.example.evil"] {
            let answer = ask(admin, path, host);
            assert_eq!(answer.status, 403, "{path} of {host}");
            assert!(
                answer.body.contains("or by a name in the setting hosts"),
                "{answer:?}"
            );
        }
        for host in ["admin.example", "localhost:1", &admin.to_string()] {
            assert_ne!(ask(admin, path, host).status, 403, "{path} of {host}");
        }
    }
    for address in [public, admin] {
        let mut old = Raw::connect(address); // like probes of old load balancers
        old.send("GET / HTTP/1.0\r\n\r\n");
        assert!(
            old.closed().starts_with("HTTP/1.0 200"),
            "no browser leaves the host out"
        );
    }
}

#[test]
fn probes_are_answered_beside_two_hundred_half_sent_requests() {
    let dir = TempDir::new().unwrap();
    let program = start(dir.path(), &[]);
    let halves: Vec<_> = (0..200)
        .map(|_| {
            let mut socket = TcpStream::connect(program.admin()).unwrap();
            socket
                .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
                .unwrap();
            socket
        })
        .collect();
    for _ in 0..50 {
        assert_eq!(program.get("/healthz"), (200, "ok\n".to_owned()));
        assert_eq!(program.get("/readyz"), (200, "ready\n".to_owned()));
    }
    let first = &mut &halves[0];
    first
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert!(
        matches!(first.read(&mut [0; 9]), Ok(0) | Err(_)),
        "the oldest one gave way"
    );
}

/// Servers behind a load balancer that sees `/readyz` a second late.
#[derive(Default)]
struct Balancer {
    ready: Mutex<Vec<SocketAddr>>,
    next: AtomicUsize,
}

const LATE: Duration = Duration::from_secs(1);

impl Balancer {
    /// Polls a server twenty times a second until it is gone.
    async fn watch(self: Arc<Self>, server: SocketAddr, admin: SocketAddr) {
        let mut ticks = interval(LATE / 20);
        loop {
            ticks.tick().await;
            let ready = status(admin, "/readyz").await.ok();
            let this = Arc::clone(&self);
            spawn_local(async move {
                sleep(LATE).await;
                let mut all = this.ready.lock().unwrap();
                all.retain(|it| *it != server);
                if ready == Some(200) {
                    all.push(server);
                }
            });
            if ready.is_none() {
                return;
            }
        }
    }

    /// Forwards connections, each to the next server that seems ready.
    async fn carry(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let at = self.next.fetch_add(1, Relaxed);
            let server = {
                let ready = self.ready.lock().unwrap();
                ready[at % ready.len()]
            };
            spawn_local(async move {
                if let Ok(mut server) = tokio::net::TcpStream::connect(server).await {
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    }

    async fn until_there_are(&self, count: usize) {
        while self.ready.lock().unwrap().len() != count {
            sleep(LATE / 20).await;
        }
    }
}

/// Sends a request over a new connection; returns the status.
async fn status(to: SocketAddr, path: &str) -> io::Result<u16> {
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(to).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        let status = said
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        status.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    };
    timeout(Duration::from_secs(20), ask).await?
}

#[tokio::test]
async fn a_rolling_update_loses_no_request_if_readiness_is_noticed_a_second_late() {
    LocalSet::new().run_until(rolling_update()).await;
}

async fn rolling_update() {
    let (dir, balancer) = (TempDir::new().unwrap(), Arc::new(Balancer::default()));
    let new = || start(dir.path(), &["--shutdown-delay-ms", "2000"]);
    let watch = |program: &Program| {
        spawn_local(Arc::clone(&balancer).watch(program.address(), program.admin()));
    };
    let mut servers = [new(), new()];
    servers.iter().for_each(watch);
    balancer.until_there_are(2).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(Arc::clone(&balancer).carry(listener));

    // Open-loop load: a request every 5 ms, whether or not earlier ones were answered.
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let load = spawn_local(async move {
        let (mut ticks, mut requests) = (interval(Duration::from_millis(5)), JoinSet::new());
        while !ended.load(Relaxed) {
            ticks.tick().await;
            requests.spawn_local(status(address, "/genid"));
        }
        requests.join_all().await
    });
    for server in &mut servers {
        let began = Instant::now();
        server.signal("-TERM");
        balancer.until_there_are(1).await;
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "noticed while it served"
        );
        let fresh = tokio::task::spawn_blocking({
            let folder = dir.path().to_owned();
            move || start(&folder, &["--shutdown-delay-ms", "2000"])
        });
        let fresh = fresh.await.unwrap();
        watch(&fresh);
        let old = std::mem::replace(server, fresh);
        let (code, log) = tokio::task::spawn_blocking(|| old.wait()).await.unwrap();
        assert_eq!(code, Some(0), "{log}");
        balancer.until_there_are(2).await;
    }
    over.store(true, Relaxed);
    let statuses = load.await.unwrap();
    let wrong: Vec<_> = statuses
        .iter()
        .filter(|it| !matches!(it, Ok(200)))
        .collect();
    println!("{} requests, {} errors", statuses.len(), wrong.len());
    assert!(
        wrong.is_empty() && statuses.len() > 200,
        "{} of {}: {wrong:?}",
        wrong.len(),
        statuses.len()
    );
}

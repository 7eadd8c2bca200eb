//! TLS from the outside: accepted clients, the errors of the others, and the cost of a
//! stalled client.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use vesta_boot::TlsFiles;
use vesta_client::{Builder, Client, ErrorKind, Retry};
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1;
use vesta_server::Timeouts;
use vesta_testkit::certificates::{Authority, Issued, Usage, socket, until_closed};

use crate::support::Server;

/// A server with this certificate; given a client authority, it requires client certificates.
fn serving(own: &Issued, clients: Option<&Authority>) -> (Server, TempDir) {
    serving_with(own, clients, Timeouts::default(), usize::MAX)
}

fn serving_with(
    own: &Issued,
    clients: Option<&Authority>,
    timeouts: Timeouts,
    connections: usize,
) -> (Server, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files(own, clients, folder.path());
    let server = Server::with(IdMeta::MAX_PEAK, timeouts, |config| {
        config.tls = Some(files);
        config.limits.max_connections = config.limits.max_connections.min(connections);
    });
    (server, folder)
}

fn files(own: &Issued, clients: Option<&Authority>, folder: &Path) -> TlsFiles {
    let files = own.write(folder, TlsFiles::new);
    match clients {
        Some(clients) => files.client_ca(clients.write(folder.join("clients.pem"))),
        None => files,
    }
}

fn client(server: &Server, authority: &Authority) -> Builder {
    Client::builder()
        .endpoint(format!("https://{}", server.address))
        .ca_certificate(authority.pem())
        .retry(Retry {
            max_attempts: 1,
            ..Retry::default()
        })
        .deadline(Duration::from_secs(60))
}

async fn refused(builder: Builder) -> String {
    let error = builder
        .build()
        .expect("right options")
        .gen_id()
        .await
        .expect_err("no way in");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    error.to_string()
}

async fn gets_an_id(builder: Builder) {
    builder
        .build()
        .expect("right options")
        .gen_id()
        .await
        .expect("an ID");
}

fn failures(server: &Server) -> u64 {
    server
        .security
        .grpc_tls
        .as_ref()
        .expect("it is on")
        .handshakes_failed()
}

/// Waits until the server has counted its failures: a client may know of them first.
async fn until_failures(server: &Server, count: u64) {
    let counted = async {
        while failures(server) < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), counted)
        .await
        .expect("they are counted");
    assert_eq!(failures(server), count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_trusts_the_authority_gets_ids() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None);
    let client = client(&server, &authority).build().expect("right options");
    for _ in 0..100 {
        client.gen_id().await.expect("an ID");
    }
    assert_eq!(client.gen_ids(10_000).await.expect("a batch").len(), 10_000);
    assert_eq!(
        client
            .gen_runs(900_000)
            .await
            .expect("runs")
            .iter()
            .map(|r| r.count)
            .sum::<u32>(),
        900_000
    );
    assert_eq!(failures(&server), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_blocking_client_speaks_tls_too() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None);
    let client = client(&server, &authority)
        .build_blocking()
        .expect("right options");
    let id = tokio::task::spawn_blocking(move || vesta_intf::IdService::gen_id(&client));
    id.await.expect("no panic").expect("an ID");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_with_the_wrong_identity_is_not_called() {
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let (server, _folder) = serving(&authority.server_named(&["vesta.internal"]), None);
    let said = refused(client(&server, &authority)).await;
    assert!(said.contains("not valid for name"), "{said}");
    gets_an_id(client(&server, &authority).server_name("vesta.internal")).await;
    let said = refused(client(&server, &other).server_name("vesta.internal")).await;
    assert!(said.contains("UnknownIssuer"), "{said}");

    let (expired, _folder) = serving(&authority.expired(), None);
    let said = refused(client(&expired, &authority)).await;
    assert!(said.contains("expired"), "{said}");
    // The system's authorities do not vouch for it either.
    let address = format!("https://{}", server.address);
    let system = Client::builder().endpoint(address).retry(Retry {
        max_attempts: 1,
        ..Retry::default()
    });
    match system.build() {
        Ok(client) => {
            let said = client
                .gen_id()
                .await
                .expect_err("unknown to the system")
                .to_string();
            assert!(said.contains("invalid peer certificate"), "{said}");
        }
        // A system without authorities.
        Err(error) => assert!(error.to_string().starts_with("ca_certificate: "), "{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn plain_text_clients_of_a_tls_server_fail() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None);
    let plain = Client::builder().endpoint(format!("http://{}", server.address));
    refused(plain.retry(Retry {
        max_attempts: 1,
        ..Retry::default()
    }))
    .await;
    until_failures(&server, 1).await;

    let plain = Server::start(IdMeta::MAX_PEAK);
    let said = refused(client(&plain, &authority)).await;
    assert!(
        said.starts_with("no response from https://127.0.0.1:"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn mutual_tls_accepts_only_clients_with_a_certificate() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let (server, _folder) = serving(&servers.server(), Some(&clients));
    let own = clients.client();
    let good = || client(&server, &servers).client_certificate(own.cert.clone(), own.key.clone());
    gets_an_id(good()).await;

    let said = refused(client(&server, &servers)).await;
    assert!(said.contains("CertificateRequired"), "{said}");
    let other = servers.client();
    let said = refused(client(&server, &servers).client_certificate(other.cert, other.key)).await;
    assert!(
        said.contains("UnknownCA") || said.contains("UnknownCa"),
        "{said}"
    );
    let late = clients.issue(&[], Usage::ClientAuth, 2020);
    let said = refused(client(&server, &servers).client_certificate(late.cert, late.key)).await;
    assert!(said.contains("CertificateExpired"), "{said}");
    until_failures(&server, 3).await;
    gets_an_id(good()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn new_connections_get_a_new_certificate_but_never_a_bad_one() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (server, folder) = serving(&old.server(), None);
    let tls = server.security.grpc_tls.clone().expect("it is on");
    let kept = client(&server, &old).build().expect("right options");
    kept.gen_id().await.expect("an ID");

    std::fs::write(folder.path().join("cert.pem"), "half a fi").expect("a file");
    tls.reload().expect_err("no certificate");
    gets_an_id(client(&server, &old)).await;

    new.server().write(folder.path(), TlsFiles::new);
    assert!(tls.reload().expect("sound files"));
    gets_an_id(client(&server, &new)).await;
    assert!(
        refused(client(&server, &old))
            .await
            .contains("UnknownIssuer")
    );
    kept.gen_id().await.expect("its connection goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_stalls_before_or_after_the_handshake_is_closed() {
    let short = Duration::from_millis(300);
    let timeouts = Timeouts {
        opening: short,
        silence: short,
        answer: short,
    };
    let authority = Authority::new("one");
    let (server, _folder) = serving_with(&authority.server(), None, timeouts, 2);
    let connect = |bytes: &[u8]| {
        let mut socket = socket(server.address);
        socket.write_all(bytes).expect("some bytes");
        socket
    };
    until_closed(connect(b""));
    // The header of a record with a ClientHello of 512 bytes, and its first three bytes.
    until_closed(connect(&[22, 3, 1, 2, 0, 1, 0, 1]));
    assert_eq!(failures(&server), 2);
    // On a busy machine a handshake may need more than `short`.
    let stream = std::iter::repeat_with(|| authority.connect(server.address)).find_map(Result::ok);
    let stream = stream.expect("they never end");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    until_closed(stream); // silent after the handshake
    // One address may have one of the two connections: it was free each time the client saw the end.
    assert_eq!(server.metrics.connections.refused(), 0);

    // A client that stays after its handshake has failed holds its connection no longer either.
    let mut said = Vec::new();
    let stuck = loop {
        let stuck = connect(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let _ = (&stuck).read_to_end(&mut said);
        if !said.is_empty() {
            break stuck;
        }
    };
    assert_eq!(said[0], 21, "an alert, and then the end: {said:?}");
    let _held = [connect(b""), stuck];
    loop {
        // Both connections become free again.
        if client(&server, &authority)
            .build()
            .expect("right options")
            .gen_id()
            .await
            .is_ok()
        {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handshake_counts_towards_the_connection_limit() {
    let authority = Authority::new("one");
    let (server, _folder) = serving_with(&authority.server(), None, Timeouts::default(), 1);
    let waiting = socket(server.address);
    refused(client(&server, &authority)).await;
    drop(waiting);
    while client(&server, &authority)
        .build()
        .expect("right options")
        .gen_id()
        .await
        .is_err()
    {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_waits_for_a_handshake_up_to_its_time_out() {
    let authority = Authority::new("one");
    let timeouts = Timeouts {
        opening: Duration::from_millis(300),
        ..Timeouts::default()
    };
    let (mut server, _folder) = serving_with(&authority.server(), None, timeouts, 9);
    let waiting = socket(server.address);
    // On a busy machine these handshakes may time out too.
    while client(&server, &authority)
        .build()
        .expect("right options")
        .gen_id()
        .await
        .is_err()
    {}
    let server = tokio::task::spawn_blocking(move || server.stop());
    server.await.expect("it has stopped");
    until_closed(waiting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_calls_of_other_languages_work_over_tls() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None);
    let tls = tonic::transport::ClientTlsConfig::new()
        .ca_certificate(tonic::transport::Certificate::from_pem(authority.pem()));
    let endpoint = tonic::transport::Endpoint::from_shared(format!("https://{}", server.address));
    let endpoint = endpoint
        .expect("a URL")
        .tls_config(tls)
        .expect("right options");
    let channel = endpoint.connect().await.expect("a connection");
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let request = tonic_health::pb::HealthCheckRequest {
        service: String::new(),
    };
    client.check(request).await.expect("an answer");
    let mut ids = v1::id_service_client::IdServiceClient::new(channel);
    ids.gen_id(v1::GenIdRequest {}).await.expect("an ID");
}

#[tokio::test]
async fn an_error_from_the_wrong_scheme_suggests_the_other() {
    let authority = Authority::new("one");
    let (encrypted, _folder) = serving(&authority.server(), None);
    let plain = Server::start(IdMeta::MAX_PEAK);
    let to = |url: String| {
        let builder = Client::builder()
            .endpoint(url)
            .deadline(Duration::from_secs(60));
        builder.retry(Retry {
            max_attempts: 1,
            ..Retry::default()
        })
    };
    let said = refused(to(format!("http://{}", encrypted.address))).await;
    assert!(
        said.contains("; this port has TLS: write https://"),
        "{said}"
    );
    let https = to(format!("https://{}", plain.address)).ca_certificate(authority.pem());
    let said = refused(https).await;
    assert!(
        said.contains("; this port has no TLS: write http://"),
        "{said}"
    );
}

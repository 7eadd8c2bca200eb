//! HTTPS: with curl, and by hand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;
use vesta_boot::TlsFiles;
use vesta_rest::Limits;
use vesta_testkit::certificates::{Authority, Issued};

use crate::limits::{HASTY, PATIENT, Server};
use crate::support::service;

/// A server with this certificate; with an authority of clients, it asks for theirs.
fn serving(own: &Issued, clients: Option<&Authority>, limits: Limits) -> (Server, TempDir) {
    let folder = TempDir::new().unwrap();
    let mut files = own.write(folder.path(), TlsFiles::new);
    if let Some(clients) = clients {
        files = files.client_ca(clients.write(folder.path().join("clients.pem")));
    }
    let server = Server::start_with(service(), limits, |config| config.tls = Some(files));
    (server, folder)
}

/// Exit code, output and complaint of curl; the authority's certificate is the first file.
fn curl(authority: &Authority, args: &[&str]) -> (Option<i32>, String, String) {
    let folder = TempDir::new().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).unwrap();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "120", "--noproxy", "*", "--cacert"])
        .arg(ca)
        .args(args)
        .output()
        .expect("these tests need curl");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn genid(server: &Server) -> String {
    format!("https://{}/genid", server.address)
}

#[test]
fn curl_gets_ids_by_https() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None, PATIENT);
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        let url = genid(&server);
        let (code, said, complaint) =
            curl(&authority, &[version, "--tls-max", &version[6..], &url]);
        assert_eq!(code, Some(0), "{complaint}");
        said.parse::<u64>().unwrap();
    }
    let wanted = ["--http1.1", "--write-out", "\n%{http_version}"];
    let (code, said, _) = curl(&authority, &[&wanted[..], &[&genid(&server)]].concat());
    assert_eq!((code, said.lines().last()), (Some(0), Some("1.1")));
}

/// CURLE_PEER_FAILED_VERIFICATION.
const NOT_WHO_IT_SHOULD_BE: Option<i32> = Some(60);

#[test]
fn curl_refuses_a_server_that_is_not_who_it_should_be() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server_named(&["vesta.internal"]), None, PATIENT);
    assert_eq!(curl(&authority, &[&genid(&server)]).0, NOT_WHO_IT_SHOULD_BE, "another name");
    let port = server.address.port();
    let named = [
        &format!("--resolve=vesta.internal:{port}:127.0.0.1"),
        &format!("https://vesta.internal:{port}/genid"),
    ];
    let named = [named[0].replace('=', " "), named[1].to_owned()];
    let (flag, value) = named[0].split_once(' ').unwrap();
    assert_eq!(curl(&authority, &[flag, value, &named[1]]).0, Some(0));
    let other = Authority::new("another");
    assert_eq!(
        curl(&other, &[flag, value, &named[1]]).0,
        NOT_WHO_IT_SHOULD_BE,
        "another authority"
    );
    let (expired, _folder) = serving(&authority.expired(), None, PATIENT);
    let (code, _, complaint) = curl(&authority, &[&genid(&expired)]);
    assert_eq!(code, NOT_WHO_IT_SHOULD_BE);
    assert!(complaint.contains("expired"), "{complaint}");
    let plain = format!("http://{}/genid", server.address);
    assert_ne!(curl(&authority, &[&plain]).0, Some(0));
}

#[test]
fn curl_needs_a_certificate_if_the_server_asks_for_one() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let (server, folder) = serving(&servers.server(), Some(&clients), PATIENT);
    let with = |own: Issued, name: &str| {
        let files = own.write(&folder_in(folder.path(), name), TlsFiles::new);
        let (cert, key) = (files.cert.display().to_string(), files.key.display().to_string());
        curl(&servers, &["--cert", &cert, "--key", &key, &genid(&server)])
    };
    assert_eq!(with(clients.client(), "good").0, Some(0));
    let (code, said, complaint) = curl(&servers, &[&genid(&server)]);
    assert_ne!(code, Some(0), "{said}");
    assert!(complaint.contains("certificate required"), "{complaint}");
    let (code, said, complaint) = with(servers.client(), "other");
    assert_ne!(code, Some(0), "{said}");
    assert!(complaint.contains("unknown ca"), "{complaint}");
}

fn folder_in(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::create_dir(&path).unwrap();
    path
}

#[test]
fn a_new_certificate_is_shown_to_new_connections() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (server, folder) = serving(&old.server(), None, PATIENT);
    let mut kept = connect(&server, &old);
    assert!(get(&mut kept, "/genid").starts_with("HTTP/1.1 200"));
    new.server().write(folder.path(), TlsFiles::new);
    assert!(server.security.tls.as_ref().unwrap().reload().unwrap());
    assert_eq!(curl(&new, &[&genid(&server)]).0, Some(0));
    assert_eq!(curl(&old, &[&genid(&server)]).0, NOT_WHO_IT_SHOULD_BE);
    assert!(get(&mut kept, "/genid").starts_with("HTTP/1.1 200"), "its connection goes on");
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn socket(server: &Server) -> TcpStream {
    let socket = TcpStream::connect(server.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn connect(server: &Server, authority: &Authority) -> Tls {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(session, socket(server));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    stream
}

/// The whole answer to a request; its body comes with a length.
fn get(stream: &mut Tls, uri: &str) -> String {
    stream.write_all(format!("GET {uri} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut said = String::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "closed after {said}");
        said += std::str::from_utf8(&chunk[..read]).unwrap();
        let Some((head, body)) = said.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).unwrap();
        if body.len() >= length.lines().next().unwrap().parse::<usize>().unwrap() {
            return said;
        }
    }
}

/// Waits for the end of the connection; gives what was said before.
fn closed(mut stream: impl Read) -> String {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::UnexpectedEof
            ) => {}
        Err(error) => panic!("still open: {error}"),
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn http_1_is_agreed_on() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None, PATIENT);
    let mut stream = connect(&server, &authority);
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(get(&mut stream, "/genid").starts_with("HTTP/1.1 200"));
    assert!(get(&mut stream, "/v1/layout").contains("\"max-peak\""), "a second one");
}

#[test]
fn a_client_that_stalls_before_or_after_the_handshake_is_closed() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None, HASTY);
    assert_eq!(closed(socket(&server)), "", "silent, and no word in plain text");
    let mut half = socket(&server);
    // The head of a record with a ClientHello of 512 bytes, and three of them.
    half.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).unwrap();
    assert_eq!(closed(half), "");
    assert_eq!(server.security.tls.as_ref().unwrap().handshakes_failed(), 2);

    let said = closed(connect(&server, &authority));
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    let mut second = connect(&server, &authority);
    assert!(get(&mut second, "/genid").starts_with("HTTP/1.1 200"));
    second.write_all(b"GET /genid HTTP/1.1\r\nhost").unwrap();
    second.flush().unwrap();
    assert_eq!(closed(second), "", "half a second request");
}

#[test]
fn an_answer_that_is_not_read_closes_the_connection() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None, HASTY);
    let mut client = connect(&server, &authority);
    // More than the buffers of both sockets hold, and none of it read.
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.write_all(request.repeat(20).as_bytes()).unwrap();
    client.flush().unwrap();
    loop {
        match client.write_all(&[b' '; 16_384]).and_then(|()| client.flush()) {
            Ok(()) => {}
            Err(error) => {
                use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
                let given_up = matches!(error.kind(), ConnectionReset | BrokenPipe);
                assert!(given_up, "still open: {error}");
                return;
            }
        }
    }
}

#[test]
fn over_the_limit_of_connections_nothing_is_said_in_plain_text() {
    let authority = Authority::new("one");
    let folder = TempDir::new().unwrap();
    let files = authority.server().write(folder.path(), TlsFiles::new);
    let server = Server::start_with(service(), PATIENT, |config| {
        config.tls = Some(files);
        config.limits.max_connections = 1;
        config.limits.workers = 1; // which takes them in order
    });
    // A handshake takes a place too.
    let waiting = socket(&server);
    let refused = socket(&server);
    assert_eq!(closed(refused), "");
    drop(waiting);
    while curl(&authority, &[&genid(&server)]).0 != Some(0) {}
}

#[test]
fn a_client_that_speaks_http_without_tls_is_told_by_an_alert() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority.server(), None, PATIENT);
    let mut client = socket(&server);
    client.write_all(b"GET /genid HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut said = Vec::new();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    client.read_to_end(&mut said).unwrap();
    assert_eq!(said.first(), Some(&21), "an alert: {said:?}");
}

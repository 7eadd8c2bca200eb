//! HTTPS, with curl and by hand. Both servers share the handshake: vesta-server's tests cover which certificates it
//! accepts.

use std::io::{Read, Write};
use std::process::Command;

use tempfile::TempDir;
use vesta_boot::TlsFiles;
use vesta_rest::Limits;
use vesta_testkit::certificates::{Authority, TlsStream, socket, until_closed};

use crate::limits::{HASTY, PATIENT, Server};
use crate::support::service;

/// A server with a certificate issued by this authority.
fn serving(own: &Authority, limits: Limits) -> (Server, TempDir) {
    let folder = TempDir::new().unwrap();
    let files = own.server().write(folder.path(), TlsFiles::new);
    let server = Server::start_with(service(), limits, |config| config.tls = Some(files));
    (server, folder)
}

/// Exit code, output and errors of curl; the authority's certificate is the first file.
fn curl(authority: &Authority, args: &[&str]) -> (Option<i32>, String, String) {
    let folder = TempDir::new().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).unwrap();
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--max-time",
            "120",
            "--noproxy",
            "*",
            "--cacert",
        ])
        .arg(ca)
        .args(args)
        .output()
        .expect("these tests need curl");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn genid(server: &Server) -> String {
    format!("https://{}/genid", server.address)
}

#[test]
fn curl_gets_ids_by_https() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority, PATIENT);
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

/// The whole answer to a request; its body has a length.
fn get(stream: &mut TlsStream, uri: &str) -> String {
    stream
        .write_all(format!("GET {uri} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
        .unwrap();
    let mut said = String::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "closed after {said}");
        said += std::str::from_utf8(&chunk[..read]).unwrap();
        let Some((head, body)) = said.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1).unwrap();
        if body.len() >= length.lines().next().unwrap().parse::<usize>().unwrap() {
            return said;
        }
    }
}

#[test]
fn http_1_is_agreed_on() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority, PATIENT);
    let mut stream = authority.connect(server.address).unwrap();
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(get(&mut stream, "/genid").starts_with("HTTP/1.1 200"));
    assert!(
        get(&mut stream, "/v1/layout").contains("\"max-peak\""),
        "a second one"
    );
}

#[test]
fn a_client_that_stalls_around_the_handshake_is_disconnected() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority, HASTY);
    assert_eq!(
        until_closed(socket(server.address)),
        "",
        "silent, and no word in plain text"
    );
    let mut half = socket(server.address);
    // The header of a record with a ClientHello of 512 bytes, and its first three bytes.
    half.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).unwrap();
    assert_eq!(until_closed(half), "");
    assert_eq!(
        server
            .security
            .http_tls
            .as_ref()
            .unwrap()
            .handshakes_failed(),
        2
    );

    let said = until_closed(authority.connect(server.address).unwrap());
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 408"),
        "{said}"
    );
    let mut second = authority.connect(server.address).unwrap();
    assert!(get(&mut second, "/genid").starts_with("HTTP/1.1 200"));
    second.write_all(b"GET /genid HTTP/1.1\r\nhost").unwrap();
    second.flush().unwrap();
    assert_eq!(until_closed(second), "", "half a second request");
}

#[test]
fn an_answer_that_is_not_read_closes_the_connection() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority, HASTY);
    let mut client = authority.connect(server.address).unwrap();
    // More than the buffers of both sockets hold; none of it is read.
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.write_all(request.repeat(20).as_bytes()).unwrap();
    client.flush().unwrap();
    loop {
        match client
            .write_all(&[b' '; 16_384])
            .and_then(|()| client.flush())
        {
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
fn a_full_tls_listener_sends_no_plain_text() {
    let authority = Authority::new("one");
    let folder = TempDir::new().unwrap();
    let files = authority.server().write(folder.path(), TlsFiles::new);
    let server = Server::start_with(service(), PATIENT, |config| {
        config.tls = Some(files);
        config.limits.max_connections = 1;
        config.limits.workers = 1; // which accepts connections in order
    });
    // A handshake counts towards the limit too.
    let waiting = socket(server.address);
    let refused = socket(server.address);
    assert_eq!(until_closed(refused), "");
    drop(waiting);
    while curl(&authority, &[&genid(&server)]).0 != Some(0) {}
}

#[test]
fn plain_http_to_a_tls_listener_gets_an_alert() {
    let authority = Authority::new("one");
    let (server, _folder) = serving(&authority, PATIENT);
    let mut client = socket(server.address);
    client
        .write_all(b"GET /genid HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut said = Vec::new();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    client.read_to_end(&mut said).unwrap();
    assert_eq!(said.first(), Some(&21), "an alert: {said:?}");
}

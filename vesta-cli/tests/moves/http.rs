//! Hand-written HTTP/1.1, with a new connection for each request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// Status and body of the answer to these bytes.
pub(crate) fn send(to: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    (status, body.to_owned())
}

/// The answer to a request without a body.
pub(crate) fn ask(to: SocketAddr, method: &str, path: &str) -> (u16, String) {
    send(
        to,
        &format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"),
    )
}

/// The body of an answer that must not be an error.
pub(crate) fn get(to: SocketAddr, path: &str) -> String {
    let (status, body) = ask(to, "GET", path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

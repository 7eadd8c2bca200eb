//! A new ID over minimal HTTP/1.1.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Caller;
use crate::Failure;

pub(crate) const TEXT: &[u8] = b"GET /genid HTTP/1.1\r\nhost: localhost\r\n\r\n";
pub(crate) const JSON: &[u8] = b"GET /v1/id HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Longer than any answer here.
const LONGEST: usize = 4096;

/// A connection with one request at a time.
pub(crate) struct Connection {
    request: &'static [u8],
    stream: TcpStream,
    buffer: Box<[u8; LONGEST]>,
}

/// Callers with one connection each, which has answered once.
pub(crate) async fn callers(
    request: &'static [u8],
    address: SocketAddr,
    callers: usize,
) -> Result<Vec<Connection>, Failure> {
    let mut connections = Vec::with_capacity(callers);
    for _ in 0..callers {
        let mut connection = Connection::open(request, address).await?;
        connection.call().await?;
        connections.push(connection);
    }
    Ok(connections)
}

impl Connection {
    /// A connection without any request so far.
    pub(crate) async fn open(request: &'static [u8], address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            request,
            stream,
            buffer: Box::new([0; LONGEST]),
        })
    }

    /// Replaces the connection, as after an answer that is not complete yet.
    pub(crate) async fn reopen(&mut self) -> Result<(), Failure> {
        *self = Self::open(self.request, self.stream.peer_addr()?).await?;
        Ok(())
    }
}

impl Caller for Connection {
    async fn call(&mut self) -> Result<(), Failure> {
        self.stream.write_all(self.request).await?;
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            filled += read;
            let answer = &self.buffer[..filled];
            if is_whole(answer)? {
                return Ok(());
            }
            if read == 0 {
                return Err(format!("half an answer: {}", answer.escape_ascii()).into());
            }
        }
    }
}

/// True for a whole answer with an ID and nothing more; false if it is incomplete.
fn is_whole(answer: &[u8]) -> Result<bool, Failure> {
    let refused = || format!("not an ID: {}", answer.escape_ascii());
    let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(false);
    };
    let (head, body) = (&answer[..head], &answer[head + 4..]);
    if !head.starts_with(b"HTTP/1.1 200 ") {
        return Err(refused().into());
    }
    let length = head
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split_at_checked(15))
        .find(|(name, _)| name.eq_ignore_ascii_case(b"content-length:"))
        .and_then(|(_, value)| {
            std::str::from_utf8(value)
                .ok()?
                .trim()
                .parse::<usize>()
                .ok()
        })
        .ok_or_else(refused)?;
    if body.len() < length {
        return Ok(false);
    }
    let id = body
        .strip_prefix(br#"{"id":""#)
        .and_then(|id| id.strip_suffix(br#""}"#));
    let id = id.unwrap_or(body);
    if id.is_empty() || body.len() > length || !id.iter().all(u8::is_ascii_digit) {
        return Err(refused().into());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_last_byte_is_there() {
        for answer in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nserver: x\r\n\r\n123"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"id\":\"123\"}",
        ] {
            for part in 0..answer.len() {
                assert!(!is_whole(&answer[..part]).unwrap(), "{part}");
            }
            assert!(is_whole(answer).unwrap());
        }
    }

    #[test]
    fn an_answer_without_an_id_is_refused() {
        for answer in [
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 1\r\n\r\n1",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"id\":\"\"}",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n12",
        ] {
            assert!(is_whole(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}

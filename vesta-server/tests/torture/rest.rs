//! A client of vesta-rest: one connection, HTTP/1.1.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

pub(crate) struct Rest {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Rest {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
        }
    }

    /// The numbers in the body of an answer; any status but 200 is an error.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<Vec<u64>> {
        // The connection is kept only after a whole answer.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufReader::new(TcpStream::connect(self.address)?),
        };
        connection.get_mut().set_nodelay(true)?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address);
        connection.get_mut().write_all(request.as_bytes())?;
        let (mut head, mut length) = (String::new(), None);
        loop {
            let start = head.len();
            if connection.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = head[start..].trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().ok();
            }
        }
        let mut body = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
        connection.read_exact(&mut body)?;
        self.connection = Some(connection);
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(io::Error::other(head));
        }
        let numbers = body
            .split(|byte| !byte.is_ascii_digit())
            .filter(|text| !text.is_empty());
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
        numbers
            .map(number)
            .collect::<Option<_>>()
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

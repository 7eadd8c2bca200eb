//! Guard of HTTP/1 request heads: their line ends, their length and their offers of another protocol, before
//! a parser sees them. Pure.
//!
//! The parsers behind take a bare LF for a line end, which proxies read otherwise, and read 128 KiB of a
//! head. Both already answer a head that is wrong, in turn and with the right status, so a refusal is
//! made by spoiling the bytes: 0 is allowed nowhere in a head (400), and no parser takes hundreds of
//! headers (431).
//!
//! No server here speaks another protocol, and RFC 9110 (7.8) lets a server ignore the offer of one. The
//! parser of actix would take it up and close the connection after the answer, so `upgrade` in a
//! `Connection` header and `websocket` in an `Upgrade` header are misspelt on their way.

/// All bytes of a head.
const MAX_HEAD: usize = 16 * 1024;

/// Repeated for as long as the parser reads on.
const ONE_MORE_HEADER: &[u8] = b"\r\na:b";

/// Follows the requests of one connection, however their bytes are cut.
#[derive(Debug, Default)]
pub(super) struct HeadGuard {
    part: Part,
    /// Bytes of this head so far.
    length: usize,
    /// The beginning of the line under way.
    line: Vec<u8>,
    /// The last byte was a CR.
    after_cr: bool,
    body: Body,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Part {
    #[default]
    Head,
    /// So many bytes of a body are left.
    Body(u64),
    ChunkSize,
    /// So many bytes of a chunk and its line end are left.
    Chunk(u64),
    Trailers,
    /// It is refused for its length; the next byte comes from here in [`ONE_MORE_HEADER`].
    TooLong(usize),
    /// It is refused.
    Over,
}

/// The body, as far as the headers have told.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Body {
    #[default]
    None,
    Length(u64),
    Chunked,
    Unclear,
}

/// The longest line that can say something of the body; a longer one that does is refused.
const LONGEST_LINE: usize = 256;

impl HeadGuard {
    /// Returns whether every request so far has come as a whole, with its body.
    pub(super) fn is_between_requests(&self) -> bool {
        self.part == Part::Head && self.length == 0
    }

    /// Passes bytes on to the parser, spoiled where it has to refuse them.
    pub(super) fn pass(&mut self, mut bytes: &mut [u8]) {
        while let Some(first) = bytes.first_mut() {
            let skipped = match &mut self.part {
                Part::Over => return,
                Part::TooLong(next) => {
                    *first = ONE_MORE_HEADER[*next];
                    *next = (*next + 1) % ONE_MORE_HEADER.len();
                    1
                }
                Part::Body(left) | Part::Chunk(left) => {
                    let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= skipped as u64;
                    match self.part {
                        Part::Body(0) => self.part = Part::Head,
                        Part::Chunk(0) => self.part = Part::ChunkSize,
                        _ => {}
                    }
                    skipped
                }
                Part::Head | Part::ChunkSize | Part::Trailers => {
                    self.take(first);
                    1
                }
            };
            bytes = &mut bytes[skipped..];
        }
    }

    /// Takes a byte of a line.
    fn take(&mut self, byte: &mut u8) {
        self.length += 1;
        if self.length > MAX_HEAD {
            self.part = Part::TooLong(1);
            *byte = ONE_MORE_HEADER[0];
        } else if *byte != b'\n' {
            // No other value that matters in these headers has these letters.
            let offers = match byte {
                b'g' | b'G' => self.is_in_header(b"connection:"),
                b'k' | b'K' => self.is_in_header(b"upgrade:"),
                _ => false,
            };
            if offers {
                *byte = b'-';
            }
            if std::mem::replace(&mut self.after_cr, *byte == b'\r')
                && self.line.len() < LONGEST_LINE
            {
                self.line.push(b'\r');
            }
            if !self.after_cr && self.line.len() < LONGEST_LINE {
                self.line.push(*byte);
            }
        } else {
            match std::mem::take(&mut self.after_cr) {
                true => self.end_of_line(),
                false => self.part = Part::Over,
            }
            self.line.clear();
            if self.part == Part::Over {
                *byte = 0;
            }
        }
    }

    fn end_of_line(&mut self) {
        match (self.part, self.line.is_empty()) {
            // Empty lines before a request.
            (Part::Head, true) if self.length == 2 => self.length = 0,
            (Part::Head, true) => {
                self.part = match self.body {
                    Body::None => Part::Head,
                    Body::Length(length) if length > 0 => Part::Body(length),
                    Body::Length(_) => Part::Head,
                    Body::Chunked => Part::ChunkSize,
                    Body::Unclear => Part::Over,
                };
                (self.length, self.body) = (0, Body::None);
            }
            (Part::Head | Part::Trailers, false) => self.header(),
            (Part::Trailers, true) => (self.part, self.length, self.body) = Default::default(),
            (_, _) => {
                self.length = 0;
                let size = self.line.split(|byte| *byte == b';').next().unwrap_or_default();
                let size = str::from_utf8(size.trim_ascii()).ok();
                self.part = match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
                    Some(0) => Part::Trailers,
                    Some(size) => Part::Chunk(size.saturating_add(2)),
                    None => Part::Over,
                };
            }
        }
    }

    fn is_in_header(&self, name: &[u8]) -> bool {
        let line = self.line.get(..name.len());
        self.part == Part::Head && line.is_some_and(|line| line.eq_ignore_ascii_case(name))
    }

    fn header(&mut self) {
        let Some(colon) = self.line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (&self.line[..colon], self.line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.body = match (self.body, value.eq_ignore_ascii_case(b"chunked")) {
                (Body::None, true) => Body::Chunked,
                _ => Body::Unclear,
            };
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            self.body = match (self.body, length) {
                (Body::None, Some(length)) => Body::Length(length),
                _ => Body::Unclear,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that a parser is given, if they come in pieces of this length.
    fn passed(text: &[u8], piece: usize) -> Vec<u8> {
        let (mut guard, mut bytes) = (HeadGuard::default(), text.to_vec());
        bytes.chunks_mut(piece).for_each(|piece| guard.pass(piece));
        bytes
    }

    #[test]
    fn right_requests_pass_unchanged_however_they_are_cut() {
        let text = b"\r\nGET /genid HTTP/1.1\r\nhost: a\r\n\r\n\
            POST / HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n\r\n\n\n\n\n\n\
            POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;x=1\r\n\n\n\n\r\nA\r\n\
            0123\n56789\r\n0\r\nx: y\r\n\r\nPOST / HTTP/1.1\r\ncontent-length:0\r\n\r\n\
            GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        for piece in 1..=text.len() {
            assert_eq!(passed(text, piece), text, "pieces of {piece}");
        }
    }

    #[test]
    fn an_offer_of_another_protocol_does_not_reach_the_parser() {
        let head = |connection: &str| {
            format!("GET /upgrade HTTP/1.1\r\nx: upgrade\r\nUpgrade: h2c\r\n{connection}\r\n\r\n")
        };
        for (sent, expected) in [
            ("connection: upgrade", "connection: up-rade"),
            ("Connection: Upgrade, HTTP2-Settings", "Connection: Up-rade, HTTP2-Settin-s"),
            ("CONNECTION:keep-alive,UPGRADE", "CONNECTION:keep-alive,UP-RADE"),
            ("connection: close, upgrade", "connection: close, up-rade"),
            ("connection: keep-alive", "connection: keep-alive"),
            ("connection-x: upgrade", "connection-x: upgrade"),
            ("upgrade: WebSocket", "upgrade: WebSoc-et"),
            ("sec-websocket-key: k", "sec-websocket-key: k"),
        ] {
            let (sent, expected) = (head(sent).repeat(2), head(expected).repeat(2));
            for piece in 1..=sent.len() {
                assert_eq!(passed(sent.as_bytes(), piece), expected.as_bytes(), "{piece}");
            }
        }
    }

    #[test]
    fn a_request_counts_as_whole_with_its_body() {
        let mut guard = HeadGuard::default();
        for (bytes, whole) in [
            ("", true),
            ("\r", false),
            ("\n", true),
            ("GET / HTTP/1.1\r\nhost: a\r\n", false),
            ("\r\n", true),
            ("POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n", false),
            ("a", false),
            ("b", true),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", false),
            ("\r\n", true),
            ("GET / HTTP/1.1\n", false),
        ] {
            guard.pass(&mut bytes.as_bytes().to_vec());
            assert_eq!(guard.is_between_requests(), whole, "after {bytes:?}");
        }
    }

    #[test]
    fn a_bare_line_feed_is_spoiled_wherever_it_stands_in_a_head() {
        let before = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n\n\n";
        for head in [
            "GET / HTTP/1.1\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\n\n",
            "\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            let text = [&before[..], head.as_bytes()].concat();
            for piece in 1..=text.len() {
                let at = before.len() + head.replace("\r\n", "__").find('\n').expect("one");
                let mut expected = text.clone();
                expected[at] = 0;
                assert_eq!(passed(&text, piece), expected, "{head:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_head_may_have_16_kib() {
        let head = |length: usize| {
            let start = "GET / HTTP/1.1\r\nx: ";
            format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4)).into_bytes()
        };
        let two = [head(MAX_HEAD), head(MAX_HEAD)].concat();
        let long = [head(MAX_HEAD + 1), vec![b'x'; 1000]].concat();
        for piece in [1, 7, 4096, usize::MAX] {
            assert_eq!(passed(&two, piece), two);
            let spoiled = passed(&long, piece);
            assert_eq!(spoiled[..MAX_HEAD], long[..MAX_HEAD]);
            assert!(spoiled[MAX_HEAD..].starts_with(b"\r\na:b\r\na:b\r\n"));
        }
    }

    #[test]
    fn a_body_whose_end_is_not_clear_is_refused() {
        let padded = format!("content-length: {}2\r\n\r\n", " ".repeat(LONGEST_LINE));
        for head in [
            &padded,
            "content-length: 1\r\ncontent-length: 1\r\n\r\n",
            "content-length: x\r\n\r\n",
            "transfer-encoding: gzip\r\n\r\n",
            "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\nx\r\n",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{head}\n\n").into_bytes();
            let mut expected = text.clone();
            expected[text.len() - 3] = 0;
            assert_eq!(passed(&text, 1), expected, "{head}");
        }
    }
}

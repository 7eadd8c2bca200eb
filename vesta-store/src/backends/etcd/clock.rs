//! The clock of a member, as the HTTP side of its client port shows it.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::http;
use tonic::transport::Channel;
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::StoreError;

use super::{Connection, Etcd};

/// Maximum size of the headers; those of etcd have about 300 bytes.
const HEADERS: usize = 4096;

impl Etcd {
    /// The member's clock; `None` if the member does not show it.
    pub(super) async fn clock(&self, to: &Connection) -> Result<Option<UnixMillis>, StoreError> {
        let date = match self.config.tls {
            Some(_) => date_over(&to.channel).await,
            None => date_of(&to.member).await,
        };
        let silent =
            |error| StoreError::unavailable(format!("{} did not answer", to.member), error);
        let date = date.map_err(silent)?;
        let second = date.as_deref().and_then(parsed);
        if second.is_none() && !self.has_no_clock.swap(true, Ordering::Relaxed) {
            let member = &to.member;
            tracing::warn!(
                member,
                "this etcd member shows no time (no `Date` over HTTP at its client address), so a wrong clock \
                 of this host is not noticed at a start"
            );
        }
        // Any moment of that second may be meant; the one nearest to this host's clock shows no false difference.
        let ours = SystemClock::new().wall();
        Ok(second.map(|second| UnixMillis(ours.0.clamp(second, second + 999))))
    }
}

/// The `Date` of a reply over TLS, where one HTTP server answers gRPC and other requests.
async fn date_over(channel: &Channel) -> io::Result<Option<String>> {
    let mut channel = channel.clone();
    let question = http::Request::get("/version")
        .body(Body::empty())
        .map_err(io::Error::other)?;
    poll_fn(|context| GrpcService::<Body>::poll_ready(&mut channel, context))
        .await
        .map_err(io::Error::other)?;
    let answer = GrpcService::call(&mut channel, question)
        .await
        .map_err(io::Error::other)?;
    let date = answer.headers().get("date");
    Ok(date.and_then(|date| date.to_str().ok()).map(str::to_owned))
}

/// True once a member without a time was reported.
pub(super) type HasNoClock = AtomicBool;

/// The `Date` with which a member answers over HTTP.
async fn date_of(member: &str) -> io::Result<Option<String>> {
    let mut connection = TcpStream::connect(member).await?;
    let question = format!("GET /version HTTP/1.0\r\nHost: {member}\r\n\r\n");
    connection.write_all(question.as_bytes()).await?;
    let mut answer = Vec::new();
    (&mut connection)
        .take(HEADERS as u64)
        .read_to_end(&mut answer)
        .await?;
    Ok(date_in(&String::from_utf8_lossy(&answer)))
}

/// The `Date` among the headers of an answer.
fn date_in(answer: &str) -> Option<String> {
    let mut lines = answer.split("\r\n");
    lines.next().filter(|line| line.starts_with("HTTP/1."))?;
    lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("date"))
        .map(|(_, date)| date.trim().to_owned())
}

/// Milliseconds since 1970 of `Sat, 28 Nov 2026 04:19:29 GMT`, the form that HTTP requires.
fn parsed(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let parts: Vec<_> = date.split(' ').collect();
    let [_, day, month, year, time, "GMT"] = parts[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let time: Vec<u64> = time
        .split(':')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let [hour, minute, second] = time[..] else {
        return None;
    };
    if !(1970..=9999).contains(&year)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // Years that begin in March: the leap day is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    const TO_1970: u64 = 719_468;
    Some((((days - TO_1970) * 24 + hour) * 60 + minute) * 60_000 + second * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        for (date, second) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Sat, 28 Nov 2026 04:19:29 GMT", 1_795_839_569),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
        ] {
            assert_eq!(parsed(date), Some(second * 1000), "{date}");
        }
        for date in [
            "",
            "now",
            "Sat, 28 Nov 2026 04:19 GMT",
            "Sat, 28 Nov 2026 24:00:00 GMT",
            "Sat, 00 Nov 2026 04:19:29 GMT",
            "Sat, 28 Nov 1969 04:19:29 GMT",
            "Sat, 28 November 2026 04:19:29 GMT",
        ] {
            assert_eq!(parsed(date), None, "{date}");
        }
    }

    #[test]
    fn only_headers_of_an_http_answer_count() {
        let answer = "HTTP/1.0 404 Not Found\r\ndate: X\r\n\r\nDate: Y";
        assert_eq!(date_in(answer).as_deref(), Some("X"));
        assert_eq!(
            date_in("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nDate: Y"),
            None
        );
        assert_eq!(date_in("\0\0\u{6}\u{4}\r\nDate: X\r\n"), None, "gRPC only");
        assert_eq!(date_in(""), None);
    }
}

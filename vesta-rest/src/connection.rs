//! One accepted connection: it counts against the limit, and it does not stall.
//!
//! actix-http limits the time for the first request's head, and how long a connection may idle
//! between requests. What it leaves open is a client that stalls in the middle: that sends half of
//! its second request, or does not read its answer. [`Connection`] closes those.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::rt::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use vesta_boot::{Metrics, Stream, Tls};

/// Admits connections up to a limit.
#[derive(Debug)]
pub(crate) struct Gate {
    metrics: Arc<Metrics>,
    open: AtomicUsize,
    max: usize,
    patience: Patience,
    tls: Option<Tls>,
}

/// How long the gate's connections may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// To set up TLS.
    pub(crate) handshake: Duration,
    /// Or a little less than twice that: with the rest of a request, or with reading an answer.
    pub(crate) stall: Duration,
}

/// What a connection over the limit gets, before its request is read.
const FULL: &str = concat!(
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n",
    "content-length: 192\r\nretry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
    r#"{"type":"urn:vesta:problem:unavailable","title":"Unavailable","status":503,"#,
    r#""detail":"this server has as many connections as it may; try again later","#,
    r#""kind":"UNAVAILABLE","retry_after_ms":1000}"#
);

impl Gate {
    /// At most `max` connections at once; each is closed when it is out of patience.
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        max: usize,
        patience: Patience,
        tls: Option<Tls>,
    ) -> Arc<Self> {
        Arc::new(Self { metrics, open: AtomicUsize::new(0), max, patience, tls })
    }

    /// Lets a connection in, or tells it that there are too many.
    pub(crate) fn admit(self: &Arc<Self>, io: TcpStream) -> io::Result<Connection> {
        // Relaxed: the count protects nothing but itself.
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.metrics.connection_refused();
            // A fresh socket has room for this; a client that is gone already needs no answer, and one
            // that speaks TLS could not read it.
            if self.tls.is_none() {
                let _ = io::Write::write(&mut io.into_std()?, FULL.as_bytes());
            }
            return Err(io::Error::other("too many connections"));
        }
        self.metrics.connection_opened();
        let slot = Slot(self.clone());
        // Without it, a peer that delays its acknowledgements holds back small answers.
        io.set_nodelay(true)?;
        let io = Stream::new(io, self.tls.as_ref(), self.patience.handshake);
        Ok(Connection { io, stall: Stall::new(self.patience.stall), _slot: slot })
    }
}

/// The place that a connection takes; given back on drop.
#[derive(Debug)]
struct Slot(Arc<Gate>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.connection_closed();
    }
}

/// A connection that gives an error when its peer stalls.
#[derive(Debug)]
pub(crate) struct Connection {
    io: Stream,
    stall: Stall,
    _slot: Slot,
}

/// Notices a peer that owes us something for too long: the rest of a request, or the reading of an
/// answer. A busy connection must not pay for a clock or a timer with each request, so the timer
/// runs on and only its end looks whether the debt is still the one it was set for. A stall is
/// therefore noticed after one to two limits.
#[derive(Debug)]
struct Stall {
    limit: Duration,
    owing: bool,
    /// An answer was written that is not on its way: TLS keeps some.
    unflushed: bool,
    /// Counts the debts.
    debt: u32,
    timer: Option<Pin<Box<Sleep>>>,
    /// The debt that the timer was set for; `None` if it is not running.
    timed: Option<u32>,
}

impl Stall {
    fn new(limit: Duration) -> Self {
        Self { limit, owing: false, unflushed: false, debt: 0, timer: None, timed: None }
    }

    /// Bytes of a request came, or an answer is not taken. What was owed before is owed since then.
    fn owes(&mut self) {
        if !self.owing {
            self.owing = true;
            self.debt = self.debt.wrapping_add(1);
        }
    }

    /// An answer, or a part of it, was taken.
    fn paid(&mut self) {
        self.owing = false;
    }

    /// What was written is not taken.
    fn owes_flush(&mut self) {
        self.unflushed = true;
        self.owes();
    }

    /// All that was written is on its way. There may have been nothing.
    fn flushed(&mut self) {
        if std::mem::take(&mut self.unflushed) {
            self.paid();
        }
    }

    /// Ready once the peer has stalled.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            if self.timed.is_none() {
                if !self.owing {
                    return Poll::Pending;
                }
                match &mut self.timer {
                    Some(timer) => timer.as_mut().reset(Instant::now() + self.limit),
                    none => *none = Some(Box::pin(sleep(self.limit))),
                }
                self.timed = Some(self.debt);
            }
            let timer = self.timer.as_mut().expect("timed only with a timer");
            ready!(timer.as_mut().poll(cx));
            if self.owing && self.timed == Some(self.debt) {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.timed = None;
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.io).poll_read(cx, buf) {
            Poll::Ready(result) => {
                if buf.filled().len() > before {
                    this.stall.owes();
                }
                Poll::Ready(result)
            }
            Poll::Pending => this.stall.poll(cx).map(Err),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.io).poll_write(cx, data) {
            Poll::Ready(result) => {
                this.stall.paid();
                Poll::Ready(result)
            }
            Poll::Pending => {
                this.stall.owes();
                this.stall.poll(cx).map(Err)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.io).poll_flush(cx) {
            Poll::Ready(result) => {
                this.stall.flushed();
                Poll::Ready(result)
            }
            Poll::Pending => {
                this.stall.owes_flush();
                this.stall.poll(cx).map(Err)
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_a_whole_response() {
        let (head, body) = FULL.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["status"], 503);
    }

    #[tokio::test(start_paused = true)]
    async fn a_debt_is_due_after_one_to_two_limits() {
        let limit = Duration::from_secs(5);
        let mut stall = Stall::new(limit);
        let after = async |stall: &mut Stall, wait: Duration| {
            tokio::time::advance(wait).await;
            std::future::poll_fn(|cx| Poll::Ready(stall.poll(cx).is_ready())).await
        };
        assert!(!after(&mut stall, limit * 9).await, "an idle connection owes nothing");

        stall.owes();
        assert!(!after(&mut stall, Duration::ZERO).await);
        stall.owes(); // more of the same request: the debt keeps its age
        assert!(!after(&mut stall, limit - Duration::from_millis(10)).await);
        stall.paid();
        stall.owes();
        assert!(!after(&mut stall, Duration::from_millis(20)).await, "a new debt is young");
        assert!(after(&mut stall, limit).await, "and due in its turn");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stays_in_the_buffers_is_a_debt_too() {
        let limit = Duration::from_secs(5);
        let after = async |stall: &mut Stall, wait: Duration| {
            tokio::time::advance(wait).await;
            std::future::poll_fn(|cx| Poll::Ready(stall.poll(cx).is_ready())).await
        };
        let mut stall = Stall::new(limit);
        stall.owes();
        stall.flushed();
        assert!(!after(&mut stall, Duration::ZERO).await);
        assert!(after(&mut stall, limit).await, "nothing to flush pays for no request");

        let mut stall = Stall::new(limit);
        stall.owes_flush();
        assert!(!after(&mut stall, Duration::ZERO).await);
        stall.flushed();
        assert!(!after(&mut stall, limit).await, "it was taken");
        stall.owes_flush();
        assert!(!after(&mut stall, Duration::ZERO).await);
        assert!(after(&mut stall, limit).await);
    }
}

//! One accepted connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tonic::transport::server::Connected;
use vesta_boot::{Metrics, Stream, Tls};

/// What every HTTP/2 client sends first: the preface and the head of a SETTINGS frame.
const OPENING: usize = 24 + 9;

/// A place among the connections of a worker, given back on drop.
#[derive(Debug)]
pub(crate) struct Place {
    open: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
}

impl Place {
    pub(crate) fn take(open: &Arc<AtomicUsize>, metrics: &Arc<Metrics>) -> Self {
        open.fetch_add(1, Relaxed); // a number that stands alone
        metrics.connection_opened();
        Self { open: Arc::clone(open), metrics: Arc::clone(metrics) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Relaxed);
        self.metrics.connection_closed();
    }
}

/// An accepted connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) place: Place,
}

/// A connection that is closed if its client does not open HTTP/2, and before it TLS, in time. Later
/// silence is found by HTTP/2's own pings.
pub(crate) struct Connection {
    stream: Stream,
    opening: Option<Opening>,
    _place: Place,
}

struct Opening {
    bytes_missing: usize,
    patience: Pin<Box<Sleep>>,
}

impl Connection {
    /// Makes the connection the business of the runtime that this is called in.
    pub(crate) fn adopt(
        accepted: Accepted,
        tls: Option<&Tls>,
        patience: Duration,
    ) -> io::Result<Self> {
        let opening = Opening { bytes_missing: OPENING, patience: Box::pin(sleep(patience)) };
        Ok(Self {
            stream: Stream::new(TcpStream::from_std(accepted.stream)?, tls, patience),
            opening: Some(opening),
            _place: accepted.place,
        })
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Some(opening) = &mut self.opening {
            let read = buf.filled().len() - before;
            opening.bytes_missing = opening.bytes_missing.saturating_sub(read);
            if opening.bytes_missing == 0 {
                self.opening = None;
            } else if opening.patience.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        result
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

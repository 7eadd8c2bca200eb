//! Bounds for the admin listener: few connections, none of them silent for long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Connections at a time: scrapers, probes and a few people.
const CONNECTIONS: usize = 64;

/// A connection that sends nothing for this long is closed.
const SILENCE: Duration = Duration::from_secs(5);

/// After an error of accept, such as no free file descriptor.
const BACK_OFF: Duration = Duration::from_millis(50);

pub(super) struct Guarded {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl Guarded {
    pub(super) fn new(listener: std::net::TcpListener) -> io::Result<Self> {
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { listener, free: Arc::new(Semaphore::new(CONNECTIONS)) })
    }
}

impl axum::serve::Listener for Guarded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let free = Arc::clone(&self.free).acquire_owned().await;
        let slot = free.expect("nobody closes this semaphore");
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let patience = Box::pin(sleep(SILENCE));
                    return (Connection { stream, patience, _slot: slot }, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin listener could not accept a connection");
                    sleep(BACK_OFF).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(super) struct Connection {
    stream: TcpStream,
    patience: Pin<Box<Sleep>>,
    _slot: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(result) = Pin::new(&mut self.stream).poll_read(cx, buf) {
            self.patience.as_mut().reset(Instant::now() + SILENCE);
            return Poll::Ready(result);
        }
        ready!(self.patience.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
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

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

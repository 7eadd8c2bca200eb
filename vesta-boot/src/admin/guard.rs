//! Bounds for the admin listener: few connections, none of them silent for long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

use crate::{Stream, Tls};

/// Connections at a time: scrapers, probes and a few people.
const CONNECTIONS: usize = 64;

/// A connection that sends nothing for this long is closed.
const SILENCE: Duration = Duration::from_secs(5);

/// After an error of accept, such as no free file descriptor.
const BACK_OFF: Duration = Duration::from_millis(50);

pub(super) struct Guarded {
    listener: TcpListener,
    tls: Option<Tls>,
    free: Arc<Semaphore>,
}

impl Guarded {
    pub(super) fn new(listener: std::net::TcpListener, tls: Option<Tls>) -> io::Result<Self> {
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { listener, tls, free: Arc::new(Semaphore::new(CONNECTIONS)) })
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
                    let stream = Stream::new(stream, self.tls.as_ref(), SILENCE);
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
    stream: Stream,
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

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use rcgen::{CertificateParams, KeyPair};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::{Protocol, TlsFiles};

    async fn serving(tls: Option<Tls>) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let guarded = Guarded::new(listener, tls).expect("a listener");
        let address = axum::serve::Listener::local_addr(&guarded).expect("its address");
        let router = Router::new().route("/", get(async || "hello"));
        tokio::spawn(async { axum::serve(guarded, router).await });
        address
    }

    async fn connect(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(bytes).await.expect("some bytes");
        stream
    }

    async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await; // a reset is an end too
        said
    }

    #[tokio::test(start_paused = true)]
    async fn who_stays_silent_is_closed_after_a_while() {
        let address = serving(None).await;
        for bytes in [&b""[..], b"GET / HTT", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"] {
            let began = Instant::now();
            let mut stream = connect(address, bytes).await;
            let said = until_closed(&mut stream).await;
            assert!(began.elapsed() >= SILENCE, "{bytes:?}");
            assert_eq!(!said.is_empty(), bytes.ends_with(b"\r\n\r\n"), "{said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_may_not_take_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = TlsFiles::new(folder.path().join("c.pem"), folder.path().join("k.pem"));
        let key = KeyPair::generate().expect("a key");
        let cert = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let cert = cert.self_signed(&key).expect("a certificate");
        std::fs::write(&files.cert, cert.pem()).expect("a file");
        std::fs::write(&files.key, key.serialize_pem()).expect("a file");
        let tls = Tls::load(&files, Protocol::Http1).expect("sound files");
        let address = serving(Some(tls.clone())).await;
        let mut silent = connect(address, b"").await;
        assert_eq!(until_closed(&mut silent).await, b"");
        let mut plain = connect(address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(until_closed(&mut plain).await.first(), Some(&21), "an alert");
        assert_eq!(tls.handshakes_failed(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_more_than_the_limit_waits_for_a_place() {
        let address = serving(None).await;
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            open.push(connect(address, b"").await);
        }
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let began = Instant::now();
        let mut waiting = connect(address, request).await;
        let said = until_closed(&mut waiting).await;
        assert!(said.ends_with(b"hello"), "{said:?}");
        assert!(began.elapsed() >= SILENCE, "until one of the others was closed");
        drop(open);
        let began = Instant::now();
        let mut next = connect(address, request).await;
        assert!(until_closed(&mut next).await.ends_with(b"hello"));
        assert!(began.elapsed() < SILENCE, "there is room again");
    }
}

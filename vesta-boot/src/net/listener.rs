//! Connection limiter, and the listener of the admin server over it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::Tls;
use super::address::{Accepted, Acceptor};
use super::connection::{Connection, Limits};
use super::permit::{Addresses, Permit};
use crate::metrics::Metrics;

/// Pause after an error of accept, such as no free file descriptor.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Bounds the connections of a listener in number and in time, and gives them TLS.
#[derive(Debug)]
pub struct Limiter {
    permits: Arc<Semaphore>,
    addresses: Addresses,
    max_per_address: usize,
    limits: Limits,
    tls: Option<Tls>,
    metrics: Arc<Metrics>,
}

impl Limiter {
    /// At most `max` connections at a time, counted by `metrics`, and so many of them of one address.
    pub fn new(
        max: usize,
        max_per_address: usize,
        limits: Limits,
        tls: Option<Tls>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        let addresses = Addresses::default();
        Arc::new(Self { permits, addresses, max_per_address, limits, tls, metrics })
    }

    /// Returns whether clients speak TLS.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// A permit for a connection just accepted; `None`, and counted, if there are too many, or too
    /// many of this address. All peers of a Unix socket are this host, and have no limit of their own.
    pub fn try_permit(&self, peer: Option<IpAddr>) -> Option<Permit> {
        let place = || {
            let share = match peer {
                Some(peer) => Some(self.addresses.share_of(peer, self.max_per_address)?),
                None => None,
            };
            let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
            Some(self.permit(permit).with(share))
        };
        let permit = place();
        if permit.is_none() {
            self.metrics.refused.inc();
        }
        permit
    }

    fn permit(&self, permit: OwnedSemaphorePermit) -> Permit {
        self.metrics.opened.inc();
        Permit::new(permit).counted(&self.metrics.open)
    }

    /// Guards an accepted connection. Must be called inside the Tokio runtime that drives it.
    pub fn guard(&self, stream: Accepted, permit: Permit) -> Connection {
        Connection::new(stream, self.tls.as_ref(), self.limits, permit)
    }
}

/// Accepts the next connection, whatever errors come before it: they pass.
pub(super) async fn accept(listener: &Acceptor) -> (Accepted, Option<IpAddr>) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                sleep(BACK_OFF).await;
            }
        }
    }
}

/// Listener whose connections wait for a permit before they are accepted.
pub(crate) struct Listener {
    pub(crate) listener: Acceptor,
    pub(crate) limiter: Arc<Limiter>,
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = Option<IpAddr>;

    async fn accept(&mut self) -> (Connection, Option<IpAddr>) {
        let permit = Arc::clone(&self.limiter.permits).acquire_owned().await;
        let permit = self.limiter.permit(permit.expect("nobody closes this semaphore"));
        let (stream, peer) = accept(&self.listener).await;
        (self.limiter.guard(stream, permit), peer)
    }

    fn local_addr(&self) -> io::Result<Option<IpAddr>> {
        Ok(None) // nobody asks
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use axum::routing::get;
    use rcgen::{CertificateParams, KeyPair};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::*;
    use crate::net::Protocol;
    use crate::net::TlsFiles;

    const LIMIT: Duration = Duration::from_secs(5);
    const CONNECTIONS: usize = 16;

    async fn serving(tls: Option<Tls>) -> SocketAddr {
        let limits = Limits {
            opening: LIMIT,
            opening_bytes: 1,
            stall: LIMIT,
            idle: LIMIT,
            is_http1: true,
            unused: Duration::MAX,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let listener = Acceptor::Tcp(listener);
        let limiter = Limiter::new(CONNECTIONS, CONNECTIONS, limits, tls, Arc::default());
        let router = Router::new().route("/", get(async || "hello"));
        tokio::spawn(async { axum::serve(Listener { listener, limiter }, router).await });
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
    async fn a_silent_client_is_closed_after_a_while() {
        let address = serving(None).await;
        for bytes in [&b""[..], b"GET / HTT", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"] {
            let began = Instant::now();
            let mut stream = connect(address, bytes).await;
            let said = until_closed(&mut stream).await;
            assert!((LIMIT..LIMIT * 2 + LIMIT / 5).contains(&began.elapsed()), "{bytes:?}");
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
    async fn one_more_than_the_limit_waits_for_a_permit() {
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
        assert!(began.elapsed() >= LIMIT, "until one of the others was closed");
        drop(open);
        let began = Instant::now();
        let mut next = connect(address, request).await;
        assert!(until_closed(&mut next).await.ends_with(b"hello"));
        assert!(began.elapsed() < LIMIT, "there is room again");
    }
}

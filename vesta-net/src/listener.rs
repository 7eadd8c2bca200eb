//! Connection limiter, and the admin server's listener on top of it.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::serve::IncomingStream;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::Tls;
use super::address::{Accepted, Acceptor};
use super::connection::{Connection, Limits, Place};
use super::permit::{Addresses, Permit, Seat};
use super::requests::Requests;
use crate::connections::Connections;

/// Pause after a failed accept, for example when no file descriptor is free.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Limits the number and duration of a listener's connections, and adds TLS.
#[derive(Debug)]
pub struct Limiter {
    permits: Arc<Semaphore>,
    addresses: Addresses,
    max_per_address: usize,
    limits: Limits,
    tls: Option<Tls>,
    connections: Arc<Connections>,
}

impl Limiter {
    /// Allows `max` connections at a time, counted in `connections`, and `per_address` per address.
    pub fn new(
        max: usize,
        max_per_address: usize,
        limits: Limits,
        tls: Option<Tls>,
        connections: Arc<Connections>,
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        let addresses = Addresses::default();
        Arc::new(Self {
            permits,
            addresses,
            max_per_address,
            limits,
            tls,
            connections,
        })
    }

    /// Returns whether clients speak TLS.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns a permit for an accepted connection, or `None` (counted) at the total limit or at the
    /// limit of this address. All peers of a Unix socket are this host and have no separate limit.
    pub fn try_permit(&self, peer: Option<IpAddr>) -> Option<Permit> {
        let permit = self.permit(peer);
        if permit.is_err() {
            self.connections.refused.fetch_add(1, Relaxed);
        }
        permit.ok()
    }

    /// A permit, or the address at its limit; `None` if the total limit is reached.
    fn permit(&self, peer: Option<IpAddr>) -> Result<Permit, Option<IpAddr>> {
        let share = |peer| {
            self.addresses
                .share_of(peer, self.max_per_address)
                .ok_or(Some(peer))
        };
        let share = peer.map(share).transpose()?;
        let permit = Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|_| None)?;
        self.connections.accepted.fetch_add(1, Relaxed);
        Ok(Permit::new(permit)
            .counted(&self.connections.open)
            .with(share))
    }

    /// Guards an accepted connection. Must be called inside the Tokio runtime that drives it.
    pub fn guard(&self, stream: Accepted, permit: Permit) -> Connection {
        Connection::new(stream, self.tls.as_ref(), self.limits, Place::Left(permit))
    }
}

/// Accepts the next connection; errors before it are logged and retried, because they are
/// transient.
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

/// Listener whose oldest connections without a request in flight give way to new ones. A request counts once
/// it is complete; a request with a body is counted by its handler.
#[derive(Debug)]
pub struct Listener {
    listener: Acceptor,
    limiter: Arc<Limiter>,
    /// Seats of the open connections, oldest first.
    seats: Vec<Weak<Seat>>,
}

impl Listener {
    /// Accepts connections within limits.
    pub fn new(listener: Acceptor, limiter: Arc<Limiter>) -> Self {
        Self {
            listener,
            limiter,
            seats: Vec::new(),
        }
    }

    /// Serves these routes until the process exits.
    pub async fn serve(self, router: Router) -> io::Result<()> {
        let router = router.layer(from_fn(count));
        axum::serve(
            self,
            router.into_make_service_with_connect_info::<Requests>(),
        )
        .await
    }
}

/// Counts a request that has no body.
async fn count(info: ConnectInfo<Requests>, request: Request, next: Next) -> Response {
    let _in_flight = request.body().is_end_stream().then(|| info.0.begin());
    next.run(request).await
}

impl Connected<IncomingStream<'_, Listener>> for Requests {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.io().requests().clone()
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = Option<IpAddr>;

    async fn accept(&mut self) -> (Connection, Option<IpAddr>) {
        loop {
            let (stream, peer) = accept(&self.listener).await;
            self.seats.retain(|seat| seat.strong_count() > 0);
            let mut permit = self.limiter.permit(peer);
            while let Err(full) = permit
                && self
                    .seats
                    .iter()
                    .filter_map(Weak::upgrade)
                    .any(|seat| seat.give_way(full))
            {
                permit = self.limiter.permit(peer);
            }
            let Ok(permit) = permit else {
                tracing::debug!(?peer, "all connections are busy; refused a new one");
                continue;
            };
            let seat = Seat::new(permit);
            self.seats.push(Arc::downgrade(&seat));
            let Limiter { tls, limits, .. } = &*self.limiter;
            return (
                Connection::new(stream, tls.as_ref(), *limits, Place::Right(seat)),
                peer,
            );
        }
    }

    fn local_addr(&self) -> io::Result<Option<IpAddr>> {
        Ok(None) // unused
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use axum::routing::get;
    use rcgen::{CertificateParams, KeyPair};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::Protocol;
    use crate::TlsFiles;

    const LIMIT: Duration = Duration::from_secs(5);
    const CONNECTIONS: usize = 16;
    const LIMITS: Limits = Limits {
        opening: LIMIT,
        opening_bytes: 1,
        stall: LIMIT,
        idle: LIMIT,
        unused: Duration::MAX,
        lifetime: Duration::MAX,
        misdirected: None,
    };

    async fn serving(tls: Option<Tls>) -> SocketAddr {
        serving_with(tls, LIMITS, CONNECTIONS).await
    }

    async fn serving_with(tls: Option<Tls>, limits: Limits, per_address: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let listener = Acceptor::Tcp(listener);
        let limiter = Limiter::new(CONNECTIONS, per_address, limits, tls, Arc::default());
        let begins = async || {
            AT_WORK.fetch_add(1, Relaxed);
            pending::<&str>().await
        };
        let router = Router::new()
            .route("/", get(async || "hello"))
            .route("/begins", get(begins));
        tokio::spawn(Listener::new(listener, limiter).serve(router));
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
            assert!(
                (LIMIT..LIMIT * 2 + LIMIT / 5).contains(&began.elapsed()),
                "{bytes:?}"
            );
            assert_eq!(!said.is_empty(), bytes.ends_with(b"\r\n\r\n"), "{said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_has_the_same_time_limit() {
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
        assert_eq!(
            until_closed(&mut plain).await.first(),
            Some(&21),
            "an alert"
        );
        assert_eq!(tls.handshakes_failed(), 2);
    }

    /// Requests that have begun and never finish.
    static AT_WORK: AtomicUsize = AtomicUsize::new(0);

    /// A connection of this listener ends only by giving way, or after an hour.
    async fn serving_patiently(per_address: usize) -> SocketAddr {
        let hour = Duration::from_secs(3600);
        serving_with(
            None,
            Limits {
                opening: hour,
                stall: hour,
                idle: hour,
                ..LIMITS
            },
            per_address,
        )
        .await
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

    /// The response to a request, with a timeout in case it never comes.
    async fn answer(address: SocketAddr, request: &[u8]) -> Vec<u8> {
        let mut stream = connect(address, request).await;
        timeout(Duration::from_secs(60), until_closed(&mut stream))
            .await
            .expect("an answer")
    }

    #[tokio::test]
    async fn requests_are_answered_beside_any_number_of_incomplete_ones() {
        let address = serving_patiently(CONNECTIONS / 2).await;
        let halves = [
            &b""[..],
            b"GET / HTT",
            b"GET / HTTP/1.1\r\nhost: a\r\n",
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n1",
            b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET",
        ];
        let mut open = Vec::new();
        for half in halves.into_iter().cycle().take(200) {
            open.push(connect(address, half).await);
        }
        for _ in 0..20 {
            let said = answer(address, REQUEST).await;
            assert!(said.ends_with(b"hello"), "{said:?}");
        }
        until_closed(&mut open[0]).await; // the oldest one has given way
    }

    #[tokio::test]
    async fn a_busy_connection_does_not_give_way() {
        let address = serving_patiently(CONNECTIONS).await;
        let mut at_work = Vec::new();
        for _ in 0..CONNECTIONS {
            at_work.push(connect(address, b"GET /begins HTTP/1.1\r\nhost: a\r\n\r\n").await);
        }
        while AT_WORK.load(Relaxed) < CONNECTIONS {
            tokio::task::yield_now().await;
        }
        assert_eq!(answer(address, REQUEST).await, b"", "refused");
        at_work.pop();
        while answer(address, REQUEST).await.is_empty() {}
        for stream in &mut at_work {
            let more = timeout(Duration::ZERO, until_closed(stream)).await;
            assert!(more.is_err(), "it goes on: {more:?}");
        }
    }
}

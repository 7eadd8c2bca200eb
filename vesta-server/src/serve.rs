//! Server: one acceptor, and as many workers as there are CPUs, each with a runtime on its own
//! thread.
//!
//! Small requests spend most of their time in the kernel and in wake-ups; a connection that stays on
//! one thread needs no wake-up across threads. The acceptor gives each connection to the worker with
//! the fewest, which shares work evenly even with a handful of connections; a port shared by the
//! kernel's hash does not.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Server;
use vesta_boot::Running;
use vesta_boot::net::{self, Limiter, Limits, Permit};

use crate::routes::Services;

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the accept until HTTP/2, and before it TLS, is open. Default 5 s.
    pub opening: Duration,
    /// Silence of an open connection until it is pinged. Default 5 s.
    pub silence: Duration,
    /// For the answer to that ping. Default 4 s.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            answer: Duration::from_secs(4),
        }
    }
}

/// First bytes of every HTTP/2 client: the preface and the head of a SETTINGS frame.
const OPENING: usize = 24 + 9;

/// Streams on one connection at a time.
const STREAMS: u32 = 128;

/// All headers of one request together, in bytes.
const HEADERS: u32 = 16 * 1024;

/// A handler keeps the request's time limit itself and answers with the right error. This much later
/// tonic ends what never became a request, such as one whose body does not arrive.
const AFTER_THE_LIMIT: Duration = Duration::from_millis(100);

/// Serves gRPC until the program is asked to stop, then drains for at most the drain limit.
///
/// # Errors
/// If a runtime or a thread cannot be made.
pub fn serve(listener: std::net::TcpListener, running: Arc<Running>) -> io::Result<()> {
    serve_with(listener, running, Timeouts::default())
}

/// [`serve`] with other time limits.
///
/// # Errors
/// As for [`serve`].
pub fn serve_with(
    listener: std::net::TcpListener,
    running: Arc<Running>,
    timeouts: Timeouts,
) -> io::Result<()> {
    let services = Services::new(Arc::clone(&running));
    let Running { config, security, metrics, shutdown, .. } = &*running;
    let server = Server::builder()
        .timeout(config.limits.request_timeout + AFTER_THE_LIMIT)
        .max_concurrent_streams(STREAMS)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(timeouts.silence))
        .http2_keepalive_timeout(Some(timeouts.answer));
    let limits = Limits {
        opening: timeouts.opening,
        opening_bytes: OPENING,
        // Pings find out later stalls.
        stall: Duration::MAX,
        idle: Duration::MAX,
        is_http1: false,
        unused: config.limits.idle_timeout,
    };
    let limiter = Limiter::new(
        config.limits.max_connections,
        config.limits.per_address(),
        limits,
        security.tls.clone(),
        Arc::clone(metrics),
    );

    // If this function fails half-way, the workers that were started end too.
    let stop = shutdown.clone().drop_guard();
    let workers = (0..config.limits.workers)
        .map(|number| {
            let worker = Worker {
                server: server.clone(),
                services: services.clone(),
                limiter: Arc::clone(&limiter),
                running: Arc::clone(&running),
            };
            worker.start(number)
        })
        .collect::<io::Result<Vec<_>>>()?;

    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let accepted = runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = accept(listener, &workers, &limiter) => Ok(()),
        }
    });
    drop(stop);
    for worker in workers {
        if worker.thread.join().is_err() {
            tracing::error!("a worker ended by a panic");
        }
    }
    accepted
}

/// Gives connections to workers, for ever.
async fn accept(listener: TcpListener, workers: &[WorkerHandle], limiter: &Limiter) {
    loop {
        let (stream, peer) = net::accept(&listener).await;
        let Some(permit) = limiter.try_permit(peer.ip()) else {
            tracing::debug!(%peer, "too many connections; closed a new one");
            continue;
        };
        let idlest = workers.iter().min_by_key(|worker| Arc::strong_count(&worker.share));
        if let (Ok(stream), Some(worker)) = (stream.into_std(), idlest) {
            let _ = worker.connections.send((stream, permit.counted(&worker.share)));
        }
    }
}

/// An accepted connection on its way to a worker.
type Accepted = (std::net::TcpStream, Permit);

/// A worker as the acceptor sees it.
struct WorkerHandle {
    connections: UnboundedSender<Accepted>,
    /// Held once by each of its connections.
    share: Arc<()>,
    thread: JoinHandle<()>,
}

struct Worker {
    server: Server,
    services: Services,
    limiter: Arc<Limiter>,
    running: Arc<Running>,
}

impl Worker {
    fn start(self, number: usize) -> io::Result<WorkerHandle> {
        let (connections, incoming) = unbounded_channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name(format!("vesta-worker-{number}"))
            .spawn(move || runtime.block_on(self.run(incoming)))?;
        Ok(WorkerHandle { connections, share: Arc::default(), thread })
    }

    async fn run(self, incoming: UnboundedReceiver<Accepted>) {
        let Worker { server, services, limiter, running } = self;
        let (shutdown, drain_limit) = (&running.shutdown, running.config.limits.drain_limit);
        let incoming = UnboundedReceiverStream::new(incoming).map(move |(stream, permit)| {
            TcpStream::from_std(stream).map(|stream| limiter.guard(stream, permit))
        });
        let stop = shutdown.clone().cancelled_owned();
        let overdue = async {
            shutdown.cancelled().await;
            sleep(drain_limit).await;
        };
        tokio::select! {
            served = server.serve_with_incoming_shutdown(services, incoming, stop) => {
                if let Err(error) = served {
                    tracing::error!(%error, "a worker has stopped");
                }
            }
            () = overdue => {
                tracing::warn!(?drain_limit, "requests were still under way; they end unanswered");
            }
        }
    }
}

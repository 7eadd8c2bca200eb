//! One acceptor, and as many workers as there are CPUs, each with a runtime of its own thread.
//!
//! Small requests spend most of their time in the kernel and in wake-ups; a connection that stays on
//! one thread needs no wake-up across threads. The acceptor gives each connection to the worker with
//! the fewest, which shares work evenly even with a handful of connections; a port shared by the
//! kernel's hash does not.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use vesta_boot::{Metrics, Running, Tls};

use crate::connection::{Accepted, Connection, Place};
use crate::routes::Services;

/// How long a connection may say nothing.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From the accept until HTTP/2, and before it TLS, is open. Default 5 s.
    pub opening: Duration,
    /// Of an open connection, until it is asked for a sign of life. Default 5 s.
    pub silence: Duration,
    /// For that sign of life. Default 4 s.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            answer: Duration::from_secs(4),
        }
    }
}

/// Streams on one connection at a time.
const STREAMS: u32 = 128;

/// All headers of one request together, in bytes.
const HEADERS: u32 = 16 * 1024;

/// After an error of accept, such as no free file descriptor.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A handler keeps the request's time limit itself and answers with the right error. This much later
/// tonic ends what never became a request, such as one whose body does not arrive.
const AFTER_THE_LIMIT: Duration = Duration::from_millis(100);

/// Serves gRPC until the program is asked to stop, then drains for at most the drain limit.
///
/// # Errors
/// If a runtime or a thread cannot be made.
pub fn serve(running: Running) -> io::Result<()> {
    serve_with(running, Patience::default())
}

/// [`serve`] with another patience.
///
/// # Errors
/// As for [`serve`].
pub fn serve_with(running: Running, patience: Patience) -> io::Result<()> {
    let services = Services::new(&running);
    let Running { config, listener, security, metrics, shutdown, .. } = running;
    let server = Server::builder()
        .timeout(config.request_timeout + AFTER_THE_LIMIT)
        .max_concurrent_streams(STREAMS)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(patience.silence))
        .http2_keepalive_timeout(Some(patience.answer));

    // If this function fails half-way, the workers that were started end too.
    let stop = shutdown.clone().drop_guard();
    let workers = (0..config.workers)
        .map(|number| {
            let worker = Worker {
                server: server.clone(),
                services: services.clone(),
                tls: security.tls.clone(),
                patience: patience.opening,
                drain_limit: config.drain_limit,
                shutdown: shutdown.clone(),
            };
            worker.start(number)
        })
        .collect::<io::Result<Vec<_>>>()?;

    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let accepting = accept(listener, &workers, config.max_connections, &metrics);
    let accepted = runtime.block_on(async {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            result = accepting => result,
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

/// Gives connections to workers. Ends only if the listener cannot be used at all: an accept that
/// fails is a passing thing.
async fn accept(
    listener: TcpListener,
    workers: &[Desk],
    max_connections: usize,
    metrics: &Arc<Metrics>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                sleep(BACK_OFF).await;
                continue;
            }
        };
        let open: usize = workers.iter().map(|worker| worker.open.load(Relaxed)).sum();
        if open >= max_connections {
            metrics.connection_refused();
            tracing::debug!(max_connections, "too many connections; closed a new one");
            continue;
        }
        // Small answers must not wait for the acknowledgement of the one before.
        let ready = stream.set_nodelay(true).and_then(|()| stream.into_std());
        let Ok(stream) = ready else { continue };
        let Some(idlest) = workers.iter().min_by_key(|worker| worker.open.load(Relaxed)) else {
            continue;
        };
        let place = Place::take(&idlest.open, metrics);
        let _ = idlest.connections.send(Accepted { stream, place });
    }
}

/// A worker as the acceptor sees it.
struct Desk {
    connections: UnboundedSender<Accepted>,
    open: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

struct Worker {
    server: Server,
    services: Services,
    tls: Option<Tls>,
    patience: Duration,
    drain_limit: Duration,
    shutdown: CancellationToken,
}

impl Worker {
    fn start(self, number: usize) -> io::Result<Desk> {
        let (connections, incoming) = unbounded_channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name(format!("vesta-worker-{number}"))
            .spawn(move || runtime.block_on(self.run(incoming)))?;
        Ok(Desk { connections, open: Arc::new(AtomicUsize::new(0)), thread })
    }

    async fn run(self, incoming: UnboundedReceiver<Accepted>) {
        let Worker { server, services, tls, patience, drain_limit, shutdown } = self;
        let incoming = UnboundedReceiverStream::new(incoming)
            .map(move |accepted| Connection::adopt(accepted, tls.as_ref(), patience));
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

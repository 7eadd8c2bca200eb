//! Workers of a listener: one acceptor, and threads with one runtime each.
//!
//! Small requests spend most of their time in the kernel and in wake-ups; a connection that stays on
//! one thread needs no wake-up across threads. The acceptor gives each connection to the worker with
//! the fewest, which balances even a handful of connections; a port shared by the kernel's hash does
//! not.
//!
//! Among those with equally few it chooses by the CPU on which the packets arrive. A request that another
//! CPU serves costs an interrupt there, and caches that are cold. The kernel runs a worker where its
//! packets arrive, if they all arrive on one CPU; so no worker is pinned.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_core::Stream;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::address::{Accepted, Acceptor, Handed, Listening};
use super::listener::accept;
use super::{Connection, Limiter, Permit};

/// Threads of a listener, and their end.
#[derive(Debug, Clone)]
pub struct Threads {
    /// Number of workers.
    pub workers: usize,
    /// Time limit of the work in flight after a stop.
    pub drain_limit: Duration,
    /// Cancelled when the listener must stop.
    pub shutdown: CancellationToken,
}

/// Stream of connections of one worker.
#[derive(Debug)]
pub struct Incoming {
    accepted: UnboundedReceiver<Queued>,
    limiter: Arc<Limiter>,
}

/// An accepted connection in transit to a worker.
type Queued = (Handed, Permit);

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.accepted.poll_recv(cx).map(|accepted| {
            let (stream, permit) = accepted?;
            Some(
                stream
                    .taken()
                    .map(|stream| self.limiter.guard(stream, permit)),
            )
        })
    }
}

/// Serves a listener until the program is asked to stop, then drains all work for at most the drain
/// limit. `work` serves the connections of one worker on its thread, and returns when they have ended
/// after a stop. `refuse` receives connections over the limit.
///
/// # Errors
/// If a runtime or a thread cannot be created, or the listener cannot be used.
pub fn serve<F: Future<Output = ()>>(
    listener: Listening,
    threads: &Threads,
    limiter: &Arc<Limiter>,
    refuse: impl Fn(Accepted),
    work: impl Fn(Incoming) -> F + Clone + Send + 'static,
) -> io::Result<()> {
    let Threads {
        workers,
        drain_limit,
        shutdown,
    } = threads;
    // If this function fails half-way, the workers already started end too.
    let stop = shutdown.clone().drop_guard();
    let workers = (0..*workers)
        .map(|number| {
            let (connections, accepted) = unbounded_channel();
            let incoming = Incoming {
                accepted,
                limiter: Arc::clone(limiter),
            };
            let (work, shutdown, drain_limit) = (work.clone(), shutdown.clone(), *drain_limit);
            let (made, is_made) = sync_channel(1);
            let thread = std::thread::Builder::new()
                .name(format!("vesta-worker-{number}"))
                .spawn(move || run(&made, || work(incoming), &shutdown, drain_limit))?;
            // Before any connection is accepted: connections may take the last file descriptors.
            is_made
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other(PANICKED)))?;
            Ok(Worker {
                connections,
                share: Arc::default(),
                thread,
            })
        })
        .collect::<io::Result<Vec<_>>>()?;

    let runtime = Builder::new_current_thread().enable_all().build()?;
    let accepted = runtime.block_on(async {
        let listener = Acceptor::try_from(listener)?;
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = distribute(&listener, &workers, limiter, refuse) => Ok(()),
            () = all_ended(&workers) => Ok(()),
        }
    });
    drop(stop);
    workers.into_iter().fold(accepted, |ended, worker| {
        ended.and(worker.thread.join().map_err(|_| io::Error::other(PANICKED)))
    })
}

const PANICKED: &str = "a worker panicked";

/// A worker, from the acceptor's side.
struct Worker {
    connections: UnboundedSender<Queued>,
    /// Each of its connections holds one reference.
    share: Arc<()>,
    thread: JoinHandle<()>,
}

/// Distributes connections to workers; never returns.
async fn distribute(
    listener: &Acceptor,
    workers: &[Worker],
    limiter: &Limiter,
    refuse: impl Fn(Accepted),
) {
    loop {
        let (stream, peer) = accept(listener).await;
        let Some(permit) = limiter.try_permit(peer) else {
            tracing::debug!(?peer, "too many connections; refused a new one");
            refuse(stream);
            continue;
        };
        // A worker that panicked has no connections and would get all of them.
        let counts = workers.iter().map(|worker| {
            (!worker.connections.is_closed()).then(|| Arc::strong_count(&worker.share))
        });
        let worker = chosen(counts, arrives_on(&stream)).map(|number| &workers[number]);
        if let (Ok(stream), Some(worker)) = (Handed::new(stream), worker) {
            let _ = worker
                .connections
                .send((stream, permit.counted(&worker.share)));
        }
    }
}

/// Number of the worker that gets a connection whose packets arrive on `cpu`: one with the fewest connections, of
/// these the one of that CPU. The count of a worker that has ended is `None`.
fn chosen(
    counts: impl ExactSizeIterator<Item = Option<usize>>,
    cpu: Option<usize>,
) -> Option<usize> {
    let near = cpu.and_then(|cpu| cpu.checked_rem(counts.len()));
    let running = counts
        .enumerate()
        .filter_map(|(number, count)| Some((number, count?)));
    let fewest = running.min_by_key(|(number, count)| (*count, near != Some(*number)));
    fewest.map(|(number, _)| number)
}

/// CPU on which the packets of a connection arrive; a Unix socket has none.
#[cfg(target_os = "linux")]
fn arrives_on(stream: &Accepted) -> Option<usize> {
    match stream {
        Accepted::Left(socket) => SockRef::from(socket).cpu_affinity().ok(),
        Accepted::Right(_) => None,
    }
}

/// Only Linux says it.
#[cfg(not(target_os = "linux"))]
fn arrives_on(_: &Accepted) -> Option<usize> {
    None
}

/// Ready once no worker is left.
async fn all_ended(workers: &[Worker]) {
    for worker in workers {
        worker.connections.closed().await;
    }
}

/// Body of a worker's thread. First reports whether its runtime, which cannot leave the thread, was
/// created.
fn run<F: Future<Output = ()>>(
    made: &SyncSender<io::Result<()>>,
    work: impl FnOnce() -> F,
    shutdown: &CancellationToken,
    drain_limit: Duration,
) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    let (runtime, result) = match runtime {
        Ok(runtime) => (Some(runtime), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let _ = made.send(result);
    let Some(runtime) = runtime else { return };
    runtime.block_on(async {
        let overdue = async {
            shutdown.cancelled().await;
            sleep(drain_limit).await;
        };
        tokio::select! {
            () = work() => {}
            () = overdue => {
                tracing::warn!(?drain_limit, "requests were still in flight; they end unanswered");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worker of each connection in turn, by the CPU on which it arrives.
    fn dealt(workers: usize, cpus: &[Option<usize>]) -> Vec<usize> {
        let mut counts = vec![Some(0); workers];
        let deal = |cpu: &Option<usize>| {
            let number = chosen(counts.iter().copied(), *cpu).expect("a worker");
            counts[number] = counts[number].map(|count| count + 1);
            number
        };
        cpus.iter().map(deal).collect()
    }

    #[test]
    fn a_worker_gets_the_connections_of_its_cpu() {
        let (first, second) = (Some(0), Some(1));
        assert_eq!(dealt(2, &[second, first, first, second]), [1, 0, 0, 1]);
        assert_eq!(
            dealt(2, &[Some(5), Some(4)]),
            [1, 0],
            "the program has CPUs 4 and 5"
        );
        assert_eq!(dealt(1, &[second, None]), [0, 0]);
    }

    #[test]
    fn no_worker_has_more_than_one_connection_more_wherever_they_arrive() {
        assert_eq!(dealt(3, &[Some(1); 6]), [1, 0, 2, 1, 0, 2]);
        assert_eq!(dealt(3, &[None; 6]), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_worker_that_has_ended_gets_no_connection() {
        assert_eq!(chosen([None, Some(9)].into_iter(), Some(0)), Some(1));
        assert_eq!(chosen([None, None].into_iter(), Some(0)), None);
        assert_eq!(chosen([].into_iter(), Some(0)), None);
    }
}

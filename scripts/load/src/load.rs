//! One round: a number of requests in flight for a time, and the latency of each.
//!
//! The requests come from threads with their own runtimes, so that a connection stays on one
//! thread, as in a well-made client. Both sides of a comparison get the same requests.

pub(crate) mod grpc;
pub(crate) mod rest;

pub(crate) use grpc::{Client, channel, client};

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::thread::CpuSet;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Failure;
use crate::cores::keep_to;
use crate::proc::{cpu_seconds, machine_cpu_seconds};

/// Unary requests share this many connections at most, as the channels of one client do.
const MOST_CHANNELS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Protocol {
    #[serde(rename = "gRPC")]
    Grpc,
    #[serde(rename = "REST")]
    Rest,
    #[serde(rename = "REST, JSON")]
    Json,
    /// gRPC of both programs that serve it.
    #[serde(rename = "gRPC, programs")]
    Programs,
    /// Of servers that would trace their callers.
    #[serde(rename = "REST, traces")]
    Traces,
}

/// The request of a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) protocol: Protocol,
    pub(crate) in_flight: usize,
    /// Maximum; a connection belongs to one thread.
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    /// Cores of the threads; any if `None`.
    pub(crate) cores: Option<CpuSet>,
}

/// The outcome of a round. Latencies are in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Round {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// CPU time of the server per request, in microseconds.
    pub(crate) server_cpu: f64,
    /// Cores used by neither the server nor this program.
    pub(crate) others: f64,
}

/// Sends one request after another.
pub(crate) trait Caller: Send + 'static {
    fn call(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Runs a round against the server at `address` with process ID `pid`. Blocks.
pub(crate) fn round(plan: Plan, address: SocketAddr, pid: u32) -> Result<Round, Failure> {
    let connections = match plan.protocol {
        Protocol::Grpc | Protocol::Programs => plan.in_flight.min(MOST_CHANNELS),
        Protocol::Rest | Protocol::Json | Protocol::Traces => plan.in_flight,
    };
    let threads = plan.threads.clamp(1, connections);
    let ready = Arc::new(Barrier::new(threads + 1));
    let turn = Arc::new(Barrier::new(threads));
    // Created before the threads: a thread that fails to start would leave the others waiting.
    let runtime = || Builder::new_current_thread().enable_all().build();
    let runtimes = (0..threads)
        .map(|_| runtime())
        .collect::<Result<Vec<_>, _>>()?;
    let waiting = runtime()?;
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..threads)
            .zip(runtimes)
            .map(|(thread, runtime)| {
                let lane = Lane {
                    runtime,
                    cores: plan.cores,
                    address,
                    mine: (0..connections)
                        .map(|number| dealt_to(number, threads) == thread)
                        .collect(),
                    in_flight: plan.in_flight,
                    duration: plan.duration,
                    turn: Arc::clone(&turn),
                    ready: Arc::clone(&ready),
                };
                scope.spawn(move || match plan.protocol {
                    Protocol::Grpc | Protocol::Programs => lane.run(grpc::callers),
                    Protocol::Rest | Protocol::Traces => {
                        lane.run(async |at, n| rest::callers(rest::TEXT, at, n).await)
                    }
                    Protocol::Json => {
                        lane.run(async |at, n| rest::callers(rest::JSON, at, n).await)
                    }
                })
            })
            .collect();

        waiting.block_on(ready.wait());
        let before = CpuTime::now(pid)?;
        let mut latency = latencies();
        let mut seconds = 0.0_f64;
        for lane in lanes {
            let (part, took) = lane.join().map_err(|_| "a thread of requests panicked")??;
            latency.add(part)?;
            seconds = seconds.max(took.as_secs_f64());
        }
        let after = CpuTime::now(pid)?;
        Ok(Round::of(&latency, seconds, before, after))
    })
}

/// The thread of a connection: the sum of its number's digits, in base `threads`.
///
/// Servers deal connections out to their threads one by one. Where one of these served one thread of the client alone,
/// the kernel would keep both on one CPU, and a request would cost less than among callers who know of no threads. So
/// each thread of a server gets as many connections of each thread here, whichever power of `threads` the server has.
fn dealt_to(mut connection: usize, threads: usize) -> usize {
    let mut sum = 0;
    while threads > 1 && connection > 0 {
        sum += connection % threads;
        connection /= threads;
    }
    sum % threads
}

/// CPU seconds so far.
#[derive(Clone, Copy)]
struct CpuTime {
    server: f64,
    client: f64,
    machine: f64,
}

impl CpuTime {
    fn now(server: u32) -> Result<Self, Failure> {
        let machine = machine_cpu_seconds()?;
        let client = cpu_seconds(std::process::id())?;
        Ok(Self {
            server: cpu_seconds(server)?,
            client,
            machine,
        })
    }
}

impl Round {
    fn of(latency: &Histogram<u64>, seconds: f64, before: CpuTime, after: CpuTime) -> Self {
        let server = after.server - before.server;
        let ours = server + after.client - before.client;
        let micros = |quantile| latency.value_at_quantile(quantile) as f64 / 1000.0;
        let requests = latency.len();
        Self {
            requests,
            per_second: requests as f64 / seconds,
            p50: micros(0.5),
            p99: micros(0.99),
            p999: micros(0.999),
            server_cpu: server * 1e6 / requests as f64,
            others: (after.machine - before.machine - ours).max(0.0) / seconds,
        }
    }
}

/// Nanoseconds, 1 µs to 1 min, to three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1_000, 60_000_000_000, 3)
        .expect("these bounds are in order and apart");
    histogram.auto(true);
    histogram
}

/// The work of one thread.
struct Lane {
    runtime: Runtime,
    cores: Option<CpuSet>,
    address: SocketAddr,
    /// Which of all connections are this thread's.
    mine: Vec<bool>,
    /// Requests in flight of all threads together.
    in_flight: usize,
    duration: Duration,
    /// All threads meet here after each connection.
    turn: Arc<Barrier>,
    /// All threads meet here once all connections are open.
    ready: Arc<Barrier>,
}

impl Lane {
    /// `open` opens a connection for a number of callers.
    fn run<C: Caller>(
        &self,
        open: impl AsyncFn(SocketAddr, usize) -> Result<Vec<C>, Failure>,
    ) -> Result<(Histogram<u64>, Duration), Failure> {
        self.runtime.block_on(async {
            // The other threads wait for this one even if it fails.
            let callers = self.callers(open).await;
            self.ready.wait().await;
            let start = Instant::now();
            let end = start + self.duration;
            let latency = Arc::new(Mutex::new(latencies()));
            let mut tasks: JoinSet<Result<(), Failure>> = callers?
                .into_iter()
                .map(|caller| one_after_another(caller, end, Arc::clone(&latency)))
                .collect();
            while let Some(ended) = tasks.join_next().await {
                ended??;
            }
            let took = start.elapsed();
            let latency = latency.lock().map_err(|_| "a request panicked")?.clone();
            Ok((latency, took))
        })
    }

    /// The callers of this thread's connections, each of which has answered once. Connections are
    /// opened in order of number.
    async fn callers<C: Caller>(
        &self,
        open: impl AsyncFn(SocketAddr, usize) -> Result<Vec<C>, Failure>,
    ) -> Result<Vec<C>, Failure> {
        let kept = self.cores.as_ref().map_or(Ok(()), keep_to);
        let mut callers = kept.map(|()| Vec::new()).map_err(Failure::from);
        for (number, mine) in self.mine.iter().enumerate() {
            if let (true, Ok(so_far)) = (mine, &mut callers) {
                let sharing = (number..self.in_flight).step_by(self.mine.len()).count();
                match open(self.address, sharing).await {
                    Ok(more) => so_far.extend(more),
                    Err(failure) => callers = Err(failure),
                }
            }
            self.turn.wait().await;
        }
        callers
    }
}

async fn one_after_another<C: Caller>(
    mut caller: C,
    end: Instant,
    latency: Arc<Mutex<Histogram<u64>>>,
) -> Result<(), Failure> {
    let mut sent = Instant::now();
    while sent < end {
        caller.call().await?;
        let answered = Instant::now();
        let nanos = u64::try_from((answered - sent).as_nanos())?;
        latency
            .lock()
            .map_err(|_| "a request panicked")?
            .record(nanos)?;
        sent = answered;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_of_a_server_gets_as_many_connections_of_each_thread() {
        for (threads, servers) in [(2, [1, 2, 4, 8]), (3, [1, 3, 9, 27]), (1, [1, 2, 3, 4])] {
            for server_threads in servers {
                let mut dealt = vec![vec![0; threads]; server_threads];
                for connection in 0..threads * server_threads * 2 {
                    dealt[connection % server_threads][dealt_to(connection, threads)] += 1;
                }
                let even = vec![vec![2; threads]; server_threads];
                assert_eq!(
                    dealt, even,
                    "{threads} threads, {server_threads} of the server"
                );
            }
        }
    }
}

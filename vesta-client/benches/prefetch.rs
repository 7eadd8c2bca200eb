//! Cost of an ID from a prefetching client, over loopback from a server that only counts, compared
//! with a bare shared counter in the same run.

use std::hint::black_box;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use vesta_client::{Client, Prefetch, blocking};
use vesta_intf::grpc::v1::id_service_server::{self, IdServiceServer};
use vesta_intf::grpc::v1::{self, GenRunsRequest, GenRunsResponse};

/// Hands out 1, 2, 3, … in one run per call.
#[derive(Default)]
struct Counting(AtomicU64);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl id_service_server::IdService for Counting {
    async fn gen_runs(&self, request: Request<GenRunsRequest>) -> Answer<GenRunsResponse> {
        let count = request.into_inner().count;
        let first = 1 + self.0.fetch_add(u64::from(count), Ordering::Relaxed);
        Ok(Response::new(GenRunsResponse {
            runs: vec![v1::IdRun {
                first,
                step: 1,
                count,
            }],
        }))
    }

    async fn gen_id(&self, _: Request<v1::GenIdRequest>) -> Answer<v1::GenIdResponse> {
        let id = 1 + self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Response::new(v1::GenIdResponse { id }))
    }

    async fn gen_ids(&self, _: Request<v1::GenIdsRequest>) -> Answer<v1::GenIdsResponse> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn exp_id(&self, _: Request<v1::ExpIdRequest>) -> Answer<v1::Id> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn make_id(&self, _: Request<v1::MakeIdRequest>) -> Answer<v1::MakeIdResponse> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn trans_time(&self, _: Request<v1::TransTimeRequest>) -> Answer<v1::TransTimeResponse> {
        Err(Status::unimplemented("not needed here"))
    }
}

fn serve() -> SocketAddr {
    let (bound, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into())
                .unwrap()
                .with_nodelay(Some(true));
            bound.send(incoming.local_addr().unwrap()).unwrap();
            tonic::transport::Server::builder()
                .add_service(IdServiceServer::new(Counting::default()))
                .serve_with_incoming(incoming)
                .await
                .unwrap();
        });
    });
    address.recv().unwrap()
}

/// Each thread takes its share of the iterations; the result is the time of all of them.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn share(threads: u64, iterations: u64, one: impl Fn() -> u64 + Sync) -> Duration {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..iterations.div_ceil(threads) {
                    black_box(one());
                }
            });
        }
    });
    start.elapsed()
}

fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    threads: u64,
    one: impl Fn() -> u64 + Sync,
) {
    group.bench_function(BenchmarkId::new(name, threads), |b| {
        b.iter_custom(|iterations| share(threads, iterations, &one));
    });
}

fn cost_of_an_id(c: &mut Criterion) {
    let address = format!("http://{}", serve());
    let prefetch = |capacity| Prefetch {
        capacity,
        low_water: capacity / 2,
        ..Prefetch::default()
    };
    let client = |capacity| -> blocking::Client {
        let builder = Client::builder()
            .endpoint(address.clone())
            .prefetch(prefetch(capacity));
        let client = builder.build_blocking().unwrap();
        client.gen_id().unwrap();
        client
    };
    let (large, small) = (client(1_048_576), client(10_000));
    let counter = AtomicU64::new(0);

    let mut group = c.benchmark_group("cost of an id from a prefetching client");
    group.throughput(Throughput::Elements(1)).sample_size(30);
    for threads in [1, 8] {
        measure(&mut group, "counter", threads, || {
            counter.fetch_add(1, Ordering::Relaxed)
        });
        measure(&mut group, "prefetch 1048576", threads, || {
            large.gen_id().unwrap()
        });
        measure(&mut group, "prefetch 10000", threads, || {
            small.gen_id().unwrap()
        });
    }

    // The asynchronous call, from one task.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let client = {
        let _inside = runtime.enter();
        let builder = Client::builder()
            .endpoint(address.clone())
            .prefetch(prefetch(1_048_576));
        builder.build().unwrap()
    };
    runtime.block_on(client.gen_id()).unwrap();
    let _inside = runtime.enter();
    group.bench_function(BenchmarkId::new("prefetch 1048576 async", 1), |b| {
        b.iter(|| poll_or_wait(&runtime, &client));
    });
    group.finish();
}

/// One poll of `gen_id`; waits only if the buffer is empty.
fn poll_or_wait(runtime: &tokio::runtime::Runtime, client: &Client) -> u64 {
    let mut call = pin!(client.gen_id());
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(id) => id.unwrap(),
        Poll::Pending => runtime.block_on(call).unwrap(),
    }
}

criterion_group!(benches, cost_of_an_id);
criterion_main!(benches);

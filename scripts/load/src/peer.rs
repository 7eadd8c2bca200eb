//! The bare servers: the frameworks with their defaults, on Vesta's allocator and runtimes.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::available_parallelism;

use actix_web::{App, HttpServer, web};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_server::{IdService, IdServiceServer};

use crate::Failure;

/// The text before the address in the first line of output.
pub(crate) const LABEL: &str = "listening on";

/// An ID has 19 decimal digits until the layout's last years.
const DIGITS: &str = "2407837855670862845";

/// A counter over gRPC, in messages as large as those of real IDs.
#[derive(Default)]
struct Echo(AtomicU64);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl IdService for Echo {
    async fn gen_id(&self, _: Request<v1::GenIdRequest>) -> Answer<v1::GenIdResponse> {
        Ok(Response::new(v1::GenIdResponse {
            id: 1 + self.0.fetch_add(1, Relaxed),
        }))
    }

    async fn gen_ids(&self, _: Request<v1::GenIdsRequest>) -> Answer<v1::GenIdsResponse> {
        Err(only_gen_id())
    }

    async fn gen_runs(&self, _: Request<v1::GenRunsRequest>) -> Answer<v1::GenRunsResponse> {
        Err(only_gen_id())
    }

    async fn exp_id(&self, _: Request<v1::ExpIdRequest>) -> Answer<v1::Id> {
        Err(only_gen_id())
    }

    async fn make_id(&self, _: Request<v1::MakeIdRequest>) -> Answer<v1::MakeIdResponse> {
        Err(only_gen_id())
    }

    async fn trans_time(&self, _: Request<v1::TransTimeRequest>) -> Answer<v1::TransTimeResponse> {
        Err(only_gen_id())
    }
}

fn only_gen_id() -> Status {
    Status::unimplemented("the bare server answers GenId only")
}

/// Serves until the process ends: tonic's server with its defaults and TCP_NODELAY, on the runtimes of
/// vesta-server (an acceptor, and a worker thread with its own runtime for each CPU). On one
/// multi-threaded runtime tonic is slower, and the comparison would be one of runtimes.
pub(crate) fn echo_grpc(listen: SocketAddr) -> Result<(), Failure> {
    let server = Server::builder().add_service(IdServiceServer::new(Echo::default()));
    let workers = (0..available_parallelism()?.get())
        .map(|number| worker(number, server.clone()))
        .collect::<io::Result<Vec<_>>>()?;
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind(listen).await?;
            println!("{LABEL} {}", listener.local_addr()?);
            // Round-robin: all connections of a round are opened before it and closed after it, so no
            // worker has more than one connection more than another.
            for worker in workers.iter().cycle() {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                worker.send(stream.into_std()?)?;
            }
            Ok(())
        })
}

/// Starts a worker that serves the connections sent to it.
fn worker(number: usize, server: Router) -> io::Result<UnboundedSender<std::net::TcpStream>> {
    let (connections, incoming) = unbounded_channel();
    let incoming = UnboundedReceiverStream::new(incoming).map(TcpStream::from_std);
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name(format!("bare-worker-{number}"))
        .spawn(move || runtime.block_on(server.serve_with_incoming(incoming)))?;
    Ok(connections)
}

/// Serves until the process ends: actix-web's server with its defaults and one route.
#[actix_web::main]
pub(crate) async fn hello_rest(listen: SocketAddr) -> Result<(), Failure> {
    let app = || App::new().route("/genid", web::get().to(async || DIGITS));
    let server = HttpServer::new(app).bind(listen)?;
    for address in server.addrs() {
        println!("{LABEL} {address}");
    }
    Ok(server.run().await?)
}

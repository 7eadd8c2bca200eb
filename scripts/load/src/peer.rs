//! The servers that do nothing: the frameworks as they come, with Vesta's allocator.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use actix_web::{App, HttpServer, web};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_server::{IdService, IdServiceServer};

use crate::Failure;

/// What stands before the address in the first line of output.
pub(crate) const LABEL: &str = "listening on";

/// An ID has 19 decimal digits until the layout's last years.
const DIGITS: &str = "2407837855670862845";

/// A counter over the wire, in messages as large as those of real IDs.
#[derive(Default)]
struct Echo(AtomicU64);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl IdService for Echo {
    async fn gen_id(&self, _: Request<v1::GenIdRequest>) -> Answer<v1::GenIdResponse> {
        Ok(Response::new(v1::GenIdResponse { id: 1 + self.0.fetch_add(1, Relaxed) }))
    }

    async fn gen_ids(&self, _: Request<v1::GenIdsRequest>) -> Answer<v1::GenIdsResponse> {
        Err(only_gen_id())
    }

    async fn gen_runs(&self, _: Request<v1::GenRunsRequest>) -> Answer<v1::GenRunsResponse> {
        Err(only_gen_id())
    }

    type StreamIdsStream = tokio_stream::Empty<Result<v1::GenIdsResponse, Status>>;

    async fn stream_ids(&self, _: Request<v1::StreamIdsRequest>) -> Answer<Self::StreamIdsStream> {
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

/// Serves until the process ends: tokio's multi-threaded runtime and tonic's server, both with
/// their defaults, and TCP_NODELAY.
#[tokio::main]
pub(crate) async fn echo_grpc(listen: SocketAddr) -> Result<(), Failure> {
    let incoming = TcpIncoming::bind(listen)?.with_nodelay(Some(true));
    println!("{LABEL} {}", incoming.local_addr()?);
    let echo = IdServiceServer::new(Echo::default());
    Ok(Server::builder().add_service(echo).serve_with_incoming(incoming).await?)
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

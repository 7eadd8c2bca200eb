//! Routing of paths to services.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::service::Routes;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tower::Service;
use vesta_boot::{Running, Span};
use vesta_intf::grpc::FILE_DESCRIPTOR_SET;
use vesta_intf::grpc::v1::id_service_server::IdServiceServer;
use vesta_intf::grpc::v1::pool_service_server::PoolServiceServer;
use vesta_intf::grpc::v1::segment_service_server::SegmentServiceServer;
use vesta_intf::grpc::v1::serial_service_server::SerialServiceServer;
use vesta_net::Requests;

use crate::grpc::Ids;
use crate::health::Health;
use crate::in_flight::{Answer, opened};
use crate::pool_server::{self, PoolServer};
use crate::segments::Segments;
use crate::serials::Serials;
use crate::{access, deadline, methods};

/// Maximum request size in bytes.
const DECODE_LIMIT: usize = 64 * 1024;

/// All services of the server. ID and segment calls bypass the general router, which would clone and
/// box for each call.
#[derive(Clone)]
pub(crate) struct Services {
    ids: IdServiceServer<Ids>,
    segments: SegmentServiceServer<Segments>,
    others: Routes,
    running: Arc<Running>,
}

impl Services {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        let ids = Ids(Arc::clone(&running));
        let segments = Segments(Arc::clone(&running));
        let serials = Serials(Arc::clone(&running));
        let serials = SerialServiceServer::new(serials).max_decoding_message_size(DECODE_LIMIT);
        let pool_server = PoolServiceServer::new(PoolServer::new(Arc::clone(&running)))
            .max_decoding_message_size(pool_server::DECODE_LIMIT);
        let health = HealthServer::new(Health::of(&running));
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                // Details of errors, so that clients by reflection can show them.
                .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
        };
        let proof = "the descriptor sets are generated and checked by a test";
        let others = Routes::new(health.max_decoding_message_size(DECODE_LIMIT))
            .add_service(serials)
            .add_service(pool_server)
            .add_service(
                reflection()
                    .build_v1()
                    .expect(proof)
                    .max_decoding_message_size(DECODE_LIMIT),
            )
            .add_service(
                reflection()
                    .build_v1alpha()
                    .expect(proof)
                    .max_decoding_message_size(DECODE_LIMIT),
            )
            .prepare();
        Self {
            ids: IdServiceServer::new(ids).max_decoding_message_size(DECODE_LIMIT),
            segments: SegmentServiceServer::new(segments).max_decoding_message_size(DECODE_LIMIT),
            others,
            running,
        }
    }
}

impl Service<Request<Body>> for Services {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Services made by tonic are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Answer {
        let method = methods::at(request.uri().path());
        let span = method.map_or_else(Span::default, |method| {
            let header = |name| request.headers().get(name)?.to_str().ok();
            Span::begin(header, || methods::TABLE[method].described())
        });
        if let Some(refusal) = access::refuses(&self.running, &mut request) {
            return Answer::new(ready(Ok(refusal.into_http())), None, span);
        }
        let connection = request
            .extensions()
            .get::<Requests>()
            .cloned()
            .unwrap_or_default();
        let in_flight = Some(connection.begin());
        let path = request.uri().path();
        if method.is_some() && path.starts_with("/vesta.v1.IdService/") {
            Answer::new(self.ids.call(request), in_flight, span)
        } else if method.is_some() && path.starts_with("/vesta.v1.SegmentService/") {
            Answer::new(self.segments.call(request), in_flight, span)
        } else if method.is_some() {
            Answer::new(self.others.call(request), in_flight, span)
        } else {
            // Health may be watched, and reflection is a stream.
            let caller = deadline::in_headers(request.headers());
            let limit = self.running.config.limits.request_timeout;
            let path = path.to_owned();
            let work = opened(self.others.call(request), connection, caller, limit);
            Answer::new(explained(work, path), in_flight, span)
        }
    }
}

/// tonic refuses an unknown service or method without a text.
async fn explained(
    work: impl Future<Output = Result<Response<Body>, Infallible>>,
    path: String,
) -> Result<Response<Body>, Infallible> {
    let Ok(response) = work.await;
    let status = Status::from_header_map(response.headers());
    let is_bare = |it: &Status| it.code() == Code::Unimplemented && it.message().is_empty();
    Ok(match status.is_some_and(|it| is_bare(&it)) {
        true => Status::unimplemented(methods::unknown(&path)).into_http(),
        false => response,
    })
}

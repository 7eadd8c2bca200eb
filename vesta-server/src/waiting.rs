//! The listener before the program has a machine ID: health, and a refusal that says when to retry.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic_health::pb::health_server::HealthServer;
use tower::Service;
use vesta_boot::{NOT_STARTED, Span, Waiting};
use vesta_net::{Listening, Requests};

use crate::health::Health;
use crate::in_flight::Answer;
use crate::serve::{Timeouts, listen};

/// Answers until the program has started or must stop.
pub(crate) fn wait(listener: Listening, waiting: Arc<Waiting>) -> io::Result<()> {
    let health = HealthServer::new(Health::of_waiting(&waiting));
    let Waiting {
        config,
        security,
        metrics,
        ..
    } = &*waiting;
    let (threads, timeouts) = (waiting.threads(), Timeouts::default());
    listen(
        listener,
        (config, security, metrics),
        &threads,
        timeouts,
        Refusals(health),
    )
}

/// Health; every other call is refused.
#[derive(Clone)]
struct Refusals(HealthServer<Health>);

impl Service<Request<Body>> for Refusals {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let requests = request.extensions().get::<Requests>();
        let in_flight = requests.map(Requests::begin);
        if request.uri().path().starts_with("/grpc.health.v1.Health/") {
            return Answer::new(self.0.call(request), in_flight, Span::default());
        }
        let refusal = Status::from(NOT_STARTED).into_http();
        Answer::new(ready(Ok(refusal)), in_flight, Span::default())
    }
}

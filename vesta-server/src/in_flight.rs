//! Requests in flight, counted for their connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use http_body_util::{BodyStream, StreamBody};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::Response;
use vesta_boot::Span;
use vesta_boot::net::{InFlight, Requests};
use vesta_intf::grpc;

/// Future of a response; until it is ready, its request is in flight.
pub(crate) struct Answer {
    work: Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>,
    in_flight: Option<InFlight>,
    /// The connection, if the response is a stream.
    streams: Option<Requests>,
    span: Span,
}

impl Answer {
    pub(crate) fn new(
        work: impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
        connection: Option<Requests>,
        is_stream: bool,
        span: Span,
    ) -> Self {
        let in_flight = connection.as_ref().map(Requests::begin);
        Self { work: Box::pin(work), in_flight, streams: connection.filter(|_| is_stream), span }
    }
}

impl Future for Answer {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.work.as_mut().poll(cx));
        self.in_flight = None;
        let failure = response.as_ref().map(|it| Status::from_header_map(it.headers()));
        if let Ok(Some(failure)) = failure {
            self.span.fails(grpc::kind_of(&failure).name());
        }
        Poll::Ready(match self.streams.take() {
            Some(connection) => response.map(|response| {
                response.map(|body| {
                    let frames = BodyStream::new(body);
                    Body::new(StreamBody::new(Counted { frames, connection, in_flight: None }))
                })
            }),
            None => response,
        })
    }
}

/// Frames of a response that count as a request in flight while the next one is awaited, but not while
/// the caller leaves one unread: then nobody asks for the next.
struct Counted {
    frames: BodyStream<Body>,
    connection: Requests,
    in_flight: Option<InFlight>,
}

impl Stream for Counted {
    type Item = <BodyStream<Body> as Stream>::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        this.in_flight.get_or_insert_with(|| this.connection.begin());
        let frame = ready!(Pin::new(&mut this.frames).poll_next(cx));
        this.in_flight = None;
        Poll::Ready(frame)
    }
}

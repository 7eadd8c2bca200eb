//! Requests in flight, counted for their connection, and the head of each response.
//!
//! A response that fails before its first message must be one HEADERS frame that ends the stream
//! (Trailers-Only): gRPC clients drop the status of a head that a DATA frame follows, even an empty one.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use http_body_util::{BodyStream, StreamBody};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::{Code, Status};
use vesta_boot::Span;
use vesta_intf::{IdError, grpc};
use vesta_net::{InFlight, Requests};

/// Future of a response; until it is ready, its request is in flight.
pub(crate) struct Answer {
    work: Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>,
    in_flight: Option<InFlight>,
    span: Span,
}

impl Answer {
    pub(crate) fn new(
        work: impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
        in_flight: Option<InFlight>,
        span: Span,
    ) -> Self {
        Self {
            work: Box::pin(work),
            in_flight,
            span,
        }
    }
}

impl Future for Answer {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(mut response) = ready!(self.work.as_mut().poll(cx));
        self.in_flight = None;
        let status = Status::from_header_map(response.headers());
        let code = status.as_ref().map_or(Code::Ok, Status::code);
        let failed = status.as_ref().filter(|_| code != Code::Ok);
        let error = failed.map(grpc::kind_of);
        self.span
            .answered("rpc.grpc.status_code", code as u16, error);
        if status.is_some() {
            *response.body_mut() = Body::empty();
        }
        Poll::Ready(Ok(response))
    }
}

/// The response of a stream, held back until its first message. If an error or the end comes first, it
/// becomes the head. At the caller's deadline the call fails; after `limit` the head is sent alone.
pub(crate) async fn opened(
    work: impl Future<Output = Result<Response<Body>, Infallible>>,
    connection: Requests,
    caller: Option<Duration>,
    limit: Duration,
) -> Result<Response<Body>, Infallible> {
    let Ok(response) = work.await;
    let (mut parts, body) = response.into_parts();
    let mut frames = Counted {
        first: None,
        frames: BodyStream::new(body),
        connection,
        in_flight: None,
    };
    let limit = caller.map_or(limit, |caller| caller.min(limit));
    let first = timeout(limit, poll_fn(|cx| Pin::new(&mut frames).poll_next(cx))).await;
    let first = match first {
        Err(_) if caller == Some(limit) => {
            return Ok(Status::from(IdError::DeadlineExceeded).into_http());
        }
        Err(_) => None,
        Ok(None) => return Ok(Response::from_parts(parts, Body::empty())),
        Ok(Some(Ok(frame))) => match frame.into_trailers() {
            Ok(trailers) => {
                parts.headers.extend(trailers);
                return Ok(Response::from_parts(parts, Body::empty()));
            }
            Err(message) => Some(Ok(message)),
        },
        Ok(Some(error)) => Some(error),
    };
    frames.first = first;
    Ok(Response::from_parts(
        parts,
        Body::new(StreamBody::new(frames)),
    ))
}

/// Frames of a response. It counts as a request in flight while the next frame is awaited, but not
/// while the caller leaves one unread: then nothing polls for the next.
struct Counted {
    /// The first frame, already taken from the body.
    first: Option<<BodyStream<Body> as Stream>::Item>,
    frames: BodyStream<Body>,
    connection: Requests,
    in_flight: Option<InFlight>,
}

impl Stream for Counted {
    type Item = <BodyStream<Body> as Stream>::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.first.is_some() {
            return Poll::Ready(this.first.take());
        }
        this.in_flight
            .get_or_insert_with(|| this.connection.begin());
        let frame = ready!(Pin::new(&mut this.frames).poll_next(cx));
        this.in_flight = None;
        Poll::Ready(frame)
    }
}

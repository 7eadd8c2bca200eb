//! Responses of the admin listener: JSON, and refusals as problems.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use vesta_intf::plain_lines;

use crate::answers::Problem;

/// A JSON response.
pub(super) fn respond(status: StatusCode, body: &impl Serialize) -> Response {
    written(status, "application/json", body)
}

/// The response to a refused request.
pub(super) fn refused(problem: impl Into<Box<Problem>>) -> Response {
    let problem = problem.into();
    let status = StatusCode::from_u16(problem.status).expect("one of 400 to 599");
    let mut response = written(status, Problem::MEDIA, &problem);
    if let Some(seconds) = problem.retry_after_seconds() {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Media type of gRPC.
pub(super) const GRPC: &str = "application/grpc";

/// The answer to a client of gRPC, which shows no body.
pub(super) fn to_grpc() -> Response {
    let headers = [
        ("content-type", GRPC),
        ("grpc-status", "12"), // UNIMPLEMENTED
        (
            "grpc-message",
            "this is the admin listener; gRPC has another port: the setting grpc.listen, 50051 by default",
        ),
    ];
    headers.into_response()
}

fn written(status: StatusCode, media: &'static str, body: &impl Serialize) -> Response {
    let body = serde_json::to_string_pretty(body).expect("strings and numbers always serialise");
    let media = [(header::CONTENT_TYPE, media)];
    (status, media, plain_lines(&format!("{body}\n"))).into_response()
}

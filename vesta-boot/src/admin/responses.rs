//! Responses of the admin listener: JSON, and refusals as problems.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use vesta_intf::{ErrorKind, plain_lines};

use super::state::AdminState;

/// The refusal of a feature that is off, or not available yet.
pub(super) fn off(state: &AdminState, why: &str) -> Refusal {
    match state.service() {
        Some(_) => (StatusCode::NOT_FOUND, why.to_owned()),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the program has not started yet".to_owned(),
        ),
    }
}

/// Leaves absent values out: their members are missing, never null.
fn present(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members
                .iter_mut()
                .for_each(|(_, it)| *it = present(it.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| *it = present(it.take())),
        _ => {}
    }
    value
}

/// A JSON response; errors become problems.
pub(super) fn respond(status: StatusCode, body: Value) -> Response {
    let body = present(body);
    let kind = if status.is_success() {
        "application/json"
    } else {
        "application/problem+json"
    };
    (
        status,
        [(header::CONTENT_TYPE, kind)],
        plain_lines(&format!("{body:#}\n")),
    )
        .into_response()
}

/// Status and reason of a refused request.
pub(super) type Refusal = (StatusCode, String);

/// A refusal as a problem (RFC 9457), like those of REST.
pub(super) fn refused((status, reason): Refusal) -> Response {
    // The last kind with a status is the general one.
    let known = ErrorKind::all()
        .filter(|kind| kind.http_status() == status.as_u16())
        .last();
    let reason_of_http = status.canonical_reason().unwrap_or_default();
    let of_http = || reason_of_http.to_ascii_uppercase().replace(' ', "_");
    let kind = known.map_or_else(of_http, |kind| kind.name().to_owned());
    let title = known.map_or(reason_of_http, ErrorKind::title);
    let urn = format!(
        "urn:vesta:problem:{}",
        kind.to_ascii_lowercase().replace('_', "-")
    );
    let problem = json!({
        "type": urn, "title": title, "status": status.as_u16(), "detail": reason, "kind": kind,
    });
    respond(status, problem)
}

//! Who may see what on the admin listener.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use vesta_intf::IdError;

use super::{AdminState, JSON};
use crate::{Denied, Scopes};

/// Lets a request through if its token is good for it.
pub(super) async fn check(
    State(AdminState { security, .. }): State<AdminState>,
    request: Request,
    next: Next,
) -> Response {
    let Some(auth) = &security.auth else { return next.run(request).await };
    let needs = match (request.uri().path(), request.method()) {
        // Orchestrators have no token.
        ("/healthz" | "/readyz", _) => Scopes::NONE,
        (_, &(Method::GET | Method::HEAD)) => Scopes::METRICS | Scopes::ADMIN,
        _ => Scopes::ADMIN,
    };
    let token = request.headers().get(header::AUTHORIZATION);
    match auth.check(token.map(HeaderValue::as_bytes), needs) {
        Ok(()) => next.run(request).await,
        Err(denied) => refuse(denied),
    }
}

fn refuse(denied: Denied) -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, denied.challenge())];
    let error = IdError::from(denied);
    let status = error.kind().http_status();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::UNAUTHORIZED);
    let body = serde_json::json!({ "error": error.to_string() }).to_string() + "\n";
    (status, challenge, JSON, body).into_response()
}

//! Authorization on the admin listener.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use vesta_intf::IdError;

use super::{AdminState, refused};
use crate::net::Scopes;

/// Lets a request through if its token has the scope that the request needs.
pub(super) async fn check(
    State(state): State<AdminState>,
    request: Request,
    next: Next,
) -> Response {
    let Some(auth) = &state.security.auth else { return next.run(request).await };
    let needs = match (request.uri().path(), request.method()) {
        // Orchestrators have no token.
        ("/healthz" | "/readyz", _) => Scopes::NONE,
        (_, &(Method::GET | Method::HEAD)) => Scopes::METRICS | Scopes::ADMIN,
        _ => Scopes::ADMIN,
    };
    let token = request.headers().get(header::AUTHORIZATION);
    match auth.check(token.map(HeaderValue::as_bytes), needs) {
        Ok(()) => next.run(request).await,
        Err(denied) => {
            let challenge = [(header::WWW_AUTHENTICATE, denied.challenge())];
            let error = IdError::from(denied);
            let status = StatusCode::from_u16(error.kind().http_status());
            let status = status.unwrap_or(StatusCode::UNAUTHORIZED);
            (challenge, refused((status, error.to_string()))).into_response()
        }
    }
}

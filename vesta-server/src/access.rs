//! Authorization: the scope each method needs.

use std::time::Duration;

use tonic::Status;
use tonic::codegen::http::{HeaderValue, Request, header};
use vesta_boot::{Caller, Outcome, Running, Scopes};
use vesta_intf::IdError;

use crate::methods;

/// Authorizes a request. Returns the status of a refused one, which counts as a call of its method;
/// `None` if it is allowed. A request with a token then carries its caller.
pub(crate) fn refuses<B>(running: &Running, request: &mut Request<B>) -> Option<Status> {
    let path = request.uri().path();
    let method = methods::at(path);
    let needs = method.map_or_else(|| others(path), |method| methods::TABLE[method].scope);
    let token = request
        .headers()
        .get_all(header::AUTHORIZATION)
        .iter()
        .map(HeaderValue::as_bytes);
    let denied = match running.security.check(token, needs) {
        Ok(caller) => {
            if caller != Caller::default() {
                request.extensions_mut().insert(caller);
            }
            return None;
        }
        Err(denied) => denied,
    };
    let error = IdError::from(denied);
    if let Some(method) = method {
        running
            .metrics
            .observe(method, Outcome::Error(error.kind()), Duration::ZERO);
    }
    Some(error.into())
}

/// The caller of an allowed call.
pub(crate) fn caller<T>(request: &tonic::Request<T>) -> Caller {
    request.extensions().get().copied().unwrap_or_default()
}

/// Scopes of the other paths: none for health probes, any for reflection and unknown paths.
fn others(path: &str) -> Scopes {
    if path.starts_with("/grpc.health.v1.Health/") {
        Scopes::NONE
    } else {
        Scopes::ANY
    }
}

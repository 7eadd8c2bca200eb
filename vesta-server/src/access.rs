//! Authorization: the scope each method needs.

use std::sync::Arc;
use std::time::Duration;

use tonic::Status;
use tonic::codegen::http::{HeaderValue, Request, header};
use vesta_boot::{Auth, Metrics, Outcome, Running, Scopes};
use vesta_intf::IdError;

use crate::methods;

/// Checks the tokens of calls, if the server requires tokens.
#[derive(Clone)]
pub(crate) struct Access {
    auth: Option<Auth>,
    metrics: Arc<Metrics>,
}

impl Access {
    pub(crate) fn new(running: &Running) -> Self {
        Self { auth: running.security.auth.clone(), metrics: Arc::clone(&running.metrics) }
    }

    /// The status of a refused call, `None` if it is allowed. A refusal counts as a call of its method.
    pub(crate) fn refuses<B>(&self, request: &Request<B>) -> Option<Status> {
        let auth = self.auth.as_ref()?;
        let path = request.uri().path();
        let method = methods::at(path);
        let needs = method.map_or_else(|| others(path), |method| methods::TABLE[method].scope);
        let token = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let denied = auth.check(token, needs).err()?;
        let error = IdError::from(denied);
        if let Some(method) = method {
            self.metrics.observe(method, Outcome::Error(error.kind()), Duration::ZERO);
        }
        Some(error.into())
    }
}

/// Scopes of the other paths: none for health probes, any for reflection and unknown paths.
fn others(path: &str) -> Scopes {
    if path.starts_with("/grpc.health.v1.Health/") { Scopes::NONE } else { Scopes::ANY }
}

//! Authorization: the scope each method needs.

use std::sync::Arc;
use std::time::Duration;

use tonic::Status;
use tonic::codegen::http::{HeaderValue, Request, header};
use vesta_boot::{Auth, Metrics, Outcome, Running, Scopes};
use vesta_intf::IdError;

use crate::grpc::METHODS;

/// Scope of each method, in the order of [`METHODS`].
const SCOPES: [(&str, Scopes); METHODS.len()] = [
    ("/vesta.v1.IdService/GenId", Scopes::GENERATE),
    ("/vesta.v1.IdService/GenIds", Scopes::GENERATE),
    ("/vesta.v1.IdService/GenRuns", Scopes::GENERATE),
    ("/vesta.v1.IdService/StreamIds", Scopes::GENERATE),
    ("/vesta.v1.IdService/ExpId", Scopes::READ),
    ("/vesta.v1.IdService/MakeId", Scopes::READ),
    ("/vesta.v1.IdService/TransTime", Scopes::READ),
    ("/vesta.v1.SegmentService/NextId", Scopes::SEGMENTS),
    ("/vesta.v1.SegmentService/NextIds", Scopes::SEGMENTS),
];

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
        let method = SCOPES.iter().position(|it| it.0 == path);
        let token = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let denied =
            auth.check(token, method.map_or_else(|| others(path), |i| SCOPES[i].1)).err()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_its_scope() {
        for ((path, _), method) in SCOPES.iter().zip(METHODS) {
            assert!(path.ends_with(&format!("/{method}")), "{path} {method}");
        }
    }
}

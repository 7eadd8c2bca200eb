//! Calls to the servers, with endpoint selection, retries and deadlines.

mod calls;
mod rpc;

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::{Code, Extensions, Request, Status, TimeoutExpired};
use vesta_intf::grpc::transport_hint;
use vesta_intf::{ErrorKind, IdError};

pub(crate) use calls::check_count;
use rpc::Rpc;

use crate::endpoints::Order;
use crate::endpoints::{Endpoint, Endpoints};
use crate::fork;
use crate::retry::{Budget, Failed, Retry, Rng};
use crate::secret::Secret;
use crate::trace::{OF_CALLER, Trace};

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) endpoints: Endpoints,
    /// Time limit of a call with all its attempts.
    pub(crate) deadline: Duration,
    /// Time limit of one attempt.
    pub(crate) attempt_timeout: Duration,
    pub(crate) retry: Retry,
    pub(crate) budget: Budget,
    pub(crate) token: Option<Token>,
    pub(crate) trace: Option<Trace>,
    pub(crate) counters: Counters,
    pub(crate) rng: Rng,
    pub(crate) start: Instant,
    /// Process that built the client.
    pub(crate) process: u32,
}

/// A bearer token.
#[derive(Debug)]
pub(crate) struct Token {
    /// Marked as sensitive, so that it is not printed.
    header: MetadataValue<Ascii>,
    text: Secret<Box<str>>,
}

impl Token {
    pub(crate) fn new(Secret(text): Secret<Box<str>>) -> Result<Self, IdError> {
        let invalid = || IdError::invalid("bearer_token", "must be visible ASCII characters");
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid());
        }
        let mut header =
            MetadataValue::try_from(format!("Bearer {text}")).map_err(|_| invalid())?;
        header.set_sensitive(true);
        Ok(Self {
            header,
            text: Secret(text),
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) last_error: Mutex<Option<Box<str>>>,
}

/// Error of an attempt, and its verdict on the endpoint.
struct Fault {
    error: IdError,
    endpoint_failed: bool,
}

impl Remote {
    async fn call<R: Rpc>(&self, message: R) -> Result<R::Response, IdError> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.attempts(message, self.retry.max_attempts).await
    }

    async fn attempts<R: Rpc>(
        &self,
        message: R,
        max_attempts: u32,
    ) -> Result<R::Response, IdError> {
        fork::check(self.process)?;
        let retry = Retry {
            max_attempts,
            ..self.retry
        };
        let headers = OF_CALLER.try_with(MetadataMap::clone);
        let headers =
            headers.unwrap_or_else(|_| self.trace.as_ref().map(Trace::now).unwrap_or_default());
        let deadline = Instant::now() + self.deadline;
        let (mut tried, mut attempts) = (0, 0);
        loop {
            attempts += 1;
            let endpoint = self.endpoints.pick(self.start.elapsed(), &mut tried);
            let left = deadline.saturating_duration_since(Instant::now());
            let request =
                Request::from_parts(headers.clone(), Extensions::default(), message.clone());
            let fault = match self.attempt(endpoint, left, request).await {
                Ok(response) => {
                    endpoint.answered();
                    self.budget.deposit();
                    return Ok(response);
                }
                Err(fault) => fault,
            };
            self.record(endpoint, &fault);
            let seeks = self.endpoints.order == Order::Strict;
            if seeks && fault.error.kind() != ErrorKind::SequenceUsedUp {
                self.endpoints.move_on(endpoint);
            }
            let failed = Failed {
                attempts,
                error: &fault.error,
                remaining: deadline.saturating_duration_since(Instant::now()),
                elsewhere: self.endpoints.elsewhere(self.start.elapsed(), tried),
                random: self.rng.next(),
                seeks_among: seeks.then(|| self.endpoints.count() as u32),
            };
            match retry.decide(&failed, &self.budget) {
                Ok(delay) => {
                    self.counters.retries.fetch_add(1, Ordering::Relaxed);
                    if delay > Duration::ZERO {
                        sleep(delay).await;
                    }
                }
                Err(because) => {
                    tracing::debug!(?because, attempts, error = %fault.error, "a call failed");
                    return Err(fault.error);
                }
            }
        }
    }

    async fn attempt<R: Rpc>(
        &self,
        endpoint: &Endpoint,
        left: Duration,
        mut request: Request<R>,
    ) -> Result<R::Response, Fault> {
        let limit = left.min(self.attempt_timeout);
        request.set_timeout(limit);
        if let Some(token) = &self.token {
            request
                .metadata_mut()
                .insert("authorization", token.header.clone());
        }
        match timeout(limit, R::send(endpoint.channel(), request)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.classify(endpoint, status, limit, left)),
            Err(_) => Err(self.no_response(endpoint, limit, left)),
        }
    }

    /// Classifies a failed attempt. A status with a source comes from the transport, not from a
    /// server. `Unknown` is not in Vesta's table either.
    fn classify(
        &self,
        endpoint: &Endpoint,
        status: Status,
        limit: Duration,
        left: Duration,
    ) -> Fault {
        if causes(&status).any(|error| error.is::<TimeoutExpired>()) {
            return self.no_response(endpoint, limit, left);
        }
        if status.source().is_some() || status.code() == Code::Unknown {
            let cause = root_cause(&status);
            let hint = transport_hint(&cause);
            let reason = format!("no response from {}: {cause}{hint}", endpoint.name);
            let reason = self.redact(&reason).into();
            let source = Some(Arc::new(status) as _);
            let error = IdError::Unavailable {
                reason,
                retry_after: None,
                source,
            };
            return Fault {
                error,
                endpoint_failed: true,
            };
        }
        match self.refusal(status) {
            // The server hit the deadline of this attempt; the call may have more time.
            IdError::DeadlineExceeded if limit < left => Fault {
                endpoint_failed: false,
                ..self.no_response(endpoint, limit, left)
            },
            error @ (IdError::Unavailable { .. } | IdError::Sealed { .. }) => Fault {
                error,
                endpoint_failed: true,
            },
            error => Fault {
                error,
                endpoint_failed: false,
            },
        }
    }

    /// Error that a server sent.
    fn refusal(&self, status: Status) -> IdError {
        let message = self.redact(status.message());
        let details = status.details().to_vec().into();
        IdError::from(Status::with_details(status.code(), message, details))
    }

    fn no_response(&self, endpoint: &Endpoint, limit: Duration, left: Duration) -> Fault {
        // The last attempt of a call may have been too short to judge the server by.
        let endpoint_failed = limit >= self.attempt_timeout / 2;
        if limit >= left {
            return Fault {
                error: IdError::DeadlineExceeded,
                endpoint_failed,
            };
        }
        let reason = format!(
            "no response from {} within {} ms",
            endpoint.name,
            limit.as_millis()
        );
        let error = IdError::Unavailable {
            reason: reason.into(),
            retry_after: None,
            source: None,
        };
        Fault {
            error,
            endpoint_failed,
        }
    }

    fn record(&self, endpoint: &Endpoint, fault: &Fault) {
        let now = self.start.elapsed();
        match (&fault.error, fault.error.retry_after()) {
            (_, Some(after)) => endpoint.deferred(now, after),
            (error, None) if fault.endpoint_failed => endpoint.failed(now, self.rng.next(), error),
            (IdError::DeadlineExceeded, None) => {}
            // A refusal is a response, too.
            _ => endpoint.answered(),
        }
        *self.counters.last_error.lock() = Some(fault.error.to_string().into());
    }

    /// Removes the token from a message: a server or proxy may quote it.
    fn redact(&self, text: &str) -> String {
        match &self.token {
            Some(token) => text.replace(&*token.text.0, "[redacted]"),
            None => text.to_owned(),
        }
    }
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    successors(status.source(), |&error| error.source())
}

/// The innermost error, which is the most specific: "Connection refused" rather than "transport error".
fn root_cause(status: &Status) -> String {
    causes(status)
        .last()
        .map_or_else(|| status.message().to_owned(), ToString::to_string)
}

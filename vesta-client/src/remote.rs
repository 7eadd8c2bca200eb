//! Calls to the servers, with endpoint selection, retries and deadlines.

mod segments;

pub(crate) use segments::check_key;

use std::error::Error as _;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, TimeoutExpired};
use vesta_intf::grpc::v1::{self, id_service_client::IdServiceClient};
use vesta_intf::{Id, IdError, IdRun, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL, MakeId};

use crate::endpoints::{Endpoint, Endpoints};
use crate::retry::{Budget, Decision, Failed, Retry};

/// gRPC stub of one of the protocol's services.
trait Stub {
    fn over(channel: Channel) -> Self;
}

type Ids = IdServiceClient<Channel>;

impl Stub for Ids {
    fn over(channel: Channel) -> Self {
        Self::new(channel)
    }
}

pub(crate) struct Remote {
    pub(crate) endpoints: Endpoints,
    /// Time limit of a call with all its attempts.
    pub(crate) deadline: Duration,
    /// Time limit of one attempt.
    pub(crate) attempt_timeout: Duration,
    pub(crate) retry: Retry,
    pub(crate) budget: Budget,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) counters: Counters,
    pub(crate) rng: Rng,
    pub(crate) start: Instant,
}

/// A bearer token. Without `Debug`, so that it cannot be printed by accident.
pub(crate) struct Credentials {
    pub(crate) header: MetadataValue<Ascii>,
    pub(crate) token: Box<str>,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) last_error: Mutex<Option<Box<str>>>,
}

/// Random numbers to spread clients over time; nothing secret depends on them.
#[derive(Default)]
pub(crate) struct Rng {
    hasher: RandomState,
    draws: AtomicU64,
}

impl Rng {
    pub(crate) fn next(&self) -> u64 {
        self.hasher.hash_one(self.draws.fetch_add(1, Ordering::Relaxed))
    }
}

/// Error of an attempt, and its verdict on the endpoint.
struct Fault {
    error: IdError,
    endpoint_failed: bool,
}

impl Remote {
    pub(crate) fn random(&self) -> u64 {
        self.rng.next()
    }

    pub(crate) async fn gen_id(&self) -> Result<u64, IdError> {
        let response = self
            .call(v1::GenIdRequest {}, |mut stub: Ids, request| async move {
                stub.gen_id(request).await
            })
            .await?;
        Ok(response.id)
    }

    /// A single attempt, to probe the servers. It costs one ID, which is harmless.
    pub(crate) async fn probe(&self) -> Result<(), IdError> {
        let deadline = Instant::now() + self.deadline;
        let send = |mut stub: Ids, request| async move { stub.gen_id(request).await };
        self.attempts(v1::GenIdRequest {}, send, 1, deadline).await.map(|_| ())
    }

    pub(crate) async fn gen_ids(&self, count: u32) -> Result<Vec<u64>, IdError> {
        check_count(count, MAX_IDS_PER_CALL)?;
        let request = v1::GenIdsRequest { count };
        let response = self
            .call(request, |mut stub: Ids, request| async move { stub.gen_ids(request).await })
            .await?;
        let ids = response.ids;
        if ids.len() != count as usize || !ids.is_sorted_by(|a, b| a < b) {
            return Err(invalid_response("not the requested number of ascending ids"));
        }
        Ok(ids)
    }

    pub(crate) async fn gen_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        let request = v1::GenRunsRequest { count };
        let response = self
            .call(request, |mut stub: Ids, request| async move { stub.gen_runs(request).await })
            .await?;
        let runs: Vec<IdRun> = response.runs.into_iter().map(IdRun::from).collect();
        let ids: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        if ids != u64::from(count) || !are_sound(&runs) {
            return Err(invalid_response("not runs of the requested number of ids"));
        }
        Ok(runs)
    }

    pub(crate) async fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        let request = v1::ExpIdRequest { id: raw };
        let id = self
            .call(request, |mut stub: Ids, request| async move { stub.exp_id(request).await })
            .await?;
        Ok(id.into())
    }

    pub(crate) async fn make_id(&self, parts: MakeId) -> Result<u64, IdError> {
        let request = v1::MakeIdRequest::from(parts);
        let response = self
            .call(request, |mut stub: Ids, request| async move { stub.make_id(request).await })
            .await?;
        Ok(response.id)
    }

    pub(crate) async fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        let request = v1::TransTimeRequest { time };
        let response = self
            .call(request, |mut stub: Ids, request| async move { stub.trans_time(request).await })
            .await?;
        response
            .time
            .and_then(|time| SystemTime::try_from(time).ok())
            .ok_or_else(|| invalid_response("a time that this system cannot represent"))
    }

    async fn call<S: Stub, Req: Clone, Resp, Fut>(
        &self,
        message: Req,
        send: impl Fn(S, Request<Req>) -> Fut,
    ) -> Result<Resp, IdError>
    where
        Fut: Future<Output = Result<Response<Resp>, Status>>,
    {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let deadline = Instant::now() + self.deadline;
        self.attempts(message, send, self.retry.max_attempts, deadline).await
    }

    async fn attempts<S: Stub, Req: Clone, Resp, Fut>(
        &self,
        message: Req,
        send: impl Fn(S, Request<Req>) -> Fut,
        max_attempts: u32,
        deadline: Instant,
    ) -> Result<Resp, IdError>
    where
        Fut: Future<Output = Result<Response<Resp>, Status>>,
    {
        let retry = Retry { max_attempts, ..self.retry };
        let mut tried = 0;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let endpoint = self.endpoints.pick(self.start.elapsed(), &mut tried);
            let left = deadline.saturating_duration_since(Instant::now());
            let fault = match self.attempt(endpoint, left, message.clone(), &send).await {
                Ok(response) => {
                    endpoint.answered();
                    self.budget.deposit();
                    return Ok(response);
                }
                Err(fault) => fault,
            };
            self.record(endpoint, &fault);
            let failed = Failed {
                attempts,
                error: &fault.error,
                remaining: deadline.saturating_duration_since(Instant::now()),
                elsewhere: self.endpoints.elsewhere(self.start.elapsed(), tried),
                random: self.random(),
            };
            match retry.decide(&failed, &self.budget) {
                Decision::RetryAfter(after) => {
                    self.counters.retries.fetch_add(1, Ordering::Relaxed);
                    if after > Duration::ZERO {
                        sleep(after).await;
                    }
                }
                Decision::GiveUp(because) => {
                    tracing::debug!(?because, attempts, error = %fault.error, "a call failed");
                    return Err(fault.error);
                }
            }
        }
    }

    async fn attempt<S: Stub, Req, Resp, Fut>(
        &self,
        endpoint: &Endpoint,
        left: Duration,
        message: Req,
        send: &impl Fn(S, Request<Req>) -> Fut,
    ) -> Result<Resp, Fault>
    where
        Fut: Future<Output = Result<Response<Resp>, Status>>,
    {
        let limit = left.min(self.attempt_timeout);
        let mut request = Request::new(message);
        request.set_timeout(limit);
        if let Some(credentials) = &self.credentials {
            request.metadata_mut().insert("authorization", credentials.header.clone());
        }
        match timeout(limit, send(S::over(endpoint.channel()), request)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.classify(endpoint, status, limit, left)),
            Err(_) => Err(self.no_response(endpoint, limit, left)),
        }
    }

    /// Classifies a failed attempt. A status with a source was not sent by a server but made by the
    /// transport. `Unknown` is not in Vesta's table either.
    fn classify(
        &self,
        endpoint: &Endpoint,
        status: Status,
        limit: Duration,
        left: Duration,
    ) -> Fault {
        if caused_by_timeout(&status) {
            return self.no_response(endpoint, limit, left);
        }
        if status.source().is_some() || status.code() == Code::Unknown {
            let reason = format!("no response from {}: {}", endpoint.name, root_cause(&status));
            return Fault {
                error: unavailable(self.redact(reason), status),
                endpoint_failed: true,
            };
        }
        match IdError::from(self.redact_status(status)) {
            // The server met the deadline of this attempt; the call may have more time.
            IdError::DeadlineExceeded if limit < left => {
                let endpoint_failed = false;
                Fault { endpoint_failed, ..self.no_response(endpoint, limit, left) }
            }
            error => {
                let failed = matches!(error, IdError::Unavailable { .. } | IdError::Sealed { .. });
                Fault { error, endpoint_failed: failed }
            }
        }
    }

    fn no_response(&self, endpoint: &Endpoint, limit: Duration, left: Duration) -> Fault {
        // The last attempt of a call may have had too little time to be a verdict on the server.
        let endpoint_failed = limit >= self.attempt_timeout / 2;
        if limit >= left {
            return Fault { error: IdError::DeadlineExceeded, endpoint_failed };
        }
        let reason = format!("no response from {} within {} ms", endpoint.name, limit.as_millis());
        let error = IdError::Unavailable { reason: reason.into(), retry_after: None, source: None };
        Fault { error, endpoint_failed }
    }

    fn record(&self, endpoint: &Endpoint, fault: &Fault) {
        let now = self.start.elapsed();
        match (&fault.error, fault.error.retry_after()) {
            (_, Some(after)) => endpoint.deferred(now, after),
            (error, None) if fault.endpoint_failed => endpoint.failed(now, self.random(), error),
            (IdError::DeadlineExceeded, None) => {}
            // A refusal is a response, too.
            _ => endpoint.answered(),
        }
        *self.counters.last_error.lock() = Some(fault.error.to_string().into());
    }

    /// Removes the token from a message: a server or proxy may quote it.
    fn redact(&self, text: String) -> String {
        match &self.credentials {
            Some(Credentials { token, .. }) if text.contains(&**token) => {
                text.replace(&**token, "[redacted]")
            }
            _ => text,
        }
    }

    fn redact_status(&self, status: Status) -> Status {
        match &self.credentials {
            Some(Credentials { token, .. }) if status.message().contains(&**token) => {
                let message = self.redact(status.message().to_owned());
                Status::with_details(status.code(), message, status.details().to_vec().into())
            }
            _ => status,
        }
    }
}

/// Refuses a count above the limit of a call. Nothing is clamped.
pub(crate) fn check_count(count: u32, most: u32) -> Result<(), IdError> {
    IdError::check("count", count.into(), 1, most.into())
}

fn unavailable(reason: String, status: Status) -> IdError {
    let source = Some(Arc::new(status) as _);
    IdError::Unavailable { reason: reason.into(), retry_after: None, source }
}

fn invalid_response(what: &str) -> IdError {
    let reason = format!("invalid response from the server: {what}").into();
    IdError::Internal { reason, source: None }
}

/// True if the runs are in order, within 64 bits and disjoint. They may interleave: those of different
/// machine IDs never share an ID.
fn are_sound(runs: &[IdRun]) -> bool {
    let last = |run: &IdRun| {
        let distance = u64::from(run.count).checked_sub(1)?.checked_mul(run.step)?;
        run.first.checked_add(distance)
    };
    let apart = |one: &IdRun, next: &IdRun| {
        last(one).is_some_and(|last| last < next.first)
            || one.step == next.step && !(next.first - one.first).is_multiple_of(one.step)
    };
    let sound = |run: &IdRun| run.step > 0 && last(run).is_some();
    runs.iter().all(sound)
        && runs.is_sorted_by(|one, next| one.first < next.first)
        && runs.windows(2).all(|pair| apart(&pair[0], &pair[1]))
}

fn caused_by_timeout(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The innermost error, which is the most specific: "Connection refused" rather than "transport error".
fn root_cause(status: &Status) -> String {
    let Some(mut cause) = status.source() else { return status.message().to_owned() };
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_cannot_share_an_id_and_lie_within_64_bits_are_accepted() {
        let run = |first, step, count| IdRun { first, step, count };
        assert!(are_sound(&[run(1, 2, 3), run(6, 1, 1)]));
        assert!(are_sound(&[run(u64::MAX - 4, 2, 3)]));
        assert!(are_sound(&[run(1, 8, 100), run(2, 8, 100), run(7, 8, 100)]));
        for wrong in [
            &[run(1, 2, 3), run(5, 1, 1)][..],
            &[run(1, 0, 3)],
            &[run(1, 1, 0)],
            &[run(u64::MAX - 3, 2, 3)],
            &[run(u64::MAX, 1, 1), run(1, 1, 1)],
            &[run(1, u64::MAX, 3)],
            &[run(1, 8, 100), run(9, 8, 100)],
            &[run(1, 8, 100), run(4, 2, 100)],
        ] {
            assert!(!are_sound(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn random_numbers_differ_each_time_and_for_each_client() {
        let (one, other) = (Rng::default(), Rng::default());
        let draws: std::collections::HashSet<u64> =
            (0..100).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(draws.len(), 200);
    }
}

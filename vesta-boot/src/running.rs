//! A running program, as shared by everything that serves requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use vesta_intf::{IdError, NotReady, NotReadyReason};
use vesta_numbers::segment::SegmentService;
use vesta_numbers::serial::SerialService;
use vesta_service::LocalIdService;

use crate::metrics::Metrics;
use crate::offered::Offered;
use crate::security::Security;
use crate::settings::{Config, SEGMENTS_OFF, SERIALS_OFF};
use crate::tinyid_tokens::TinyidTokens;
use vesta_net::Threads;

/// Refusal while Tinyid's clients are not served.
const TINYID_OFF: &str =
    "Tinyid's clients are not served here; start with compat = tinyid (--compat tinyid)";

/// Maximum delay of a refusal.
const LATE_REFUSAL: Duration = Duration::from_millis(100);

/// A program that has no machine ID yet: its store is unreachable.
#[derive(Debug)]
pub struct Waiting {
    /// The settings.
    pub config: Config,
    /// Protection of the listeners.
    pub security: Security,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Reason for not being ready, for health checks.
    pub why: String,
    /// Cancelled when the program has started, or must stop.
    pub done: CancellationToken,
}

impl Waiting {
    /// Threads of the listener: one, which ends within a second.
    pub fn threads(&self) -> Threads {
        Threads {
            workers: 1,
            drain_limit: Duration::from_secs(1),
            shutdown: self.done.clone(),
        }
    }
}

/// Answer to a call while the program has no machine ID yet.
pub const NOT_STARTED: IdError = IdError::NotReady(NotReady {
    retry_after: Duration::from_secs(1),
    why: NotReadyReason::AwaitingLease,
});

/// A started program, ready to serve.
#[derive(Debug)]
pub struct Running {
    /// The settings.
    pub config: Config,
    /// The service.
    pub service: Arc<LocalIdService>,
    /// Segment mode, if it is on.
    pub segments: Option<Arc<SegmentService>>,
    /// The tokens of Tinyid's clients, if they are served.
    pub tinyid: Option<Arc<TinyidTokens>>,
    /// Serials, if they are on.
    pub serials: Option<Arc<SerialService>>,
    /// The store that others may use, if this server is a pool server.
    pub pool_server: Option<Offered>,
    /// Protection of the listeners.
    pub security: Security,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Cancelled when a stop is requested; health reports it from then on. A child of `shutdown`.
    pub leaving: CancellationToken,
    /// Cancelled when the program must stop.
    pub shutdown: CancellationToken,
}

impl Running {
    /// Threads of a listener.
    pub fn threads(&self) -> Threads {
        Threads {
            workers: self.config.limits.workers,
            drain_limit: self.config.limits.drain_limit,
            shutdown: self.shutdown.clone(),
        }
    }

    /// Segment mode.
    ///
    /// # Errors
    /// [`IdError::Unsupported`] if it is off.
    pub fn segments(&self) -> Result<&Arc<SegmentService>, IdError> {
        self.segments.as_ref().ok_or(IdError::Unsupported {
            what: SEGMENTS_OFF.into(),
        })
    }

    /// The tokens of Tinyid's clients.
    ///
    /// # Errors
    /// [`IdError::Unsupported`] if Tinyid's clients are not served.
    pub fn tinyid(&self) -> Result<&TinyidTokens, IdError> {
        self.tinyid.as_deref().ok_or(IdError::Unsupported {
            what: TINYID_OFF.into(),
        })
    }

    /// Serials.
    ///
    /// # Errors
    /// [`IdError::Unsupported`] if they are off.
    pub fn serials(&self) -> Result<&Arc<SerialService>, IdError> {
        self.serials.as_ref().ok_or(IdError::Unsupported {
            what: SERIALS_OFF.into(),
        })
    }

    /// Awaits work up to the request timeout and the caller's own deadline. A refusal with a retry
    /// time is delayed for a moment, so that a caller that retries at once cannot keep a CPU busy.
    ///
    /// # Errors
    /// Errors of the work, or [`IdError::DeadlineExceeded`].
    pub async fn within<T>(
        &self,
        caller: Option<Duration>,
        work: impl Future<Output = Result<T, IdError>>,
    ) -> Result<T, IdError> {
        let limit = caller
            .unwrap_or(Duration::MAX)
            .min(self.config.limits.request_timeout);
        let began = Instant::now();
        // Dropping the work on timeout frees what it held.
        let result = timeout(limit, work)
            .await
            .unwrap_or(Err(IdError::DeadlineExceeded));
        let Err(IdError::NotReady(NotReady { why, retry_after })) = result else {
            return result;
        };
        let pause = (retry_after / 2)
            .min(LATE_REFUSAL)
            .min(limit.saturating_sub(began.elapsed()) / 2);
        sleep(pause).await;
        Err(NotReady {
            why,
            retry_after: retry_after.saturating_sub(pause),
        }
        .into())
    }
}

/// The reason for not being ready, for `/readyz` and the gRPC health service; `None` if calls for
/// IDs should succeed.
pub fn not_ready_because(service: &LocalIdService, leaving: &CancellationToken) -> Option<String> {
    if leaving.is_cancelled() {
        return Some("the server is stopping".to_owned());
    }
    service.status().all.not_ready_because
}

#[cfg(test)]
mod tests {
    use vesta_intf::NotReadyReason;
    use vesta_service::MachineSource;

    use super::*;
    use crate::api::Api;

    const SECOND: Duration = Duration::from_secs(1);

    fn running() -> Running {
        let service = LocalIdService::builder()
            .machine(MachineSource::Stateless(1))
            .build();
        Running {
            config: Config::defaults(&[Api::Grpc]),
            service: Arc::new(service.expect("a service")),
            segments: None,
            tinyid: None,
            serials: None,
            pool_server: None,
            security: Security::default(),
            metrics: Arc::default(),
            leaving: CancellationToken::new(),
            shutdown: CancellationToken::new(),
        }
    }

    async fn refused(running: &Running, caller: Duration, retry_after: Duration) -> Duration {
        let why = NotReadyReason::SequenceUsedUp;
        let work = async { Err(NotReady { why, retry_after }.into()) };
        let result: Result<(), _> = running.within(Some(caller), work).await;
        result
            .expect_err("a refusal")
            .retry_after()
            .expect("with a time")
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_does_not_wait_is_refused_ten_times_a_second() {
        let (running, began, mut refusals) = (running(), Instant::now(), 0);
        while began.elapsed() < 8 * SECOND {
            let before = Instant::now();
            let left = refused(&running, Duration::MAX, SECOND).await;
            assert_eq!(
                before.elapsed() + left,
                SECOND,
                "the reported time stays correct"
            );
            refusals += 1;
        }
        assert_eq!(refusals, 80);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_delayed_less_than_its_retry_time_and_the_deadline() {
        let running = running();
        let milli = Duration::from_millis(1);
        for (caller, retry_after, late) in [
            (SECOND, 10 * milli, 5 * milli),
            (10 * milli, SECOND, 5 * milli),
            (Duration::ZERO, SECOND, Duration::ZERO),
        ] {
            let began = Instant::now();
            refused(&running, caller, retry_after).await;
            let elapsed = began.elapsed();
            assert!(
                (late..=late + milli).contains(&elapsed),
                "{elapsed:?} of {caller:?}"
            );
        }
    }
}

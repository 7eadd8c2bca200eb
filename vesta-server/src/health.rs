//! `grpc.health.v1.Health`, computed from the state of the service at each request, so that no task
//! has to keep it current.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::{MissedTickBehavior, interval};
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health as Protocol;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use vesta_boot::{CancellationToken, Running, Waiting, not_ready_because};

/// Polling interval of a watched state.
const WATCH: Duration = Duration::from_millis(500);

/// `SERVICE_UNKNOWN` of the protocol, for Watch only; tonic-health has no name for it.
const SERVICE_UNKNOWN: i32 = 3;

/// Whether a service can be used; `None` if its name is unknown.
type Serves = dyn Fn(&str) -> Option<bool> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Health {
    serves: Arc<Serves>,
    leaving: CancellationToken,
    shutdown: CancellationToken,
}

impl Health {
    pub(crate) fn of(running: &Arc<Running>) -> Self {
        let it = Arc::clone(running);
        Self {
            serves: Arc::new(move |service| serves(&it, service)),
            leaving: running.leaving.clone(),
            shutdown: running.shutdown.clone(),
        }
    }

    /// Health of a program without a machine ID: nothing can be used.
    pub(crate) fn of_waiting(waiting: &Waiting) -> Self {
        Self {
            serves: Arc::new(|service| SERVICES.contains(&service).then_some(false)),
            leaving: waiting.done.clone(),
            shutdown: waiting.done.clone(),
        }
    }

    /// Status of a service; `None` if its name is unknown.
    fn status(&self, service: &str) -> Option<i32> {
        (self.serves)(service).map(|serves| match serves {
            true => ServingStatus::Serving as i32,
            false => ServingStatus::NotServing as i32,
        })
    }
}

/// The names of services; the empty one is that of the whole server.
const SERVICES: [&str; 4] = [
    "",
    "vesta.v1.IdService",
    "vesta.v1.SegmentService",
    "vesta.v1.SerialService",
];

fn serves(running: &Running, service: &str) -> Option<bool> {
    let Running {
        service: ids,
        segments,
        serials,
        leaving,
        ..
    } = running;
    Some(match service {
        // The ID service; its health is also that of the whole server.
        "" | "vesta.v1.IdService" => not_ready_because(ids, leaving).is_none(),
        // Not serving while segment mode or serials are off.
        "vesta.v1.SegmentService" => segments.as_ref().is_some_and(|segments| {
            !leaving.is_cancelled() && segments.not_ready_because().is_none()
        }),
        "vesta.v1.SerialService" => serials.as_ref().is_some_and(|serials| {
            !leaving.is_cancelled() && serials.not_ready_because().is_none()
        }),
        _ => return None,
    })
}

#[tonic::async_trait]
impl Protocol for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.status(&request.get_ref().service) {
            Some(status) => Ok(Response::new(HealthCheckResponse { status })),
            None => Err(Status::not_found("unknown service name")),
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let service = request.into_inner().service;
        let health = self.clone();
        let changes = async_stream::stream! {
            let mut ticks = interval(WATCH);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut sent = None;
            loop {
                let leaving = health.leaving.is_cancelled();
                let now = health.status(&service).unwrap_or(SERVICE_UNKNOWN);
                if sent != Some(now) {
                    sent = Some(now);
                    yield Ok(HealthCheckResponse { status: now });
                }
                // The final state has been sent; an open stream would delay the shutdown.
                if health.shutdown.is_cancelled() {
                    break;
                }
                tokio::select! {
                    () = health.leaving.cancelled(), if !leaving => {}
                    () = health.shutdown.cancelled() => {}
                    _ = ticks.tick() => {}
                }
            }
        };
        Ok(Response::new(Box::pin(changes)))
    }
}

//! `grpc.health.v1.Health`, answered from the state of the service at the moment of the question,
//! so that nothing has to wake up to keep it right.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health as Protocol;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use vesta_boot::not_ready_because;
use vesta_service::LocalIdService;

/// The names that have a health: the server as a whole, and its service.
const NAMES: [&str; 2] = ["", "vesta.v1.IdService"];

/// How often a watched state is looked at.
const WATCH: Duration = Duration::from_millis(500);

/// `SERVICE_UNKNOWN` of the protocol, for Watch only; tonic-health has no name for it.
const SERVICE_UNKNOWN: i32 = 3;

#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) service: Arc<LocalIdService>,
    pub(crate) shutdown: CancellationToken,
}

impl Health {
    fn now(&self) -> i32 {
        let status = match not_ready_because(&self.service, &self.shutdown) {
            None => ServingStatus::Serving,
            Some(_) => ServingStatus::NotServing,
        };
        status as i32
    }
}

#[tonic::async_trait]
impl Protocol for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !NAMES.contains(&request.get_ref().service.as_str()) {
            return Err(Status::not_found("there is no service of that name here"));
        }
        Ok(Response::new(HealthCheckResponse { status: self.now() }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = NAMES.contains(&request.get_ref().service.as_str());
        let health = self.clone();
        let changes = async_stream::stream! {
            let mut ticks = interval(WATCH);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut told = None;
            loop {
                let now = if known { health.now() } else { SERVICE_UNKNOWN };
                if told != Some(now) {
                    told = Some(now);
                    yield Ok(HealthCheckResponse { status: now });
                }
                // The last word has been said; an open stream would hold up the stop.
                if health.shutdown.is_cancelled() {
                    break;
                }
                tokio::select! {
                    () = health.shutdown.cancelled() => {}
                    _ = ticks.tick() => {}
                }
            }
        };
        Ok(Response::new(Box::pin(changes)))
    }
}

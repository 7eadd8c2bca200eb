//! Implementation of `vesta.v1.SegmentService`.

use std::sync::Arc;
use std::time::Duration;

use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use vesta_boot::{Metrics, Outcome};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::segment_service_server::SegmentService as Protocol;
use vesta_intf::{IdError, IdRun, MAX_RUN_IDS_PER_CALL};
use vesta_service::SegmentService;

use crate::deadline;
use crate::grpc::{NEXT_ID, NEXT_IDS, within};

/// Maximum key length in bytes.
const MAX_KEY: usize = 128;

#[derive(Debug)]
pub(crate) struct Segments {
    /// `None` if segment mode is off.
    pub(crate) service: Option<Arc<SegmentService>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) request_timeout: Duration,
}

impl Segments {
    /// The service, after checking the key's length.
    fn service(&self, key: &str) -> Result<&SegmentService, IdError> {
        let service = self.service.as_deref().ok_or_else(|| IdError::Unsupported {
            what: "segment mode is off; set segment.store (--segment-store) of the server".into(),
        })?;
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(IdError::invalid("key", "it must have 1 to 128 bytes"));
        }
        Ok(service)
    }

    async fn one(&self, metadata: &MetadataMap, key: &str) -> Result<u64, IdError> {
        let service = self.service(key)?;
        match service.try_segment(key).and_then(|segment| segment.try_next()) {
            // Boxed, so that the future of the usual case stays small.
            Err(error) if error.retry_after().is_some() => {
                let caller = deadline::of_caller(metadata);
                let work = async { service.segment_async(key).await?.next_async().await };
                Box::pin(within(self.request_timeout, caller, work)).await
            }
            result => result,
        }
    }

    async fn many(
        &self,
        metadata: &MetadataMap,
        key: &str,
        count: u32,
    ) -> Result<Vec<IdRun>, IdError> {
        let service = self.service(key)?;
        IdError::check("count", count.into(), 1, MAX_RUN_IDS_PER_CALL.into())?;
        let caller = deadline::of_caller(metadata);
        let work = async { service.segment_async(key).await?.next_runs_async(count).await };
        within(self.request_timeout, caller, work).await
    }
}

#[tonic::async_trait]
impl Protocol for Segments {
    async fn next_id(
        &self,
        request: Request<v1::NextIdRequest>,
    ) -> Result<Response<v1::NextIdResponse>, Status> {
        let call = self.metrics.start(NEXT_ID);
        let result = self.one(request.metadata(), &request.get_ref().key).await;
        self.metrics.issued(u64::from(result.is_ok()));
        call.done(Outcome::from(&result));
        Ok(Response::new(v1::NextIdResponse { id: result? }))
    }

    async fn next_ids(
        &self,
        request: Request<v1::NextIdsRequest>,
    ) -> Result<Response<v1::NextIdsResponse>, Status> {
        let call = self.metrics.start(NEXT_IDS);
        let v1::NextIdsRequest { key, count } = request.get_ref();
        let result = self.many(request.metadata(), key, *count).await;
        if result.is_ok() {
            self.metrics.issued(u64::from(*count));
        }
        call.done(Outcome::from(&result));
        let runs = result?.into_iter().map(v1::IdRun::from).collect();
        Ok(Response::new(v1::NextIdsResponse { runs }))
    }
}

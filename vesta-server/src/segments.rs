//! Implementation of `vesta.v1.SegmentService`.

use std::sync::Arc;

use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use vesta_boot::{Outcome, Running};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::segment_service_server::SegmentService as Protocol;
use vesta_intf::{IdError, MAX_RUN_IDS_PER_CALL};

use crate::grpc::batch;
use crate::methods::{NEXT_ID, NEXT_IDS};
use crate::{access, deadline};

#[derive(Debug)]
pub(crate) struct Segments(pub(crate) Arc<Running>);

impl Segments {
    async fn one(&self, metadata: &MetadataMap, tag: &str) -> Result<u64, IdError> {
        match self.0.try_next_number(tag) {
            // Boxed, so that the future of the usual case stays small.
            Err(error) if error.retry_after().is_some() => {
                let caller = deadline::of_caller(metadata);
                Box::pin(self.0.within(caller, self.0.next_number(tag))).await
            }
            result => result,
        }
    }
}

#[tonic::async_trait]
impl Protocol for Segments {
    async fn next_id(
        &self,
        request: Request<v1::NextIdRequest>,
    ) -> Result<Response<v1::NextIdResponse>, Status> {
        let call = self.0.metrics.start(NEXT_ID);
        let result = self.one(request.metadata(), &request.get_ref().tag).await;
        self.0
            .metrics
            .issue(access::caller(&request), u64::from(result.is_ok()));
        call.done(Outcome::from(&result));
        Ok(Response::new(v1::NextIdResponse { id: result? }))
    }

    async fn next_ids(
        &self,
        request: Request<v1::NextIdsRequest>,
    ) -> Result<Response<v1::NextIdsResponse>, Status> {
        let v1::NextIdsRequest { tag, count } = request.get_ref();
        let work = self.0.next_numbers(tag, *count);
        let counts = (*count, MAX_RUN_IDS_PER_CALL);
        let runs = batch(&self.0, NEXT_IDS, &request, counts, work).await?;
        Ok(Response::new(v1::NextIdsResponse {
            runs: runs.into_iter().map(Into::into).collect(),
        }))
    }
}

//! Implementation of `vesta.v1.IdService`.

use std::sync::Arc;

use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use vesta_boot::{Outcome, Running};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_server::IdService as Protocol;
use vesta_intf::{
    AsyncIdService, IdError, IdService, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL, NotReady,
};
use vesta_service::LocalIdService;

use crate::methods::{EXP_ID, GEN_ID, GEN_IDS, GEN_RUNS, MAKE_ID, TRANS_TIME};
use crate::{access, deadline};

/// Runs and counts a call for `count` IDs.
pub(crate) async fn batch<T, R>(
    running: &Running,
    method: usize,
    request: &Request<R>,
    (count, max): (u32, u32),
    work: impl Future<Output = Result<T, IdError>>,
) -> Result<T, Status> {
    let call = running.metrics.start(method);
    let caller = deadline::of_caller(request.metadata());
    let result = match IdError::check("count", count.into(), 1, max.into()) {
        Ok(()) => running.within(caller, work).await,
        Err(error) => Err(error),
    };
    if result.is_ok() {
        running
            .metrics
            .issue(access::caller(request), u64::from(count));
    }
    call.done(Outcome::from(&result));
    result.map_err(Status::from)
}

#[derive(Debug)]
pub(crate) struct Ids(pub(crate) Arc<Running>);

impl Ids {
    /// Waits for an ID, unless the caller's deadline ends before one can be ready.
    async fn wait_for_id(
        &self,
        metadata: &MetadataMap,
        not_ready: NotReady,
    ) -> Result<u64, IdError> {
        let caller = deadline::of_caller(metadata);
        if caller.is_some_and(|limit| limit < not_ready.retry_after) {
            return Err(IdError::DeadlineExceeded);
        }
        self.0
            .within(caller, AsyncIdService::gen_id(&*self.0.service))
            .await
    }

    /// Runs and counts a call that does not wait.
    fn answer<T>(
        &self,
        method: usize,
        work: impl FnOnce(&LocalIdService) -> Result<T, IdError>,
    ) -> Result<T, Status> {
        let call = self.0.metrics.start(method);
        let result = work(&self.0.service);
        call.done(Outcome::from(&result));
        result.map_err(Status::from)
    }
}

#[tonic::async_trait]
impl Protocol for Ids {
    async fn gen_id(
        &self,
        request: Request<v1::GenIdRequest>,
    ) -> Result<Response<v1::GenIdResponse>, Status> {
        let call = self.0.metrics.start(GEN_ID);
        let result = match self.0.service.try_gen_id() {
            // Boxed, so that the future of the usual case stays small.
            Err(IdError::NotReady(not_ready)) => {
                Box::pin(self.wait_for_id(request.metadata(), not_ready)).await
            }
            result => result,
        };
        self.0
            .metrics
            .issue(access::caller(&request), u64::from(result.is_ok()));
        call.done(Outcome::from(&result));
        Ok(Response::new(v1::GenIdResponse { id: result? }))
    }

    async fn gen_ids(
        &self,
        request: Request<v1::GenIdsRequest>,
    ) -> Result<Response<v1::GenIdsResponse>, Status> {
        let count = request.get_ref().count;
        let work = AsyncIdService::gen_ids(&*self.0.service, count);
        let counts = (count, MAX_IDS_PER_CALL);
        let ids = batch(&self.0, GEN_IDS, &request, counts, work).await?;
        Ok(Response::new(v1::GenIdsResponse { ids }))
    }

    async fn gen_runs(
        &self,
        request: Request<v1::GenRunsRequest>,
    ) -> Result<Response<v1::GenRunsResponse>, Status> {
        let count = request.get_ref().count;
        let work = AsyncIdService::gen_runs(&*self.0.service, count);
        let counts = (count, MAX_RUN_IDS_PER_CALL);
        let runs = batch(&self.0, GEN_RUNS, &request, counts, work).await?;
        Ok(Response::new(v1::GenRunsResponse {
            runs: runs.into_iter().map(Into::into).collect(),
        }))
    }

    async fn exp_id(&self, request: Request<v1::ExpIdRequest>) -> Result<Response<v1::Id>, Status> {
        let id = request.get_ref().id;
        let parts = self.answer(EXP_ID, |service| IdService::exp_id(service, id))?;
        Ok(Response::new(parts.into()))
    }

    async fn make_id(
        &self,
        request: Request<v1::MakeIdRequest>,
    ) -> Result<Response<v1::MakeIdResponse>, Status> {
        let parts = request.into_inner().into();
        let id = self.answer(MAKE_ID, |service| IdService::make_id(service, &parts))?;
        Ok(Response::new(v1::MakeIdResponse { id }))
    }

    async fn trans_time(
        &self,
        request: Request<v1::TransTimeRequest>,
    ) -> Result<Response<v1::TransTimeResponse>, Status> {
        let time = request.get_ref().time;
        let moment = self.answer(TRANS_TIME, |service| IdService::trans_time(service, time))?;
        Ok(Response::new(v1::TransTimeResponse {
            time: Some(moment.into()),
        }))
    }
}

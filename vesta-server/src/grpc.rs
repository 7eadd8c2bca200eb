//! Implementation of `vesta.v1.IdService`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::sleep;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use vesta_boot::{Call, Caller, Metrics, Outcome, Running};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_server::IdService as Protocol;
use vesta_intf::{
    AsyncIdService, IdError, IdRun, IdService, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL, NotReady,
    NotReadyReason,
};
use vesta_service::LocalIdService;

use crate::methods::{
    EXP_ID, GEN_ID, GEN_IDS, GEN_RUNS, MAKE_ID, STREAM_IDS, STREAM_RUNS, TRANS_TIME,
};
use crate::{access, deadline};

/// Default number of IDs in each message of a stream.
const DEFAULT_CHUNK: u32 = 1000;

/// Default number of IDs in each message of a stream of runs.
const DEFAULT_RUNS_CHUNK: u32 = 65_536;

/// Checks the number of IDs in each message of a stream; 0 is the default.
fn chunk_size(chunk: u32, default: u32, max: u32) -> Result<u32, IdError> {
    IdError::check("chunk", chunk.into(), 0, max.into())?;
    Ok(if chunk == 0 { default } else { chunk })
}

/// Messages of a stream.
type Answers<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

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

    /// Starts and counts a stream.
    fn stream<M, W>(
        &self,
        (method, caller): (usize, Caller),
        chunk: Result<u32, IdError>,
        total: u64,
        work: impl Fn(Arc<Running>, u32) -> W + Send + 'static,
    ) -> Result<Response<Answers<M>>, Status>
    where
        M: Send + 'static,
        W: Future<Output = Result<(M, u32), IdError>> + Send + 'static,
    {
        let call = Call::start(Arc::clone(&self.0.metrics), method);
        match chunk {
            Ok(chunk) => {
                let running = Arc::clone(&self.0);
                Ok(Response::new(Box::pin(chunks(
                    running,
                    chunk,
                    total,
                    (call, caller),
                    work,
                ))))
            }
            Err(error) => {
                call.done(Outcome::Error(error.kind()));
                Err(error.into())
            }
        }
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

    type StreamIdsStream = Answers<v1::GenIdsResponse>;

    async fn stream_ids(
        &self,
        request: Request<v1::StreamIdsRequest>,
    ) -> Result<Response<Self::StreamIdsStream>, Status> {
        let method = (STREAM_IDS, access::caller(&request));
        let v1::StreamIdsRequest { chunk, total } = request.into_inner();
        let chunk = chunk_size(chunk, DEFAULT_CHUNK, MAX_IDS_PER_CALL);
        self.stream(method, chunk, total, |running, count| async move {
            let ids = AsyncIdService::gen_ids(&*running.service, count).await?;
            Ok((v1::GenIdsResponse { ids }, count))
        })
    }

    type StreamRunsStream = Answers<v1::GenRunsResponse>;

    async fn stream_runs(
        &self,
        request: Request<v1::StreamRunsRequest>,
    ) -> Result<Response<Self::StreamRunsStream>, Status> {
        let method = (STREAM_RUNS, access::caller(&request));
        let v1::StreamRunsRequest { chunk, total } = request.into_inner();
        let chunk = IdError::check("total", total, 1, u64::MAX)
            .and_then(|()| chunk_size(chunk, DEFAULT_RUNS_CHUNK, MAX_RUN_IDS_PER_CALL));
        self.stream(method, chunk, total, |running, count| async move {
            let runs = runs_at_hand(&running.service, count).await?;
            let count = runs.iter().map(|run| run.count).sum();
            Ok((
                v1::GenRunsResponse {
                    runs: runs.into_iter().map(Into::into).collect(),
                },
                count,
            ))
        })
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

/// Up to `count` IDs: those available at once, or after the wait for the first. More would have to
/// wait for the next ticks, and a large batch may need too many of those.
async fn runs_at_hand(service: &LocalIdService, count: u32) -> Result<Vec<IdRun>, IdError> {
    if let Ok(run) = service.try_gen_run(count) {
        return Ok(vec![run]);
    }
    let mut runs = AsyncIdService::gen_runs(service, 1).await?;
    if count > 1
        && let Ok(run) = service.try_gen_run(count - 1)
    {
        run.append_to(&mut runs);
    }
    Ok(runs)
}

/// The messages of one stream, generated only as fast as the caller reads.
fn chunks<M: Send, W: Future<Output = Result<(M, u32), IdError>> + Send>(
    running: Arc<Running>,
    chunk: u32,
    total: u64,
    (call, caller): (Call<Arc<Metrics>>, Caller),
    work: impl Fn(Arc<Running>, u32) -> W + Send,
) -> impl Stream<Item = Result<M, Status>> + Send {
    async_stream::stream! {
        let Running { metrics, shutdown, .. } = &*running;
        let mut sent = 0;
        loop {
            let left = if total == 0 { u64::MAX } else { total - sent };
            let want = u32::try_from(left).unwrap_or(u32::MAX).min(chunk);
            if want == 0 {
                call.done(Outcome::Ok);
                break;
            }
            let message = tokio::select! {
                biased;
                () = shutdown.cancelled() => Err(stopping(sent, total)),
                message = work(Arc::clone(&running), want) => message,
            };
            match message {
                Ok((message, count)) => {
                    sent += u64::from(count);
                    metrics.issue(caller, count.into());
                    yield Ok(message);
                }
                // No ID is free within max_wait, but a stream has time.
                Err(IdError::NotReady(NotReady { why: NotReadyReason::SequenceUsedUp, retry_after })) => {
                    tokio::select! {
                        () = shutdown.cancelled() => {}
                        () = sleep(retry_after) => {}
                    }
                }
                // The caller set no total, so a shutdown of the server is a normal end.
                Err(_) if total == 0 && shutdown.is_cancelled() => {
                    call.done(Outcome::Ok);
                    break;
                }
                Err(error) => {
                    call.done(Outcome::Error(error.kind()));
                    yield Err(error.into());
                    break;
                }
            }
        }
    }
}

fn stopping(sent: u64, total: u64) -> IdError {
    IdError::Unavailable {
        reason: format!("the server is stopping; {sent} of {total} IDs were sent").into(),
        retry_after: Some(Duration::ZERO),
        source: None,
    }
}

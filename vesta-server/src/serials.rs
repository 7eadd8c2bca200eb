//! Implementation of `vesta.v1.SerialService`.

use std::sync::Arc;

use tonic::{Request, Response, Status};
use vesta_boot::serials::NewSerial;
use vesta_boot::{Outcome, Running};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::serial_service_server::SerialService as Protocol;
use vesta_intf::{IdError, MAX_IDS_PER_CALL};

use crate::deadline;
use crate::grpc::batch;
use crate::methods::{CREATE, NEXT, PARSE};

#[derive(Debug)]
pub(crate) struct Serials(pub(crate) Arc<Running>);

impl Serials {
    /// Runs and counts a call.
    async fn answer<T, R>(
        &self,
        method: usize,
        request: Request<R>,
        work: impl AsyncFnOnce(R) -> Result<T, IdError>,
    ) -> Result<T, Status> {
        let call = self.0.metrics.start(method);
        let caller = deadline::of_caller(request.metadata());
        let result = self.0.within(caller, work(request.into_inner())).await;
        call.done(Outcome::from(&result));
        result.map_err(Status::from)
    }
}

#[tonic::async_trait]
impl Protocol for Serials {
    async fn next(
        &self,
        request: Request<v1::NextSerialsRequest>,
    ) -> Result<Response<v1::NextSerialsResponse>, Status> {
        let v1::NextSerialsRequest { tag, count } = request.get_ref();
        let count = count.unwrap_or(1);
        let work = self.0.next_serials(tag, count);
        let serials = batch(&self.0, NEXT, &request, (count, MAX_IDS_PER_CALL), work).await?;
        let serials = serials.into_iter().map(v1::Serial::from).collect();
        Ok(Response::new(v1::NextSerialsResponse { serials }))
    }

    async fn parse(
        &self,
        request: Request<v1::ParseSerialRequest>,
    ) -> Result<Response<v1::ParsedSerial>, Status> {
        let work =
            async |it: v1::ParseSerialRequest| self.0.parse_serial(&it.tag, &it.serial).await;
        let parsed = self.answer(PARSE, request, work).await?;
        Ok(Response::new(parsed.into()))
    }

    async fn create(
        &self,
        request: Request<v1::CreateSerialRequest>,
    ) -> Result<Response<v1::CreateSerialResponse>, Status> {
        let work = async |new| self.0.create_serial(NewSerial::from(new)).await;
        let created = self.answer(CREATE, request, work).await?.created;
        Ok(Response::new(v1::CreateSerialResponse { created }))
    }
}

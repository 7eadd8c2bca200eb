//! Implementation of `vesta.v1.SerialService`.

use std::sync::Arc;

use tonic::{Request, Response, Status};
use vesta_boot::{NewSerialRequest, Outcome, Running};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::serial_service_server::SerialService as Protocol;
use vesta_intf::{IdError, MAX_IDS_PER_CALL, check_tag};
use vesta_numbers::serial::Reset;
use vesta_numbers::serial::SerialService;

use crate::deadline;
use crate::grpc::batch;
use crate::methods::{CREATE, NEXT, PARSE};

#[derive(Debug)]
pub(crate) struct Serials(pub(crate) Arc<Running>);

impl Serials {
    /// The service, after checking the length of a tag's name.
    fn service(&self, tag: &str) -> Result<&SerialService, IdError> {
        let service = self.0.serials()?;
        check_tag(tag)?;
        Ok(service)
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
        let work = async {
            self.service(tag)?;
            let tag = self.0.serial_tag(tag).await?;
            tag.next_many_async(count).await
        };
        let serials = batch(&self.0, NEXT, &request, (count, MAX_IDS_PER_CALL), work).await?;
        let serials = serials.into_iter();
        let serials = serials.map(|serial| v1::Serial {
            serial: serial.text,
            counter: serial.counter,
        });
        Ok(Response::new(v1::NextSerialsResponse {
            serials: serials.collect(),
        }))
    }

    async fn parse(
        &self,
        request: Request<v1::ParseSerialRequest>,
    ) -> Result<Response<v1::ParsedSerial>, Status> {
        let call = self.0.metrics.start(PARSE);
        let caller = deadline::of_caller(request.metadata());
        let v1::ParseSerialRequest { tag, serial } = request.into_inner();
        let work = async { self.service(&tag)?.tag_async(&tag).await?.parse(&serial) };
        let parsed = self.0.within(caller, work).await;
        call.done(Outcome::from(&parsed));
        let parsed = parsed?;
        Ok(Response::new(v1::ParsedSerial {
            tag,
            period: parsed.period,
            date: parsed.date,
            counter: parsed.counter,
            check: parsed.check.map(|method| method.to_string()),
        }))
    }

    async fn create(
        &self,
        request: Request<v1::CreateSerialRequest>,
    ) -> Result<Response<v1::CreateSerialResponse>, Status> {
        let call = self.0.metrics.start(CREATE);
        let caller = deadline::of_caller(request.metadata());
        let new = request.into_inner();
        let work = async {
            let reset = new.reset.map_or(Ok(Reset::Never), |reset| reset.parse())?;
            let request = NewSerialRequest {
                tag: new.tag,
                pattern: new.pattern,
                reset,
                zone: new.zone,
                step: new.step,
                first: new.first,
                description: new.description,
                max_tags: new.max_tags,
            };
            request.create(&self.0).await
        };
        let created = self.0.within(caller, work).await;
        call.done(Outcome::from(&created));
        let created = created?;
        Ok(Response::new(v1::CreateSerialResponse { created }))
    }
}

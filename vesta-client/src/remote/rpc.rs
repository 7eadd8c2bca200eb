//! The protocol's methods, by request type.

use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::segment_service_client::SegmentServiceClient;
use vesta_intf::grpc::v1::serial_service_client::SerialServiceClient;

type Answer<T> = Result<Response<T>, Status>;

/// A request message that knows its method.
pub(super) trait Rpc: Clone + Send {
    type Response: Send;

    fn send(
        channel: Channel,
        request: Request<Self>,
    ) -> impl Future<Output = Answer<Self::Response>> + Send;
}

macro_rules! methods {
    ($($client:ident.$method:ident($request:ident) -> $response:ty;)*) => {$(
        impl Rpc for v1::$request {
            type Response = $response;

            async fn send(channel: Channel, request: Request<Self>) -> Answer<$response> {
                $client::new(channel).$method(request).await
            }
        }
    )*};
}

methods! {
    IdServiceClient.gen_id(GenIdRequest) -> v1::GenIdResponse;
    IdServiceClient.gen_runs(GenRunsRequest) -> v1::GenRunsResponse;
    IdServiceClient.exp_id(ExpIdRequest) -> v1::Id;
    IdServiceClient.make_id(MakeIdRequest) -> v1::MakeIdResponse;
    IdServiceClient.trans_time(TransTimeRequest) -> v1::TransTimeResponse;
    SegmentServiceClient.next_id(NextIdRequest) -> v1::NextIdResponse;
    SegmentServiceClient.next_ids(NextIdsRequest) -> v1::NextIdsResponse;
    SerialServiceClient.next(NextSerialsRequest) -> v1::NextSerialsResponse;
    SerialServiceClient.parse(ParseSerialRequest) -> v1::ParsedSerial;
}

//! The unary methods of the protocol, by their request types.

use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::segment_service_client::SegmentServiceClient;

type Answer<T> = Result<Response<T>, Status>;

/// A request message, which knows its method.
pub(super) trait Rpc: Clone + Send {
    type Response;

    fn send(
        channel: Channel,
        request: Request<Self>,
    ) -> impl Future<Output = Answer<Self::Response>> + Send;
}

macro_rules! methods {
    ($($client:ident.$method:ident($request:ident) -> $response:ident;)*) => {$(
        impl Rpc for v1::$request {
            type Response = v1::$response;

            async fn send(channel: Channel, request: Request<Self>) -> Answer<v1::$response> {
                $client::new(channel).$method(request).await
            }
        }
    )*};
}

methods! {
    IdServiceClient.gen_id(GenIdRequest) -> GenIdResponse;
    IdServiceClient.gen_ids(GenIdsRequest) -> GenIdsResponse;
    IdServiceClient.gen_runs(GenRunsRequest) -> GenRunsResponse;
    IdServiceClient.exp_id(ExpIdRequest) -> Id;
    IdServiceClient.make_id(MakeIdRequest) -> MakeIdResponse;
    IdServiceClient.trans_time(TransTimeRequest) -> TransTimeResponse;
    SegmentServiceClient.next_id(NextIdRequest) -> NextIdResponse;
    SegmentServiceClient.next_ids(NextIdsRequest) -> NextIdsResponse;
}

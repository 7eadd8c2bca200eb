//! Unary `GenId` over tonic channels.

use std::net::SocketAddr;

use tonic::transport::{Channel, Endpoint};
use vesta_intf::grpc::v1::GenIdRequest;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;

use super::Caller;
use crate::Failure;

pub(crate) type Client = IdServiceClient<Channel>;

/// A connection.
pub(crate) async fn channel(address: SocketAddr) -> Result<Channel, Failure> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    Ok(endpoint.tcp_nodelay(true).connect().await?)
}

/// A client with its own connection.
pub(crate) async fn client(address: SocketAddr) -> Result<Client, Failure> {
    Ok(Client::new(channel(address).await?))
}

/// Callers that share a connection that has answered once.
pub(crate) async fn callers(address: SocketAddr, callers: usize) -> Result<Vec<Client>, Failure> {
    let mut client = client(address).await?;
    client.call().await?;
    Ok(vec![client; callers])
}

impl Caller for Client {
    async fn call(&mut self) -> Result<(), Failure> {
        match self.gen_id(GenIdRequest {}).await?.get_ref().id {
            0 => Err("an ID is 0".into()),
            _ => Ok(()),
        }
    }
}

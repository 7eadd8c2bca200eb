//! Unary `GenId` over tonic channels.

use std::net::SocketAddr;

use tonic::transport::{Channel, Endpoint};
use vesta_intf::grpc::v1::GenIdRequest;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;

use super::Caller;
use crate::Failure;

pub(crate) type Client = IdServiceClient<Channel>;

/// A client with a connection of its own.
pub(crate) async fn client(address: SocketAddr) -> Result<Client, Failure> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
    Ok(Client::new(endpoint.connect().await?))
}

pub(super) async fn callers(
    address: SocketAddr,
    connections: usize,
    callers: usize,
) -> Result<Vec<Client>, Failure> {
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut client = client(address).await?;
        client.call().await?;
        clients.push(client);
    }
    Ok(clients.iter().cycle().take(callers).cloned().collect())
}

impl Caller for Client {
    async fn call(&mut self) -> Result<(), Failure> {
        match self.gen_id(GenIdRequest {}).await?.get_ref().id {
            0 => Err("an ID is 0".into()),
            _ => Ok(()),
        }
    }
}

//! Guarded connections for tonic.

use tonic::transport::server::Connected;

use super::{Connection, Requests};

impl Connected for Connection {
    type ConnectInfo = Requests;

    fn connect_info(&self) -> Requests {
        self.requests().clone()
    }
}

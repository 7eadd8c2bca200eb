//! Guarded connections as tonic serves them.

use tonic::transport::server::Connected;

use super::Connection;

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

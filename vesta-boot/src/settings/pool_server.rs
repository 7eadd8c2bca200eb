//! Pool server: the store of machine IDs, given to other processes over gRPC.

use std::sync::Arc;

use vesta_store::Kind;

use super::Machine;
use super::parse::Parsed;
use crate::api::Api;
use crate::error::Error;
use vesta_net::checked_namespace;

section! {
    /// The pool server: which namespaces others may use.
    #[non_exhaustive]
    "Pool server" pub struct PoolServer |values, _layout| {
        /// Namespaces offered to other processes; turns the pool server on
        ///
        /// Separated by commas; `*` offers all. Processes without a database name this server as their
        /// `machine.store`, `segment.store` or `serial.store`: vesta://HOST:50051. Their entries lie in this server's
        /// own `machine.store`. A token needs the scope `pool`. Needs gRPC.
        ///
        /// Example: orders,users
        pub namespaces: Arc<[String]> = "pool_server.namespaces" "NAMES" or "", namespaces;
    }
}

fn namespaces(text: &str) -> Parsed<Arc<[String]>> {
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(checked_namespace).collect()
}

impl PoolServer {
    /// Refuses a pool server that has no store to offer.
    pub(super) fn check(&self, machine: &Machine, apis: &[Api]) -> Result<(), Error> {
        let store = machine.store().map(vesta_store::StoreUrl::kind);
        let flaw = match (machine, store) {
            _ if self.namespaces.is_empty() => return Ok(()),
            _ if !apis.contains(&Api::Grpc) => {
                "pool_server.namespaces is for gRPC; serve gRPC with it"
            }
            (_, Some(Kind::PoolServer)) => {
                "pool_server.namespaces gives this server's own store to others, but machine.store is another \
                 pool_server; let the others name that one"
            }
            (Machine::Pool { .. } | Machine::Reserved { .. }, Some(_)) => return Ok(()),
            _ => "pool_server.namespaces needs a machine.store that leases machine IDs",
        };
        Error::refuse(flaw)
    }
}

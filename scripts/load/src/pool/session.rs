//! A member that holds one machine ID, reduced to its record and its connection.

use std::net::SocketAddr;

use tonic::transport::Channel;
use vesta_intf::UnixMillis;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_intf::grpc::v1::{OpenPoolRequest, PutEntriesRequest, PutEntry};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{Entry as _, Record};

use super::{LAYOUT, NAMESPACE};
use crate::Failure;
use crate::load::grpc::channel;

/// Number of machine IDs whose records share an area.
const BLOCK: u64 = 1024;

pub(super) struct Session {
    client: PoolServiceClient<Channel>,
    identity: u64,
    machine: u64,
    record: Record,
}

/// Area of a machine ID's record.
pub(super) fn area(machine: u64) -> String {
    match machine / BLOCK {
        0 => format!("lease/{NAMESPACE}"),
        block => format!("block/{NAMESPACE}/{block}"),
    }
}

/// Bound of a renewal at this moment: a minute later.
pub(super) fn bound(now: UnixMillis) -> u64 {
    let tick = LAYOUT.tick_at(UnixMillis(now.0 + 60_000)).unwrap_or(0);
    tick << LAYOUT.spec().seq_bits
}

/// Identity of the pool server's store.
pub(super) async fn identity(address: SocketAddr) -> Result<u64, Failure> {
    let mut client = PoolServiceClient::new(channel(address).await?);
    let opened = client.open(OpenPoolRequest { older: None }).await?;
    Ok(opened.into_inner().identity)
}

impl Session {
    pub(super) async fn open(
        address: SocketAddr,
        identity: u64,
        machine: u64,
        record: Record,
    ) -> Result<Self, Failure> {
        Ok(Self {
            client: PoolServiceClient::new(channel(address).await?),
            identity,
            machine,
            record,
        })
    }

    /// Extends the record as a member does.
    pub(super) async fn renew(&mut self) -> Result<(), Failure> {
        let now = SystemClock::new().wall();
        let new = Record {
            attempt: self.record.attempt + 1,
            bound: self.record.bound.max(bound(now)),
            info_time: now,
            ..self.record.clone()
        };
        let put = PutEntry {
            key: self.machine.to_string(),
            old: Some(self.record.encode()),
            new: new.encode(),
            secret: self.record.secret.bytes().map(Vec::from),
        };
        let request = PutEntriesRequest {
            area: area(self.machine),
            puts: vec![put],
            identity: self.identity,
        };
        let done = self.client.put(request).await?.into_inner().done;
        self.record = new;
        match *done {
            [true] => Ok(()),
            _ => Err(format!("the record of {} was changed by another", self.machine).into()),
        }
    }
}

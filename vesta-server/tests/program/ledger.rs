//! A client that records every ID it gets, to detect duplicates.

use std::collections::{HashMap, HashSet};

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1::{GenIdsRequest, id_service_client::IdServiceClient};

use crate::support::Program;

const BATCH: u32 = 1000;
/// IDs to see after each change.
const ENOUGH: usize = 20_000;

/// Everything that was issued, in the layout max-peak.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) all: HashSet<u64>,
    /// The last position of each machine ID.
    pub(crate) last: HashMap<u64, u64>,
    /// The latest time, in seconds of the layout.
    pub(crate) latest: u64,
}

impl Ledger {
    /// Adds what one caller got, in its order.
    pub(crate) fn add(&mut self, ids: &[u64]) {
        for &id in ids {
            assert!(self.all.insert(id), "{id} came twice");
            let parts = IdMeta::MAX_PEAK.unpack(id).expect("its parts");
            let position = parts.time << 20 | parts.seq;
            let last = self.last.insert(parts.machine, position);
            assert!(last.is_none_or(|last| last < position), "{id} is not after {last:?}");
            self.latest = self.latest.max(parts.time);
        }
    }
}

/// The only caller of a program.
pub(crate) struct Caller {
    client: IdServiceClient<Channel>,
    pub(crate) ledger: Ledger,
}

impl Caller {
    pub(crate) fn new(ledger: Ledger, running: &Program) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{}", running.address()));
        let client = IdServiceClient::new(endpoint.expect("a URL").connect_lazy());
        let mut caller = Self { client, ledger };
        caller.ledger.add(&[running.first_id()]);
        caller
    }

    async fn call(&mut self) -> Result<usize, Status> {
        let ids = self.client.gen_ids(GenIdsRequest { count: BATCH }).await?.into_inner().ids;
        self.ledger.add(&ids);
        Ok(ids.len())
    }

    /// Gets IDs; none of the calls may fail.
    pub(crate) async fn undisturbed(&mut self, after: &str) {
        let mut got = 0;
        while got < ENOUGH {
            got += self.call().await.unwrap_or_else(|status| panic!("{after}: {status:?}"));
        }
    }

    /// Gets IDs; calls may be refused for a while.
    pub(crate) async fn in_the_end(&mut self, after: &str) {
        let mut got = 0;
        while got < ENOUGH {
            match self.call().await {
                Ok(count) => got += count,
                Err(status) => assert_eq!(status.code(), Code::Unavailable, "{after}: {status:?}"),
            }
        }
    }

    /// Goes on until a call is refused.
    pub(crate) async fn refused(&mut self) -> Status {
        loop {
            if let Err(status) = self.call().await {
                return status;
            }
        }
    }
}

#[test]
#[should_panic(expected = "came twice")]
fn it_finds_an_id_that_comes_twice() {
    let mut ledger = Ledger::default();
    ledger.add(&[1 << 10 | 7, 2 << 10 | 7]);
    ledger.add(&[1 << 10 | 7]);
}

#[test]
#[should_panic(expected = "is not after")]
fn it_finds_a_step_back() {
    Ledger::default().add(&[2 << 10 | 7, 1 << 10 | 7]);
}

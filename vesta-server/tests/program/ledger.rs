//! A client that records every ID it gets, to detect duplicates.

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use vesta_intf::grpc::v1::{GenIdsRequest, id_service_client::IdServiceClient};
use vesta_testkit::fleet::Ledger;

use crate::support::Program;

const BATCH: u32 = 1000;
/// Number of IDs to check after each change.
const ENOUGH: usize = 20_000;

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
        caller
            .ledger
            .check(&[running.first_id()])
            .expect("a new one");
        caller
    }

    async fn call(&mut self) -> Result<usize, Status> {
        let ids = self
            .client
            .gen_ids(GenIdsRequest { count: BATCH })
            .await?
            .into_inner()
            .ids;
        self.ledger
            .check(&ids)
            .unwrap_or_else(|flaw| panic!("{flaw}"));
        Ok(ids.len())
    }

    /// Gets IDs; no call may fail.
    pub(crate) async fn undisturbed(&mut self, after: &str) {
        let mut got = 0;
        while got < ENOUGH {
            got += self
                .call()
                .await
                .unwrap_or_else(|status| panic!("{after}: {status:?}"));
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

    /// Calls until a call is refused.
    pub(crate) async fn refused(&mut self) -> Status {
        loop {
            if let Err(status) = self.call().await {
                return status;
            }
        }
    }
}

//! Callers: each calls one server as fast as it answers, until the server has ended or the run is over.
//! Every answer that arrived is checked, even if its server has been killed since.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint};
use vesta_intf::grpc::kind_of;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::{GenIdRequest, GenIdsRequest, GenRunsRequest};
use vesta_intf::{ErrorKind, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL};
use vesta_testkit::Rng;
use vesta_testkit::fleet::{Answer, Receiver};

use crate::process::Process;
use crate::rest::Rest;
use crate::watch::Watch;
use crate::world::World;

/// Delay before a refused caller tries again, or leaves if its server has ended.
const AGAIN: Duration = Duration::from_millis(20);

/// The protocol between a caller and a server.
#[derive(Clone)]
pub(crate) enum Api {
    Grpc(Handle),
    Rest,
}

impl Api {
    pub(crate) fn callers(&self) -> usize {
        match self {
            Self::Grpc(_) => 3,
            Self::Rest => 2,
        }
    }
}

/// The call got an error, and no IDs. Its kind, if the error says it.
pub(crate) struct Refused(Option<ErrorKind>);

/// One kind of client.
trait Client {
    /// Makes a call; its answer goes to `take`.
    fn call(&mut self, rng: &mut Rng, take: &mut dyn FnMut(Answer, u64)) -> Result<(), Refused>;
}

pub(crate) struct Caller {
    pub(crate) process: usize,
    pub(crate) caller: usize,
    pub(crate) world: Arc<World>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) server: Arc<Process>,
}

impl Caller {
    pub(crate) fn run(self, api: &Api, address: SocketAddr) {
        match api {
            Api::Grpc(runtime) => {
                let url = Endpoint::from_shared(format!("http://{address}")).expect("a URL");
                let _inside = runtime.enter();
                let client = IdServiceClient::new(url.connect_lazy());
                self.go_on(Grpc {
                    client,
                    runtime: runtime.clone(),
                });
            }
            Api::Rest => self.go_on(Rest::new(address)),
        }
    }

    fn go_on(self, mut client: impl Client) {
        let mut rng = Rng::new((self.process * 10 + self.caller) as u64);
        while !self.watch.over.is_set() {
            let mut marks = self.world.ledger().marks(self.process);
            let mut take = |answer: Answer, expected: u64| {
                let (process, caller, at) = (self.process, self.caller, self.watch.elapsed());
                let mut ledger = self.world.ledger();
                let before = ledger.ids;
                ledger.record(
                    Receiver {
                        process,
                        caller,
                        at,
                    },
                    &answer,
                    &mut marks,
                );
                let got = ledger.ids - before;
                if got != expected {
                    ledger.find(format!(
                        "{}: {expected} IDs asked for, {got} came",
                        self.server.name
                    ));
                }
            };
            if let Err(Refused(kind)) = client.call(&mut rng, &mut take) {
                self.world.count(|counts| &mut counts.refused_calls);
                if kind == Some(ErrorKind::AwaitingLease) {
                    self.world.count(|counts| &mut counts.awaiting);
                }
                if self.server.ends_within(AGAIN) {
                    return;
                }
            }
        }
    }
}

struct Grpc {
    client: IdServiceClient<Channel>,
    runtime: Handle,
}

impl From<tonic::Status> for Refused {
    fn from(status: tonic::Status) -> Self {
        Self(Some(kind_of(&status)))
    }
}

impl Grpc {
    async fn send(
        client: &mut IdServiceClient<Channel>,
        rng: &mut Rng,
        take: &mut dyn FnMut(Answer, u64),
    ) -> Result<(), Refused> {
        let up_to = |rng: &mut Rng, max: u32| {
            1 + u32::try_from(rng.span(u64::from(max) - 1)).expect("below max")
        };
        match rng.below(10) {
            0..=4 => {
                let count = up_to(rng, MAX_RUN_IDS_PER_CALL);
                let runs = client
                    .gen_runs(GenRunsRequest { count })
                    .await?
                    .into_inner()
                    .runs;
                let runs = runs.into_iter().map(Into::into).collect();
                take(Answer::Runs(runs), count.into());
            }
            5..=7 => {
                let count = up_to(rng, MAX_IDS_PER_CALL);
                let ids = client
                    .gen_ids(GenIdsRequest { count })
                    .await?
                    .into_inner()
                    .ids;
                take(Answer::Ids(ids), count.into());
            }
            _ => {
                let id = client.gen_id(GenIdRequest {}).await?.into_inner().id;
                take(Answer::Ids(vec![id]), 1);
            }
        }
        Ok(())
    }
}

impl Client for Grpc {
    fn call(&mut self, rng: &mut Rng, take: &mut dyn FnMut(Answer, u64)) -> Result<(), Refused> {
        self.runtime
            .block_on(Self::send(&mut self.client, rng, take))
    }
}

impl Client for Rest {
    fn call(&mut self, rng: &mut Rng, take: &mut dyn FnMut(Answer, u64)) -> Result<(), Refused> {
        let count = 1 + rng.span(999);
        let (path, expected) = match rng.below(10) {
            0 => ("/genid".to_owned(), 1),
            1 => ("/v1/id".to_owned(), 1),
            2 => ("/api/snowflake/get/torture".to_owned(), 1),
            _ => (format!("/v1/ids?count={count}"), count),
        };
        let ids = self.get(&path).map_err(|_| Refused(None))?;
        take(Answer::Ids(ids), expected);
        Ok(())
    }
}

//! Pool server: the store of another server, for processes that cannot reach that store themselves.

mod config;
mod errors;
mod kv;
mod look;
mod pin;
mod proof;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_intf::grpc::v1::{OpenPoolRequest, OpenPoolResponse, StoreWriter};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{StoreError, StoreIdentity, TWO_STORES, Timing};

use crate::backends::channel::endpoints;
use crate::options::Purpose;
use crate::remote::{Client, Remote, Result};
use crate::{OpenError, Options, StoreUrl};
use config::Config;
use errors::explain;
use look::{Answer, Wanted, judge};
use pin::Pin;

/// Interval of looks at all servers of the URL, in timeouts of a request: 20 s by default. While one of them does not
/// answer, it is one timeout.
const LOOK_EVERY: u32 = 10;

/// Maximum size of a message: 128 changes, or a page of entries.
const LARGEST_ANSWER: usize = 8 << 20;

pub(crate) type Store = Remote<PoolServer>;

/// Servers of Vesta that give their store to others.
///
/// The URL is `vesta://[:TOKEN@]host:port,host:port`, or `vestas://…` with TLS, with the option `ca=FILE` as for
/// etcd. The default port is 50051. The servers share one store; `id=IDENTITY` says which. Without it, the store that
/// answers at the first start is kept in the state directory, if the [options](Options::state_dir) name one.
pub(crate) struct PoolServer {
    shown: String,
    servers: Vec<(String, Endpoint)>,
    token: Option<MetadataValue<Ascii>>,
    /// Number of the store, if the URL has it.
    id: Option<u64>,
    pin: Pin,
    /// Facts from the server that answered first.
    opened: OnceLock<OpenPoolResponse>,
    looked: Mutex<Looked>,
    /// Server of the store, as told last.
    writer: Mutex<Option<StoreWriter>>,
    /// Timeout of one request.
    limit: Duration,
}

/// Outcome of the last look at all servers.
#[derive(Debug, Default)]
struct Looked {
    at: Option<Instant>,
    /// True if one of them did not answer.
    away: bool,
    /// Two servers have copies of one store. Stays until all servers answer as one store.
    copied: Option<StoreError>,
}

pub(crate) struct Connection {
    /// Index of the server.
    index: usize,
    server: String,
    client: PoolServiceClient<Channel>,
}

impl Client for PoolServer {
    const NAME: &'static str = "the pool server";
    const TIMING: Timing = Timing::NETWORK;

    type Connection = Connection;

    fn new(url: &StoreUrl, options: &Options, _: Purpose) -> std::result::Result<Self, OpenError> {
        let Config {
            shown,
            servers,
            token,
            tls,
            id,
        } = Config::try_from(url)?;
        let servers = endpoints(&servers, tls.as_ref(), options.limit(Self::TIMING));
        let servers = servers.map_err(|source| OpenError::Store {
            store: shown.clone(),
            source,
        })?;
        let file = format!("pool-server-{:08x}", crc32fast::hash(shown.as_bytes()));
        Ok(Self {
            pin: Pin(options.state_dir.as_ref().map(|folder| folder.join(file))),
            shown,
            servers,
            token,
            id,
            opened: OnceLock::new(),
            looked: Mutex::default(),
            writer: Mutex::default(),
            limit: options.limit(Self::TIMING),
        })
    }

    fn shown(&self) -> &str {
        &self.shown
    }

    fn servers(&self) -> Vec<&str> {
        self.servers.iter().map(|(server, _)| &**server).collect()
    }

    fn via(&self) -> Option<String> {
        self.opened.get().map(|opened| opened.server.clone())
    }

    async fn connect(&self, server: usize, limit: Duration) -> Result<Connection> {
        let mut connection = self.channel(server);
        self.look(&mut connection, limit).await?;
        Ok(connection)
    }

    /// A broken connection is opened again by the channel. So each request names the store that it means.
    async fn is_alive(&self, _: &mut Connection) -> bool {
        true
    }
}

impl PoolServer {
    fn channel(&self, index: usize) -> Connection {
        let (server, endpoint) = &self.servers[index];
        let client = PoolServiceClient::new(endpoint.connect_lazy());
        Connection {
            index,
            server: server.clone(),
            client: client
                .max_decoding_message_size(LARGEST_ANSWER)
                .max_encoding_message_size(LARGEST_ANSWER),
        }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        request
    }

    async fn open(
        &self,
        to: &mut Connection,
        older: Option<StoreIdentity>,
    ) -> Result<OpenPoolResponse> {
        let older = older.map(|it| v1::StoreIdentity {
            number: it.number,
            created_ms: it.created.0,
        });
        let answer = to
            .client
            .open(self.request(OpenPoolRequest { older }))
            .await;
        let opened = answer.map_err(|status| explain(&to.server, &status))?;
        Ok(opened.into_inner())
    }

    /// Number of the store that answered first.
    fn identity(&self) -> u64 {
        self.opened.get().map_or(0, |opened| opened.identity)
    }

    fn wanted(&self) -> Result<Wanted> {
        if let Some(opened) = self.opened.get() {
            return Ok(Wanted::Known(identity_of(opened)));
        }
        if let Some(id) = self.id {
            return Ok(Wanted::Id(id));
        }
        let pinned = self.pin.read()?;
        Ok(pinned.map_or(Wanted::Any, |(number, file)| Wanted::Pinned(number, file)))
    }

    /// Asks one server for its facts, and refuses those about another store.
    async fn facts(&self, to: &mut Connection) -> Result<OpenPoolResponse> {
        let opened = self.open(to, None).await?;
        let (server, said) = (
            to.server.clone(),
            Ok((identity_of(&opened), opened.refused.clone())),
        );
        judge(&self.wanted()?, &[Answer { server, said }])?;
        Ok(opened)
    }

    /// Looks at all servers again, if it is time.
    async fn look_again(&self, to: &mut Connection) -> Result<()> {
        if self.servers.len() == 1 {
            return Ok(());
        }
        let (is_due, copied) = {
            let Looked { at, away, copied } = &*self.looked();
            let every = if *away || copied.is_some() {
                1
            } else {
                LOOK_EVERY
            };
            let is_due = |at: Instant| at.elapsed() >= self.limit * every;
            (at.is_none_or(is_due), copied.clone())
        };
        match copied {
            _ if is_due => self.look(to, self.limit).await,
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Makes sure that this server and all others that answer share the store that is meant.
    async fn look(&self, own: &mut Connection, limit: Duration) -> Result<()> {
        let wanted = self.wanted()?;
        let others = (0..self.servers.len()).filter(|other| *other != own.index);
        let others = join_all(others.map(|other| async move {
            let mut other = self.channel(other);
            let opened = timeout(limit / 4, self.open(&mut other, None)).await;
            let silent = |_| {
                StoreError::unavailable(
                    "it does not answer in time",
                    std::io::Error::other("timeout"),
                )
            };
            (other, opened.map_err(silent).flatten())
        }));
        let (opened, mut others) = futures_util::future::join(self.open(own, None), others).await;
        if let Err(error) = &opened
            && (error.is_permanent() || others.is_empty())
        {
            return Err(error.clone());
        }
        let answer = |server: &str, opened: &Result<OpenPoolResponse>| Answer {
            server: server.to_owned(),
            said: opened
                .as_ref()
                .map(|it| (identity_of(it), it.refused.clone()))
                .map_err(Clone::clone),
        };
        let mut answers = vec![answer(&own.server, &opened)];
        answers.extend(
            others
                .iter()
                .map(|(other, opened)| answer(&other.server, opened)),
        );
        let verdict = judge(&wanted, &answers);
        if wanted != Wanted::Any {
            let said = |it: &Answer| Some(it.said.as_ref().ok()?.0);
            self.tell(
                answers.iter().filter_map(said).min(),
                &mut *own,
                &opened,
                &mut others,
            )
            .await;
        }
        let (identity, opened) = (verdict?, opened?);
        if opened.identity != identity.number {
            let text = format!(
                "{} has another, younger store ({})",
                own.server,
                identity_of(&opened)
            );
            return Err(StoreError::unavailable(
                text,
                std::io::Error::other("its members are elsewhere"),
            ));
        }
        let (mut away, mut copied) = (false, None);
        for (other, theirs) in &mut others {
            match theirs {
                Ok(theirs) if theirs.identity == identity.number => {
                    match self.share(own, other, identity).await {
                        Ok(true) => {}
                        Ok(false) => {
                            copied = Some(look::copied(&own.server, &other.server, identity));
                        }
                        Err(error) if wanted == Wanted::Any => return Err(error),
                        Err(_) => away = true,
                    }
                }
                Ok(_) => {}
                Err(_) => away = true,
            }
        }
        self.note(away, copied)?;
        if wanted == Wanted::Any {
            self.pin.write(identity);
        }
        self.opened.get_or_init(|| opened);
        Ok(())
    }

    /// Tells each server with a younger store that there is an older one.
    async fn tell(
        &self,
        oldest: Option<StoreIdentity>,
        own: &mut Connection,
        opened: &Result<OpenPoolResponse>,
        others: &mut [(Connection, Result<OpenPoolResponse>)],
    ) {
        let all = others.iter_mut().map(|(other, opened)| (other, &*opened));
        for (server, opened) in all.chain([(own, opened)]) {
            let (Ok(opened), Some(oldest)) = (opened, oldest) else {
                continue;
            };
            if identity_of(opened) > oldest && opened.refused.is_none() {
                let (younger, server_name) = (identity_of(opened), &server.server);
                tracing::error!(
                    store = self.shown,
                    reason = TWO_STORES,
                    "{server_name} has a younger store ({younger}) than another server of the URL ({oldest})"
                );
                let _ = self.open(server, Some(oldest)).await; // or another member does
            }
        }
    }

    /// Keeps the outcome of a look. Copies stay known until all servers answer as one store.
    fn note(&self, away: bool, copied: Option<StoreError>) -> Result<()> {
        let mut looked = self.looked();
        if let Some(error) = &copied
            && looked.copied.is_none()
        {
            tracing::error!(store = self.shown, reason = TWO_STORES, "{error}");
        }
        (looked.at, looked.away) = (Some(Instant::now()), away);
        looked.copied = copied.or(looked.copied.take().filter(|_| away));
        looked.copied.clone().map_or(Ok(()), Err)
    }

    fn looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn identity_of(opened: &OpenPoolResponse) -> StoreIdentity {
    StoreIdentity {
        created: UnixMillis(opened.created_ms),
        number: opened.identity,
    }
}

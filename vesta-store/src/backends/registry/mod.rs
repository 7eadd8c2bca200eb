//! Registry: the store of a vesta-server, for processes that cannot reach that store themselves.

mod config;
mod errors;
mod kv;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use vesta_intf::grpc::v1::registry_service_client::RegistryServiceClient;
use vesta_intf::grpc::v1::{OpenRegistryRequest, OpenRegistryResponse};
use vesta_service::lease::{StoreError, Timing};

use crate::backends::channel::endpoints;
use crate::options::Purpose;
use crate::remote::{Client, Remote, Result};
use crate::{OpenError, Options, StoreUrl};
use config::Config;
use errors::explain;

/// Maximum size of a message: 128 changes, or a page of entries.
const LARGEST_ANSWER: usize = 8 << 20;

pub(crate) type Store = Remote<Registry>;

/// Servers of Vesta that give their store to others.
///
/// The URL is `vesta://[:TOKEN@]host:port,host:port`, or `vestas://…` with TLS, with the option `ca=FILE` as for
/// etcd. The default port is 50051. The servers share one store: one whose store has another identity is refused.
/// The identity is kept in the state directory, if the [options](Options::state_dir) name one.
pub(crate) struct Registry {
    shown: String,
    servers: Vec<(String, Endpoint)>,
    token: Option<MetadataValue<Ascii>>,
    /// Facts from the server that answered first.
    opened: OnceLock<OpenRegistryResponse>,
    /// File with the identity of the store that answered first.
    pin: Option<PathBuf>,
}

pub(crate) struct Connection {
    server: String,
    client: RegistryServiceClient<Channel>,
}

impl Client for Registry {
    const NAME: &'static str = "the registry";
    const TIMING: Timing = Timing::NETWORK;

    type Connection = Connection;

    fn new(url: &StoreUrl, options: &Options, _: Purpose) -> std::result::Result<Self, OpenError> {
        let Config {
            shown,
            servers,
            token,
            tls,
        } = Config::try_from(url)?;
        let servers = endpoints(&servers, tls.as_ref(), options.limit(Self::TIMING));
        let servers = servers.map_err(|source| OpenError::Store {
            store: shown.clone(),
            source,
        })?;
        let file = format!("registry-{:08x}", crc32fast::hash(shown.as_bytes()));
        Ok(Self {
            pin: options.state_dir.as_ref().map(|folder| folder.join(file)),
            shown,
            servers,
            token,
            opened: OnceLock::new(),
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
        let opened = self.open(&mut connection).await?;
        if self.opened.get().is_none() {
            // Before the first entry is read, every server that answers must have the same store.
            let others = (0..self.servers.len()).filter(|other| *other != server);
            let others = join_all(others.map(|other| async move {
                let mut other = self.channel(other);
                let opened = timeout(limit / 4, self.open(&mut other)).await;
                Some((other.server, opened.ok()?.ok()?))
            }));
            for (other, theirs) in others.await.into_iter().flatten() {
                if theirs.identity != opened.identity {
                    return Err(StoreError::permanent(format!(
                        "{} and {other} have different stores, which would hand out the same machine \
                         IDs; name servers that share one store",
                        connection.server
                    )));
                }
            }
            self.check_pin(opened.identity)?;
        }
        self.opened.get_or_init(|| opened.clone());
        self.same_store(&connection.server, opened)?;
        Ok(connection)
    }

    /// A broken connection is opened again by the channel. So each request names the store that it means.
    async fn is_alive(&self, _: &mut Connection) -> bool {
        true
    }
}

impl Registry {
    fn channel(&self, server: usize) -> Connection {
        let (server, endpoint) = &self.servers[server];
        let client = RegistryServiceClient::new(endpoint.connect_lazy());
        Connection {
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

    async fn open(&self, to: &mut Connection) -> Result<OpenRegistryResponse> {
        let answer = to.client.open(self.request(OpenRegistryRequest {})).await;
        let opened = answer.map_err(|status| explain(&to.server, &status))?;
        Ok(opened.into_inner())
    }

    /// Identity of the store that answered first.
    fn identity(&self) -> u64 {
        self.opened.get().map_or(0, |opened| opened.identity)
    }

    /// Refuses an answer about another store than the one that answered first.
    fn same_store(
        &self,
        server: &str,
        opened: OpenRegistryResponse,
    ) -> Result<OpenRegistryResponse> {
        if opened.identity == self.identity() {
            return Ok(opened);
        }
        Err(StoreError::permanent(format!(
            "{server} has another store than the server that answered first, which does not know which \
             machine IDs are in use; name servers that share one store"
        )))
    }

    /// Compares the identity with the one that this host saw before, or keeps it.
    fn check_pin(&self, identity: u64) -> Result<()> {
        let Some(path) = &self.pin else {
            return Ok(());
        };
        let (text, shown) = (format!("{identity:016x}\n"), path.display());
        let known = match fs::read_to_string(path) {
            Ok(known) if !known.is_empty() => Ok(known),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => write(path, &text).map(|()| text.clone()),
        };
        match known {
            Ok(known) if known == text => Ok(()),
            Ok(_) => Err(StoreError::permanent(format!(
                "another store answers than before at this URL, which does not know which machine IDs are \
                 in use; check the URL. If the store was replaced on purpose, delete {shown}"
            ))),
            Err(error) => Err(StoreError::permanent(format!("{shown}: {error}"))),
        }
    }
}

/// Writes a file of one line; after a crash it is empty or complete.
fn write(path: &PathBuf, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

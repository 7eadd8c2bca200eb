//! etcd: connections to the members of a cluster.

mod clock;
mod config;
mod errors;
#[cfg(test)]
mod fuzz;
mod kv;

/// Generated code: messages and clients of the part of etcd's API that is used here.
#[allow(
    dead_code,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all
)]
mod pb {
    include!("generated/etcdserverpb.rs");
}

use std::sync::OnceLock;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use vesta_service::lease::StoreError;

use crate::backends::channel::endpoints;
use crate::options::Purpose;
use crate::remote::{Client, Remote};
use crate::{OpenError, Options, StoreUrl};
use config::Config;
use errors::{explain, needs_no_login};
use pb::auth_client::AuthClient;
use pb::kv_client::KvClient;
use pb::request_op::Request as Op;
use pb::response_op::Response as Outcome;
use pb::{RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse};

/// Maximum response size: a page of entries, with room to spare; see `kv`.
const LARGEST_ANSWER: usize = 64 << 20;

pub(crate) type Store = Remote<Etcd>;

/// Entries in etcd 3.4 or later, for the processes that share a cluster.
///
/// The URL is `etcd://[user:password@]host:port,host:port[/prefix]`, or `etcds://…` with TLS. The
/// default port is 2379, the default prefix `vesta`. The names must be those of members of *one*
/// cluster; a response from another cluster is refused permanently. With TLS, certificates are checked
/// against the public web CAs, or against those in a PEM file: `etcds://host/prefix?ca=FILE`. In a
/// user, a password and a FILE, characters other than letters, digits and `-._~` may be written as `%`
/// and two digits, and `/ ? # @ : & %` must be. The prefix and its parts consist of letters, digits
/// and `-._`.
///
/// An unresponsive member costs at most its share of the request timeout, or a quarter. Then the next one is tried, and
/// stays in use. The user needs read and write access to keys that begin with `PREFIX/` (`etcdctl role grant-permission
/// ROLE --prefix=true readwrite vesta/`).
///
/// Each entry has one key. Entries can be read with `etcdctl get --prefix vesta/lease/orders/`:
/// ```text
/// PREFIX/AREA/KEY
///
/// vesta/lease/orders/namespace
/// {"schema":1,…}
/// vesta/lease/orders/17
/// {"schema":1,…}
/// ```
/// They are never deleted and have no lease; an entry with a lease attached is refused.
///
/// A change is one transaction: `If mod_revision(key) = the revision read with the old value, Then
/// put`. Reads are linearizable. The clock is the `Date` of the member's answer over HTTP, at the same address. Every change adds a revision to etcd's history, so enable
/// compaction (`--auto-compaction-retention`), as for any other use.
pub(crate) struct Etcd {
    config: Config,
    members: Vec<(String, Endpoint)>,
    /// Identity of the cluster that responded first. Another cluster does not know our claims.
    cluster: OnceLock<u64>,
    has_no_clock: clock::HasNoClock,
}

type Token = MetadataValue<Ascii>;

#[derive(Clone)]
pub(crate) struct Connection {
    member: String,
    channel: Channel,
    token: Option<Token>,
}

impl Client for Etcd {
    const NAME: &'static str = "etcd";

    type Connection = Connection;

    fn new(url: &StoreUrl, options: &Options, _: Purpose) -> Result<Self, OpenError> {
        let config = Config::try_from(url)?;
        let limit = options.limit(Self::TIMING);
        let members = endpoints(&config.members, config.tls.as_ref(), limit);
        let members = members.map_err(|source| OpenError::Store {
            store: config.shown.clone(),
            source,
        })?;
        Ok(Self {
            config,
            members,
            cluster: OnceLock::new(),
            has_no_clock: clock::HasNoClock::default(),
        })
    }

    fn shown(&self) -> &str {
        &self.config.shown
    }

    fn servers(&self) -> Vec<&str> {
        self.members
            .iter()
            .map(|(member, _)| member.as_str())
            .collect()
    }

    async fn is_alive(&self, connection: &mut Connection) -> bool {
        self.probe(connection).await.is_ok()
    }

    async fn connect(&self, server: usize, _: Duration) -> Result<Connection, StoreError> {
        let (member, endpoint) = &self.members[server];
        let channel = endpoint.connect_lazy();
        let token = self
            .log_in(&channel)
            .await
            .map_err(|status| explain(member, &status))?;
        let mut connection = Connection {
            member: member.clone(),
            channel,
            token,
        };
        self.probe(&mut connection).await?;
        Ok(connection)
    }
}

impl Etcd {
    async fn log_in(&self, channel: &Channel) -> Result<Option<Token>, Status> {
        let Some(login) = self.config.login.clone() else {
            return Ok(None);
        };
        match AuthClient::new(channel.clone())
            .authenticate(request(login, None))
            .await
        {
            Ok(answer) => {
                let mut token: Token = (answer.into_inner().token.parse())
                    .map_err(|_| Status::internal("invalid token"))?;
                token.set_sensitive(true);
                Ok(Some(token))
            }
            Err(status) if needs_no_login(&status) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Reads a key as a request does: linearizably, and as the configured user.
    async fn probe(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let key = format!("{}/", self.config.prefix).into();
        self.read(
            connection,
            RangeRequest {
                key,
                ..RangeRequest::default()
            },
        )
        .await
        .map(drop)
    }

    async fn read(
        &self,
        connection: &mut Connection,
        range: RangeRequest,
    ) -> Result<RangeResponse, StoreError> {
        let read = RequestOp {
            request: Some(Op::RequestRange(range)),
        };
        let txn = TxnRequest {
            success: vec![read],
            ..TxnRequest::default()
        };
        got(self.send(connection, txn).await?)
    }

    async fn send(
        &self,
        Connection {
            member,
            channel,
            token,
        }: &mut Connection,
        txn: TxnRequest,
    ) -> Result<TxnResponse, StoreError> {
        let mut kv = KvClient::new(channel.clone()).max_decoding_message_size(LARGEST_ANSWER);
        let answer = kv.txn(request(txn, token.clone())).await;
        let answer = answer
            .map_err(|status| explain(member, &status))?
            .into_inner();
        let cluster = answer.header.map(|header| header.cluster_id);
        if cluster.is_some_and(|id| *self.cluster.get_or_init(|| id) != id) {
            return Err(StoreError::permanent(
                "another etcd cluster answers than before, which does not know which machine IDs \
                 are in use; name the members of one cluster, and restart",
            ));
        }
        Ok(answer)
    }
}

fn request<T>(message: T, token: Option<Token>) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    // A partitioned member then fails at once instead of waiting for the others.
    metadata.insert("hasleader", Token::from_static("true"));
    if let Some(token) = token {
        metadata.insert("token", token);
    }
    request
}

/// Response of a transaction that reads one range.
fn got(answer: TxnResponse) -> Result<RangeResponse, StoreError> {
    match answer
        .responses
        .into_iter()
        .next()
        .and_then(|one| one.response)
    {
        Some(Outcome::ResponseRange(range)) => Ok(range),
        _ => Err(StoreError::permanent(
            "the response is not in etcd's format; check the address",
        )),
    }
}

//! Requests to a cluster: over one connection at a time, to another member when one fails.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};
use vesta_service::StoreError;

use super::config::{Config, Login, Roots};
use super::errors::{self, Failure};
use super::pb::auth_client::AuthClient;
use super::pb::kv_client::KvClient;
use super::pb::request_op::Request as Op;
use super::pb::response_op::Response as Outcome;
use super::pb::{
    AuthenticateRequest, RangeRequest, RangeResponse, RequestOp, ResponseHeader, TxnRequest,
    TxnResponse,
};
use crate::runtime::NoAnswer;

/// A page of entries, with room to spare; see `kv`.
const LARGEST_ANSWER: usize = 64 << 20;

pub(super) struct Client {
    members: Vec<Member>,
    login: Option<Login>,
    /// The time for which one member is waited for while there are others.
    patience: Duration,
    /// The identity of the cluster that answered first. Another one knows nothing of our claims.
    cluster: OnceLock<u64>,
    current: Mutex<Current>,
}

struct Member {
    name: String,
    endpoint: Endpoint,
}

type Token = MetadataValue<Ascii>;

/// The connection that the next request is sent over.
struct Current {
    member: usize,
    /// Grows with each change of the connection.
    number: u64,
    channel: Option<Channel>,
    /// `None` before a login. `Some(None)` if etcd wants none.
    token: Option<Option<Token>>,
}

/// One request over a connection, which is given up if nothing comes of it: also when the request is
/// dropped for lack of an answer.
struct Trial<'a> {
    client: &'a Client,
    member: &'a str,
    number: u64,
    channel: Channel,
    answered: bool,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.client.give_up(self.number);
        }
    }
}

impl Client {
    /// Connects to nothing yet.
    pub(super) fn new(config: &Config, request_timeout: Duration) -> Result<Self, StoreError> {
        let tls = config.tls.as_ref().map(tls).transpose()?;
        let member = |name: &String| {
            let unusable = |error: tonic::transport::Error| {
                let begins = format!("{name} cannot be used");
                StoreError::permanent(errors::whole_story(&begins, Some(&error)))
            };
            let scheme = if tls.is_some() { "https" } else { "http" };
            let endpoint = Endpoint::from_shared(format!("{scheme}://{name}")).map_err(unusable)?;
            let endpoint = endpoint.tcp_nodelay(true).connect_timeout(request_timeout);
            let endpoint = match &tls {
                Some(tls) => endpoint.tls_config(tls.clone()).map_err(unusable)?,
                None => endpoint,
            };
            Ok(Member { name: name.clone(), endpoint })
        };
        let members = config.members.iter().map(member).collect::<Result<Vec<_>, _>>()?;
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let token = if config.login.is_some() { None } else { Some(None) };
        Ok(Self {
            members,
            login: config.login.clone(),
            patience: request_timeout / count,
            cluster: OnceLock::new(),
            current: Mutex::new(Current { member: 0, number: 0, channel: None, token }),
        })
    }

    /// Reads these ranges, all at one moment. Every member is tried, and the first one again
    /// over a new connection: the old one may have ended unnoticed.
    pub(super) async fn read<const N: usize>(
        &self,
        ranges: [RangeRequest; N],
    ) -> Result<[RangeResponse; N], Failure> {
        let txn = TxnRequest { success: gets(ranges), ..TxnRequest::default() };
        let mut told: Option<Failure> = None;
        for _ in 0..=self.members.len() {
            let member = self.current().member;
            let failure = match timeout(self.patience, self.change(txn.clone())).await {
                Ok(Ok(answer)) => return got(answer),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Silent {
                    member: self.members[member].name.as_str().into(),
                    silence: NoAnswer(self.patience),
                },
            };
            if !failure.concerns_member() {
                return Err(failure);
            }
            // What etcd itself says tells more than that somebody is not there.
            if !told.as_ref().is_some_and(Failure::is_an_answer) {
                told = Some(failure);
            }
        }
        Err(told.expect("there is a member"))
    }

    /// Has a transaction carried out by the member that answered last, and by no other: after a
    /// failure it is not known whether it was.
    pub(super) async fn change(&self, txn: TxnRequest) -> Result<TxnResponse, Failure> {
        let mut trial = self.trial();
        let member = trial.member;
        let answer = self.exchange(&trial.channel, txn).await;
        let answer = answer
            .map_err(|status| Failure::Status { member: member.into(), status: Box::new(status) });
        let answer = answer.and_then(|answer| self.checked(answer));
        trial.answered = !answer.as_ref().is_err_and(Failure::concerns_member);
        answer
    }

    async fn exchange(&self, channel: &Channel, txn: TxnRequest) -> Result<TxnResponse, Status> {
        let mut kv = KvClient::new(channel.clone()).max_decoding_message_size(LARGEST_ANSWER);
        let token = self.token(channel).await?;
        match kv.txn(request(txn.clone(), token)).await {
            // It was not carried out, so it can be repeated; just once.
            Err(status) if self.login.is_some() && errors::wants_login(&status) => {
                self.current().token = None;
                let token = self.token(channel).await?;
                Ok(kv.txn(request(txn, token)).await?.into_inner())
            }
            answer => Ok(answer?.into_inner()),
        }
    }

    /// From the last login, or from a new one.
    async fn token(&self, channel: &Channel) -> Result<Option<Token>, Status> {
        if let Some(token) = self.current().token.clone() {
            return Ok(token);
        }
        let Some(Login { user, password }) = self.login.clone() else { return Ok(None) };
        let login = AuthenticateRequest { name: user, password };
        let token = match AuthClient::new(channel.clone()).authenticate(request(login, None)).await
        {
            Ok(answer) => {
                let mut token: Token = (answer.into_inner().token.parse())
                    .map_err(|_| Status::internal("the token is no token"))?;
                token.set_sensitive(true);
                Some(token)
            }
            Err(status) if errors::needs_no_login(&status) => None,
            Err(status) => return Err(status),
        };
        self.current().token = Some(token.clone());
        Ok(token)
    }

    fn checked(&self, answer: TxnResponse) -> Result<TxnResponse, Failure> {
        let Some(ResponseHeader { cluster_id }) = answer.header else { return Ok(answer) };
        if *self.cluster.get_or_init(|| cluster_id) == cluster_id {
            return Ok(answer);
        }
        let error = StoreError::permanent(
            "another etcd cluster answers than before, which knows nothing of the machine IDs that \
             are taken; name the members of one cluster, and start again",
        );
        Err(error.into())
    }

    fn trial(&self) -> Trial<'_> {
        let mut current = self.current();
        let Member { name, endpoint } = &self.members[current.member];
        let channel = current.channel.get_or_insert_with(|| endpoint.connect_lazy()).clone();
        Trial { client: self, member: name, number: current.number, channel, answered: false }
    }

    /// Has the next request sent to the next member, unless somebody else saw to it already.
    fn give_up(&self, number: u64) {
        let mut current = self.current();
        if current.number == number {
            current.number += 1;
            current.member = (current.member + 1) % self.members.len();
            current.channel = None;
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tls(roots: &Roots) -> Result<ClientTlsConfig, StoreError> {
    let config = ClientTlsConfig::new();
    Ok(match roots {
        Roots::Web => config.with_webpki_roots(),
        Roots::File(file) => config.ca_certificate(certificates(file)?),
    })
}

fn certificates(file: &Path) -> Result<Certificate, StoreError> {
    let refuse = |why: &dyn std::fmt::Display| {
        let file = file.display();
        StoreError::permanent(format!("the certificates in {file} cannot be used: {why}"))
    };
    let text = fs::read_to_string(file).map_err(|error| refuse(&error))?;
    // One without any would only show as a failed connection.
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(refuse(&"it has no PEM block `CERTIFICATE`"));
    }
    Ok(Certificate::from_pem(text))
}

fn request<T>(message: T, token: Option<Token>) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    // A member that was cut off from the others says so at once, instead of waiting for them.
    metadata.insert("hasleader", Token::from_static("true"));
    if let Some(token) = token {
        metadata.insert("token", token);
    }
    request
}

pub(super) fn gets(ranges: impl IntoIterator<Item = RangeRequest>) -> Vec<RequestOp> {
    ranges.into_iter().map(|range| RequestOp { request: Some(Op::RequestRange(range)) }).collect()
}

/// The answers to [`gets`].
pub(super) fn got<const N: usize>(answer: TxnResponse) -> Result<[RangeResponse; N], Failure> {
    let ranges = answer.responses.into_iter().filter_map(|one| match one.response {
        Some(Outcome::ResponseRange(range)) => Some(range),
        _ => None,
    });
    ranges.collect::<Vec<_>>().try_into().map_err(|_| {
        StoreError::permanent("the answer has not the form of etcd's; check the address").into()
    })
}

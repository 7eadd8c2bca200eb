//! Implementation of `vesta.v1.PoolService`: this server's own store, for processes that cannot reach it.
//!
//! The server keeps no state: compare-and-set stays end to end, so several servers of one store are interchangeable.
//! Changes that no owner of a machine ID would make are refused.

mod work;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use tonic::{Code, Request, Response, Status};
use vesta_boot::{Caller, Offered, Outcome, Running};
use vesta_intf::UnixMillis;
use vesta_intf::grpc::kind_of;
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::pool_service_server::PoolService as Protocol;
use vesta_net::Requests;
use vesta_service::lease::{
    AT_ONCE, Leases, Place, Put, Refusal, Secret, Seen, StoreError, StoreIdentity,
};

use crate::access;
use crate::methods::{GET, LIST, OPEN, PUT};
use work::{Work, paged};

/// Maximum request size in bytes: as many changes, each of two values of 16 KiB.
pub(crate) const DECODE_LIMIT: usize = 5 << 20;

#[derive(Debug)]
pub(crate) struct PoolServer {
    running: Arc<Running>,
    work: Work,
    /// Refusals that were logged: by token and reason.
    logged: Mutex<BTreeSet<(String, &'static str)>>,
}

impl PoolServer {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        Self {
            work: Work::new(running.config.limits.request_timeout),
            running,
            logged: Mutex::default(),
        }
    }

    fn offered(&self) -> Result<Offered, Status> {
        self.running.pool_server.clone().ok_or_else(|| {
            Status::failed_precondition(
                "the pool server is off; set pool_server.namespaces on the server",
            )
        })
    }

    /// Counts a refused change. It is logged once for each token and reason, without what was sent, so that no
    /// caller can fill the log.
    fn refused(&self, caller: Caller, reason: &'static str) {
        self.running.metrics.refuse_change(caller);
        let token = self.running.security.name(caller);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.insert((token.to_owned(), reason)) {
            tracing::warn!(
                token,
                reason,
                "a change that no owner would make was refused"
            );
        }
    }

    /// The contents of an area, if they are offered to this caller.
    fn place<'a>(&self, caller: Caller, area: &'a str) -> Result<Place<'a>, Status> {
        let place = Place::of(area);
        let checked = self.offered()?.checked;
        let place = place.filter(|place| !checked || place.can_be_named());
        let place = place.ok_or_else(|| Status::invalid_argument(UNKNOWN_AREA))?;
        let (offered, own) = (
            &*self.running.config.pool_server.namespaces,
            self.running.security.namespaces(caller),
        );
        let known = |names: &[String], name: &str| {
            let is_it = |known: &String| known == name || known == "*";
            names.iter().any(is_it)
        };
        match place.namespace() {
            Some(name) if !known(offered, name) => Err(Status::failed_precondition(format!(
                "namespace `{name}` is not offered here; offered are {} (pool_server.namespaces)",
                offered.join(", ")
            ))),
            Some(name) if !own.is_empty() && !known(own, name) => Err(Status::permission_denied(
                format!("the token is not valid for namespace `{name}`"),
            )),
            None if place != Place::Proof && !own.is_empty() => Err(Status::permission_denied(
                "the token is valid for some namespaces only, and tags belong to none",
            )),
            _ => Ok(place),
        }
    }

    /// Asks the store, on a thread that may block, and counts the call, which is long if it reads a whole area. `meant` is the
    /// identity of the store that the caller means.
    async fn ask<T: Send + 'static>(
        &self,
        (method, caller, is_long): (usize, Caller, bool),
        meant: Option<u64>,
        allowed: Result<(), Status>,
        ask: impl FnOnce(&Offered) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Status> {
        let call = self.running.metrics.start(method);
        let asked = async {
            let offered = self.offered()?;
            allowed?;
            let asked = self.work.run(is_long, move || {
                if let Some(meant) = meant {
                    let seen = offered.seen()?;
                    if meant != seen.identity.number {
                        return Err(StoreError::permanent(ANOTHER_STORE).into());
                    }
                    if let Some(why) = seen.refused {
                        return Err(StoreError::two_stores(why).into());
                    }
                }
                ask(&offered)
            });
            asked.await?.map_err(|failure| match failure {
                Failure::Refused(place, refusal) => {
                    self.refused(caller, refusal.reason);
                    let why = format!("{place}: {refusal}");
                    // The same change is allowed once the bound has passed.
                    match refusal.for_now {
                        true => Status::already_exists(why),
                        false => Status::invalid_argument(why),
                    }
                }
                // The members of this store stop, too.
                Failure::Store(error) if error.is_two_stores() => {
                    Status::aborted(error.to_string())
                }
                Failure::Store(error) if error.is_permanent() && !error.is_replaced() => {
                    Status::failed_precondition(error.to_string())
                }
                // A replaced file ends this server; its members find the new one, or another store's identity.
                Failure::Store(error) => Status::unavailable(error.to_string()),
            })
        };
        let answer = asked.await;
        call.done(match &answer {
            Ok(_) => Outcome::Ok,
            Err(status) => Outcome::Error(kind_of(status)),
        });
        answer
    }
}

/// Reason why a request was not carried out.
enum Failure {
    Store(StoreError),
    /// No owner would make the change of this entry.
    Refused(String, Refusal),
}

/// Reason why an area is closed to changes of a caller.
const fn reason_of(code: Code) -> &'static str {
    match code {
        Code::PermissionDenied => "the token is not valid for the area",
        Code::FailedPrecondition => "the namespace is not offered",
        _ => "the area is unknown, or there are too many changes",
    }
}

const UNKNOWN_AREA: &str = "unknown area: neither that of a namespace, whose name has 1 to 64 letters, digits, `.`, \
     `_` or `-`, nor one of tags";

const ANOTHER_STORE: &str = "this server has another store than the one that answered before, which does not know which \
     machine IDs are in use; name servers that share one store";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Looks at the store. `older` is what the caller says to have seen behind the same URL.
fn opened(
    offered: &Offered,
    older: Option<StoreIdentity>,
) -> Result<v1::OpenPoolResponse, Failure> {
    if let Some(older) = older {
        offered.note_older(older)?;
    }
    let (store, seen) = (&offered.store, offered.look()?);
    let identity = seen.identity;
    let answer = v1::OpenPoolResponse {
        store: store.describe(),
        server: vesta_boot::host_name(),
        identity: identity.number,
        created_ms: identity.created.0,
        usual_window_ms: millis(store.usual_window()),
        refused: seen.refused,
        ..v1::OpenPoolResponse::default()
    };
    if answer.refused.is_some() {
        return Ok(answer);
    }
    let doubt = store.doubt()?;
    Ok(v1::OpenPoolResponse {
        doubt: doubt.map(|doubt| v1::StoreDoubt {
            why: doubt.why,
            took_over: doubt.took_over,
        }),
        writer: store.writer().map(|writer| v1::StoreWriter {
            server: writer.server,
            unseen: writer.unseen,
        }),
        // Members are other hosts: where the store has no clock, they compare theirs with this host's.
        now_ms: Some(offered.read_now()?.0),
        ..answer
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Makes changes that an owner would make. They are checked against the old values, which the store compares.
fn put(offered: &Offered, area: &str, puts: &[Put]) -> Result<Vec<bool>, Failure> {
    let Offered { store, checked, .. } = offered;
    let refused = |entry: String| move |refusal| Failure::Refused(entry, refusal);
    if *checked {
        let place = Place::of(area).ok_or(StoreError::permanent(UNKNOWN_AREA))?;
        let namespace = match place.namespace() {
            Some(name) => Leases::new(Arc::clone(store), name).find()?,
            None => None,
        };
        let (namespace, now) = (namespace.as_ref(), offered.now()?);
        for put in puts {
            let entry = format!("entry `{}` of {area}", vesta_intf::plain(&put.key));
            let checked = vesta_numbers::rules::check(&place, put, &Seen { namespace, now });
            checked.map_err(refused(entry))?;
        }
    }
    Ok(store.put_all(area, puts)?)
}

#[tonic::async_trait]
impl Protocol for PoolServer {
    async fn open(
        &self,
        request: Request<v1::OpenPoolRequest>,
    ) -> Result<Response<v1::OpenPoolResponse>, Status> {
        let caller = access::caller(&request);
        let older = request.into_inner().older.map(|older| StoreIdentity {
            created: UnixMillis(older.created_ms),
            number: older.number,
        });
        // It ends the service of all namespaces, so a token for some of them does not suffice.
        let older = older.filter(|older| {
            let may_tell = self.running.security.namespaces(caller).is_empty();
            if !may_tell {
                tracing::warn!(%older, "a member says that it saw an older store; its token is for some namespaces only");
            }
            may_tell
        });
        self.ask((OPEN, caller, false), None, Ok(()), move |offered| {
            opened(offered, older)
        })
        .await
        .map(Response::new)
    }

    type ListStream = Pin<Box<dyn Stream<Item = Result<v1::ListEntriesResponse, Status>> + Send>>;

    async fn list(
        &self,
        request: Request<v1::ListEntriesRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let caller = access::caller(&request);
        let connection = request.extensions().get::<Requests>().cloned();
        let v1::ListEntriesRequest {
            area,
            identity,
            keys,
        } = request.into_inner();
        let allowed = self.place(caller, &area).and_then(|_| match keys.len() {
            0..=AT_ONCE => Ok(()),
            count => Err(Status::invalid_argument(format!(
                "keys must be at most {AT_ONCE}, and they are {count}"
            ))),
        });
        let turn = self.work.turn(connection.unwrap_or_default()).await?;
        let call = (LIST, caller, keys.is_empty());
        let listed = self.ask(call, Some(identity), allowed, move |offered| {
            Ok(match &*keys {
                [] => offered.store.list(&area)?,
                keys => offered.store.get_all(&area, keys)?,
            })
        });
        let pages = paged(
            listed.await?,
            turn,
            self.running.config.limits.request_timeout,
        );
        Ok(Response::new(Box::pin(pages)))
    }

    async fn get(
        &self,
        request: Request<v1::GetEntryRequest>,
    ) -> Result<Response<v1::GetEntryResponse>, Status> {
        let caller = access::caller(&request);
        let v1::GetEntryRequest {
            area,
            key,
            identity,
        } = request.into_inner();
        let allowed = self.place(caller, &area).map(drop);
        let value = self.ask(
            (GET, caller, false),
            Some(identity),
            allowed,
            move |offered| Ok(offered.store.get(&area, &key)?),
        );
        Ok(Response::new(v1::GetEntryResponse {
            value: value.await?,
        }))
    }

    async fn put(
        &self,
        request: Request<v1::PutEntriesRequest>,
    ) -> Result<Response<v1::PutEntriesResponse>, Status> {
        let caller = access::caller(&request);
        let v1::PutEntriesRequest {
            area,
            puts,
            identity,
        } = request.into_inner();
        let allowed = self.place(caller, &area).and_then(|_| match puts.len() {
            1..=AT_ONCE => Ok(()),
            count => Err(Status::invalid_argument(format!(
                "puts must be 1 to {AT_ONCE}, and they are {count}"
            ))),
        });
        if let Err(status) = &allowed {
            self.refused(caller, reason_of(status.code()));
        }
        let done = self.ask(
            (PUT, caller, false),
            Some(identity),
            allowed,
            move |offered| {
                let read = |put: v1::PutEntry| Put {
                    key: put.key,
                    old: put.old,
                    new: put.new,
                    secret: put
                        .secret
                        .and_then(|it| Secret::read(&it))
                        .unwrap_or_default(),
                };
                let puts: Vec<_> = puts.into_iter().map(read).collect();
                put(offered, &area, &puts)
            },
        );
        Ok(Response::new(v1::PutEntriesResponse { done: done.await? }))
    }
}

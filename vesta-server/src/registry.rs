//! Implementation of `vesta.v1.RegistryService`: this server's own store, for processes that cannot reach it.
//!
//! The server keeps no state: compare-and-set stays end to end, so several servers of one store are interchangeable.
//! Changes that no owner of a machine ID would make are refused.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tonic::{Request, Response, Status};
use vesta_boot::{Caller, Offered, Outcome, Running};
use vesta_intf::grpc::kind_of;
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::registry_service_server::RegistryService as Protocol;
use vesta_service::lease::{Leases, Place, Put, StoreError};

use crate::access;
use crate::methods::{GET, LIST, OPEN, PUT};

/// Entries in each message of a list.
const PAGE: usize = 256;
/// Maximum changes per request.
const PUTS: usize = 128;
/// Maximum request size in bytes: as many changes, each of two values of 16 KiB.
pub(crate) const DECODE_LIMIT: usize = 5 << 20;

#[derive(Debug)]
pub(crate) struct Registry(pub(crate) Arc<Running>);

impl Registry {
    fn offered(&self) -> Result<Offered, Status> {
        self.0.registry.clone().ok_or_else(|| {
            Status::failed_precondition(
                "the registry is off; set registry.namespaces on the server",
            )
        })
    }

    /// The contents of an area, if they are offered to this caller.
    fn place<'a>(&self, caller: Caller, area: &'a str) -> Result<Place<'a>, Status> {
        let place = Place::of(area);
        let place = place.ok_or_else(|| Status::invalid_argument("unknown area"))?;
        let (offered, own) = (
            &*self.0.config.registry.namespaces,
            self.0.security.namespaces(caller),
        );
        let known = |names: &[String], name: &str| {
            let is_it = |known: &String| known == name || known == "*";
            names.iter().any(is_it)
        };
        match place.namespace() {
            Some(name) if !known(offered, name) => Err(Status::failed_precondition(format!(
                "namespace `{name}` is not offered here; offered are {} (registry.namespaces)",
                offered.join(", ")
            ))),
            Some(name) if !own.is_empty() && !known(own, name) => Err(Status::permission_denied(
                format!("the token is not valid for namespace `{name}`"),
            )),
            None if !own.is_empty() => Err(Status::permission_denied(
                "the token is valid for some namespaces only, and tags belong to none",
            )),
            _ => Ok(place),
        }
    }

    /// Asks the store, on a thread that may block, and counts the call. `meant` is the identity of the store that the
    /// caller means.
    async fn ask<T: Send + 'static>(
        &self,
        method: usize,
        meant: Option<u64>,
        allowed: Result<(), Status>,
        ask: impl FnOnce(&Offered) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Status> {
        let call = self.0.metrics.start(method);
        let asked = async {
            let offered = self.offered()?;
            allowed?;
            let asked = tokio::task::spawn_blocking(move || {
                if let Some(meant) = meant
                    && meant != offered.identity()?
                {
                    return Err(StoreError::permanent(ANOTHER_STORE).into());
                }
                ask(&offered)
            });
            let asked = asked.await;
            let asked = asked.map_err(|panic| Status::unavailable(panic.to_string()))?;
            asked.map_err(|failure| match failure {
                Failure::Refused(why) => Status::invalid_argument(why),
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
    /// No owner would make the change.
    Refused(String),
}

const ANOTHER_STORE: &str = "this server has another store than the one that answered before, which does not know which \
     machine IDs are in use; name servers that share one store";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn opened(offered: &Offered) -> Result<v1::OpenRegistryResponse, Failure> {
    let store = &offered.store;
    Ok(v1::OpenRegistryResponse {
        store: store.describe(),
        server: vesta_boot::host_name(),
        identity: offered.read_identity()?,
        usual_window_ms: millis(store.usual_window()),
        doubt: store.doubt()?.map(|doubt| v1::StoreDoubt {
            why: doubt.why,
            took_over: doubt.took_over,
        }),
        now_ms: store.now()?.map(|now| now.0),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Makes changes that an owner would make. They are checked against the old values, which the store compares.
fn put(
    Offered { store, checked, .. }: &Offered,
    area: &str,
    puts: &[Put],
) -> Result<Vec<bool>, Failure> {
    if !checked {
        return Ok(store.put_all(area, puts)?);
    }
    let place = Place::of(area).ok_or_else(|| Failure::Refused("unknown area".into()))?;
    let namespace = match place {
        Place::Leases { namespace, .. } => Leases::new(Arc::clone(store), namespace).find()?,
        _ => None,
    };
    let uuid = namespace.map(|namespace| namespace.uuid);
    for put in puts {
        place.check(put, uuid).map_err(|why| {
            tracing::warn!(area, why, "a change that no owner would make was refused");
            Failure::Refused(format!("{area}: {why}"))
        })?;
    }
    Ok(store.put_all(area, puts)?)
}

#[tonic::async_trait]
impl Protocol for Registry {
    async fn open(
        &self,
        _: Request<v1::OpenRegistryRequest>,
    ) -> Result<Response<v1::OpenRegistryResponse>, Status> {
        self.ask(OPEN, None, Ok(()), opened)
            .await
            .map(Response::new)
    }

    type ListStream = Pin<Box<dyn Stream<Item = Result<v1::ListEntriesResponse, Status>> + Send>>;

    async fn list(
        &self,
        request: Request<v1::ListEntriesRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let caller = access::caller(&request);
        let v1::ListEntriesRequest { area, identity } = request.into_inner();
        let allowed = self.place(caller, &area).map(drop);
        let listed = self.ask(LIST, Some(identity), allowed, move |offered| {
            Ok(offered.store.list(&area)?)
        });
        let mut entries = listed.await?.into_iter();
        Ok(Response::new(Box::pin(async_stream::stream! {
            loop {
                let page = entries.by_ref().take(PAGE);
                let page: Vec<_> = page.map(|(key, value)| v1::StoreEntry { key, value }).collect();
                if page.is_empty() {
                    break;
                }
                yield Ok(v1::ListEntriesResponse { entries: page });
            }
        })))
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
        let value = self.ask(GET, Some(identity), allowed, move |offered| {
            Ok(offered.store.get(&area, &key)?)
        });
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
            1..=PUTS => Ok(()),
            count => Err(Status::invalid_argument(format!(
                "puts must be 1 to {PUTS}, and they are {count}"
            ))),
        });
        let done = self.ask(PUT, Some(identity), allowed, move |offered| {
            let puts = puts.into_iter();
            let puts: Vec<_> = puts
                .map(|v1::PutEntry { key, old, new }| Put { key, old, new })
                .collect();
            put(offered, &area, &puts)
        });
        Ok(Response::new(v1::PutEntriesResponse { done: done.await? }))
    }
}

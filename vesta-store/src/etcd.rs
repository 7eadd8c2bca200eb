//! The pool of machine IDs in an etcd cluster.

mod client;
mod errors;
mod format;
#[cfg(test)]
mod fuzz;
mod records;
mod target;

/// The generated code: messages and clients of the part of etcd's API that is used here.
#[allow(dead_code, missing_docs, missing_debug_implementations, unreachable_pub, clippy::all)]
mod pb {
    include!("etcd/generated/etcdserverpb.rs");
}

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::{Cas, Expect, LeaseStore, Namespace, Record, StoreError, Timing};

use crate::runtime::Background;
use crate::{OpenError, Options};
use client::Client;
use errors::Failure;
use records::Area;
use target::Target;

pub(crate) const BUILT_IN: bool = true;

pub(crate) fn open(url: &str, options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    Ok(Arc::new(EtcdStore::open_with(url, options)?))
}

/// Records in etcd, version 3.4 or later: the pool of the processes that share a cluster.
///
/// The URL is `etcd://[user:password@]host:port,host:port[/prefix]`, or `etcds://…` with TLS. The port
/// is 2379 and the prefix `vesta` if there is none. The names must be those of members of *one*
/// cluster; an answer of another one is refused for good. With TLS the certificates are checked
/// against the roots of the web, or against those of a PEM file: `etcds://host/prefix?ca=FILE`. In a
/// user, a password and a FILE, other characters than letters, digits and `-._~` may be written as
/// `%` and two digits, and `/ ? # @ : & %` must be. The prefix and its parts consist of letters,
/// digits and `-._`.
///
/// A name that does not answer costs its share of the request time-out; then the next one is asked,
/// and stays the one to ask. The user needs to read and write what begins with `PREFIX/`
/// (`etcdctl role grant-permission ROLE --prefix=true readwrite vesta/`).
///
/// There is one key for a namespace and one for each machine ID that was ever claimed; its number has
/// 19 digits, so that keys are listed in its order. The values are JSON, one line each (here wrapped).
/// They can be read with `etcdctl get --prefix vesta/default/`:
/// ```text
/// PREFIX/NAMESPACE/meta
/// PREFIX/NAMESPACE/record/MACHINE
///
/// vesta/default/meta
/// {"schema":1,"uuid":"5f0c7b1e93a24d688e17c2b4f6903ad5","fingerprint":"1-1-2-30-20-10","floor":0}
///
/// vesta/default/record/0000000000000000007
/// {"schema":1,"epoch":3,"owner":"92b104c8d37e4f15a6d07e381b59c2f4","bound":369899123507200,
/// "attempt":8203774192230847113,"released":false,"host":"ids-1","pid":4711,"info_time":1767225600000}
/// ```
/// Numbers have 63 bits; larger ones are refused, and so is a value that does not look like this or
/// has another `schema`. `uuid` and `owner` have 32 hexadecimal digits; the owner 0 is nobody.
///
/// The keys are never deleted and have no lease; one that somebody attached a lease to is refused.
/// There is no key that shows who is alive, either: nothing would depend on it, and a record tells the
/// last owner's host and process and when it was written.
///
/// A change is one transaction: `If mod_revision(record) = what was read, Then put, Else get`. The
/// first change of a record also compares `mod_revision(meta)`, because its floor counts. Reads are
/// linearizable. Every change adds a revision to etcd's history, so have it compacted
/// (`--auto-compaction-retention`), as for every other use.
pub struct EtcdStore {
    shown: String,
    prefix: String,
    /// Otherwise a missing namespace is an error.
    auto_init: bool,
    request_timeout: Duration,
    client: Arc<Client>,
    background: Background,
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, auto_init, request_timeout, .. } = self;
        f.debug_struct("EtcdStore")
            .field("cluster", shown)
            .field("auto_init", auto_init)
            .field("request_timeout", request_timeout)
            .finish_non_exhaustive()
    }
}

impl EtcdStore {
    /// Prepares a store. The cluster is connected to when it is first asked, and again after errors.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] if the URL makes no sense, [`OpenError::Store`] if its file of
    /// certificates cannot be used.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &Options::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(url: &str, options: &Options) -> Result<Self, OpenError> {
        let target = Target::parse(url)?;
        let shown = target.to_string();
        let request_timeout = options.request_timeout.unwrap_or(Timing::NETWORK.request_timeout);
        let unusable = |source| OpenError::Store { store: shown.clone(), source };
        let client = Client::new(&target, request_timeout).map_err(unusable)?;
        let background = Background::start().map_err(|error| {
            unusable(StoreError::unavailable("no thread can be started", error))
        })?;
        Ok(Self {
            shown,
            prefix: target.prefix,
            auto_init: options.auto_init,
            request_timeout,
            client: Arc::new(client),
            background,
        })
    }

    /// Carries out a request about a namespace.
    fn ask<T, F>(&self, namespace: &str, request: impl FnOnce(Area) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let area = Area::new(self.client.clone(), &self.prefix, namespace)?;
        match self.background.run(self.request_timeout, request(area)) {
            Ok(answer) => answer.map_err(Failure::explain),
            Err(no_answer) => Err(errors::no_answer(no_answer)),
        }
    }
}

impl LeaseStore for EtcdStore {
    fn describe(&self) -> String {
        self.shown.clone()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.request_timeout, ..Timing::NETWORK }
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        let (auto_init, fingerprint) = (self.auto_init, fingerprint.to_owned());
        self.ask(namespace, move |area| async move { area.open(auto_init, fingerprint).await })
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        self.ask(namespace, move |area| async move { area.raise_floor(floor).await })
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.ask(namespace, |area| async move { area.list().await })
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.ask(namespace, move |area| async move { area.read(machine).await })
    }

    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let (expect, new) = (*expect, new.clone());
        self.ask(namespace, move |area| async move { area.cas(machine, &expect, &new).await })
    }
}

//! etcd: a cluster, its members and their connections.

mod client;
mod config;
mod errors;
#[cfg(test)]
mod fuzz;
mod kv;

/// The generated code: messages and clients of the part of etcd's API that is used here.
#[allow(dead_code, missing_docs, missing_debug_implementations, unreachable_pub, clippy::all)]
mod pb {
    include!("generated/etcdserverpb.rs");
}

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::{KvStore, StoreError, Timing};

use crate::runtime::Background;
use crate::{OpenError, Options, StoreUrl};
use client::Client;
use config::Config;
use errors::Failure;
use kv::EtcdKv;

pub(crate) fn open(url: &StoreUrl, options: &Options) -> Result<Arc<dyn KvStore>, OpenError> {
    Ok(Arc::new(EtcdKv { cluster: Cluster::open(url, options)?, options: options.clone() }))
}

/// A cluster, and the runtime of its client.
struct Cluster {
    shown: String,
    prefix: String,
    limit: Duration,
    client: Arc<Client>,
    background: Background,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, limit, .. } = self;
        f.debug_struct("Cluster").field("at", shown).field("limit", limit).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects to nothing yet. The cluster is connected to when it is first asked, and again after
    /// errors.
    fn open(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        let config = Config::try_from(url)?;
        let shown = config.to_string();
        let limit = options.request_timeout.unwrap_or(Timing::NETWORK.request_timeout);
        let unusable = |source| OpenError::Store { store: shown.clone(), source };
        let client = Arc::new(Client::new(&config, limit).map_err(unusable)?);
        let background = Background::start().map_err(|error| {
            unusable(StoreError::unavailable("no thread can be started", error))
        })?;
        Ok(Self { shown, prefix: config.prefix, limit, client, background })
    }

    fn ask<T, F>(&self, request: impl FnOnce(Arc<Client>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        match self.background.run(self.limit, request(self.client.clone())) {
            Ok(answer) => answer.map_err(Failure::explain),
            Err(no_answer) => Err(errors::no_answer(no_answer)),
        }
    }
}

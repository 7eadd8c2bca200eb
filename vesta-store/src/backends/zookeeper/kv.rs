//! Entries as znodes.

use vesta_service::{KvStore, StoreError, Timing};
use zookeeper_client::{Acls, Client, CreateMode, Error, Stat};

use super::errors::{Failure, foreign};
use super::{Config, Ensemble};
use crate::{OpenError, Options, StoreUrl};

/// Of a URL that names no path.
const DEFAULT_PATH: &str = "/vesta";

/// Entries in ZooKeeper, version 3.5 or newer.
///
/// The URL is `zookeeper://host:port,host:port/path`: all servers of the ensemble (port 2181 if none is
/// given) and the znode below which everything lies (`/vesta` if none is given). With
/// `zookeeper://user:password@host:port/path` the session belongs to that user of the scheme `digest`,
/// and the znodes that Vesta creates are that user's alone; otherwise they are open to everybody.
/// Characters with a meaning in URLs are written as `%40` and so on.
///
/// There is one znode for each entry, below that of its area, whose name has `:` for `/`:
///
/// ```text
/// /vesta/lease:orders/namespace  {"schema":1,…}
/// /vesta/lease:orders/17         {"schema":1,…}
/// ```
///
/// All are persistent, have no time to live and are never deleted. One that is not so is refused.
///
/// An entry is changed by `setData` with the version that was read together with its old value. A
/// quorum has every change before it counts, unless the servers run with `forceSync=no`, which they
/// must not. Each read follows a `sync`. The session decides nothing: when it runs out, the next request
/// makes a new one.
#[derive(Debug)]
pub(super) struct ZookeeperKv {
    ensemble: Ensemble,
    options: Options,
}

impl ZookeeperKv {
    /// Opens the store that a URL names. The first request connects.
    ///
    /// # Errors
    /// [`OpenError::Malformed`].
    pub(super) fn open(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        let mut config = Config::try_from(url)?;
        if config.path.is_empty() {
            config.path = DEFAULT_PATH.into();
        }
        Ok(Self { ensemble: Ensemble::new(config, options), options: options.clone() })
    }

    /// The znode of an area: one for its whole name, so that it is never taken for an entry of another.
    fn path(&self, area: &str) -> String {
        format!("{}/{}", self.ensemble.config.path, area.replace('/', ":"))
    }
}

impl KvStore for ZookeeperKv {
    fn describe(&self) -> String {
        self.ensemble.config.to_string()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.ensemble.limit, ..Timing::NETWORK }
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let path = self.path(area);
        self.ensemble.ask(|client| list(client, path.clone()))
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        let path = format!("{}/{key}", self.path(area));
        self.ensemble.ask(|client| {
            let path = path.clone();
            async move { Ok(read(&client, &path).await?.map(|(value, _)| value)) }
        })
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.options.check_put(area, key, old)?;
        let area = self.path(area);
        let path = format!("{area}/{key}");
        let acls = self.ensemble.config.acls();
        self.ensemble.ask(|client| {
            let (area, path, new) = (area.clone(), path.clone(), new.to_owned());
            let old = old.map(str::to_owned);
            async move {
                match old {
                    Some(old) => replace(&client, &path, &old, &new).await,
                    None => create(&client, &area, &path, &new, acls).await,
                }
            }
        })
    }
}

/// The value of an entry, and the version of its znode.
async fn read(client: &Client, path: &str) -> Result<Option<(String, i32)>, Failure> {
    // Both are sent at once, in this order: the value is not older than the request. Where a leader has
    // just been deposed without knowing, it may be; a change that is built on it is then refused.
    let synced = client.sync(path);
    let found = client.get_data(path);
    synced.await?;
    match found.await {
        Ok((data, stat)) => Ok(Some((value(path, data, &stat)?, stat.version))),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn value(path: &str, data: Vec<u8>, stat: &Stat) -> Result<String, StoreError> {
    // Znodes with a time to live have an owner, too.
    if stat.ephemeral_owner != 0 {
        return Err(foreign(path, "it is not persistent"));
    }
    String::from_utf8(data).map_err(|_| foreign(path, "it is not UTF-8"))
}

async fn list(client: Client, area: String) -> Result<Vec<(String, String)>, Failure> {
    let synced = client.sync(&area);
    let keys = client.list_children(&area);
    synced.await?;
    let keys = match keys.await {
        Ok(keys) => keys,
        Err(Error::NoNode) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    // All are sent before the first answer is waited for.
    let found = keys.into_iter().map(|key| {
        let path = format!("{area}/{key}");
        (client.get_data(&path), path, key)
    });
    let mut entries = Vec::new();
    for (found, path, key) in found.collect::<Vec<_>>() {
        let (data, stat) = found.await?;
        entries.push((key, value(&path, data, &stat)?));
    }
    Ok(entries)
}

async fn replace(client: &Client, path: &str, old: &str, new: &str) -> Result<bool, Failure> {
    let version = match read(client, path).await? {
        Some((found, version)) if found == old => version,
        _ => return Ok(false),
    };
    match client.set_data(path, new.as_bytes(), Some(version)).await {
        Ok(_) => Ok(true),
        // It is no longer as it was read.
        Err(Error::BadVersion | Error::NoNode) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates an entry, and its area where that is missing.
async fn create(
    client: &Client,
    area: &str,
    path: &str,
    new: &str,
    acls: Acls<'static>,
) -> Result<bool, Failure> {
    let persistent = CreateMode::Persistent.with_acls(acls);
    loop {
        match client.create(path, new.as_bytes(), &persistent).await {
            Ok(_) => return Ok(true),
            Err(Error::NodeExists) => return Ok(false),
            Err(Error::NoNode) => client.mkdir(area, &persistent).await?,
            Err(error) => return Err(error.into()),
        }
    }
}

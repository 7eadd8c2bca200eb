//! Entries as znodes.

use std::future::Future;

use futures_util::future::try_join_all;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Handover, Put};
use zookeeper_client::{Acls, CreateMode, CreateOptions, Error, Stat};

use super::beside::released;
use super::errors::foreign;
use super::{Children, Connection, Session, Zookeeper};
use crate::remote::{Entries, Kv, Result};

impl Kv for Zookeeper {
    const HAS_CLOCK: bool = true;

    async fn list(&self, connection: &mut Connection, area: &str) -> Result<Entries> {
        let area = self.path(area);
        let children = self.children(&connection.session, &area).await?;
        entries(&area, children.unwrap_or_default())
    }

    async fn get_all(
        &self,
        connection: &mut Connection,
        area: &str,
        keys: &[String],
    ) -> Result<Entries> {
        let (session, area) = (&connection.session, self.path(area));
        let synced = session.sync(&area);
        let found = self.data(session, &area, keys.to_vec());
        synced.await.map_err(|error| self.explain(error))?;
        entries(&area, found.await?)
    }

    async fn get(
        &self,
        connection: &mut Connection,
        area: &str,
        key: &str,
    ) -> Result<Option<String>> {
        let path = format!("{}/{key}", self.path(area));
        Ok(self
            .read(&connection.session, &path)
            .await?
            .map(|(value, _)| value))
    }

    /// Concurrently, over one connection.
    async fn put_all(
        &self,
        connection: &mut Connection,
        area: &str,
        puts: &[Put],
    ) -> Result<Vec<bool>> {
        let handovers: Vec<_> = puts.iter().map(|put| Handover::of(area, put)).collect();
        let (session, area) = (&connection.session, self.path(area));
        let one = |(put, handover)| self.put_if(session, &area, put, handover);
        let done = try_join_all(puts.iter().zip(&handovers).map(one)).await?;
        if let Some(release) = released(handovers.iter().zip(&done)) {
            // Another release does it if this one cannot.
            let _ = self.give_back(session, &area, release).await;
        }
        Ok(done)
    }

    /// The leader's clock: it stamps each change of a znode.
    async fn now(&self, connection: &mut Connection) -> Result<Option<UnixMillis>> {
        let (session, root) = (&connection.session, self.config.path.trim_end_matches('/'));
        let path = format!("{root}/{CLOCK}");
        let stamped = loop {
            match session.set_data(&path, b"", None).await {
                Err(Error::NoNode) => match self.create(session, root, &path, "").await {
                    Ok(()) | Err(Error::NodeExists) => {}
                    Err(error) => return Err(self.explain(error)),
                },
                stamped => break stamped.map_err(|error| self.explain(error))?,
            }
        };
        Ok(stamped.mtime.try_into().ok().map(UnixMillis))
    }
}

/// Znode that is written to read the clock. It is no area: their names have a colon.
const CLOCK: &str = "clock";

impl Zookeeper {
    async fn put_if(
        &self,
        session: &Session,
        area: &str,
        put: &Put,
        handover: &Option<Handover>,
    ) -> Result<bool> {
        let Put { key, old, new, .. } = put;
        let path = format!("{area}/{key}");
        if let Some(Handover::Claim(claim)) = handover {
            return self.claim(session, area, &path, put, claim).await;
        }
        let done = match old {
            None => self.create(session, area, &path, new).await,
            Some(old) => match self.read(session, &path).await? {
                Some((found, version)) if found == *old => session
                    .set_data(&path, new.as_bytes(), Some(version))
                    .await
                    .map(drop),
                _ => return Ok(false),
            },
        };
        self.changed(done)
    }

    /// True if a change was made; false if the entry was not as expected.
    pub(super) fn changed(&self, done: Result<(), Error>) -> Result<bool> {
        match done {
            Ok(()) => Ok(true),
            // It exists already, or has changed since it was read.
            Err(Error::NodeExists | Error::BadVersion | Error::NoNode) => Ok(false),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Options of every znode that Vesta creates.
    pub(super) fn persistent(&self) -> CreateOptions<'static> {
        let acls = match self.config.digest {
            Some(_) => Acls::creator_all(),
            None => Acls::anyone_all(),
        };
        CreateMode::Persistent.with_acls(acls)
    }

    /// Znode of an area. The whole area name is one path component, so that an area cannot be an entry
    /// of another.
    fn path(&self, area: &str) -> String {
        format!("{}/{}", self.config.path, area.replace('/', ":"))
    }

    /// The children of a znode; `None` if it does not exist.
    pub(super) async fn children(&self, session: &Session, path: &str) -> Result<Option<Children>> {
        let synced = session.sync(path);
        let names = session.list_children(path);
        synced.await.map_err(|error| self.explain(error))?;
        let names = match names.await {
            Err(Error::NoNode) => return Ok(None),
            names => names.map_err(|error| self.explain(error))?,
        };
        self.data(session, path, names).await.map(Some)
    }

    /// Those of these children that exist. All requests are sent at the call, before the first reply is awaited.
    fn data(
        &self,
        session: &Session,
        path: &str,
        names: Vec<String>,
    ) -> impl Future<Output = Result<Children>> + Send {
        let sent = names
            .into_iter()
            .map(|name| (session.get_data(&format!("{path}/{name}")), name));
        let sent = sent.collect::<Vec<_>>();
        async move {
            let mut children = Vec::new();
            for (data, name) in sent {
                match data.await {
                    Ok((data, stat)) => children.push((name, data, stat)),
                    Err(Error::NoNode) => {} // it does not exist, or no longer
                    Err(error) => return Err(self.explain(error)),
                }
            }
            Ok(children)
        }
    }

    /// The value of an entry, and the version of its znode.
    pub(super) async fn read(
        &self,
        session: &Session,
        path: &str,
    ) -> Result<Option<(String, i32)>> {
        // Both are sent at once, in this order, so the value is not older than the request. A leader
        // deposed without knowing it may return an older one; a change based on that is then refused.
        let synced = session.sync(path);
        let found = session.get_data(path);
        synced.await.map_err(|error| self.explain(error))?;
        match found.await {
            Ok((data, stat)) => Ok(Some((value(path, data, &stat)?, stat.version))),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Creates an entry, and its area if missing.
    pub(super) async fn create(
        &self,
        session: &Session,
        area: &str,
        path: &str,
        new: &str,
    ) -> Result<(), Error> {
        let persistent = self.persistent();
        loop {
            match session.create(path, new.as_bytes(), &persistent).await {
                Err(Error::NoNode) => session.mkdir(area, &persistent).await?,
                created => return created.map(drop),
            }
        }
    }
}

fn entries(area: &str, children: Children) -> Result<Entries> {
    let entry = |(key, data, stat)| {
        let value = value(&format!("{area}/{key}"), data, &stat)?;
        Ok((key, value))
    };
    children.into_iter().map(entry).collect()
}

fn value(path: &str, data: Vec<u8>, stat: &Stat) -> Result<String> {
    // Znodes with a time to live have an owner, too.
    if stat.ephemeral_owner != 0 {
        return Err(foreign(path, "it is not persistent"));
    }
    String::from_utf8(data).map_err(|_| foreign(path, "not valid UTF-8"))
}

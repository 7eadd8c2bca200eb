//! Reading and changing znodes.

use std::sync::Arc;

use vesta_service::{Cas, Expect, Namespace, Record, StoreError};
use zookeeper_client::{CreateMode, Error, MultiWriteError, Stat};

use super::alive;
use super::errors::{Failure, foreign, not_opened, not_prepared};
use super::format;
use super::link::Session;
use super::target::can_be_a_znode;

/// Where a namespace is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The znode below which everything lies.
    root: String,
    namespace: String,
}

impl Place {
    pub(super) fn new(root: &str, namespace: &str) -> Result<Self, StoreError> {
        if !can_be_a_znode(namespace) {
            return Err(StoreError::permanent(format!(
                "namespace `{namespace}` cannot be the name of a znode; use letters and digits"
            )));
        }
        Ok(Self { root: root.into(), namespace: namespace.into() })
    }

    fn meta(&self) -> String {
        format!("{}/{}", self.root, self.namespace)
    }

    fn records(&self) -> String {
        format!("{}/records", self.meta())
    }

    fn record(&self, machine: u64) -> String {
        format!("{}/{machine}", self.records())
    }

    fn all_alive(&self) -> String {
        format!("{}/alive", self.meta())
    }

    pub(super) fn alive(&self, machine: u64) -> String {
        format!("{}/{machine}", self.all_alive())
    }
}

/// Both are sent at once, in this order: what is read is not older than the request. Where a leader
/// has just been deposed without knowing, it may be; a change that is built on it is then refused.
async fn read_synced(session: &Session, path: &str) -> Result<(Vec<u8>, Stat), Error> {
    let synced = session.client.sync(path);
    let found = session.client.get_data(path);
    synced.await?;
    found.await
}

/// The namespace, with the version of its znode.
async fn namespace(session: &Session, place: &Place) -> Result<Option<(Namespace, i32)>, Failure> {
    let path = place.meta();
    match read_synced(session, &path).await {
        Ok((data, stat)) => Ok(Some((format::read_namespace(&path, &data, &stat)?, stat.version))),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn must_exist(session: &Session, place: &Place) -> Result<(Namespace, i32), Failure> {
    let found = namespace(session, place).await?;
    found.ok_or_else(|| not_opened(&place.namespace).into())
}

fn records_missing(place: &Place) -> Failure {
    foreign(&place.records(), "it is missing").into()
}

pub(super) async fn open_namespace(
    session: Arc<Session>,
    place: Place,
    fingerprint: String,
    auto_init: bool,
) -> Result<Namespace, Failure> {
    let persistent = CreateMode::Persistent.with_acls(session.acls);
    loop {
        if let Some((found, _)) = namespace(&session, &place).await? {
            return Ok(found);
        }
        if !auto_init {
            return Err(not_prepared().into());
        }
        let made = Namespace { uuid: random_uuid()?, fingerprint: fingerprint.clone(), floor: 0 };
        let mut all_or_nothing = session.client.new_multi_writer();
        all_or_nothing.add_create(&place.meta(), &format::namespace(&made)?, &persistent)?;
        all_or_nothing.add_create(&place.records(), b"", &persistent)?;
        all_or_nothing.add_create(&place.all_alive(), b"", &persistent)?;
        match all_or_nothing.commit().await.map_err(Error::from) {
            Ok(_) => return Ok(made),
            Err(Error::NodeExists) => {} // somebody was faster
            Err(Error::NoNode) => session.client.mkdir(&place.root, &persistent).await?,
            Err(error) => return Err(error.into()),
        }
    }
}

fn random_uuid() -> Result<u128, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::unavailable("the system gives no random numbers", error))?;
    Ok(u128::from_be_bytes(bytes))
}

pub(super) async fn raise_floor(
    session: Arc<Session>,
    place: Place,
    floor: u64,
) -> Result<u64, Failure> {
    loop {
        let (found, version) = must_exist(&session, &place).await?;
        if found.floor >= floor {
            return Ok(found.floor);
        }
        let raised = format::namespace(&Namespace { floor, ..found })?;
        match session.client.set_data(&place.meta(), &raised, Some(version)).await {
            Ok(_) => return Ok(floor),
            Err(Error::BadVersion | Error::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) async fn list(
    session: Arc<Session>,
    place: Place,
) -> Result<Vec<(u64, Record)>, Failure> {
    let records = place.records();
    let synced = session.client.sync(&records);
    let names = session.client.list_children(&records);
    synced.await?;
    let names = match names.await {
        Ok(names) => names,
        Err(Error::NoNode) => {
            must_exist(&session, &place).await?;
            return Err(records_missing(&place));
        }
        Err(error) => return Err(error.into()),
    };
    let mut machines = Vec::new();
    for name in names {
        let machine = format::read_machine(&name)
            .ok_or_else(|| foreign(&format!("{records}/{name}"), "its name is no machine ID"))?;
        machines.push(machine);
    }
    machines.sort_unstable();
    // All are sent before the first answer is waited for.
    let found: Vec<_> = machines
        .into_iter()
        .map(|machine| {
            let path = place.record(machine);
            (machine, session.client.get_data(&path), path)
        })
        .collect();
    let mut list = Vec::new();
    for (machine, found, path) in found {
        let (data, stat) = found.await?;
        list.push((machine, format::read_record(&path, &data, &stat)?));
    }
    Ok(list)
}

pub(super) async fn read(
    session: Arc<Session>,
    place: Place,
    machine: u64,
) -> Result<Option<Record>, Failure> {
    let path = place.record(machine);
    match read_synced(&session, &path).await {
        Ok((data, stat)) => Ok(Some(format::read_record(&path, &data, &stat)?)),
        Err(Error::NoNode) => {
            must_exist(&session, &place).await?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The state of a record, and what of it must still be so when it is changed.
enum State {
    /// The version of its znode.
    Present(i32),
    /// The version of the namespace's znode, in which the floor is.
    Absent(i32),
}

pub(super) async fn cas(
    session: Arc<Session>,
    place: Place,
    machine: u64,
    expect: Expect,
    new: Record,
) -> Result<Cas, Failure> {
    let path = place.record(machine);
    let data = format::record(&new)?;
    loop {
        let (current, state) = match read_synced(&session, &path).await {
            Ok((data, stat)) => {
                (format::read_record(&path, &data, &stat)?, State::Present(stat.version))
            }
            Err(Error::NoNode) => {
                let (namespace, version) = must_exist(&session, &place).await?;
                (Record::unclaimed(namespace.floor), State::Absent(version))
            }
            Err(error) => return Err(error.into()),
        };
        if !current.meets(&expect) {
            return Ok(Cas::Conflict(current));
        }
        let changed = match state {
            State::Present(version) => {
                session.client.set_data(&path, &data, Some(version)).await.map(drop)
            }
            State::Absent(version) => create(&session, &place, &path, &data, version).await?,
        };
        match changed {
            Ok(()) => {
                alive::show(&session, &place, machine, &new);
                return Ok(Cas::Done);
            }
            // It is no longer as it was read.
            Err(Error::BadVersion | Error::NodeExists | Error::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Creates a record if the namespace's znode, and so the floor, is as it was read.
async fn create(
    session: &Session,
    place: &Place,
    path: &str,
    data: &[u8],
    version: i32,
) -> Result<Result<(), Error>, Failure> {
    let persistent = CreateMode::Persistent.with_acls(session.acls);
    let mut both = session.client.new_multi_writer();
    both.add_check_version(&place.meta(), version)?;
    both.add_create(path, data, &persistent)?;
    match both.commit().await {
        Err(MultiWriteError::OperationFailed { index: 1, source: Error::NoNode }) => {
            Err(records_missing(place))
        }
        Ok(_) => Ok(Ok(())),
        Err(error) => Ok(Err(error.into())),
    }
}

//! Worker IDs of another system below the same path.
//!
//! Such a system takes a number by creating a child with that name: `/snowflake/orders/7`. So does Vesta, in
//! the transaction that makes a claim: the child and the claim exist both or not at all. Its own children are
//! persistent, because a process of Vesta makes IDs for longer than its session lasts.

use futures_util::future::try_join_all;
use futures_util::try_join;
use vesta_service::lease::{Claim, Handover, Put, Release};
use zookeeper_client::{Error, MultiWriteError, Stat};

use super::{Session, Zookeeper};
use crate::remote::Result;

/// First word of the data of Vesta's own children. The areas that hold the number follow.
const OURS: &str = "Vesta";

/// Child with the name of a number.
enum Child {
    /// Vesta's own: the areas that hold the number, and the version.
    Ours(Vec<String>, i32),
    /// A process of another system holds the number.
    Foreign(String),
}

impl Zookeeper {
    /// Replaces a record by a claim and creates the child of its number, in one transaction. If a process of
    /// another system holds the number, reserves the record for it, and returns `false`.
    pub(super) async fn claim(
        &self,
        session: &Session,
        area: &str,
        path: &str,
        put: &Put,
        claim: &Claim,
    ) -> Result<bool> {
        let name = name_of(area);
        if put.old.is_none() {
            let made = session.mkdir(area, &self.persistent()).await;
            made.map_err(|error| self.explain(error))?;
        }
        loop {
            let child = self.child(session, claim.machine);
            let record = self.read(session, path);
            let (child, record) = try_join!(child, record)?;
            let version = match (&put.old, record) {
                (None, None) => None,
                (Some(old), Some((found, version))) if found == *old => Some(version),
                _ => return Ok(false),
            };
            let place = self.place(claim.machine);
            let mut writes = session.new_multi_writer();
            let is_prepared = match child {
                Some(Child::Foreign(holder)) => {
                    let reserved = claim.reserved_for(&holder);
                    let done = match version {
                        None => self.create(session, area, path, &reserved).await,
                        Some(version) => session
                            .set_data(path, reserved.as_bytes(), Some(version))
                            .await
                            .map(drop),
                    };
                    return self.changed(done).map(|_| false);
                }
                None => writes.add_create(&place, data(&[name]).as_bytes(), &self.persistent()),
                Some(Child::Ours(areas, version)) if areas.iter().any(|it| it == name) => {
                    writes.add_check_version(&place, version)
                }
                Some(Child::Ours(areas, version)) => {
                    let areas: Vec<_> = areas.iter().map(String::as_str).chain([name]).collect();
                    writes.add_set_data(&place, data(&areas).as_bytes(), Some(version))
                }
            };
            let is_prepared = is_prepared.and_then(|()| match version {
                None => writes.add_create(path, put.new.as_bytes(), &self.persistent()),
                Some(version) => writes.add_set_data(path, put.new.as_bytes(), Some(version)),
            });
            is_prepared.map_err(|error| self.explain(error))?;
            match writes.commit().await {
                // The child has changed since it was read.
                Err(MultiWriteError::OperationFailed {
                    index: 0,
                    source: Error::NodeExists | Error::BadVersion | Error::NoNode,
                }) => {}
                done => return self.changed(done.map(drop).map_err(Error::from)),
            }
        }
    }

    /// Gives numbers that Vesta released earlier back to the other system. Those of processes that crashed stay
    /// Vesta's until another one has claimed and released them.
    pub(super) async fn give_back(
        &self,
        session: &Session,
        area: &str,
        release: &Release,
    ) -> Result<(), Error> {
        let names = session.list_children(&self.config.path).await?;
        let machines = names.iter().filter_map(|name| name.parse::<u64>().ok());
        let look = async |machine| {
            let path = format!("{area}/{machine}");
            match session.get_data(&path).await {
                Ok((record, stat)) => {
                    let is_over = String::from_utf8(record).is_ok_and(|it| release.outlasted(&it));
                    Ok(is_over.then_some((machine, path, stat.version)))
                }
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let over = try_join_all(machines.map(look)).await?;
        for (machine, path, version_of_record) in over.into_iter().flatten() {
            let (place, mut writes) = (self.place(machine), session.new_multi_writer());
            let Some(Child::Ours(mut areas, version)) = self.found(session, &place).await? else {
                continue;
            };
            areas.retain(|it| it != name_of(area));
            // The record is unchanged, so no process holds the number.
            writes.add_check_version(&path, version_of_record)?;
            if areas.is_empty() {
                writes.add_delete(&place, Some(version))?;
            } else {
                let areas: Vec<_> = areas.iter().map(String::as_str).collect();
                writes.add_set_data(&place, data(&areas).as_bytes(), Some(version))?;
            }
            // Else it is done, or another process was faster.
            if let Err(MultiWriteError::RequestFailed { source }) = writes.commit().await {
                return Err(source);
            }
        }
        Ok(())
    }

    /// The child of a number: by its plain name, or by one of ten digits, as sequential znodes have.
    async fn child(&self, session: &Session, machine: u64) -> Result<Option<Child>> {
        let (place, sequential) = (
            self.place(machine),
            format!("{}/{machine:010}", self.config.path),
        );
        let synced = session.sync(&place);
        let (plain, padded) = (
            self.found(session, &place),
            self.found(session, &sequential),
        );
        let all = async { try_join!(synced, plain, padded) };
        let ((), plain, padded) = all.await.map_err(|error| self.explain(error))?;
        Ok(match padded {
            Some(Child::Foreign(holder)) => Some(Child::Foreign(holder)),
            _ => plain,
        })
    }

    async fn found(&self, session: &Session, place: &str) -> Result<Option<Child>, Error> {
        let (data, stat) = match session.get_data(place).await {
            Err(Error::NoNode) => return Ok(None),
            found => found?,
        };
        let text = String::from_utf8_lossy(&data);
        if is_ours(&data, &stat) {
            let areas = text.split(' ').skip(1).map(str::to_owned);
            return Ok(Some(Child::Ours(areas.collect(), stat.version)));
        }
        let data: String = text.chars().take(100).collect();
        let holder = format!("{data} (znode {place})");
        Ok(Some(Child::Foreign(holder.trim_start().into())))
    }

    fn place(&self, machine: u64) -> String {
        format!("{}/{machine}", self.config.path)
    }
}

/// True if Vesta created the child of a number. It creates none that is ephemeral.
pub(crate) fn is_ours(data: &[u8], stat: &Stat) -> bool {
    data.split(|byte| *byte == b' ').next() == Some(OURS.as_bytes()) && stat.ephemeral_owner == 0
}

/// The last part of a path.
fn name_of(area: &str) -> &str {
    area.rsplit('/').next().unwrap_or(area)
}

fn data(areas: &[&str]) -> String {
    format!("{OURS} {}", areas.join(" "))
}

/// The releases among changes that were made; the first one speaks for all of a process.
pub(super) fn released<'a>(
    handovers: impl IntoIterator<Item = (&'a Option<Handover>, &'a bool)>,
) -> Option<&'a Release> {
    handovers.into_iter().find_map(|made| match made {
        (Some(Handover::Release(release)), true) => Some(release),
        _ => None,
    })
}

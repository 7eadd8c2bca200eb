//! One-time import of machine IDs that another system has handed out, so that a running fleet can
//! migrate without conflicts.
//!
//! ```
//! use std::sync::Arc;
//!
//! use vesta_service::IdMeta;
//! use vesta_service::contract::UnixMillis;
//! use vesta_service::lease::{Leases, Record};
//! use vesta_service::testing::MemoryStore;
//! use vesta_store::import::{self, ForeignOwner, Target};
//!
//! let store = Arc::new(MemoryStore::new()); // or the result of `vesta_store::open`
//! let leases = Leases::new(store, "default");
//! let layout = IdMeta::SNOWFLAKE;
//! let namespace = leases.open(&layout.fingerprint())?;
//! let now = UnixMillis(1_767_225_600_000);
//!
//! let found = [ForeignOwner { machine: 5, host: "10.0.0.5:8080".into(), last_used: None }];
//! let mut numbers = 1..; // random numbers in production
//! let target = Target { layout, namespace: namespace.uuid, floor: namespace.floor, now };
//! let seen = leases.snapshot()?;
//! let plan = import::plan(&found, &seen.records, &target, || numbers.next().unwrap_or(0))?;
//! let outcomes = import::write(&leases, &seen, plan)?;
//!
//! let [(5, import::Outcome::Written(record))] = &outcomes[..] else { panic!("{outcomes:?}") };
//! assert_eq!(record.owner, Record::FOREIGN); // no pool hands it out
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cosid;
#[cfg(feature = "zookeeper")]
mod leaf;
mod legacy;
mod machine_ids;
#[cfg(feature = "zookeeper")]
mod nodes;

use std::collections::BTreeMap;

use vesta_service::IdMeta;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Cas, Leases, Record, Snapshot, StoreError};

pub use crate::foreign_owner::ForeignOwner;
pub use cosid::{ForeignSegment, cosid_segments};
pub use legacy::Legacy;
pub use machine_ids::machine_ids;

/// Target namespace of an import, and the time.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The layout of the namespace.
    pub layout: IdMeta,
    /// The uuid of the namespace.
    pub namespace: u128,
    /// The floor of the namespace.
    pub floor: u64,
    /// The wall clock.
    pub now: UnixMillis,
}

/// Outcome for one machine ID, planned or actual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This record is written.
    Written(Record),
    /// A record existed already or another writer was faster; this record is left unchanged.
    LeftAlone(Record),
}

/// The outcomes by machine ID.
pub type Outcomes = Vec<(u64, Outcome)>;

/// The import is impossible: the layout has no such machine ID or moment. Nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

fn list(machines: &[u64]) -> String {
    let shown: Vec<_> = machines.iter().take(10).map(u64::to_string).collect();
    let more = if machines.len() > 10 { ", …" } else { "" };
    shown.join(", ") + more
}

/// Maximum clock lead of a foreign owner, including the interval between its reports.
const AHEAD_MS: u64 = 10_000;

/// Maximum length of a host name that fits every store.
const HOST_CHARS: usize = 200;

/// Plans the records that keep pools from handing out the machine IDs of foreign owners. `records`
/// are all records of the namespace; `attempt` returns a random number of at most 63 bits.
///
/// # Errors
/// [`PlanError`] if the layout has no such machine ID or moment.
pub fn plan(
    found: &[ForeignOwner],
    records: &BTreeMap<u64, Record>,
    target: &Target,
    mut attempt: impl FnMut() -> u64,
) -> Result<Outcomes, PlanError> {
    let Target {
        layout,
        namespace,
        floor,
        now,
    } = target;
    let spec = layout.spec();
    let max = (1u64 << spec.machine_bits) - 1;
    let beyond: Vec<_> = found
        .iter()
        .map(|it| it.machine)
        .filter(|it| *it > max)
        .collect();
    if !beyond.is_empty() {
        return Err(PlanError(format!(
            "the layout {} has machine IDs of 0 to {max}, but the foreign owners use {}; choose \
             their layout",
            layout.name(),
            list(&beyond)
        )));
    }

    let planned = |(
        machine,
        ForeignOwner {
            host, last_used, ..
        },
    )| {
        if let Some(record) = records.get(&machine) {
            return Ok((machine, Outcome::LeftAlone(record.clone())));
        }
        let used_until = last_used.unwrap_or_default().max(*now);
        let moment = UnixMillis(used_until.0.saturating_add(AHEAD_MS));
        let position = layout.position_at(moment).map_err(|error| {
            PlanError(format!(
                "machine ID {machine} was used at {moment}: {error}"
            ))
        })?;
        let record = Record {
            namespace: *namespace,
            birth: attempt(),
            epoch: 1,
            owner: Record::FOREIGN,
            bound: position.max(*floor),
            attempt: attempt(),
            host: host.chars().take(HOST_CHARS).collect(),
            claimed: *now,
            info_time: *now,
            ..Record::default()
        };
        Ok((machine, Outcome::Written(record)))
    };
    merged(found).into_iter().map(planned).collect()
}

/// By machine ID; a machine ID found twice gets all hosts and the latest moment.
fn merged(found: &[ForeignOwner]) -> BTreeMap<u64, ForeignOwner> {
    let mut merged: BTreeMap<u64, ForeignOwner> = BTreeMap::new();
    for it in found {
        merged
            .entry(it.machine)
            .and_modify(|known| {
                known.last_used = known.last_used.max(it.last_used);
                if !known.host.split(", ").any(|host| host == it.host) {
                    known.host = format!("{}, {}", known.host, it.host);
                }
            })
            .or_insert_with(|| it.clone());
    }
    merged
}

/// Writes the records of a [`plan`] and their marks into the namespace for which it was made, and
/// marks records left by an interrupted import. Repeating it changes nothing.
///
/// # Errors
/// [`StoreError`] if the store is unreachable. Some records may then be written; repeating the
/// import with a new plan writes the rest.
pub fn write(leases: &Leases, seen: &Snapshot, plan: Outcomes) -> Result<Outcomes, StoreError> {
    let written = |(machine, planned)| {
        let outcome = match planned {
            Outcome::Written(record) => match put(leases, seen, machine, &record)? {
                Cas::Done => Outcome::Written(record),
                Cas::Conflict(current) => Outcome::LeftAlone(current.unwrap_or_default()),
            },
            Outcome::LeftAlone(record) => {
                if seen.is_unmarked(machine) {
                    mark(leases, seen, machine, &record)?;
                }
                Outcome::LeftAlone(record)
            }
        };
        Ok((machine, outcome))
    };
    plan.into_iter().map(written).collect()
}

/// Replaces a machine ID's record, as seen in a snapshot, with a new record and its mark; changes
/// nothing if the record has changed since.
///
/// # Errors
/// As [`change`], and if the machine ID was marked for another record meanwhile.
pub fn put(
    leases: &Leases,
    seen: &Snapshot,
    machine: u64,
    new: &Record,
) -> Result<Cas<Record>, StoreError> {
    let done = change(leases, machine, seen.records.get(&machine), new)?;
    if done == Cas::Done {
        mark(leases, seen, machine, new)?;
    }
    Ok(done)
}

fn mark(leases: &Leases, seen: &Snapshot, machine: u64, record: &Record) -> Result<(), StoreError> {
    if insist(|| leases.mark_birth(seen, machine, record))? {
        return Ok(());
    }
    Err(StoreError::permanent(format!(
        "machine ID {machine} was marked for another record meanwhile; check its state \
         (store show), and recreate its record if it was deleted (store repair {machine})"
    )))
}

/// Changes a record like [`Leases::change`], sending it up to three times if the reply is lost. A
/// creation is sent only once and then looked up: a late copy would bring back a record that was
/// deleted in between, with its old birth.
///
/// # Errors
/// [`StoreError`] if the store refuses, or does not answer three times in a row. The change may or
/// may not have happened.
pub fn change(
    leases: &Leases,
    machine: u64,
    old: Option<&Record>,
    new: &Record,
) -> Result<Cas<Record>, StoreError> {
    if old.is_some() {
        return insist(|| leases.change(machine, old, new));
    }
    match leases.change(machine, None, new) {
        Err(error) if !error.is_permanent() => match insist(|| leases.record(machine))? {
            Some(current) if current == *new => Ok(Cas::Done),
            Some(current) => Ok(Cas::Conflict(Some(current))),
            None => Err(error),
        },
        answer => answer,
    }
}

/// How often a request is sent if its reply is lost.
const TRIES: u32 = 3;

fn insist<T>(mut ask: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut tried = 0;
    loop {
        tried += 1;
        match ask() {
            Err(error) if !error.is_permanent() && tried < TRIES => {}
            answer => return answer,
        }
    }
}

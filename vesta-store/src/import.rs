//! Machine IDs that another system has handed out, taken over once, so that a running fleet can move
//! without a clash.
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
//! let store = Arc::new(MemoryStore::new()); // or what `vesta_store::open` gives
//! let leases = Leases::new(store, "default");
//! let layout = IdMeta::SNOWFLAKE;
//! let namespace = leases.open(&layout.fingerprint())?;
//! let now = UnixMillis(1_767_225_600_000);
//!
//! let found = [ForeignOwner { machine: 5, host: "10.0.0.5:8080".into(), last_used: None }];
//! let mut numbers = 1..; // random ones, in earnest
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
pub(crate) mod owner;

use std::collections::BTreeMap;

use vesta_service::IdMeta;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::sequence::Rules;
use vesta_service::lease::{Cas, Leases, Record, Snapshot, StoreError};

pub use cosid::{ForeignSegment, cosid_segments};
pub use legacy::Legacy;
pub use machine_ids::machine_ids;
pub use owner::ForeignOwner;

/// The namespace that machine IDs are taken over into, and the time.
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

/// The fate of one machine ID, as it is planned or as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This record is written.
    Written(Record),
    /// There was a record already, or somebody else was faster: this one stays as it is.
    LeftAlone(Record),
}

/// The outcomes by machine ID.
pub type Outcomes = Vec<(u64, Outcome)>;

/// The reason for which nothing can be taken over: the layout has no such machine IDs, or no such
/// moment. Nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

fn list(machines: &[u64]) -> String {
    let shown: Vec<_> = machines.iter().take(10).map(u64::to_string).collect();
    let more = if machines.len() > 10 { ", …" } else { "" };
    shown.join(", ") + more
}

/// A predecessor may be ahead of our clock, and may report its time now and then only.
const AHEAD_MS: u64 = 10_000;

/// So much of a host's name fits every store.
const HOST_CHARS: usize = 200;

/// The records to write so that no pool hands out the machine IDs of predecessors. `records` are
/// all that the namespace has; `attempt` gives a random number of at most 63 bits.
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
            "the layout {} has machine IDs of 0 to {max}, but the foreign owners use {}; choose the \
             layout that they have",
            layout.name(),
            list(&beyond)
        )));
    }

    let rules = Rules::new(spec.time_bits, spec.seq_bits, 0);
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
        let tick = layout.tick_at(moment).map_err(|error| {
            PlanError(format!(
                "machine ID {machine} was used at {moment}: {error}"
            ))
        })?;
        let record = Record {
            namespace: *namespace,
            birth: attempt(),
            epoch: 1,
            owner: Record::FOREIGN,
            bound: rules.position(tick).max(*floor),
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

/// By machine ID; of one that was found twice, all hosts and the latest moment.
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

/// Writes the records of a [`plan`] with their marks into the namespace that it was made for, and
/// marks those that an interrupted import left behind. Doing it again changes nothing.
///
/// # Errors
/// [`StoreError`] if the store does not answer; some records may then be written, and doing it
/// again, with a new plan, writes the rest.
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

/// Puts a new record and its mark in place of what a snapshot shows of a machine ID; nothing is
/// changed if the record is another one by now.
///
/// # Errors
/// [`StoreError`] as of [`change`], or if the machine ID was marked for another record meanwhile.
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
        "machine ID {machine} was marked for another record at this moment; see what has become of \
         it (store show), and create its record anew if it was deleted (store repair {machine})"
    )))
}

/// Changes a record as [`Leases::change`] does, three times if the reply is lost. A creation is sent
/// once, then looked for: a copy of it that arrives late would bring back a record that somebody
/// deleted in between, birth and all.
///
/// # Errors
/// [`StoreError`] if the store refuses, or does not answer three times in a row. It is then not
/// known whether the change happened.
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

/// The number of times that a request is sent whose reply is lost.
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

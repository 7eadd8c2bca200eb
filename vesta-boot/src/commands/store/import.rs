//! `store import`: takes over machine IDs that a legacy system has handed out.

use std::collections::BTreeMap;
use vesta_intf::plain;

use vesta_intf::{Field, IdMeta};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::Record;
use vesta_store::StoreUrl;
use vesta_store::import::{
    ForeignOwner, Legacy, Outcome, Outcomes, Target, machine_ids, plan, write,
};

use super::opened::{Opened, attempt};
use crate::commands::declared::{LegacySystem, StoreImport};
use crate::console::Console;
use crate::error::Error;
use crate::report::counted;
use crate::settings::Config;
use crate::stores::{not_opened, options};

pub(super) fn run(
    config: &Config,
    StoreImport {
        system,
        from,
        cosid_namespace,
    }: &StoreImport,
    console: &mut Console,
) -> Result<String, Error> {
    let legacy = legacy(*system, cosid_namespace.as_deref(), &config.ids.layout)?;
    let found = read(legacy, from)?;
    let report = report(legacy, from, found.len());
    if found.is_empty() {
        return Ok(report);
    }
    (console.say)(&report);
    // Owners that do not fit are refused before even a namespace is created.
    let (layout, now) = (config.ids.layout, SystemClock::new().wall());
    let target = Target {
        layout,
        namespace: 0,
        floor: 0,
        now,
    };
    planned(&found, &BTreeMap::new(), &target)?;
    take_over(&Opened::open(config, &options(config))?, legacy, &found)
}

/// The requested legacy system.
fn legacy<'a>(
    system: LegacySystem,
    cosid_namespace: Option<&'a str>,
    layout: &IdMeta,
) -> Result<Legacy<'a>, Error> {
    match (system, cosid_namespace) {
        (LegacySystem::VestaDb, None) => Ok(Legacy::VestaDb),
        (LegacySystem::Leaf, None) => Ok(Legacy::Leaf),
        (LegacySystem::Nodes, None) => Ok(Legacy::Nodes),
        (LegacySystem::CosId, Some(namespace)) => Ok(Legacy::CosId {
            namespace,
            max_machine: layout.max(Field::Machine),
        }),
        (LegacySystem::CosId, None) => Error::refuse("store import cosid needs --cosid-namespace"),
        (_, Some(_)) => Error::refuse("--cosid-namespace is for cosid only; remove it"),
    }
}

fn report(legacy: Legacy<'_>, from: &StoreUrl, found: usize) -> String {
    let name = legacy.name();
    match found {
        0 => format!("{name} has handed out no machine ID in {from}. Nothing was changed.\n"),
        found => format!(
            "{name} has handed out {} in {from}.\n",
            counted(found, "machine ID")
        ),
    }
}

fn read(legacy: Legacy<'_>, from: &StoreUrl) -> Result<Vec<ForeignOwner>, Error> {
    machine_ids(from, legacy).map_err(|error| not_opened("--from", error))
}

fn planned(
    found: &[ForeignOwner],
    records: &BTreeMap<u64, Record>,
    target: &Target,
) -> Result<Outcomes, Error> {
    plan(found, records, target, attempt).map_err(Error::setting)
}

fn take_over(opened: &Opened, legacy: Legacy<'_>, found: &[ForeignOwner]) -> Result<String, Error> {
    opened.insist_on_layout()?;
    let snapshot = opened.snapshot()?;
    if let Some(it) = found.iter().find(|it| snapshot.is_lost(it.machine)) {
        return Error::refuse(format!(
            "the record of machine ID {0} in namespace {1} was deleted or replaced; recreate it \
             first (store repair {0}). Nothing was changed",
            it.machine,
            opened.name()
        ));
    }
    let target = Target {
        layout: opened.layout,
        namespace: snapshot.namespace.uuid,
        floor: snapshot.namespace.floor,
        now: opened.clock.wall(),
    };
    let plan = planned(found, &snapshot.records, &target)?;
    let all = write(&opened.leases, &snapshot, plan).map_err(|error| opened.failed(&error))?;
    Ok(said(opened, legacy, &all))
}

fn said(opened: &Opened, legacy: Legacy<'_>, all: &[(u64, Outcome)]) -> String {
    let line = |(machine, outcome): &(u64, Outcome)| {
        let (Outcome::Written(record) | Outcome::LeftAlone(record)) = outcome;
        let host = plain(&record.host);
        let what = match (outcome, record.owner) {
            (Outcome::Written(_), _) => format!("reserved for {host}"),
            (_, Record::FOREIGN) => format!("left alone: already reserved for {host}"),
            (_, 0) => "left alone: used here before, now free".to_owned(),
            _ => format!(
                "left alone: held here by {host} (pid {}); is the machine ID in use twice?",
                record.pid
            ),
        };
        format!("  {machine:>6}  {what}\n")
    };
    let mut out: String = all.iter().map(line).collect();
    let written = all
        .iter()
        .filter(|(_, it)| matches!(it, Outcome::Written(_)))
        .count();
    out += &format!(
        "{written} written, {} left alone, in namespace {} of {}.\n",
        all.len() - written,
        opened.name(),
        opened.store().describe()
    );
    if written > 0 {
        out += "No pool of this namespace hands them out. Once a process of the other system is stopped \
                for good, give its machine ID to the pool: store free ID\n";
    }
    let (theirs, ours) = (legacy.layouts(), opened.layout);
    if !theirs.is_empty() && theirs.iter().all(|theirs| theirs.spec() != ours.spec()) {
        let names: Vec<_> = theirs.iter().map(IdMeta::name).collect();
        out += &format!(
            "Note: {} makes IDs of the layout {}, but this namespace has another: their IDs can \
             collide regardless of the machine ID.\n",
            legacy.name(),
            names.join(" or "),
        );
    }
    out
}

#[cfg(test)]
mod tests;

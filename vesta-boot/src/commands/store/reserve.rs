//! `store reserve`: keeps a machine ID out of the pool for something that is not a Vesta process.

use std::slice;

use vesta_intf::plain;
use vesta_service::lease::{Cas, Record};
use vesta_store::import::{ForeignOwner, Outcome, Target, change, plan, put};

use super::opened::{Opened, attempt};
use crate::console::UNCHANGED;
use crate::error::Error;
use crate::stores::state::State;

pub(super) fn run(opened: &Opened, machine: u64, holder: &str) -> Result<String, Error> {
    opened.insist_on_layout()?;
    if !(1..=200).contains(&holder.trim().chars().count()) {
        return Error::refuse("--for must have 1 to 200 characters: what uses the machine ID");
    }
    let machines = opened.layout.machines();
    if !machines.contains(&machine) {
        let (first, last) = machines.into_inner();
        return Error::refuse(format!(
            "machine ID {machine} is out of range: {first} to {last}"
        ));
    }
    let (name, snapshot) = (opened.name(), opened.snapshot()?);
    let now = opened.position_at(opened.now()?)?;
    let old = snapshot.records.get(&machine);
    let host = old.map_or(String::new(), |record| plain(&record.host));
    let owner = match State::all(&snapshot, now).get(&machine) {
        None | Some(State::Released) => None,
        Some(State::Foreign) if host == holder => {
            return Ok(format!(
                "Machine ID {machine} is already reserved for {host}. {UNCHANGED}"
            ));
        }
        Some(State::Foreign) => Some(format!("reserved for {host}")),
        Some(State::Held) => Some(format!("in use by {host}")),
        Some(State::Expired) => Some(format!("of {host}, which did not give it back")),
        Some(State::Lost) => Some("lost; recreate its record first (store repair)".to_owned()),
    };
    if let Some(owner) = owner {
        return Error::refuse(format!(
            "machine ID {machine} of namespace {name} is {owner}; choose one that `store show` does not list, \
             or free it first (store free {machine})"
        ));
    }
    // The holder starts at its clock, so nothing above may have been issued.
    let bound = old
        .map_or(0, |record| record.bound)
        .max(snapshot.namespace.floor);
    if bound > now {
        return Error::refuse(format!(
            "IDs of machine ID {machine} may have been made up to {}; retry after that moment",
            opened.layout.moment_at(bound)
        ));
    }
    let target = Target {
        layout: opened.layout,
        namespace: snapshot.namespace.uuid,
        floor: bound,
        now: opened.clock.wall(),
    };
    let owner = ForeignOwner {
        machine,
        host: holder.to_owned(),
        last_used: None,
    };
    let planned = plan(
        slice::from_ref(&owner),
        &Default::default(),
        &target,
        attempt,
    );
    let Some((_, Outcome::Written(new))) = planned.map_err(Error::setting)?.pop() else {
        return Error::refuse(format!("machine ID {machine} cannot be reserved"));
    };
    let written = match old {
        None => put(&opened.leases, &snapshot, machine, &new),
        // A new claim of the same record.
        Some(old) => {
            let new = Record {
                birth: old.birth,
                epoch: old.epoch + 1,
                from: bound,
                ..new
            };
            change(&opened.leases, machine, Some(old), &new)
        }
    };
    if written.map_err(|error| opened.failed(&error))? != Cas::Done {
        return Error::refuse(format!(
            "machine ID {machine} was claimed meanwhile; nothing was changed"
        ));
    }
    Ok(format!(
        "Machine ID {machine} of namespace {name} is reserved for {}: no process claims it. `store free {machine}` \
         gives it back.\n",
        plain(holder)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::free;
    use super::super::testing::{NOW, World, at, held};
    use super::*;

    fn reserve(world: &World, machine: u64, holder: &str) -> Result<String, String> {
        run(&world.opened(), machine, holder).map_err(|error| error.to_string())
    }

    #[test]
    fn a_reserved_machine_id_is_foreign_until_it_is_freed() {
        let world = World::new();
        let said = reserve(&world, 1000, "PostgreSQL of the shop").expect("reserved");
        assert!(said.starts_with("Machine ID 1000"), "{said}");
        let record = world.record(1000);
        assert_eq!((record.owner, record.bound), (Record::FOREIGN, at(10)));
        assert_eq!(
            (record.host.as_str(), record.info_time),
            ("PostgreSQL of the shop", NOW)
        );
        let again = reserve(&world, 1000, "PostgreSQL of the shop").expect("the same");
        assert!(again.contains("already reserved"), "{again}");
        assert_eq!(world.record(1000), record);
        let other = reserve(&world, 1000, "another").expect_err("it has a holder");
        assert!(
            other.contains("reserved for PostgreSQL of the shop"),
            "{other}"
        );
        let opened = world.opened();
        let freed = world.with_console(Some(true), |console| free::run(&opened, 1000, console));
        assert!(freed.expect("freed").contains("is free"));
        assert_eq!(world.record(1000).owner, 0);
    }

    #[test]
    fn a_machine_id_with_an_owner_or_out_of_range_is_refused() {
        for (record, said) in [
            (held(at(5)), "in use by web-1"),
            (held(at(-5)), "of web-1, which did not give it back"),
        ] {
            let world = World::new();
            world.put(7, &record);
            let refused = reserve(&world, 7, "x").expect_err("it has an owner");
            assert!(refused.contains(said), "{refused}");
            assert_eq!(world.record(7), record);
        }
        let world = World::new();
        let refused = reserve(&world, 1024, "x").expect_err("max-peak has 1,024");
        assert_eq!(refused, "machine ID 1024 is out of range: 0 to 1023");
        for holder in ["", "  ", &"x".repeat(201)] {
            let refused = reserve(&world, 7, holder).expect_err("no text, or too long");
            assert!(refused.contains("1 to 200 characters"), "{refused}");
        }
        world.put(7, &held(at(5)));
        world.delete(7);
        let refused = reserve(&world, 7, "x").expect_err("its last ID is unknown");
        assert!(refused.contains("lost"), "{refused}");
    }

    #[test]
    fn a_released_machine_id_is_reserved_once_the_clock_is_past_its_ids() {
        let world = World::new();
        let released = |bound| Record {
            owner: 0,
            released: true,
            ..held(bound)
        };
        world.put(7, &released(at(5)));
        let refused = reserve(&world, 7, "x").expect_err("IDs up to then may exist");
        assert!(refused.contains("retry after that moment"), "{refused}");
        world.put(8, &released(at(-5)));
        reserve(&world, 8, "x").expect("its IDs are in the past");
        let record = world.record(8);
        assert_eq!((record.owner, record.epoch), (Record::FOREIGN, 4));
        assert_eq!((record.from, record.bound), (at(-5), at(10)));
        let claims = world.leases().claims(8).expect("memory");
        assert_eq!(claims, [world.own(released(at(-5))), world.own(record)]);
        world.leases().raise_floor(at(60)).expect("memory");
        let refused = reserve(&world, 9, "x").expect_err("below the floor");
        assert!(refused.contains("retry after that moment"), "{refused}");
    }
}

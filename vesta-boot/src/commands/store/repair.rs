//! `store repair`: recreates the record of a machine ID that was deleted or replaced.

use vesta_intf::UnixMillis;
use vesta_service::lease::{Cas, Record};
use vesta_store::import::put;

use super::opened::{MARGIN_MS, Opened, attempt};
use crate::console::{Console, UNCHANGED};
use crate::error::Error;

pub(super) fn run(opened: &Opened, machine: u64, console: &mut Console) -> Result<String, Error> {
    opened.insist_on_layout()?;
    let name = opened.name();
    let snapshot = opened.snapshot()?;
    if !snapshot.is_lost(machine) {
        let how = match snapshot.records.contains_key(&machine) {
            true => "is the original one",
            false => "was never created",
        };
        return Error::refuse(format!(
            "the record of machine ID {machine} in namespace {name} {how}: nothing to repair"
        ));
    }
    let found = snapshot.records.get(&machine);
    let (ours, theirs) = opened.clocks()?;
    let beyond = UnixMillis(ours.max(theirs).0 + opened.window_ms + MARGIN_MS);
    let known = found.filter(|record| record.namespace == snapshot.namespace.uuid);
    let bound = opened
        .position_at(beyond)?
        .max(snapshot.namespace.floor)
        .max(known.map_or(0, |record| record.bound));
    let from = opened.layout.moment_at(bound);
    let plan = format!(
        "Repairing machine ID {machine} of namespace {name} in {}, whose record was {}:\n\
         - confirm only if no process uses it any more: one that still does loses it at its next renewal;\n\
         - the pool may hand it out again, from {from} on and never below.\n",
        opened.store().describe(),
        if found.is_some() {
            "replaced"
        } else {
            "deleted"
        },
    );
    if !console.agrees(&plan, "Recreate its record?")? {
        return Ok(UNCHANGED.to_owned());
    }
    let new = Record {
        namespace: snapshot.namespace.uuid,
        birth: attempt(),
        bound,
        attempt: attempt(),
        released: true,
        info_time: ours,
        ..Record::default()
    };
    // Only in place of the record found: another repair may have come first.
    let failed = |error| opened.failed(&error);
    if put(&opened.leases, &snapshot, machine, &new).map_err(failed)? != Cas::Done {
        return Error::refuse(format!(
            "the record of machine ID {machine} was changed meanwhile; nothing was repaired"
        ));
    }
    Ok(format!(
        "Machine ID {machine} has a new record and is free, from {from} on.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{NOW, World, at, held};
    use super::*;

    fn repair(world: &World, machine: u64, answer: Option<bool>) -> Result<String, String> {
        let opened = world.opened();
        world.with_console(answer, |console| run(&opened, machine, console))
    }

    /// A machine ID whose record was deleted.
    fn lost() -> World {
        let world = World::new();
        world.put(
            7,
            &Record {
                birth: 1,
                ..held(at(5))
            },
        );
        world.delete(7);
        world
    }

    fn is_lost(world: &World) -> bool {
        world.opened().snapshot().expect("memory").is_lost(7)
    }

    #[test]
    fn a_deleted_record_is_recreated_above_every_window() {
        let world = lost();
        assert!(is_lost(&world));
        let said = repair(&world, 7, Some(true)).expect("repaired");
        // The window of these tests is 5 s.
        let from = UnixMillis(NOW.0 + 65_000);
        assert!(said.contains("whose record was deleted:"), "{said}");
        assert!(
            said.contains(&format!("from {from} on and never below")),
            "{said}"
        );
        let end = format!("Machine ID 7 has a new record and is free, from {from} on.\n");
        assert!(said.ends_with(&end), "{said}");
        let record = world.record(7);
        assert!(
            record.birth > 1 && record.attempt > 1,
            "fresh random numbers"
        );
        let expected = Record {
            bound: at(65),
            released: true,
            info_time: NOW,
            birth: record.birth,
            attempt: record.attempt,
            ..Record::default()
        };
        assert_eq!(record, expected);
        assert!(!is_lost(&world), "it is marked");
    }

    #[test]
    fn replaced_and_foreign_namespace_records_are_replaced() {
        let world = lost();
        let other = World::new().own(Record {
            birth: 1,
            ..held(at(999))
        });
        world.leases().change(7, None, &other).expect("memory");
        assert!(is_lost(&world));
        let said = repair(&world, 7, Some(true)).expect("repaired");
        assert!(said.contains("whose record was replaced:"), "{said}");
        assert_eq!(
            world.record(7).bound,
            at(65),
            "another namespace's bound means nothing"
        );
        assert!(!is_lost(&world));

        let world = lost();
        let other = world.own(Record {
            birth: 2,
            ..held(at(999))
        });
        world.leases().change(7, None, &other).expect("memory");
        repair(&world, 7, Some(true)).expect("repaired");
        assert_eq!(world.record(7).bound, at(999), "a bound is not lowered");
        assert_eq!(world.record(7).owner, 0);
    }

    #[test]
    fn the_bound_is_above_the_floor_and_the_later_clock() {
        let world = lost();
        world.leases().raise_floor(at(100)).expect("memory");
        repair(&world, 7, Some(true)).expect("repaired");
        assert_eq!(world.record(7).bound, at(100));
        for (ahead, bound) in [(2_000_i64, at(67)), (-2_000, at(65))] {
            let theirs = NOW.0.checked_add_signed(ahead).expect("after 1970");
            let world = lost().with_store_clock(UnixMillis(theirs));
            repair(&world, 7, Some(true)).expect("repaired");
            assert_eq!(world.record(7).bound, bound);
        }
    }

    #[test]
    fn a_record_that_is_not_lost_is_refused_and_unchanged() {
        let world = World::new();
        world.put(7, &held(at(-1)));
        let said = repair(&world, 7, Some(true)).expect_err("refused");
        assert!(said.contains("is the original one: nothing to repair"));
        assert_eq!(world.record(7), held(at(-1)));
        let said = repair(&world, 8, Some(true)).expect_err("refused");
        assert!(
            said.contains("was never created: nothing to repair"),
            "{said}"
        );
        assert_eq!(world.leases().record(8).expect("memory"), None);
        let world = lost();
        repair(&world, 7, Some(true)).expect("repaired");
        repair(&world, 7, Some(true)).expect_err("once is enough");
    }

    #[test]
    fn nothing_changes_without_confirmation() {
        let world = lost();
        let said = repair(&world, 7, Some(false)).expect("declined");
        assert!(said.ends_with("Nothing was changed.\n"), "{said}");
        assert!(
            repair(&world, 7, None)
                .expect_err("no terminal")
                .contains("--yes")
        );
        assert_eq!(world.leases().record(7).expect("memory"), None);
    }

    #[test]
    fn a_record_repaired_concurrently_stays_as_it_is() {
        let world = lost();
        let (opened, leases) = (world.opened(), world.leases());
        let theirs = world.own(Record {
            birth: 3,
            ..held(at(70))
        });
        let new = theirs.clone();
        let said = world.with_asked(
            move || {
                let seen = leases.snapshot().expect("memory");
                put(&leases, &seen, 7, &new).expect("memory");
                Ok(true)
            },
            |console| run(&opened, 7, console),
        );
        assert!(
            said.expect_err("too late")
                .contains("was changed meanwhile")
        );
        assert_eq!(world.leases().record(7).expect("memory"), Some(theirs));
    }
}

//! `store free`: returns a machine ID to the pool when its owner is gone for good.

use vesta_intf::plain;
use vesta_service::lease::{Cas, Record};
use vesta_store::import::change;

use super::opened::{Opened, attempt};
use crate::console::{Console, UNCHANGED};
use crate::error::Error;
use crate::stores::state::State;

pub(super) fn run(opened: &Opened, machine: u64, console: &mut Console) -> Result<String, Error> {
    opened.insist_on_layout()?;
    let name = opened.name();
    let snapshot = opened.snapshot()?;
    let now = opened.position_at(opened.now()?)?;
    let record = snapshot.records.get(&machine).cloned().unwrap_or_default();
    let state = State::all(&snapshot, now).get(&machine).copied();
    // The holder of a reservation extends no bound.
    let bound = match state {
        Some(State::Foreign) => record.bound.max(now),
        _ => record.bound,
    };
    let until = opened.layout.moment_at(bound);
    let host = plain(&record.host);
    let who = match state {
        None => {
            return Err(Error::No(format!(
                "machine ID {machine} has no record in namespace {name}: no process ever had it; nothing \
                 changed"
            )));
        }
        Some(State::Lost) => {
            return Error::refuse(format!(
                "the record of machine ID {machine} was deleted or replaced, so its last position is \
                 unknown; recreate the record (store repair {machine})"
            ));
        }
        Some(State::Released) => {
            return Ok(format!("Machine ID {machine} is already free. {UNCHANGED}"));
        }
        // Its bound is in the future: it was renewed less than a window ago.
        Some(State::Held) => {
            return Error::refuse(format!(
                "machine ID {machine} is in use by {host} (pid {}): it was renewed less than a window \
                 ago; stop that process, or if it is gone, retry after {until}",
                record.pid
            ));
        }
        Some(State::Expired) => {
            format!(
                "{host} (pid {}), expired since {},",
                record.pid, record.info_time
            )
        }
        Some(State::Foreign) => format!("{host}, a process of another system,"),
    };
    let plan = format!(
        "Freeing machine ID {machine} of namespace {name} in {}:\n\
         - confirm only if {who} is gone for good;\n\
         - the pool may hand the machine ID out again, from {until} on and never below.\n",
        opened.store().describe(),
    );
    if !console.agrees(&plan, "Is it gone?")? {
        return Ok(UNCHANGED.to_owned());
    }
    let free = Record {
        owner: 0,
        released: true,
        bound,
        attempt: attempt(),
        info_time: opened.clock.wall(),
        ..record.clone()
    };
    let changed = change(&opened.leases, machine, Some(&record), &free);
    if changed.map_err(|error| opened.failed(&error))? != Cas::Done {
        return Error::refuse(format!(
            "machine ID {machine} was renewed or claimed meanwhile, so its owner is not gone; \
             nothing was changed"
        ));
    }
    Ok(format!("Machine ID {machine} is free.\n"))
}

#[cfg(test)]
mod tests {
    use vesta_intf::UnixMillis;

    use super::super::testing::{NOW, World, at, held};
    use super::*;

    fn free(world: &World, machine: u64, answer: Option<bool>) -> Result<String, String> {
        let opened = world.opened();
        world.with_console(answer, |console| run(&opened, machine, console))
    }

    #[test]
    fn expired_and_foreign_owners_are_freed_and_no_bound_falls() {
        for (owner, who, bound) in [
            (5, "web-1 (pid 4711), expired since", at(-1)),
            // Its IDs end now.
            (Record::FOREIGN, "web-1, a process of", at(0)),
        ] {
            let world = World::new();
            let record = Record {
                owner,
                ..held(at(-1))
            };
            world.put(7, &record);
            let said = free(&world, 7, Some(true)).expect("freed");
            assert!(said.contains(who), "{said}");
            assert!(said.ends_with("Machine ID 7 is free.\n"), "{said}");
            let after = world.record(7);
            assert_eq!(
                (after.owner, after.released, after.info_time),
                (0, true, NOW)
            );
            let same = Record {
                attempt: after.attempt,
                info_time: NOW,
                owner: 0,
                released: true,
                bound,
                ..record
            };
            assert_eq!(after, same, "epoch and the names stay");
        }
    }

    #[test]
    fn a_machine_id_renewed_in_the_last_window_is_refused() {
        let world = World::new();
        world.put(7, &held(at(1)));
        let said = free(&world, 7, Some(true)).expect_err("it lives");
        let after = UnixMillis(NOW.0 + 1000);
        assert!(said.contains("in use by web-1 (pid 4711)"), "{said}");
        assert!(said.contains(&format!("retry after {after}")), "{said}");
        assert_eq!(world.record(7), held(at(1)));
    }

    #[test]
    fn the_stores_clock_counts_if_it_is_behind_ours() {
        let world = World::new().with_store_clock(UnixMillis(NOW.0 - 2000));
        world.put(7, &held(at(-1)));
        assert!(
            free(&world, 7, Some(true)).is_err(),
            "by the store's clock it lives"
        );
        let world = World::new().with_store_clock(UnixMillis(NOW.0 + 2000));
        world.put(7, &held(at(1)));
        assert!(free(&world, 7, Some(true)).is_err(), "by ours it lives");
    }

    #[test]
    fn a_free_machine_id_is_left_unchanged() {
        let world = World::new();
        assert!(
            free(&world, 7, None)
                .expect_err("no process had it")
                .contains("has no record")
        );
        let released = Record {
            owner: 0,
            released: true,
            ..held(at(-1))
        };
        world.put(7, &released);
        assert!(
            free(&world, 7, None)
                .expect("nothing to do")
                .contains("is already free")
        );
        assert_eq!(world.record(7), released);
    }

    #[test]
    fn a_machine_id_with_a_deleted_record_does_not_count_as_unused() {
        let world = World::new();
        world.put(7, &held(at(-1)));
        world.delete(7);
        let said = free(&world, 7, Some(true)).expect_err("it is lost");
        assert!(said.contains("was deleted or replaced"), "{said}");
        assert!(said.contains("(store repair 7)"), "{said}");
        assert_eq!(world.leases().record(7).expect("memory"), None);
    }

    #[test]
    fn nothing_changes_without_confirmation() {
        let world = World::new();
        world.put(7, &held(at(-1)));
        assert!(
            free(&world, 7, Some(false))
                .expect("declined")
                .ends_with("Nothing was changed.\n")
        );
        assert!(
            free(&world, 7, None)
                .expect_err("no terminal")
                .contains("--yes")
        );
        assert_eq!(world.record(7), held(at(-1)));
    }

    #[test]
    fn an_owner_that_renews_meanwhile_keeps_its_machine_id() {
        let world = World::new();
        world.put(7, &held(at(-1)));
        let opened = world.opened();
        let leases = world.leases();
        let [old, new] = [
            held(at(-1)),
            Record {
                attempt: 2,
                ..held(at(5))
            },
        ]
        .map(|it| world.own(it));
        let said = world.with_asked(
            move || {
                leases.change(7, Some(&old), &new).expect("memory");
                Ok(true)
            },
            |console| run(&opened, 7, console),
        );
        assert!(
            said.expect_err("it lives")
                .contains("its owner is not gone")
        );
        assert_eq!(world.record(7).bound, at(5));
    }
}

//! Owners of a machine ID: the successor of a paused owner, two concurrent starters, and no more
//! owners than machine IDs.

use std::time::Duration;

use vesta_testkit::fleet::{Ledger, Process, now};
use vesta_testkit::is_full_run;

use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::{PATIENT, World};

const PAUSE: Duration = Duration::from_secs(20);
const LONG_PAUSE: Duration = Duration::from_secs(180);

/// The paused owner resumes while making IDs, and does not know that time has passed.
pub(crate) fn a_paused_owner_repeats_nothing_of_its_successor(store: &Store) {
    let world = World::of(store);
    let namespace = world.namespace();
    let mut paused = launch(&Task {
        range: Some(3..=4),
        greedy: true,
        ..world.task(&namespace, "paused")
    });
    let machine = paused.until_machine();
    paused.until_ids();
    paused.pause();
    let wakes_up = now() + if is_full_run() { LONG_PAUSE } else { PAUSE };

    let only = Task {
        range: Some(machine..=machine),
        ..world.task(&namespace, "successor")
    };
    let mut successor = launch(&only);
    assert_eq!(successor.until_machine(), machine);
    let taken_over = successor.until_ids();
    successor.listen(wakes_up.saturating_sub(now()));

    let woken_up = now();
    paused.resume();
    let other = paused.until_machine();
    assert_ne!(other, machine, "it goes on with another machine ID");
    let went_on = paused.until_ids();
    successor.until_ids_after(went_on);
    assert_eq!(
        successor.machines,
        [machine],
        "nothing happened to the successor"
    );
    successor.check_holds();
    paused.check_holds();

    paused.close();
    successor.close();
    let mut checker = Ledger::new(LAYOUT);
    checker.check(&paused.ids).unwrap();
    checker.check(&successor.ids).unwrap();
    println!(
        "{:9} | owner woken up {:.1?} after its successor's first ID: went on with another machine \
         ID {:.0?} later; {} IDs, 0 duplicates",
        world.name,
        woken_up - taken_over,
        went_on.saturating_sub(woken_up),
        checker.ids,
    );
}

/// The same host on the same empty store: both try the same machine ID first.
pub(crate) fn two_starters_at_once_get_different_machine_ids(store: &Store) {
    let rounds = if is_full_run() { 200 } else { 50 };
    let world = World::of(store);
    for round in 0..rounds {
        let namespace = world.namespace();
        let hosts = if round % 2 == 0 {
            ["a", "b"]
        } else {
            ["a", "a"]
        };
        let mut starters = hosts.map(|host| {
            let host = format!("{round}{host}");
            launch(&Task {
                waits: true,
                ..world.task(&namespace, &host)
            })
        });
        starters.iter_mut().for_each(Process::until_started);
        starters.iter_mut().for_each(Process::go);
        let mut checker = Ledger::new(LAYOUT);
        let machines = starters.each_mut().map(Process::until_machine);
        assert_ne!(machines[0], machines[1], "round {round}");
        for starter in &mut starters {
            starter.until_ids();
            starter.kill();
            checker.check(&starter.ids).unwrap();
        }
    }
    println!(
        "{:9} | {rounds} times two starters at once, always different machine IDs",
        world.name
    );
}

/// All processes of a pool in a file are on one host, where a lock shows that its owner is still
/// running.
pub(crate) fn a_paused_owner_of_this_host_keeps_its_machine_id(store: &Store) {
    let world = World::of(store);
    let namespace = world.namespace();
    let task = |host| Task {
        range: Some(3..=3),
        ..world.task(&namespace, host)
    };
    let mut paused = launch(&task("paused"));
    paused.until_ids();
    paused.pause();
    // For much longer than its window and its grace.
    let reason = launch(&task("other")).until_refused();
    assert!(reason.starts_with("machine ID 3 is in use"), "{reason}");
    paused.resume();
    let woken_up = now();
    paused.until_ids_after(woken_up);
    paused.close();
    let mut checker = Ledger::new(LAYOUT);
    checker.check(&paused.ids).unwrap();
    println!(
        "{:9} | a paused owner keeps its machine ID: {} IDs",
        world.name, checker.ids
    );
}

pub(crate) fn a_used_up_pool_names_the_holders(store: &Store) {
    let world = World::of(store);
    let namespace = world.namespace();
    // A slow disk must not end the leases of the holders, nor must the third process.
    let timing = Some(PATIENT);
    let task = |host| Task {
        range: Some(5..=6),
        timing,
        ..world.task(&namespace, host)
    };
    let mut holders = ["a", "b"].map(|host| launch(&task(host)));
    let machines = holders.each_mut().map(Process::until_machine);
    let mut third = launch(&task("c"));
    let reason = third.until_refused();
    assert!(
        reason.starts_with("every machine ID of 5 to 6 is in use:"),
        "{reason}"
    );
    for (holder, machine) in holders.iter().zip(machines) {
        assert!(reason.contains(&format!(" {machine} by ")), "{reason}");
        assert!(
            reason.contains(&format!(" (pid {})", holder.id())),
            "{reason}"
        );
    }
    println!(
        "{:9} | a third process on a pool of two is told who holds them",
        world.name
    );
}

//! Tags in a file, which is never unreachable, but may be locked.

use std::time::Duration;

use rusqlite::Connection;

use crate::segments::{Task, outages, run, union};
use crate::stores::Store;
use crate::world::World;

pub(crate) fn nothing_repeats_while_calls_wait_for_locked_tags(store: &Store) {
    let world = World::of(store);
    let task = world.taker(); // creates the file
    let file = task.url.strip_prefix("sqlite:").expect("a file");
    let lock = Connection::open(file).expect("it is there");
    lock.busy_timeout(Duration::from_secs(60)).expect("a limit");
    let ask = |sql: &str| lock.execute_batch(sql).expect("it is done");
    outages(
        &world,
        &[("locked", &|| ask("BEGIN EXCLUSIVE"), &|| ask("COMMIT"))],
    );
}

/// The check itself: one process has a store that hands out numbers already handed out.
pub(crate) fn a_range_that_is_handed_out_twice_is_found(store: &Store) {
    let world = World::of(store);
    let task = Task {
        count: Some(10_000),
        ..world.taker()
    };
    let honest = || task.start();
    let mut takers = [
        honest(),
        honest(),
        Task {
            repeats: true,
            ..task.clone()
        }
        .start(),
    ];
    run(&mut takers[..2]);
    union(&takers).expect("they have different ones");
    run(&mut takers[2..]);
    let found = union(&takers).expect_err("the third has those of the others");
    assert_eq!(found, "1 twice");
}

//! Processes beside a system that keeps its worker IDs as children of the same znode.

use std::time::Duration;

use vesta_testkit::fleet::{Ledger, now, random};

use crate::foreign::Worker;
use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::World;

/// Whatever happens to a process of Vesta, the other system finds its number taken: while it is paused for longer
/// than its session lasts, after a kill, and once it goes on.
pub(crate) fn the_other_system_never_takes_the_number_of_a_paused_or_killed_process(store: &Store) {
    let world = World::of(store);
    let (servers, _) = world.url()["zookeeper://".len()..]
        .split_once('/')
        .expect("a path");
    let group = format!("/workers-{:x}", random(u64::MAX));
    let namespace = world.namespace();
    let task = |host: &str| Task {
        url: format!("zookeeper://{servers}{group}"),
        range: Some(0..=3),
        ..world.task(&namespace, host)
    };
    let mut other = Worker::start(servers, &group);
    let mut paused = launch(&task("paused"));
    paused.until_ids();
    let mut killed = launch(&task("killed"));
    killed.until_ids();
    paused.pause();
    killed.kill();
    let mut third = Worker::start(servers, &group);
    // The session of the paused process expires after 10 s.
    let mut successor = launch(&task("successor"));
    successor.until_ids();
    let held = [&paused, &killed, &successor].map(|it| it.machines.clone());
    for _ in 0..8 {
        successor.listen(Duration::from_secs(2));
        third.reconnect();
        assert!(!held.concat().contains(&third.number), "{held:?}");
    }
    other.reconnect();
    paused.resume();
    let resumed = now();
    paused.until_ids_after(resumed);
    paused.close();
    successor.close();
    let mut ids = [&paused, &killed, &successor]
        .map(|it| it.ids.clone())
        .concat();
    ids.sort_unstable(); // their machine IDs may pass from each to any other
    Ledger::new(LAYOUT).check(&ids).unwrap();
    for process in [&paused, &killed, &successor] {
        for number in [other.number, third.number] {
            assert!(!process.machines.contains(&number), "{number}");
        }
    }
}

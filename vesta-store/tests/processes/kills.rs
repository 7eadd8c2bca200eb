//! Repeated `kill -9`.

use std::time::Duration;

use vesta_service::lease::Timing;

use vesta_testkit::fleet::{Ledger, random};
use vesta_testkit::full_or;

use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::{HASTY, PATIENT, World};

/// An idle machine needs well under a second; this is only an upper limit.
const FIRST_ID_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn no_id_repeats_when_processes_are_killed(store: &Store) {
    let kills = full_or(90, 20);
    let world = World::of(store);
    let namespace = world.namespace();
    let mut checker = Ledger::new(LAYOUT);
    // A process that is not affected by any of this.
    let timing = Some(PATIENT);
    let mut neighbour = launch(&Task {
        timing,
        ..world.task(&namespace, "neighbour")
    });
    neighbour.until_ids();

    let mut first_ids = Vec::new();
    let mut host = 0;
    for start in 0..=kills {
        host += u32::from(start % 5 == 4); // now and then a host without a local record
        let task = Task {
            greedy: start % 3 == 0,
            ..world.task(&namespace, &format!("host {host}"))
        };
        let mut victim = launch(&task);
        if start % 7 == 6 {
            victim.listen(Duration::from_millis(random(100))); // at some point of its start
        } else {
            first_ids.push(victim.until_first_id());
            for _ in 0..random(50) {
                victim.until_ids();
            }
        }
        victim.kill();
        victim.check_holds();
        let checked = checker.check(&victim.ids);
        checked.unwrap_or_else(|duplicate| panic!("start {start}: {duplicate}"));
    }

    neighbour.close();
    assert_eq!(neighbour.held, [""; 0]);
    checker.check(&neighbour.ids).unwrap();
    let planted = neighbour.ids[neighbour.ids.len() / 2];
    assert_eq!(checker.check(&[planted]), Err(format!("{planted} twice")));
    first_ids.sort();
    let (median, max) = (
        first_ids[first_ids.len() / 2],
        first_ids[first_ids.len() - 1],
    );
    println!(
        "{:9} | {kills} kills, {} IDs, 0 duplicates | first ID after {median:.0?} (median), \
         {max:.0?} (longest)",
        world.name, checker.ids,
    );
    assert!(max < FIRST_ID_WITHIN, "{first_ids:?}");
}

/// Each start is another host, like a container without a persistent folder. The grace is far longer
/// than the test; a running owner keeps its machine ID.
pub(crate) fn a_crash_loop_does_not_use_up_a_pool(store: &Store) {
    let world = World::of(store);
    let namespace = world.namespace();
    let timing = Some(Timing {
        takeover_grace: PATIENT.takeover_grace,
        ..HASTY
    });
    let task = |host: &str| Task {
        range: Some(0..=3),
        timing,
        ..world.task(&namespace, host)
    };
    let mut checker = Ledger::new(LAYOUT);
    let mut steady = launch(&task("steady"));
    steady.until_ids();
    let mut longest = Duration::ZERO;
    for start in 0..12 {
        let mut victim = launch(&task(&format!("container {start}")));
        longest = longest.max(victim.until_first_id());
        assert_ne!(victim.machines, steady.machines, "start {start}");
        victim.until_ids();
        victim.kill();
        let checked = checker.check(&victim.ids);
        checked.unwrap_or_else(|duplicate| panic!("start {start}: {duplicate}"));
    }
    steady.until_ids();
    assert_eq!(steady.machines.len(), 1, "not taken over");
    steady.close();
    checker.check(&steady.ids).unwrap();
    println!(
        "{:9} | 12 crashes on 3 free machine IDs: none refused, first ID after {longest:.1?} at most; {} \
         IDs, 0 duplicates",
        world.name, checker.ids,
    );
}

//! Servers that stop answering, and servers that die.

use std::time::Duration;

use vesta_testkit::fleet::{Ledger, now};
use vesta_testkit::is_full_run;

use crate::server::Server;
use crate::stores::Store;
use crate::worker::{LAYOUT, Task, launch};
use crate::world::{HASTY, PATIENT, World};

/// The goal is 2 s; this is only an upper limit.
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);

/// One process whose window outlasts the outage, and one whose window does not.
pub(crate) fn an_outage_within_the_window_costs_nothing_and_recovery_is_automatic(store: &Store) {
    let server = Server::start(store);
    let world = World::at(store, &server.url());
    let namespace = world.namespace();
    let [mut patient, mut hasty] = [PATIENT, HASTY].map(|timing| {
        let host = format!("{timing:?}");
        let task = Task {
            timing: Some(timing),
            ..world.task(&namespace, &host)
        };
        let mut process = launch(&task);
        process.until_ids();
        process
    });
    let ways = [
        ("paused", "pause", "resume"),
        ("killed and started again", "kill", "start"),
    ];
    for (way, stop, back) in ways {
        server.run(stop);
        let stopped = now();
        hasty.until_held();
        hasty.listen(HASTY.request_timeout * 2); // into the time without a window
        server.run(back);
        let is_back = now();
        let recovered = hasty.until_ids_after(is_back) - is_back;
        patient.until_ids_after(is_back + recovered);
        println!(
            "{:9} | {way} for {:.1?}: 0 errors within the window; after it clean errors, recovered \
             in {recovered:.0?}",
            world.name,
            is_back - stopped,
        );
        assert!(recovered < RECOVERS_WITHIN, "{recovered:?}");
        hasty.check_holds();
        assert_eq!(patient.held, [""; 0], "{way}");
    }
    for process in [&patient, &hasty] {
        assert_eq!(process.machines.len(), 1, "nothing was taken over");
    }
    patient.close();
    hasty.close();
    let mut checker = Ledger::new(LAYOUT);
    checker.check(&patient.ids).unwrap();
    checker.check(&hasty.ids).unwrap();
}

/// 30 s and 120 s, with the store's own durations.
pub(crate) fn long_outages_with_the_durations_of_the_store(store: &Store) {
    if !is_full_run() {
        println!(
            "{:9} | outages of 30 s and 120 s: only in the full run",
            store.name
        );
        return;
    }
    let server = Server::start(store);
    let world = World::at(store, &server.url());
    let namespace = world.namespace();
    let mut process = launch(&Task {
        timing: None,
        ..world.task(&namespace, "host")
    });
    let window = vesta_store::open(&server.url().parse().unwrap())
        .unwrap()
        .timing()
        .window;
    process.until_ids();
    for (seconds, stop, back) in [(30, "pause", "resume"), (120, "kill", "start")] {
        let outage = Duration::from_secs(seconds);
        let held_before = process.held.len();
        server.run(stop);
        process.listen(outage);
        server.run(back);
        let is_back = now();
        let recovered = process.until_ids_after(is_back) - is_back;
        let errors = process.held.len() - held_before;
        println!(
            "{:9} | away for {outage:?} with a window of {window:?}: {}, recovered in {recovered:.0?}",
            world.name,
            if errors == 0 {
                "0 errors"
            } else {
                "clean errors"
            },
        );
        assert!(recovered < RECOVERS_WITHIN, "{recovered:?}");
        // At least half a window is left: it is renewed after a quarter.
        assert!(errors == 0 || outage > window / 2);
        assert!(errors > 0 || outage <= window);
        process.check_holds();
    }
    assert_eq!(process.machines.len(), 1);
    process.close();
    Ledger::new(LAYOUT).check(&process.ids).unwrap();
}

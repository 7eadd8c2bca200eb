//! A lease after its claim: extend, release, takeover.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vesta_service::clock::Clock as _;
use vesta_service::lease::Record;
use vesta_service::options::Drive;
use vesta_service::{BuildError, IdError};

use super::claims::outlasting;
use super::clocks::BusyClock;
use super::world::{NAMESPACE, SECOND, TIMING, World, crash, next_position, position_of, stolen};
use super::{Backend, Cas, RecordExt as _};

/// For minutes, with a window of seconds, and never further ahead than that.
pub(super) fn ids_keep_flowing_while_the_bound_is_extended(backend: &dyn Backend) {
    let world = World::new(backend);
    let service = world.pool("host", 0..=3).build().expect("a machine ID");
    let machine = service.machine();
    assert_eq!(world.record(machine).bound, world.window_end());
    let mut before = world.record(machine);
    let mut last = next_position(&service);
    for _ in 0..60 {
        world.clock.advance(2 * SECOND);
        service.maintain();
        let position = next_position(&service);
        assert!(position > last && position >= world.position());
        last = position;
        let record = world.record(machine);
        assert_eq!(record.bound, world.window_end(), "counted from the clock");
        assert!(record.bound > before.bound && record.attempt != before.attempt);
        assert_eq!((record.epoch, record.owner), (before.epoch, before.owner));
        before = record;
    }
    let status = service.status();
    assert_eq!(
        (
            status.renewals_ok,
            status.renewals_failed,
            status.fenced_total
        ),
        (60, 0, 0)
    );
}

/// No position is skipped and none is reused, by the same host in the same second; and another host
/// starts no lower.
pub(super) fn a_released_machine_id_continues_exactly_where_it_was_sealed(backend: &dyn Backend) {
    let world = World::new(backend);
    let service = world.pool("host", 0..=0).build().expect("a machine ID");
    let mut batch = [0; 1000];
    service.gen_ids(&mut batch).expect("IDs");
    let last = position_of(batch[999]);
    drop(service);
    let record = world.record(0);
    assert_eq!(
        (record.bound, record.owner, record.released),
        (last + 1, 0, true)
    );

    let again = world.pool("host", 0..=0).build().expect("a machine ID");
    assert_eq!(next_position(&again), last + 1);
    drop(again);
    assert_eq!(world.record(0).bound, last + 2);

    let elsewhere = world
        .pool("another host", 0..=0)
        .build()
        .expect("a machine ID");
    assert!(next_position(&elsewhere) >= last + 2);
}

/// The owner may come back to its machine ID. If there is no other, a starting process watches the record for a
/// while and then claims positions that the owner can no longer use.
pub(super) fn an_expired_owner_keeps_its_machine_id_while_there_are_others(backend: &dyn Backend) {
    let world = World::new(backend);
    let silent = world.pool("a", 0..=0).build().expect("a machine ID");
    let old = silent.gen_id().expect("an ID");
    let record = world.record(0);
    let until = world.clock.wall().0 + 5_000;

    world.clock.advance(10 * SECOND);
    let other = world
        .pool("b", 0..=1)
        .build()
        .expect("a machine ID that was never used");
    assert_eq!((other.machine(), world.record(0)), (1, record.clone()));
    let begun = world.clock.monotonic();
    let successor = world.pool("c", 0..=0).timing(outlasting(&world)).build();
    let successor = successor.expect("a machine ID, after some waiting");
    let watched = world.clock.monotonic() - begun;
    assert!(
        watched >= 9 * SECOND / 4,
        "one and a half renewals, not {watched:?}"
    );
    assert!(world.clock.wall().0 >= until);
    assert_eq!(successor.status().epoch, 2);
    let new = successor.gen_id().expect("an ID");
    assert!(position_of(new) >= record.bound && new != old);

    // The old owner was still running: it notices, and has issued nothing since.
    assert!(silent.try_gen_id().is_err());
    silent.maintain();
    assert_eq!(silent.status().fenced_total, 1);
    assert!(silent.try_gen_id().is_err());
    assert_eq!(world.record(0).epoch, 2);
}

/// The age of its bound does not matter: a clock may be wrong, but a change proves that the owner is running.
pub(super) fn a_record_that_changes_while_watched_is_not_taken_over(backend: &dyn Backend) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "a", 0..=0)
        .build()
        .expect("a machine ID");
    crash(service, &connection);
    let held = world.record(0);
    world.clock.advance(120 * SECOND);

    let store = world.raw();
    let attempt = AtomicU64::new(1000);
    let sign_of_life = move || {
        let current = store
            .read(NAMESPACE, 0)
            .expect("the store answers")
            .expect("a record");
        let attempt = attempt.fetch_add(1, Ordering::Relaxed);
        let new = Record {
            attempt,
            ..current.clone()
        };
        assert_eq!(
            store.cas(NAMESPACE, 0, &current.expect(), &new).unwrap(),
            Cas::Done
        );
    };
    let clock = BusyClock {
        clock: world.clock.clone(),
        while_waiting: sign_of_life,
    };
    let refused = world
        .pool("b", 0..=0)
        .clock(Arc::new(clock))
        .drive(Drive::ByHand)
        .build();
    assert!(
        matches!(refused, Err(BuildError::Exhausted { .. })),
        "{refused:?}"
    );
    assert_eq!(world.record(0).expect(), held.expect());

    let successor = world
        .pool("b", 0..=0)
        .build()
        .expect("free once nothing changes any more");
    assert_eq!(successor.status().epoch, 2);
}

/// It stops as soon as it notices, and continues with a new lease.
pub(super) fn a_fenced_owner_stops_and_claims_another_machine_id(backend: &dyn Backend) {
    let world = World::new(backend);
    let service = world.pool("host", 0..=1).build().expect("a machine ID");
    let machine = service.machine();
    let mut ids: HashSet<u64> = (0..100).map(|_| service.gen_id().expect("an ID")).collect();
    let thief = stolen(&world.record(machine));
    let expect = world.record(machine).expect();
    assert_eq!(
        world
            .raw()
            .cas(NAMESPACE, machine, &expect, &thief)
            .unwrap(),
        Cas::Done
    );

    world.clock.advance(2 * SECOND);
    service.maintain();
    assert_eq!(service.status().fenced_total, 1);
    assert_eq!(service.machine(), 1 - machine);
    assert_eq!(
        world.record(machine),
        thief,
        "the fenced owner leaves it alone"
    );
    for _ in 0..100 {
        let id = service.gen_id().expect("an ID");
        assert_eq!(service.exp_id(id).expect("an ID").machine, 1 - machine);
        assert!(ids.insert(id));
    }
    drop(service);
    assert_eq!(world.record(machine), thief);
    assert!(world.record(1 - machine).released);
}

/// Its extend was in flight while another owner claimed the record.
pub(super) fn a_delayed_extend_of_a_fenced_owner_changes_nothing(backend: &dyn Backend) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "host", 0..=0)
        .build()
        .expect("a machine ID");
    connection.hold_back(1);
    world.clock.advance(2 * SECOND);
    service.maintain();
    assert_eq!(service.status().renewals_failed, 1);

    let before = world.record(0);
    let thief = stolen(&before);
    assert_eq!(
        world
            .raw()
            .cas(NAMESPACE, 0, &before.expect(), &thief)
            .unwrap(),
        Cas::Done
    );
    let late = connection.deliver();
    assert_eq!(late.len(), 1);
    assert!(!late[0].as_ref().unwrap(), "it does not fit");
    assert_eq!(world.record(0), thief);

    world.clock.advance(TIMING.renew_every);
    service.maintain();
    assert_eq!(service.status().fenced_total, 1);
    match service.try_gen_id() {
        Err(IdError::Sealed { .. } | IdError::NotReady(_)) => {}
        other => panic!("expected no ID from a lost machine ID, got {other:?}"),
    }
}

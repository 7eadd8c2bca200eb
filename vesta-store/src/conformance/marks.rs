//! Creators that die, records that disappear, floors that rise: a used machine ID is never claimed
//! as one that was never used.

use vesta_service::lease::{Cas, Record};
use vesta_service::{BuildError, LocalIdService};

use super::Backend;
use super::claims::{built, refused};
use super::world::{NAMESPACE, SECOND, World, crash, next_position};
use crate::import;

/// Another process gets the machine ID, above everything reserved; from then on it is marked.
pub(super) fn a_creator_that_dies_between_any_two_steps_blocks_no_claim(backend: &dyn Backend) {
    let world = World::new(backend);
    let leases = world.leases();
    for steps in 0.. {
        let machine = steps; // a machine ID that was never used, each time
        let connection = world.connect();
        let away = connection.clone();
        connection.after(steps, move || away.go_away());
        let claimed = world
            .pool_over(connection, "creator", machine..=machine)
            .build();
        let left = leases
            .record(machine)
            .expect("the store answers")
            .unwrap_or_default();
        if claimed.is_ok() {
            assert!(steps >= 6, "it died between any two of {steps} steps");
            return;
        }
        world.clock.advance(70 * SECOND); // it may count as the owner
        let successor = built(world.pool("successor", machine..=machine));
        assert_eq!(successor.status().epoch, left.epoch + 1, "{steps} steps");
        assert_eq!(world.record(machine).epoch, left.epoch + 1, "{steps} steps");
        assert!(next_position(&successor) >= left.bound, "{steps} steps");
        let seen = leases.snapshot().expect("the store answers");
        assert!(
            !seen.is_unmarked(machine) && !seen.is_lost(machine),
            "{steps} steps"
        );
    }
}

/// Its next extend detects it; no process gets the machine ID until an operator repairs it.
pub(super) fn a_deleted_record_of_a_living_owner_is_not_claimed_again(backend: &dyn Backend) {
    let world = World::new(backend);
    let living = built(world.pool("living", 0..=0));
    let last = next_position(&living);
    let bound = world.record(0).bound;
    world.delete(0);
    stays_lost(&world);

    world.clock.advance(2 * SECOND);
    living.maintain();
    assert_eq!(living.status().went_back_total, 1);
    assert!(living.try_gen_id().is_err());
    world.clock.advance(2 * SECOND);
    living.maintain(); // it looks for another machine ID
    assert!(living.try_gen_id().is_err());
    stays_lost(&world);
    let next = repaired(&world, bound);
    assert!(next_position(&next) > last);
}

/// It does not matter when the record was deleted and what replaced it.
pub(super) fn a_deleted_record_of_a_dead_owner_is_not_claimed_again(backend: &dyn Backend) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = built(world.pool_over(connection.clone(), "dead", 0..=0));
    let last = next_position(&service);
    let record = world
        .leases()
        .record(0)
        .expect("the store answers")
        .expect("a record");
    crash(service, &connection);
    world.delete(0);
    world.clock.advance(1_000_000 * SECOND);
    stays_lost(&world);
    let error = refused(world.pool("dead", 0..=0));
    assert!(
        matches!(error, BuildError::StoreRegressed { machine: 0, .. }),
        "it remembers: {error}"
    );

    let birth = record.birth + 1;
    let made = Record {
        namespace: record.namespace,
        birth,
        released: true,
        ..Record::default()
    };
    assert_eq!(
        world
            .leases()
            .change(0, None, &made)
            .expect("the store answers"),
        Cas::Done
    );
    let error = refused(world.pool("another", 0..=0));
    assert!(
        matches!(error, BuildError::RecordLost { machine: 0, .. }),
        "{error}"
    );
    let next = repaired(&world, record.bound);
    assert!(next_position(&next) > last);
}

/// No process gets machine ID 0, no record replaces it, and other machine IDs stay usable.
fn stays_lost(world: &World) {
    let error = refused(world.pool("another", 0..=0));
    assert!(
        matches!(error, BuildError::RecordLost { machine: 0, .. }),
        "{error}"
    );
    let other = built(world.pool("another", 0..=1));
    assert_eq!(other.machine(), 1);
    assert_eq!(world.leases().record(0).expect("the store answers"), None);
    assert!(
        world
            .leases()
            .snapshot()
            .expect("the store answers")
            .is_lost(0)
    );
}

/// A claim of machine ID 0 after an operator recreated its record.
fn repaired(world: &World, bound: u64) -> LocalIdService {
    let leases = world.leases();
    let seen = leases.snapshot().expect("the store answers");
    let namespace = seen.namespace.uuid;
    let new = Record {
        namespace,
        birth: 7,
        bound,
        released: true,
        ..Record::default()
    };
    let put = import::put(&leases, &seen, 0, &new);
    assert_eq!(put.expect("the store answers"), Cas::Done);
    let service = built(world.pool("repaired", 0..=0));
    assert!(next_position(&service) >= bound);
    service
}

/// For a machine ID that was never used, and for a free one: the first ID is above the floor.
pub(super) fn a_floor_raised_between_any_two_steps_of_a_claim_counts(backend: &dyn Backend) {
    let world = World::new(backend);
    for had in [false, true] {
        for steps in 0.. {
            let machine = 2 * steps + u64::from(had);
            if had {
                drop(built(world.pool("before", machine..=machine)));
            }
            world.clock.advance(10 * SECOND);
            let floor = world.window_end() - 7; // less than 5 s ahead: no claim waits for it
            let (connection, raw) = (world.connect(), world.raw());
            let raise = move || assert_eq!(raw.raise_floor(NAMESPACE, floor).ok(), Some(floor));
            connection.after(steps, raise);
            let service = built(world.pool_over(connection.clone(), "host", machine..=machine));
            if connection.asked() <= steps {
                assert!(steps >= 4, "it was raised between any two of {steps} steps");
                break;
            }
            let first = next_position(&service);
            assert!(
                first >= floor,
                "{first} below {floor}, raised after {steps} steps"
            );
        }
    }
}

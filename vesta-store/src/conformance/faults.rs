//! Lost requests and replies, and a store that forgets.

use vesta_service::clock::Clock as _;
use vesta_service::contract::NotReadyReason;
use vesta_service::{BuildError, IdError, LocalIdService};

use super::Backend;
use super::world::{NAMESPACE, SECOND, World, crash, next_position, position_of};

fn awaits_lease(service: &LocalIdService) -> bool {
    matches!(service.try_gen_id(), Err(IdError::NotReady(hold)) if hold.why == NotReadyReason::AwaitingLease)
}

/// The claim is sent again unchanged and found to have taken effect: one claim, not two.
pub(super) fn a_claim_whose_reply_is_lost_is_recognised_by_its_attempt(backend: &dyn Backend) {
    let world = World::new(backend);
    for (round, lost) in [1, 3].into_iter().enumerate() {
        let connection = world.connect();
        connection.lose_replies(lost);
        let machine = round as u64;
        let service = world
            .pool_over(
                connection.clone(),
                &format!("host{round}"),
                machine..=machine,
            )
            .build()
            .expect("a machine ID");
        assert_eq!(connection.changes(), 1);
        assert_eq!((service.machine(), service.status().epoch), (machine, 1));
        assert_eq!(world.raw().list(NAMESPACE).unwrap().len(), round + 1);
        let bound = world.record(machine).bound;
        assert!(position_of(service.gen_id().expect("an ID")) < bound);
    }
}

/// R1: while the outcome is unknown, no position of the new window is used, although the store has
/// it; and no other extend is sent meanwhile.
pub(super) fn an_extend_whose_reply_is_lost_opens_no_second_window(backend: &dyn Backend) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "host", 0..=0)
        .build()
        .expect("a machine ID");
    let first = world.record(0).bound;

    world.clock.advance(2 * SECOND);
    connection.lose_replies(u32::MAX);
    service.maintain();
    let second = world.record(0);
    assert!(second.bound > first, "the change took effect");
    for _ in 0..4 {
        world.clock.advance(SECOND);
        service.maintain();
    }
    assert!(world.position() >= first && world.position() < second.bound);
    assert!(
        awaits_lease(&service),
        "the window is not used before it is confirmed"
    );
    assert_eq!(
        world.record(0),
        second,
        "sent again unchanged, or not at all"
    );
    assert_eq!(connection.changes(), 2, "the claim and one extend");

    connection.lose_replies(0);
    let position = next_position(&service);
    assert!(position >= first);
    assert_eq!((service.machine(), service.status().fenced_total), (0, 0));
    // Recognised by its attempt, and followed by at most one more extend, which may be due by then.
    assert!(
        (2..=3).contains(&connection.changes()),
        "{}",
        connection.changes()
    );
}

/// It is not mistaken for a release by another owner.
pub(super) fn a_release_whose_reply_is_lost_is_recognised(backend: &dyn Backend) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "host", 0..=0)
        .build()
        .expect("a machine ID");
    let last = next_position(&service);
    connection.lose_replies(1);
    service.close();
    world.clock.advance(SECOND);
    service.maintain();
    assert_eq!(service.status().fenced_total, 0);
    let record = world.record(0);
    assert_eq!(
        (record.bound, record.released, record.epoch),
        (last + 1, true, 1)
    );
    assert!(service.try_gen_id().is_err());
}

/// If the store is unreachable at start there is no machine ID: no cached one is used, and the
/// start fails within reasonable time.
pub(super) fn a_store_unreachable_at_start_is_retried_then_the_start_fails(backend: &dyn Backend) {
    let world = World::new(backend);
    drop(world.pool("host", 0..=3).build().expect("a machine ID")); // the host now remembers it
    let before = world.raw().list(NAMESPACE).unwrap();

    let connection = world.connect();
    connection.go_away();
    let start = world.clock.monotonic();
    let refused = world.pool_over(connection.clone(), "host", 0..=3).build();
    assert!(
        matches!(refused, Err(BuildError::Store { .. })),
        "{refused:?}"
    );
    let waited = world.clock.monotonic() - start;
    assert!((30 * SECOND..40 * SECOND).contains(&waited), "{waited:?}");
    assert!(
        (10..100).contains(&connection.asked()),
        "{} times",
        connection.asked()
    );
    assert_eq!(world.raw().list(NAMESPACE).unwrap(), before);
}

/// At whichever step of the procedure the store was unreachable.
pub(super) fn a_store_reachable_again_in_time_is_used(backend: &dyn Backend) {
    let world = World::new(backend);
    for failures in 1..=8 {
        let connection = world.connect();
        connection.fail_next(failures);
        let start = world.clock.monotonic();
        let service = world
            .pool_over(connection.clone(), "host", 0..=9)
            .build()
            .expect("a machine ID");
        assert!(world.clock.monotonic() - start < 10 * SECOND);
        service.gen_id().expect("an ID");
        assert_eq!(connection.changes(), 1);
    }
}

/// There is no error before the bound, only "not now" after it, and no restart is needed.
pub(super) fn ids_stop_at_the_bound_while_the_store_is_unreachable_and_resume(
    backend: &dyn Backend,
) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "host", 0..=0)
        .build()
        .expect("a machine ID");
    let bound = world.record(0).bound;
    connection.go_away();
    let mut last = 0;
    while world.position() < bound {
        let position = next_position(&service);
        assert!(position > last && position < bound);
        last = position;
        world.clock.advance(SECOND / 4);
        service.maintain();
    }
    assert!(service.status().renewals_failed > 3);
    assert!(!service.status().ready);
    for _ in 0..120 {
        assert!(awaits_lease(&service));
        world.clock.advance(SECOND);
        service.maintain();
    }
    assert!(
        matches!(service.gen_id(), Err(IdError::NotReady(_))),
        "it waits, but not for ever"
    );

    connection.come_back();
    let start = world.clock.monotonic();
    let position = next_position(&service);
    assert!(world.clock.monotonic() - start <= 2 * SECOND);
    assert!(position >= bound && position < world.record(0).bound);
    assert_eq!((service.machine(), service.status().epoch), (0, 1));
    assert!(service.status().ready);
}

/// The stop completes, and the successor keeps its distance.
pub(super) fn a_stop_without_the_store_leaves_the_bound_unchanged(backend: &dyn Backend) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "host", 0..=0)
        .build()
        .expect("a machine ID");
    service.gen_id().expect("an ID");
    let before = world.record(0);
    connection.go_away();
    service.close();
    assert!(service.try_gen_id().is_err());
    assert_eq!(world.record(0), before);
    drop(service);
    connection.come_back();
    assert_eq!(world.record(0), before, "nothing happens afterwards");

    let next = world.pool("host", 0..=0).build().expect("a machine ID");
    assert_eq!(next_position(&next), before.bound);
}

/// A store restored from a backup or recreated knows less than the host that used it.
pub(super) fn a_wiped_store_is_refused_where_a_host_remembers_until_the_floor_is_raised(
    backend: &dyn Backend,
) {
    let world = World::new(backend);
    let connection = world.connect();
    let service = world
        .pool_over(connection.clone(), "host", 7..=7)
        .build()
        .expect("a machine ID");
    world.clock.advance(2 * SECOND);
    service.maintain(); // the host remembers extends, too
    let last = next_position(&service);
    let bound = world.record(7).bound;
    crash(service, &connection);

    world.wipe();
    let refused = world
        .pool("host", 7..=7)
        .build()
        .expect_err("the host remembers");
    assert!(
        matches!(refused, BuildError::StoreRegressed { machine: 7, .. }),
        "{refused}"
    );
    let found = world.plain().list(&format!("lease/{NAMESPACE}")).unwrap();
    assert_eq!(
        found,
        [],
        "nothing is written in place of what may be put back"
    );
    assert_eq!(world.raw().list(NAMESPACE).unwrap(), []);
    let refused = world
        .pool("host", 7..=7)
        .build()
        .expect_err("another host has begun anew");
    assert!(
        matches!(refused, BuildError::StoreRegressed { machine: 7, .. }),
        "{refused}"
    );
    assert_eq!(
        world.raw().list(NAMESPACE).unwrap(),
        [],
        "nothing was claimed"
    );

    assert_eq!(world.raw().raise_floor(NAMESPACE, bound).unwrap(), bound);
    let service = world.pool("host", 7..=7).build().expect("a machine ID");
    let first = next_position(&service);
    assert!(
        first >= bound && first > last,
        "{first}, after a bound of {bound}"
    );
    assert!(world.record(7).bound > bound);
}

//! Claiming: each machine ID has one owner.

use std::collections::HashSet;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{ClaimOrder, KvStore as _, Record, Timing};
use vesta_service::testing::ManualClock;
use vesta_service::{BuildError, IdMeta, LocalIdService, MachineSource};

use super::world::{
    LAYOUT, NAMESPACE, SECOND, World, crash, next_position, position_at, position_of,
};
use super::{Backend, Cas, RecordExt as _};

pub(super) fn built(builder: vesta_service::Builder) -> LocalIdService {
    builder.build().expect("a machine ID is free")
}

pub(super) fn refused(builder: vesta_service::Builder) -> BuildError {
    match builder.build() {
        Err(error) if !matches!(error, BuildError::Setting(_)) => error,
        other => panic!("expected a claim to fail, got {other:?}"),
    }
}

/// Timing of an owner whose window outlasts every search for a machine ID: in these tests no owner
/// renews meanwhile.
pub(super) fn outlasting(world: &World) -> Timing {
    let (window, takeover_grace) = (Duration::from_secs(60), Duration::from_secs(180));
    Timing {
        window,
        takeover_grace,
        ..world.connect().timing()
    }
}

/// There are as many hosts as machine IDs.
pub(super) fn every_claim_takes_another_machine_id(backend: &dyn Backend) {
    let world = World::new(backend);
    let services: Vec<_> = (0..10)
        .map(|i| built(world.pool(&format!("host{i}"), 20..=29)))
        .collect();
    let mut machines: Vec<_> = services.iter().map(LocalIdService::machine).collect();
    machines.sort_unstable();
    assert_eq!(machines, (20..=29).collect::<Vec<_>>());
    let ids: HashSet<_> = services
        .iter()
        .map(|s| s.gen_id().expect("an ID"))
        .collect();
    assert_eq!(ids.len(), services.len());
}

/// The claim fails at once, without touching the holders.
pub(super) fn a_used_up_pool_names_the_holders(backend: &dyn Backend) {
    let world = World::new(backend);
    let holder = |i| {
        built(
            world
                .pool(&format!("host{i}"), 0..=3)
                .timing(outlasting(&world)),
        )
    };
    let services: Vec<_> = (0..4).map(holder).collect();
    let before: Vec<_> = (0..4).map(|machine| world.record(machine)).collect();
    let error = refused(world.pool("one too many", 0..=3));
    let BuildError::Exhausted {
        holders,
        range,
        ahead: None,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(*range, 0..=3);
    let machines: Vec<_> = holders.iter().map(|(machine, ..)| *machine).collect();
    assert_eq!(machines, [0, 1, 2, 3]);
    let sentence = error.to_string();
    for (machine, host, pid) in holders {
        assert_eq!(*pid, std::process::id());
        assert!(
            sentence.contains(&format!("{machine} by {host} (pid {pid})")),
            "{sentence}"
        );
    }
    assert_eq!(
        before,
        (0..4)
            .map(|machine| world.record(machine))
            .collect::<Vec<_>>()
    );
    drop(services);
}

/// 8 starters with the same state directory, 50 rounds, a pool of exactly 8: all see it empty, each
/// gets a machine ID, and none is shared.
pub(super) fn racing_starters_never_share_a_machine_id(backend: &dyn Backend) {
    const STARTERS: usize = 8;
    let world = World::new(backend);
    let start = Arc::new(Barrier::new(STARTERS));
    std::thread::scope(|scope| {
        let starters: Vec<_> = (0..STARTERS)
            .map(|starter| {
                let (world, start) = (&world, &start);
                scope.spawn(move || {
                    let mut machines = Vec::new();
                    for round in 0..50 {
                        start.wait();
                        // The connection is made during the race, too.
                        let connection = world.connect();
                        connection.meet_after_list(start.clone());
                        let service = world
                            // Locks would separate them on one host, too.
                            .pool_over(connection.clone(), &format!("host-{starter}"), 0..=7)
                            .namespace(format!("round-{round}"))
                            .build();
                        connection.meet(); // in case it failed before
                        start.wait(); // all hold a machine ID at the same time
                        // The error is kept for later: a panic here would block the other threads
                        // forever.
                        machines.push(match service {
                            Ok(service) => Ok((service.machine(), service.status().epoch)),
                            Err(error) => Err(error.to_string()),
                        });
                    }
                    machines
                })
            })
            .collect();
        let rounds: Vec<_> = starters
            .into_iter()
            .map(|starter| starter.join().expect("no panic"))
            .collect();
        for round in 0..50 {
            let mut machines: Vec<_> = rounds
                .iter()
                .map(|machines| machines[round].clone())
                .collect();
            machines.sort_unstable();
            let each_once: Vec<_> = (0..8).map(|machine| Ok((machine, 1))).collect();
            assert_eq!(machines, each_once, "round {round}");
        }
    });
}

/// So two owners of a machine ID are always distinguishable.
pub(super) fn each_claim_adds_one_to_the_epoch(backend: &dyn Backend) {
    let world = World::new(backend);
    let mut owners = HashSet::new();
    for epoch in 1..=5 {
        let connection = world.connect();
        let service = built(world.pool_over(connection.clone(), "host", 0..=0));
        assert_eq!(service.status().epoch, epoch);
        let record = world.record(0);
        assert_eq!((record.epoch, record.released), (epoch, false));
        assert!(record.owner != 0 && owners.insert(record.owner));
        assert_eq!(record.pid, std::process::id());
        if epoch % 2 == 0 {
            drop(service)
        } else {
            crash(service, &connection)
        }
        assert_eq!(world.record(0).epoch, epoch, "a release is no claim");
        world.clock.advance(6 * SECOND);
    }
}

/// Their IDs could collide. The namespace stays usable with its own layout.
pub(super) fn another_layout_is_refused(backend: &dyn Backend) {
    let world = World::new(backend);
    drop(built(world.pool("host", 0..=3)));
    let error = refused(world.pool("host", 0..=3).layout(IdMeta::MIN_GRANULARITY));
    let BuildError::Fingerprint {
        namespace,
        theirs,
        ours,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(namespace, NAMESPACE);
    assert_eq!(*theirs, LAYOUT.fingerprint());
    assert_eq!(*ours, IdMeta::MIN_GRANULARITY.fingerprint());
    drop(built(world.pool("host", 0..=3)));
    drop(built(
        world
            .pool("host", 0..=3)
            .layout(IdMeta::MIN_GRANULARITY)
            .namespace("other"),
    ));
}

/// After a crash and after a clean stop: the host remembers its machine ID. Reserved positions are
/// not used again.
pub(super) fn a_restart_takes_its_own_machine_id_again(backend: &dyn Backend) {
    let world = World::new(backend);
    let others: Vec<_> = (0..3)
        .map(|i| built(world.pool(&format!("other{i}"), 0..=99)))
        .collect();
    let connection = world.connect();
    let service = built(world.pool_over(connection.clone(), "host", 0..=99));
    let machine = service.machine();
    let last = next_position(&service);
    let bound = world.record(machine).bound;
    crash(service, &connection);
    drop(others); // three more free machine IDs

    let service = built(world.pool("host", 0..=99));
    assert_eq!((service.machine(), service.status().epoch), (machine, 2));
    let first = next_position(&service);
    assert!(
        first >= bound && first > last,
        "{first}, after a bound of {bound}"
    );
    drop(service);

    let service = built(world.pool("host", 0..=99));
    assert_eq!((service.machine(), service.status().epoch), (machine, 3));
    assert_eq!(next_position(&service), first + 1);
}

/// A fixed machine ID of an expired owner is taken over as soon as its window is over, and not
/// before.
pub(super) fn a_reserved_machine_id_is_taken_over_only_after_its_window(backend: &dyn Backend) {
    let world = World::new(backend);
    let reserved = |host: &str| {
        world.service(host).machine(MachineSource::Reserved {
            store: world.connect(),
            id: 7,
        })
    };
    let first = built(reserved("a"));
    let bound = world.record(7).bound;
    let old = first.gen_id().expect("an ID");
    let second = built(reserved("b"));
    assert_eq!((second.machine(), second.status().epoch), (7, 2));
    assert!(world.position() >= bound, "taken over within its window");
    let new = second.gen_id().expect("an ID");
    assert!(position_of(new) >= bound && new != old);
    assert!(first.try_gen_id().is_err(), "its window is over");
}

/// Like ephemeral sequential nodes: machine IDs stay small, and a released one is reused first.
pub(super) fn the_lowest_free_machine_id_is_taken_if_configured(backend: &dyn Backend) {
    let world = World::new(backend);
    let lowest = |host: &str| built(world.pool(host, 3..=9).claim_order(ClaimOrder::Lowest));
    let [a, b, c] = ["a", "b", "c"].map(lowest);
    assert_eq!([a.machine(), b.machine(), c.machine()], [3, 4, 5]);
    let last = next_position(&b);
    drop(b);
    world.clock.advance(SECOND);
    let next = lowest("d");
    assert_eq!(next.machine(), 4);
    assert!(next_position(&next) > last);
    assert_eq!(lowest("e").machine(), 6);
}

/// Different ones, over one connection; all are released at the end.
pub(super) fn one_process_holds_several_machine_ids(backend: &dyn Backend) {
    let world = World::new(backend);
    let service = built(world.pool("host", 0..=4).machine_count(4));
    let machines: HashSet<_> = service.status().machines.into_iter().collect();
    assert_eq!(machines.len(), 4);
    let other = built(world.pool("other", 0..=4));
    assert!(!machines.contains(&other.machine()));
    world.clock.advance(2 * SECOND);
    service.maintain();
    assert!(
        service.machines().iter().all(|line| line.renewals_ok == 1),
        "each is extended"
    );
    drop(service);
    assert!(
        machines
            .iter()
            .all(|machine| world.record(*machine).released)
    );
}

/// A pool never hands out a foreign machine ID, even if its owner is idle for long; a claim by
/// number gets it.
pub(super) fn a_foreign_machine_id_is_never_handed_out(backend: &dyn Backend) {
    let world = World::new(backend);
    let imported = Record {
        epoch: 1,
        owner: Record::FOREIGN,
        bound: world.position(),
        attempt: 1,
        host: "10.0.0.1".into(),
        ..Record::default()
    };
    let unclaimed = Record::unclaimed(0);
    let done = world
        .raw()
        .cas(NAMESPACE, 0, &unclaimed.expect(), &imported);
    assert_eq!(done.expect("the store answers"), Cas::Done);
    world.clock.advance(1_000_000 * SECOND);
    let other = built(world.pool("host", 0..=1).timing(outlasting(&world)));
    assert_eq!(other.machine(), 1);
    assert!(matches!(
        refused(world.pool("late", 0..=1)),
        BuildError::Exhausted { .. }
    ));
    let reserved = MachineSource::Reserved {
        store: world.connect(),
        id: 0,
    };
    let moved = built(world.service("moved").machine(reserved));
    assert!(next_position(&moved) >= imported.bound);
}

/// A host whose clock is wrong would use up its machine ID until the time that it shows. A store on this host has this
/// host's clock, so there is nothing to compare with.
pub(super) fn a_start_with_a_wrong_clock_is_refused_where_the_store_has_a_clock(
    backend: &dyn Backend,
) {
    let world = World::new(backend);
    let Some(theirs) = world.plain().now().expect("the store answers") else {
        return;
    };
    const YEARS: u64 = 365 * 24 * 3_600_000;
    let start = |host: &str, wall: u64| {
        let pool = MachineSource::Pool {
            store: world.plain(),
            range: Some(0..=0),
        };
        let clock = Arc::new(ManualClock::at(UnixMillis(wall)));
        world.service(host).clock(clock).machine(pool)
    };
    for wrong in [
        theirs.0 + 5 * YEARS,
        theirs.0 + 10 * YEARS,
        theirs.0 + 90_000,
        theirs.0 - 3_600_000,
    ] {
        let error = refused(start("wrong", wrong));
        assert!(matches!(error, BuildError::ClocksDiffer { .. }), "{error}");
    }
    let now = world.plain().now().expect("the store answers");
    let now = now.expect("as before").0;
    let right = built(start("right", now));
    let used = position_at(UnixMillis(now + 1000));
    assert!(next_position(&right) <= used, "the machine ID was used up");
}

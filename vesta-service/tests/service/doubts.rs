//! Stores that may forget, where one process detects it and another does not: the recorded doubt.

use std::sync::Arc;
use std::time::Duration;

use crate::common::setting::{Setting, position};
use crate::common::{START, leases};
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, Record, Timing};
use vesta_service::testing::{Answer, FlakyStore, Intercept, Request};
use vesta_service::{ErrorKind, IdMeta, LocalIdService, MachineSource};

const SECOND: Duration = Duration::from_secs(1);

/// Another host, which has no reason to doubt the store: after a fail-over, for example.
fn unsuspecting(setting: &Setting) -> Setting {
    Setting {
        store: FlakyStore::new(setting.memory.clone()),
        ..setting.elsewhere()
    }
}

fn doubt(setting: &Setting) -> Option<Doubt> {
    leases(&setting.memory)
        .find()
        .expect("memory")
        .expect("it was opened")
        .doubt
}

/// This many seconds pass, and every service performs its due work.
fn pass(setting: &Setting, seconds: u32, services: &[&LocalIdService]) {
    for _ in 0..seconds {
        setting.clock.advance(SECOND);
        for service in services {
            service.maintain();
        }
    }
}

/// The distance of a service's first ID from now.
fn begins_in(setting: &Setting, service: &LocalIdService) -> Duration {
    let bound = setting.record(service.machine()).bound;
    let now = position(setting.clock.wall());
    SECOND * u32::try_from((bound.saturating_sub(now)) >> 20).expect("minutes")
}

#[test]
fn a_recorded_doubt_counts_for_all_until_an_operator_clears_it() {
    let first = Setting::new();
    first.store.set_doubt();
    let _owner = first.start_from_memory();
    let written = doubt(&first).expect("it is written down");
    assert_eq!((written.since, written.why.as_str()), (START, "it said so"));
    assert_eq!(written.reach, START, "nothing had been reserved before");

    let other = unsuspecting(&first);
    let heedful = other.builder().timing(Timing::NETWORK).build().unwrap();
    assert_eq!(
        heedful.try_gen_id().unwrap_err().kind(),
        ErrorKind::ClockBehind
    );
    // A window of 10 s whatever the store's is, plus the 2 s by which clocks may differ.
    assert_eq!(begins_in(&other, &heedful), 12 * SECOND);
    assert_eq!(heedful.status().doubt, Some(written.clone()));
    pass(&other, 7, &[&heedful]);
    heedful.gen_id().expect("its IDs have begun");
    drop(heedful);

    assert_eq!(leases(&first.memory).clear_doubt().unwrap(), Some(written));
    assert_eq!(leases(&first.memory).clear_doubt().unwrap(), None);
    first.clock.advance(20 * SECOND);
    unsuspecting(&first).start().try_gen_id().expect("at once");
}

/// `store init` creates a namespace; `reserve` and `import` write records for other systems; a process that stops early
/// leaves a record that it did not claim yet.
#[test]
fn a_namespace_without_a_claim_has_nothing_to_wait_for() {
    let never_claimed = |owner, epoch| Record {
        epoch,
        owner,
        ..Record::default()
    };
    for (records, moves, took_over, expected) in [
        (vec![], false, false, 12),
        (
            vec![(5, never_claimed(Record::FOREIGN, 1))],
            false,
            false,
            12,
        ),
        (vec![(1023, never_claimed(0, 0))], false, false, 12),
        (
            vec![(2000, never_claimed(Record::FOREIGN, 1))],
            false,
            false,
            12,
        ),
        // Given back by hand before a process looked: it may have had a window.
        (vec![(5, never_claimed(0, 1))], false, false, 117),
        (vec![(2000, never_claimed(9, 1))], false, false, 117),
        // Claimed between the survey and the doubt, or after it.
        (vec![], true, false, 117),
        // The server before this one may have acknowledged claims that this one does not show.
        (vec![], false, true, 117),
    ] {
        let setting = Setting::new();
        let known = leases(&setting.memory);
        let namespace = known.open(&IdMeta::MAX_PEAK.fingerprint()).unwrap().uuid;
        known.raise_floor(position(START)).unwrap();
        for (machine, record) in &records {
            let record = Record {
                namespace,
                ..record.clone()
            };
            known.change(*machine, None, &record).unwrap();
        }
        let doubtful = Intercept::new(setting.memory.clone(), move |request, store| {
            if let (true, Request::Put { puts: [put], .. }) = (moves, &request)
                && put.key == "namespace"
            {
                let record = Record {
                    namespace,
                    ..never_claimed(9, 1)
                };
                known.change(700, None, &record)?;
            }
            match request {
                Request::Doubt => Ok(Answer::Doubt(Some(Doubt::of("it said so", took_over)))),
                _ => request.send(store),
            }
        });
        let machine = MachineSource::Pool {
            store: Arc::new(doubtful.timing(Timing::NETWORK)),
            range: Some(3..=4),
        };
        let service = setting.builder().machine(machine).build().unwrap();
        let case = format!("{records:?}, {moves}, {took_over}");
        assert_eq!(begins_in(&setting, &service), expected * SECOND, "{case}");
        let reach = doubt(&setting).expect("written down").reach;
        assert_eq!(reach == START, expected == 12, "{case}");
        if expected == 12 {
            pass(&setting, 7, &[&service]);
            service.gen_id().expect(&case);
        }
    }
}

/// The earlier process has long windows, and does not know of the doubt for a while.
#[test]
fn claims_keep_clear_of_reservations_made_before_the_doubt() {
    let early = Setting::new();
    let owner = early.builder().timing(Timing::NETWORK).build().unwrap();
    owner.gen_id().unwrap();
    pass(&early, 20, &[&owner]);

    let late = early.elsewhere();
    late.store.set_doubt();
    let newcomer = late.builder().timing(Timing::NETWORK).build().unwrap();
    let reach = doubt(&late).expect("written down").reach;
    // 40 s until the owner checks again, a window of 60 s, 5 s of lead, and 2 s between clocks.
    assert_eq!(reach.since(late.clock.wall()), Some(107_000));
    assert_eq!(begins_in(&late, &newcomer), 107 * SECOND);
    let owners = early.record(owner.machine());
    for _ in 0..40 {
        pass(&early, 1, &[&owner, &newcomer]);
        owner.gen_id().expect("it goes on");
        assert!(early.record(owner.machine()).bound < position(reach));
    }
    assert!(owners.bound < early.record(owner.machine()).bound);
    assert!(owner.status().doubt.is_some(), "noticed within a minute");
    for _ in 0..70 {
        pass(&early, 1, &[&owner, &newcomer]);
        owner.gen_id().expect("it goes on");
    }
    let furthest = position(UnixMillis(early.clock.wall().0 + 10_000));
    assert!(
        early.record(owner.machine()).bound <= furthest,
        "its windows are short now"
    );
    newcomer.gen_id().expect("its IDs have begun");
    assert_eq!(newcomer.status().rehomed_total, 0);
}

#[test]
fn an_owner_notices_that_its_store_becomes_doubtful() {
    let setting = Setting::new();
    let service = setting.builder().timing(Timing::NETWORK).build().unwrap();
    pass(&setting, 30, &[&service]);
    setting.store.set_doubt();
    let noticed = (1..=60).find(|_| {
        pass(&setting, 1, &[&service]);
        doubt(&setting).is_some()
    });
    assert!(noticed.is_some_and(|seconds| seconds < 60), "{noticed:?}");
    service.gen_id().expect("it goes on");
}

#[test]
fn one_doubt_check_serves_all_machine_ids_of_a_process() {
    let setting = Setting::new();
    let pool = MachineSource::Pool {
        store: setting.store.clone(),
        range: Some(0..=31),
    };
    let many = setting
        .builder()
        .machine(pool)
        .machine_count(32)
        .timing(Timing::NETWORK);
    let service = many.build().unwrap();
    let (asked, changes) = (setting.store.asked(), setting.store.changes());
    pass(&setting, 400, &[&service]);
    let renewals = setting.store.changes() - changes;
    assert!(
        renewals >= 32 * 18 && renewals.is_multiple_of(32),
        "{renewals}, always together"
    );
    let looks = setting.store.asked() - asked - renewals / 32;
    assert!((8..=10).contains(&looks), "one each third round: {looks}");
    setting.store.set_doubt();
    pass(&setting, 60, &[&service]);
    assert!(service.machines().iter().all(|one| one.doubt.is_some()));
}

/// The doubt is recorded at any moment of a claim: either the claim keeps its distance, or its
/// owner learns of the doubt before it reserves more than other claims keep clear of.
#[test]
fn a_doubt_recorded_between_any_two_steps_of_a_claim_counts() {
    let mut distant = 0;
    for after in 1..12 {
        let setting = Setting::new();
        let other = unsuspecting(&setting);
        other.store.set_doubt();
        let (memory, clock) = (setting.memory.clone(), setting.clock.clone());
        setting.store.after(after, move || {
            // Earlier stops of any length.
            clock.advance(25 * SECOND);
            let machine = MachineSource::Reserved {
                store: other.store.clone(),
                id: 9,
            };
            drop(
                other
                    .builder()
                    .machine(machine)
                    .build()
                    .expect("it is free"),
            );
            assert!(leases(&memory).find().unwrap().unwrap().doubt.is_some());
        });
        // That may exceed its timeout for a machine ID.
        let Ok(service) = setting.builder().timing(Timing::NETWORK).build() else {
            continue;
        };
        let Some(Doubt { reach, .. }) = doubt(&setting) else {
            continue;
        };
        if service.status().doubt.is_none() {
            let bound = setting.record(service.machine()).bound;
            assert!(bound <= position(reach), "after {after} requests");
        } else {
            distant += 1;
            assert!(service.try_gen_id().is_err(), "after {after} requests");
        }
    }
    assert!(distant > 5, "{distant}");
}

/// The store is slow, or a reply is lost and requested again: reservations made meanwhile may be forgotten.
#[test]
fn a_slow_claim_keeps_its_distance_from_its_end() {
    let requests = {
        let setting = Setting::new();
        setting.store.set_doubt();
        let _service = setting.start_from_memory();
        setting.store.asked()
    };
    for after in 1..requests {
        let setting = Setting::new();
        setting.store.set_doubt();
        let clock = setting.clock.clone();
        setting
            .store
            .after(after, move || clock.advance(20 * SECOND));
        let service = setting.start_from_memory();
        for _ in 0..6 {
            assert!(
                service.try_gen_id().is_err(),
                "after {after} of {requests} requests"
            );
            pass(&setting, 1, &[&service]);
        }
        pass(&setting, 2, &[&service]);
        service.try_gen_id().expect("its IDs have begun");
    }
}

#[test]
fn an_operator_can_overrule_the_stores_doubt() {
    let trusted = Setting::new();
    trusted.store.set_doubt();
    let service = trusted.builder().store_doubt(false).build().unwrap();
    service.try_gen_id().expect("at once");
    assert_eq!(doubt(&trusted), None);

    let doubted = Setting::new();
    let service = doubted.builder().store_doubt(true).build().unwrap();
    assert_eq!(
        service.try_gen_id().unwrap_err().kind(),
        ErrorKind::ClockBehind
    );
    assert_eq!(
        doubt(&doubted).expect("written down").why,
        "the settings say so"
    );
    // A recorded doubt counts, even for a process that would trust the store.
    let late = doubted.elsewhere();
    let trusting = late.builder().store_doubt(false).build().unwrap();
    assert!(trusting.try_gen_id().is_err());
}

/// The loss is within the distance that claims keep, so a permanent refusal is unnecessary.
#[test]
fn a_host_slightly_ahead_of_a_doubtful_store_claims_above_its_record() {
    let setting = Setting::new();
    setting.store.set_doubt();
    let service = setting.start_from_memory();
    pass(&setting, 8, &[&service]);
    let before = service.gen_id().unwrap();
    let machine = service.machine();
    let forgotten = setting.record(machine);
    pass(&setting, 5, &[&service]);
    let last = service.gen_id().unwrap();
    assert!(last > before);
    let remembered = setting.record(machine);
    drop(service);
    // The replica that took over has an older state, from when the owner was alive.
    let now = setting.record(machine);
    leases(&setting.memory)
        .change(machine, Some(&now), &forgotten)
        .unwrap();
    assert!(forgotten.bound < remembered.bound);
    let again = setting.start_from_memory();
    pass(&setting, 8, &[&again]);
    assert!(again.gen_id().unwrap() > last);
}

//! Stores that lose acknowledged writes, or may.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::setting::{Setting, position};
use crate::common::{START, leases};
use parking_lot::Mutex;
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore as _, Record, Timing};
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{BuildError, Builder, ErrorKind, IdMeta, LocalIdService, MachineSource};

#[test]
fn a_store_behind_the_hosts_record_is_refused_until_its_floor_is_raised() {
    let setting = Setting::new();
    let service = setting.start();
    let before = service.gen_id().unwrap();
    drop(service);
    let wiped = setting;
    wiped.memory.forget();
    wiped.clock.set_wall(UnixMillis(START.0 - 3_000));
    let refused = wiped.try_start().unwrap_err();
    let BuildError::StoreRegressed { used_until, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(
        refused.to_string().contains("store raise-floor"),
        "{refused}"
    );

    let bound = position(*used_until);
    assert_eq!(
        wiped.memory.list("lease/default").unwrap(),
        [],
        "lost entries may be restored"
    );
    leases(&wiped.memory)
        .open(&IdMeta::MAX_PEAK.fingerprint())
        .unwrap();
    leases(&wiped.memory)
        .raise_floor(bound - (1 << 20))
        .unwrap();
    wiped.try_start().expect_err("still below");
    leases(&wiped.memory).raise_floor(bound).unwrap();
    let id = wiped.start().gen_id().unwrap();
    assert!(id > before);
    wiped.start().gen_id().expect("and again");
}

/// The local record of the host includes the last renewal, and not only the claim.
#[test]
fn a_store_that_forgot_a_renewal_is_refused() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    let claimed = setting.record(machine);
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    let renewed = setting.record(machine);
    assert!(renewed.bound > claimed.bound);
    setting.store.go_away();
    drop(service);
    setting.store.come_back();
    leases(&setting.memory)
        .change(machine, Some(&renewed), &claimed)
        .unwrap();
    let refused = setting.try_start().unwrap_err();
    assert!(
        matches!(refused, BuildError::StoreRegressed { .. }),
        "{refused}"
    );
}

#[test]
fn a_machine_id_is_not_reclaimed_from_a_store_wiped_at_runtime() {
    let setting = Setting::new();
    let service = setting.start();
    service.gen_id().unwrap();
    setting.memory.forget();
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    assert!(service.gen_id().is_err());
    let status = service.status();
    assert!(!status.ready);
    let because = status.all.not_ready_because.unwrap();
    assert!(
        because.contains("has forgotten that machine ID"),
        "{because}"
    );
    let bound = position(UnixMillis(setting.clock.wall().0 + 60_000));
    leases(&setting.memory)
        .open(&IdMeta::MAX_PEAK.fingerprint())
        .unwrap();
    leases(&setting.memory).raise_floor(bound).unwrap();
    setting.clock.advance(Duration::from_secs(60));
    let id = service.gen_id().expect("the floor was raised");
    assert!(service.exp_id(id).unwrap().time << 20 >= bound);
}

#[test]
fn claims_keep_a_window_ahead_of_a_store_that_may_forget() {
    let setting = Setting::new();
    setting.store.set_doubt();
    let service = setting.start_from_memory();
    let first = service.try_gen_id().unwrap_err();
    assert_eq!(
        first.kind(),
        ErrorKind::ClockBehind,
        "the window of a forgotten owner may last"
    );
    let machine = service.machine();
    setting
        .clock
        .advance(Duration::from_secs(7) + Duration::from_millis(1));
    service.maintain();
    let id = service.exp_id(service.try_gen_id().unwrap()).unwrap();
    let ahead = service
        .trans_time(id.time)
        .unwrap()
        .duration_since(START.to_system_time())
        .unwrap();
    assert!(
        ahead >= Duration::from_secs(12),
        "one window of 10 s and the skew of 2 s, not {ahead:?}"
    );
    assert_eq!(
        (service.machine(), service.status().rehomed_total),
        (machine, 0)
    );
}

/// This holds for every window setting, and for a reserved machine ID.
#[test]
fn ids_keep_flowing_with_a_store_that_may_forget() {
    let setting = Setting::new();
    setting.store.set_doubt();
    let service = setting.reserved().timing(Timing::ONE_HOST).build().unwrap();
    setting.clock.advance(Duration::from_millis(7001));
    for _ in 0..1000 {
        service.maintain();
        service.try_gen_id().unwrap();
        setting.clock.advance(Duration::from_millis(50));
    }
}

/// Both start at the same position.
#[test]
fn of_two_claims_only_the_one_known_to_the_store_issues() {
    let first = Setting::new();
    first.store.set_doubt();
    let start = |on: &Setting| on.reserved().timing(Timing::IN_MEMORY).build().unwrap();
    let forgotten = start(&first);
    first.memory.forget();
    let successor = start(&first.elsewhere());
    assert_eq!(successor.machine(), forgotten.machine());
    first.clock.advance(Duration::from_secs(8));
    assert_eq!(
        forgotten.try_gen_id().unwrap_err().kind(),
        ErrorKind::AwaitingLease
    );
    successor.maintain();
    successor.try_gen_id().expect("the store knows this one");
    forgotten.maintain();
    assert!(forgotten.try_gen_id().is_err());
    assert_eq!(forgotten.status().went_back_total, 1);
}

/// The database is deleted under a running process. The process's remaining positions are known
/// from the state file that it has locked.
#[test]
fn a_machine_id_in_use_on_this_host_is_not_claimed_even_if_forgotten() {
    let setting = Setting::new();
    let owner = setting.start();
    let wiped = Setting::new();
    let newcomer = wiped
        .builder()
        .state_dir(setting.folder.path())
        .build()
        .unwrap();
    assert_ne!(newcomer.machine(), owner.machine());
}

/// Otherwise a claim after the store forgot would start below the reservation.
#[test]
fn a_store_that_may_forget_reserves_only_up_to_the_wall_clock() {
    let setting = Setting::new();
    setting.store.set_doubt();
    let service = setting.start_from_memory();
    setting.clock.advance(Duration::from_secs(8));
    service.maintain();
    // Issued time leads the clock by four seconds.
    service.try_gen_id().unwrap();
    let furthest = position(UnixMillis(setting.clock.wall().0 + 10_000));
    let bound = setting.record(service.machine()).bound;
    assert!(bound <= furthest, "{} s too far", (bound - furthest) >> 20);
}

const SECOND: Duration = Duration::from_secs(1);

/// A store that may forget, with a right clock if it has one, and a service that has begun to issue IDs.
fn begun(setting: &Setting, right: Option<&ManualClock>, holder: Builder) -> LocalIdService {
    setting.store.set_doubt();
    if let Some(right) = right {
        setting.store.show_clock(right);
    }
    let holder = holder
        .timing(Timing::IN_MEMORY)
        .build()
        .expect("a machine ID is free");
    for _ in 0..8 {
        setting.clock.advance(SECOND);
        right.inspect(|right| right.advance(SECOND));
        holder.maintain();
    }
    holder.try_gen_id().expect("its IDs have begun");
    holder
}

/// This many seconds pass on these clocks, with an action after each.
fn pass<T>(seconds: u32, clocks: &[&ManualClock], mut act: impl FnMut(u32) -> T) {
    for second in 0..seconds {
        clocks.iter().for_each(|clock| clock.advance(SECOND));
        act(second);
    }
}

/// The owner's clock is stepped after its claim; then a replica takes over that has forgotten the step,
/// and a starting process with a correct clock claims the same machine ID. Returns the number of IDs, and the
/// number of repeated ones.
fn fail_over_after_step(step: i64, store_has_clock: bool) -> (usize, usize) {
    let setting = Setting::new();
    let right = ManualClock::at(START);
    let holder = begun(
        &setting,
        store_has_clock.then_some(&right),
        setting.reserved(),
    );
    right.set_wall(setting.clock.wall());
    setting.clock.set_wall(UnixMillis(
        setting.clock.wall().0.checked_add_signed(step).unwrap(),
    ));
    let (mut issued, mut twice) = (BTreeSet::new(), 0);
    let mut issue = |service: &LocalIdService| {
        let ids = (0..100).filter_map(|_| service.try_gen_id().ok());
        twice += ids.filter(|id| !issued.insert(*id)).count();
    };
    pass(90, &[&setting.clock, &right], |_| {
        holder.maintain();
        issue(&holder);
    });
    if store_has_clock {
        let furthest = position(UnixMillis(right.wall().0 + 10_000));
        let bound = setting.record(holder.machine()).bound;
        assert!(
            bound <= furthest,
            "{step}: {} s too far",
            (bound - furthest) >> 20
        );
    }
    setting.memory.forget();
    let starter = Setting {
        clock: right.clone(),
        ..setting.elsewhere()
    };
    let successor = starter.reserved().timing(Timing::IN_MEMORY).build();
    let successor = successor.expect("the record is gone");
    assert_eq!(successor.machine(), holder.machine());
    pass(120, &[&setting.clock, &right], |_| {
        issue(&holder); // cut off from the store
        successor.maintain();
        issue(&successor);
    });
    (issued.len(), twice)
}

#[test]
fn an_owner_with_a_stepped_clock_repeats_nothing_after_a_fail_over() {
    for (step, at_least) in [
        (60_000, 10_000),
        (3_000, 17_000),
        (900, 17_000),
        (-3_000, 17_000),
    ] {
        let (issued, twice) = fail_over_after_step(step, true);
        println!("{step} ms: {twice} of {issued} twice");
        assert!(issued > at_least, "{step}: {issued}");
        assert_eq!(twice, 0, "{step}");
    }
}

/// Shows why the store's clock is needed: without it the same fail-over repeats IDs.
#[test]
fn a_store_without_a_clock_shows_what_a_step_repeats() {
    let (issued, twice) = fail_over_after_step(60_000, false);
    println!("{twice} of {issued} twice");
    assert!(twice > 1_000, "{twice} of {issued}");
    assert_eq!(
        fail_over_after_step(900, false).1,
        0,
        "clocks are less than 2 s apart"
    );
}

#[test]
fn an_owner_far_ahead_of_a_doubtful_store_resumes_once_its_clock_is_right() {
    for reserved in [false, true] {
        let setting = Setting::new();
        let right = ManualClock::at(START);
        let source = if reserved {
            setting.reserved()
        } else {
            setting.builder()
        };
        let holder = begun(&setting, Some(&right), source);
        setting
            .clock
            .set_wall(UnixMillis(setting.clock.wall().0 + 60_000));
        let asked = setting.store.asked();
        pass(30, &[&setting.clock, &right], |_| holder.maintain());
        // A clock request and a change every 2.5 s, a doubt check every 40 s.
        assert!(
            setting.store.asked() - asked <= 30,
            "{}",
            setting.store.asked() - asked
        );
        assert_eq!(
            holder.try_gen_id().unwrap_err().kind(),
            ErrorKind::AwaitingLease
        );
        setting.clock.set_wall(right.wall());
        let mut waited = 0;
        while holder.maintain().is_some() && holder.try_gen_id().is_err() {
            pass(1, &[&setting.clock, &right], |_| waited += 1);
        }
        // Another machine ID starts a window ahead; a reserved one waits until its time is reached.
        assert!(waited <= if reserved { 56 } else { 8 }, "{waited} s");
    }
}

/// A store that may forget is asked for its clock at each extend, once for all machine IDs.
#[test]
fn one_clock_request_serves_all_machine_ids_of_a_process() {
    let setting = Setting::new();
    let right = ManualClock::at(START);
    let pool = MachineSource::Pool {
        store: setting.store.clone(),
        range: Some(0..=31),
    };
    let holder = begun(
        &setting,
        Some(&right),
        setting.builder().machine(pool).machine_count(32),
    );
    let (asked, changes) = (setting.store.asked(), setting.store.changes());
    pass(100, &[&setting.clock, &right], |_| holder.maintain());
    let rounds = (setting.store.changes() - changes) / 32;
    assert!((30..=50).contains(&rounds), "{rounds}");
    let others = setting.store.asked() - asked - 2 * rounds;
    assert!(
        others <= 4,
        "{others} more than a clock and a change each round, and three checks"
    );
}

/// The outage survived under a doubt, and its price; without a doubt the window is the store's.
#[test]
fn the_window_under_doubt_is_a_setting_with_a_price() {
    for (doubted, window, first_id, outage) in [
        (false, None, 0, 60),
        (true, None, 7, 10),
        (true, Some(60), 57, 60),
    ] {
        let setting = Setting::new();
        if doubted {
            setting.store.set_doubt();
        }
        let mut builder = setting.builder().timing(Timing::NETWORK);
        if let Some(seconds) = window {
            builder = builder.doubtful_window(SECOND * seconds);
        }
        let service = builder.build().expect("a machine ID is free");
        let mut begins = 0;
        while service.try_gen_id().is_err() {
            pass(1, &[&setting.clock], |_| service.maintain());
            begins += 1;
        }
        assert_eq!(begins, first_id, "{doubted}, {window:?}");
        // More than ten minutes: a longer window than usual is announced for that long.
        pass(700, &[&setting.clock], |_| service.maintain());
        setting.store.go_away();
        let mut lasted = 0;
        while service.try_gen_id().is_ok() {
            pass(1, &[&setting.clock], |_| service.maintain());
            lasted += 1;
        }
        println!(
            "in doubt: {doubted}, window {window:?}: first ID after {begins} s, outage {lasted} s"
        );
        pass(20, &[&setting.clock], |_| service.maintain());
        setting.store.come_back();
        let mut again = 0;
        while service.try_gen_id().is_err() {
            pass(1, &[&setting.clock], |_| service.maintain());
            again += 1;
        }
        println!("first ID {again} s after it");
        assert!(
            (first_id..=first_id + 3).contains(&again),
            "under a doubt it claims again: {doubted}, {window:?}: {again} s"
        );
        let renew = if doubted { 3 } else { 17 };
        assert!(
            (outage - renew..=outage).contains(&lasted),
            "{doubted}, {window:?}: {lasted} s"
        );
    }
    for millis in [9_999, 60_001] {
        let window = Duration::from_millis(millis);
        let refused = Setting::new()
            .builder()
            .doubtful_window(window)
            .build()
            .unwrap_err();
        assert!(
            refused.to_string().contains("doubtful_window_ms"),
            "{refused}"
        );
    }
}

#[test]
fn a_claim_of_a_machine_id_with_a_lost_record_is_refused() {
    let setting = Setting::new();
    let service = setting.reserved().build().unwrap();
    service.gen_id().unwrap();
    drop(service);
    setting.memory.delete("lease/default", "7");
    let error = setting.elsewhere().reserved().build().unwrap_err();
    assert!(
        matches!(error, BuildError::RecordLost { machine: 7, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("store repair 7"), "{error}");
}

/// The first creation may still be in flight, or be undone: it is looked up, and not repeated.
#[test]
fn a_creation_whose_reply_is_lost_is_not_resent() {
    let setting = Setting::new();
    leases(&setting.memory)
        .open(&IdMeta::MAX_PEAK.fingerprint())
        .unwrap();
    // The namespace, its entries, and the creation of a record.
    setting.store.lose_replies(1);
    let first = Arc::new(Mutex::new(None));
    let (memory, seen) = (setting.memory.clone(), first.clone());
    setting.store.after(3, move || {
        let [created] = &records(&memory)[..] else {
            panic!("one record")
        };
        memory.delete("lease/default", &created.0.to_string());
        *seen.lock() = Some(created.1.birth);
    });
    let service = setting.start();
    service.gen_id().unwrap();
    let first = first.lock().expect("it was created");
    assert_ne!(setting.record(service.machine()).birth, first);
}

fn records(memory: &Arc<MemoryStore>) -> Vec<(u64, Record)> {
    leases(memory)
        .snapshot()
        .unwrap()
        .records
        .into_iter()
        .collect()
}

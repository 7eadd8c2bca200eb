//! Stores that lose what they acknowledged, or may.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::setting::{Setting, position};
use common::{START, leases};
use parking_lot::Mutex;
use vesta_service::{
    BuildError, Clock as _, ErrorKind, IdMeta, IdService as _, MemoryStore, Record, Timing,
    UnixMillis,
};

#[test]
fn a_store_that_forgot_what_this_host_remembers_is_refused_until_its_floor_is_raised() {
    let setting = Setting::new();
    let service = setting.start();
    let before = service.gen_id().unwrap();
    drop(service);
    let wiped = Setting { clock: setting.clock, folder: setting.folder, ..Setting::new() };
    wiped.clock.set_wall(UnixMillis(START.0 - 3_000));
    let refused = wiped.try_start().unwrap_err();
    let BuildError::StoreRegressed { used_until, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(refused.to_string().contains("store raise-floor"), "{refused}");

    let bound = position(*used_until);
    leases(&wiped.memory).raise_floor(bound - (1 << 20)).unwrap();
    wiped.try_start().expect_err("still below");
    leases(&wiped.memory).raise_floor(bound).unwrap();
    let id = wiped.start().gen_id().unwrap();
    assert!(id > before);
    wiped.start().gen_id().expect("and again");
}

/// This host remembers what the last renewal bought, and not only the claim.
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
    leases(&setting.memory).change(machine, Some(&renewed), &claimed).unwrap();
    let refused = setting.try_start().unwrap_err();
    assert!(matches!(refused, BuildError::StoreRegressed { .. }), "{refused}");
}

#[test]
fn a_machine_id_is_not_claimed_anew_from_a_store_that_was_wiped_while_running() {
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
    assert!(because.contains("has forgotten that machine ID"), "{because}");
    let bound = position(UnixMillis(setting.clock.wall().0 + 60_000));
    leases(&setting.memory).raise_floor(bound).unwrap();
    setting.clock.advance(Duration::from_secs(60));
    let id = service.gen_id().expect("the floor was raised");
    assert!(service.exp_id(id).unwrap().time << 20 >= bound);
}

#[test]
fn a_store_that_may_forget_is_kept_a_window_ahead_of() {
    let setting = Setting::new();
    setting.store.set_may_forget();
    let service = setting.start_from_memory();
    let first = service.try_gen_id().unwrap_err();
    assert_eq!(first.kind(), ErrorKind::ClockBehind, "the window of somebody forgotten may last");
    let machine = service.machine();
    setting.clock.advance(Duration::from_secs(7) + Duration::from_millis(1));
    service.maintain();
    let id = service.exp_id(service.try_gen_id().unwrap()).unwrap();
    let ahead =
        service.trans_time(id.time).unwrap().duration_since(START.to_system_time()).unwrap();
    assert!(
        ahead >= Duration::from_secs(12),
        "one window of 10 s and the skew of 2 s, not {ahead:?}"
    );
    assert_eq!((service.machine(), service.status().rehomed_total), (machine, 0));
}

/// Whatever window is asked for, and for a number of one's own.
#[test]
fn from_a_store_that_may_forget_ids_go_on_once_they_have_begun() {
    let setting = Setting::new();
    setting.store.set_may_forget();
    let service = setting.reserved().timing(Timing::ONE_HOST).build().unwrap();
    setting.clock.advance(Duration::from_millis(7001));
    for _ in 0..1000 {
        service.maintain();
        service.try_gen_id().unwrap();
        setting.clock.advance(Duration::from_millis(50));
    }
}

/// Both begin at the same position.
#[test]
fn of_two_claims_of_a_store_that_forgot_the_first_at_once_only_the_second_issues() {
    let first = Setting::new();
    first.store.set_may_forget();
    let forgotten = first.start_from_memory();
    first.memory.forget();
    let successor = first.elsewhere().start_from_memory();
    assert_eq!(successor.machine(), forgotten.machine());
    first.clock.advance(Duration::from_secs(8));
    assert_eq!(forgotten.try_gen_id().unwrap_err().kind(), ErrorKind::AwaitingLease);
    successor.maintain();
    successor.try_gen_id().expect("it is the one that the store knows");
    forgotten.maintain();
    assert!(forgotten.try_gen_id().is_err());
    assert_eq!(forgotten.status().went_back_total, 1);
}

/// Somebody deletes the database under a running process: what that one may still issue is known to
/// the state file that it has locked.
#[test]
fn a_machine_id_in_use_on_this_host_is_not_claimed_although_the_store_forgot_it() {
    let setting = Setting::new();
    let owner = setting.start();
    let wiped = Setting::new();
    let newcomer = wiped.builder().state_dir(setting.folder.path()).build().unwrap();
    assert_ne!(newcomer.machine(), owner.machine());
}

/// Otherwise a claim after the store forgot would begin below what is reserved.
#[test]
fn of_a_store_that_may_forget_no_more_is_reserved_than_the_wall_clock_shows() {
    let setting = Setting::new();
    setting.store.set_may_forget();
    let service = setting.start_from_memory();
    setting.clock.advance(Duration::from_secs(8));
    service.maintain();
    // Issued time runs four seconds ahead of the clock.
    service.try_gen_id().unwrap();
    let furthest = position(UnixMillis(setting.clock.wall().0 + 10_000));
    let bound = setting.record(service.machine()).bound;
    assert!(bound <= furthest, "{} s too far", (bound - furthest) >> 20);
}

#[test]
fn who_needs_a_machine_id_whose_record_is_lost_hears_so() {
    let setting = Setting::new();
    let service = setting.reserved().build().unwrap();
    service.gen_id().unwrap();
    drop(service);
    setting.memory.delete("lease/default", "7");
    let error = setting.elsewhere().reserved().build().unwrap_err();
    assert!(matches!(error, BuildError::RecordLost { machine: 7, .. }), "{error}");
    assert!(error.to_string().contains("store repair 7"), "{error}");
}

/// The first creation may be under way still, or be undone: it is looked for, and not repeated.
#[test]
fn a_creation_whose_reply_is_lost_is_not_sent_again() {
    let setting = Setting::new();
    leases(&setting.memory).open(&IdMeta::MAX_PEAK.fingerprint()).unwrap();
    // The namespace, its entries, and the creation of a record.
    setting.store.lose_replies(1);
    let first = Arc::new(Mutex::new(None));
    let (memory, seen) = (setting.memory.clone(), first.clone());
    setting.store.after(3, move || {
        let [created] = &records(&memory)[..] else { panic!("one record") };
        memory.delete("lease/default", &created.0.to_string());
        *seen.lock() = Some(created.1.birth);
    });
    let service = setting.start();
    service.gen_id().unwrap();
    let first = first.lock().expect("it was created");
    assert_ne!(setting.record(service.machine()).birth, first);
}

fn records(memory: &Arc<MemoryStore>) -> Vec<(u64, Record)> {
    leases(memory).snapshot().unwrap().records.into_iter().collect()
}

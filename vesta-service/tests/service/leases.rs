//! Failing stores, and owners that lose their machine ID.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::setting::{Setting, position};
use crate::common::{START, leases};
use parking_lot::Mutex;
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{ClaimOrder, KvStore, Leases, StoreError, Timing};
use vesta_service::options::Drive;
use vesta_service::testing::MemoryStore;
use vesta_service::{BuildError, ErrorKind, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::namespace_of;

#[test]
fn an_outage_stops_ids_at_the_bound_and_recovers_by_itself() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    setting.store.go_away();
    let (mut last, mut refused_at) = (0, None);
    for tenth in 0..100_u64 {
        match service.try_gen_id() {
            Ok(id) => {
                assert!(id > last && refused_at.is_none());
                last = id;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::AwaitingLease);
                refused_at.get_or_insert(tenth);
                assert!(!service.status().ready);
            }
        }
        setting.clock.advance(Duration::from_millis(100));
        service.maintain();
    }
    let lasted = refused_at.expect("the bound must hold");
    assert!(
        (40..=50).contains(&lasted),
        "a window of 5 s lasted {lasted} tenths of a second"
    );
    assert!(service.status().renewals_failed > 0);
    let bound = leases(&setting.memory)
        .record(machine)
        .unwrap()
        .unwrap()
        .bound;
    let last = service.exp_id(last).unwrap();
    assert!(last.time << 20 | last.seq < bound);

    setting.store.come_back();
    service
        .gen_id()
        .expect("the waiting call renews and goes on");
    assert_eq!(service.machine(), machine, "it is the same lease");
    assert_eq!(service.status().fenced_total, 0);
}

#[test]
fn a_renewal_whose_reply_was_lost_is_recognised() {
    let setting = Setting::new();
    let service = setting.start();
    for _ in 0..20 {
        setting.store.lose_replies(1);
        setting.clock.advance(Duration::from_secs(2));
        service.maintain();
        setting.clock.advance(Duration::from_millis(500));
        service.maintain();
        service.gen_id().unwrap();
    }
    let status = service.status();
    assert_eq!(status.fenced_total, 0);
    assert_eq!(setting.record(service.machine()).epoch, 1);
    assert!(
        status.renewals_failed >= 20 && status.renewals_ok >= 20,
        "{status:?}"
    );
}

#[test]
fn a_claim_whose_reply_was_lost_is_recognised() {
    let setting = Setting::new();
    setting.store.lose_replies(3);
    let service = setting.start();
    service.gen_id().unwrap();
    assert_eq!(
        setting.record(service.machine()).epoch,
        1,
        "claimed once, not four times"
    );
}

#[test]
fn fenced_owner_seals_and_claims_another_machine_id() {
    let setting = Setting::new();
    let service = setting.start();
    let lost = service.machine();
    let before = service.gen_id().unwrap();
    // A stranger takes the record over, as an operator or a wrong clock might.
    let thief = setting.steal(lost);

    setting.clock.advance(Duration::from_secs(2));
    let after = service.gen_id().unwrap();
    assert!(service.exp_id(after).is_ok() && after != before);
    service.maintain();
    assert_ne!(service.machine(), lost);
    assert_eq!(service.status().fenced_total, 1);
    assert!(service.status().ready);
    for _ in 0..10 {
        let id = service.exp_id(service.gen_id().unwrap()).unwrap();
        assert_eq!(id.machine, service.machine());
    }
    assert_eq!(
        setting.record(lost),
        thief,
        "the lost record was not touched again"
    );
}

/// Its bound is still ahead of the clock, and it has no other machine ID yet.
#[test]
fn fenced_owner_issues_nothing_from_its_reservation() {
    let setting = Setting::new();
    let service = Arc::new(setting.start());
    service.gen_id().unwrap();
    let lost = service.machine();
    let bought = setting.record(lost).bound;
    setting.clock.advance(Duration::from_secs(2));
    setting.steal(lost);
    let made = Arc::new(Mutex::new(None));
    let (fenced, seen, clock) = (service.clone(), made.clone(), setting.clock.clone());
    // A change, a read to find out why it failed, and then the search for another one.
    setting.store.after(2, move || {
        assert!(position(clock.wall()) < bought);
        *seen.lock() = Some(fenced.try_gen_id());
    });
    service.maintain();
    assert_eq!(service.status().fenced_total, 1);
    assert!(made.lock().take().expect("the call was made").is_err());
}

#[test]
fn a_clean_stop_releases_the_machine_id_at_its_exact_position() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    let last = service.exp_id(service.gen_id().unwrap()).unwrap();
    service.close();
    let record = setting.record(machine);
    assert!(record.released && record.owner == 0);
    assert_eq!(record.bound, (last.time << 20 | last.seq) + 1);
    assert_eq!(service.gen_id().unwrap_err().kind(), ErrorKind::Sealed);
    service.close();
    assert_eq!(
        setting.record(machine),
        record,
        "closing again does nothing"
    );

    let again = setting.start();
    assert_eq!(again.machine(), machine, "its own one first");
    let next = again.exp_id(again.gen_id().unwrap()).unwrap();
    assert_eq!((next.time, next.seq), (last.time, last.seq + 1));
}

#[test]
fn a_stop_during_an_outage_ends_and_leaves_the_bound() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    let bound = setting.record(machine).bound;
    setting.store.go_away();
    service.close();
    setting.store.come_back();
    assert_eq!(setting.record(machine).bound, bound);
    assert!(service.try_gen_id().is_err());
}

#[test]
fn a_third_service_is_refused_with_the_owners_of_both_machine_ids() {
    let setting = Setting::new();
    let (first, second) = (setting.start(), setting.start());
    assert_ne!(first.machine(), second.machine());
    let error = setting.try_start().unwrap_err().to_string();
    let pid = format!("(pid {})", std::process::id());
    assert!(
        error.contains("every machine ID of 3 to 4 is in use"),
        "{error}"
    );
    assert_eq!(error.matches(&pid).count(), 2, "{error}");
    let births = [3, 4].map(|machine| setting.record(machine).birth);
    assert!(births[0] != births[1] && !births.contains(&0), "{births:?}");
}

/// Driven by hand, too: the caller need not know how often to call.
#[test]
fn a_search_for_another_machine_id_ends_within_its_call() {
    let setting = Setting::new();
    let service = setting.start();
    let lost = service.machine();
    setting.steal(lost);
    setting.clock.advance(Duration::from_secs(2));
    // The renewal is refused, with two requests; the search that follows gets no reply at first.
    let store = setting.store.clone();
    setting.store.after(2, move || store.fail_next(1));
    service.maintain();
    assert_eq!(service.status().rehomed_total, 1);
}

/// A host without a local record of the machine IDs reports the same.
#[test]
fn a_free_pool_used_beyond_the_clock_reports_until_when() {
    let setting = Setting::new();
    drop((setting.start(), setting.start()));
    setting.clock.set_wall(UnixMillis(START.0 - 3_600_000));
    let elsewhere = setting.elsewhere();
    for setting in [elsewhere, setting] {
        let error = setting.try_start().unwrap_err();
        assert!(!error.is_configuration());
        let BuildError::Exhausted {
            holders,
            range,
            ahead: Some(ahead),
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((holders.len(), range), (0, &(3..=4)));
        let (used_until, now) = ahead;
        assert!(
            (START..UnixMillis(START.0 + 2_000)).contains(used_until),
            "{error}"
        );
        assert!(*now < UnixMillis(START.0 - 3_500_000), "{error}");
        let sentence = error.to_string();
        for part in [
            "no machine ID of 3 to 4 is available",
            &used_until.to_string(),
            &now.to_string(),
        ] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn an_unreachable_store_is_retried_for_half_a_minute_at_start() {
    let setting = Setting::new();
    setting.store.go_away();
    let started = setting.try_start();
    let error = started.unwrap_err();
    assert!(!error.is_configuration());
    assert!(error.to_string().contains("no reply"), "{error}");
    let waited = setting.clock.wall().0 - START.0;
    assert!((30_000..33_000).contains(&waited), "{waited} ms");
}

#[test]
fn a_namespace_is_for_one_layout() {
    let setting = Setting::new();
    drop(setting.start());
    let other = setting.builder().layout(IdMeta::MIN_GRANULARITY).build();
    let error = other.unwrap_err();
    assert!(error.is_configuration());
    assert!(
        error
            .to_string()
            .contains("another namespace for another layout"),
        "{error}"
    );
}

/// The window is exceeded at once, and the next one is requested at once.
#[test]
fn a_clock_stepped_ahead_beyond_the_window_costs_one_renewal() {
    let setting = Setting::new();
    let service = setting.start();
    setting.clock.advance(Duration::from_millis(10));
    service.try_gen_id().unwrap();
    setting
        .clock
        .set_wall(UnixMillis(setting.clock.wall().0 + 30 * 60 * 1000));
    assert_eq!(
        service.try_gen_id().unwrap_err().kind(),
        ErrorKind::AwaitingLease
    );
    service.maintain();
    service
        .try_gen_id()
        .expect("it was extended before its time");
}

#[test]
fn a_panicking_store_counts_as_unreachable() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    setting.store.set_panics(true);
    for _ in 0..100 {
        setting.clock.advance(Duration::from_millis(100));
        service.maintain();
    }
    assert_eq!(
        service.try_gen_id().unwrap_err().kind(),
        ErrorKind::AwaitingLease
    );
    setting.store.set_panics(false);
    setting.clock.advance(Duration::from_secs(1));
    service.maintain();
    service.try_gen_id().expect("it went on by itself");
    assert_eq!(service.machine(), machine);
}

/// The file is no longer writable, but its lock still shows that the owner is alive.
#[test]
fn a_machine_id_with_a_failing_state_file_stays_in_use_on_its_host() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    let file = setting
        .folder
        .path()
        .join(format!("default-{machine}.state"));
    std::fs::rename(&file, setting.folder.path().join("away")).unwrap();
    setting.clock.advance(Duration::from_secs(2));
    service.maintain(); // the renewal finds that its host cannot record it
    std::fs::rename(setting.folder.path().join("away"), &file).unwrap();
    let other = setting.start();
    assert_ne!(other.machine(), machine);
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    service.try_gen_id().expect("it was not taken");
    assert_eq!(service.status().fenced_total, 0);
}

#[test]
fn every_source_refuses_a_namespace_unfit_for_a_file_name() {
    let error = LocalIdService::builder()
        .machine(MachineSource::Stateless(1))
        .namespace("a/b")
        .build()
        .unwrap_err();
    assert!(error.is_configuration());
    assert!(error.to_string().contains("namespace: `a/b`"), "{error}");
}

#[test]
fn a_batch_ascends_even_if_the_machine_id_changes_while_it_is_filled() {
    let setting = Setting::new();
    let service = setting.start();
    service.gen_id().unwrap();
    let lost = service.machine();
    setting.steal(lost);
    // A renewal is due, and issued time leads the clock by three seconds.
    setting.clock.advance(Duration::from_secs(2));
    service.try_gen_id().unwrap();
    setting.clock.set_wall(UnixMillis(START.0 - 1_000));

    let mut batch = vec![0; 1 << 20]; // one more than the rest of the second
    service.gen_ids(&mut batch).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
    assert_ne!(service.machine(), lost);
    let has_of = |machine| {
        batch
            .iter()
            .any(|id| service.exp_id(*id).unwrap().machine == machine)
    };
    assert!(has_of(lost) && has_of(service.machine()));
    assert_eq!(service.status().rehomed_total, 1);
}

#[test]
fn a_damaged_record_of_a_reserved_id_only_delays_the_start() {
    let setting = Setting::new();
    let reserved = || setting.reserved().build().unwrap();
    let first = reserved();
    let last = first.gen_id().unwrap();
    drop(first);
    let file = setting.folder.path().join("default-7.state");
    let mut state = std::fs::read(&file).unwrap();
    state[200] ^= 1;
    std::fs::write(&file, state).unwrap();
    assert!(reserved().gen_id().unwrap() > last);
    assert!(setting.clock.wall().0 - START.0 < 10_000);
}

#[test]
fn the_longest_possible_wait_is_accepted() {
    let setting = Setting::new();
    let service = setting.builder().max_wait(Duration::MAX).build().unwrap();
    service.gen_ids(&mut vec![0; 2 << 20]).unwrap();
}

/// The position from which to issue would then be unknown.
#[test]
fn while_the_clock_is_suspect_no_other_machine_id_is_claimed() {
    let setting = Setting::new();
    let service = setting.start();
    service.gen_id().unwrap();
    let lost = service.machine();
    setting.clock.set_wall(UnixMillis(START.0 + 2 * 3_600_000));
    setting.steal(lost);
    for _ in 0..10 {
        setting.clock.advance(Duration::from_secs(2));
        service.maintain();
    }
    assert!(service.status().clock_suspect && service.try_gen_id().is_err());
    assert_eq!(service.status().rehomed_total, 0);
    setting.clock.set_wall(UnixMillis(START.0 + 20_000));
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    service.try_gen_id().expect("the clock is believed again");
    assert_ne!(service.machine(), lost);
    assert_eq!(service.status().rehomed_total, 1);
}

/// Another process locks its state file, after any number of the claim's requests.
#[test]
fn a_claim_that_its_host_cannot_record_is_given_back() {
    let mut given_back = 0;
    for after in 0..10 {
        let setting = Setting::new();
        let (folder, clock) = (setting.folder.path().to_owned(), setting.clock.clone());
        let namespace = namespace_of(&folder);
        let leases = Leases::new(setting.memory.clone(), &namespace);
        let own = setting.builder().namespace(&namespace);
        let holder = Arc::new(Mutex::new(None));
        let held = holder.clone();
        setting.store.after(after, move || {
            let file = LocalIdService::builder()
                .namespace(namespace)
                .machine(MachineSource::Fixed(3))
                .state_dir(folder)
                .clock(Arc::new(clock))
                .drive(Drive::ByHand);
            *held.lock() = file.build().ok();
        });
        let service = own.claim_order(ClaimOrder::Lowest).build().unwrap();
        if let (4, Ok(Some(record))) = (service.machine(), leases.record(3)) {
            assert_eq!(
                (record.owner, record.released),
                (0, record.epoch > 0),
                "after {after}"
            );
            given_back += u32::from(record.epoch > 0);
        }
        drop(holder);
    }
    assert!(given_back > 0);
}

/// With the last bound acknowledged by the store, which is then unreachable.
fn at_the_bound(pacing: bool) -> (Setting, LocalIdService, u64) {
    let setting = Setting::new();
    let service = setting
        .builder()
        .pacing(pacing)
        .max_wait(Duration::from_secs(1))
        .build()
        .unwrap();
    let first = setting.record(service.machine()).bound;
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    let bound = setting.record(service.machine()).bound;
    assert!(bound > first, "it was renewed");
    setting.store.go_away();
    // The last slice of the last second.
    let end = service.meta().moment_of(bound >> 20).unwrap();
    let left = end.since(setting.clock.wall()).unwrap();
    setting.clock.advance(Duration::from_millis(left - 2));
    while service
        .try_gen_run(u32::MAX)
        .or_else(|_| service.try_gen_run(1))
        .is_ok()
    {}
    (setting, service, bound)
}

#[test]
fn waiting_caller_gets_no_position_at_or_beyond_the_bound() {
    for pacing in [false, true] {
        let (_setting, service, bound) = at_the_bound(pacing);
        let refused = service.gen_id().expect_err("the bound is reached");
        assert_eq!(
            refused.kind(),
            ErrorKind::AwaitingLease,
            "pacing {pacing}, bound {bound}"
        );
    }
}

#[test]
fn renewal_raises_the_bound_only_as_far_as_acknowledged() {
    let (setting, service, bound) = at_the_bound(false);
    for _ in 0..20 {
        setting.clock.advance(Duration::from_millis(500));
        service.maintain();
        let refused = service.try_gen_id().expect_err("the bound is reached");
        assert_eq!(refused.kind(), ErrorKind::AwaitingLease, "bound {bound}");
    }
}

/// As a pool server: until it has answered, its member counts on the shortest windows.
#[derive(Debug)]
struct PoolServer {
    store: MemoryStore,
    has_answered: AtomicBool,
}

impl PoolServer {
    fn asked(&self) -> &MemoryStore {
        self.has_answered.store(true, Ordering::Relaxed);
        &self.store
    }
}

impl KvStore for PoolServer {
    fn describe(&self) -> String {
        "pool-server".into()
    }

    fn timing(&self) -> Timing {
        Timing::NETWORK
    }

    fn usual_window(&self) -> Duration {
        match self.has_answered.load(Ordering::Relaxed) {
            true => Timing::NETWORK.window,
            false => Timing::IN_MEMORY.window,
        }
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.asked().list(area)
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.asked().get(area, key)
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.asked().put_if(area, key, old, new)
    }
}

#[test]
fn a_member_that_starts_before_its_pool_server_has_the_whole_window() {
    let setting = Setting::new();
    let store = Arc::new(PoolServer {
        store: MemoryStore::new(),
        has_answered: false.into(),
    });
    let builder = setting.builder();
    let builder = builder.machine(MachineSource::Pool { store, range: None });
    let service = builder.build().expect("a machine ID is free");
    let left = service.status().window_left;
    assert!(left > Timing::NETWORK.window / 2, "{left:?}");
}

//! Stores that fail, and owners that lose their machine ID.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{START, leases};
use vesta_service::{
    BuildError, Cas, Clock as _, Drive, ErrorKind, IdService as _, KvStore, LocalIdService,
    MachineSource, ManualClock, MemoryStore, Record, StoreError, Timing, UnixMillis,
};

/// A store that can be made unreachable, or to lose its replies after doing what was asked.
#[derive(Debug, Default)]
struct Flaky {
    store: Arc<MemoryStore>,
    down: AtomicBool,
    lose_replies: AtomicU64,
    may_forget: AtomicBool,
    panics: AtomicBool,
}

impl Flaky {
    fn reach(&self) -> Result<(), StoreError> {
        assert!(!self.panics.load(Ordering::Relaxed), "a planted panic");
        let refused = std::io::Error::other("connection refused");
        match self.down.load(Ordering::Relaxed) {
            true => Err(StoreError::unavailable("cannot reach the store", refused)),
            false => Ok(()),
        }
    }
}

impl KvStore for Flaky {
    fn describe(&self) -> String {
        "flaky".into()
    }
    fn timing(&self) -> Timing {
        self.store.timing()
    }
    fn may_forget(&self) -> bool {
        self.may_forget.load(Ordering::Relaxed)
    }
    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.reach()?;
        self.store.list(area)
    }
    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.reach()?;
        self.store.get(area, key)
    }
    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.reach()?;
        let done = self.store.put_if(area, key, old, new)?;
        let losing = self
            .lose_replies
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match losing {
            Ok(_) => Err(StoreError::unavailable("no reply", std::io::Error::other("timed out"))),
            Err(_) => Ok(done),
        }
    }
}

struct Setting {
    store: Arc<Flaky>,
    clock: ManualClock,
    folder: tempfile::TempDir,
}

impl Setting {
    fn new() -> Self {
        Self {
            store: Arc::new(Flaky::default()),
            clock: ManualClock::at(START),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn start(&self) -> LocalIdService {
        self.try_start().unwrap()
    }

    fn try_start(&self) -> Result<LocalIdService, BuildError> {
        LocalIdService::builder()
            .machine(MachineSource::Pool { store: self.store.clone(), range: Some(3..=4) })
            .state_dir(self.folder.path())
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
            .build()
    }

    /// With the durations of Redis.
    fn start_from_memory(&self) -> LocalIdService {
        LocalIdService::builder()
            .machine(MachineSource::Pool { store: self.store.clone(), range: Some(3..=4) })
            .timing(Timing::IN_MEMORY)
            .state_dir(self.folder.path())
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .unwrap()
    }

    fn record(&self, machine: u64) -> Record {
        leases(&self.store.store).record(machine).unwrap().unwrap()
    }
}

fn service_position(moment: UnixMillis) -> u64 {
    vesta_service::IdMeta::MAX_PEAK.tick_at(moment).unwrap() << 20
}

#[test]
fn with_the_store_away_it_issues_up_to_the_bound_and_recovers_by_itself() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    setting.store.down.store(true, Ordering::Relaxed);
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
    assert!((40..=50).contains(&lasted), "a window of 5 s lasted {lasted} tenths of a second");
    assert!(service.status().renewals_failed > 0);
    let bound = leases(&setting.store.store).record(machine).unwrap().unwrap().bound;
    let last = service.exp_id(last).unwrap();
    assert!(last.time << 20 | last.seq < bound);

    setting.store.down.store(false, Ordering::Relaxed);
    service.gen_id().expect("the waiting call renews and goes on");
    assert_eq!(service.machine(), machine, "it is the same lease");
    assert_eq!(service.status().fenced_total, 0);
}

#[test]
fn a_renewal_whose_reply_was_lost_is_recognised() {
    let setting = Setting::new();
    let service = setting.start();
    for _ in 0..20 {
        setting.store.lose_replies.store(1, Ordering::Relaxed);
        setting.clock.advance(Duration::from_secs(2));
        service.maintain();
        setting.clock.advance(Duration::from_millis(500));
        service.maintain();
        service.gen_id().unwrap();
    }
    let status = service.status();
    assert_eq!(status.fenced_total, 0);
    assert_eq!(setting.record(service.machine()).epoch, 1);
    assert!(status.renewals_failed >= 20 && status.renewals_ok >= 20, "{status:?}");
}

#[test]
fn a_claim_whose_reply_was_lost_is_recognised() {
    let setting = Setting::new();
    setting.store.lose_replies.store(3, Ordering::Relaxed);
    let service = setting.start();
    service.gen_id().unwrap();
    assert_eq!(setting.record(service.machine()).epoch, 1, "claimed once, not four times");
}

#[test]
fn who_is_fenced_seals_and_goes_on_with_another_machine_id() {
    let setting = Setting::new();
    let service = setting.start();
    let lost = service.machine();
    let before = service.gen_id().unwrap();
    // Somebody takes the record over, as an operator or a wrong clock might.
    let record = setting.record(lost);
    let thief = Record { epoch: record.epoch + 1, owner: 99, attempt: 1, ..record.clone() };
    let taken = leases(&setting.store.store).change(lost, Some(&record), &thief).unwrap();
    assert_eq!(taken, Cas::Done);

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
    assert_eq!(setting.record(lost), thief, "the lost record was not touched again");
}

#[test]
fn a_clean_stop_gives_the_id_back_at_exactly_the_position_reached() {
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
    assert_eq!(setting.record(machine), record, "closing again does nothing");

    let again = setting.start();
    assert_eq!(again.machine(), machine, "its own one first");
    let next = again.exp_id(again.gen_id().unwrap()).unwrap();
    assert_eq!((next.time, next.seq), (last.time, last.seq + 1));
}

#[test]
fn a_stop_with_the_store_away_ends_and_leaves_the_bound() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    let bound = setting.record(machine).bound;
    setting.store.down.store(true, Ordering::Relaxed);
    service.close();
    setting.store.down.store(false, Ordering::Relaxed);
    assert_eq!(setting.record(machine).bound, bound);
    assert!(service.try_gen_id().is_err());
}

#[test]
fn two_services_get_different_ids_and_the_third_hears_who_holds_them() {
    let setting = Setting::new();
    let (first, second) = (setting.start(), setting.start());
    assert_ne!(first.machine(), second.machine());
    let third = LocalIdService::builder()
        .machine(MachineSource::Pool { store: setting.store.clone(), range: Some(3..=4) })
        .state_dir(setting.folder.path())
        .clock(Arc::new(setting.clock.clone()))
        .drive(Drive::ByHand)
        .build();
    let error = third.unwrap_err().to_string();
    let pid = format!("(pid {})", std::process::id());
    assert!(error.contains("every machine ID of 3 to 4 is in use"), "{error}");
    assert_eq!(error.matches(&pid).count(), 2, "{error}");
}

/// Also on a host that does not remember them.
#[test]
fn a_pool_that_is_free_but_used_beyond_the_clock_says_up_to_when() {
    let setting = Setting::new();
    drop((setting.start(), setting.start()));
    setting.clock.set_wall(UnixMillis(START.0 - 3_600_000));
    let (store, clock) = (setting.store.clone(), setting.clock.clone());
    let elsewhere = Setting { store, clock, folder: tempfile::tempdir().unwrap() };
    for setting in [elsewhere, setting] {
        let error = setting.try_start().unwrap_err();
        assert!(!error.is_configuration());
        let BuildError::Exhausted { holders, range, ahead: Some(ahead) } = &error else {
            panic!("{error}");
        };
        assert_eq!((holders.len(), range), (0, &(3..=4)));
        let (used_until, now) = ahead;
        assert!((START..UnixMillis(START.0 + 2_000)).contains(used_until), "{error}");
        assert!(*now < UnixMillis(START.0 - 3_500_000), "{error}");
        let sentence = error.to_string();
        for part in
            ["no machine ID of 3 to 4 can be had", &used_until.to_string(), &now.to_string()]
        {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn a_store_that_is_away_at_start_is_asked_for_half_a_minute() {
    let setting = Setting::new();
    setting.store.down.store(true, Ordering::Relaxed);
    let started = LocalIdService::builder()
        .machine(MachineSource::Pool { store: setting.store.clone(), range: None })
        .state_dir(setting.folder.path())
        .clock(Arc::new(setting.clock.clone()))
        .drive(Drive::ByHand)
        .build();
    let error = started.unwrap_err();
    assert!(!error.is_configuration());
    assert!(error.to_string().contains("connection refused"), "{error}");
    let waited = setting.clock.wall().0 - START.0;
    assert!((30_000..33_000).contains(&waited), "{waited} ms");
}

#[test]
fn a_namespace_is_for_one_layout() {
    let setting = Setting::new();
    drop(setting.start());
    let other = LocalIdService::builder()
        .layout(vesta_service::IdMeta::MIN_GRANULARITY)
        .machine(MachineSource::Pool { store: setting.store.clone(), range: None })
        .state_dir(setting.folder.path())
        .clock(Arc::new(setting.clock.clone()))
        .drive(Drive::ByHand)
        .build();
    let error = other.unwrap_err();
    assert!(error.is_configuration());
    assert!(error.to_string().contains("another namespace for another layout"), "{error}");
}

#[test]
fn a_store_that_forgot_what_this_host_remembers_is_refused_until_its_floor_is_raised() {
    let setting = Setting::new();
    let service = setting.start();
    let before = service.gen_id().unwrap();
    drop(service);
    let wiped = Setting { store: Arc::new(Flaky::default()), ..setting };
    wiped.clock.set_wall(UnixMillis(START.0 - 3_000));
    let refused = wiped.try_start().unwrap_err();
    let BuildError::StoreRegressed { used_until, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(refused.to_string().contains("store raise-floor"), "{refused}");

    let bound = service_position(*used_until);
    leases(&wiped.store.store).raise_floor(bound - (1 << 20)).unwrap();
    wiped.try_start().expect_err("still below");
    leases(&wiped.store.store).raise_floor(bound).unwrap();
    let id = wiped.start().gen_id().unwrap();
    assert!(id > before);
    wiped.start().gen_id().expect("and again");
}

#[test]
fn a_machine_id_is_not_claimed_anew_from_a_store_that_was_wiped_while_running() {
    let setting = Setting::new();
    let service = setting.start();
    service.gen_id().unwrap();
    setting.store.store.forget();
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    assert!(service.gen_id().is_err());
    let status = service.status();
    assert!(!status.ready);
    let because = status.all.not_ready_because.unwrap();
    assert!(because.contains("has forgotten that machine ID"), "{because}");
    let bound = service_position(UnixMillis(setting.clock.wall().0 + 60_000));
    leases(&setting.store.store).raise_floor(bound).unwrap();
    setting.clock.advance(Duration::from_secs(60));
    let id = service.gen_id().expect("the floor was raised");
    assert!(service.exp_id(id).unwrap().time << 20 >= bound);
}

#[test]
fn a_store_that_may_forget_is_kept_a_window_ahead_of() {
    let setting = Setting::new();
    setting.store.may_forget.store(true, Ordering::Relaxed);
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
    setting.store.may_forget.store(true, Ordering::Relaxed);
    let service = LocalIdService::builder()
        .machine(MachineSource::Reserved { store: setting.store.clone(), id: 7 })
        .timing(Timing::ONE_HOST)
        .state_dir(setting.folder.path())
        .clock(Arc::new(setting.clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    setting.clock.advance(Duration::from_millis(7001));
    for _ in 0..1000 {
        service.maintain();
        service.try_gen_id().unwrap();
        setting.clock.advance(Duration::from_millis(50));
    }
}

/// The window is beyond reach at once, and the next one is asked for at once.
#[test]
fn a_clock_stepped_ahead_beyond_the_window_costs_one_renewal() {
    let setting = Setting::new();
    let service = setting.start();
    setting.clock.advance(Duration::from_millis(10));
    service.try_gen_id().unwrap();
    setting.clock.set_wall(UnixMillis(setting.clock.wall().0 + 30 * 60 * 1000));
    assert_eq!(service.try_gen_id().unwrap_err().kind(), ErrorKind::AwaitingLease);
    service.maintain();
    service.try_gen_id().expect("it was extended before its time");
}

/// Both begin at the same position.
#[test]
fn of_two_claims_of_a_store_that_forgot_the_first_at_once_only_the_second_issues() {
    let first = Setting::new();
    first.store.may_forget.store(true, Ordering::Relaxed);
    let forgotten = first.start_from_memory();
    first.store.store.forget();
    let second = Setting {
        store: first.store.clone(),
        clock: first.clock.clone(),
        folder: tempfile::tempdir().unwrap(),
    };
    let successor = second.start_from_memory();
    assert_eq!(successor.machine(), forgotten.machine());
    first.clock.advance(Duration::from_secs(8));
    assert_eq!(forgotten.try_gen_id().unwrap_err().kind(), ErrorKind::AwaitingLease);
    successor.maintain();
    successor.try_gen_id().expect("it is the one that the store knows");
    forgotten.maintain();
    assert!(forgotten.try_gen_id().is_err());
    assert_eq!(forgotten.status().fenced_total, 1);
}

#[test]
fn a_store_that_panics_is_a_store_that_did_not_answer() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    setting.store.panics.store(true, Ordering::Relaxed);
    for _ in 0..100 {
        setting.clock.advance(Duration::from_millis(100));
        service.maintain();
    }
    assert_eq!(service.try_gen_id().unwrap_err().kind(), ErrorKind::AwaitingLease);
    setting.store.panics.store(false, Ordering::Relaxed);
    setting.clock.advance(Duration::from_secs(1));
    service.maintain();
    service.try_gen_id().expect("it went on by itself");
    assert_eq!(service.machine(), machine);
}

/// The file can no longer be written, but its lock still says who is alive.
#[test]
fn a_machine_id_whose_state_file_fails_is_not_taken_for_free_on_its_host() {
    let setting = Setting::new();
    let service = setting.start();
    let machine = service.machine();
    let file = setting.folder.path().join(format!("default-{machine}.state"));
    std::fs::rename(&file, setting.folder.path().join("away")).unwrap();
    setting.clock.advance(Duration::from_secs(2));
    service.maintain(); // the renewal finds that it cannot be remembered
    std::fs::rename(setting.folder.path().join("away"), &file).unwrap();
    let other = setting.start();
    assert_ne!(other.machine(), machine);
    setting.clock.advance(Duration::from_secs(2));
    service.maintain();
    service.try_gen_id().expect("nobody took it");
    assert_eq!(service.status().fenced_total, 0);
}

/// Somebody deletes the database under a running process: what that one may still issue is known to
/// the state file that it has locked.
#[test]
fn a_machine_id_in_use_on_this_host_is_not_claimed_although_the_store_forgot_it() {
    let setting = Setting::new();
    let owner = setting.start();
    let wiped = Setting {
        store: Arc::new(Flaky::default()),
        clock: setting.clock.clone(),
        folder: tempfile::tempdir().unwrap(),
    };
    let newcomer = LocalIdService::builder()
        .machine(MachineSource::Pool { store: wiped.store.clone(), range: Some(3..=4) })
        .state_dir(setting.folder.path())
        .clock(Arc::new(setting.clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    assert_ne!(newcomer.machine(), owner.machine());
}

#[test]
fn every_source_refuses_a_namespace_that_cannot_name_a_file() {
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
    let record = setting.record(lost);
    let thief = Record { epoch: record.epoch + 1, owner: 99, attempt: 1, ..record.clone() };
    leases(&setting.store.store).change(lost, Some(&record), &thief).unwrap();
    // A renewal is due, and issued time runs three seconds ahead of the clock.
    setting.clock.advance(Duration::from_secs(2));
    service.try_gen_id().unwrap();
    setting.clock.set_wall(UnixMillis(START.0 - 1_000));

    let mut batch = vec![0; 1 << 20]; // one more than is left of the second
    service.gen_ids(&mut batch).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
    assert_ne!(service.machine(), lost);
    let has_of = |machine| batch.iter().any(|id| service.exp_id(*id).unwrap().machine == machine);
    assert!(has_of(lost) && has_of(service.machine()));
    assert_eq!(service.status().rehomed_total, 1);
}

#[test]
fn a_damaged_memory_of_a_reserved_id_delays_the_start_and_does_not_prevent_it() {
    let setting = Setting::new();
    let reserved = || {
        LocalIdService::builder()
            .machine(MachineSource::Reserved { store: setting.store.clone(), id: 7 })
            .state_dir(setting.folder.path())
            .clock(Arc::new(setting.clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .unwrap()
    };
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
fn the_longest_wait_that_can_be_set_is_no_error() {
    let setting = Setting::new();
    let service = LocalIdService::builder()
        .machine(MachineSource::Pool { store: setting.store.clone(), range: None })
        .state_dir(setting.folder.path())
        .clock(Arc::new(setting.clock.clone()))
        .drive(Drive::ByHand)
        .max_wait(Duration::MAX)
        .build()
        .unwrap();
    service.gen_ids(&mut vec![0; 2 << 20]).unwrap();
}

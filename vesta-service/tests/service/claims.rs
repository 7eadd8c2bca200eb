//! Contended claims: their waits, retries and reservations.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::setting::Setting;
use crate::common::{START, leases, put};
use parking_lot::Mutex;
use vesta_intf::Field;
use vesta_service::clock::Clock;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, KvStore, Record, StoreError, Timing};
use vesta_service::options::Drive;
use vesta_service::testing::{Answer, Intercept, ManualClock, MemoryStore, Request};
use vesta_service::{BuildError, IdError, IdMeta, LocalIdService, MachineSource};

/// A store in which another owner is faster a few times.
struct Busy {
    records: Arc<MemoryStore>,
    store: Arc<dyn KvStore>,
}

/// A store's clock, if it has one, and whether the store may forget.
fn with_clock(
    timing: Timing,
    doubted: bool,
    now: impl Fn() -> Option<UnixMillis> + Send + Sync + 'static,
) -> Intercept {
    let doubt = doubted.then(|| Doubt::of("it said so", false));
    let store = Intercept::new(
        Arc::new(MemoryStore::new()),
        move |request, store| match request {
            Request::Now => Ok(Answer::Now(now())),
            Request::Doubt => Ok(Answer::Doubt(doubt.clone())),
            _ => request.send(store),
        },
    );
    store.timing(timing)
}

impl Busy {
    /// Another owner precedes each of the next `others` claims, and releases at once.
    fn new(others: u64) -> Self {
        let records = Arc::new(MemoryStore::new());
        let (behind, others) = (records.clone(), AtomicU64::new(others));
        let store = Intercept::new(records.clone(), move |request, store| {
            if let Request::Put { puts: [put], .. } = request
                && put.old.is_some()
                && put.new.contains(r#""released":false"#)
                && others
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                        left.checked_sub(1)
                    })
                    .is_ok()
            {
                let machine = put.key.parse().expect("a machine ID");
                let current = leases(&behind).record(machine)?.expect("a record");
                // These owners issued nothing.
                let (epoch, attempt) = (current.epoch + 1, 1);
                let theirs = Record {
                    epoch,
                    attempt,
                    owner: 0,
                    released: true,
                    ..current.clone()
                };
                leases(&behind).change(machine, Some(&current), &theirs)?;
            }
            request.send(store)
        });
        Self {
            records,
            store: Arc::new(store.timing(Timing::ONE_HOST)),
        }
    }

    /// A store in which machine ID 3 has a record.
    fn with(record: Record) -> Self {
        let this = Self::new(0);
        let namespace = leases(&this.records)
            .open(&IdMeta::MAX_PEAK.fingerprint())
            .unwrap()
            .uuid;
        put(
            &leases(&this.records),
            3,
            &Record {
                namespace,
                ..record
            },
        );
        this
    }

    fn record(&self, machine: u64) -> Record {
        leases(&self.records).record(machine).unwrap().unwrap()
    }
}

/// A clock that counts the waits, and runs an action during one of them.
struct Waits {
    clock: ManualClock,
    count: AtomicU64,
    at: u64,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waits")
    }
}

impl Waits {
    fn new(at: u64, then: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let then: Box<dyn FnOnce() + Send> = Box::new(then);
        Arc::new(Self {
            clock: ManualClock::at(START),
            count: AtomicU64::new(0),
            at,
            then: Mutex::new(Some(then)),
        })
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Clock for Waits {
    fn wall(&self) -> UnixMillis {
        self.clock.wall()
    }
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
    fn park(&self, duration: Duration) {
        self.clock.park(duration);
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.at {
            let then = self.then.lock().take();
            then.expect("this wait occurs once")();
        }
    }
}

fn start(
    machine: MachineSource,
    folder: &std::path::Path,
    clock: Arc<dyn Clock>,
) -> Result<LocalIdService, BuildError> {
    LocalIdService::builder()
        .machine(machine)
        .state_dir(folder)
        .clock(clock)
        .drive(Drive::ByHand)
        .build()
}

fn only_3(store: Arc<dyn KvStore>) -> MachineSource {
    MachineSource::Pool {
        store,
        range: Some(3..=3),
    }
}

#[test]
fn a_claim_that_lost_the_race_retries_without_waiting() {
    let folder = vesta_testkit::fast_folder();
    let store = Busy::new(4);
    let clock = Waits::new(u64::MAX, || ());
    let service = start(only_3(store.store.clone()), folder.path(), clock.clone()).unwrap();
    assert_eq!(store.record(3).epoch, 5, "four others were faster");
    assert_eq!(clock.count(), 0);
    drop(service);
}

#[test]
fn a_claim_names_its_owner() {
    let folder = vesta_testkit::fast_folder();
    let store = Busy::new(0);
    let clock = Arc::new(ManualClock::at(START));
    let service = start(only_3(store.store.clone()), folder.path(), clock).unwrap();
    let record = store.record(3);
    assert!(
        !record.host.is_empty() && record.owner != 0 && record.attempt != 0,
        "{record:?}"
    );
    assert_eq!((record.pid, record.info_time), (std::process::id(), START));
    drop(service);
}

#[test]
fn an_expired_owner_is_watched_for_one_and_a_half_renewals() {
    let folder = vesta_testkit::fast_folder();
    let bound = IdMeta::MAX_PEAK
        .tick_at(UnixMillis(START.0 - 61_000))
        .unwrap()
        << 20;
    let store = Busy::with(Record {
        epoch: 1,
        owner: 7,
        bound,
        ..Record::default()
    });
    let clock = Waits::new(u64::MAX, || ());
    let service = start(only_3(store.store.clone()), folder.path(), clock.clone()).unwrap();
    assert_eq!(store.record(3).epoch, 2);
    assert_eq!(
        clock.wall().since(START),
        Some(2250),
        "milliseconds, at a renewal every 1.5 s"
    );
    drop(service);
}

#[test]
fn a_named_record_up_to_five_seconds_ahead_of_the_clock_is_taken_at_once() {
    for (ahead, waits) in [(4_000, 0), (5_000, 0), (6_000, 1)] {
        let folder = vesta_testkit::fast_folder();
        let bound = IdMeta::MAX_PEAK
            .tick_at(UnixMillis(START.0 + ahead))
            .unwrap()
            << 20;
        let store = Busy::with(Record {
            epoch: 1,
            bound,
            released: true,
            ..Record::default()
        });
        let clock = Waits::new(u64::MAX, || ());
        let named = MachineSource::Reserved {
            store: store.store,
            id: 3,
        };
        let service = start(named, folder.path(), clock.clone()).unwrap();
        assert_eq!(clock.count(), waits, "{ahead} ms ahead");
        drop(service);
    }
}

#[test]
fn a_bound_is_reported_as_the_moment_that_covers_all_of_it() {
    for (above, seconds) in [(0, 100), (1, 101)] {
        let folder = vesta_testkit::fast_folder();
        let tick = IdMeta::MAX_PEAK
            .tick_at(UnixMillis(START.0 + 100_000))
            .unwrap();
        let bound = (tick << 20) + above;
        let store = Busy::with(Record {
            epoch: 1,
            bound,
            released: true,
            ..Record::default()
        });
        let clock = Arc::new(ManualClock::at(START));
        let error = start(only_3(store.store), folder.path(), clock).unwrap_err();
        let BuildError::Exhausted {
            ahead: Some((until, now)),
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((until, now), (UnixMillis(START.0 + seconds * 1000), START));
    }
}

#[test]
fn an_unused_machine_id_starts_at_the_floor_of_its_namespace() {
    let folder = vesta_testkit::fast_folder();
    let store = Arc::new(MemoryStore::new());
    leases(&store)
        .open(&IdMeta::MAX_PEAK.fingerprint())
        .unwrap();
    let floor = (IdMeta::MAX_PEAK.tick_at(START).unwrap() << 20) + 1000;
    leases(&store).raise_floor(floor).unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let service = start(only_3(store), folder.path(), clock).unwrap();
    let id = service.exp_id(service.gen_id().unwrap()).unwrap();
    assert_eq!(id.time << 20 | id.seq, floor);
}

#[test]
fn a_namespace_that_was_not_opened_has_no_floor_and_an_error_names_its_cause() {
    let store = Arc::new(MemoryStore::new());
    assert!(leases(&store).raise_floor(1).unwrap_err().is_permanent());
    let refused = StoreError::unavailable("cannot reach it", std::io::Error::other("refused"));
    assert_eq!(refused.source().unwrap().to_string(), "refused");
    assert_eq!(refused.to_string(), "cannot reach it: refused");
}

/// A store without a clock is trusted.
#[test]
fn a_clock_that_differs_from_the_stores_is_refused() {
    for (doubted, limit) in [(false, 60_000), (true, 1_000)] {
        for (apart, fits) in [
            (None, true),
            (Some(0), true),
            (Some(limit), true),
            (Some(limit + 1), false),
        ] {
            for behind in [false, true] {
                let folder = vesta_testkit::fast_folder();
                let now = apart.map(|apart| match behind {
                    true => UnixMillis(START.0 - apart),
                    false => UnixMillis(START.0 + apart),
                });
                let store = Arc::new(with_clock(Timing::IN_MEMORY, doubted, move || now));
                let clock = Arc::new(ManualClock::at(START));
                match start(only_3(store), folder.path(), clock) {
                    Ok(_) => assert!(fits, "{apart:?} ms apart, may forget: {doubted}"),
                    Err(BuildError::ClocksDiffer { ours, theirs }) => {
                        assert_eq!((ours, Some(theirs)), (START, now));
                        assert!(!fits, "{apart:?} ms apart, may forget: {doubted}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

/// Lead of the slow store's clock, in milliseconds.
static OFFSET: AtomicI64 = AtomicI64::new(0);

/// The warnings of one thread. It is the subscriber of all threads: a callsite that another test
/// reached first would stay silent in a later test.
struct Warnings(Mutex<Vec<String>>, std::thread::ThreadId);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut said = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                said += &format!("{field}={value:?} ");
            },
        );
        let ours = std::thread::current().id() == self.1 && said.contains("and the store's");
        self.0.lock().extend(ours.then_some(said));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_slow_reply_is_not_a_clock_difference_and_one_is_logged_once() {
    let warnings = Arc::new(Warnings(Mutex::default(), std::thread::current().id()));
    tracing::subscriber::set_global_default(warnings.clone()).expect("there is no other");
    for doubted in [false, true] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        // Its answers are slow, and its clock is this host's or slightly different.
        let slow = clock.clone();
        let store = with_clock(Timing::IN_MEMORY, doubted, {
            let slow = clock.clone();
            move || {
                slow.advance(Duration::from_millis(1_200));
                let now = slow
                    .wall()
                    .0
                    .wrapping_add_signed(OFFSET.load(Ordering::Relaxed));
                slow.advance(Duration::from_millis(1_200));
                Some(UnixMillis(now))
            }
        });
        let store = Intercept::new(Arc::new(store), move |request, store| {
            if let Request::List { .. } = request {
                slow.advance(Duration::from_secs(2));
            }
            request.send(store)
        });
        let store = Arc::new(store);
        OFFSET.store(0, Ordering::Relaxed);
        let pool = MachineSource::Pool {
            store,
            range: Some(0..=63),
        };
        let service = LocalIdService::builder()
            .machine(pool)
            .machine_count(64)
            .state_dir(folder.path())
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .expect("its clock is the store's");
        let pass = |offset| {
            OFFSET.store(offset, Ordering::Relaxed);
            for _ in 0..100 {
                clock.advance(Duration::from_secs(1));
                service.maintain();
            }
            std::mem::take(&mut *warnings.0.lock())
        };
        assert_eq!(pass(0), Vec::<String>::new(), "may forget: {doubted}");
        let told = pass(2_500);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("differ"), "{told:?}");
        let told = pass(0);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("agree again") && told[0].contains("times="),
            "{told:?}"
        );
    }
}

/// The newest entry of a state file may be the damaged one.
#[test]
fn with_a_damaged_state_file_a_claim_keeps_a_windows_distance() {
    for damaged in [false, true] {
        let folder = vesta_testkit::fast_folder();
        let store = Busy::new(0);
        let clock = Arc::new(ManualClock::at(START));
        drop(start(only_3(store.store.clone()), folder.path(), clock.clone()).unwrap());
        let bound = store.record(3).bound;
        if damaged {
            let path = folder.path().join("default-3.state");
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[100] ^= 1; // in the first half of two
            std::fs::write(path, bytes).unwrap();
        }
        clock.advance(Duration::from_secs(1));
        let service = start(only_3(store.store.clone()), folder.path(), clock.clone()).unwrap();
        let id = service.exp_id(service.gen_id().unwrap()).unwrap();
        assert!((id.time << 20 | id.seq) >= bound);
        // It was given back at once, so the bound is in the first tick.
        let first = IdMeta::MAX_PEAK.tick_at(START).unwrap();
        assert_eq!(id.time - first, if damaged { 1 + 5 } else { 1 });
    }
}

/// Another starting process of this host holds the state files for a moment.
#[test]
fn a_state_file_that_is_locked_for_a_moment_is_waited_for() {
    for (freed_at, expected) in [(1, Ok(())), (5, Ok(())), (6, Err(5))] {
        let folder = vesta_testkit::fast_folder();
        let path = folder.path().to_owned();
        let theirs = Waits::new(u64::MAX, || ());
        let other = start(only_3(Arc::new(MemoryStore::new())), &path, theirs).unwrap();
        let clock = Waits::new(freed_at, move || {
            drop(other);
            for file in std::fs::read_dir(path).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        });
        let store = Arc::new(MemoryStore::new());
        match (start(only_3(store), folder.path(), clock.clone()), expected) {
            (Ok(service), Ok(())) => {
                assert_eq!((service.machine(), clock.count()), (3, freed_at));
                let waited = clock.wall().since(START).unwrap();
                assert_eq!(waited, freed_at * 100, "milliseconds");
            }
            (Err(BuildError::Exhausted { .. }), Err(waits)) => {
                assert_eq!(clock.count(), waits);
            }
            (result, _) => panic!("freed at {freed_at}: {result:?}"),
        }
    }
}

#[test]
fn a_locked_state_file_is_not_reported_as_a_clock_problem() {
    let folder = vesta_testkit::fast_folder();
    let theirs = Arc::new(ManualClock::at(START));
    let _other = start(only_3(Arc::new(MemoryStore::new())), folder.path(), theirs).unwrap();
    let bound = IdMeta::MAX_PEAK
        .tick_at(UnixMillis(START.0 - 100_000))
        .unwrap()
        << 20;
    let store = Busy::with(Record {
        epoch: 1,
        bound,
        released: true,
        ..Record::default()
    });
    let clock = Arc::new(ManualClock::at(START));
    let error = start(only_3(store.store), folder.path(), clock).unwrap_err();
    let exhausted = matches!(error, BuildError::Exhausted { ahead: None, .. });
    assert!(exhausted, "{error}");
}

#[test]
fn a_reserved_machine_id_is_claimed_with_a_short_window() {
    let short = Timing {
        window: Duration::from_secs(4),
        takeover_grace: Duration::from_secs(12),
        ..Timing::FILE
    };
    for (timing, named, seconds) in [
        (Timing::NETWORK, true, 5),
        (Timing::NETWORK, false, 60),
        (Timing::IN_MEMORY, true, 5),
        (short, true, 4),
        (short, false, 4),
    ] {
        let folder = vesta_testkit::fast_folder();
        let records = Arc::new(MemoryStore::new());
        let store = Intercept::new(records.clone(), |request, store| request.send(store));
        let store = Arc::new(store.timing(timing));
        let source = match named {
            true => MachineSource::Reserved { store, id: 3 },
            false => only_3(store),
        };
        let service = start(source, folder.path(), Arc::new(ManualClock::at(START))).unwrap();
        let now = IdMeta::MAX_PEAK.tick_at(START).unwrap();
        let record = leases(&records).record(3).unwrap().unwrap();
        assert_eq!(
            record.bound >> 20,
            now + seconds,
            "{timing:?}, named: {named}"
        );
        service.gen_id().unwrap();
    }
}

#[test]
fn an_exhausted_machine_id_is_replaced_by_another() {
    let end = (IdMeta::MAX_PEAK.max(Field::Time) + 1) << 20;
    let record = Record {
        epoch: 1,
        bound: end,
        released: true,
        ..Record::default()
    };
    let spent = || Busy::with(record.clone()).store;
    let folder = vesta_testkit::fast_folder();
    let clock = Arc::new(ManualClock::at(START));
    let named = MachineSource::Reserved {
        store: spent(),
        id: 3,
    };
    let error = start(named, folder.path(), clock.clone()).unwrap_err();
    assert!(
        matches!(error, BuildError::Time(IdError::TimeExhausted)),
        "{error}"
    );
    let pool = MachineSource::Pool {
        store: spent(),
        range: Some(3..=4),
    };
    assert_eq!(start(pool, folder.path(), clock).unwrap().machine(), 4);
}

/// With a layout that counts seconds, the IDs of that second are used up for other hosts.
#[test]
fn a_machine_id_given_back_within_its_second_is_claimed_in_the_next() {
    for others in [0, 60] {
        let setting = Setting::new();
        let pool = |setting: &Setting| {
            let machine = MachineSource::Pool {
                store: setting.store.clone(),
                range: Some(3..=3 + others),
            };
            setting.builder().machine(machine).timing(Timing::NETWORK)
        };
        let busy: Vec<_> = (0..others)
            .map(|_| pool(&setting.elsewhere()).build().expect("unused"))
            .collect();
        let before = pool(&setting).build().expect("the last one");
        before.gen_id().expect("at once");
        before.close();
        let began = setting.clock.monotonic();
        let after = pool(&setting.elsewhere()).build().expect("given back");
        assert_eq!(after.machine(), before.machine());
        after.gen_id().expect("at once");
        let took = setting.clock.monotonic() - began;
        assert!(took <= Duration::from_millis(1500), "{took:?}");
        drop(busy);
    }
}

/// A machine ID that is given back ends the wait early, but not the watch over owners that may only be slow.
#[test]
fn an_expired_owner_is_watched_in_full_beside_one_that_gives_back() {
    let setting = Setting::new();
    let silent = setting.builder().timing(Timing::NETWORK).build().unwrap();
    silent.gen_id().unwrap();
    setting.clock.advance(Duration::from_secs(100)); // it was paused
    let other = setting.elsewhere();
    let both = |setting: &Setting| setting.builder().timing(Timing::NETWORK);
    let brief = both(&other).build().unwrap();
    brief.gen_id().unwrap();
    let next = match silent.machine() {
        3 => 4,
        _ => 3,
    };
    assert_eq!(brief.machine(), next);
    brief.close();
    // Somebody is faster when that machine ID becomes free.
    let (known, stolen) = (leases(&setting.memory), AtomicU64::new(0));
    let memory = setting.memory.clone();
    let store = Intercept::new(memory, move |request, store| {
        if let Request::Put { puts: [put], .. } = &request
            && put.key == next.to_string()
            && stolen.fetch_add(1, Ordering::Relaxed) == 0
        {
            let old = known.record(next)?.expect("it was given back");
            let taken = Record {
                owner: 9,
                epoch: old.epoch + 1,
                from: old.bound,
                bound: old.bound + (60 << 20),
                released: false,
                ..old.clone()
            };
            known.change(next, Some(&old), &taken)?;
        }
        request.send(store)
    });
    let began = setting.clock.monotonic();
    let last = setting.elsewhere();
    let machine = MachineSource::Pool {
        store: Arc::new(store.timing(Timing::NETWORK)),
        range: Some(3..=4),
    };
    let taken_over = both(&last).machine(machine).build().expect("watched");
    assert_eq!(taken_over.machine(), silent.machine());
    let took = setting.clock.monotonic() - began;
    let watch = Timing::NETWORK.renew_every * 3 / 2;
    assert!(took >= watch, "{took:?}");
    assert!(took <= watch + Duration::from_secs(1), "{took:?}");
}

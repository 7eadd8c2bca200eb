//! The host's record of its numbers across restarts, and stores that report that they may forget.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesta_numbers::segment::{SegmentBuilder, SegmentService};
use vesta_service::ErrorKind;
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;

use crate::stores::{TestStore, next, row};

const SECOND: Duration = Duration::from_secs(1);

fn builder(store: &Arc<TestStore>, clock: &ManualClock) -> SegmentBuilder {
    SegmentService::builder(store.clone())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
}

fn remembering(store: &Arc<TestStore>, clock: &ManualClock, folder: &Path) -> SegmentService {
    builder(store, clock).state_dir(folder).build().unwrap()
}

fn clock() -> ManualClock {
    ManualClock::at(UnixMillis(1_700_000_000_000))
}

/// Ends a service without closing it, as a kill does; only its lock is released.
fn kill(service: SegmentService, store: &TestStore) {
    store.set(crate::stores::Mood::Away); // nothing is given back
    let files = std::fs::read_dir(FOLDER.with(|it| it.borrow().clone()))
        .unwrap()
        .flatten();
    let kept: Vec<_> = files
        .map(|file| (file.path(), std::fs::read(file.path()).unwrap()))
        .collect();
    drop(service);
    for (path, text) in kept {
        std::fs::write(path, text).unwrap();
    }
    store.set(crate::stores::Mood::Good);
}

thread_local! {
    static FOLDER: std::cell::RefCell<std::path::PathBuf> = std::cell::RefCell::default();
}

#[test]
fn a_rolled_back_table_is_refused_even_after_a_restart() {
    for killed in [false, true] {
        let folder = vesta_testkit::fast_folder();
        FOLDER.with(|it| *it.borrow_mut() = folder.path().into());
        let store = TestStore::with(&[("orders", 10), ("users", 10)]);
        let clock = clock();
        let service = remembering(&store, &clock, folder.path());
        let mut last = 0;
        for _ in 0..500 {
            last = next(&service, "orders").unwrap();
        }
        next(&service, "users").unwrap();
        clock.advance(SECOND);
        service.maintain();
        if killed {
            kill(service, &store)
        } else {
            drop(service)
        }

        store.rows.put(row("orders", 400, 10)); // from a backup
        let service = remembering(&store, &clock, folder.path());
        service.refresh().unwrap();
        let fetches = store.fetches.load(Ordering::Relaxed);
        let error = next(&service, "orders").unwrap_err();
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ErrorKind::Unavailable, None)
        );
        assert!(
            error
                .to_string()
                .contains("set max_id of tag `orders` above"),
            "{error}"
        );
        assert_eq!(
            store.fetches.load(Ordering::Relaxed),
            fetches,
            "it takes nothing from that store"
        );
        assert!(next(&service, "users").is_ok(), "a healthy tag is served");
        store.rows.put(row("orders", 10_000, 10));
        service.refresh().unwrap();
        assert!(next(&service, "orders").unwrap() >= 10_000, "after {last}");
    }
}

#[test]
fn numbers_given_back_are_not_missed_after_a_restart() {
    let folder = vesta_testkit::fast_folder();
    let store = TestStore::with(&[("orders", 1000)]);
    let clock = clock();
    let mut expected = 1;
    for round in 0..20 {
        // Two servers of one host share the folder.
        let one = remembering(&store, &clock, folder.path());
        let other = remembering(&store, &clock, folder.path());
        assert_eq!(next(&one, "orders").unwrap(), expected);
        clock.advance(SECOND);
        one.maintain();
        let mut last = next(&other, "orders").unwrap();
        for _ in 0..round * 100 {
            last = next(&other, "orders").unwrap();
        }
        drop(other);
        let mut number = next(&one, "orders").unwrap();
        while number <= last {
            number = next(&one, "orders").unwrap();
        }
        drop(one);
        expected = number + 1;
    }
}

#[test]
fn numbers_do_not_wait_for_the_local_record() {
    let folder = vesta_testkit::fast_folder();
    let store = TestStore::with(&[("orders", 1)]);
    let clock = clock();
    let service = remembering(&store, &clock, folder.path());
    let files = || {
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        let texts = files.filter(|file| file.path().extension().is_some_and(|it| it == "ends"));
        texts
            .map(|file| std::fs::read_to_string(file.path()).unwrap())
            .collect::<String>()
    };
    for _ in 0..1000 {
        next(&service, "orders").unwrap();
    }
    assert_eq!(
        files(),
        "",
        "it is written together with all ranges of the second"
    );
    clock.advance(SECOND);
    service.maintain();
    assert!(files().contains(r#""orders":""#), "{}", files());
}

#[test]
fn a_store_that_may_forget_is_reported_and_refused_on_request() {
    let why = "it has asynchronous replicas";
    for required in [false, true] {
        let store = TestStore::with(&[("orders", 10)]);
        let clock = clock();
        let service = builder(&store, &clock)
            .require_durable(required)
            .build()
            .unwrap();
        assert_eq!(next(&service, "orders").unwrap(), 1);
        assert_eq!(service.doubt(), None);
        *store.doubt.lock() = Some(why.into());
        clock.advance(60 * SECOND);
        service.maintain();
        assert_eq!(service.doubt().as_deref(), Some(why));
        let numbers = (0..5000).map(|_| next(&service, "orders"));
        let refused = numbers
            .filter_map(Result::err)
            .fold(None, |_, error| Some(error));
        assert_eq!(
            refused.is_some(),
            required,
            "the available numbers are used up: {refused:?}"
        );
        let status = &service.status()[0];
        let said = status.not_ready_because.clone().unwrap_or_default();
        assert_eq!(said.contains(why), required, "{said}");
        if !required {
            service.close();
            assert_eq!(
                store.backs.load(Ordering::Relaxed),
                0,
                "nothing is given back to it"
            );
        }
        let late = builder(&store, &clock)
            .require_durable(required)
            .build()
            .unwrap();
        assert_eq!(next(&late, "orders").is_err(), required);
        *store.doubt.lock() = None;
        clock.advance(60 * SECOND);
        late.maintain();
        assert!(next(&late, "orders").is_ok(), "at {:?}", clock.monotonic());
    }
}

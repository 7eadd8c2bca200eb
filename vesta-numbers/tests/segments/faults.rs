//! Unreachable, slow, forgetful and broken stores, and the recovery from them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesta_numbers::segment::SegmentStore as _;
use vesta_service::clock::Clock as _;
use vesta_service::{ErrorKind, IdError};

use crate::stores::{Mood, Seen, TestStore, batch, by_hand, next, patient, row, try_next};

#[test]
fn an_unreachable_store_is_waited_for_at_the_start_and_then_used() {
    let store = TestStore::with(&[("orders", 10)]);
    store.set(Mood::Away);
    let (service, clock) = by_hand(&store);
    assert_eq!(
        try_next(&service, "orders").unwrap_err().kind(),
        ErrorKind::AwaitingLease
    );
    let before = clock.monotonic();
    let error = next(&service, "orders").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.retry_after().is_some());
    assert!(
        clock.monotonic() - before <= Duration::from_secs(2),
        "max_wait holds"
    );
    assert!(
        service.not_ready_because().unwrap().contains("secret-host"),
        "for operators"
    );
    store.set(Mood::Good);
    assert_eq!(
        next(&service, "orders").unwrap(),
        1,
        "the wait lasts until the store is back"
    );
    assert_eq!(service.not_ready_because(), None);
}

#[test]
fn calls_recover_within_a_second_after_an_outage_of_20_seconds() {
    for mood in [Mood::Away, Mood::LosesReplies, Mood::Refuses] {
        let store = TestStore::with(&[("orders", 1000)]);
        let (service, clock) = by_hand(&store);
        let mut last = 0;
        let mut take = || {
            let number = next(&service, "orders")?;
            assert!(number > last, "{number} after {last}");
            last = number;
            Ok::<_, IdError>(())
        };
        for _ in 0..5000 {
            clock.advance(Duration::from_micros(100));
            take().unwrap();
            service.maintain();
        }
        store.set(mood);
        let (went_away, mut errors) = (clock.monotonic(), 0);
        while clock.monotonic() - went_away < Duration::from_secs(20) {
            clock.advance(Duration::from_micros(100));
            service.maintain();
            if let Err(error) = take() {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                assert!(!error.to_string().contains("secret-host"), "{error}");
                errors += 1;
            }
        }
        assert!(errors > 0, "the available numbers do not last for 20 s");
        let status = &service.status()[0];
        assert!(
            status.fetches_failed > 10 && status.not_ready_because.is_some(),
            "{status:?}"
        );

        store.set(Mood::Good);
        clock.advance(Duration::from_secs(1));
        service.maintain();
        take().unwrap();
        assert_eq!(service.status()[0].not_ready_because, None);
        assert!(service.status()[0].last_error.is_some());
    }
}

#[test]
fn ten_thousand_lost_replies_repeat_nothing() {
    let store = TestStore::with(&[("orders", 5)]);
    let (service, clock) = by_hand(&store);
    let seen = Seen::below(1 << 27);
    for round in 0..10_000 {
        store.set(Mood::LosesReplies);
        let _ = try_next(&service, "orders").map(|number| assert!(seen.is_new(number)));
        clock.advance(Duration::from_secs(1));
        service.maintain();
        store.set(Mood::Good);
        for _ in 0..round % 30 {
            assert!(seen.is_new(next(&service, "orders").unwrap()));
        }
    }
    assert!(service.status()[0].fetches_failed > 1000);
}

#[test]
fn a_refused_request_is_waited_for_and_retried() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, clock) = by_hand(&store);
    service.refresh().unwrap();
    store.set(Mood::Refuses);
    let _ = try_next(&service, "orders");
    service.maintain();
    let error = next(&service, "orders").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.retry_after().is_some(), "it may be repaired by then");
    assert_eq!(
        service.status()[0].not_ready_because.as_deref(),
        Some("table leaf_alloc does not exist")
    );
    assert!(
        service
            .segment("users")
            .unwrap_err()
            .retry_after()
            .is_some()
    );
    store.set(Mood::Good);
    clock.advance(Duration::from_secs(1));
    service.maintain();
    assert_eq!(next(&service, "orders").unwrap(), 1);
}

#[test]
fn a_panicking_store_counts_as_failed() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, clock) = by_hand(&store);
    service.refresh().unwrap();
    store.set(Mood::Panics);
    assert_eq!(
        next(&service, "orders").unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    assert!(service.refresh().is_err());
    store.set(Mood::Good);
    clock.advance(Duration::from_secs(1));
    assert_eq!(next(&service, "orders").unwrap(), 1);
}

/// A panic in a thread of the service leaves thread and tag usable, too.
#[test]
fn a_panic_outside_the_store_leaves_no_tag_stuck() {
    let store = TestStore::with(&[("orders", 10), ("users", 10)]);
    let service = patient(&store)
        .max_wait(Duration::from_millis(1))
        .build()
        .unwrap();
    service.refresh().unwrap();
    let waiting = patient(&store).build().unwrap();
    waiting.refresh().unwrap();
    store.set(Mood::PanicsWhenNamed);
    for _ in 0..20 {
        // More often than the number of threads.
        let _ = next(&service, "orders");
    }
    let orders = waiting.segment("orders").unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| orders.next());
        while orders.status().fetches_failed == 0 {
            std::thread::yield_now();
        }
        assert!(
            orders.status().not_ready_because.is_some(),
            "a health check sees it"
        );
        store.set(Mood::Good);
        let _ = call.join().unwrap(); // a panic counts as an unreachable store
        while orders.try_next().is_err() {
            std::thread::yield_now();
        }
    });
}

#[test]
fn known_tags_stay_usable_when_the_table_is_unreadable() {
    let store = TestStore::with(&[("orders", 1000)]);
    let (service, clock) = by_hand(&store);
    next(&service, "orders").unwrap();
    store.set(Mood::Away);
    clock.advance(Duration::from_secs(300));
    service.maintain();
    assert!(service.refresh().is_err());
    assert!(next(&service, "orders").is_ok());
    assert_eq!(
        next(&service, "users").unwrap_err().kind(),
        ErrorKind::Unavailable,
        "it may or may not exist"
    );
    assert!(service.last_refresh_age().unwrap() >= Duration::from_secs(300));
}

#[test]
fn a_restored_store_is_refused_until_repaired() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, _) = by_hand(&store);
    let mut last = 0;
    for _ in 0..1000 {
        last = next(&service, "orders").unwrap();
    }
    store.rows.put(row("orders", 1, 10));
    let error = loop {
        match next(&service, "orders") {
            Ok(number) => {
                assert!(number > last, "{number} after {last}");
                last = number;
            }
            Err(error) => break error,
        }
    };
    assert_eq!(
        (error.kind(), error.retry_after()),
        (ErrorKind::Unavailable, None)
    );
    let fetches = store.fetches.load(Ordering::Relaxed);
    assert!(next(&service, "orders").is_err());
    service.refresh().unwrap();
    assert!(next(&service, "orders").is_err());
    assert_eq!(
        store.fetches.load(Ordering::Relaxed),
        fetches,
        "fetches do not raise it"
    );
    let above = i64::try_from(last).unwrap() + 1_000_000;
    store.rows.put(row("orders", above, 10));
    service.refresh().unwrap();
    assert_eq!(next(&service, "orders").unwrap(), above.unsigned_abs());
}

/// Its error says what to do; no call should have to wait for the next minute's read after that.
#[test]
fn a_tag_set_right_serves_the_next_call_after_a_second() {
    let second = Duration::from_secs(1);
    let store = TestStore::with(&[("orders", 10)]);
    let (service, clock) = by_hand(&store);
    let last = batch(&service, "orders", 1000).unwrap()[999];
    store.rows.put(row("orders", 1, 10));
    while next(&service, "orders").is_ok() {}
    let above = last + 1_000_000;
    store
        .rows
        .put(row("orders", i64::try_from(above).unwrap(), 10));
    clock.advance(second);
    assert!(
        next(&service, "orders").is_err(),
        "this call has it looked at"
    );
    service.maintain();
    assert_eq!(next(&service, "orders").unwrap(), above);
    // A tag that has reached its end, too. A flood of calls reads the table once a second.
    store.rows.put(vesta_numbers::segment::SegmentTag {
        last: Some(above + 5),
        ..row("orders", i64::try_from(above).unwrap() + 10, 10)
    });
    clock.advance(second);
    service.refresh().unwrap();
    let error = loop {
        match next(&service, "orders") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::UsedUp);
    let above = above + 1_000_000;
    store
        .rows
        .put(row("orders", i64::try_from(above).unwrap(), 10));
    clock.advance(second);
    assert!((0..9).all(|_| next(&service, "orders").is_err()));
    service.maintain();
    assert_eq!(next(&service, "orders").unwrap(), above);
}

#[test]
fn a_refused_batch_of_a_tag_that_ends_loses_nothing() {
    let store = TestStore::with(&[]);
    store.rows.put(vesta_numbers::segment::SegmentTag {
        last: Some(15),
        ..row("orders", 1, 10)
    });
    let (service, _) = by_hand(&store);
    assert_eq!(batch(&service, "orders", 10).unwrap().len(), 10);
    for _ in 0..2 {
        let error = batch(&service, "orders", 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UsedUp);
    }
    assert_eq!(batch(&service, "orders", 5).unwrap(), [11, 12, 13, 14, 15]);
    assert_eq!(service.status()[0].lost_total, 0);
}

#[test]
fn a_hanging_fetch_does_not_delay_other_tags() {
    let tags = [("a", 10), ("b", 10), ("c", 10), ("d", 10), ("e", 10)];
    let store = TestStore::with(&tags);
    let service = patient(&store).build().unwrap();
    service.refresh().unwrap();
    for key in ["a", "b", "c"] {
        store.close_gate(key);
        assert_eq!(
            try_next(&service, key).unwrap_err().kind(),
            ErrorKind::AwaitingLease
        );
    }
    store.wait_for_waiting(3);
    for _ in 0..1000 {
        next(&service, "d").unwrap();
        next(&service, "e").unwrap();
    }
    for key in ["a", "b", "c"] {
        assert!(try_next(&service, key).is_err());
        store.open_gate(key);
        assert_eq!(next(&service, key).unwrap(), 1);
    }
}

#[test]
fn a_late_reply_is_used_normally() {
    let store = TestStore::with(&[("orders", 10)]);
    let service = patient(&store).build().unwrap();
    assert_eq!(next(&service, "orders").unwrap(), 1);
    store.close_gate("orders");
    let orders = service.segment("orders").unwrap();
    while orders.try_next().is_ok() {}
    store.wait_for_waiting(1);
    store.rows.next_range("orders", 1_000_000).unwrap(); // other processes continue meanwhile
    store.open_gate("orders");
    assert!(orders.next().unwrap() > 1_000_000);
}

#[test]
fn closing_ends_waiting_calls_without_waiting_for_the_store() {
    let store = TestStore::with(&[("orders", 10), ("users", 1000)]);
    store.close_gate("orders");
    let service = Arc::new(patient(&store).build().unwrap());
    let users = service.segment("users").unwrap();
    users.next().unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| next(&service, "orders")))
            .collect();
        store.wait_for_waiting(1);
        service.close();
        for waiter in waiters {
            assert_eq!(
                waiter.join().unwrap().unwrap_err().kind(),
                ErrorKind::Sealed
            );
        }
    });
    assert_eq!(
        users.next().unwrap_err().kind(),
        ErrorKind::Sealed,
        "available numbers do not count"
    );
    assert_eq!(users.next_runs(3).unwrap_err().kind(), ErrorKind::Sealed);
    assert_eq!(
        next(&service, "other").unwrap_err().kind(),
        ErrorKind::Sealed
    );
    assert!(service.not_ready_because().is_some());
    store.open_gate("orders");
    service.close();
}

#[test]
fn a_dropped_service_leaves_nothing_behind() {
    let (sender, gone) = std::sync::mpsc::channel();
    let store = TestStore::with(&[("orders", 10), ("users", 10)]);
    *store.gone.lock() = Some(sender);
    let service = patient(&store).build().unwrap();
    for _ in 0..1000 {
        next(&service, "orders").unwrap();
        next(&service, "users").unwrap();
    }
    drop((service, store));
    let ended = gone.recv_timeout(Duration::from_secs(300));
    assert!(ended.is_ok(), "its threads still hold the store");
}

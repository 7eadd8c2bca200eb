//! Bursts wait for the database, and stop waiting when it has answered.

use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesta_service::clock::Clock as _;
use vesta_service::{ErrorKind, IdError};

use crate::stores::{Mood, Seen, TestStore, batch, by_hand, ids, next, patient};

#[test]
fn a_burst_waits_for_the_database_and_no_call_fails() {
    let store = TestStore::with(&[("orders", 2)]);
    store.close_gate("orders");
    let service = patient(&store).build().unwrap();
    let seen = Seen::below(1 << 24);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let number = next(&service, "orders").unwrap();
                    assert!(seen.is_new(number), "duplicate: {number}");
                }
            });
        }
        store.wait_for_waiting(1);
        assert_eq!(
            store.fetches.load(Ordering::Relaxed),
            1,
            "64 callers are one request"
        );
        store.open_gate("orders");
    });
    assert_eq!(seen.count(), 64 * 50);
}

#[test]
fn available_numbers_are_issued_while_the_next_are_fetched() {
    let store = TestStore::with(&[("orders", 1000)]);
    let service = patient(&store).build().unwrap();
    let orders = service.segment("orders").unwrap();
    orders.next().unwrap();
    store.close_gate("orders");
    // A tenth is used; the next range is requested and does not come.
    for expected in 2..=1000 {
        match orders.try_next() {
            Ok(number) => assert_eq!(number, expected),
            Err(error) => panic!("{expected}: {error}"),
        }
    }
    store.wait_for_waiting(1);
    let error = orders.try_next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AwaitingLease);
    assert!(
        error
            .retry_after()
            .is_some_and(|after| after > Duration::ZERO)
    );
    store.open_gate("orders");
    assert_eq!(orders.next().unwrap(), 1001);
}

#[test]
fn a_batch_larger_than_the_available_numbers_is_filled() {
    let store = TestStore::with(&[("orders", 10)]);
    let service = patient(&store).build().unwrap();
    let filled = batch(&service, "orders", 1_000_000).unwrap();
    assert_eq!(filled.len(), 1_000_000);
    assert!(filled.is_sorted_by(|a, b| a < b));
    assert!(batch(&service, "orders", 0).unwrap().is_empty());
}

#[test]
fn calls_without_waiting_return_the_available_numbers() {
    let store = TestStore::with(&[("orders", 1000)]);
    let (service, _) = by_hand(&store);
    assert!(matches!(
        service.try_segment("orders"),
        Err(IdError::NotReady(_))
    ));
    service.maintain();
    let orders = service.try_segment("orders").unwrap();
    assert!(matches!(
        orders.try_next_run(5000),
        Err(IdError::NotReady(_))
    ));
    service.maintain();
    let runs = [(); 4].map(|()| orders.try_next_run(5000).unwrap());
    assert_eq!(ids(&runs), (1..=1000).collect::<Vec<_>>());
    let error = orders.try_next_run(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    service.maintain();
    let run = orders.try_next_run(u32::MAX).unwrap();
    assert_eq!((run.first, run.step), (1001, 1));
    assert!(run.count >= 100);
}

#[test]
fn a_failed_batch_gives_back_its_numbers_unless_later_ones_were_taken() {
    let store = TestStore::with(&[("orders", 1000)]);
    let (service, clock) = by_hand(&store);
    next(&service, "orders").unwrap();
    store.set(Mood::Away);
    let before = clock.monotonic();
    let error = batch(&service, "orders", 5000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        clock.monotonic() - before <= Duration::from_secs(2),
        "max_wait is for the whole call"
    );
    assert_eq!(service.status()[0].lost_total, 0);
    assert_eq!(next(&service, "orders").unwrap(), 2, "it was given back");
    store.set(Mood::Good);
    clock.advance(Duration::from_secs(1));
    let numbers = batch(&service, "orders", 5000).unwrap();
    assert!(
        numbers.is_sorted() && numbers[0] == 3,
        "{:?}",
        &numbers[..9]
    );
}

#[test]
fn many_threads_see_a_new_tag_at_once() {
    let store = TestStore::with(&[]);
    let service = patient(&store).build().unwrap();
    service.refresh().unwrap();
    let barrier = Barrier::new(5);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert!(next(&service, "orders").is_err());
                barrier.wait();
                barrier.wait();
                next(&service, "orders").unwrap();
            });
        }
        barrier.wait();
        service
            .create(&vesta_numbers::segment::NewSegmentTag::new("orders", 10).unwrap())
            .unwrap();
        barrier.wait();
    });
}

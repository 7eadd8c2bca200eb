//! The end of a service: unissued numbers are given back, and nothing waits for an unreachable store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vesta_numbers::segment::{NextRange, SegmentService, SegmentStore, SegmentTag};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::ErrorKind;
use vesta_service::options::Drive;

use crate::stores::{Mood, Seen, TestStore, by_hand, next, patient};

fn max_id(store: &TestStore) -> i64 {
    store.rows.tags().unwrap()[0].max_id
}

#[test]
fn a_clean_stop_loses_nothing_if_no_range_was_taken_since() {
    let store = TestStore::with(&[("orders", 1000)]);
    let mut expected = 1;
    for count in [1, 250, 1000, 1, 3000] {
        let service = patient(&store).build().unwrap();
        for _ in 0..count {
            assert_eq!(next(&service, "orders").unwrap(), expected, "no gap");
            expected += 1;
        }
        service.close();
        assert_eq!(max_id(&store).unsigned_abs(), expected);
        assert_eq!(
            next(&service, "orders").unwrap_err().kind(),
            ErrorKind::Sealed
        );
    }
}

#[test]
fn a_tag_ends_at_its_last_number_on_every_server_until_it_is_raised() {
    let rows = Arc::new(MemorySegmentStore::new());
    let ending = |last| SegmentTag {
        last,
        ..SegmentTag::new("orders", 1, 10)
    };
    rows.put(ending(Some(95)));
    let service = || {
        let store: Arc<dyn SegmentStore> = rows.clone();
        SegmentService::builder(store)
            .drive(Drive::ByHand)
            .build()
            .expect("a service")
    };
    let services = [service(), service()];
    let mut seen = Vec::new();
    for service in services.iter().cycle() {
        match next(service, "orders") {
            Ok(number) => seen.push(number),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::UsedUp);
                let said = error.to_string();
                assert!(
                    said.contains("tag `orders` has used up its numbers: 95 was the last"),
                    "{said}"
                );
                break;
            }
        }
    }
    // The other one may still have some.
    seen.extend(
        services
            .iter()
            .flat_map(|it| std::iter::from_fn(|| next(it, "orders").ok())),
    );
    seen.sort_unstable();
    assert_eq!(seen, (1..=95).collect::<Vec<_>>());
    for service in &services {
        let status = &service.status()[0];
        assert_eq!((status.last, status.used_percent), (Some(95), Some(100)));
    }
    rows.put(SegmentTag {
        max_id: 96,
        ..ending(Some(97))
    });
    services[0].refresh().expect("memory answers");
    assert_eq!(next(&services[0], "orders").expect("raised"), 96);
}

#[test]
fn dropping_a_service_gives_numbers_back_even_when_driven_by_hand() {
    let store = TestStore::with(&[("orders", 1000)]);
    let (service, _) = by_hand(&store);
    assert_eq!(next(&service, "orders").unwrap(), 1);
    drop(service);
    assert_eq!(max_id(&store), 2);
}

#[test]
fn ranges_taken_by_others_meanwhile_stay_theirs() {
    let store = TestStore::with(&[("orders", 1000)]);
    let (service, _) = by_hand(&store);
    assert_eq!(next(&service, "orders").unwrap(), 1);
    let others = store.rows.next_range("orders", 10).unwrap();
    service.close();
    let highest = max_id(&store).unsigned_abs();
    assert!(matches!(others, NextRange::Numbers(range) if range.end == highest));
}

#[test]
fn a_process_continues_where_another_gave_numbers_back() {
    let store = TestStore::with(&[("orders", 1000)]);
    let [(one, _), (other, _)] = [(); 2].map(|()| by_hand(&store));
    assert_eq!(next(&one, "orders").unwrap(), 1);
    let first = next(&other, "orders").unwrap();
    other.refresh().unwrap();
    one.refresh().unwrap(); // it reads the numbers that the other is about to give back
    other.close();
    let mut last = 1;
    for _ in 0..5000 {
        let number = next(&one, "orders").unwrap();
        assert!(number > last && number != first, "{number} after {last}");
        last = number;
    }
    assert_eq!(
        last, 5002,
        "every number but the one that the other gave out"
    );
}

#[test]
fn an_unreachable_store_is_asked_once_at_the_end() {
    for mood in [Mood::Away, Mood::Refuses, Mood::Panics] {
        let store = TestStore::with(&[("orders", 10), ("users", 10), ("items", 10)]);
        let (service, _) = by_hand(&store);
        for key in ["orders", "users", "items"] {
            next(&service, key).unwrap();
        }
        store.set(mood);
        service.close();
        assert_eq!(store.backs.load(Ordering::Relaxed), 1, "{mood:?}");
    }
}

/// Numbers issued up to the end never overlap those issued by later processes.
#[test]
fn closing_under_load_repeats_nothing() {
    let store = TestStore::with(&[("orders", 10)]);
    let seen = Seen::below(1 << 24);
    for _ in 0..100 {
        let service = Arc::new(patient(&store).build().unwrap());
        let orders = service.segment("orders").unwrap();
        let enough = seen.count() + 256;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // Bounded, as the closing thread may have to wait for its turn.
                    let runs = std::iter::repeat_with(|| orders.next_run(3)).take(8192);
                    for run in runs.map_while(Result::ok) {
                        run.iter()
                            .for_each(|id| assert!(seen.is_new(id), "duplicate: {id}"));
                    }
                });
            }
            while seen.count() < enough {
                std::thread::yield_now();
            }
            service.close();
        });
        assert!(
            seen.is_new(match store.rows.next_range("orders", 1).unwrap() {
                NextRange::Numbers(range) => range.start,
                other => panic!("{other:?}"),
            })
        );
    }
    let lost = max_id(&store).unsigned_abs() - 1 - seen.count();
    println!("100 clean stops under load lost {lost} numbers");
}

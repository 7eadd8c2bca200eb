//! Tags that are added, changed, removed and used up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vesta_intf::UnixMillis;
use vesta_numbers::Created;
use vesta_numbers::segment::{KvSegments, NewSegmentTag, SegmentService, SegmentStore as _};
use vesta_service::clock::Clock as _;
use vesta_service::lease::StoreError;
use vesta_service::options::Drive;
use vesta_service::testing::{Intercept, ManualClock, MemoryStore, Request};
use vesta_service::{ErrorKind, IdError};

use crate::stores::{Seen, TestStore, batch, by_hand, next, patient, row, run, try_next};

const MINUTE: Duration = Duration::from_secs(60);

fn kind<T: std::fmt::Debug>(result: Result<T, IdError>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn an_unknown_tag_is_not_found_and_costs_the_store_nothing() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, _) = by_hand(&store);
    next(&service, "orders").unwrap();
    let asked = (
        store.fetches.load(Ordering::Relaxed),
        store.reads.load(Ordering::Relaxed),
    );
    for _ in 0..100 {
        let error = next(&service, "no-such-tag").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(
            error.to_string(),
            "segment tag `no-such-tag` does not exist"
        );
        assert_eq!(kind(try_next(&service, "Orders")), ErrorKind::NotFound);
        assert_eq!(kind(batch(&service, "", 5)), ErrorKind::Invalid);
        assert_eq!(kind(run(&service, "x", 5)), ErrorKind::NotFound);
        assert_eq!(kind(service.segment("x")), ErrorKind::NotFound);
    }
    let now = (
        store.fetches.load(Ordering::Relaxed),
        store.reads.load(Ordering::Relaxed),
    );
    assert_eq!(now, asked);
}

#[test]
fn a_new_tag_is_found_on_first_use() {
    let store = TestStore::with(&[]);
    let (service, clock) = by_hand(&store);
    assert_eq!(kind(next(&service, "orders")), ErrorKind::NotFound);
    store.rows.put(row("orders", 500, 10));
    clock.advance(Duration::from_millis(1));
    let before = clock.monotonic();
    assert_eq!(
        next(&service, "orders").unwrap(),
        500,
        "the call waits for the next read"
    );
    assert!(clock.monotonic() - before <= Duration::from_secs(1));

    store.rows.put(row("users", 1, 10));
    service.refresh().unwrap();
    assert_eq!(next(&service, "users").unwrap(), 1);
}

#[test]
fn a_flood_of_unknown_tags_costs_one_read_a_second() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, clock) = by_hand(&store);
    next(&service, "orders").unwrap();
    let (before, began) = (store.reads.load(Ordering::Relaxed), clock.monotonic());
    for number in 0..10_000 {
        clock.advance(Duration::from_millis(1));
        let error = service
            .try_segment(&format!("unknown-{number}"))
            .unwrap_err();
        let waits = error.kind() == ErrorKind::AwaitingLease && error.retry_after().is_some();
        assert!(waits || error.kind() == ErrorKind::NotFound, "{error}");
        service.maintain();
    }
    let seconds = (clock.monotonic() - began).as_secs();
    let looks = store.reads.load(Ordering::Relaxed) - before;
    assert!(
        (1..=seconds + 1).contains(&looks),
        "{looks} reads in {seconds} s"
    );
    store.set(crate::stores::Mood::Away);
    clock.advance(MINUTE);
    assert_eq!(
        kind(next(&service, "unknown")),
        ErrorKind::Unavailable,
        "it is unknown"
    );
}

#[test]
fn a_created_tag_is_known_at_once_and_an_existing_one_stays() {
    let store = TestStore::with(&[]);
    let (service, _) = by_hand(&store);
    let tag = NewSegmentTag::new("orders", 10).unwrap();
    let tag = tag
        .starting_at(7000)
        .unwrap()
        .described_as("order numbers")
        .unwrap();
    assert_eq!(service.create(&tag).unwrap(), Created::New);
    assert_eq!(service.create(&tag).unwrap(), Created::Same);
    assert_eq!(next(&service, "orders").unwrap(), 7000);
    assert_eq!(
        service
            .create(&NewSegmentTag::new("orders", 10).unwrap())
            .unwrap(),
        Created::Another
    );
    assert_eq!(next(&service, "orders").unwrap(), 7001);
    assert_eq!(
        service.status()[0].description.as_deref(),
        Some("order numbers")
    );
    let tags = service.tags().unwrap();
    assert_eq!(
        (tags.len(), tags[0].key.as_str(), tags[0].step),
        (1, "orders", 10)
    );
}

#[test]
fn tags_that_no_table_can_keep_are_refused() {
    let long = "x".repeat(129);
    for key in [
        "",
        " orders",
        "orders ",
        "a\nb",
        "a\0b",
        "a\u{202e}b",
        "a\u{2066}",
        &long,
    ] {
        assert_eq!(
            kind(NewSegmentTag::new(key, 10)),
            ErrorKind::Invalid,
            "{key:?}"
        );
    }
    for step in [0, 1 << 31, u64::MAX] {
        assert_eq!(
            kind(NewSegmentTag::new("orders", step)),
            ErrorKind::OutOfRange
        );
    }
    let tag = NewSegmentTag::new("é".repeat(128), (1 << 31) - 1).unwrap();
    assert_eq!(
        kind(tag.clone().starting_at((1 << 63) - 1)),
        ErrorKind::OutOfRange
    );
    assert_eq!(
        kind(tag.clone().described_as("x".repeat(257))),
        ErrorKind::Invalid
    );
    assert!(tag.starting_at((1 << 63) - 2).is_ok());
}

#[test]
fn a_removed_tag_stops_and_resumes_above_its_old_numbers() {
    let store = TestStore::with(&[("orders", 1000), ("users", 1000)]);
    let (service, clock) = by_hand(&store);
    let orders = service.segment("orders").unwrap();
    let last = orders.next().unwrap();
    store.rows.remove("orders");
    assert!(orders.try_next().is_ok(), "not yet known");
    clock.advance(MINUTE);
    service.maintain();
    for result in [orders.next(), orders.try_next(), next(&service, "orders")] {
        assert_eq!(kind(result), ErrorKind::NotFound);
    }
    assert!(next(&service, "users").is_ok());
    assert_eq!(
        service.status().len(),
        1,
        "only tags in the table are shown"
    );

    // If put back at its first start, it would repeat numbers; if put back higher, it continues.
    store.rows.put(row("orders", 1, 1000));
    service.refresh().unwrap();
    let error = orders.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error
            .to_string()
            .contains("set max_id of tag `orders` above"),
        "{error}"
    );
    store.rows.put(row("orders", 50_000, 1000));
    service.refresh().unwrap();
    assert!(last < 50_000);
    assert_eq!(orders.next().unwrap(), 50_000);
}

/// Also the numbers that are left: the first store gives them to others.
#[test]
fn tags_of_a_second_store_stop_once_it_is_known() {
    let second = Arc::new(AtomicBool::new(false));
    let known = second.clone();
    let store = Intercept::new(
        Arc::new(MemoryStore::new()),
        move |request, store| match request {
            Request::Doubt if known.load(Ordering::Relaxed) => {
                Err(StoreError::two_stores("h:1 has an older one"))
            }
            request => request.send(store),
        },
    );
    let store = Arc::new(KvSegments::new(Arc::new(store)));
    let tag = NewSegmentTag::new("orders", 1000).unwrap();
    assert!(store.create(&tag).unwrap());
    let clock = ManualClock::at(UnixMillis(0));
    let service = SegmentService::builder(store)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    let orders = service.segment("orders").unwrap();
    let _ = orders.try_next(); // asks for numbers
    service.maintain();
    orders.try_next().unwrap();
    second.store(true, Ordering::Relaxed);
    orders.try_next().expect("not yet known");
    clock.advance(MINUTE);
    service.maintain();
    let error = orders.try_next().unwrap_err();
    assert!(error.to_string().contains("TWO_STORES"), "{error}");
    let said = orders.status().not_ready_because.expect("not ready");
    assert!(said.contains("TWO_STORES"), "{said}");
}

#[test]
fn a_removed_tag_stops_when_a_fetch_finds_it_missing() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, _) = by_hand(&store);
    next(&service, "orders").unwrap();
    store.rows.remove("orders");
    let mut last = Ok(0);
    for _ in 0..40 {
        last = next(&service, "orders");
    }
    assert_eq!(kind(last), ErrorKind::NotFound);
}

#[test]
fn a_step_changed_in_the_table_is_adopted() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, clock) = by_hand(&store);
    let orders = service.segment("orders").unwrap();
    orders.next().unwrap();
    assert_eq!((orders.status().table_step, orders.status().step), (10, 10));
    let max_id = store.rows.tags().unwrap()[0].max_id;
    store.rows.put(row("orders", max_id, 5000));
    clock.advance(MINUTE);
    service.maintain();
    assert_eq!(
        (orders.status().table_step, orders.status().step),
        (5000, 5000)
    );
}

#[test]
fn the_end_of_63_bits_is_an_error_and_does_not_wrap() {
    let store = TestStore::with(&[]);
    let end = i64::MAX;
    store.rows.put(row("orders", end - 25, 10));
    let (service, clock) = by_hand(&store);
    let first = u64::try_from(end - 25).unwrap();
    let mut numbers = Vec::new();
    let error = loop {
        match next(&service, "orders") {
            Ok(number) => numbers.push(number),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::UsedUp);
    assert_eq!(
        error.to_string(),
        "tag `orders` has used up its 63-bit numbers"
    );
    assert_eq!(
        numbers,
        (first..first + 20).collect::<Vec<_>>(),
        "as far as whole steps fit"
    );
    clock.advance(MINUTE);
    service.maintain();
    assert_eq!(kind(next(&service, "orders")), ErrorKind::UsedUp);
    assert_eq!(kind(batch(&service, "orders", 3)), ErrorKind::UsedUp);
    assert!(service.status()[0].not_ready_because.is_some());
}

#[test]
fn invalid_rows_are_named_and_do_not_affect_others() {
    let store = TestStore::with(&[("orders", 10)]);
    store.rows.put(row("no step", 1, 0));
    store.rows.put(row("negative", -5, 10));
    let (service, _) = by_hand(&store);
    assert_eq!(next(&service, "orders").unwrap(), 1);
    for key in ["no step", "negative"] {
        let error = next(&service, key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = format!(
            "the row of tag `{key}` needs whole numbers: a step above 0, a max_id not below"
        );
        assert_eq!(error.to_string(), text);
    }
    store.rows.put(row("no step", 1, 5));
    service.refresh().unwrap();
    assert_eq!(next(&service, "no step").unwrap(), 1);
}

#[test]
fn numbers_start_where_the_table_says_including_zero() {
    let store = TestStore::with(&[]);
    store.rows.put(row("zero", 0, 10));
    let (service, _) = by_hand(&store);
    assert_eq!(next(&service, "zero").unwrap(), 0);
    assert_eq!(run(&service, "zero", 5).unwrap().first, 1);
}

#[test]
fn the_status_reports_available_numbers_and_their_rate() {
    let store = TestStore::with(&[("orders", 1000)]);
    let (service, clock) = by_hand(&store);
    let orders = service.segment("orders").unwrap();
    let status = orders.status();
    assert_eq!(
        (status.current, status.fetches_ok, status.last_fetch_age),
        (None, 0, None)
    );

    for _ in 0..500 {
        clock.advance(Duration::from_millis(10));
        orders.next().unwrap();
        service.maintain();
    }
    clock.advance(Duration::from_secs(1));
    let status = orders.status();
    assert_eq!(status.key, "orders");
    assert_eq!((status.current, status.position), (Some(1..1001), 501));
    assert_eq!(status.next.len(), 1, "one step is enough at this pace");
    assert_eq!(status.next[0], 1001..2001);
    assert_eq!((status.taken_total, status.lost_total), (500, 0));
    assert_eq!(status.rate, 50); // 100 in 2 s since a new chunk was opened
    assert_eq!((status.fetches_ok, status.fetches_failed), (2, 0));
    assert!(status.last_fetch_age.is_some() && status.last_fetch_took.is_some());
    assert!(!status.fetching && status.not_ready_because.is_none() && status.last_error.is_none());
    assert_eq!(service.last_refresh_age(), Some(Duration::from_secs(6)));
}

#[test]
fn adding_and_removing_a_tag_under_load_repeats_nothing() {
    let store = TestStore::with(&[("orders", 10)]);
    let service = patient(&store).step_cap(1).build().unwrap();
    let seen = Seen::below(1 << 28);
    let over = AtomicBool::new(false);
    // Known before it is removed for the first time.
    let orders = service.segment("orders").unwrap();
    std::thread::scope(|scope| {
        let _end = AtTheEnd(&over); // also after a failure, or the threads would never end
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                while !over.load(Ordering::Relaxed) {
                    match orders.next() {
                        Ok(number) => {
                            assert!(number > last, "{number} after {last}");
                            assert!(seen.is_new(number), "duplicate: {number}");
                            last = number;
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
                    }
                }
            });
        }
        for _ in 0..300 {
            let mut row = store.rows.tags().unwrap().pop().unwrap();
            store.rows.remove("orders");
            service.refresh().unwrap();
            assert!(service.status().is_empty());
            assert_eq!(kind(next(&service, "orders")), ErrorKind::NotFound);
            row.max_id += 50_000; // above the ranges in flight
            store.rows.put(row);
            service.refresh().unwrap();
            assert!(seen.is_new(next(&service, "orders").unwrap()));
        }
    });
    assert!(seen.count() >= 300);
}

struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let store = TestStore::with(&[]);
    assert!(
        patient(&store)
            .step_cap(0)
            .build()
            .unwrap_err()
            .is_configuration()
    );
    assert!(
        patient(&store)
            .refresh_every(Duration::ZERO)
            .build()
            .is_err()
    );
}

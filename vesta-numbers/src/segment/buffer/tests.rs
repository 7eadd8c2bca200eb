//! The buffer compared with a model of a store, exhaustively at small sizes.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "ranges of numbers are what is meant"
)]

mod model;
mod pace;
mod strided;

use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;

use super::super::store::{MAX, NextRange};
use super::{Buffer, Health, IdError};
use model::{EVENTS, World, row};

/// Every sequence of six events, and the recovery after each of them.
#[test]
fn no_short_history_repeats_a_number_or_blocks_a_tag() {
    fn explore(world: &World, depth: usize, count: &mut u64) {
        for event in EVENTS {
            let mut next = world.clone();
            next.happen(event);
            *count += 1;
            match depth {
                1 => next.must_recover(),
                _ => explore(&next, depth - 1, count),
            }
        }
    }
    let mut count = 0;
    explore(&World::new(row(2, 1), 4), 6, &mut count);
    assert!(count > 1_000_000, "{count}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_long_history_repeats_a_number_or_blocks_a_tag(
        step in 1..50_i64,
        first in 0..1000_i64,
        cap in 1..5000_u64,
        events in proptest::collection::vec(proptest::sample::select(EVENTS.as_slice()), 1..600),
    ) {
        let mut world = World::new(row(step, first), cap);
        for event in events {
            world.happen(event);
        }
        world.must_recover();
    }
}

/// The next chunk, or the health of a tag without one.
fn next(buffer: &mut Buffer, now: Duration) -> Result<Range<u64>, Health> {
    buffer.next_chunk(now).map_err(|refusal| {
        let waiting_helps = refusal.retry_after().is_some() || buffer.failing_because().is_some();
        assert_eq!(waiting_helps, buffer.health == Health::Good, "{refusal:?}");
        buffer.health
    })
}

/// Fetches once, with this reply.
fn answered(buffer: &mut Buffer, reply: NextRange) -> Result<Range<u64>, Health> {
    let now = Duration::ZERO;
    let _ = buffer.next_chunk(now);
    assert!(buffer.ask(now));
    assert!(buffer.begin(now).is_some());
    buffer.on_reply(now, Ok(reply));
    next(buffer, now)
}

#[test]
fn the_next_range_is_requested_when_a_tenth_of_this_one_is_used() {
    let mut buffer = Buffer::new(&row(1000, 1), 1_000_000);
    let now = Duration::ZERO;
    assert_eq!(
        answered(&mut buffer, NextRange::Numbers(1..1001)),
        Ok(1..101)
    );
    assert!(!buffer.ask(now), "a range is available");
    assert_eq!(next(&mut buffer, now), Ok(101..401));
    assert!(buffer.ask(now));
    assert!(!buffer.ask(now), "one request at a time");
}

#[test]
fn nothing_is_fetched_for_an_unused_tag() {
    let mut buffer = Buffer::new(&row(1000, 1), 1_000_000);
    assert!(!buffer.ask(Duration::ZERO));
    assert_eq!(buffer.begin(Duration::ZERO), None);
}

#[test]
fn an_invalid_range_is_refused_and_requested_again() {
    for nonsense in [7..7, MAX - 10..MAX + 1] {
        let mut buffer = Buffer::new(&row(10, 1), 100);
        let refused = answered(&mut buffer, NextRange::Numbers(nonsense));
        assert!(refused == Err(Health::Good), "{refused:?}");
        assert!(
            buffer
                .failing_because()
                .is_some_and(vesta_service::lease::StoreError::is_permanent)
        );
        assert!(buffer.ask(Duration::from_secs(2)));
    }
}

#[test]
fn a_rolled_back_store_is_refused_until_it_is_above_everything() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    assert_eq!(
        answered(&mut buffer, NextRange::Numbers(101..111)),
        Ok(101..102)
    );
    let now = Duration::ZERO;
    for chunk in [102..105, 105..108, 108..111] {
        assert_eq!(next(&mut buffer, now), Ok(chunk));
    }
    assert_eq!(
        answered(&mut buffer, NextRange::Numbers(1..11)),
        Err(Health::WentBack)
    );
    for not_above in [11, 110, 111] {
        buffer.on_listed(&row(10, not_above));
        assert!(!buffer.ask(now), "{not_above}");
    }
    buffer.on_listed(&row(10, 112));
    assert_eq!(
        answered(&mut buffer, NextRange::Numbers(112..122)),
        Ok(112..113)
    );
}

#[test]
fn a_removed_and_recreated_tag_does_not_repeat_its_numbers() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    assert_eq!(answered(&mut buffer, NextRange::Numbers(1..11)), Ok(1..2));
    buffer.drop_all(Health::NoTag);
    assert_eq!(next(&mut buffer, Duration::ZERO), Err(Health::NoTag));
    buffer.on_listed(&row(10, 1));
    assert_eq!(
        answered(&mut buffer, NextRange::Numbers(1..11)),
        Err(Health::WentBack)
    );
}

#[test]
fn a_range_for_a_removed_tag_is_dropped() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    let now = Duration::ZERO;
    let _ = buffer.next_chunk(now);
    assert!(buffer.ask(now) && buffer.begin(now).is_some());
    buffer.drop_all(Health::NoTag);
    buffer.on_reply(now, Ok(NextRange::Numbers(1..11)));
    assert_eq!(next(&mut buffer, now), Err(Health::NoTag));
}

#[test]
fn a_tag_restored_while_a_fetch_missed_it_is_not_lost() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    let now = Duration::ZERO;
    let _ = buffer.next_chunk(now);
    assert!(buffer.ask(now) && buffer.begin(now).is_some());
    buffer.on_listed(&row(10, 1));
    buffer.on_reply(now, Ok(NextRange::NoTag));
    assert!(
        buffer.ask(now) && buffer.begin(now).is_some(),
        "it asks again"
    );
    buffer.on_reply(now, Ok(NextRange::NoTag));
    assert_eq!(next(&mut buffer, now), Err(Health::NoTag));
}

#[test]
fn an_invalid_row_is_named_and_used_once_repaired() {
    for bad in [row(0, 1), row(-5, 1), row(10, -1)] {
        let mut buffer = Buffer::new(&bad, 100);
        let refused = next(&mut buffer, Duration::ZERO);
        assert_eq!(refused, Err(Health::BadRow));
        assert!(!buffer.ask(Duration::ZERO));
        buffer.on_listed(&row(10, 1));
        assert_eq!(answered(&mut buffer, NextRange::Numbers(1..11)), Ok(1..2));
    }
}

#[test]
fn near_the_end_the_buffer_asks_for_less_then_reports_the_end() {
    let mut buffer = Buffer::new(&row(10, 1), 1000);
    let mut now = Duration::ZERO;
    // Three fetches in a row: the pace then requires several steps.
    for first in [1, 1001, 2001] {
        assert_eq!(
            answered(&mut buffer, NextRange::Numbers(first..first + 1000)),
            Ok(first..first + 100)
        );
        for _ in 0..3 {
            assert!(buffer.next_chunk(now).is_ok());
        }
    }
    assert!(buffer.ask(now));
    assert!(buffer.begin(now).is_some_and(|size| size > 10));
    buffer.on_reply(now, Ok(NextRange::UsedUp));
    assert!(buffer.ask(now), "the table's own step may still fit");
    assert_eq!(buffer.begin(now), Some(10));
    buffer.on_reply(now, Ok(NextRange::Numbers(MAX - 10..MAX)));
    assert_eq!(next(&mut buffer, now), Ok(MAX - 10..MAX - 9));
    while next(&mut buffer, now).is_ok() {}
    assert_eq!(buffer.closed_total, 3010);
    assert!(buffer.ask(now));
    assert_eq!(buffer.begin(now), Some(10));
    buffer.on_reply(now, Ok(NextRange::UsedUp));
    assert_eq!(next(&mut buffer, now), Err(Health::UsedUp));
    now += Duration::from_secs(3600);
    buffer.on_listed(&row(10, i64::MAX));
    assert!(!buffer.ask(now), "nothing is left");
    buffer.on_listed(&row(3, i64::MAX - 5));
    assert!(buffer.ask(now), "unless the step is made smaller");
}

#[test]
fn pauses_after_failures_grow_to_a_second_and_one_success_ends_them() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    let mut now = Duration::ZERO;
    let _ = buffer.next_chunk(now);
    let mut pauses = Vec::new();
    for _ in 0..40 {
        assert!(buffer.ask(now) && buffer.begin(now).is_some());
        let pause = buffer
            .on_reply(now, Err(model::no_answer()))
            .expect("a pause");
        assert!(
            matches!(buffer.next_chunk(now), Err(IdError::Unavailable { retry_after: Some(left), .. }) if left <= pause)
        );
        assert!(
            !buffer.ask(now + pause - Duration::from_nanos(1)),
            "not before the pause has passed"
        );
        pauses.push(pause.as_millis());
        now += pause;
    }
    assert_eq!(pauses[..6], [100, 200, 400, 800, 1000, 1000]);
    assert_eq!(pauses[39], 1000);
    assert!(buffer.ask(now) && buffer.begin(now).is_some());
    assert_eq!(buffer.on_reply(now, Ok(NextRange::Numbers(1..11))), None);
    assert!(buffer.failing_because().is_none());
    assert!(buffer.next_chunk(now).is_ok());
}

/// A closed buffer that had these ranges, of which callers took everything but `left`.
fn closed(given: &[Range<u64>], left: &[Range<u64>]) -> Buffer {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    for range in given {
        assert!(answered(&mut buffer, NextRange::Numbers(range.clone())).is_ok());
        while buffer.next_chunk(Duration::ZERO).is_ok() {}
    }
    buffer.drop_all(Health::Closed);
    left.iter()
        .rev()
        .for_each(|left| buffer.keep_unused(Some(left.clone())));
    buffer
}

#[test]
fn numbers_given_back_are_above_everything_issued() {
    for (given, left, expected) in [
        (&[1..11][..], &[5..11][..], Some(5..11)),
        (&[1..11], &[1..11], Some(1..11)),
        (&[1..11], &[], None),
        (&[1..11], &[5..10], None), // a caller took the last one
        (&[1..11, 11..21], &[5..11, 13..21], Some(13..21)),
        (&[1..11, 31..41], &[5..11, 31..41], Some(31..41)), // other processes have the numbers between
    ] {
        let mut buffer = closed(given, left);
        let end = expected
            .clone()
            .map_or(given.last().unwrap().end, |numbers| numbers.start);
        assert_eq!(buffer.given_out(), end);
        assert_eq!(buffer.give_back(), expected, "{given:?} {left:?}");
        assert_eq!(
            (buffer.give_back(), buffer.given_out()),
            (None, end),
            "only once"
        );
    }
}

#[test]
fn a_range_received_after_closing_is_given_back_too() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    let now = Duration::ZERO;
    assert!(answered(&mut buffer, NextRange::Numbers(1..11)).is_ok());
    assert!(next(&mut buffer, now).is_ok() && buffer.ask(now) && buffer.begin(now).is_some());
    buffer.drop_all(Health::Closed);
    buffer.keep_unused(Some(4..5)); // the rest of a chunk
    assert_eq!(buffer.give_back(), None, "a fetch is in flight");
    buffer.on_reply(now, Ok(NextRange::Numbers(11..21)));
    assert_eq!(buffer.give_back(), Some(4..21));
}

#[test]
fn an_unhealthy_tag_gives_nothing_back() {
    for health in [Health::NoTag, Health::WentBack, Health::BadRow] {
        let mut buffer = Buffer::new(&row(10, 1), 100);
        assert!(answered(&mut buffer, NextRange::Numbers(1..11)).is_ok());
        buffer.settle(health);
        buffer.drop_all(Health::Closed);
        buffer.keep_unused(Some(4..11));
        assert_eq!(buffer.give_back(), None);
    }
}

#[test]
fn numbers_given_back_by_others_do_not_look_like_a_rollback() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    assert_eq!(answered(&mut buffer, NextRange::Numbers(1..11)), Ok(1..2));
    // The table was at 21 when it was read; another process had 11 to 20 and gave back 13 to 20.
    buffer.on_listed(&row(10, 21));
    for chunk in [2..5, 5..8, 8..11] {
        assert_eq!(next(&mut buffer, Duration::ZERO), Ok(chunk));
    }
    assert_eq!(
        answered(&mut buffer, NextRange::Numbers(13..23)),
        Ok(13..14)
    );
}

#[test]
fn a_panic_during_a_fetch_counts_as_a_failure() {
    let mut buffer = Buffer::new(&row(10, 1), 100);
    let mut now = Duration::ZERO;
    assert!(buffer.next_chunk(now).is_err());
    assert_eq!(buffer.on_panic(now), None, "nothing was in flight");
    for began in [false, true] {
        assert!(buffer.ask(now) && (!began || buffer.begin(now).is_some()));
        now += buffer.on_panic(now).expect("a pause");
        assert!(buffer.failing_because().is_some());
    }
    assert!(buffer.ask(now));
}

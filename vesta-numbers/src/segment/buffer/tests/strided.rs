//! Tags of which the store has every n-th number, and ranges for other systems.

use std::time::Duration;

use super::super::super::key::Key;
use super::super::super::store::{LentRange, NextRange, SegmentTag};
use super::super::super::stride::Stride;
use super::*;
use vesta_service::lease::StoreError;

const NOW: Duration = Duration::ZERO;

fn strided(step: i64, stride: Stride) -> SegmentTag {
    SegmentTag {
        stride,
        ..row(step, 1)
    }
}

/// Fetches once for the key, with this reply.
fn fetch(key: &Key, reply: NextRange) {
    assert!(key.begin(NOW).is_some());
    key.change(NOW, |buffer| buffer.on_reply(NOW, Ok(reply)));
}

/// All available numbers, taken `want` at a time.
fn drain(key: &Key, want: u64, delta: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(run) = key.take(want).or_else(|| key.take_slowly(want, NOW).0.ok()) {
        let count = (run.end - run.start).div_ceil(delta);
        assert!((1..=want).contains(&count), "{run:?}");
        numbers.extend((0..count).map(|it| run.start + it * delta));
    }
    numbers
}

#[test]
fn callers_get_the_numbers_of_the_stride_and_no_others() {
    for delta in 1..=7 {
        for remainder in 0..delta {
            let stride = Stride { delta, remainder };
            for (start, size, want) in [
                (1, 1, 1),
                (1, 30, 1),
                (14, 97, 3),
                (1000, 1000, 1),
                (5, 64, 1000),
            ] {
                let key = Key::new(&strided(10, stride), 1_000_000);
                let _ = key.take_slowly(1, NOW);
                fetch(&key, NextRange::Strided(start..start + size, stride));
                let expected: Vec<_> = (start..start + size)
                    .filter(|it| it % delta == remainder)
                    .collect();
                assert_eq!(
                    drain(&key, want, delta),
                    expected,
                    "{stride:?} {start} {size}"
                );
                let counted = key.status(NOW).taken_total;
                assert_eq!(counted, expected.len() as u64, "{stride:?} {start} {size}");
            }
        }
    }
}

#[test]
fn the_remainder_of_a_row_may_change() {
    let key = Key::new(
        &strided(
            10,
            Stride {
                delta: 2,
                remainder: 0,
            },
        ),
        10,
    );
    let _ = key.take_slowly(1, NOW);
    fetch(
        &key,
        NextRange::Strided(
            1..11,
            Stride {
                delta: 2,
                remainder: 0,
            },
        ),
    );
    assert_eq!(drain(&key, 1, 2), [2, 4, 6, 8, 10]);
    fetch(
        &key,
        NextRange::Strided(
            11..21,
            Stride {
                delta: 2,
                remainder: 1,
            },
        ),
    );
    assert_eq!(drain(&key, 1, 2), [11, 13, 15, 17, 19]);
}

#[test]
fn an_invalid_or_changed_stride_stops_the_tag() {
    let three = Stride {
        delta: 3,
        remainder: 1,
    };
    for stride in [
        Stride {
            delta: 0,
            remainder: 0,
        },
        Stride {
            delta: 3,
            remainder: 3,
        },
    ] {
        let mut buffer = Buffer::new(&strided(10, stride), 10);
        assert_eq!(next(&mut buffer, NOW), Err(Health::BadStride), "{stride:?}");
        assert!(
            buffer
                .trouble()
                .expect("a reason")
                .contains("a delta above 0")
        );
    }
    let mut buffer = Buffer::new(&strided(10, three), 10);
    assert_eq!(
        answered(&mut buffer, NextRange::Strided(1..11, three)),
        Ok(1..4)
    );
    buffer.on_listed(&strided(
        10,
        Stride {
            delta: 2,
            remainder: 1,
        },
    ));
    while next(&mut buffer, NOW).is_ok() {}
    assert_eq!(next(&mut buffer, NOW), Err(Health::OtherDelta));
    let why = buffer.trouble().expect("a reason");
    assert!(why.contains("is no longer the 3 it started with"), "{why}");
    buffer.on_listed(&strided(10, three));
    assert_eq!(buffer.health, Health::Good, "it was set back");

    let mut buffer = Buffer::new(&strided(10, three), 10);
    let other = NextRange::Strided(
        1..11,
        Stride {
            delta: 2,
            remainder: 1,
        },
    );
    assert_eq!(
        answered(&mut buffer, other),
        Err(Health::OtherDelta),
        "before it was listed"
    );
}

#[test]
fn the_rests_of_several_ranges_are_given_back_as_one() {
    let stride = Stride {
        delta: 3,
        remainder: 1,
    };
    let mut buffer = Buffer::new(&strided(10, stride), 10);
    assert_eq!(
        answered(&mut buffer, NextRange::Strided(1..11, stride)),
        Ok(1..4)
    );
    assert_eq!(next(&mut buffer, NOW), Ok(4..7));
    assert!(buffer.ask(NOW) && buffer.begin(NOW).is_some());
    buffer.on_reply(NOW, Ok(NextRange::Strided(12..22, stride)));
    buffer.drop_all(Health::Closed);
    // Callers had 1 and 4; 7 and 10 are left of the first range, 13, 16, 19 of the second, whose 12 is
    // not in the stride.
    assert_eq!(buffer.give_back(), Some(7..22));
}

#[test]
fn ranges_are_lent_next_to_the_available_ones() {
    let mut buffer = Buffer::new(&row(10, 1), 10);
    assert_eq!(answered(&mut buffer, NextRange::Numbers(1..11)), Ok(1..2));
    assert_eq!(next(&mut buffer, NOW), Ok(2..5));
    assert!(buffer.ask(NOW) && buffer.begin(NOW).is_some());
    let (step, above) = buffer.before_lending().expect("good");
    assert_eq!((step, above), (10, 11));
    // The store answered the fetch first, but its reply arrives later.
    let lent = buffer
        .on_lent(above, Ok(NextRange::Numbers(21..31)))
        .expect("a range");
    assert_eq!(
        lent,
        LentRange {
            numbers: 21..31,
            stride: Stride::ONE
        }
    );
    buffer.on_reply(NOW, Ok(NextRange::Numbers(11..21)));
    assert_eq!(buffer.health, Health::Good);
    assert_eq!(buffer.before_lending().expect("good"), (10, 31));
    assert_eq!(buffer.remembered(), 31);
}

#[test]
fn a_rolled_back_store_is_detected_when_it_lends() {
    let mut buffer = Buffer::new(&row(10, 1), 10);
    for (above, start, good) in [(0, 1, true), (11, 11, true), (21, 11, false)] {
        assert_eq!(buffer.before_lending().expect("good").1, above);
        let reply = Ok(NextRange::Numbers(start..start + 10));
        let lent = buffer.on_lent(above, reply);
        assert_eq!(lent.is_ok(), good, "{lent:?}");
    }
    assert_eq!(buffer.health, Health::WentBack);
    let error = buffer
        .before_lending()
        .expect_err("an operator has to act")
        .to_string();
    assert!(
        error.contains("set max_id of tag `orders` above 21"),
        "{error}"
    );
}

#[test]
fn a_failed_lend_names_the_reason() {
    let mut buffer = Buffer::new(&row(10, 1), 10);
    let mut says = |reply| buffer.on_lent(0, reply).expect_err("no range").to_string();
    assert!(says(Ok(NextRange::NoTag)).contains("segment tag `orders`"));
    assert!(says(Ok(NextRange::UsedUp)).contains("used up its 63-bit numbers"));
    let error = StoreError::permanent("no");
    assert!(says(Err(error)).contains("the store returned no numbers for tag `orders`"));
    buffer.on_listed(&row(0, 1));
    assert!(buffer.before_lending().is_err());
}

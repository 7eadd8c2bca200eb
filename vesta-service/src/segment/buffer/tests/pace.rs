//! Sizes and moments of fetches: Leaf's rule, and a burst that waits for the database.

use std::time::Duration;

use proptest::prelude::*;

use super::super::super::store::NextRange;
use super::super::Buffer;
use super::super::plan::Plan;
use super::model::row;

const MINUTE: Duration = Duration::from_secs(60);

/// The sizes of fetches that are made so far apart, with a pace that needs only one step.
fn sizes(table_step: u64, cap: u64, apart: &[Duration]) -> Vec<u64> {
    let mut plan = Plan::new(table_step, cap);
    let mut now = Duration::ZERO;
    let sizes = apart.iter().map(|pause| {
        now += *pause;
        let size = plan.size(now, false);
        plan.fetched(now, now, size);
        size
    });
    sizes.collect()
}

#[test]
fn the_step_doubles_below_15_minutes_stays_up_to_30_and_is_halved_above() {
    let short = sizes(1000, 1_000_000, &[MINUTE; 14]);
    assert_eq!(short[..6], [1000, 1000, 2000, 4000, 8000, 16_000]);
    assert_eq!(short[10..13], [512_000, 1_000_000, 1_000_000]);
    assert_eq!(sizes(1000, 1_000_000, &[20 * MINUTE; 6]), [1000; 6]);

    let mut apart = vec![14 * MINUTE; 5]; // 1000, 1000, 2000, 4000, 8000
    apart.extend([31 * MINUTE; 5]);
    assert_eq!(sizes(1000, 1_000_000, &apart)[4..], [8000, 4000, 2000, 1000, 1000, 1000]);
}

#[test]
fn a_table_step_above_the_cap_stays() {
    assert_eq!(sizes(5000, 1000, &[MINUTE; 5]), [5000; 5]);
}

#[test]
fn the_steps_that_one_fetch_brought_are_counted_one_by_one() {
    let mut plan = Plan::new(1000, 1_000_000);
    for at in [0, 1] {
        plan.fetched(MINUTE * at, MINUTE * at, 1000);
    }
    plan.fetched(MINUTE * 2, MINUTE * 2, 8 * 2000); // eight steps of 2000
    assert_eq!(plan.step(MINUTE * (2 + 8 * 20)), 2000, "each lasted 20 minutes");
    assert_eq!(plan.step(MINUTE * (2 + 8 * 10)), 4000);
    assert_eq!(plan.step(MINUTE * (2 + 8 * 40)), 1000);
}

/// Callers that come `rate` times a second for `seconds`, whether or not they are served, and a
/// database that takes `fetch`. Returns how long each one waited, in the order of their coming.
fn waits(rate: u32, seconds: u32, step: i64, fetch: Duration) -> Vec<Duration> {
    let mut buffer = Buffer::new(&row(step, 1), 1_000_000);
    let mut next_range = 1;
    let (mut now, mut at_hand) = (Duration::ZERO, 0);
    let mut under_way: Option<(Duration, u64)> = None;
    let mut waits = Vec::new();
    let mut queued = false;
    for number in 0..rate * seconds {
        let came = Duration::from_secs(1) * number / rate;
        now = now.max(came);
        loop {
            if queued {
                let size = buffer.begin(now).expect("wanted");
                under_way = Some((now + fetch, size));
                queued = false;
            }
            if let Some((done, size)) = under_way
                && (done <= now || at_hand == 0)
                && (done <= now || buffer.clone().next_chunk(now).is_err())
            {
                now = now.max(done);
                buffer.on_reply(done, Ok(NextRange::Numbers(next_range..next_range + size)));
                next_range += size;
                under_way = None;
                queued = buffer.ask(now);
                continue;
            }
            if at_hand > 0 {
                break;
            }
            at_hand = buffer.next_chunk(now).map_or(0, |chunk| chunk.end - chunk.start);
            queued |= buffer.ask(now);
        }
        at_hand -= 1;
        waits.push(now - came);
    }
    waits
}

#[test]
fn a_hundred_thousand_a_second_with_a_fetch_of_50_ms_wait_less_than_one_fetch() {
    let fetch = Duration::from_millis(50);
    let mut waits = waits(100_000, 5, 1000, fetch);
    let after_the_start = &waits[20_000..];
    assert!(after_the_start.iter().all(Duration::is_zero), "{:?}", after_the_start.iter().max());
    assert!(waits.iter().max() <= Some(&(2 * fetch)), "{:?}", waits.iter().max());
    waits.sort_unstable();
    assert!(waits[waits.len() / 100 * 99] < fetch, "{:?}", waits[waits.len() / 100 * 99]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn after_a_few_fetches_nobody_waits_whatever_the_pace(
        rate in 10..300_000_u32,
        step in 10..100_000_i64,
        millis in 1..500_u64,
    ) {
        let fetch = Duration::from_millis(millis);
        // A step brings at most 256 times itself, and it takes some fetches to grow.
        prop_assume!(u128::from(rate) * fetch.as_millis() * 8 / 1000 < 256 * u128::from(step.unsigned_abs()));
        let seconds = u32::try_from(2 + millis * 12 / 1000).unwrap();
        let waits = waits(rate, seconds, step, fetch);
        let warm = usize::try_from(u64::from(rate) * millis * 10 / 1000).unwrap();
        for wait in &waits[warm.min(waits.len())..] {
            prop_assert!(wait.is_zero(), "{wait:?}");
        }
    }
}

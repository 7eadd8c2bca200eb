//! Sizes and moments of fetches: a burst waits for the database, and a kill loses few numbers.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::super::super::store::NextRange;
use super::super::Buffer;
use super::super::plan::Plan;
use super::model::row;

#[test]
fn one_step_at_a_time_unless_the_pace_requires_more() {
    let mut plan = Plan::new(1000, 1_000_000);
    let second = Duration::from_secs(1);
    let size = |plan: &Plan| plan.size(3 * second, false, 0);
    assert_eq!(size(&plan), 1000);
    plan.used(500, second, 2 * second);
    assert_eq!(size(&plan), 1000);
    plan.used(20_000, 2 * second, 3 * second);
    assert_eq!(size(&plan), 20_000, "enough for a second");
    assert_eq!(
        plan.size(3 * second, false, 30_000),
        13_000,
        "2 x (20,500 + 1000) - 30,000"
    );
    assert_eq!(plan.size(3 * second, false, 43_000), 1000);
    assert_eq!(
        plan.size(13 * second, false, 0),
        2000,
        "nothing was used in ten seconds"
    );
    for (cap, expected) in [(5500, 5000), (10, 1000)] {
        plan.cap = cap;
        assert_eq!(size(&plan), expected, "at least a step of the table");
    }
}

/// The loss when a process is killed: at each moment of a random day, at most twice the numbers used
/// in ten seconds, and two steps. The ten seconds are those before the fetches of the lost numbers.
#[derive(Debug)]
struct Day {
    buffer: Buffer,
    fetch: Duration,
    now: Duration,
    /// The end of the numbers that the store has handed out.
    table: u64,
    /// Number of numbers that callers took, and when.
    taken: u64,
    takes: VecDeque<(Duration, u64)>,
    at_hand: u64,
    under_way: Option<(Duration, u64)>,
    /// The ends of the ranges that are not used up, with the allowed loss that their fetches add to a kill.
    bounds: VecDeque<(u64, u64)>,
    worst: u64,
}

impl Day {
    fn new(step: u64, fetch: Duration) -> Self {
        let row = row(step.try_into().expect("small"), 0);
        Self {
            buffer: Buffer::new(&row, 1_000_000),
            fetch,
            now: Duration::ZERO,
            table: 0,
            taken: 0,
            takes: VecDeque::new(),
            at_hand: 0,
            under_way: None,
            bounds: VecDeque::new(),
            worst: 0,
        }
    }

    /// Callers take this many numbers, evenly over this time.
    fn take(&mut self, count: u64, time: Duration) {
        let begin = self.now;
        let ticks = count.clamp(1, 1000);
        for tick in 1..=ticks {
            let mut wanted = count * tick / ticks - count * (tick - 1) / ticks;
            let moment =
                begin + time * u32::try_from(tick).unwrap() / u32::try_from(ticks).unwrap();
            self.go_on_to(moment);
            while wanted > 0 {
                if self.at_hand == 0 && !self.refill() {
                    let (done, _) = self.under_way.expect("a fetch is in flight");
                    self.go_on_to(done.max(self.now));
                    continue;
                }
                let some = wanted.min(self.at_hand);
                (self.at_hand, wanted, self.taken) =
                    (self.at_hand - some, wanted - some, self.taken + some);
                self.takes.push_back((self.now, some));
                self.look();
            }
        }
    }

    fn refill(&mut self) -> bool {
        self.at_hand = self
            .buffer
            .next_chunk(self.now)
            .map_or(0, |chunk| chunk.end - chunk.start);
        self.fetch_if_due();
        self.at_hand > 0
    }

    fn fetch_if_due(&mut self) {
        if self.buffer.ask(self.now)
            && let Some(size) = self.buffer.begin(self.now)
        {
            self.table += size;
            self.under_way = Some((self.now + self.fetch, size));
            let recent = |(at, _): &&(Duration, u64)| *at + Duration::from_secs(10) >= self.now;
            let used: u64 = self
                .takes
                .iter()
                .rev()
                .take_while(recent)
                .map(|(_, some)| some)
                .sum();
            self.bounds
                .push_back((self.table, 2 * used + 2 * self.buffer.plan.table_step));
            self.look();
        }
    }

    fn go_on_to(&mut self, moment: Duration) {
        while let Some((done, size)) = self.under_way.filter(|(done, _)| *done <= moment) {
            self.now = self.now.max(done);
            self.under_way = None;
            let numbers = NextRange::Numbers(self.table - size..self.table);
            assert_eq!(self.buffer.on_reply(self.now, Ok(numbers)), None);
            self.fetch_if_due();
        }
        self.now = self.now.max(moment);
    }

    fn look(&mut self) {
        while self
            .bounds
            .front()
            .is_some_and(|(end, _)| *end <= self.taken)
        {
            self.bounds.pop_front();
        }
        let loss = self.table - self.taken;
        let bound = self
            .bounds
            .iter()
            .map(|(_, bound)| *bound)
            .max()
            .unwrap_or_default();
        assert!(
            loss <= bound,
            "a kill loses {loss}, more than {bound}: {self:?}"
        );
        self.worst = self.worst.max(loss);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_kill_never_loses_more_than_twice_what_ten_seconds_used_and_two_steps(
        step in 1..5000_u64,
        fetch in 1..3000_u64,
        parts in proptest::collection::vec((0..6_u32, 0..5_u32, 1..60_000_u64), 1..12),
    ) {
        let mut day = Day::new(step, Duration::from_millis(fetch));
        for (digits, seconds, millis) in parts {
            let pause = Duration::from_millis(millis / 10_u64.pow(seconds));
            day.take(10_u64.pow(digits), pause);
        }
    }
}

#[test]
fn a_kill_loses_few_numbers_of_a_tag_with_a_step_of_10() {
    let minute = Duration::from_secs(60);
    let mut day = Day::new(10, Duration::from_millis(5));
    day.take(600_000, minute);
    let in_the_burst = day.worst;
    assert!(in_the_burst <= 40_000, "{in_the_burst} at 10,000 a second");
    // The rest of the burst is used up; from then on the slow pace counts.
    let (left, before) = (day.table - day.taken, day.table);
    day.take(left - 10, 1000 * minute);
    assert!(day.table <= before + 10, "nothing is fetched on top of it");
    day.take(100, 10 * minute);
    day.worst = 0;
    day.take(600, 10 * minute);
    println!(
        "a kill loses at most {in_the_burst} numbers at 10,000 a second, {left} just after, {} at 1 \
         a second",
        day.worst
    );
    assert!(day.worst <= 40, "{}", day.worst);
}

/// Callers that arrive `rate` times a second for `seconds`, whether or not they are served, and a
/// database that takes `fetch`. Returns the wait of each one, in the order of their arrival.
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
            at_hand = buffer
                .next_chunk(now)
                .map_or(0, |chunk| chunk.end - chunk.start);
            queued |= buffer.ask(now);
        }
        at_hand -= 1;
        waits.push(now - came);
    }
    waits
}

#[test]
fn a_hundred_thousand_a_second_with_a_fetch_of_50_ms_wait_only_at_the_start() {
    let fetch = Duration::from_millis(50);
    let waits = waits(100_000, 5, 1000, fetch);
    let warm = waits
        .iter()
        .rposition(|wait| !wait.is_zero())
        .map_or(0, |last| last + 1);
    assert!(warm <= 40_000, "the first {warm} wait");
    assert!(
        waits.iter().max() <= Some(&(4 * fetch)),
        "{:?}",
        waits.iter().max()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn after_a_few_fetches_no_caller_waits_at_any_pace(
        rate in 10..300_000_u32,
        step in 10..100_000_i64,
        millis in 1..500_u64,
    ) {
        let fetch = Duration::from_millis(millis);
        // The size needs a few fetches to grow.
        prop_assume!(u128::from(rate) * fetch.as_millis() * 8 / 1000 < 256 * u128::from(step.unsigned_abs()));
        let seconds = u32::try_from(2 + millis * 25 / 1000).unwrap();
        let waits = waits(rate, seconds, step, fetch);
        let warm = usize::try_from(u64::from(rate) * millis * 20 / 1000).unwrap();
        for wait in &waits[warm.min(waits.len())..] {
            prop_assert!(wait.is_zero(), "{wait:?}");
        }
    }
}

//! Queue of prefetched IDs. Pure: time is a parameter, and nothing here waits.

use std::collections::VecDeque;
use std::time::Duration;

use vesta_intf::{IdRun, MAX_RUN_IDS_PER_CALL};

use super::Prefetch;

/// A run and its request time, the upper bound of its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aged {
    pub(super) run: IdRun,
    pub(super) asked_at: Duration,
}

/// Queue of runs, oldest first.
#[derive(Debug)]
pub(super) struct Buffer {
    runs: VecDeque<Aged>,
    /// Number of IDs.
    pub(super) left: u64,
    capacity: u64,
    low_water: u64,
    max_age: Duration,
    /// Number of IDs that expired.
    pub(super) stale: u64,
}

impl Buffer {
    pub(super) fn new(prefetch: &Prefetch) -> Self {
        Self {
            runs: VecDeque::new(),
            left: 0,
            capacity: u64::from(prefetch.capacity),
            low_water: u64::from(prefetch.low_water),
            max_age: prefetch.max_age,
            stale: 0,
        }
    }

    /// Appends the response to a request sent at `asked_at`.
    pub(super) fn put(&mut self, runs: impl IntoIterator<Item = IdRun>, asked_at: Duration) {
        for run in runs {
            if run.count > 0 {
                self.left += u64::from(run.count);
                self.runs.push_back(Aged { run, asked_at });
            }
        }
    }

    /// Takes the next 1 to `most` IDs, all from one run and none older than `max_age`.
    pub(super) fn take(&mut self, now: Duration, most: u32) -> Option<Aged> {
        self.drop_stale(now);
        let front = self.runs.front_mut()?;
        let (taken, rest) = split(front.run, most);
        let taken = Aged {
            run: taken,
            ..*front
        };
        match rest {
            Some(rest) => front.run = rest,
            None => {
                self.runs.pop_front();
            }
        }
        self.left -= u64::from(taken.run.count);
        Some(taken)
    }

    /// Returns the end of the run taken last to the front of the queue.
    pub(super) fn put_back(&mut self, run: IdRun, asked_at: Duration) {
        self.left += u64::from(run.count);
        self.runs.push_front(Aged { run, asked_at });
    }

    /// Drops all IDs older than `max_age`.
    pub(super) fn drop_stale(&mut self, now: Duration) {
        while let Some(front) = self.runs.front() {
            if !self.is_stale(front.asked_at, now) {
                break;
            }
            self.left -= u64::from(front.run.count);
            self.stale += u64::from(front.run.count);
            self.runs.pop_front();
        }
    }

    pub(super) fn is_stale(&self, asked_at: Duration, now: Duration) -> bool {
        now.saturating_sub(asked_at) >= self.max_age
    }

    /// Expiry time of a run requested at `asked_at`; `None` if it never expires.
    pub(super) fn expiry(&self, asked_at: Duration) -> Option<Duration> {
        asked_at.checked_add(self.max_age)
    }

    /// Request time of the oldest run.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.runs.front().map(|aged| aged.asked_at)
    }

    /// Number of IDs to fetch, if the low-water mark is reached or waiting batches need more. `outside` counts the IDs
    /// taken from here but not handed out yet, `awaited` those of waiting batches. These add to the capacity, so a
    /// batch may be larger than it.
    pub(super) fn wanted(&self, outside: u64, awaited: u64) -> Option<u32> {
        let left = self.left + outside;
        if left > self.low_water && left >= awaited {
            return None;
        }
        // Above 0, as low_water < capacity.
        let missing = (self.capacity + awaited).saturating_sub(left);
        let most = u64::from(MAX_RUN_IDS_PER_CALL);
        u32::try_from(missing.min(most)).ok()
    }
}

/// Splits a run after its first `most` IDs.
pub(super) fn split(run: IdRun, most: u32) -> (IdRun, Option<IdRun>) {
    if run.count <= most {
        return (run, None);
    }
    let rest = IdRun {
        first: run.first + u64::from(most) * run.step,
        step: run.step,
        count: run.count - most,
    };
    (IdRun { count: most, ..run }, Some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn buffer(capacity: u32, low_water: u32, max_age: Duration) -> Buffer {
        Buffer::new(&Prefetch {
            capacity,
            low_water,
            max_age,
        })
    }

    fn run(first: u64, step: u64, count: u32) -> IdRun {
        IdRun { first, step, count }
    }

    #[test]
    fn runs_are_handed_out_in_order_and_in_pieces() {
        let mut buffer = buffer(100, 10, SECOND);
        buffer.put([run(10, 5, 3), run(100, 1, 0), run(200, 1, 1)], SECOND);
        assert_eq!(buffer.left, 4);
        let mut take = |most| buffer.take(SECOND, most).map(|aged| aged.run);
        assert_eq!(take(2), Some(run(10, 5, 2)));
        assert_eq!(take(2), Some(run(20, 5, 1)));
        assert_eq!(take(2), Some(run(200, 1, 1)));
        assert_eq!(take(2), None);
    }

    #[test]
    fn the_low_water_mark_requests_the_missing_ids() {
        let mut buffer = buffer(100, 10, SECOND);
        assert_eq!(buffer.wanted(0, 0), Some(100));
        assert_eq!(buffer.wanted(10, 0), Some(90));
        assert_eq!(buffer.wanted(11, 0), None);
        buffer.put([run(1, 1, 11)], SECOND);
        assert_eq!(buffer.wanted(0, 0), None);
        buffer.take(SECOND, 1);
        assert_eq!(buffer.wanted(0, 0), Some(90));
    }

    #[test]
    fn waiting_batches_add_to_the_capacity() {
        let mut buffer = buffer(100, 10, SECOND);
        buffer.put([run(1, 1, 50)], SECOND);
        assert_eq!(buffer.wanted(0, 50), None);
        assert_eq!(buffer.wanted(0, 51), Some(101));
        assert_eq!(buffer.wanted(9, 70), Some(111));
        assert_eq!(buffer.wanted(20, 70), None);
        // A call returns no more than this; the rest follows with the next one.
        assert_eq!(buffer.wanted(0, 1 << 21), Some(MAX_RUN_IDS_PER_CALL));
    }

    #[test]
    fn a_low_water_mark_of_zero_refills_when_empty() {
        let mut buffer = buffer(2, 0, SECOND);
        buffer.put([run(1, 1, 1)], SECOND);
        assert_eq!(buffer.wanted(0, 0), None);
        buffer.take(SECOND, 1);
        assert_eq!(buffer.wanted(0, 0), Some(2));
    }

    #[test]
    fn expired_ids_are_dropped_and_counted() {
        let mut buffer = buffer(100, 10, SECOND);
        buffer.put([run(1, 1, 5)], SECOND);
        buffer.put([run(10, 1, 5)], 2 * SECOND);
        assert_eq!(buffer.expiry(SECOND), Some(2 * SECOND));
        let just_before = 2 * SECOND - Duration::from_nanos(1);
        assert_eq!(buffer.take(just_before, 1).map(|a| a.run.first), Some(1));
        assert_eq!(buffer.take(2 * SECOND, 1).map(|a| a.run.first), Some(10));
        assert_eq!((buffer.left, buffer.stale), (4, 4));
        assert_eq!(buffer.oldest(), Some(2 * SECOND));
        assert_eq!(buffer.take(3 * SECOND, 1), None);
        assert_eq!((buffer.left, buffer.stale), (0, 8));
    }

    #[test]
    fn without_a_maximum_age_nothing_expires() {
        let mut buffer = buffer(100, 10, Duration::MAX);
        buffer.put([run(1, 1, 1)], SECOND);
        assert_eq!(buffer.expiry(SECOND), None);
        assert!(buffer.take(SECOND * 1_000_000_000, 1).is_some());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(u64, u32),
        Take(u32),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1_u64..9, 0_u32..50).prop_map(|(step, count)| Step::Put(step, count)),
            (1_u32..60).prop_map(Step::Take),
            (0_u64..400).prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn every_id_is_handed_out_once_in_order_and_in_time(
            steps in proptest::collection::vec(step(), 0..200),
        ) {
            let max_age = Duration::from_millis(1000);
            let mut buffer = buffer(1000, 100, max_age);
            let mut now = Duration::ZERO;
            let (mut next, mut put, mut taken) = (1_u64, 0_u64, 0_u64);
            let mut asked = std::collections::HashMap::new();
            let mut last = 0;
            for step in steps {
                match step {
                    Step::Put(step, count) => {
                        let run = IdRun { first: next, step, count };
                        for id in run.iter() {
                            asked.insert(id, now);
                            next = id + step;
                        }
                        put += u64::from(count);
                        buffer.put([run], now);
                    }
                    Step::Take(most) => {
                        let Some(aged) = buffer.take(now, most) else { continue };
                        prop_assert!((1..=most).contains(&aged.run.count));
                        for id in aged.run.iter() {
                            prop_assert!(id > last);
                            last = id;
                            let at = asked.remove(&id).expect("was put, and not taken before");
                            prop_assert!(now - at < max_age);
                            prop_assert_eq!(at, aged.asked_at);
                        }
                        taken += u64::from(aged.run.count);
                    }
                    Step::Wait(ms) => now += Duration::from_millis(ms),
                }
                prop_assert_eq!(put, taken + buffer.left + buffer.stale);
                match buffer.wanted(0, 0) {
                    Some(n) => prop_assert_eq!(u64::from(n) + buffer.left, 1000),
                    None => prop_assert!(buffer.left > 100),
                }
            }
        }
    }
}

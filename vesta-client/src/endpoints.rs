//! Which server is asked: round-robin over those that are healthy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tonic::transport::Channel;

use crate::retry::jitter;

/// As many as the set of those already asked in a call has bits.
pub(crate) const MOST_ENDPOINTS: usize = 64;

/// An endpoint that failed is left alone for about this long, doubled with each further failure.
const SKIP: Duration = Duration::from_millis(100);
const LONGEST_SKIP: Duration = Duration::from_secs(5);

/// A server that says "not now" is left alone for as long as it says, at most this long.
const LONGEST_HOLD: Duration = Duration::from_secs(60);

pub(crate) struct Endpoint {
    pub(crate) name: String,
    channels: Vec<Channel>,
    next: AtomicUsize,
    health: Mutex<Health>,
}

impl Endpoint {
    pub(crate) fn new(name: String, channels: impl IntoIterator<Item = Channel>) -> Self {
        let channels = channels.into_iter().collect();
        Self { name, channels, next: AtomicUsize::new(0), health: Mutex::default() }
    }

    /// One of its connections, in turn.
    pub(crate) fn channel(&self) -> Channel {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.channels[next % self.channels.len()].clone()
    }

    pub(crate) fn answered(&self) {
        if self.health.lock().answered() {
            tracing::info!(endpoint = self.name, "the endpoint answers again");
        }
    }

    pub(crate) fn held(&self, now: Duration, retry_after: Duration) {
        self.health.lock().held(now, retry_after);
    }

    pub(crate) fn failed(&self, now: Duration, random: u64, error: &vesta_intf::IdError) {
        if self.health.lock().failed(now, random) {
            tracing::warn!(endpoint = self.name, %error, "the endpoint failed; others are preferred");
        }
    }
}

/// What is known about an endpoint. Times count from the start of the client.
#[derive(Debug, Default)]
struct Health {
    /// Failures since it last answered.
    failures: u32,
    /// It is left alone until then, if there is another.
    skip_until: Duration,
    /// One call has been sent to see whether it is back.
    on_trial: bool,
}

impl Health {
    fn standing(&self, now: Duration) -> Standing {
        match self {
            Health { skip_until, .. } if *skip_until <= now => Standing::Healthy,
            Health { failures: 0, .. } => Standing::Held,
            _ => Standing::Failed,
        }
    }

    /// Returns whether it had failed before.
    fn answered(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }

    fn held(&mut self, now: Duration, retry_after: Duration) {
        self.answered();
        self.skip_until = now + retry_after.min(LONGEST_HOLD);
    }

    /// Returns whether it had not failed before.
    fn failed(&mut self, now: Duration, random: u64) -> bool {
        // Many calls may fail for one and the same reason: that counts once.
        if self.failures > 0 && !self.on_trial && now < self.skip_until {
            return false;
        }
        let skip = SKIP.saturating_mul(1 << self.failures.min(10)).min(LONGEST_SKIP);
        self.failures = self.failures.saturating_add(1);
        self.skip_until = now + skip / 2 + jitter(skip / 2, random);
        self.on_trial = false;
        self.failures == 1
    }

    /// A call goes there. After a failure the first one is a trial, and the others keep away.
    fn claim(&mut self, now: Duration, trial_time: Duration) {
        if self.failures > 0 && now >= self.skip_until {
            self.on_trial = true;
            self.skip_until = now + trial_time;
        }
    }
}

pub(crate) struct Endpoints {
    list: Vec<Endpoint>,
    next: AtomicUsize,
    /// How long a trial may take.
    trial_time: Duration,
}

impl Endpoints {
    pub(crate) fn new(list: Vec<Endpoint>, first: usize, trial_time: Duration) -> Self {
        assert!((1..=MOST_ENDPOINTS).contains(&list.len()), "checked by the builder");
        Self { list, next: AtomicUsize::new(first), trial_time }
    }

    /// The endpoint for the next attempt of a call that already asked those in `tried`.
    pub(crate) fn pick(&self, now: Duration, tried: &mut u64) -> &Endpoint {
        let start = self.next.fetch_add(1, Ordering::Relaxed) % self.list.len();
        let index = choose(start, self.list.len(), *tried, |i| self.standing(i, now));
        *tried |= 1 << index;
        let endpoint = &self.list[index];
        endpoint.health.lock().claim(now, self.trial_time);
        endpoint
    }

    /// Whether a healthy endpoint was not asked yet.
    pub(crate) fn elsewhere(&self, now: Duration, tried: u64) -> bool {
        (0..self.list.len())
            .any(|i| tried >> i & 1 == 0 && self.standing(i, now) == Standing::Healthy)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|endpoint| endpoint.name.as_str())
    }

    fn standing(&self, index: usize, now: Duration) -> Standing {
        self.list[index].health.lock().standing(now)
    }
}

/// Which endpoints to ask first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Healthy,
    /// It failed, and it is not yet time to see whether it is back.
    Failed,
    /// It said when to come back, and that is later.
    Held,
}

/// The first one of the best standing from `start` on, rather one that was not tried. A call is
/// never refused for lack of a healthy endpoint.
fn choose(start: usize, count: usize, tried: u64, standing: impl Fn(usize) -> Standing) -> usize {
    let rank = |index: &usize| (standing(*index), tried >> index & 1);
    (0..count).map(|k| (start + k) % count).min_by_key(rank).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn healthy_endpoints_take_turns() {
        let standing = [Standing::Healthy, Standing::Failed, Standing::Healthy];
        let pick = |start, tried| choose(start, 3, tried, |i| standing[i]);
        assert_eq!([pick(0, 0), pick(1, 0), pick(2, 0)], [0, 2, 2]);
        assert_eq!(pick(0, 0b001), 2, "one that was not tried comes first");
        assert_eq!(pick(0, 0b101), 0, "and then again a healthy one");
    }

    #[test]
    fn if_none_is_healthy_those_that_failed_take_turns_and_the_held_come_last() {
        let pick = |start, tried| choose(start, 3, tried, |_| Standing::Failed);
        assert_eq!([pick(0, 0), pick(1, 0), pick(2, 0)], [0, 1, 2]);
        assert_eq!([pick(0, 0b001), pick(2, 0b111)], [1, 2]);
        let standing = [Standing::Held, Standing::Failed, Standing::Held];
        assert_eq!(choose(2, 3, 0b010, |i| standing[i]), 1);
        assert_eq!(choose(2, 3, 0, |_| Standing::Held), 2);
    }

    #[test]
    fn a_held_endpoint_is_healthy_again_when_its_time_has_come() {
        let mut health = Health::default();
        health.failed(MS, 0);
        assert_eq!(health.standing(MS), Standing::Failed);
        health.held(2 * MS, 5 * MS);
        assert_eq!(health.standing(6 * MS), Standing::Held);
        assert_eq!(health.standing(7 * MS), Standing::Healthy);
        health.held(MS, Duration::MAX);
        assert_eq!(health.skip_until, MS + LONGEST_HOLD);
    }

    #[test]
    fn failures_at_the_same_time_count_once_and_later_ones_double() {
        let mut health = Health::default();
        assert!(health.failed(MS, u64::MAX));
        let until = health.skip_until;
        assert!((100 * MS..=101 * MS).contains(&until), "{until:?}");
        assert!(!health.failed(2 * MS, u64::MAX));
        assert_eq!((health.failures, health.skip_until), (1, until));
        health.failed(until, u64::MAX);
        assert!(health.skip_until - until > 199 * MS);
        for _ in 0..20 {
            let now = health.skip_until;
            health.failed(now, u64::MAX);
            assert!(health.skip_until - now <= LONGEST_SKIP);
        }
        assert!(health.answered());
        assert_eq!(health.skip_until, Duration::ZERO);
    }

    #[test]
    fn one_call_at_a_time_finds_out_whether_an_endpoint_is_back() {
        let mut health = Health::default();
        health.claim(MS, 500 * MS);
        assert_eq!(health.skip_until, Duration::ZERO, "healthy ones are not on trial");
        health.failed(MS, 0);
        let back = health.skip_until;
        health.claim(back - MS, 500 * MS);
        assert_eq!(health.skip_until, back);
        health.claim(back, 500 * MS);
        assert_eq!(health.skip_until, back + 500 * MS, "others keep away meanwhile");
        health.failed(back + 2 * MS, 0);
        assert_eq!(health.failures, 2);
    }
}

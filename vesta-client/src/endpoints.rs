//! Endpoint selection: round-robin over the healthy ones, or the one that holds the servers' machine ID.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tonic::transport::Channel;

use crate::retry::backoff;

/// Order of the IDs that a client returns, across its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Servers take turns, and only the time in the IDs orders those of different servers.
    #[default]
    Relaxed,
    /// An ID that is asked for after another one was returned is larger. For servers that stand by for one machine
    /// ID (`machine.standby`): all calls go to the one that holds it.
    Strict,
}

/// Maximum number of endpoints: the bits of the set of endpoints tried in a call.
pub(crate) const MOST_ENDPOINTS: usize = 64;

/// Time for which a failed endpoint is skipped, doubled with each further failure.
const SKIP: Duration = Duration::from_millis(100);
const LONGEST_SKIP: Duration = Duration::from_secs(5);

/// Maximum time for which an endpoint is skipped after "not ready".
const LONGEST_HOLD: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    channels: Vec<Channel>,
    next: AtomicUsize,
    health: Mutex<HealthTracker>,
}

impl Endpoint {
    pub(crate) fn new(name: String, channels: impl IntoIterator<Item = Channel>) -> Self {
        let channels = channels.into_iter().collect();
        Self {
            name,
            channels,
            next: AtomicUsize::new(0),
            health: Mutex::default(),
        }
    }

    /// One of its connections, round-robin.
    pub(crate) fn channel(&self) -> Channel {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.channels[next % self.channels.len()].clone()
    }

    pub(crate) fn answered(&self) {
        if self.health.lock().answered() {
            tracing::info!(endpoint = self.name, "the endpoint answers again");
        }
    }

    pub(crate) fn deferred(&self, now: Duration, retry_after: Duration) {
        self.health.lock().deferred(now, retry_after);
    }

    pub(crate) fn failed(&self, now: Duration, random: u64, error: &vesta_intf::IdError) {
        if self.health.lock().failed(now, random) {
            tracing::warn!(endpoint = self.name, %error, "the endpoint failed; others are preferred");
        }
    }
}

/// Health of an endpoint over time. Times count from the start of the client.
#[derive(Debug, Default)]
struct HealthTracker {
    /// Failures since the last response.
    failures: u32,
    /// End of the time in which it is skipped, if another endpoint exists.
    skip_until: Duration,
    /// A trial call is in flight.
    on_trial: bool,
}

impl HealthTracker {
    fn health(&self, now: Duration) -> Health {
        match self {
            HealthTracker { skip_until, .. } if *skip_until <= now => Health::Healthy,
            HealthTracker { failures: 0, .. } => Health::Deferred,
            _ => Health::Failed,
        }
    }

    /// Returns true if it had failed before.
    fn answered(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }

    fn deferred(&mut self, now: Duration, retry_after: Duration) {
        self.answered();
        self.skip_until = now + retry_after.min(LONGEST_HOLD);
    }

    /// Returns true if it had not failed before.
    fn failed(&mut self, now: Duration, random: u64) -> bool {
        // Concurrent calls that fail for the same reason count once.
        if self.failures > 0 && !self.on_trial && now < self.skip_until {
            return false;
        }
        self.skip_until = now + backoff(SKIP, LONGEST_SKIP, self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.on_trial = false;
        self.failures == 1
    }

    /// Registers a call. After a failure the first one is a trial, and others avoid the endpoint.
    fn claim(&mut self, now: Duration, trial_time: Duration) {
        if self.failures > 0 && now >= self.skip_until {
            self.on_trial = true;
            self.skip_until = now + trial_time;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Endpoints {
    list: Vec<Endpoint>,
    /// Start of the next selection. With a strict order, the endpoint that answered last.
    next: AtomicUsize,
    pub(crate) order: Order,
    /// Time limit of a trial.
    trial_time: Duration,
}

impl Endpoints {
    pub(crate) fn new(
        list: Vec<Endpoint>,
        first: usize,
        order: Order,
        trial_time: Duration,
    ) -> Self {
        assert!(
            (1..=MOST_ENDPOINTS).contains(&list.len()),
            "checked by the builder"
        );
        Self {
            list,
            next: AtomicUsize::new(first),
            order,
            trial_time,
        }
    }

    /// Picks the endpoint for the next attempt of a call that already tried those in `tried`.
    pub(crate) fn pick(&self, now: Duration, tried: &mut u64) -> &Endpoint {
        if self.order == Order::Strict {
            return &self.list[self.next.load(Ordering::Relaxed)];
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed) % self.list.len();
        let index = choose(start, self.list.len(), *tried, |i| self.health(i, now));
        *tried |= 1 << index;
        let endpoint = &self.list[index];
        endpoint.health.lock().claim(now, self.trial_time);
        endpoint
    }

    /// Moves on from an endpoint that does not hold the machine ID, unless another call did so already.
    pub(crate) fn move_on(&self, from: &Endpoint) {
        let index = self.list.iter().position(|it| std::ptr::eq(it, from));
        let next = |at: usize| (Some(at) == index).then_some((at + 1) % self.list.len());
        // Relaxed: the number guards no other memory.
        let _ = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// True if a healthy endpoint has not been tried yet.
    pub(crate) fn elsewhere(&self, now: Duration, tried: u64) -> bool {
        (0..self.list.len()).any(|i| tried >> i & 1 == 0 && self.health(i, now) == Health::Healthy)
    }

    fn health(&self, index: usize, now: Duration) -> Health {
        self.list[index].health.lock().health(now)
    }
}

/// Health of an endpoint, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    Healthy,
    /// It failed, and its trial is not due yet.
    Failed,
    /// It returned a retry delay that has not elapsed.
    Deferred,
}

/// Chooses the first endpoint of the best health from `start` on, preferring untried ones. A call
/// is never refused for lack of a healthy endpoint.
fn choose(start: usize, count: usize, tried: u64, health: impl Fn(usize) -> Health) -> usize {
    let rank = |index: &usize| (health(*index), tried >> index & 1);
    (0..count)
        .map(|k| (start + k) % count)
        .min_by_key(rank)
        .unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn healthy_endpoints_take_turns() {
        let healths = [Health::Healthy, Health::Failed, Health::Healthy];
        let pick = |start, tried| choose(start, 3, tried, |i| healths[i]);
        assert_eq!([pick(0, 0), pick(1, 0), pick(2, 0)], [0, 2, 2]);
        assert_eq!(pick(0, 0b001), 2, "one that was not tried comes first");
        assert_eq!(pick(0, 0b101), 0, "and then again a healthy one");
    }

    #[test]
    fn without_a_healthy_endpoint_failed_ones_come_before_deferred() {
        let pick = |start, tried| choose(start, 3, tried, |_| Health::Failed);
        assert_eq!([pick(0, 0), pick(1, 0), pick(2, 0)], [0, 1, 2]);
        assert_eq!([pick(0, 0b001), pick(2, 0b111)], [1, 2]);
        let healths = [Health::Deferred, Health::Failed, Health::Deferred];
        assert_eq!(choose(2, 3, 0b010, |i| healths[i]), 1);
        assert_eq!(choose(2, 3, 0, |_| Health::Deferred), 2);
    }

    #[test]
    fn a_deferred_endpoint_is_healthy_again_after_its_delay() {
        let mut health = HealthTracker::default();
        health.failed(MS, 0);
        assert_eq!(health.health(MS), Health::Failed);
        health.deferred(2 * MS, 5 * MS);
        assert_eq!(health.health(6 * MS), Health::Deferred);
        assert_eq!(health.health(7 * MS), Health::Healthy);
        health.deferred(MS, Duration::MAX);
        assert_eq!(health.skip_until, MS + LONGEST_HOLD);
    }

    #[test]
    fn concurrent_failures_count_once_and_later_ones_double() {
        let mut health = HealthTracker::default();
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
    fn one_call_at_a_time_probes_a_failed_endpoint() {
        let mut health = HealthTracker::default();
        health.claim(MS, 500 * MS);
        assert_eq!(
            health.skip_until,
            Duration::ZERO,
            "healthy ones are not on trial"
        );
        health.failed(MS, 0);
        let back = health.skip_until;
        health.claim(back - MS, 500 * MS);
        assert_eq!(health.skip_until, back);
        health.claim(back, 500 * MS);
        assert_eq!(
            health.skip_until,
            back + 500 * MS,
            "others keep away meanwhile"
        );
        health.failed(back + 2 * MS, 0);
        assert_eq!(health.failures, 2);
    }
}

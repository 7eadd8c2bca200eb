//! Retry decisions. Pure: the time left and a random number are parameters, the decision is returned.
//!
//! Requesting IDs again is always safe: if the first response was lost, its IDs were never used, and
//! an unused ID is harmless.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vesta_intf::{ErrorKind, IdError, NotReadyReason};

/// Retry policy of failed calls.
///
/// Between two attempts the client waits for a random time, uniformly distributed between 0 and
/// `backoff_base * 2^(attempts made - 1)`, at most `backoff_cap` ("full jitter"). If the error has a
/// retry delay, the wait starts after it. If another endpoint is healthy, that one is called at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts of one call in total; 1 switches retries off. At least 1, default 10.
    pub max_attempts: u32,
    /// Longest wait before the second attempt. Default 25 ms.
    pub backoff_base: Duration,
    /// Longest wait before any attempt. Default 1 s.
    pub backoff_cap: Duration,
    /// Retry budget of all calls together while nothing succeeds. Default 100.
    pub budget: u32,
    /// Successful calls that earn one more retry, up to `budget`. At least 1, default 10:
    /// in the long run a client adds at most 10 % to the load of the servers.
    pub successes_per_retry: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 10,
            backoff_base: Duration::from_millis(25),
            backoff_cap: Duration::from_secs(1),
            budget: 100,
            successes_per_retry: 10,
        }
    }
}

/// A failed attempt.
pub(crate) struct Failed<'a> {
    /// Attempts of this call so far, this one included.
    pub(crate) attempts: u32,
    pub(crate) error: &'a IdError,
    /// Time until the deadline of the call.
    pub(crate) remaining: Duration,
    /// True if another endpoint is healthy and untried in this call.
    pub(crate) elsewhere: bool,
    /// Uniformly distributed over all values.
    pub(crate) random: u64,
    /// Number of endpoints, if one of them is looked for that holds the machine ID.
    pub(crate) seeks_among: Option<u32>,
}

/// Reason against a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GiveUp {
    /// No later attempt can succeed.
    Final,
    /// `max_attempts` is reached.
    Attempts,
    /// The next attempt would start too late.
    Deadline,
    /// The retry budget is exhausted; more retries would only add load.
    Budget,
}

/// Pause after all endpoints were tried in the search for the holder, doubled up to the second value.
const SEEK: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(100)];

/// Minimum time for an attempt before the deadline.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(1);

impl Retry {
    /// Decides on a retry and its delay. Takes a token from `budget` only if it grants one.
    pub(crate) fn decide(&self, failed: &Failed<'_>, budget: &Budget) -> Result<Duration, GiveUp> {
        // Only these can succeed later, or on another server.
        use IdError::{NotReady, Sealed, Unavailable};
        if !matches!(
            failed.error,
            NotReady(_) | Sealed { .. } | Unavailable { .. }
        ) {
            return Err(GiveUp::Final);
        }
        if let Some(endpoints) = failed.seeks_among {
            return failed.seek(endpoints);
        }
        if failed.attempts >= self.max_attempts {
            return Err(GiveUp::Attempts);
        }
        let earliest = match failed.error.retry_after() {
            Some(after) if !failed.elsewhere => after,
            _ => Duration::ZERO,
        };
        let room = failed.remaining.saturating_sub(earliest);
        if room < 2 * SHORTEST_ATTEMPT {
            return Err(GiveUp::Deadline);
        }
        // The holder takes the calls that the other servers refuse: no load is added to it.
        let redirected = failed.elsewhere && failed.error.kind() == ErrorKind::NotHolder;
        if !redirected && !budget.withdraw() {
            return Err(GiveUp::Budget);
        }
        if failed.elsewhere {
            return Ok(Duration::ZERO);
        }
        // Half of the remaining time is kept for the attempt itself.
        let longest = doubled(
            self.backoff_base,
            self.backoff_cap,
            failed.attempts.saturating_sub(1),
        );
        Ok(earliest + jitter(longest.min(room / 2), failed.random))
    }
}

impl Failed<'_> {
    /// Delay of the next attempt in the search for the holder: none until each endpoint was tried once more.
    fn seek(&self, endpoints: u32) -> Result<Duration, GiveUp> {
        if self.remaining < 2 * SHORTEST_ATTEMPT {
            return Err(GiveUp::Deadline);
        }
        let delay = match self.error {
            IdError::NotReady(it) if it.why == NotReadyReason::SequenceUsedUp => it.retry_after,
            _ if !self.attempts.is_multiple_of(endpoints) => Duration::ZERO,
            _ => backoff(SEEK[0], SEEK[1], self.attempts / endpoints - 1, self.random),
        };
        Ok(delay.min(self.remaining - SHORTEST_ATTEMPT))
    }
}

/// Random numbers to spread clients over time; nothing secret depends on them.
#[derive(Debug, Default)]
pub(crate) struct Rng {
    hasher: RandomState,
    draws: AtomicU64,
}

impl Rng {
    pub(crate) fn next(&self) -> u64 {
        self.hasher
            .hash_one(self.draws.fetch_add(1, Ordering::Relaxed))
    }
}

/// Exponential backoff with jitter: half to all of `base`, doubled with each failure, at most `cap`.
pub(crate) fn backoff(base: Duration, cap: Duration, failures: u32, random: u64) -> Duration {
    let longest = doubled(base, cap, failures);
    longest / 2 + jitter(longest / 2, random)
}

fn doubled(base: Duration, cap: Duration, times: u32) -> Duration {
    base.saturating_mul(1 << times.min(31)).min(cap)
}

/// A duration between 0 and `longest`, chosen by `random`.
pub(crate) fn jitter(longest: Duration, random: u64) -> Duration {
    let nanos = longest.as_nanos().min(u128::from(u64::MAX));
    Duration::from_nanos(((nanos * u128::from(random)) >> 64) as u64)
}

/// Retry budget of all calls together: a token bucket filled by successes.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Balance in successes; a retry costs `cost` of them.
    balance: AtomicU64,
    cost: u64,
    full: u64,
}

impl Budget {
    pub(crate) fn new(retry: &Retry) -> Self {
        let cost = u64::from(retry.successes_per_retry);
        let full = cost * u64::from(retry.budget);
        Self {
            balance: AtomicU64::new(full),
            cost,
            full,
        }
    }

    /// Records a successful call.
    pub(crate) fn deposit(&self) {
        // Relaxed: the balance guards no other memory. It is nearly always full, and then not written.
        let _ = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |b| {
                (b < self.full).then_some(b + 1)
            });
    }

    fn withdraw(&self) -> bool {
        self.balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |b| {
                b.checked_sub(self.cost)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vesta_intf::NotReady;

    fn unavailable(retry_after: Option<Duration>) -> IdError {
        IdError::Unavailable {
            reason: "down".into(),
            retry_after,
            source: None,
        }
    }

    fn not_ready(millis: u64) -> IdError {
        let retry_after = Duration::from_millis(millis);
        IdError::NotReady(NotReady {
            retry_after,
            why: NotReadyReason::AwaitingLease,
        })
    }

    fn failed(error: &IdError, attempts: u32, remaining_ms: u64) -> Failed<'_> {
        let remaining = Duration::from_millis(remaining_ms);
        Failed {
            attempts,
            error,
            remaining,
            elsewhere: false,
            random: u64::MAX,
            seeks_among: None,
        }
    }

    #[test]
    fn only_errors_that_may_pass_are_retried() {
        let retry = Retry::default();
        let budget = Budget::new(&retry);
        let sealed = IdError::Sealed {
            reason: "shut down".into(),
        };
        for error in [not_ready(1), unavailable(None), sealed] {
            let decision = retry.decide(&failed(&error, 1, 1000), &budget);
            assert!(decision.is_ok(), "{error:?}");
        }
        for error in [
            IdError::invalid("id", "not a number"),
            IdError::OutOfRange {
                field: "count",
                value: 0,
                min: 1,
                max: 2,
            },
            IdError::TimeExhausted,
            IdError::DeadlineExceeded,
            IdError::NotFound { what: "it".into() },
            IdError::Unsupported { what: "it".into() },
            IdError::Unauthenticated {
                reason: "no token".into(),
            },
            IdError::PermissionDenied {
                reason: "no scope".into(),
            },
            IdError::Internal {
                reason: "bug".into(),
                source: None,
            },
        ] {
            let decision = retry.decide(&failed(&error, 1, 1000), &budget);
            assert_eq!(decision, Err(GiveUp::Final), "{error:?}");
        }
    }

    #[test]
    fn a_delay_beyond_the_deadline_gives_up_at_no_cost() {
        let retry = Retry {
            budget: 1,
            ..Retry::default()
        };
        let budget = Budget::new(&retry);
        let late = retry.decide(&failed(&not_ready(500), 1, 400), &budget);
        assert_eq!(late, Err(GiveUp::Deadline));
        assert!(
            retry
                .decide(&failed(&not_ready(500), 1, 600), &budget)
                .is_ok()
        );
        assert_eq!(
            retry.decide(&failed(&not_ready(500), 1, 600), &budget),
            Err(GiveUp::Budget)
        );
    }

    #[test]
    fn the_backoff_doubles_up_to_its_cap() {
        let retry = Retry::default();
        let budget = Budget::new(&retry);
        let error = unavailable(None);
        let longest = |attempts| match retry.decide(&failed(&error, attempts, 100_000), &budget) {
            Ok(after) => (after + Duration::from_nanos(1)).as_millis(),
            other => panic!("{other:?}"),
        };
        let waits: Vec<_> = (1..=8).map(longest).collect();
        assert_eq!(waits, [25, 50, 100, 200, 400, 800, 1000, 1000]);
        let end = retry.decide(&failed(&error, 10, 100_000), &budget);
        assert_eq!(end, Err(GiveUp::Attempts));
    }

    #[test]
    fn another_healthy_endpoint_is_asked_at_once() {
        let retry = Retry::default();
        let error = not_ready(60_000);
        let failed = Failed {
            elsewhere: true,
            ..failed(&error, 1, 100)
        };
        let decision = retry.decide(&failed, &Budget::new(&retry));
        assert_eq!(decision, Ok(Duration::ZERO));
    }

    #[test]
    fn the_search_for_the_holder_goes_around_until_the_deadline() {
        let (retry, error) = (Retry::default(), unavailable(None));
        let budget = Budget::new(&Retry { budget: 0, ..retry });
        let wait = |error, attempts, remaining_ms| {
            let failed = Failed {
                seeks_among: Some(3),
                ..failed(error, attempts, remaining_ms)
            };
            retry.decide(&failed, &budget)
        };
        let waits = (1..=16).map(|attempts| wait(&error, attempts, 10_000).unwrap());
        let waits: Vec<_> = waits.map(|it| it.as_micros().div_ceil(1000)).collect();
        assert_eq!(
            waits,
            [0, 0, 25, 0, 0, 50, 0, 0, 100, 0, 0, 100, 0, 0, 100, 0]
        );
        assert_eq!(
            wait(&error, 9, 40).unwrap().as_millis(),
            39,
            "one attempt is left"
        );
        assert_eq!(wait(&error, 1, 1), Err(GiveUp::Deadline));
        let used_up = IdError::NotReady(NotReady {
            retry_after: Duration::from_millis(7),
            why: NotReadyReason::SequenceUsedUp,
        });
        assert_eq!(
            wait(&used_up, 1, 1000).unwrap().as_millis(),
            7,
            "the holder is known"
        );
        let invalid = IdError::invalid("id", "not a number");
        assert_eq!(wait(&invalid, 1, 1000), Err(GiveUp::Final));
    }

    #[test]
    fn a_redirection_to_the_holder_is_free_of_charge() {
        let retry = Retry::default();
        let budget = Budget::new(&Retry { budget: 0, ..retry });
        let error = IdError::NotReady(NotReady {
            retry_after: Duration::from_millis(50),
            why: NotReadyReason::NotHolder,
        });
        let failed = failed(&error, 1, 1000);
        assert_eq!(retry.decide(&failed, &budget), Err(GiveUp::Budget));
        let failed = Failed {
            elsewhere: true,
            ..failed
        };
        assert_eq!(retry.decide(&failed, &budget), Ok(Duration::ZERO));
    }

    #[test]
    fn ten_successes_earn_one_retry() {
        let retry = Retry {
            budget: 2,
            ..Retry::default()
        };
        let budget = Budget::new(&retry);
        assert!(budget.withdraw() && budget.withdraw());
        (0..9).for_each(|_| budget.deposit());
        assert!(!budget.withdraw());
        budget.deposit();
        assert!(budget.withdraw());
        (0..1000).for_each(|_| budget.deposit());
        assert!(budget.withdraw() && budget.withdraw() && !budget.withdraw());
    }

    #[test]
    fn random_numbers_differ_each_time_and_for_each_client() {
        let (one, other) = (super::Rng::default(), super::Rng::default());
        let draws: std::collections::HashSet<u64> =
            (0..100).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(draws.len(), 200);
    }

    proptest! {
        #[test]
        fn a_retry_is_never_early_and_never_late(
            attempts in 1_u32..20,
            remaining in 0_u64..5000,
            after in proptest::option::of(0_u64..5000),
            elsewhere: bool,
            random: u64,
        ) {
            let retry = Retry::default();
            let error = unavailable(after.map(Duration::from_millis));
            let remaining = Duration::from_millis(remaining);
            let failed = Failed { attempts, error: &error, remaining, elsewhere, random, seeks_among: None };
            let wait = match retry.decide(&failed, &Budget::new(&retry)) {
                Err(because) => {
                    prop_assert_ne!(because, GiveUp::Final);
                    return Ok(());
                }
                Ok(wait) => wait,
            };
            prop_assert!(attempts < retry.max_attempts);
            prop_assert!(wait + SHORTEST_ATTEMPT <= remaining);
            let earliest = Duration::from_millis(after.unwrap_or(0));
            if elsewhere {
                prop_assert_eq!(wait, Duration::ZERO);
            } else {
                prop_assert!(wait >= earliest && wait <= earliest + retry.backoff_cap);
            }
        }

        #[test]
        fn retries_stay_within_the_budget(
            budget in 0_u32..20,
            successes_per_retry in 1_u32..20,
            steps in proptest::collection::vec(any::<bool>(), 0..500),
        ) {
            let bucket = Budget::new(&Retry { budget, successes_per_retry, ..Retry::default() });
            let (mut successes, mut retries) = (0_u32, 0_u32);
            for success in steps {
                if success {
                    bucket.deposit();
                    successes += 1;
                } else if bucket.withdraw() {
                    retries += 1;
                }
                prop_assert!(retries <= budget + successes / successes_per_retry);
            }
        }
    }
}

//! Errors of a tag without numbers, and its status.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::MAX_TAG;
use vesta_intf::{IdError, NotReady, NotReadyReason, plain};

use super::super::status::SegmentStatus;
use super::plan::per_second;
use super::{Buffer, Health, Phase};
use vesta_service::inside::LONGEST_PAUSE;
use vesta_service::lease::{StoreError, TWO_STORES};

/// Assumed duration of a fetch before one has been measured.
const GUESSED_FETCH: Duration = Duration::from_millis(20);

impl Buffer {
    /// The reason why no numbers are available now.
    pub(super) fn refusal(&self, now: Duration) -> IdError {
        if let Some(error) = self.ended(self.health) {
            return error;
        }
        let left = match self.phase {
            Phase::Idle => Duration::ZERO,
            Phase::Failed(until) => until.saturating_sub(now),
            Phase::Queued(since) | Phase::Fetching(since, _) => {
                let usual = match self.plan.fetch_time {
                    Duration::ZERO => GUESSED_FETCH,
                    known => known,
                };
                let waited = now.saturating_sub(since);
                // Overdue: twice the time so far is as good a guess as any.
                if waited < usual {
                    usual - waited
                } else {
                    waited
                }
            }
        };
        let retry_after = left.clamp(Duration::from_millis(1), LONGEST_PAUSE);
        match self.failing_because() {
            None => NotReady {
                retry_after,
                why: NotReadyReason::AwaitingLease,
            }
            .into(),
            Some(error) => self.unavailable(error, Some(retry_after)),
        }
    }

    /// The error of a tag that issues no more numbers by itself, if that is its health.
    pub(super) fn ended(&self, health: Health) -> Option<IdError> {
        let reason = self.trouble_of(health)?.into();
        Some(match health {
            Health::NoTag => not_found(&self.key),
            Health::Closed => IdError::Sealed { reason },
            Health::UsedUp => IdError::UsedUp { reason },
            _ => IdError::Unavailable {
                reason,
                retry_after: None,
                source: None,
            },
        })
    }

    /// The error of a store that provides no numbers. Its message is the source: it can name hosts and
    /// tables, which remote callers must not see.
    pub(super) fn unavailable(&self, error: &StoreError, retry_after: Option<Duration>) -> IdError {
        IdError::Unavailable {
            reason: format!(
                "the store returned no numbers for tag `{}`",
                plain(&self.key)
            )
            .into(),
            retry_after, // it is asked again, whatever the error
            source: Some(Arc::new(error.clone())),
        }
    }

    /// The last error of the store, unless a later fetch has succeeded.
    pub(crate) fn failing_because(&self) -> Option<&StoreError> {
        self.error.as_ref().filter(|_| self.failures > 0)
    }

    /// The reason why no more numbers will come by themselves.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble_of(self.health)
    }

    fn trouble_of(&self, health: Health) -> Option<String> {
        let (key, highest) = (plain(&self.key), self.highest.max(self.lent));
        Some(match health {
            Health::Good => return None,
            Health::NoTag => format!("tag `{key}` is not in the table"),
            Health::BadRow => {
                format!(
                    "the row of tag `{key}` needs whole numbers: a step above 0, a max_id not below"
                )
            }
            Health::BadStride => {
                format!("the row of tag `{key}` needs a delta above 0, and a remainder below that")
            }
            Health::OtherDelta => format!(
                "the delta of tag `{key}` in the table is no longer the {} it started with; restart this \
                 server",
                self.delta
            ),
            Health::UsedUp => match self.last {
                Some(last) => format!("tag `{key}` has used up its numbers: {last} was the last"),
                None => format!("tag `{key}` has used up its 63-bit numbers"),
            },
            Health::WentBack => format!(
                "the store was rolled back: set max_id of tag `{key}` above {highest}, and above \
                 everything that any server issued"
            ),
            Health::TwoStores => format!(
                "{TWO_STORES}: the store of tag `{key}` is a second one behind its URL, and hands out the numbers of the \
                 first again"
            ),
            Health::Closed => SHUT_DOWN.into(),
        })
    }

    /// Share of the numbers up to `last` that were handed out to processes, as far as is known here.
    fn used_percent(&self, last: u64) -> u64 {
        if self.health == Health::UsedUp {
            return 100; // other processes may have had the rest
        }
        let used = self.highest.max(self.listed).saturating_sub(1).min(last);
        let percent = u128::from(used) * 100 / u128::from(last.max(1));
        u64::try_from(percent).unwrap_or(100)
    }

    /// Status of the tag. `position` is the first number that the callers have not had; `lost_total`
    /// counts the numbers taken for batches that failed.
    pub(crate) fn status(&self, now: Duration, position: u64, lost_total: u64) -> SegmentStatus {
        let open = self.open.as_ref();
        let used = open.map_or(0, |open| {
            let Range { start, end } = open.numbers;
            position.clamp(start, end) - start
        });
        let rate = match now.saturating_sub(self.opened_at) {
            _ if open.is_none() => 0,
            young if young < Duration::from_secs(1) => self.plan.rate,
            old => per_second(used, old),
        };
        let current = open.map(|open| open.of.clone());
        let mut next: Vec<_> = self.chunks.iter().map(|chunk| chunk.of.clone()).collect();
        next.dedup();
        next.retain(|range| Some(range) != current.as_ref());
        let (last_at, last_fetch_took) = self.plan.last_fetch().unzip();
        let failing = self.failing_because().map(ToString::to_string);
        SegmentStatus {
            key: self.key.clone(),
            description: self.description.clone(),
            current,
            position,
            next,
            taken_total: self.closed_total + used.div_ceil(self.delta),
            lost_total,
            rate: rate / self.delta,
            delta: self.delta,
            last: self.last,
            used_percent: self.last.map(|last| self.used_percent(last)),
            table_step: self.plan.table_step,
            step: self.size(now),
            fetching: matches!(self.phase, Phase::Queued(_) | Phase::Fetching(..)),
            last_fetch_age: last_at.map(|at| now.saturating_sub(at)),
            last_fetch_took,
            fetches_ok: self.plan.fetches,
            fetches_failed: self.failures_total,
            last_error: self.error.as_ref().map(ToString::to_string),
            not_ready_because: self.trouble().or(failing),
        }
    }
}

pub(in crate::segment) const SHUT_DOWN: &str = "it was shut down";

pub(in crate::segment) fn not_found(key: &str) -> IdError {
    // Remote callers choose the name: keep no more of it than a tag can have.
    let key: String = key.chars().take(MAX_TAG).collect();
    IdError::NotFound {
        what: format!("segment tag `{}`", plain(&key)).into(),
    }
}

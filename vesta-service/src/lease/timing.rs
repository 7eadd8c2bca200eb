//! Durations of a lease.

use std::time::Duration;

use vesta_intf::IdError;

/// Longest retry delay, once a store has been unreachable for long.
pub(crate) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(2);

/// Durations of a lease. Each store has its defaults; see docs/operate/stores.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Distance of the durable bound ahead of now. If the store is unreachable, IDs keep flowing for this
    /// long.
    pub window: Duration,
    /// Interval at which the bound is extended (± 10 %).
    pub renew_every: Duration,
    /// Maximum time for one request to the store. The store enforces its own; callers wait for this one.
    pub request_timeout: Duration,
    /// Time after its bound from which the record of an expired owner may be taken over.
    pub takeover_grace: Duration,
}

impl Timing {
    /// For a fixed machine ID in a state file: window 3 s, renewed every second.
    pub const FILE: Timing = Timing::millis(3_000, 1_000, 1_000, 9_000);

    /// For a fixed machine ID that several processes stand by for: window 2 s, renewed every 0.6 s.
    pub const STANDBY: Timing = Timing::millis(2_000, 600, 500, 6_000);

    /// For a pool on one host: window 5 s, renewed every 1.5 s, taken over after 1 min.
    pub const ONE_HOST: Timing = Timing::millis(5_000, 1_500, 1_000, 60_000);

    /// For a pool in a networked store: window 60 s, renewed every 15 s, taken over after 10 min.
    pub const NETWORK: Timing = Timing::millis(60_000, 15_000, 2_000, 600_000);

    /// For a pool in an in-memory store: window 10 s, renewed every 2.5 s, taken over after 10 min.
    pub const IN_MEMORY: Timing = Timing::millis(10_000, 2_500, 1_000, 600_000);

    /// Milliseconds, in the order of the fields.
    const fn millis(window: u64, renew: u64, request: u64, grace: u64) -> Self {
        Self {
            window: Duration::from_millis(window),
            renew_every: Duration::from_millis(renew),
            request_timeout: Duration::from_millis(request),
            takeover_grace: Duration::from_millis(grace),
        }
    }

    /// Checks the durations against each other.
    ///
    /// # Errors
    /// [`IdError::Invalid`] unless `renew_every ≤ window / 3`, `request_timeout ≤ renew_every` and
    /// `takeover_grace ≥ 3 × window`, and nothing is zero.
    pub fn check(&self) -> Result<(), IdError> {
        let flaw = if self.renew_every.is_zero() || self.request_timeout.is_zero() {
            "no duration may be zero"
        } else if self.renew_every > self.window / 3 {
            "renew_every must be at most a third of window"
        } else if self.request_timeout > self.renew_every {
            "request_timeout must be at most renew_every"
        } else if self.takeover_grace < self.window.saturating_mul(3) {
            "takeover_grace must be at least three times window"
        } else {
            return Ok(());
        };
        Err(IdError::invalid("timing", flaw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_must_fit_each_other() {
        let of = |window, renew, request, grace| {
            let [window, renew_every, request_timeout, takeover_grace] =
                [window, renew, request, grace].map(Duration::from_millis);
            Timing {
                window,
                renew_every,
                request_timeout,
                takeover_grace,
            }
            .check()
        };
        of(9_000, 3_000, 3_000, 27_000).expect("each as large or as small as it may be");
        for (timing, flaw) in [
            (of(9_000, 3_001, 3_000, 27_000), "a third of window"),
            (of(9_000, 6_000, 3_000, 27_000), "a third of window"),
            (
                of(9_000, 3_000, 3_001, 27_000),
                "request_timeout must be at most",
            ),
            (of(9_000, 3_000, 3_000, 26_999), "three times window"),
            (of(9_000, 0, 0, 27_000), "zero"),
            (of(9_000, 3_000, 0, 27_000), "zero"),
            (of(9_000, 0, 3_000, 27_000), "zero"),
        ] {
            let error = timing.expect_err(flaw).to_string();
            assert!(error.contains(flaw), "{error}");
        }
        for timing in [
            Timing::FILE,
            Timing::STANDBY,
            Timing::ONE_HOST,
            Timing::NETWORK,
            Timing::IN_MEMORY,
        ] {
            timing.check().expect("a preset");
        }
    }
}

//! Fetch planning: how many numbers at a time, and how early. Pure.

use std::time::Duration;

/// A range that lasts less than this is too small: the step doubles.
const TOO_SHORT: Duration = Duration::from_secs(15 * 60);
/// A range that lasts longer than this is too large: the step is halved.
const TOO_LONG: Duration = Duration::from_secs(30 * 60);
/// A fetch brings what lasts this long, or eight fetches, at the pace seen last.
const SPAN: Duration = Duration::from_secs(1);
/// The next fetch starts while what is left lasts this long, or four fetches.
const LEAD: Duration = Duration::from_millis(100);
/// A burst shorter than this counts as one of this length.
const SHORTEST: Duration = Duration::from_millis(10);
/// The most steps that one fetch brings.
const MAX_STEPS: u64 = 256;
/// No database counts further than 2^63; what is asked for stays well below.
const MAX_SIZE: u64 = 1 << 62;

/// Inputs to the size of the next fetch.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The step in the table: the smallest there is.
    pub(super) table_step: u64,
    cap: u64,
    /// The step of the last fetch.
    step: u64,
    last: Option<Last>,
    /// Fetches that brought numbers.
    pub(super) fetches: u64,
    /// Numbers a second, while there were some.
    pub(super) rate: u64,
    /// Duration of a fetch, as callers see it; zero before the first.
    pub(super) fetch_time: Duration,
    /// The end of the numbers is near: no more than the table's step at a time.
    sparing: bool,
}

/// The last fetch that brought numbers.
#[derive(Debug, Clone, Copy)]
struct Last {
    at: Duration,
    took: Duration,
    size: u64,
}

impl Plan {
    pub(crate) fn new(table_step: u64, cap: u64) -> Self {
        let table_step = table_step.clamp(1, MAX_SIZE);
        Self {
            table_step,
            cap,
            step: table_step,
            last: None,
            fetches: 0,
            rate: 0,
            fetch_time: Duration::ZERO,
            sparing: false,
        }
    }

    /// The step that a fetch would have now. The first two ranges have the table's: only from the
    /// third fetch on is it known how long a whole one lasted.
    pub(crate) fn step(&self, now: Duration) -> u64 {
        let cap = self.cap.clamp(self.table_step, MAX_SIZE);
        let step = match self.last {
            Some(last) if self.fetches >= 2 => {
                let steps = u32::try_from(last.size.div_ceil(self.step)).unwrap_or(u32::MAX);
                let lasted = now.saturating_sub(last.at) / steps.max(1);
                if lasted < TOO_SHORT {
                    self.step.saturating_mul(2)
                } else if lasted <= TOO_LONG {
                    self.step
                } else {
                    self.step / 2
                }
            }
            _ => self.step,
        };
        step.clamp(self.table_step, cap)
    }

    /// The size of a fetch made now: whole steps, and one of them unless the pace asks for more.
    pub(crate) fn size(&self, now: Duration, starved: bool) -> u64 {
        if self.sparing {
            return self.table_step;
        }
        let step = self.step(now);
        let by_pace = numbers(self.rate, SPAN.max(self.fetch_time.saturating_mul(8)));
        let by_want = match self.last {
            // Callers waited: the pace is not known, only that it is higher than was thought.
            Some(last) if starved => last.size.saturating_mul(2),
            _ => 0,
        };
        let steps = by_pace.max(by_want).div_ceil(step).clamp(1, MAX_STEPS);
        step.saturating_mul(steps).min(MAX_SIZE)
    }

    /// With fewer numbers than this at hand it is time to fetch.
    pub(crate) fn low_water(&self) -> u64 {
        numbers(self.rate, LEAD.max(self.fetch_time.saturating_mul(4)))
    }

    /// A fetch of `size` numbers, asked for at `at`, brought them now.
    pub(crate) fn fetched(&mut self, at: Duration, now: Duration, size: u64) {
        self.step = self.step(at);
        let took = now.saturating_sub(at);
        // Follows a slow database at once, and a quick one gradually.
        self.fetch_time = took.max((self.fetch_time + took) / 2);
        self.last = Some(Last { at, took, size });
        self.fetches += 1;
    }

    /// So many numbers were used up in this time.
    pub(crate) fn used(&mut self, count: u64, took: Duration) {
        let rate = per_second(count, took.max(SHORTEST));
        self.rate = rate.max(self.rate / 2 + rate / 2);
    }

    /// Takes over the step of the table; `true` if it is another one.
    pub(crate) fn set_table_step(&mut self, table_step: u64) -> bool {
        let table_step = table_step.clamp(1, MAX_SIZE);
        let changed = self.table_step != table_step;
        self.table_step = table_step;
        self.sparing &= !changed;
        changed
    }

    /// Asks for as little as possible from now on; `false` if it did so before.
    pub(crate) fn spare(&mut self) -> bool {
        !std::mem::replace(&mut self.sparing, true)
    }

    /// When the last numbers came, and how long that took.
    pub(crate) fn last_fetch(&self) -> Option<(Duration, Duration)> {
        self.last.map(|last| (last.at + last.took, last.took))
    }
}

/// Numbers used up in `span` at this rate.
fn numbers(rate: u64, span: Duration) -> u64 {
    let count = u128::from(rate) * span.as_nanos() / 1_000_000_000;
    u64::try_from(count).unwrap_or(u64::MAX)
}

pub(crate) fn per_second(count: u64, took: Duration) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / took.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

//! Fetch planning: how many numbers at a time, and how early. Pure.

use std::time::Duration;

/// A fetch requests numbers for this time, or for the time of eight fetches, at the last observed pace.
const SPAN: Duration = Duration::from_secs(1);
/// But for at most this long: unused numbers are lost if the process is killed.
const LONGEST_SPAN: Duration = Duration::from_secs(5);
/// Numbers used in this time justify twice as many unused ones.
const WINDOW: Duration = Duration::from_secs(10);
/// The next fetch starts when the rest lasts for this time, or for four fetches.
const LEAD: Duration = Duration::from_millis(100);
/// A burst shorter than this counts as one of this length.
const SHORTEST: Duration = Duration::from_millis(10);
/// No database counts beyond 2^63; requests stay well below.
const MAX_SIZE: u64 = 1 << 62;

/// Inputs to the size of the next fetch.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The step in the table: the minimum to fetch.
    pub(super) table_step: u64,
    pub(super) cap: u64,
    last: Option<Last>,
    /// Fetches that brought numbers.
    pub(super) fetches: u64,
    /// Numbers per second, while some were available.
    pub(super) rate: u64,
    /// Duration of a fetch, as callers see it; zero before the first.
    pub(super) fetch_time: Duration,
    used: Used,
    /// The end of the numbers is near: fetch no more than the table's step at a time.
    pub(super) sparing: bool,
}

/// The last fetch that brought numbers.
#[derive(Debug, Clone, Copy)]
struct Last {
    at: Duration,
    took: Duration,
    size: u64,
}

/// Numbers used in the last seconds. Each second has those of the chunks that were begun in it, so
/// none is counted that was used before.
#[derive(Debug, Clone, Default)]
struct Used([(u64, u64); 11]);

impl Used {
    fn add(&mut self, begun: Duration, count: u64) {
        let second = begun.as_secs();
        let place = &mut self.0[usize::try_from(second % 11).unwrap_or_default()];
        let before = if place.0 == second { place.1 } else { 0 };
        *place = (second, before.saturating_add(count));
    }

    fn since(&self, moment: Duration) -> u64 {
        let recent = self
            .0
            .iter()
            .filter(|(second, _)| Duration::from_secs(*second) >= moment);
        recent.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl Plan {
    pub(crate) fn new(table_step: u64, cap: u64) -> Self {
        Self {
            table_step: table_step.clamp(1, MAX_SIZE),
            cap,
            last: None,
            fetches: 0,
            rate: 0,
            fetch_time: Duration::ZERO,
            used: Used::default(),
            sparing: false,
        }
    }

    /// The size of a fetch made now, with this many unused numbers: whole steps, one of them unless
    /// the pace requires more and recent use justifies it.
    pub(crate) fn size(&self, now: Duration, starved: bool, unused: u64) -> u64 {
        let step = self.table_step;
        if self.sparing {
            return step;
        }
        let span = self.fetch_time.saturating_mul(8).clamp(SPAN, LONGEST_SPAN);
        let by_want = match self.last {
            // Callers waited: the pace is unknown, only that it is higher than estimated.
            Some(last) if starved => last.size.saturating_mul(2),
            _ => 0,
        };
        let wanted = numbers(self.rate, span).max(by_want).div_ceil(step);
        let allowed = self.justifies(now, unused).min(self.cap.min(MAX_SIZE)) / step;
        step * wanted.min(allowed).max(1)
    }

    /// The size that recent use justifies. So the fetched but unused numbers never exceed twice the
    /// numbers used in ten seconds, and two steps.
    pub(crate) fn justifies(&self, now: Duration, unused: u64) -> u64 {
        let used = self.used.since(now.saturating_sub(WINDOW));
        let twice = used.saturating_add(self.table_step).saturating_mul(2);
        twice.saturating_sub(unused)
    }

    /// A fetch is due when fewer numbers than this are left.
    pub(crate) fn low_water(&self) -> u64 {
        numbers(
            self.rate,
            self.fetch_time.saturating_mul(4).clamp(LEAD, LONGEST_SPAN),
        )
    }

    /// Notes a fetch of `size` numbers, requested at `at`, which brought them now.
    pub(crate) fn fetched(&mut self, at: Duration, now: Duration, size: u64) {
        let took = now.saturating_sub(at);
        // Adapts to a slow database at once, and to a fast one gradually.
        self.fetch_time = took.max((self.fetch_time + took) / 2);
        self.last = Some(Last { at, took, size });
        self.fetches += 1;
    }

    /// Notes that `count` numbers were used up between these moments.
    pub(crate) fn used(&mut self, count: u64, begun: Duration, now: Duration) {
        let rate = per_second(count, now.saturating_sub(begun).max(SHORTEST));
        self.rate = rate.max(self.rate / 2 + rate / 2);
        self.used.add(begun, count);
    }

    /// Adopts the step of the table; returns `true` if it is another one.
    pub(crate) fn set_table_step(&mut self, table_step: u64) -> bool {
        let table_step = table_step.clamp(1, MAX_SIZE);
        let changed = self.table_step != table_step;
        self.table_step = table_step;
        self.sparing &= !changed;
        changed
    }

    /// Requests as little as possible from now on; returns `false` if it did so before.
    pub(crate) fn spare(&mut self) -> bool {
        !std::mem::replace(&mut self.sparing, true)
    }

    /// The moment when the last numbers came, and the duration of that fetch.
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

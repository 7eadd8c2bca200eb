//! The state of one tag: the available numbers, the request in flight, and the next request. Pure:
//! the time and the store's replies come in as values, ranges and requests go out as values.
//!
//! A fetched range is handed to the callers in **chunks**, its first tenth and three more. So handing out
//! the second one signals that a tenth is used and the next range is due. Only one request of a tag is in
//! flight at a time. Its replies then come in the order of their numbers, which strictly increasing IDs
//! need, and no reply can overtake another. A larger size replaces parallel requests (see [`Plan`]).

#[cfg(feature = "serial")]
mod cutoff;
mod lent;
mod plan;
mod report;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use vesta_intf::IdError;

use super::store::{MAX, NextRange, SegmentTag};
use super::stride::Stride;
use plan::Plan;
pub(super) use report::{SHUT_DOWN, not_found};
use vesta_service::inside::retry_pause;
use vesta_service::lease::StoreError;

/// The numbers of one tag that are available or being fetched.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    key: String,
    description: Option<String>,
    plan: Plan,
    /// The last number, if the tag has one, and the first in the table that was never handed out.
    last: Option<u64>,
    listed: u64,
    /// Distance between neighbouring numbers.
    delta: u64,
    pub(super) health: Health,
    phase: Phase,
    /// Numbers were requested: nothing is fetched for an unused tag.
    wanted: bool,
    /// Callers have found no numbers since the last range came.
    starved: bool,
    /// The tag has been seen in the table since the fetch in flight began.
    listed_since: bool,
    /// Numbers below this have expired, according to the last caller that checked; setting a clock right lowers it.
    cutoff: u64,
    /// The cutoff when the fetch in flight began.
    asked_from: u64,
    /// The chunk that callers are using up.
    open: Option<Chunk>,
    /// When it was opened.
    opened_at: Duration,
    /// The following chunks.
    chunks: VecDeque<Chunk>,
    /// The end of the ranges that this process was given: nothing below it is accepted again, whatever
    /// the store reports. The store itself may be lower if other processes gave numbers back.
    highest: u64,
    /// The end of the ranges that were lent to other systems.
    lent: u64,
    /// The end of the ranges that earlier processes of this host were given. A store below it has
    /// forgotten something.
    before: u64,
    /// The numbers left at the end, ascending, to be given back; `None` if none may be.
    unused: Option<Vec<Range<u64>>>,
    /// Consecutive failed fetches, and the last error.
    failures: u32,
    failures_total: u64,
    error: Option<StoreError>,
    /// Numbers in all chunks that were used up or given up.
    closed_total: u64,
}

/// Health of a tag: whether the store can provide numbers for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// The tag does not exist, or no longer.
    NoTag,
    /// Its row has a step below 1 or a negative `max_id`.
    BadRow,
    /// Its row has an invalid delta or remainder.
    BadStride,
    /// Its row has another delta than at the start, so the available numbers may belong to others.
    OtherDelta,
    /// All 63-bit numbers are used up.
    UsedUp,
    /// The store offered numbers that had been handed out before: it was restored from a backup, or
    /// `max_id` was set back.
    WentBack,
    /// An older store stands behind the same URL: both hand out these numbers.
    TwoStores,
    /// The service was shut down.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// A fetch has been waiting for a thread since this moment.
    Queued(Duration),
    /// A fetch is in flight: requested at this moment, with this many numbers.
    Fetching(Duration, u64),
    /// The last fetch failed; the next one may not start before this moment.
    Failed(Duration),
}

/// A part of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    numbers: Range<u64>,
    of: Range<u64>,
}

impl Chunk {
    /// Its extent: with a stride, this exceeds its count of numbers.
    const fn size(&self) -> u64 {
        self.numbers.end - self.numbers.start
    }
}

impl Buffer {
    /// A buffer without numbers.
    pub(crate) fn new(tag: &SegmentTag, cap: u64) -> Self {
        let mut buffer = Self {
            key: tag.key.clone(),
            description: None,
            last: None,
            listed: 0,
            plan: Plan::new(u64::try_from(tag.step).unwrap_or(1), cap),
            delta: tag.stride.delta.max(1),
            health: Health::Good,
            phase: Phase::Idle,
            wanted: false,
            starved: false,
            listed_since: false,
            cutoff: 0,
            asked_from: 0,
            open: None,
            opened_at: Duration::ZERO,
            chunks: VecDeque::new(),
            highest: 0,
            lent: 0,
            before: 0,
            unused: None,
            failures: 0,
            failures_total: 0,
            error: None,
            closed_total: 0,
        };
        buffer.on_listed(tag);
        buffer
    }

    /// Nothing below this end is accepted, and a store that is below it is not trusted.
    pub(super) fn remember(&mut self, before: u64) {
        self.before = before;
        self.highest = self.highest.max(before);
    }

    /// Called when the callers have used up their chunk. Returns the next one, if available; must
    /// be followed by [`ask`](Self::ask) in any case.
    pub(crate) fn next_chunk(&mut self, now: Duration) -> Result<Range<u64>, IdError> {
        self.wanted = true;
        if let Some(count) = self.close_chunk() {
            self.plan.used(count, self.opened_at, now);
        }
        (self.open, self.opened_at) = (self.chunks.pop_front(), now);
        self.starved |= self.open.is_none();
        self.open
            .as_ref()
            .map(|chunk| chunk.numbers.clone())
            .ok_or_else(|| self.refusal(now))
    }

    /// Counts the open chunk as used up; returns its size.
    fn close_chunk(&mut self) -> Option<u64> {
        let size = self.open.take()?.size();
        self.closed_total += size.div_ceil(self.delta);
        Some(size)
    }

    /// Returns `true` if a fetch is due, which then counts as queued: a thread has to
    /// [`begin`](Self::begin) it.
    pub(crate) fn ask(&mut self, now: Duration) -> bool {
        let free = match self.phase {
            Phase::Idle => true,
            Phase::Failed(until) => now >= until,
            Phase::Queued(_) | Phase::Fetching(..) => false,
        };
        let due = free && self.wants_more(now);
        if due {
            self.phase = Phase::Queued(now);
        }
        due
    }

    fn wants_more(&self, now: Duration) -> bool {
        let due = || {
            let open = self.open.as_ref();
            let begun = open.is_some_and(|open| open.numbers.start > open.of.start);
            let last = self.chunks.back().map(|chunk| &chunk.of) == open.map(|open| &open.of);
            begun && last || self.at_hand() < self.plan.low_water()
        };
        let justified = || self.plan.justifies(now, self.unused()) >= self.plan.table_step;
        self.health == Health::Good
            && self.wanted
            && (self.chunks.is_empty() || due() && justified())
    }

    /// Numbers not yet used up, as far as is known here.
    fn unused(&self) -> u64 {
        self.open.as_ref().map_or(0, Chunk::size) + self.at_hand()
    }

    /// Numbers of the chunks that have not been opened.
    fn at_hand(&self) -> u64 {
        self.chunks.iter().map(Chunk::size).sum()
    }

    /// A thread starts the queued fetch. Returns how many numbers to request; the thread then
    /// has to report the outcome. `None` if they are no longer needed.
    pub(crate) fn begin(&mut self, now: Duration) -> Option<u64> {
        let Phase::Queued(since) = self.phase else {
            return None;
        };
        if !self.wants_more(now) {
            self.phase = Phase::Idle;
            return None;
        }
        let size = self.size(now);
        self.phase = Phase::Fetching(since, size);
        (self.listed_since, self.asked_from) = (false, self.cutoff);
        Some(size)
    }

    /// Size of a fetch made now.
    fn size(&self, now: Duration) -> u64 {
        self.plan.size(now, self.starved, self.unused())
    }

    /// The thread that had the fetch, or was about to start it, panicked: treated as a failure of the store.
    pub(crate) fn on_panic(&mut self, now: Duration) -> Option<Duration> {
        let lost = matches!(self.phase, Phase::Queued(_) | Phase::Fetching(..));
        let panicked = std::io::Error::other("a panic while numbers were fetched");
        lost.then(|| self.fail(now, StoreError::unavailable("Vesta failed", panicked)))
    }

    /// Processes the outcome of the fetch. Must be followed by [`ask`](Self::ask), at once or after the returned pause.
    pub(crate) fn on_reply(
        &mut self,
        now: Duration,
        reply: Result<NextRange, StoreError>,
    ) -> Option<Duration> {
        let Phase::Fetching(asked_at, size) = self.phase else {
            return None;
        };
        let reply = match reply {
            Ok(
                NextRange::Numbers(Range { start, end })
                | NextRange::Strided(Range { start, end }, _),
            ) if start >= end || end > MAX => {
                let nonsense = format!("the store returned an invalid range, {start} to {end}");
                return Some(self.fail(now, StoreError::permanent(nonsense)));
            }
            Ok(reply) => reply,
            Err(error) => return Some(self.fail(now, error)),
        };
        (self.phase, self.failures) = (Phase::Idle, 0);
        match reply {
            NextRange::Numbers(range) => self.take_in(asked_at, now, range, Stride::ONE),
            NextRange::Strided(range, stride) => self.take_in(asked_at, now, range, stride),
            // It may have been put back meanwhile: the next fetch will show.
            NextRange::NoTag if self.listed_since => {}
            NextRange::NoTag => self.drop_all(Health::NoTag),
            // Numbers above the other cutoff may be used up while those above this one are not.
            NextRange::UsedUp if self.asked_from != self.cutoff => {}
            // The rest may still be enough for the table's own step.
            NextRange::UsedUp if self.plan.spare() && size > self.plan.table_step => {}
            NextRange::UsedUp => self.settle(Health::UsedUp),
        }
        None
    }

    fn take_in(&mut self, asked_at: Duration, now: Duration, range: Range<u64>, stride: Stride) {
        match (self.health, &mut self.unused) {
            (Health::Closed, Some(unused)) if range.start >= self.highest => {
                self.highest = range.end;
                unused.push(range);
                return;
            }
            (Health::NoTag | Health::TwoStores | Health::Closed, _) => return, // no caller may have them any more
            _ if stride.delta != self.delta => return self.settle(Health::OtherDelta),
            _ => {}
        }
        if range.start < self.highest {
            // This process's own fetches must not be what raises the store above it: an operator has to act.
            self.highest = self.highest.max(range.end);
            self.settle(Health::WentBack);
            return;
        }
        self.highest = range.end;
        self.starved = false;
        let size = range.end - range.start;
        self.plan.fetched(asked_at, now, size);
        // Each chunk starts with a number of the stride.
        let range = stride.within(range);
        let size = range.end - range.start;
        let cut = |at| stride.align(range.start + at).min(range.end);
        let tenth = size.div_ceil(10);
        let third = (size - tenth).div_ceil(3);
        let [a, b, c] = [0, 1, 2].map(|part| cut(tenth + part * third));
        for numbers in [range.start..a, a..b, b..c, c..range.end] {
            if !numbers.is_empty() {
                self.chunks.push_back(Chunk {
                    numbers,
                    of: range.clone(),
                });
            }
        }
    }

    fn fail(&mut self, now: Duration, error: StoreError) -> Duration {
        let pause = retry_pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.failures_total += 1;
        self.error = Some(error);
        self.phase = Phase::Failed(now.saturating_add(pause));
        pause
    }

    /// Stops fetching, for this reason; the available numbers may still be used up. A shutdown is final.
    fn settle(&mut self, health: Health) {
        if self.health != Health::Closed {
            self.health = health;
        }
    }

    /// The tag has been listed in the table, with these values.
    pub(crate) fn on_listed(&mut self, tag: &SegmentTag) {
        self.description.clone_from(&tag.description);
        let max_id = u64::try_from(tag.max_id);
        let step = u64::try_from(tag.step).ok().filter(|step| *step > 0);
        let changed =
            step.is_some_and(|step| self.plan.set_table_step(step)) || self.last != tag.last;
        (self.last, self.listed) = (tag.last, max_id.unwrap_or(0));
        self.listed_since = true;
        match self.health {
            Health::Closed => {}
            _ if max_id.is_err() || step.is_none() => self.settle(Health::BadRow),
            _ if !tag.stride.is_valid() => self.settle(Health::BadStride),
            _ if tag.stride.delta != self.delta => self.settle(Health::OtherDelta),
            Health::UsedUp if !changed => {}
            _ if max_id.is_ok_and(|max_id| max_id < self.before) => self.settle(Health::WentBack),
            Health::WentBack if max_id.is_ok_and(|max_id| max_id <= self.highest) => {}
            _ => self.settle(Health::Good),
        }
    }

    /// The tag left the table, or the service ends: the available numbers are given up. The
    /// caller takes the open chunk away from its users.
    pub(crate) fn drop_all(&mut self, health: Health) {
        if self.health == health {
            return;
        }
        if health == Health::Closed && matches!(self.health, Health::Good | Health::UsedUp) {
            self.unused = Some(
                self.chunks
                    .iter()
                    .map(|chunk| chunk.numbers.clone())
                    .collect(),
            );
        }
        self.settle(health);
        self.chunks.clear();
        self.close_chunk();
        self.wanted = false;
    }

    /// Keeps the rest of the open chunk, taken away before any caller got it.
    pub(crate) fn keep_unused(&mut self, rest: Option<Range<u64>>) {
        if let (Some(unused), Some(rest)) = (&mut self.unused, rest) {
            unused.insert(0, rest);
        }
    }

    /// The end of the numbers that callers may have been given: everything above it is unused.
    pub(crate) fn given_out(&self) -> u64 {
        // A gap that is smaller than the stride contains none of its numbers.
        let lower = |end: u64, numbers: &Range<u64>| {
            let follows = end
                .checked_sub(numbers.end)
                .is_some_and(|gap| gap < self.delta);
            if follows { numbers.start } else { end }
        };
        self.unused.iter().flatten().rev().fold(self.highest, lower)
    }

    /// Nothing will be given back.
    pub(super) fn forget_unused(&mut self) {
        self.unused = None;
    }

    /// The numbers to give back to the store; each is returned only once. `None` while a fetch is
    /// in flight, whose numbers come on top.
    pub(crate) fn give_back(&mut self) -> Option<Range<u64>> {
        if matches!(self.phase, Phase::Fetching(..)) {
            return None;
        }
        let numbers = self.given_out()..self.highest;
        self.highest = numbers.start;
        self.unused
            .as_mut()?
            .retain(|unused| unused.end <= numbers.start);
        (!numbers.is_empty()).then_some(numbers)
    }
}

#[cfg(test)]
mod tests;

//! The state of one tag: what is at hand, what is under way, what to ask for next. Pure: the time
//! and the store's answers come in as values, ranges and requests go out as values.
//!
//! A fetched range goes to the callers in **chunks**, its first tenth and three more, so that
//! handing out the second one is the sign that a tenth is used and the next range is due. Only one
//! request of a tag is under way at a time: its answers then come in the order of their numbers,
//! which strictly increasing IDs need, and no answer can overtake another. What several requests
//! side by side would bring, one brings in its size instead (see [`Plan`]).

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
use crate::error::StoreError;
use crate::wait::retry_pause;
use plan::Plan;
pub(super) use report::{SHUT_DOWN, not_found};

/// The numbers of one tag that are at hand or under way.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    key: String,
    description: Option<String>,
    plan: Plan,
    /// From one number to the next.
    delta: u64,
    pub(super) health: Health,
    phase: Phase,
    /// Numbers were asked for: nothing is fetched for an unused tag.
    wanted: bool,
    /// Callers found nothing since the last range came.
    starved: bool,
    /// The tag was in the table after the fetch under way had begun.
    listed_since: bool,
    /// Numbers below are over, as the last caller has it who looked: a clock that is set right lowers it.
    cutoff: u64,
    /// The cutoff when the fetch under way began.
    asked_from: u64,
    /// The chunk that callers use up now.
    open: Option<Chunk>,
    /// Since when.
    opened_at: Duration,
    /// The chunks that they get next.
    chunks: VecDeque<Chunk>,
    /// The end of the ranges that this process was given: nothing below is taken again, whatever the
    /// store says. The store itself may stand lower, where others gave numbers back.
    highest: u64,
    /// The end of the ranges that were lent to others.
    lent: u64,
    /// The end of what processes of this host were given that are gone. A store below it has forgotten
    /// something.
    before: u64,
    /// The numbers that are left at the end, ascending, to be given back: `None` if nothing may.
    unused: Option<Vec<Range<u64>>>,
    /// Fetches that failed one after another, and the last error there was.
    failures: u32,
    failures_total: u64,
    error: Option<StoreError>,
    /// Numbers in all chunks that were used up or given up.
    closed_total: u64,
}

/// Health of a tag: can the store give numbers for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// There is no such tag, or no longer.
    NoTag,
    /// Its row has a step below 1 or a negative `max_id`.
    BadRow,
    /// Its row has a delta or a remainder that is none.
    BadStride,
    /// Its row has another delta than at the start: numbers at hand may be others' by it.
    OtherDelta,
    /// There are no more numbers of 63 bits.
    UsedUp,
    /// The store offered numbers that were handed out before: it was restored from a backup, or
    /// somebody set `max_id` back.
    WentBack,
    /// The service was shut down.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// A fetch waits for a thread since this moment.
    Queued(Duration),
    /// A fetch is under way: asked for at this moment, so many numbers.
    Fetching(Duration, u64),
    /// The last fetch failed; not again before this moment.
    Failed(Duration),
}

/// A part of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    numbers: Range<u64>,
    of: Range<u64>,
}

impl Chunk {
    /// Its extent: with a stride, more than it has numbers.
    const fn size(&self) -> u64 {
        self.numbers.end - self.numbers.start
    }
}

impl Buffer {
    /// Nothing at hand.
    pub(crate) fn new(tag: &SegmentTag, cap: u64) -> Self {
        let mut buffer = Self {
            key: tag.key.clone(),
            description: None,
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

    /// Nothing below this end is taken, and no store is trusted that stands there.
    pub(super) fn remember(&mut self, before: u64) {
        self.before = before;
        self.highest = self.highest.max(before);
    }

    /// The callers have used up what they had. Gives them more, if there is more; to be followed by
    /// [`ask`](Self::ask) in any case.
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

    /// Numbers that nobody has used up, as far as is known here.
    fn unused(&self) -> u64 {
        self.open.as_ref().map_or(0, Chunk::size) + self.at_hand()
    }

    /// Numbers that are not yet being used up.
    fn at_hand(&self) -> u64 {
        self.chunks.iter().map(Chunk::size).sum()
    }

    /// A thread turns to the queued fetch. Returns how many numbers it has to ask for; it then has to
    /// report what came of it. `None` if they are no longer wanted.
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

    /// The numbers that a fetch would bring now.
    fn size(&self, now: Duration) -> u64 {
        self.plan.size(now, self.starved, self.unused())
    }

    /// The thread that had the fetch, or was about to, panicked: as if the store had failed.
    pub(crate) fn on_panic(&mut self, now: Duration) -> Option<Duration> {
        let lost = matches!(self.phase, Phase::Queued(_) | Phase::Fetching(..));
        let panicked = std::io::Error::other("a panic while numbers were fetched");
        lost.then(|| self.fail(now, StoreError::unavailable("Vesta failed", panicked)))
    }

    /// Takes in the outcome of the fetch. To be followed by [`ask`](Self::ask), at once or after the pause that
    /// is returned.
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
                let nonsense = format!("the store answered with the numbers {start} to {end}");
                return Some(self.fail(now, StoreError::permanent(nonsense)));
            }
            Ok(reply) => reply,
            Err(error) => return Some(self.fail(now, error)),
        };
        (self.phase, self.failures) = (Phase::Idle, 0);
        match reply {
            NextRange::Numbers(range) => self.take_in(asked_at, now, range, Stride::ONE),
            NextRange::Strided(range, stride) => self.take_in(asked_at, now, range, stride),
            // It may have been put back meanwhile: the next fetch tells.
            NextRange::NoTag if self.listed_since => {}
            NextRange::NoTag => self.drop_all(Health::NoTag),
            // Those above another cutoff may have been used up, and not those above this one.
            NextRange::UsedUp if self.asked_from != self.cutoff => {}
            // What is left may still do for the table's own step.
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
            (Health::NoTag | Health::Closed, _) => return, // nobody may have them any more
            _ if stride.delta != self.delta => return self.settle(Health::OtherDelta),
            _ => {}
        }
        if range.start < self.highest {
            // Its own fetches must not be what brings the store above it: a person has to look.
            self.highest = self.highest.max(range.end);
            self.settle(Health::WentBack);
            return;
        }
        self.highest = range.end;
        self.starved = false;
        let size = range.end - range.start;
        self.plan.fetched(asked_at, now, size);
        // Each chunk begins with a number of the stride.
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

    /// There will be no more ranges; what is at hand may be used up. A shutdown is final.
    fn settle(&mut self, health: Health) {
        if self.health != Health::Closed {
            self.health = health;
        }
    }

    /// The tag is in the table, like this.
    pub(crate) fn on_listed(&mut self, tag: &SegmentTag) {
        self.description.clone_from(&tag.description);
        let max_id = u64::try_from(tag.max_id);
        let step = u64::try_from(tag.step).ok().filter(|step| *step > 0);
        let changed = step.is_some_and(|step| self.plan.set_table_step(step));
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

    /// The tag is no longer in the table, or the service ends: what is at hand is given up. The caller
    /// takes the open chunk away from its users.
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

    /// The end of what callers may have been given: above it everything is unused.
    pub(crate) fn given_out(&self) -> u64 {
        // A gap that is smaller than the stride has none of its numbers.
        let lower = |end: u64, numbers: &Range<u64>| {
            let follows = end
                .checked_sub(numbers.end)
                .is_some_and(|gap| gap < self.delta);
            if follows { numbers.start } else { end }
        };
        self.unused.iter().flatten().rev().fold(self.highest, lower)
    }

    /// Nothing goes back.
    pub(super) fn forget_unused(&mut self) {
        self.unused = None;
    }

    /// The numbers to give back to the store: each is returned once. `None` while a fetch is under
    /// way, whose numbers come on top.
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

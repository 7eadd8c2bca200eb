//! The state of one tag: what is at hand, what is under way, what to ask for next. Pure: the time
//! and the store's answers come in as values, ranges and requests go out as values.
//!
//! A fetched range goes to the callers in two **chunks**, its first tenth and the rest, so that
//! handing out the second one is the sign that a tenth is used and the next range is due. Only one
//! request of a tag is under way at a time: its answers then come in the order of their numbers,
//! which strictly increasing IDs need, and no answer can overtake another. What several requests
//! side by side would bring, one brings in its size instead (see [`Plan`]).

mod plan;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, NotReady, NotReadyReason};

use super::status::SegmentStatus;
use super::store::{MAX, NewSegmentTag, NextRange, SegmentTag};
use crate::StoreError;
use crate::wait::{LONGEST_PAUSE, retry_pause};
use plan::{Plan, per_second};

/// Assumed duration of a fetch before one was seen.
const GUESSED_FETCH: Duration = Duration::from_millis(20);

/// The numbers of one tag that are at hand or under way.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    key: String,
    description: Option<String>,
    plan: Plan,
    pub(super) health: Health,
    phase: Phase,
    /// Numbers were asked for: nothing is fetched for an unused tag.
    wanted: bool,
    /// Callers found nothing since the last range came.
    starved: bool,
    /// The tag was in the table after the fetch under way had begun.
    listed_since: bool,
    /// The chunk that callers use up now.
    open: Option<Chunk>,
    /// Since when.
    opened_at: Duration,
    /// The chunks that they get next.
    chunks: VecDeque<Chunk>,
    /// Every range below was had before; nothing below is taken again, whatever the store says.
    highest: u64,
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
            health: Health::Good,
            phase: Phase::Idle,
            wanted: false,
            starved: false,
            listed_since: false,
            open: None,
            opened_at: Duration::ZERO,
            chunks: VecDeque::new(),
            highest: 0,
            failures: 0,
            failures_total: 0,
            error: None,
            closed_total: 0,
        };
        buffer.on_listed(tag);
        buffer
    }

    /// The callers have used up what they had. Gives them more, if there is more; to be followed by
    /// [`ask`](Self::ask) in any case.
    pub(crate) fn next_chunk(&mut self, now: Duration) -> Result<Range<u64>, IdError> {
        self.wanted = true;
        if let Some(count) = self.close_chunk() {
            self.plan.used(count, now.saturating_sub(self.opened_at));
        }
        (self.open, self.opened_at) = (self.chunks.pop_front(), now);
        self.starved |= self.open.is_none();
        self.open.as_ref().map(|chunk| chunk.numbers.clone()).ok_or_else(|| self.refusal(now))
    }

    /// Counts the open chunk as used up; returns its size.
    fn close_chunk(&mut self) -> Option<u64> {
        let count = self.open.take()?.size();
        self.closed_total += count;
        Some(count)
    }

    /// Why there are no numbers now.
    fn refusal(&self, now: Duration) -> IdError {
        if let Some(reason) = self.trouble().map(Into::into) {
            return match self.health {
                Health::NoTag => not_found(&self.key),
                Health::UsedUp | Health::Closed => IdError::Sealed { reason },
                _ => IdError::Unavailable { reason, retry_after: None, source: None },
            };
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
                // Overdue: twice as long as until now is as good a guess as any.
                if waited < usual { usual - waited } else { waited }
            }
        };
        let retry_after = left.clamp(Duration::from_millis(1), LONGEST_PAUSE);
        match self.failing_because() {
            None => NotReady { retry_after, why: NotReadyReason::AwaitingLease }.into(),
            // What the store said is the source: it can name hosts and tables, which is not for
            // callers from afar.
            Some(error) => IdError::Unavailable {
                reason: format!("the store does not give numbers of tag `{}`", self.key).into(),
                // Waiting helps unless somebody has to repair something first.
                retry_after: (!error.is_permanent()).then_some(retry_after),
                source: Some(Arc::new(error.clone())),
            },
        }
    }

    /// Returns `true` if a fetch is due, which then counts as queued: a thread has to
    /// [`begin`](Self::begin) it.
    pub(crate) fn ask(&mut self, now: Duration) -> bool {
        let free = match self.phase {
            Phase::Idle => true,
            Phase::Failed(until) => now >= until,
            Phase::Queued(_) | Phase::Fetching(..) => false,
        };
        let due = free && self.wants_more();
        if due {
            self.phase = Phase::Queued(now);
        }
        due
    }

    fn wants_more(&self) -> bool {
        self.health == Health::Good
            && self.wanted
            && (self.chunks.is_empty() || self.at_hand() < self.plan.low_water())
    }

    /// Numbers that are not yet being used up.
    fn at_hand(&self) -> u64 {
        self.chunks.iter().map(Chunk::size).sum()
    }

    /// A thread turns to the queued fetch. Returns how many numbers it has to ask for; it then has to
    /// report what came of it. `None` if they are no longer wanted.
    pub(crate) fn begin(&mut self, now: Duration) -> Option<u64> {
        let Phase::Queued(since) = self.phase else { return None };
        if !self.wants_more() {
            self.phase = Phase::Idle;
            return None;
        }
        let size = self.plan.size(now, self.starved);
        self.phase = Phase::Fetching(since, size);
        self.listed_since = false;
        Some(size)
    }

    /// Takes in the outcome of the fetch. To be followed by [`ask`](Self::ask), at once or after the pause that
    /// is returned.
    pub(crate) fn on_reply(
        &mut self,
        now: Duration,
        reply: Result<NextRange, StoreError>,
    ) -> Option<Duration> {
        let Phase::Fetching(asked_at, size) = self.phase else { return None };
        let reply = match reply {
            Ok(NextRange::Numbers(Range { start, end })) if start >= end || end > MAX => {
                let nonsense = format!("the store answered with the numbers {start} to {end}");
                return Some(self.fail(now, StoreError::permanent(nonsense)));
            }
            Ok(reply) => reply,
            Err(error) => return Some(self.fail(now, error)),
        };
        (self.phase, self.failures) = (Phase::Idle, 0);
        match reply {
            NextRange::Numbers(range) => self.take_in(asked_at, now, range),
            // It may have been put back meanwhile: the next fetch tells.
            NextRange::NoTag if self.listed_since => {}
            NextRange::NoTag => self.drop_all(Health::NoTag),
            // What is left may still do for the table's own step.
            NextRange::UsedUp if self.plan.spare() && size > self.plan.table_step => {}
            NextRange::UsedUp => self.settle(Health::UsedUp),
        }
        None
    }

    fn take_in(&mut self, asked_at: Duration, now: Duration, range: Range<u64>) {
        if matches!(self.health, Health::NoTag | Health::Closed) {
            return; // nobody may have them any more
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
        let tenth = range.start + size.div_ceil(10);
        for numbers in [range.start..tenth, tenth..range.end] {
            if !numbers.is_empty() {
                self.chunks.push_back(Chunk { numbers, of: range.clone() });
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
            Health::UsedUp if !changed => {}
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
        self.settle(health);
        self.chunks.clear();
        self.close_chunk();
        self.wanted = false;
    }

    /// The last error of the store, if the fetch after it has not succeeded.
    pub(crate) fn failing_because(&self) -> Option<&StoreError> {
        self.error.as_ref().filter(|_| self.failures > 0)
    }

    /// Why no more numbers will come by themselves.
    pub(crate) fn trouble(&self) -> Option<String> {
        let (key, highest) = (&self.key, self.highest);
        Some(match self.health {
            Health::Good => return None,
            Health::NoTag => format!("tag `{key}` is not in the table"),
            Health::BadRow => {
                format!("the row of tag `{key}` needs a step above 0 and no negative max_id")
            }
            Health::UsedUp => format!("tag `{key}` has no more numbers of 63 bits"),
            Health::WentBack => format!(
                "the store went back: set max_id of tag `{key}` above {highest}, and above \
                 everything that any server gave out"
            ),
            Health::Closed => SHUT_DOWN.into(),
        })
    }

    /// Status of the tag. `position` is the first number that the callers have not had, `lost_total`
    /// what was taken for batches that failed.
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
            taken_total: self.closed_total + used,
            lost_total,
            rate,
            table_step: self.plan.table_step,
            step: self.plan.step(now),
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

pub(super) const SHUT_DOWN: &str = "it was shut down";

pub(super) fn not_found(key: &str) -> IdError {
    // Callers from afar choose the name: no more of it than a tag can have.
    let key: String = key.chars().take(NewSegmentTag::MAX_KEY).collect();
    IdError::NotFound { what: format!("segment tag `{key}`").into() }
}

#[cfg(test)]
mod tests;

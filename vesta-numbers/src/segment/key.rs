//! One tag: its numbers, its state, and its waiters.

use std::ops::Range;
use std::time::Duration;

use vesta_intf::IdError;

use super::buffer::{Buffer, Health};
use super::cursor::RangeCursor;
use super::status::SegmentStatus;
use super::store::SegmentTag;
use vesta_service::inside::Notify;
use vesta_service::inside::sync::{AtomicU64, Mutex, Ordering};

/// One tag. Never removed from a service: its record of issued numbers must not be lost.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(super) cursor: RangeCursor,
    /// Distance between neighbouring numbers of the tag. Constant as long as the key exists, as a caller may
    /// have read it long ago.
    stride: u64,
    /// Also the lock under which the cursor switches to another chunk.
    pub(super) state: Mutex<Buffer>,
    /// Notified when numbers have come, and when it is known that none will.
    pub(crate) notify: Notify,
    /// Numbers that were taken and will never be issued.
    pub(super) lost: AtomicU64,
}

impl Key {
    pub(crate) fn new(tag: &SegmentTag, cap: u64) -> Self {
        Self {
            name: tag.key.clone(),
            cursor: RangeCursor::new(),
            stride: tag.stride.delta.max(1),
            state: Mutex::new(Buffer::new(tag, cap)),
            notify: Notify::default(),
            lost: AtomicU64::new(0),
        }
    }

    /// Distance between neighbouring numbers of the tag.
    pub(crate) const fn stride(&self) -> u64 {
        self.stride
    }

    /// The next 1 to `want` numbers, spaced by the stride from the start of the range; `None` if no
    /// number is ready.
    #[inline]
    pub(crate) fn take(&self, want: u64) -> Option<Range<u64>> {
        // In a separate branch the usual stride costs nothing.
        match self.stride {
            1 => self.cursor.take(want),
            stride => self.cursor.take(want * stride),
        }
    }

    /// As [`take`](Self::take), after that found nothing. The second result is true if a fetch became
    /// due, which is possible even when numbers are available.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_slowly(
        &self,
        want: u64,
        now: Duration,
    ) -> (Result<Range<u64>, IdError>, bool) {
        let want = want * self.stride;
        let mut state = self.state.lock();
        if let Some(taken) = self.cursor.take(want) {
            return (Ok(taken), false); // another thread opened a chunk meanwhile
        }
        let chunk = state.next_chunk(now);
        let due = state.ask(now);
        (chunk.map(|chunk| self.cursor.refill(chunk, want)), due)
    }

    /// Gives back numbers that were taken last and reached no caller. Returns `false` if later ones were taken, or
    /// the tag has ended.
    pub(crate) fn give_back(&self, numbers: &Range<u64>) -> bool {
        let state = self.state.lock();
        matches!(state.health, Health::Good | Health::UsedUp) && self.cursor.give_back(numbers)
    }

    /// A thread starts the fetch that is queued or due; returns how many numbers to request.
    pub(crate) fn begin(&self, now: Duration) -> Option<u64> {
        let mut state = self.state.lock();
        state.ask(now);
        state.begin(now)
    }

    /// Ends the tag: it is not in the table, or no longer, or the service ends.
    pub(crate) fn end(&self, now: Duration, health: Health) {
        self.change(now, |buffer| {
            buffer.drop_all(health);
            None
        });
    }

    /// Changes the state and applies the consequences. Returns the pause after which a fetch is to be started.
    pub(crate) fn change(
        &self,
        now: Duration,
        by: impl FnOnce(&mut Buffer) -> Option<Duration>,
    ) -> Option<Duration> {
        let mut state = self.state.lock();
        let before = state.health;
        let pause = by(&mut state);
        let health = state.health;
        if matches!(health, Health::NoTag | Health::TwoStores | Health::Closed) {
            state.keep_unused(self.cursor.stop());
        }
        let pause = pause.or_else(|| state.ask(now).then_some(Duration::ZERO));
        if ![before, Health::Closed].contains(&health)
            && let Some(trouble) = state.trouble()
        {
            tracing::warn!(tag = self.name, "{trouble}");
        }
        drop(state);
        self.notify.notify();
        pause
    }

    pub(crate) fn status(&self, now: Duration) -> SegmentStatus {
        let lost = self.lost.load(Ordering::Relaxed);
        self.state.lock().status(now, self.cursor.position(), lost)
    }
}

//! A store, its driver and its callers, as a buffer sees them.

use std::ops::Range;
use std::time::Duration;

use super::super::super::store::{NextRange, SegmentTag};
use super::super::{Buffer, Health};
use vesta_service::lease::StoreError;

/// Events of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The callers have used up their numbers.
    Take,
    /// A thread starts the queued fetch.
    Begin,
    /// The store executes the request and its reply arrives.
    Answer,
    /// The store executes the request, and the reply is lost.
    AnswerLost,
    /// The store refuses.
    Refuse,
    /// The table is read.
    List,
    /// The table is read, and the tag is not in it.
    Miss,
    /// Another server takes numbers.
    Other,
    /// A pause ends, or the next minute begins.
    Later,
    /// Half an hour.
    MuchLater,
}

pub(super) const EVENTS: [Event; 10] = [
    Event::Take,
    Event::Begin,
    Event::Answer,
    Event::AnswerLost,
    Event::Refuse,
    Event::List,
    Event::Miss,
    Event::Other,
    Event::Later,
    Event::MuchLater,
];

#[derive(Debug, Clone)]
pub(super) struct World {
    buffer: Buffer,
    now: Duration,
    /// The row in the table.
    row: SegmentTag,
    cap: u64,
    /// A fetch is queued, according to the driver.
    queued: bool,
    /// A fetch of this size is in flight.
    under_way: Option<u64>,
    /// The driver checks again at this moment.
    timer: Option<Duration>,
    /// Ranges that this buffer was given and has not given up.
    granted: Vec<Range<u64>>,
    /// The end of the last chunk.
    issued: u64,
}

pub(super) fn row(step: i64, max_id: i64) -> SegmentTag {
    SegmentTag::new("orders", max_id, step)
}

pub(super) fn no_answer() -> StoreError {
    StoreError::unavailable(
        "no answer",
        std::io::Error::from(std::io::ErrorKind::TimedOut),
    )
}

impl World {
    pub(super) fn new(row: SegmentTag, cap: u64) -> Self {
        Self {
            buffer: Buffer::new(&row, cap),
            now: Duration::ZERO,
            row,
            cap,
            queued: false,
            under_way: None,
            timer: None,
            granted: Vec::new(),
            issued: 0,
        }
    }

    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Take => {
                self.take();
            }
            Event::Begin if self.queued => {
                self.queued = false;
                assert_eq!(self.under_way, None, "one request at a time");
                self.under_way = self.buffer.begin(self.now);
                if let Some(size) = self.under_way {
                    let step = self.row.step.unsigned_abs();
                    assert!(size >= step && size <= self.cap.max(step), "{size}");
                }
            }
            Event::Answer if self.under_way.is_some() => {
                let range = self.advance_row();
                self.reply(Ok(NextRange::Numbers(range)));
            }
            Event::AnswerLost if self.under_way.is_some() => {
                self.advance_row();
                self.reply(Err(no_answer()));
            }
            Event::Refuse if self.under_way.is_some() => {
                self.reply(Err(StoreError::permanent("no")));
            }
            Event::List => {
                self.buffer.on_listed(&self.row);
                self.ask();
            }
            Event::Miss => {
                self.buffer.drop_all(Health::NoTag);
                self.ask();
            }
            Event::Other => self.row.max_id += 3,
            Event::Later => self.pass(Duration::from_secs(1)),
            Event::MuchLater => self.pass(Duration::from_secs(1801)),
            _ => {}
        }
        self.no_caller_waits_in_vain();
    }

    fn advance_row(&mut self) -> Range<u64> {
        let size = self.under_way.expect("in flight");
        let start = self.row.max_id.unsigned_abs();
        self.row.max_id += i64::try_from(size).expect("small");
        start..start + size
    }

    fn reply(&mut self, reply: Result<NextRange, StoreError>) {
        self.under_way = None;
        if let Ok(NextRange::Numbers(range)) = &reply {
            self.granted.push(range.clone());
        }
        match self.buffer.on_reply(self.now, reply) {
            Some(pause) => self.timer = Some(self.now + pause),
            None => self.ask(),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.timer.is_some_and(|timer| timer <= self.now) {
            self.timer = None;
            self.ask();
        }
    }

    fn ask(&mut self) {
        if self.buffer.ask(self.now) {
            assert!(
                !self.queued && self.under_way.is_none(),
                "one request at a time"
            );
            self.queued = true;
        }
    }

    /// The callers ask for numbers; returns `true` if they get some.
    fn take(&mut self) -> bool {
        let chunk = self.buffer.next_chunk(self.now);
        self.ask();
        let Ok(chunk) = chunk else { return false };
        assert!(
            !chunk.is_empty() && chunk.start >= self.issued,
            "{chunk:?} after {}",
            self.issued
        );
        assert!(
            self.granted
                .iter()
                .any(|range| range.start <= chunk.start && chunk.end <= range.end),
            "{chunk:?} is not of {:?}",
            self.granted
        );
        self.issued = chunk.end;
        true
    }

    /// Waiting callers have something to wait for.
    fn no_caller_waits_in_vain(&self) {
        let mut copy = self.clone();
        if let Err(refusal) = copy.buffer.next_chunk(self.now) {
            let asks = copy.buffer.ask(self.now);
            let hope = asks || self.queued || self.under_way.is_some() || self.timer.is_some();
            let never = copy.buffer.health == Health::NoTag;
            assert!(hope || never, "{refusal:?}: {self:?}");
            assert_eq!(refusal.retry_after().is_none(), never, "{refusal:?}");
        }
    }

    /// With a working store and the tag in the table, callers get numbers again.
    pub(super) fn must_recover(mut self) {
        self.happen(Event::List);
        for event in [Event::Later, Event::Begin, Event::Answer].repeat(4) {
            if self.take() {
                return;
            }
            self.happen(event);
        }
        panic!("stuck: {self:?}");
    }
}

//! The life of a lease after its claim: extended again and again, released or fenced. Pure: time
//! and random numbers come in as values, requests go out as values.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::{Expect, Record};
use crate::sequence::Rules;

/// A lease that was claimed.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    rules: Rules,
    window_ticks: u64,
    renew_every: Duration,
    /// The record as the store acknowledged it last.
    record: Record,
    /// A change that was sent and not yet answered. Until its fate is known it is sent again
    /// unchanged, and nothing else is sent.
    pending: Option<Record>,
    /// When that change was made, on the monotonic clock.
    made: Duration,
    /// When to send next, on the monotonic clock.
    due: Duration,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Held,
    /// The line was sealed at this position.
    Releasing(u64),
    Over,
}

/// What a driver hands in with each step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The monotonic clock.
    pub(crate) monotonic: Duration,
    /// The tick of the effective clock.
    pub(crate) tick: u64,
    /// The wall clock, for people who read the record.
    pub(crate) wall: UnixMillis,
    /// A fresh random number of 63 bits.
    pub(crate) random: u64,
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing before this moment of the monotonic clock.
    Wait(Duration),
    /// Send this compare-and-set and hand in the reply.
    Write(Expect, Record),
    /// Nothing, ever: the lease is over.
    Stop,
}

/// The reply to a compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    Conflict(Record),
    Unknown,
}

/// What a reply meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Positions below this bound may now be issued.
    Raised(u64),
    /// Not known yet; the same request will be sent again.
    Unsure,
    /// The record was given back.
    Released,
    /// Somebody else owns the record. The line must be sealed.
    Fenced(Record),
}

impl Lease {
    /// A lease whose claim was acknowledged with this record.
    pub(crate) fn new(
        rules: Rules,
        window_ticks: u64,
        renew_every: Duration,
        claimed: Record,
        now: Now,
    ) -> Self {
        let due = now.monotonic + spread(renew_every, now.random);
        Self {
            rules,
            window_ticks,
            renew_every,
            record: claimed,
            pending: None,
            made: now.monotonic,
            due,
            phase: Phase::Held,
        }
    }

    /// The record as acknowledged.
    pub(crate) const fn record(&self) -> &Record {
        &self.record
    }

    /// Gives the record back. `sealed_at` is what sealing the line returned: no position at or above
    /// it was or will be issued.
    pub(crate) fn release(&mut self, sealed_at: u64) {
        if self.phase == Phase::Held {
            self.phase = Phase::Releasing(sealed_at);
            self.due = Duration::ZERO;
        }
    }

    /// What to do now.
    pub(crate) fn next(&mut self, now: Now) -> Action {
        if self.phase == Phase::Over {
            return Action::Stop;
        }
        // A clock that was stepped ahead can stand beyond the bound long before a renewal is due.
        let used_up = self.phase == Phase::Held
            && self.pending.is_none()
            && self.rules.position(now.tick) >= self.record.bound;
        if now.monotonic < self.due && !used_up {
            return Action::Wait(self.due);
        }
        if self.pending.is_none() {
            self.pending = self.change(now);
            self.made = now.monotonic;
        }
        match &self.pending {
            Some(new) => Action::Write(self.record.expect(), new.clone()),
            None => {
                self.due = now.monotonic + spread(self.renew_every, now.random);
                Action::Wait(self.due)
            }
        }
    }

    /// The change that is due, if there is one to make.
    fn change(&self, now: Now) -> Option<Record> {
        let changed = Record { attempt: now.random, info_time: now.wall, ..self.record.clone() };
        match self.phase {
            // Counted from the clock, not from the old bound: that would run away.
            Phase::Held => {
                let bound = self.rules.position(now.tick.saturating_add(self.window_ticks));
                (bound > self.record.bound).then_some(Record { bound, ..changed })
            }
            Phase::Releasing(sealed_at) => {
                // The only lowering of a bound, to what sealing left unused.
                let bound = sealed_at.min(self.record.bound);
                Some(Record { bound, owner: 0, released: true, ..changed })
            }
            Phase::Over => None,
        }
    }

    /// Takes in the reply to the last [`Action::Write`].
    pub(crate) fn on_reply(&mut self, reply: Reply, now: Now) -> Event {
        let Some(pending) = self.pending.take() else {
            return Event::Unsure; // a reply that nobody waits for says nothing
        };
        let mine = |current: &Record| {
            current.attempt == pending.attempt && current.expect() == pending.expect()
        };
        match reply {
            Reply::Unknown => {
                self.pending = Some(pending);
                self.due = now.monotonic + spread(self.renew_every / 10, now.random);
                Event::Unsure
            }
            Reply::Conflict(current) if !mine(&current) => {
                self.phase = Phase::Over;
                Event::Fenced(current)
            }
            // Done, or found to have been done by an attempt whose reply was lost.
            Reply::Done | Reply::Conflict(_) => {
                let released = pending.released;
                self.record = pending;
                if released {
                    self.phase = Phase::Over;
                    return Event::Released;
                }
                if self.phase == Phase::Held {
                    // Counted from when it was made: one that was answered late, after an outage,
                    // may lie in the past by now, and the next one is due at once.
                    self.due = self.made + spread(self.renew_every, now.random);
                }
                Event::Raised(self.record.bound)
            }
        }
    }
}

/// The duration ± 10 %, so that a fleet started together does not renew together.
fn spread(duration: Duration, random: u64) -> Duration {
    let percent = u32::try_from(90 + random % 21).unwrap_or(100);
    duration * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules::new(30, 4, 0);
    const SECOND: Duration = Duration::from_secs(1);

    fn now(seconds: u64, random: u64) -> Now {
        Now {
            monotonic: SECOND * u32::try_from(seconds).unwrap(),
            tick: 100 + seconds,
            wall: UnixMillis(0),
            random,
        }
    }

    fn lease() -> Lease {
        let claimed = Record {
            epoch: 5,
            owner: 77,
            bound: RULES.position(103),
            attempt: 1,
            ..Record::default()
        };
        Lease::new(RULES, 3, SECOND, claimed, now(0, 10))
    }

    #[test]
    fn a_clock_beyond_the_bound_is_followed_before_a_renewal_is_due() {
        let mut lease = lease();
        assert!(matches!(lease.next(Now { tick: 102, ..now(0, 10) }), Action::Wait(_)));
        let ahead = Now { tick: 103, ..now(0, 10) };
        assert_eq!(written(lease.next(ahead)).1.bound, RULES.position(106));
        // While nobody answers it is asked as often as after any other request.
        assert_eq!(lease.on_reply(Reply::Unknown, ahead), Event::Unsure);
        assert!(matches!(lease.next(ahead), Action::Wait(_)));
    }

    #[test]
    fn each_change_has_an_attempt_and_a_time_of_its_own() {
        let later = Now { wall: UnixMillis(7), ..now(2, 42) };
        let (_, new) = written(lease().next(later));
        assert_eq!((new.attempt, new.info_time), (42, UnixMillis(7)));
    }

    fn written(action: Action) -> (Expect, Record) {
        match action {
            Action::Write(expect, new) => (expect, new),
            other => panic!("expected a write, got {other:?}"),
        }
    }

    #[test]
    fn an_extend_that_an_outage_held_up_is_followed_by_the_next_one_at_once() {
        let mut lease = lease();
        let (_, held_up) = written(lease.next(now(2, 10)));
        assert_eq!(lease.on_reply(Reply::Unknown, now(2, 10)), Event::Unsure);
        let bound = held_up.bound;
        assert_eq!(written(lease.next(now(60, 10))).1, held_up, "it is sent again unchanged");
        assert_eq!(lease.on_reply(Reply::Done, now(60, 10)), Event::Raised(bound));
        assert!(bound < RULES.position(160), "its bound is past by now");
        let (_, next) = written(lease.next(now(60, 10)));
        assert_eq!(next.bound, RULES.position(163));
    }

    #[test]
    fn it_extends_from_the_clock_and_raises_only_after_the_reply() {
        let mut lease = lease();
        assert_eq!(lease.next(now(0, 3)), Action::Wait(SECOND));
        let (expect, new) = written(lease.next(now(1, 2)));
        assert_eq!(expect, Expect { epoch: 5, owner: 77, bound: RULES.position(103) });
        assert_eq!(new.bound, RULES.position(104));
        assert_eq!(lease.record().bound, RULES.position(103), "not before the reply");
        assert_eq!(lease.on_reply(Reply::Done, now(1, 10)), Event::Raised(RULES.position(104)));
        assert_eq!(lease.next(now(1, 4)), Action::Wait(2 * SECOND));
    }

    #[test]
    fn a_clock_that_stands_still_writes_nothing() {
        let mut lease = lease();
        let still = Now { tick: 100, ..now(1, 10) };
        assert_eq!(lease.next(still), Action::Wait(2 * SECOND));
    }

    #[test]
    fn a_lost_reply_is_asked_for_with_the_same_request_and_never_with_another() {
        let mut lease = lease();
        let first = written(lease.next(now(1, 2)));
        assert_eq!(lease.on_reply(Reply::Unknown, now(1, 10)), Event::Unsure);
        let again = written(lease.next(now(9, 3)));
        assert_eq!(again, first, "unchanged, although the clock went on");
        let took_effect_the_first_time = Reply::Conflict(first.1.clone());
        let event = lease.on_reply(took_effect_the_first_time, now(9, 10));
        assert_eq!(event, Event::Raised(first.1.bound));
    }

    #[test]
    fn anothers_record_fences_even_if_it_is_of_the_same_bound() {
        for stranger in [
            |r: Record| Record { attempt: r.attempt + 1, ..r },
            |r: Record| Record { epoch: r.epoch + 1, ..r },
            |r: Record| Record { owner: 78, ..r },
            |r: Record| Record { bound: r.bound + 1, ..r },
        ] {
            let mut lease = lease();
            let (_, new) = written(lease.next(now(1, 2)));
            let current = stranger(new);
            let event = lease.on_reply(Reply::Conflict(current.clone()), now(1, 3));
            assert_eq!(event, Event::Fenced(current));
            assert_eq!(lease.next(now(99, 4)), Action::Stop);
        }
    }

    #[test]
    fn a_release_lowers_the_bound_to_where_the_line_was_sealed() {
        let mut lease = lease();
        let sealed_at = RULES.position(101) + 3;
        lease.release(sealed_at);
        let (expect, new) = written(lease.next(now(0, 2)));
        assert_eq!(expect.bound, RULES.position(103));
        assert_eq!((new.bound, new.owner, new.released), (sealed_at, 0, true));
        assert_eq!(new.epoch, 5);
        assert_eq!(lease.on_reply(Reply::Done, now(0, 3)), Event::Released);
        assert_eq!(lease.next(now(1, 4)), Action::Stop);
    }

    #[test]
    fn a_release_waits_for_the_fate_of_a_pending_extend() {
        let mut lease = lease();
        let extend = written(lease.next(now(1, 2)));
        lease.on_reply(Reply::Unknown, now(1, 3));
        lease.release(RULES.position(101));
        assert_eq!(written(lease.next(now(1, 4))), extend, "first the one that is open");
        lease.on_reply(Reply::Done, now(1, 5));
        let (expect, new) = written(lease.next(now(1, 6)));
        assert_eq!(expect.bound, extend.1.bound);
        assert!(new.released);
    }

    #[test]
    fn a_reply_that_nobody_waits_for_changes_nothing() {
        let mut lease = lease();
        let before = lease.record().clone();
        assert_eq!(lease.on_reply(Reply::Done, now(1, 2)), Event::Unsure);
        assert_eq!(lease.record(), &before);
    }
}

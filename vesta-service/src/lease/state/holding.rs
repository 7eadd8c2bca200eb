//! A machine ID after its claim: extended again and again, released or fenced. Pure.

use std::time::Duration;

use super::{Action, Answer, Ask, Event, Now, Write};
use crate::lease::{Cas, Record};
use crate::sequence::Rules;

/// A lease that was claimed.
#[derive(Debug, Clone)]
pub(in crate::lease) struct Holding {
    machine: u64,
    window_ticks: u64,
    renew_every: Duration,
    /// The record as the store acknowledged it last.
    record: Record,
    /// A change that was sent and not yet answered. Until its outcome is known it is sent again
    /// unchanged, and nothing else is sent.
    pending: Option<Record>,
    /// When that change was made, on the monotonic clock.
    made: Duration,
    /// When to send next, on the monotonic clock.
    due: Duration,
    /// Where the machine ID was sealed, once it is to be released.
    sealed_at: Option<u64>,
}

impl Holding {
    /// A lease whose claim was acknowledged with this record.
    pub(in crate::lease) fn new(
        machine: u64,
        window_ticks: u64,
        renew_every: Duration,
        record: Record,
        now: &Now,
    ) -> Self {
        let due = now.monotonic + spread(renew_every, now);
        let (pending, made, sealed_at) = (None, now.monotonic, None);
        Self { machine, window_ticks, renew_every, record, pending, made, due, sealed_at }
    }

    /// Gives the record back. `sealed_at` is what sealing returned: no position at or above it was
    /// or will be issued.
    pub(in crate::lease) fn release(&mut self, sealed_at: u64) {
        if self.sealed_at.is_none() {
            self.sealed_at = Some(sealed_at);
            self.due = Duration::ZERO;
        }
    }

    /// The next thing to do.
    pub(in crate::lease) fn next(&mut self, rules: &Rules, now: &Now) -> Action {
        // A clock that was stepped ahead can stand beyond the bound long before a renewal is due.
        let used_up = self.sealed_at.is_none()
            && self.pending.is_none()
            && rules.position(now.tick) >= self.record.bound;
        if now.monotonic < self.due && !used_up {
            return Action::Wait(self.due);
        }
        if self.pending.is_none() {
            self.pending = self.change(rules, now);
            self.made = now.monotonic;
        }
        let Some(new) = self.pending.clone() else {
            self.due = now.monotonic + spread(self.renew_every, now);
            return Action::Wait(self.due);
        };
        let old = Some(self.record.clone());
        Action::Ask(Ask::Write(self.machine, Box::new(Write::Record { old, new })))
    }

    /// The change that is due, if there is one to make.
    fn change(&self, rules: &Rules, now: &Now) -> Option<Record> {
        let changed = Record { attempt: now.number(), info_time: now.wall, ..self.record.clone() };
        if let Some(sealed_at) = self.sealed_at {
            // The only lowering of a bound, to what sealing left unused.
            let bound = sealed_at.min(self.record.bound);
            return Some(Record { bound, owner: 0, released: true, ..changed });
        }
        // Counted from the clock, not from the old bound: that would run away.
        let bound = rules.position(now.tick.saturating_add(self.window_ticks));
        (bound > self.record.bound).then_some(Record { bound, ..changed })
    }

    /// Takes in the answer to the last change.
    pub(in crate::lease) fn on_answer(&mut self, answer: Answer, now: &Now) -> Event {
        let Some(pending) = self.pending.take() else {
            return Event::None; // an answer to nothing says nothing
        };
        match answer {
            Answer::Failed(error) if error.is_permanent() => Event::Broken(error),
            Answer::Failed(error) => {
                self.pending = Some(pending);
                self.due = now.monotonic + spread(self.renew_every / 10, now);
                Event::Unsure(error)
            }
            Answer::Record(Cas::Conflict(current)) => Event::Fenced(current),
            Answer::Record(Cas::Done) if pending.released => Event::Released(pending),
            Answer::Record(Cas::Done) => {
                self.record = pending;
                if self.sealed_at.is_none() {
                    // Counted from when it was made: one that was answered late, after an outage,
                    // may lie in the past by now, and the next one is due at once.
                    self.due = self.made + spread(self.renew_every, now);
                }
                Event::Raised(self.record.clone())
            }
            _ => {
                self.pending = Some(pending);
                Event::None // not the answer to what was asked
            }
        }
    }
}

/// The duration ± 10 %, so that a fleet started together does not renew together.
fn spread(duration: Duration, now: &Now) -> Duration {
    let percent = u32::try_from(90 + now.number() % 21).unwrap_or(100);
    duration * percent / 100
}

#[cfg(test)]
mod tests {
    use vesta_intf::UnixMillis;

    use super::*;
    use crate::lease::StoreError;

    const RULES: Rules = Rules::new(30, 4, 0);
    const SECOND: Duration = Duration::from_secs(1);

    fn now(seconds: u64, number: u64) -> Now {
        Now {
            monotonic: SECOND * u32::try_from(seconds).unwrap(),
            wall: UnixMillis(0),
            wall_tick: 100 + seconds,
            tick: 100 + seconds,
            random: number.into(),
        }
    }

    fn lease() -> Holding {
        let claimed = Record {
            epoch: 5,
            owner: 77,
            bound: RULES.position(103),
            attempt: 1,
            ..Record::default()
        };
        Holding::new(9, 3, SECOND, claimed, &now(0, 10))
    }

    fn unknown() -> Answer {
        Answer::Failed(StoreError::unavailable("no reply", std::io::Error::other("lost")))
    }

    fn done() -> Answer {
        Answer::Record(Cas::Done)
    }

    fn written(action: Action) -> (Record, Record) {
        match action {
            Action::Ask(Ask::Write(9, write)) => match *write {
                Write::Record { old: Some(old), new } => (old, new),
                other => panic!("expected a change of the record, got {other:?}"),
            },
            other => panic!("expected a write, got {other:?}"),
        }
    }

    fn waits(action: Action) -> Duration {
        match action {
            Action::Wait(until) => until,
            other => panic!("expected a wait, got {other:?}"),
        }
    }

    fn raised(event: Event) -> u64 {
        match event {
            Event::Raised(record) => record.bound,
            other => panic!("expected a raised bound, got {other:?}"),
        }
    }

    #[test]
    fn a_clock_beyond_the_bound_is_followed_before_a_renewal_is_due() {
        let mut lease = lease();
        waits(lease.next(&RULES, &Now { tick: 102, ..now(0, 10) }));
        let ahead = Now { tick: 103, ..now(0, 10) };
        assert_eq!(written(lease.next(&RULES, &ahead)).1.bound, RULES.position(106));
        // While nobody answers it is asked as often as after any other request.
        assert!(matches!(lease.on_answer(unknown(), &ahead), Event::Unsure(_)));
        waits(lease.next(&RULES, &ahead));
    }

    #[test]
    fn each_change_has_an_attempt_and_a_time_of_its_own() {
        let later = Now { wall: UnixMillis(7), ..now(2, 42) };
        let (_, new) = written(lease().next(&RULES, &later));
        assert_eq!((new.attempt, new.info_time), (42, UnixMillis(7)));
    }

    #[test]
    fn an_extend_that_an_outage_held_up_is_followed_by_the_next_one_at_once() {
        let mut lease = lease();
        let (_, held_up) = written(lease.next(&RULES, &now(2, 10)));
        assert!(matches!(lease.on_answer(unknown(), &now(2, 10)), Event::Unsure(_)));
        let bound = held_up.bound;
        assert_eq!(written(lease.next(&RULES, &now(60, 10))).1, held_up, "sent again unchanged");
        assert_eq!(raised(lease.on_answer(done(), &now(60, 10))), bound);
        assert!(bound < RULES.position(160), "its bound is past by now");
        let (_, next) = written(lease.next(&RULES, &now(60, 10)));
        assert_eq!(next.bound, RULES.position(163));
    }

    #[test]
    fn it_extends_from_the_clock_and_raises_only_after_the_reply() {
        let mut lease = lease();
        assert_eq!(waits(lease.next(&RULES, &now(0, 3))), SECOND);
        let (old, new) = written(lease.next(&RULES, &now(1, 2)));
        assert_eq!((old.epoch, old.owner, old.bound), (5, 77, RULES.position(103)));
        assert_eq!(new.bound, RULES.position(104));
        assert_eq!(lease.record.bound, RULES.position(103), "not before the reply");
        assert_eq!(raised(lease.on_answer(done(), &now(1, 10))), RULES.position(104));
        assert_eq!(waits(lease.next(&RULES, &now(1, 4))), 2 * SECOND);
    }

    #[test]
    fn a_clock_that_stands_still_writes_nothing() {
        let mut lease = lease();
        let still = Now { tick: 100, ..now(1, 10) };
        assert_eq!(waits(lease.next(&RULES, &still)), 2 * SECOND);
    }

    #[test]
    fn a_lost_reply_is_asked_for_with_the_same_request_and_never_with_another() {
        let mut lease = lease();
        let first = written(lease.next(&RULES, &now(1, 2)));
        assert!(matches!(lease.on_answer(unknown(), &now(1, 10)), Event::Unsure(_)));
        let again = written(lease.next(&RULES, &now(9, 3)));
        assert_eq!(again, first, "unchanged, although the clock went on");
        assert_eq!(raised(lease.on_answer(done(), &now(9, 10))), first.1.bound);
    }

    #[test]
    fn another_record_fences_and_so_does_none() {
        for current in [Some(Record { owner: 78, ..lease().record }), None] {
            let mut lease = lease();
            written(lease.next(&RULES, &now(1, 2)));
            let answer = Answer::Record(Cas::Conflict(current.clone()));
            let event = lease.on_answer(answer, &now(1, 3));
            assert!(matches!(event, Event::Fenced(found) if found == current));
        }
    }

    #[test]
    fn a_store_that_fails_for_good_ends_it() {
        let mut lease = lease();
        written(lease.next(&RULES, &now(1, 2)));
        let broken = Answer::Failed(StoreError::permanent("it is damaged"));
        assert!(matches!(lease.on_answer(broken, &now(1, 3)), Event::Broken(_)));
    }

    #[test]
    fn a_release_lowers_the_bound_to_where_it_was_sealed() {
        let mut lease = lease();
        let sealed_at = RULES.position(101) + 3;
        lease.release(sealed_at);
        let (old, new) = written(lease.next(&RULES, &now(0, 2)));
        assert_eq!(old.bound, RULES.position(103));
        assert_eq!((new.bound, new.owner, new.released), (sealed_at, 0, true));
        assert_eq!(new.epoch, 5);
        assert!(matches!(lease.on_answer(done(), &now(0, 3)), Event::Released(r) if r == new));
    }

    #[test]
    fn a_release_waits_for_the_outcome_of_a_pending_extend() {
        let mut lease = lease();
        let extend = written(lease.next(&RULES, &now(1, 2)));
        lease.on_answer(unknown(), &now(1, 3));
        lease.release(RULES.position(101));
        assert_eq!(written(lease.next(&RULES, &now(1, 4))), extend, "first the one that is open");
        lease.on_answer(done(), &now(1, 5));
        let (old, new) = written(lease.next(&RULES, &now(1, 6)));
        assert_eq!(old.bound, extend.1.bound);
        assert!(new.released);
    }

    #[test]
    fn an_answer_to_nothing_changes_nothing() {
        let mut lease = lease();
        let before = lease.record.clone();
        assert!(matches!(lease.on_answer(done(), &now(1, 2)), Event::None));
        assert_eq!(lease.record, before);
    }
}

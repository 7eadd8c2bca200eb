//! A machine ID after its claim: extended again and again, released or fenced. Pure.

use std::time::Duration;

use super::{Action, Answer, Ask, DOUBT_CHECK, Event, Now, Plan, Write};
use crate::lease::{Cas, Doubt, Record};

/// A lease that was claimed.
#[derive(Debug, Clone)]
pub(in crate::lease) struct Holding {
    machine: u64,
    /// Why the store may forget, as was written down there when it was last looked at.
    pub(in crate::lease) doubt: Option<Doubt>,
    /// When that look began, on the monotonic clock.
    checked: Duration,
    /// A doubt that nobody has written down.
    unwritten: Option<Doubt>,
    /// The record as the store acknowledged it last.
    record: Record,
    /// A change that was sent and not yet answered. Until its outcome is known it is sent again
    /// unchanged, and nothing else is sent.
    pending: Option<Record>,
    /// When that change was made, on the monotonic clock.
    made: Duration,
    /// When to send next, on the monotonic clock.
    due: Duration,
    /// The last request was not answered.
    unanswered: bool,
    /// Where the machine ID was sealed, once it is to be released.
    sealed_at: Option<u64>,
}

impl Holding {
    /// A lease whose claim was acknowledged with this record.
    pub(in crate::lease) fn new(
        plan: &Plan,
        machine: u64,
        doubt: Option<Doubt>,
        record: Record,
        now: &Now,
    ) -> Self {
        let due = now.monotonic + now.spread(plan.renew_every(doubt.is_some()));
        Self {
            machine,
            doubt,
            checked: now.monotonic,
            unwritten: None,
            record,
            pending: None,
            made: now.monotonic,
            due,
            unanswered: false,
            sealed_at: None,
        }
    }

    /// Gives the record back. `sealed_at` is what sealing returned: no position at or above it was
    /// or will be issued.
    pub(in crate::lease) fn release(&mut self, sealed_at: u64) {
        if self.sealed_at.is_none() {
            self.sealed_at = Some(sealed_at);
            self.due = Duration::ZERO;
        }
    }

    /// Brings forward what is due within a fifth of a pause; a fiftieth, if the last had no answer.
    pub(in crate::lease) fn hurry(&mut self, plan: &Plan, now: &Now) {
        let soon = plan.renew_every(self.doubt.is_some()) / if self.unanswered { 50 } else { 5 };
        if self.due <= now.monotonic + soon {
            self.due = self.due.min(now.monotonic);
        }
    }

    /// The next thing to do.
    pub(in crate::lease) fn next(&mut self, plan: &Plan, now: &Now) -> Action {
        // A clock that was stepped ahead can stand beyond the bound long before a renewal is due.
        let used_up = self.sealed_at.is_none()
            && !self.unanswered
            && plan.rules.position(now.tick) >= self.record.bound;
        if now.monotonic < self.due && !used_up {
            return Action::Wait(self.due);
        }
        if self.pending.is_none() {
            self.made = now.monotonic;
            if self.sealed_at.is_none() {
                if let Some(doubt) = &self.unwritten {
                    return Action::Ask(Ask::WriteDoubt(doubt.clone()));
                }
                // Before a window is counted: nobody who writes a doubt down knows of this one.
                if now.monotonic.saturating_sub(self.checked) >= DOUBT_CHECK {
                    return Action::Ask(Ask::Doubt);
                }
            }
            self.pending = self.change(plan, now);
        }
        let Some(new) = self.pending.clone() else {
            self.due = now.monotonic + self.pause(plan, now);
            return Action::Wait(self.due);
        };
        let old = Some(self.record.clone());
        Action::Ask(Ask::Write(self.machine, Box::new(Write::Record { old, new })))
    }

    /// The change that is due, if there is one to make.
    fn change(&self, plan: &Plan, now: &Now) -> Option<Record> {
        let changed = Record { attempt: now.number(), info_time: now.wall, ..self.record.clone() };
        if let Some(sealed_at) = self.sealed_at {
            // The only lowering of a bound, to what sealing left unused.
            let bound = sealed_at.min(self.record.bound);
            return Some(Record { bound, owner: 0, released: true, ..changed });
        }
        // Counted from the clock, not from the old bound: that would run away.
        let window = plan.window_ticks(self.doubt.is_some());
        let bound = plan.rules.position(now.tick.saturating_add(window));
        (bound > self.record.bound).then_some(Record { bound, ..changed })
    }

    /// Takes in the answer to what was asked.
    pub(in crate::lease) fn on_answer(&mut self, plan: &Plan, answer: Answer, now: &Now) -> Event {
        self.unanswered = matches!(answer, Answer::Failed(_));
        let answer = match answer {
            Answer::Failed(error) if error.is_permanent() => return Event::Broken(error),
            Answer::Failed(error) => {
                self.due = now.monotonic + self.pause(plan, now) / 10;
                return Event::Unsure(error);
            }
            Answer::Doubt(look) => {
                self.checked = look.asked;
                if let Some(namespace) = look.namespace {
                    self.unwritten = plan.new_doubt(&namespace, look.seen.as_ref(), now.wall);
                    self.doubt = namespace.doubt;
                }
                return Event::None;
            }
            Answer::Namespace(namespace) => {
                (self.unwritten, self.doubt) = (None, namespace.doubt);
                return Event::None;
            }
            answer => answer,
        };
        let Some(pending) = self.pending.take() else {
            return Event::None; // an answer to nothing says nothing
        };
        match answer {
            Answer::Record(Cas::Conflict(current)) => Event::Fenced(current),
            Answer::Record(Cas::Done) if pending.released => Event::Released(pending),
            Answer::Record(Cas::Done) => {
                self.record = pending;
                if self.sealed_at.is_none() {
                    // Counted from when it was made: one that was answered late, after an outage,
                    // may lie in the past by now, and the next one is due at once.
                    self.due = self.made + self.pause(plan, now);
                }
                Event::Raised(self.record.clone())
            }
            _ => {
                self.pending = Some(pending);
                Event::None // not the answer to what was asked
            }
        }
    }

    fn pause(&self, plan: &Plan, now: &Now) -> Duration {
        now.spread(plan.renew_every(self.doubt.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use vesta_intf::UnixMillis;

    use super::*;
    use crate::lease::{Look, Namespace, StoreError, Suspicion};
    use crate::sequence::Rules;

    const RULES: Rules = Rules::new(30, 4, 0);
    const SECOND: Duration = Duration::from_secs(1);

    fn now(seconds: u64, number: u64) -> Now {
        Now {
            monotonic: SECOND * u32::try_from(seconds).unwrap(),
            wall: UnixMillis(0),
            wall_tick: 100 + seconds,
            tick: 100 + seconds,
            random: number.into(),
            jitter: number,
        }
    }

    fn plan() -> Plan {
        Plan::sample(RULES, 3 * SECOND, 16)
    }

    fn lease() -> Holding {
        let claimed = Record {
            epoch: 5,
            owner: 77,
            bound: RULES.position(103),
            attempt: 1,
            ..Record::default()
        };
        Holding::new(&plan(), 9, None, claimed, &now(0, 10))
    }

    fn namespace(doubt: Option<Doubt>) -> Namespace {
        Namespace { uuid: 1, fingerprint: String::new(), floor: 0, doubt }
    }

    fn looked(asked: u32, namespace: Option<Namespace>, seen: Option<Suspicion>) -> Answer {
        Answer::Doubt(Look { asked: asked * SECOND, namespace, seen })
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
        let Action::Wait(until) = &action else { panic!("expected a wait, got {action:?}") };
        *until
    }

    fn raised(event: Event) -> u64 {
        let Event::Raised(record) = &event else { panic!("expected a raise, got {event:?}") };
        record.bound
    }

    #[test]
    fn a_clock_beyond_the_bound_is_followed_before_a_renewal_is_due() {
        let mut lease = lease();
        waits(lease.next(&plan(), &Now { tick: 102, ..now(0, 10) }));
        let ahead = Now { tick: 103, ..now(0, 10) };
        assert_eq!(written(lease.next(&plan(), &ahead)).1.bound, RULES.position(106));
        // While nobody answers it is asked as often as after any other request.
        assert!(matches!(lease.on_answer(&plan(), unknown(), &ahead), Event::Unsure(_)));
        waits(lease.next(&plan(), &ahead));
    }

    #[test]
    fn each_change_has_an_attempt_and_a_time_of_its_own() {
        let later = Now { wall: UnixMillis(7), ..now(2, 42) };
        let (_, new) = written(lease().next(&plan(), &later));
        assert_eq!((new.attempt, new.info_time), (42, UnixMillis(7)));
    }

    #[test]
    fn an_extend_that_an_outage_held_up_is_followed_by_the_next_one_at_once() {
        let mut lease = lease();
        let (_, held_up) = written(lease.next(&plan(), &now(2, 10)));
        assert!(matches!(lease.on_answer(&plan(), unknown(), &now(2, 10)), Event::Unsure(_)));
        assert_eq!(written(lease.next(&plan(), &now(60, 10))).1, held_up, "sent again unchanged");
        assert_eq!(raised(lease.on_answer(&plan(), done(), &now(60, 10))), held_up.bound);
        assert!(held_up.bound < RULES.position(160), "its bound is past by now");
        assert!(matches!(lease.next(&plan(), &now(60, 10)), Action::Ask(Ask::Doubt)));
        lease.on_answer(&plan(), looked(60, None, None), &now(60, 10));
        let (_, next) = written(lease.next(&plan(), &now(60, 10)));
        assert_eq!(next.bound, RULES.position(163));
    }

    #[test]
    fn it_extends_from_the_clock_and_raises_only_after_the_reply() {
        let mut lease = lease();
        assert_eq!(waits(lease.next(&plan(), &now(0, 3))), SECOND);
        let (old, new) = written(lease.next(&plan(), &now(1, 2)));
        assert_eq!((old.epoch, old.owner, old.bound), (5, 77, RULES.position(103)));
        assert_eq!(new.bound, RULES.position(104));
        assert_eq!(lease.record.bound, RULES.position(103), "not before the reply");
        assert_eq!(raised(lease.on_answer(&plan(), done(), &now(1, 10))), RULES.position(104));
        assert_eq!(waits(lease.next(&plan(), &now(1, 4))), 2 * SECOND);
    }

    #[test]
    fn a_clock_that_stands_still_writes_nothing() {
        let mut lease = lease();
        let still = Now { tick: 100, ..now(1, 10) };
        assert_eq!(waits(lease.next(&plan(), &still)), 2 * SECOND);
    }

    #[test]
    fn a_lost_reply_is_asked_for_with_the_same_request_and_never_with_another() {
        let mut lease = lease();
        let first = written(lease.next(&plan(), &now(1, 2)));
        assert!(matches!(lease.on_answer(&plan(), unknown(), &now(1, 10)), Event::Unsure(_)));
        let again = written(lease.next(&plan(), &now(9, 3)));
        assert_eq!(again, first, "unchanged, although the clock went on");
        assert_eq!(raised(lease.on_answer(&plan(), done(), &now(9, 10))), first.1.bound);
    }

    #[test]
    fn another_record_fences_and_so_does_none() {
        for current in [Some(Record { owner: 78, ..lease().record }), None] {
            let mut lease = lease();
            written(lease.next(&plan(), &now(1, 2)));
            let answer = Answer::Record(Cas::Conflict(current.clone()));
            let event = lease.on_answer(&plan(), answer, &now(1, 3));
            assert!(matches!(event, Event::Fenced(found) if found == current));
        }
    }

    #[test]
    fn a_store_that_fails_for_good_ends_it() {
        let mut lease = lease();
        written(lease.next(&plan(), &now(1, 2)));
        let broken = Answer::Failed(StoreError::permanent("it is damaged"));
        assert!(matches!(lease.on_answer(&plan(), broken, &now(1, 3)), Event::Broken(_)));
    }

    #[test]
    fn a_release_lowers_the_bound_to_where_it_was_sealed() {
        let mut lease = lease();
        let sealed_at = RULES.position(101) + 3;
        lease.release(sealed_at);
        let (old, new) = written(lease.next(&plan(), &now(0, 2)));
        assert_eq!(old.bound, RULES.position(103));
        assert_eq!((new.bound, new.owner, new.released), (sealed_at, 0, true));
        assert_eq!(new.epoch, 5);
        let event = lease.on_answer(&plan(), done(), &now(0, 3));
        assert!(matches!(event, Event::Released(record) if record == new));
    }

    #[test]
    fn a_release_waits_for_the_outcome_of_a_pending_extend() {
        let mut lease = lease();
        let extend = written(lease.next(&plan(), &now(1, 2)));
        lease.on_answer(&plan(), unknown(), &now(1, 3));
        lease.release(RULES.position(101));
        assert_eq!(written(lease.next(&plan(), &now(1, 4))), extend, "first the one that is open");
        lease.on_answer(&plan(), done(), &now(1, 5));
        let (old, new) = written(lease.next(&plan(), &now(1, 6)));
        assert_eq!(old.bound, extend.1.bound);
        assert!(new.released);
    }

    #[test]
    fn a_doubt_is_noticed_within_a_minute_written_down_and_heeded_before_the_next_window() {
        let mut lease = lease();
        lease.checked = SECOND;
        waits(lease.next(&plan(), &now(0, 10)));
        written(lease.next(&plan(), &now(40, 10)));
        lease.on_answer(&plan(), done(), &now(40, 10));
        assert!(matches!(lease.next(&plan(), &now(41, 10)), Action::Ask(Ask::Doubt)));
        // Asked at 41 s, and answered late: what was read is as old as the question.
        let seen = Some(Suspicion { why: "a replica lags".into(), took_over: false });
        let event = lease.on_answer(&plan(), looked(41, Some(namespace(None)), seen), &now(50, 10));
        assert!(matches!(event, Event::None));
        assert_eq!(lease.checked, 41 * SECOND);
        let Action::Ask(Ask::WriteDoubt(doubt)) = lease.next(&plan(), &now(50, 10)) else {
            panic!("it is to be written down")
        };
        assert_eq!(doubt.why, "a replica lags");
        // 40 s between two looks, the window of 3 s, a lead of 5 s, clocks 2 s apart.
        assert_eq!(doubt.reach, UnixMillis(50_000));
        lease.on_answer(&plan(), unknown(), &now(50, 10));
        let again = lease.next(&plan(), &now(60, 10));
        assert!(matches!(again, Action::Ask(Ask::WriteDoubt(again)) if again == doubt));
        let known = Answer::Namespace(namespace(Some(doubt.clone())));
        lease.on_answer(&plan(), known, &now(60, 10));
        assert_eq!(lease.doubt, Some(doubt));
        let (_, new) = written(lease.next(&plan(), &now(60, 10)));
        assert_eq!(new.bound, RULES.position(170), "10 s, whatever the window was");
    }

    #[test]
    fn a_look_at_the_store_that_is_not_answered_is_not_repeated_at_once() {
        let mut lease = lease();
        let ahead = Now { tick: 200, ..now(60, 10) };
        assert!(matches!(lease.next(&plan(), &ahead), Action::Ask(Ask::Doubt)));
        assert!(matches!(lease.on_answer(&plan(), unknown(), &ahead), Event::Unsure(_)));
        waits(lease.next(&plan(), &ahead));
    }

    #[test]
    fn a_doubt_that_was_cleared_is_over() {
        let doubt = Doubt { since: UnixMillis(0), reach: UnixMillis(0), why: String::new() };
        let mut lease = Holding { doubt: Some(doubt), ..lease() };
        assert!(matches!(lease.next(&plan(), &now(60, 10)), Action::Ask(Ask::Doubt)));
        lease.on_answer(&plan(), looked(60, Some(namespace(None)), None), &now(60, 10));
        assert_eq!(written(lease.next(&plan(), &now(60, 10))).1.bound, RULES.position(163));
    }

    #[test]
    fn an_answer_to_nothing_changes_nothing() {
        let (mut lease, before) = (lease(), lease().record);
        assert!(matches!(lease.on_answer(&plan(), done(), &now(1, 2)), Event::None));
        assert_eq!(lease.record, before);
    }
}

//! Where a claim begins, what it writes, and whether it took effect. Pure.

use crate::lease::{Cas, Record};
use crate::sequence::Rules;

/// What decides where a claim begins and how far it reaches.
#[derive(Debug)]
pub(in crate::lease) struct Terms<'a> {
    pub(in crate::lease) rules: &'a Rules,
    /// How many ticks a window has.
    pub(in crate::lease) window_ticks: u64,
    /// No claim of the namespace begins below this position.
    pub(in crate::lease) floor: u64,
    /// The bound that this host remembers of the machine ID; 0 if it remembers none.
    pub(in crate::lease) remembered: u64,
    /// The record may be older than what was lost, by at most a window: keep that distance.
    pub(in crate::lease) guard: bool,
    /// No position before this tick.
    pub(in crate::lease) from_tick: u64,
}

impl Terms<'_> {
    /// The first position that a claim of this record may issue.
    pub(in crate::lease) fn start(&self, record: &Record) -> u64 {
        let known = record.bound.max(self.floor).max(self.remembered);
        let guarded = if self.guard {
            self.rules.position(self.rules.tick(known) + 1 + self.window_ticks)
        } else {
            known
        };
        guarded.max(self.rules.position(self.from_tick))
    }

    /// What a claim that begins at `start` makes of this record, but for what people read.
    pub(in crate::lease) fn claimed(
        &self,
        record: &Record,
        start: u64,
        owner: u128,
        attempt: u64,
    ) -> Record {
        let tick = self.rules.tick(start);
        let bound = self.rules.position(tick.saturating_add(self.window_ticks));
        Record { epoch: record.epoch + 1, owner, bound, attempt, ..Record::default() }
    }
}

/// Whether a claim took effect: now, or by an attempt whose reply was lost.
pub(in crate::lease) fn took_effect(outcome: &Cas, claimed: &Record) -> bool {
    match outcome {
        Cas::Done => true,
        Cas::Conflict(current) => {
            current.attempt == claimed.attempt && current.meets(&claimed.expect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules::new(30, 4, 0);

    fn terms() -> Terms<'static> {
        Terms {
            rules: &RULES,
            window_ticks: 5,
            floor: 0,
            remembered: 0,
            guard: false,
            from_tick: 0,
        }
    }

    fn bound(tick: u64, seq: u64) -> Record {
        Record { bound: RULES.position(tick) + seq, ..Record::default() }
    }

    #[test]
    fn a_claim_begins_at_the_highest_of_what_is_known() {
        let at = |tick| RULES.position(tick);
        assert_eq!(terms().start(&bound(100, 3)), at(100) + 3);
        assert_eq!(Terms { floor: at(100) + 4, ..terms() }.start(&bound(100, 3)), at(100) + 4);
        assert_eq!(Terms { remembered: at(101), ..terms() }.start(&bound(100, 3)), at(101));
        assert_eq!(Terms { from_tick: 101, ..terms() }.start(&bound(100, 3)), at(101));
        assert_eq!(Terms { from_tick: 100, ..terms() }.start(&bound(100, 3)), at(100) + 3);
    }

    #[test]
    fn a_guarded_one_begins_after_the_whole_window_that_may_be_lost() {
        let guarded = Terms { guard: true, ..terms() };
        for seq in 0..16 {
            assert_eq!(guarded.start(&bound(100, seq)), RULES.position(106));
        }
        let late = Terms { from_tick: 107, ..guarded };
        assert_eq!(late.start(&bound(100, 3)), RULES.position(107));
    }

    #[test]
    fn a_claim_took_effect_if_the_record_shows_its_own_attempt() {
        let claimed = terms().claimed(&bound(100, 0), RULES.position(100), 7, 8);
        assert_eq!((claimed.epoch, claimed.owner, claimed.attempt), (1, 7, 8));
        assert_eq!(claimed.bound, RULES.position(105));
        assert!(took_effect(&Cas::Done, &claimed));
        assert!(took_effect(&Cas::Conflict(claimed.clone()), &claimed));
        let other = Record { attempt: 9, ..claimed.clone() };
        assert!(!took_effect(&Cas::Conflict(other), &claimed), "another request of the same owner");
        let later = Record { bound: claimed.bound + 1, ..claimed.clone() };
        assert!(!took_effect(&Cas::Conflict(later), &claimed), "no longer what was written");
    }
}

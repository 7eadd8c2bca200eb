//! Refusals: each has the right reason, and the right retry delay.

use std::time::Duration;

use vesta_service::clock::Clock as _;
use vesta_service::contract::{NotReady, NotReadyReason, UnixMillis};
use vesta_service::{ErrorKind, IdError};

use super::generation::LEAD_MILLIS;
use super::ledger::{Fault, Flaw};
use super::plan::Class;
use super::time::{MILLI, MINUTE};
use super::world::World;

impl World {
    /// Checks that an error may reach callers, and carries a retry delay.
    pub(super) fn judge(&mut self, number: usize, error: &IdError, how: &str) -> Result<(), Flaw> {
        let tick = Duration::from_millis(self.plan.layout.spec().unit.millis());
        let (kind, when) = (error.kind(), error.retry_after());
        let what = match (kind, when) {
            (ErrorKind::SequenceUsedUp, Some(when))
                if when <= tick * 2 + Duration::from_secs(6) =>
            {
                "calls refused: sequence used up"
            }
            (ErrorKind::AwaitingLease, Some(when)) if when <= Duration::from_secs(5) => {
                "calls refused: awaiting the lease"
            }
            (ErrorKind::ClockBehind, Some(when)) if !when.is_zero() => {
                "calls refused: clock behind"
            }
            (ErrorKind::TimeExhausted, None) => "calls refused: end of the layout",
            (ErrorKind::Sealed, None) if self.may_be_sealed(number, error) => {
                "calls refused: the store refuses for good"
            }
            _ => {
                let text = format!("node {number} must not say: {error} ({kind:?}, {when:?})");
                return Err(Flaw::new(Fault::WrongRefusal, text));
            }
        };
        self.counts.add(what, 1);
        let wrong = self.reason_is_wrong(number, error, how);
        wrong.map_or(Ok(()), |why| Err(Flaw::new(Fault::WrongRefusal, why)))
    }

    /// True if the store refuses permanently, and the error gives that as the reason for the end.
    fn may_be_sealed(&self, number: usize, error: &IdError) -> bool {
        let says_why = matches!(error, IdError::Sealed { reason } if !reason.is_empty());
        says_why && self.nodes[number].wire.is_refused_for_good()
    }

    /// The evidence that a refusal's reason is wrong, as far as it can be determined.
    fn reason_is_wrong(&mut self, number: usize, error: &IdError, how: &str) -> Option<String> {
        let node = &mut self.nodes[number];
        let status = node.service.as_ref()?.status();
        node.progress.lossy |= status.positions_lost_total > 0;
        // The following checks need to know the position and the clock's time.
        let known = node.plan.count == 1 && !node.progress.lossy && node.is_of_the_store();
        let clear = !status.clock_suspect && status.sealed.is_none();
        let (sender, namespace) = (node.wire.sender, node.namespace());
        if !known
            || !clear
            || self.plan.class != Class::Durable
            || !self.shared.holds(sender, namespace, status.machine)
        {
            return None;
        }
        let window = self
            .shared
            .window(sender, namespace, status.machine, u64::MAX);
        if window.epoch != status.epoch {
            return None;
        }
        if self.is_claiming(number) {
            let waits = error.kind() == ErrorKind::AwaitingLease;
            return (!waits).then(|| format!("node {number} is claiming, and says {error}"));
        }
        let node = &mut self.nodes[number];
        let (layout, wall) = (&self.plan.layout, node.clock.wall());
        let effective = UnixMillis(wall.0 + u64::try_from(status.lead.as_millis()).expect("short"));
        let (tick, seq_bits) = (self.plan.tick(effective), layout.spec().seq_bits);
        let at = |tick: u64| u128::from(tick) << seq_bits;
        let next = node.progress.next(status.machine);
        let issued = next > window.base;
        let next = u128::from(next.max(window.base));
        let cap = self.plan.cap(&node.plan, effective);
        let used_up = next >= cap;
        let left = if how == "in runs" {
            self.plan.left_to_single_ids(&node.plan)
        } else {
            0
        };
        // A batch may have used it up itself, and given it back.
        let used_up_for_it = next + left >= cap || how == "in batches";
        let justified = match error {
            IdError::NotReady(NotReady {
                why: NotReadyReason::ClockBehind,
                ..
            }) => status.lead > Duration::from_millis(LEAD_MILLIS),
            IdError::NotReady(NotReady {
                why: NotReadyReason::SequenceUsedUp,
                ..
            }) => {
                // A grant starts at the clock's time, not where the record ended.
                used_up_for_it || !issued
            }
            IdError::NotReady(NotReady {
                why: NotReadyReason::AwaitingLease,
                ..
            }) => {
                let begins = at(tick) + u128::from(node.progress.begins_below - 1);
                !used_up && next.max(begins) >= window.end().into()
            }
            _ => next.max(at(tick)) >= at(self.plan.last_tick() + 1),
        };
        (!justified).then(|| {
            format!("node {number} says {error} at {wall}, next {next:#x}, {window:x?}, {status:?}")
        })
    }

    /// True if its machine ID was given up, and another one has not been found yet.
    fn is_claiming(&self, number: usize) -> bool {
        let service = self.nodes[number].service.as_ref();
        let reason = service.and_then(|service| service.status().all.not_ready_because);
        reason.is_some_and(|reason| reason.starts_with("another machine ID is being claimed"))
    }

    /// Takes a batch or one ID; if none is available, retries after the returned delay, and a millisecond earlier.
    pub(super) fn retry(&mut self, number: usize) -> Result<(), Flaw> {
        // Where a batch is refused, a single ID may be available.
        let mut want = u32::MAX;
        let mut refusal = None;
        for _ in 0..self.rng.below(8) {
            refusal = self.try_run(number, want)?;
            if refusal.is_some() {
                break;
            }
        }
        if refusal.is_none() {
            want = 1;
            refusal = self.once(number)?;
        }
        let Some(refusal) = refusal else {
            return Ok(());
        };
        let node = &self.nodes[number];
        let Some(service) = &node.service else {
            return Ok(());
        };
        let (wait, why) = (refusal.retry_after, refusal.why);
        // Another machine ID may be the one to wait for; a drifting clock does not show the true
        // time that passes.
        if node.plan.count > 1 || node.clock.drifts() || nanos(wait) > MINUTE {
            return Ok(());
        }
        if why == NotReadyReason::AwaitingLease {
            return self.await_bound(number, refusal);
        }
        let status = service.status();
        let never_early =
            status.lead.is_zero() && !status.clock_suspect || why == NotReadyReason::ClockBehind;
        let wrong = |then: &dyn std::fmt::Debug| {
            let text = format!("node {number} said {refusal:?}, and then {then:?}");
            Err(Flaw::new(Fault::WrongRetryTime, text))
        };
        let mut left = nanos(wait);
        if never_early && left >= MILLI {
            self.time.advance(left - MILLI);
            left = MILLI;
            match self.try_run(number, want)? {
                Some(still) if still.why == why => {}
                early => return wrong(&early),
            }
        }
        self.time.advance(left);
        self.counts.add("retry times kept", 1);
        let Some(again) = self.try_run(number, want)?.filter(|again| again.why == why) else {
            return Ok(());
        };
        // The wall clock is accurate to the millisecond, and so is a delay derived from it.
        if never_early && why == NotReadyReason::SequenceUsedUp
            || again.retry_after > Duration::from_millis(2)
        {
            return wrong(&again);
        }
        self.time.advance(nanos(again.retry_after));
        match self.try_run(number, want)? {
            Some(third) if third.why == why => wrong(&third),
            _ => Ok(()),
        }
    }

    /// While it owns its machine ID and the store answers, the bound is extended in time.
    fn await_bound(&mut self, number: usize, refusal: NotReady) -> Result<(), Flaw> {
        for _ in 0..3 {
            let node = &self.nodes[number];
            let Some(service) = &node.service else {
                return Ok(());
            };
            let machine = service.status().machine;
            let own = self
                .shared
                .holds(node.wire.sender, node.namespace(), machine);
            let sound = self.plan.class == Class::Durable && node.wire.is_sound();
            if !sound || !own || !node.is_of_the_store() || self.is_claiming(number) {
                return Ok(());
            }
            self.time.advance(nanos(refusal.retry_after));
            self.keep(number);
            if self
                .once(number)?
                .is_none_or(|now| now.why != NotReadyReason::AwaitingLease)
            {
                self.counts.add("bounds awaited", 1);
                return Ok(());
            }
        }
        let text = format!("node {number} said {refusal:?}, and the bound does not move");
        Err(Flaw::new(Fault::WrongRetryTime, text))
    }

    /// One ID without waiting; the refusal if none is available.
    fn once(&mut self, number: usize) -> Result<Option<NotReady>, Flaw> {
        self.try_run(number, 1)
    }

    fn try_run(&mut self, number: usize, want: u32) -> Result<Option<NotReady>, Flaw> {
        let refused = self.with(
            number,
            if want == 1 { "at once" } else { "in runs" },
            false,
            |service, take| match take.answers.try_gen_run(service, want) {
                Ok(run) => take.run(&run, want).map(|()| None),
                Err(error) => Ok(Some(error)),
            },
        )?;
        Ok(match refused {
            Some(IdError::NotReady(refusal)) => Some(refusal),
            _ => None,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

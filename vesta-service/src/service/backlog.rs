//! Batches that wait for future ticks.
//!
//! A batch that is larger than the rest of a tick takes that rest and waits for more. If ever more
//! batches did so, all would share each tick, none would complete in time, and the IDs they had
//! taken would be wasted. So a batch may wait only if every waiting batch can be served in time.
//! Otherwise it is refused at once, before it has cost more than one tick.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vesta_intf::{IdError, IdRun, NotReady};

use crate::LocalIdService;
use crate::lease::HeldLease;
use crate::sequence::Claim;
use crate::service::Turn;

/// IDs still needed by all waiting batches together.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    ids: AtomicU64,
}

impl Backlog {
    /// Joins the wait queue for `ids`, of `per_second` generated. Refused if serving all waiting batches
    /// would take more than half of `timeout`; the error is the time until the earlier ones are served. Half,
    /// because batches that share a tick do not get equal parts of it. A sole waiter is always admitted.
    pub(crate) fn enter(
        &self,
        ids: u64,
        per_second: u64,
        timeout: Duration,
    ) -> Result<(), Duration> {
        // Relaxed: used as an estimate only; nothing else is published with it.
        let before = self.ids.fetch_add(ids, Ordering::Relaxed);
        let needed = time_for(before.saturating_add(ids), per_second);
        if before > 0 && needed > timeout / 2 {
            self.leave(ids);
            return Err(time_for(before, per_second));
        }
        Ok(())
    }

    /// Removes IDs that were served or are no longer wanted.
    fn leave(&self, ids: u64) {
        self.ids.fetch_sub(ids, Ordering::Relaxed);
    }
}

/// A batch in progress. If it is dropped before it is complete, it gives its claims back, as far as
/// no later position has been taken; the rest is lost.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    service: &'a LocalIdService,
    turn: Turn<'a>,
    left: u64,
    /// True once the remaining IDs count in the backlog.
    queued: bool,
    /// Every claim so far, unless the batch is complete.
    taken: Vec<(&'a HeldLease, Claim)>,
}

impl<'a> Batch<'a> {
    pub(crate) const fn new(service: &'a LocalIdService, wanted: u64) -> Self {
        Self {
            service,
            turn: Turn::new(service),
            left: wanted,
            queued: false,
            taken: Vec::new(),
        }
    }

    /// Hands out runs, without waiting, until the batch is complete. After an `Err` with a
    /// [`NotReady`](IdError::NotReady) the batch may continue after that delay. After any other `Err`, and after
    /// an `Ok(Err(_))`, which means that too many batches wait already, it is over.
    pub(crate) fn fill(&mut self, mut take: impl FnMut(IdRun)) -> Result<Filled, IdError> {
        while self.left > 0 {
            let want = u32::try_from(self.left).unwrap_or(u32::MAX);
            match self.turn.claim(want) {
                Ok((lease, claim)) => {
                    let count = claim.end - claim.start;
                    self.left -= count;
                    if self.left > 0 {
                        self.taken.push((lease, claim));
                    }
                    if self.queued {
                        self.service.backlog.leave(count);
                    }
                    take(self.service.run_at(lease, claim));
                }
                Err(IdError::NotReady(NotReady { why, retry_after })) if !self.queued => {
                    match self.service.enter_backlog(self.left) {
                        Ok(()) => self.queued = true,
                        // A retry before both waits are over would get the same result.
                        Err(served_in) => {
                            let retry_after = retry_after.max(served_in);
                            return Ok(Err(IdError::NotReady(NotReady { why, retry_after })));
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(()))
    }
}

/// Outcome of a batch: complete, or refused.
pub(crate) type Filled = Result<(), IdError>;

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.left > 0 {
            // In reverse order: each claim may be directly above the previous one.
            let taken = self.taken.drain(..).rev();
            let lost = taken.filter(|(lease, claim)| !lease.give_back(*claim));
            self.service
                .lost(lost.map(|(_, claim)| claim.end - claim.start).sum());
        }
        if self.queued {
            self.service.backlog.leave(self.left);
        }
    }
}

fn time_for(ids: u64, per_second: u64) -> Duration {
    let nanos = u128::from(ids) * 1_000_000_000 / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vesta_intf::UnixMillis;

    use super::*;
    use crate::MachineSource;
    use crate::testing::ManualClock;
    use crate::wait::Drive;

    const PER_SECOND: u64 = 1000;
    const TIMEOUT: Duration = Duration::from_secs(2);

    fn refused(backlog: &Backlog, ids: u64) -> Option<Duration> {
        let entered = backlog.enter(ids, PER_SECOND, TIMEOUT);
        entered.inspect(|()| backlog.leave(ids)).err()
    }

    #[test]
    fn the_backlog_fills_half_of_the_timeout_and_returns_a_delay() {
        let backlog = Backlog::default();
        backlog.enter(600, PER_SECOND, TIMEOUT).unwrap();
        backlog.enter(400, PER_SECOND, TIMEOUT).unwrap();
        assert_eq!(refused(&backlog, 1), Some(Duration::from_secs(1)));
        backlog.leave(600);
        assert_eq!(refused(&backlog, 600), None);
        assert_eq!(refused(&backlog, 601), Some(Duration::from_millis(400)));
    }

    #[test]
    fn served_ids_make_room() {
        let backlog = Backlog::default();
        backlog.enter(1000, PER_SECOND, TIMEOUT).unwrap();
        backlog.leave(1);
        assert_eq!(refused(&backlog, 1), None);
        backlog.leave(999);
        assert_eq!(refused(&backlog, 1000), None);
        assert_eq!(backlog.ids.load(Ordering::Relaxed), 0);
    }

    /// Two callers with their own schedules, for eight seconds: each asks for all IDs of a second,
    /// and retries exactly after the delay it got.
    #[test]
    fn a_refused_batch_retries_only_when_it_has_a_chance() {
        let folder = tempfile::tempdir().unwrap();
        let start = UnixMillis(1_700_000_000_000);
        let clock = ManualClock::at(start);
        let service = service(folder.path(), &clock);
        let all = 1 << 20;
        service.try_gen_run(10).unwrap(); // so that the first batch lacks ten of its second
        let mut callers = [(); 2].map(|()| (Duration::ZERO, Batch::new(&service, all)));
        let (mut refusals, mut complete, mut passed) = (0, 0, Duration::ZERO);
        while passed < Duration::from_secs(8) {
            callers.sort_by_key(|(due, _)| *due);
            let (due, batch) = &mut callers[0];
            clock.advance(*due - passed);
            passed = *due;
            service.maintain();
            let wait = match batch.fill(|_| {}) {
                Err(IdError::NotReady(hold)) => hold.retry_after,
                Ok(filled) => {
                    *batch = Batch::new(&service, all);
                    match filled {
                        Ok(()) => complete += 1,
                        Err(_) => refusals += 1,
                    }
                    filled
                        .err()
                        .and_then(|error| error.retry_after())
                        .unwrap_or_default()
                }
                Err(error) => panic!("{error}"),
            };
            *due += wait;
            assert!(refusals <= 10, "{refusals} refusals after {passed:?}");
        }
        assert!(complete >= 7, "{complete} batches");
        drop(callers);
        let queued = service.backlog.ids.load(Ordering::Relaxed);
        assert_eq!(queued, 0, "everything is given back exactly once");
    }

    fn service(folder: &std::path::Path, clock: &ManualClock) -> LocalIdService {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let builder = LocalIdService::builder().namespace(name.trim_start_matches('.'));
        let builder = builder.machine(MachineSource::Fixed(1));
        let builder = builder.state_dir(folder).clock(Arc::new(clock.clone()));
        // All of a second is available at once.
        builder.pacing(false).drive(Drive::ByHand).build().unwrap()
    }

    #[test]
    fn cancelled_batch_gives_back_its_last_claims() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(UnixMillis(1_700_000_000_000));
        let service = service(folder.path(), &clock);
        let cancelled = |single: Option<&mut u64>| {
            let mut batch = Batch::new(&service, 1 << 20);
            assert!(
                batch.fill(|_| {}).is_err(),
                "the batch needs more than a second"
            );
            single
                .into_iter()
                .for_each(|id| *id = service.try_gen_run(1).unwrap().first);
        };
        let first = service.try_gen_run(1).unwrap().first;
        (0..100).for_each(|_| cancelled(None));
        assert_eq!(service.status().positions_lost_total, 0);
        let mut after = service.try_gen_run(1).unwrap().first;
        assert_eq!(
            after - first,
            service.meta().step(),
            "the very next position"
        );
        cancelled(Some(&mut after));
        let lost = (1 << 20) / 16 * 15 - 2;
        assert_eq!(after - first, service.meta().step() * (lost + 2));
        assert_eq!(service.status().positions_lost_total, lost);
    }

    #[test]
    fn a_sole_waiter_is_always_admitted() {
        let backlog = Backlog::default();
        backlog.enter(u64::MAX, PER_SECOND, TIMEOUT).unwrap();
        assert_eq!(refused(&backlog, 0), Some(Duration::from_nanos(u64::MAX)));
    }
}

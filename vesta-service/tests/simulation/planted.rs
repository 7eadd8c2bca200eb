//! Planted faults: each one is a single defect that the checks have to find. Store faults are defined
//! by what the store keeps of a change; service faults change the answers.

use std::time::Duration;

use vesta_service::contract::{IdRun, NotReady, NotReadyReason};
use vesta_service::lease::Record;
use vesta_service::{IdError, LocalIdService};
use vesta_testkit::Rng;

use super::ledger::Fault;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// The store changes a record whatever the expected value.
    IgnoresExpectations,
    /// The store forgets an acknowledged change, and does not report that it may.
    Forgets,
    /// The store acknowledges an extension and keeps the old bound.
    ForgetsExtensions,
    /// The store writes a bound two positions too low when a record is released.
    ReleasesTooMuch,
    /// The store may forget, and an owner reserves by its own clock alone.
    CountsByItsOwnClock,
    /// A host keeps no local record.
    Stateless,
    /// A host restores an earlier state file.
    StaleState,
    /// The service repeats the first position after an overflow.
    RepeatsAfterAnOverflow,
    /// The service repeats an ID from long ago.
    RepeatsMuchLater,
    /// The service issues the second-to-last ID again.
    GoesBackOnce,
    /// The service issues an ID of six seconds later.
    RunsAhead,
    /// The retry delay is 2 ms too short.
    ComesBackTooEarly,
    /// The retry delay is 2 ms too long.
    ComesBackTooLate,
    /// A used-up sequence is reported as a missing lease.
    NamesAnotherReason,
    /// A closed service continues.
    IssuesAfterTheEnd,
    /// The service reports its end although it has not ended, and without a reason.
    EndsWithoutReason,
}

impl Planted {
    /// All of them, the number of histories in which each is looked for, and how it shows: in some
    /// histories at least as the first fault listed, in others as another one.
    pub(crate) const ALL: [(Planted, u64, &[Fault]); 16] = [
        (
            Self::IgnoresExpectations,
            200,
            &[Fault::Repeated, Fault::NotAscending],
        ),
        (Self::Forgets, 100, &[Fault::Repeated, Fault::NotAscending]),
        (
            Self::ForgetsExtensions,
            100,
            &[
                Fault::NotGranted,
                Fault::Repeated,
                Fault::LeftOut,
                Fault::Other,
            ],
        ),
        (
            Self::ReleasesTooMuch,
            100,
            &[Fault::NotReturned, Fault::Other],
        ),
        (
            Self::CountsByItsOwnClock,
            1_000,
            &[Fault::Repeated, Fault::NotAscending],
        ),
        (Self::Stateless, 50, &[Fault::Repeated, Fault::NotAscending]),
        (
            Self::StaleState,
            200,
            &[Fault::Repeated, Fault::NotAscending],
        ),
        (Self::RepeatsAfterAnOverflow, 50, &[Fault::NotAscending]),
        (Self::RepeatsMuchLater, 50, &[Fault::NotAscending]),
        (Self::GoesBackOnce, 50, &[Fault::NotAscending]),
        (
            Self::RunsAhead,
            50,
            &[Fault::WrongTime, Fault::NotGranted, Fault::LeftOut],
        ),
        (Self::ComesBackTooEarly, 50, &[Fault::WrongRetryTime]),
        (Self::ComesBackTooLate, 50, &[Fault::WrongRetryTime]),
        (Self::NamesAnotherReason, 50, &[Fault::WrongRefusal]),
        (
            Self::IssuesAfterTheEnd,
            50,
            &[Fault::AfterTheEnd, Fault::NotAscending, Fault::NotGranted],
        ),
        (Self::EndsWithoutReason, 50, &[Fault::WrongRefusal]),
    ];

    /// True if only a repeated ID may reveal it, as if store and hosts were never inspected: all other
    /// checks are off.
    pub(crate) fn shows_by_repetition_alone(self) -> bool {
        use Planted::{Forgets, IgnoresExpectations, StaleState, Stateless};
        matches!(self, IgnoresExpectations | Forgets | Stateless | StaleState)
    }

    /// The record that the store keeps of an acknowledged change.
    pub(crate) fn kept(
        self,
        before: Option<&Record>,
        new: &Record,
        rng: &mut Rng,
    ) -> Option<Record> {
        let old = before.map_or(0, |before| before.bound);
        let extends = before.is_some_and(|before| before.epoch == new.epoch) && !new.released;
        match self {
            Self::Forgets if rng.percent(20) => before.cloned(),
            Self::ForgetsExtensions if extends => Some(Record {
                bound: old,
                ..new.clone()
            }),
            Self::ReleasesTooMuch if new.released => Some(Record {
                bound: new.bound.saturating_sub(2),
                ..new.clone()
            }),
            _ => Some(new.clone()),
        }
    }
}

/// The answers of a service, with or without a planted fault.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) planted: Option<Planted>,
    issued: Vec<IdRun>,
    overflowed: bool,
    again: Option<u64>,
}

impl Answers {
    /// The answers of a service that has just started.
    pub(crate) fn new(planted: Option<Planted>) -> Self {
        Self {
            planted,
            ..Self::default()
        }
    }

    pub(crate) fn try_gen_run(
        &mut self,
        service: &LocalIdService,
        want: u32,
    ) -> Result<IdRun, IdError> {
        let answer = service.try_gen_run(want);
        let Some(planted) = self.planted else {
            return answer;
        };
        match answer {
            Ok(run) => self.issue(planted, service, run),
            Err(IdError::NotReady(refusal)) => Err(self.refuse(planted, refusal)),
            Err(IdError::Sealed { .. }) if planted == Planted::IssuesAfterTheEnd => {
                let first = self.issued.last().map_or(0, |run| run.first);
                Ok(IdRun {
                    first: first + service.meta().step(),
                    step: 1,
                    count: 1,
                })
            }
            Err(error) => Err(error),
        }
    }

    fn issue(
        &mut self,
        planted: Planted,
        service: &LocalIdService,
        run: IdRun,
    ) -> Result<IdRun, IdError> {
        let before = self.issued.last().copied();
        self.issued.push(run);
        let again = match planted {
            Planted::RepeatsAfterAnOverflow => self.again.take(),
            Planted::RepeatsMuchLater if self.issued.len() > 20 => Some(self.issued[3].first),
            Planted::GoesBackOnce if self.issued.len() > 5 => before.map(|run| run.first),
            Planted::RunsAhead if self.issued.len() > 5 => {
                let mut id = service.exp_id(run.first)?;
                id.time += 6_000_u64.div_ceil(service.meta().spec().unit.millis());
                Some(service.meta().pack(&id)?)
            }
            _ => None,
        };
        if std::mem::take(&mut self.overflowed) {
            self.again = Some(run.first);
        }
        Ok(again.map_or(run, |first| IdRun {
            first,
            step: 1,
            count: 1,
        }))
    }

    fn refuse(&mut self, planted: Planted, refusal: NotReady) -> IdError {
        const LITTLE: Duration = Duration::from_millis(2);
        let NotReady { retry_after, why } = refusal;
        let used_up = why == NotReadyReason::SequenceUsedUp;
        self.overflowed |= used_up;
        let (retry_after, why) = match planted {
            Planted::ComesBackTooEarly => (retry_after.saturating_sub(LITTLE), why),
            Planted::ComesBackTooLate => (retry_after + LITTLE, why),
            Planted::NamesAnotherReason if used_up => (retry_after, NotReadyReason::AwaitingLease),
            Planted::EndsWithoutReason if used_up => return IdError::Sealed { reason: "".into() },
            _ => (retry_after, why),
        };
        NotReady { retry_after, why }.into()
    }
}

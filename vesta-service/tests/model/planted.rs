//! A service, and services with one fault each: the checker has to notice every one of them.

use std::cell::RefCell;
use std::time::Duration;

use vesta_service::{IdError, IdRun, IdService as _, LocalIdService, NotReady, NotReadyReason};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Flaw {
    #[default]
    Nothing,
    RepeatsTheFirstAfterAnOverflow,
    RepeatsAnIdMuchLater,
    PassesTheBound,
    GoesBackOnce,
    ComesBackTooEarly,
    ComesBackTooLate,
    NamesAnotherReason,
    IssuesAfterTheEnd,
    IsSealedWithoutReason,
    StoreIgnoresTheExpected,
    StoreForgetsExtensions,
    StoreReleasesTooMuch,
}

impl Flaw {
    pub(crate) const ALL: [Flaw; 12] = [
        Self::RepeatsTheFirstAfterAnOverflow,
        Self::RepeatsAnIdMuchLater,
        Self::PassesTheBound,
        Self::GoesBackOnce,
        Self::ComesBackTooEarly,
        Self::ComesBackTooLate,
        Self::NamesAnotherReason,
        Self::IssuesAfterTheEnd,
        Self::IsSealedWithoutReason,
        Self::StoreIgnoresTheExpected,
        Self::StoreForgetsExtensions,
        Self::StoreReleasesTooMuch,
    ];
}

/// A service as the tests see it.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) service: LocalIdService,
    flaw: Flaw,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    issued: Vec<u64>,
    overflowed: bool,
    again: Option<u64>,
}

impl Subject {
    pub(crate) fn new(service: LocalIdService, flaw: Flaw) -> Self {
        Self { service, flaw, state: RefCell::default() }
    }

    pub(crate) fn try_run(&self, want: u32) -> Result<IdRun, IdError> {
        let answer = self.service.try_gen_run(want);
        if self.flaw == Flaw::Nothing {
            return answer;
        }
        let mut state = self.state.borrow_mut();
        let only = |first| Ok(IdRun { first, step: 1, count: 1 });
        match answer {
            Ok(run) => {
                state.issued.extend(run.iter());
                let count = state.issued.len();
                let again = match self.flaw {
                    Flaw::RepeatsTheFirstAfterAnOverflow => state.again.take(),
                    Flaw::RepeatsAnIdMuchLater if count > 60 => Some(state.issued[7]),
                    Flaw::GoesBackOnce if count > 9 => Some(state.issued[count - 2]),
                    Flaw::PassesTheBound if count > 9 => {
                        let second = 1000 / self.service.meta().spec().unit.millis();
                        let mut id = self.service.exp_id(run.first)?;
                        id.time += 6 * second;
                        return only(self.service.meta().pack(&id)?);
                    }
                    _ => None,
                };
                if state.overflowed && self.flaw == Flaw::RepeatsTheFirstAfterAnOverflow {
                    state.again = Some(run.first);
                }
                state.overflowed = false;
                again.map_or(Ok(run), only)
            }
            Err(IdError::NotReady(NotReady { retry_after, why })) => {
                let used_up = why == NotReadyReason::SequenceUsedUp;
                state.overflowed |= used_up;
                let retry_after = match self.flaw {
                    Flaw::ComesBackTooEarly => retry_after.saturating_sub(Duration::from_millis(2)),
                    Flaw::ComesBackTooLate => retry_after + Duration::from_millis(2),
                    _ => retry_after,
                };
                let why = match self.flaw {
                    Flaw::NamesAnotherReason if used_up => NotReadyReason::AwaitingLease,
                    _ => why,
                };
                if self.flaw == Flaw::IsSealedWithoutReason && used_up {
                    return Err(IdError::Sealed { reason: "".into() });
                }
                Err(NotReady { retry_after, why }.into())
            }
            Err(IdError::Sealed { .. }) if self.flaw == Flaw::IssuesAfterTheEnd => {
                let last = state.issued.last().copied().unwrap_or(0);
                only(last + self.service.meta().step())
            }
            Err(error) => Err(error),
        }
    }
}

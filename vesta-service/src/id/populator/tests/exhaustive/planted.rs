//! Populators with one fault each: the checker has to detect every one of them.

use std::sync::Mutex;

use super::explore::Subject;
use crate::populator::subject::IdPopulator;
use crate::sequence::{Claim, Refusal, Rules, advance};

#[derive(Debug, Clone, Copy)]
struct State {
    next: u64,
    sealed: bool,
    overflowed: bool,
    claims: u32,
}

/// A populator that is correct except for the fault with this number.
#[derive(Debug)]
pub(crate) struct Faulty<const FAULT: usize>(Mutex<State>);

/// The planted faults.
pub(crate) const FAULTS: [&str; 14] = [
    "nothing",
    "repeats the first position after an overflow, as the original did",
    "wraps at the end of the time field",
    "lets the bound be passed by one",
    "goes back with the clock",
    "is sealed one position too early",
    "is sealed one position too late",
    "issues after sealing",
    "returns a retry tick that is too late",
    "refuses at the bound although there is one position left",
    "calls the bound a used-up sequence",
    "repeats the last position of the fifth claim",
    "takes a claim back although another one followed",
    "takes a claim back after sealing",
];

impl<const FAULT: usize> IdPopulator for Faulty<FAULT> {
    fn claim(&self, now: u64, want: u32, rules: &Rules, bound: u64) -> Result<Claim, Refusal> {
        let mut state = self.0.lock().unwrap();
        if state.sealed && FAULT != 7 {
            return Err(Refusal::Sealed);
        }
        let next = match FAULT {
            2 if rules.tick(state.next) > rules.max_tick() => 0,
            4 => state.next.min(rules.position(now + 1)),
            _ => state.next,
        };
        let bound = match FAULT {
            3 => bound.saturating_add(1),
            9 => bound.saturating_sub(1),
            _ => bound,
        };
        let answer = advance(next, now, want, rules, bound).map_err(|refusal| match refusal {
            Refusal::SequenceUsedUp { until } if FAULT == 8 => {
                Refusal::SequenceUsedUp { until: until + 1 }
            }
            Refusal::AwaitingLease if FAULT == 10 => Refusal::SequenceUsedUp {
                until: now.saturating_add(1),
            },
            other => other,
        });
        match answer {
            Ok(claim) => {
                state.claims += 1;
                state.next = claim.end;
                if FAULT == 1 && state.overflowed || FAULT == 11 && state.claims == 5 {
                    state.next = claim.end - 1;
                }
                state.overflowed = false;
            }
            Err(Refusal::SequenceUsedUp { .. }) => state.overflowed = true,
            Err(_) => {}
        }
        answer
    }

    fn seal(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        state.sealed = true;
        match FAULT {
            5 => state.next.saturating_sub(1),
            6 => state.next + 1,
            _ => state.next,
        }
    }

    fn give_back(&self, claim: Claim) -> bool {
        let mut state = self.0.lock().unwrap();
        let last = state.next == claim.end || FAULT == 12;
        let back = last && (!state.sealed || FAULT == 13);
        if back {
            state.next = claim.start;
        }
        back
    }

    fn position(&self) -> u64 {
        self.0.lock().unwrap().next
    }
}

impl<const FAULT: usize> Subject for Faulty<FAULT> {
    fn at(next: u64) -> Self {
        Self(Mutex::new(State {
            next,
            sealed: false,
            overflowed: false,
            claims: 0,
        }))
    }

    fn copy(&self, _: bool) -> Self {
        Self(Mutex::new(*self.0.lock().unwrap()))
    }
}

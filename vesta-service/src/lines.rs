//! The lines of one service, one for each machine ID it holds, and which of them a caller uses.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vesta_intf::{ErrorKind, IdError, NotReady, NotReadyReason};

use crate::grant::Grant;
use crate::lease::keeper::{Keeper, Line};
use crate::lease::timing::RETRY_AFTER;
use crate::sequence::Claim;

/// A line, and who keeps its lease.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) line: Arc<Line>,
    /// `None` without a lease.
    pub(crate) keeper: Option<Keeper>,
}

/// At least one line. Callers are spread over them: each thread keeps to one, and goes over to
/// another when its own has nothing to give.
#[derive(Debug)]
pub(crate) struct Lines {
    first: Member,
    others: Box<[Member]>,
}

/// Where the next thread that asks for the first time begins.
static NEXT_SEAT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of the line this thread keeps to, not yet wrapped around.
    static SEAT: Cell<usize> = Cell::new(NEXT_SEAT.fetch_add(1, Ordering::Relaxed));
}

impl Lines {
    /// `None` if there is none.
    pub(crate) fn new(members: Vec<Member>) -> Option<Self> {
        let mut members = members.into_iter();
        Some(Self { first: members.next()?, others: members.collect() })
    }

    /// The first line, which is the only one of most services.
    #[inline]
    pub(crate) fn first(&self) -> &Line {
        &self.first.line
    }

    /// The grant in force, if there is but one line.
    #[inline(always)]
    pub(crate) fn single(&self) -> Option<&Grant> {
        self.others.is_empty().then(|| self.first.line.current())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn get(&self, index: usize) -> &Member {
        if index == 0 { &self.first } else { &self.others[index - 1] }
    }

    /// Takes up to `want` positions in one piece of one line, without waiting.
    #[inline(always)] // on the way of every ID: a call would double its cost
    pub(crate) fn claim(&self, want: u32) -> Result<(&Grant, Claim), IdError> {
        if self.others.is_empty() { self.first.claim(want) } else { self.claim_from_any(want) }
    }

    #[inline(never)]
    fn claim_from_any(&self, want: u32) -> Result<(&Grant, Claim), IdError> {
        let count = self.others.len() + 1;
        let seat = SEAT.get() % count;
        let mut refusal: Option<IdError> = None;
        for index in (seat..count).chain(0..seat) {
            match self.get(index).claim(want) {
                Ok(claimed) => {
                    if index != seat {
                        SEAT.set(index);
                    }
                    return Ok(claimed);
                }
                Err(error) => refusal = Some(refusal.map_or(error.clone(), |r| sooner(r, error))),
            }
        }
        Err(refusal.unwrap_or(IdError::TimeExhausted)) // there is at least one line
    }

    /// Renews what is due, where no thread does it. Returns how long there is nothing more to do.
    pub(crate) fn maintain(&self) -> Option<Duration> {
        let due = self.iter().filter_map(|member| member.keeper.as_ref()?.maintain(&member.line));
        due.min()
    }

    /// Seals every line and gives the records back, as far as the store answers in time.
    pub(crate) fn close(&self) {
        // All are asked before one is waited for: the waits overlap.
        for member in self.iter() {
            member.line.request_stop();
            member.line.current().seal("it was shut down");
        }
        for Member { line, keeper } in self.iter() {
            if let Some(keeper) = keeper {
                keeper.close(line);
            }
        }
    }
}

impl Member {
    #[inline(always)]
    fn claim(&self, want: u32) -> Result<(&Grant, Claim), IdError> {
        let grant = self.line.current();
        match grant.claim(want) {
            Ok(claim) => Ok((grant, claim)),
            Err(error) => Err(self.unless_followed(grant, error)),
        }
    }

    /// A grant that was sealed because its machine ID was lost will have a successor.
    #[cold]
    fn unless_followed(&self, grant: &Grant, error: IdError) -> IdError {
        let again = IdError::NotReady(NotReady {
            retry_after: RETRY_AFTER,
            why: NotReadyReason::AwaitingLease,
        });
        if matches!(error.kind(), ErrorKind::ClockBehind | ErrorKind::AwaitingLease) {
            // After a step of the clock: another machine ID ends the wait, or another window does.
            self.line.wake_keeper();
        }
        match error {
            IdError::Sealed { .. } if !std::ptr::eq(grant, self.line.current()) => again,
            IdError::Sealed { .. } if self.line.will_follow() => again,
            error => error,
        }
    }
}

/// The refusal that is worth coming back for sooner.
fn sooner(one: IdError, other: IdError) -> IdError {
    match (&one, &other) {
        (IdError::NotReady(a), IdError::NotReady(b)) if b.retry_after < a.retry_after => other,
        (IdError::NotReady(_), _) => one,
        (_, IdError::NotReady(_)) => other,
        _ => one,
    }
}

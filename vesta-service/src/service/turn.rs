//! The turn of a waiting call.

use std::time::Duration;

use vesta_intf::{ErrorKind, IdError};

use crate::LocalIdService;
use crate::lease::{HeldLease, Reserved};
use crate::sequence::Claim;

/// The claims of one call, blocking or asynchronous, for one ID or a batch. A call that has to wait reserves a
/// position, and so is served in the order of arrival. Dropped, it gives that position up.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    service: &'a LocalIdService,
    reserved: Option<Reserved<'a>>,
}

impl<'a> Turn<'a> {
    pub(crate) const fn new(service: &'a LocalIdService) -> Self {
        Self {
            service,
            reserved: None,
        }
    }

    /// A new ID, without waiting.
    pub(crate) fn id(&mut self) -> Result<u64, IdError> {
        let (lease, claim) = self.claim(1)?;
        Ok(self.service.id_at(lease, claim.start))
    }

    /// Takes up to `want` consecutive positions without waiting, or else reserves one: a retry after the error's
    /// delay gets that one.
    pub(crate) fn claim(&mut self, want: u32) -> Result<(&'a HeldLease, Claim), IdError> {
        let service = self.service;
        let reserved = match &mut self.reserved {
            Some(reserved) => reserved,
            none => match service.slots.claim(want) {
                Err(error) => none.insert(service.reserve(waits(service, want, error)?)?),
                taken => return taken,
            },
        };
        let claim = reserved.issue()?;
        self.reserved = None;
        Ok(claim)
    }
}

/// The time within which a position to be reserved is due, or the error of a call that reserves none. A batch does
/// not, if the next slice has positions for it: it would take one that is left to calls for one ID.
fn waits(service: &LocalIdService, want: u32, error: IdError) -> Result<Duration, IdError> {
    let slice = service.slice();
    match error.retry_after() {
        Some(due) if error.kind() == ErrorKind::SequenceUsedUp && (want == 1 || due > slice) => {
            Ok(due.saturating_add(slice * 2))
        }
        _ => Err(error),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

//! Position state guarded by the mutex.

use crate::sequence::{Claim, Refusal, Rules, advance};

/// The first position not yet issued, and whether the line is sealed.
#[derive(Debug)]
pub(super) struct Cursor {
    next: u64,
    sealed: bool,
}

impl Cursor {
    pub(super) const fn new(position: u64) -> Self {
        Self { next: position, sealed: false }
    }

    #[inline]
    pub(super) fn claim(
        &mut self,
        now_tick: u64,
        want: u32,
        rules: &Rules,
        limit: u64,
    ) -> Result<Claim, Refusal> {
        if self.sealed {
            return Err(Refusal::Sealed);
        }
        let claim = advance(self.next, now_tick, want, rules, limit)?;
        self.next = claim.end;
        Ok(claim)
    }

    pub(super) fn seal(&mut self) -> u64 {
        self.sealed = true;
        self.next
    }

    pub(super) const fn position(&self) -> u64 {
        self.next
    }
}

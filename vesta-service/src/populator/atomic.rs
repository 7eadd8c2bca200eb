//! The position in one atomic word.

use super::IdPopulator;
use crate::sequence::{Claim, Refusal, Rules, advance};
use crate::sync::{AtomicU64, Ordering};
use crate::wait::BackOff;

/// Set in a word whose line is sealed. Positions have at most 63 bits (62 and one past the end), so
/// the bits never meet.
const SEALED: u64 = 1 << 63;

/// Guards the position by compare-and-swap.
///
/// ```text
///  bit 63   sealed
///  62 … 0   first position not yet issued
/// ```
#[derive(Debug)]
#[repr(align(128))] // a cache line (pair) of its own: what is read beside it changes rarely
pub struct AtomicIdPopulator {
    word: AtomicU64,
}

impl AtomicIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        assert!(position < SEALED);
        Self { word: AtomicU64::new(position) }
    }
}

impl IdPopulator for AtomicIdPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        // Relaxed throughout: the word is the whole state, and nothing else is published with it.
        // The order of all its changes, which is what uniqueness needs, holds for relaxed ones too.
        let mut word = self.word.load(Ordering::Relaxed);
        let mut back_off = BackOff::new();
        loop {
            if word & SEALED != 0 {
                return Err(Refusal::Sealed);
            }
            let claim = advance(word, now_tick, want, rules, limit)?;
            match self.word.compare_exchange(word, claim.end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(claim),
                Err(_) => {
                    back_off.spin();
                    word = self.word.load(Ordering::Relaxed);
                }
            }
        }
    }

    fn seal(&self) -> u64 {
        // Relaxed: as above. What is returned is exact because it is the same atomic change.
        self.word.fetch_or(SEALED, Ordering::Relaxed) & !SEALED
    }

    fn position(&self) -> u64 {
        self.word.load(Ordering::Relaxed) & !SEALED
    }
}

//! The generation rules in their plainest form: the set of issued positions, and a walk over all positions.

use crate::sequence::{Claim, Refusal, Rules, advance};

/// A layout small enough to be enumerated, and how generation uses it.
#[derive(Debug, Clone)]
pub(crate) struct Small {
    pub(crate) rules: Rules,
    pub(crate) ticks: u64,
    pub(crate) per_tick: u64,
    pub(crate) burst: u64,
    /// Slices per tick.
    pub(crate) slices: u64,
    /// The first sequence number of each tick.
    begins: Vec<u64>,
}

impl Small {
    pub(crate) fn new(time_bits: u8, seq_bits: u8, burst: u64) -> Self {
        Self::beginning(time_bits, seq_bits, burst, 1, 0)
    }

    /// A new tick starts at a sequence number below `below`. The model learns that number by
    /// asking; it then checks that the number stays the same, whatever happened before.
    pub(crate) fn beginning(
        time_bits: u8,
        seq_bits: u8,
        burst: u64,
        below: u64,
        salt: u64,
    ) -> Self {
        let rules = Rules::new(time_bits, seq_bits, burst).starting_below(below, salt);
        let small = Self::of(rules, time_bits, seq_bits, burst);
        assert!(small.begins.iter().all(|begin| *begin < below));
        small
    }

    /// A tick has 2 to the power of `slice_bits` slices.
    pub(crate) fn paced(time_bits: u8, seq_bits: u8, burst: u64, slice_bits: u8) -> Self {
        let rules = Rules::new(time_bits, seq_bits, burst).paced(4 << slice_bits);
        Self {
            slices: 1 << slice_bits,
            ..Self::of(rules, time_bits, seq_bits, burst)
        }
    }

    fn of(rules: Rules, time_bits: u8, seq_bits: u8, burst: u64) -> Self {
        let (ticks, per_tick) = (1 << time_bits, 1 << seq_bits);
        assert!(ticks * per_tick <= 128, "the set is one word");
        assert_eq!(rules.max_tick() + 1, ticks);
        let begins: Vec<u64> = (0..ticks)
            .map(|tick| {
                let slice = tick << rules.slice_bits();
                advance(0, slice, 1, &rules, u64::MAX).unwrap().start - tick * per_tick
            })
            .collect();
        Self {
            rules,
            ticks,
            per_tick,
            burst,
            slices: 1,
            begins,
        }
    }

    /// One past the last position.
    pub(crate) fn end(&self) -> u64 {
        self.ticks * self.per_tick
    }
}

/// Positions that a populator has issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    /// Positions below it belong to another owner.
    first: u64,
    /// One bit for each position.
    issued: u128,
    pub(crate) sealed: bool,
}

impl Model {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            issued: 0,
            sealed: false,
        }
    }

    /// The positions that a claim may take: contiguous, ascending. `None` if none are available.
    fn available(&self, small: &Small, now: u64, want: u32, bound: u64) -> Option<Claim> {
        let mut claim: Option<Claim> = None;
        // In slices: nothing later than this one.
        let latest = now.saturating_add(small.burst * small.slices);
        let per_slice = small.per_tick / small.slices;
        let now = now / small.slices;
        for tick in now..small.ticks {
            let first = tick * small.per_tick;
            // Only the clock's own tick, if it has not been entered before, starts somewhere inside.
            let entered = self.first > first || self.issued >> first != 0;
            let begin = if tick > now || entered {
                0
            } else {
                small.begins[usize::try_from(tick).unwrap()]
            };
            for position in first + begin..first + small.per_tick {
                let mine = position >= self.first && position < bound;
                let ascends = self.issued >> position == 0;
                // A claim does not span two ticks.
                let near = claim.is_none_or(|claim| claim.start / small.per_tick == tick);
                if mine && ascends && near && position / per_slice <= latest {
                    let claim = claim.get_or_insert(Claim {
                        start: position,
                        end: position,
                    });
                    if claim.end - claim.start < u64::from(want) {
                        assert_eq!(claim.end, position, "contiguous");
                        claim.end += 1;
                    }
                }
            }
        }
        claim
    }

    /// The result that a claim must have. The reason of a refusal is the condition that would have to change.
    pub(crate) fn claim(
        &mut self,
        small: &Small,
        now: u64,
        want: u32,
        bound: u64,
    ) -> Result<Claim, Refusal> {
        if self.sealed {
            return Err(Refusal::Sealed);
        }
        if let Some(claim) = self.available(small, now, want, bound) {
            for position in claim.start..claim.end {
                assert_eq!(self.issued >> position, 0, "never twice, never back");
                self.issued |= 1 << position;
            }
            return Ok(claim);
        }
        if self.available(small, now, want, u64::MAX).is_some() {
            return Err(Refusal::AwaitingLease);
        }
        let mut later = now.saturating_add(1)..small.ticks * small.slices;
        match later.find(|slice| self.available(small, *slice, want, u64::MAX).is_some()) {
            Some(until) => Err(Refusal::SequenceUsedUp { until }),
            None => Err(Refusal::TimeExhausted),
        }
    }

    /// Takes back the last claim; the next position does not go below its start.
    pub(crate) fn give_back(&mut self, small: &Small, claim: Claim) -> bool {
        let last = self.position() == claim.end && self.issued >> (claim.end - 1) == 1;
        let whole = claim.start / small.per_tick == claim.end / small.per_tick;
        if self.sealed || !last || !whole {
            return false;
        }
        (claim.start..claim.end).for_each(|position| self.issued &= !(1 << position));
        self.first = claim.start;
        true
    }

    /// The first position that was never issued.
    pub(crate) fn position(&self) -> u64 {
        self.first.max(u64::from(128 - self.issued.leading_zeros()))
    }
}

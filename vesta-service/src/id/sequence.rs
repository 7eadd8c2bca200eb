//! The one rule about time and sequence. Pure; nothing else does arithmetic on them.
//!
//! A position is `tick << seq_bits | seq`. A generator owns the line of positions of its machine ID
//! and only ever moves forward on it:
//!
//! ```text
//!        next: first position not yet issued        limit: durable bound, exclusive
//!          │                                          │
//!  ────────●──────────────┬──────────────────┬────────●────────►
//!                  pos(now_tick)      pos(now_tick + 1 + burst) = cap
//! ```
//!
//! What is taken lies at or after `next` and `pos(now_tick)`, and before `cap` and `limit`. Where the
//! settings want it, a new tick begins some way into its sequence numbers.

/// The rules that a layout and its settings set for positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    seq_bits: u8,
    max_tick: u64,
    burst: u64,
    /// A new tick begins at a sequence number below this one; 1 for zero.
    start_below: u64,
    salt: u64,
}

/// Positions taken: `start..end`, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The first position.
    pub start: u64,
    /// One past the last position.
    pub end: u64,
}

/// Why no position was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Every position of the current tick is taken; there are new ones from this tick on.
    SequenceUsedUp {
        /// The tick to wait for.
        until_tick: u64,
    },
    /// The durable bound is reached.
    AwaitingLease,
    /// The time field has run out.
    TimeExhausted,
    /// The line was sealed; it never issues again.
    Sealed,
}

impl Rules {
    /// The rules of a layout with these widths. `burst` is how many ticks of the future may be
    /// borrowed.
    ///
    /// Time and sequence must together have at most 62 bits, as every
    /// [`IdMeta`](vesta_intf::IdMeta) has: the bits above mark a sealed line.
    pub const fn new(time_bits: u8, seq_bits: u8, burst: u64) -> Self {
        assert!(time_bits >= 1 && time_bits as u32 + seq_bits as u32 <= 62);
        Self { seq_bits, max_tick: (1 << time_bits) - 1, burst, start_below: 1, salt: 0 }
    }

    /// The same rules, but a new tick begins at some sequence number below `below`, which differs
    /// from tick to tick: with low traffic the last digits of IDs are then spread. Where it begins
    /// depends on the tick and `salt` alone, so that all callers agree.
    ///
    /// `below` must be at least 1 and at most what the sequence field holds.
    pub const fn starting_below(self, below: u64, salt: u64) -> Self {
        assert!(below >= 1 && below <= 1 << self.seq_bits);
        Self { start_below: below, salt, ..self }
    }

    /// The first position to be issued in a tick.
    #[cold] // once in a tick
    #[inline(never)]
    const fn start(&self, tick: u64) -> u64 {
        let first = self.position(tick);
        if self.start_below == 1 || tick > self.max_tick {
            return first;
        }
        // The finaliser of splitmix64 (Steele, Lea, Flood 2014).
        let mut x = tick ^ self.salt;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        first + (x ^ (x >> 31)) % self.start_below
    }

    /// The first position of a tick, which may lie one past the layout's last tick.
    #[inline]
    pub const fn position(&self, tick: u64) -> u64 {
        // A tick past the end stands for the end itself: it is beyond every position there is.
        let end = self.max_tick + 1;
        (if tick < end { tick } else { end }) << self.seq_bits
    }

    /// The tick of a position.
    #[inline]
    pub const fn tick(&self, position: u64) -> u64 {
        position >> self.seq_bits
    }

    /// The last tick of the layout.
    pub const fn max_tick(&self) -> u64 {
        self.max_tick
    }
}

/// Takes up to `want` positions in one piece, given the first position not yet issued, the tick
/// that the clock shows, and the durable bound. The caller makes `claim.end` its new `next`.
///
/// # Errors
/// A [`Refusal`]; then nothing is taken and `next` stays.
#[inline]
pub const fn advance(
    next: u64,
    now_tick: u64,
    want: u32,
    rules: &Rules,
    limit: u64,
) -> Result<Claim, Refusal> {
    let start = if next > rules.position(now_tick) { next } else { rules.start(now_tick) };
    let cap = rules.position(now_tick.saturating_add(1 + rules.burst));
    if start >= cap {
        return Err(if start >= rules.position(rules.max_tick + 1) {
            Refusal::TimeExhausted
        } else {
            Refusal::SequenceUsedUp { until_tick: rules.tick(start) - rules.burst }
        });
    }
    if start >= limit {
        return Err(Refusal::AwaitingLease);
    }
    let room = if cap < limit { cap } else { limit } - start;
    let want = want as u64;
    Ok(Claim { start, end: start + if want < room { want } else { room } })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: u64 = u64::MAX;

    #[test]
    fn a_new_tick_starts_at_sequence_zero() {
        let rules = Rules::new(4, 3, 0);
        assert_eq!(advance(0, 5, 1, &rules, NO_LIMIT), Ok(Claim { start: 40, end: 41 }));
    }

    #[test]
    fn the_overflow_of_a_tick_waits_for_the_next_one_and_does_not_repeat_it() {
        let rules = Rules::new(4, 3, 0);
        assert_eq!(
            advance(48, 5, 1, &rules, NO_LIMIT),
            Err(Refusal::SequenceUsedUp { until_tick: 6 })
        );
        assert_eq!(advance(48, 6, 1, &rules, NO_LIMIT), Ok(Claim { start: 48, end: 49 }));
    }

    #[test]
    fn with_a_burst_the_future_may_be_borrowed_up_to_it() {
        let rules = Rules::new(4, 3, 2);
        assert_eq!(advance(48, 5, 99, &rules, NO_LIMIT), Ok(Claim { start: 48, end: 64 }));
        assert_eq!(
            advance(64, 5, 1, &rules, NO_LIMIT),
            Err(Refusal::SequenceUsedUp { until_tick: 6 })
        );
    }

    #[test]
    fn a_random_start_stays_below_its_limit_and_differs_from_tick_to_tick() {
        let rules = Rules::new(20, 10, 0).starting_below(100, 42);
        let mut seen = std::collections::HashSet::new();
        for tick in 1..10_000 {
            let claim = advance(0, tick, 1, &rules, NO_LIMIT).unwrap();
            let seq = claim.start - rules.position(tick);
            assert!(seq < 100);
            seen.insert(seq);
            let within = advance(claim.end, tick, 1, &rules, NO_LIMIT).unwrap();
            assert_eq!(within.start, claim.end, "it goes on without another leap");
        }
        assert_eq!(seen.len(), 100);
        let other = Rules::new(20, 10, 0).starting_below(100, 43);
        assert!((1..100).any(|tick| other.start(tick) != rules.start(tick)));
    }

    #[test]
    fn a_random_start_gives_no_position_twice_and_none_beyond_the_end() {
        for below in 1..=4 {
            for salt in 0..16 {
                let rules = Rules::new(3, 2, 0).starting_below(below, salt);
                let mut next = 0;
                for tick in 0..=9 {
                    loop {
                        match advance(next, tick, 2, &rules, NO_LIMIT) {
                            Ok(claim) => {
                                assert!(claim.start >= next && claim.end > claim.start);
                                assert_eq!(claim.start >> 2, tick);
                                assert!(claim.end <= 32);
                                next = claim.end;
                            }
                            Err(Refusal::SequenceUsedUp { until_tick }) => {
                                assert_eq!(until_tick, tick + 1);
                                break;
                            }
                            Err(refusal) => {
                                assert_eq!(refusal, Refusal::TimeExhausted);
                                assert!(tick >= 7);
                                break;
                            }
                        }
                    }
                }
            }
        }
    }

    /// The whole state space of a tiny layout: every rule, at every point.
    #[test]
    fn exhaustively_at_small_widths() {
        let mut taken = 0u64;
        for burst in 0..=2 {
            let rules = Rules::new(3, 2, burst);
            let end = 8 << 2;
            for next in 0..=end {
                for now_tick in 0..=10 {
                    for limit in 0..=end + 1 {
                        for want in 1..=6 {
                            let result = advance(next, now_tick, want, &rules, limit);
                            let earliest = next.max((now_tick << 2).min(end));
                            let cap = ((now_tick + 1 + burst) << 2).min(end);
                            let expected = (earliest..cap.min(limit)).take(want as usize);
                            match result {
                                Ok(Claim { start, end }) => {
                                    taken += 1;
                                    assert!((start..end).eq(expected));
                                }
                                Err(refusal) => {
                                    assert_eq!(expected.count(), 0, "refused though there was one");
                                    match refusal {
                                        Refusal::TimeExhausted => assert!(earliest >= end),
                                        Refusal::AwaitingLease => assert!(earliest >= limit),
                                        Refusal::SequenceUsedUp { until_tick } => {
                                            assert!(until_tick > now_tick);
                                            // It is worth coming back then, and not before.
                                            let then =
                                                |tick| advance(next, tick, want, &rules, NO_LIMIT);
                                            assert!(then(until_tick).is_ok());
                                            assert!(then(until_tick - 1).is_err());
                                        }
                                        Refusal::Sealed => unreachable!("advance knows no seal"),
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(taken > 10_000, "only {taken} claims succeeded");
    }
}

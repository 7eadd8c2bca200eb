//! The rules for time and sequence. Pure; no other code of this crate does arithmetic on them.
//!
//! A position is `tick << seq_bits | seq`. A generator owns the positions of its machine ID and
//! only ever moves forward through them:
//!
//! ```text
//!        next: first position not yet issued        bound: durable bound, exclusive
//!          │                                          │
//!  ────────●──────────────┬──────────────────┬────────●────────►
//!               pos(tick of now)      pos(now + 1 + burst) = cap
//! ```
//!
//! `now` counts slices: the parts of a tick that are released one after another. Without pacing a tick has
//! one slice. With pacing, the first slice has an eighth of the tick for bursts, and all slices share the
//! rest equally. A claim is at or after `next` and the clock's tick, and before `cap` and `bound`.
//! Depending on the settings, a new tick starts some way into its sequence numbers. Claims of more than one
//! leave the last sixteenth of the positions reached by the clock to claims of one.

/// Maximum time that IDs may be made ahead of the clock, in milliseconds.
pub const MAX_BORROW_MILLIS: u64 = 10_000;

/// The rules for positions that a layout and the settings define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    seq_bits: u8,
    /// A tick has 2 to the power of this many slices.
    slice_bits: u8,
    /// A waiting caller may sleep through 2 to the power of this many slices.
    rest_bits: u8,
    max_tick: u64,
    /// In slices.
    burst: u64,
    /// A new tick starts at a sequence number below this one; 1 means at zero.
    start_below: u64,
    salt: u64,
}

/// Positions taken: `start..end`, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The first position.
    pub(crate) start: u64,
    /// One past the last position.
    pub(crate) end: u64,
}

/// The reason why no position was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Every position of the current slice is taken, or left to claims of one; new ones are available from
    /// this slice on.
    SequenceUsedUp {
        /// The slice to wait for.
        until: u64,
    },
    /// The durable bound has been reached.
    AwaitingLease,
    /// The time field has run out.
    TimeExhausted,
    /// The populator was sealed; it never issues again.
    Sealed,
}

impl Rules {
    /// The rules of a layout with these widths. `burst` is the number of future ticks that may be borrowed.
    ///
    /// Time and sequence must together have at most 62 bits, as every
    /// [`IdMeta`](vesta_intf::IdMeta) has: a bit above marks a sealed populator.
    pub(crate) const fn new(time_bits: u8, seq_bits: u8, burst: u64) -> Self {
        assert!(time_bits >= 1 && time_bits as u32 + seq_bits as u32 <= 62);
        let max_tick = (1 << time_bits) - 1;
        Self {
            seq_bits,
            slice_bits: 0,
            rest_bits: 0,
            max_tick,
            burst,
            start_below: 1,
            salt: 0,
        }
    }

    /// The same rules, but a tick of `tick_millis` is released in slices of at most 4 ms: at the cap no caller then
    /// waits for the rest of a second. The first slice also has an eighth of the tick, so a burst does not wait merely
    /// because a tick is new. Later slices of the tick include what earlier ones left. If shorter ticks may be
    /// borrowed, one wait covers as many of them as fit into 4 ms.
    pub(crate) const fn paced(self, tick_millis: u64) -> Self {
        let mut bits = 0;
        while tick_millis >> bits > 4 && bits < self.seq_bits {
            bits += 1;
        }
        let mut rest_bits = 0;
        while tick_millis << (rest_bits + 1) <= 4 {
            rest_bits += 1;
        }
        Self {
            slice_bits: bits,
            rest_bits,
            burst: self.burst << bits,
            ..self
        }
    }

    /// The same rules for a caller that waits for its position, which may be this many slices further ahead.
    pub(crate) const fn reserving(self, slices: u64) -> Self {
        Self {
            burst: self.burst.saturating_add(slices),
            ..self
        }
    }

    /// The same rules, but a new tick starts at a sequence number below `below` that differs from
    /// tick to tick: this spreads the last digits of IDs under low traffic. The start depends only
    /// on the tick and `salt`, so that all callers agree.
    ///
    /// `below` must be at least 1 and at most the number of sequence numbers.
    pub(crate) const fn starting_below(self, below: u64, salt: u64) -> Self {
        assert!(below >= 1 && below <= 1 << self.seq_bits);
        Self {
            start_below: below,
            salt,
            ..self
        }
    }

    /// The first position to be issued in a tick.
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

    /// The first position of a tick, which may be one past the layout's last tick.
    #[inline]
    pub(crate) const fn position(&self, tick: u64) -> u64 {
        // A tick past the end is mapped to the end itself, which is beyond every position.
        let end = self.max_tick + 1;
        (if tick < end { tick } else { end }) << self.seq_bits
    }

    /// The tick of a position.
    #[inline]
    pub(crate) const fn tick(&self, position: u64) -> u64 {
        position >> self.seq_bits
    }

    /// Exclusive upper bound of a claim of `want` positions in a slice. The last slice of the layout leaves
    /// nothing to claims of one.
    pub(crate) const fn cap(&self, now: u64, want: u32) -> u64 {
        let after = now.saturating_add(1).saturating_add(self.burst);
        if after < (self.max_tick + 1) << self.slice_bits {
            let begun = after & ((1 << self.slice_bits) - 1);
            self.position(after >> self.slice_bits) + self.reached(begun) - self.left_by(want)
        } else {
            self.position(self.max_tick + 1)
        }
    }

    /// Positions of a tick that may be taken once this many of its slices have begun: none, some, or all but
    /// those of the last slices.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a part of the positions of a tick"
    )]
    const fn reached(&self, begun: u64) -> u64 {
        if begun == 0 {
            return 0;
        }
        let shared = (self.for_slices() as u128 * begun as u128) >> self.slice_bits;
        self.for_bursts() + shared as u64
    }

    /// Positions of a tick that its first slice has in addition to its share.
    const fn for_bursts(&self) -> u64 {
        if self.slice_bits == 0 {
            0
        } else {
            (1 << self.seq_bits) / 8
        }
    }

    /// Positions of a tick that its slices share equally.
    const fn for_slices(&self) -> u64 {
        (1 << self.seq_bits) - self.for_bursts()
    }

    /// Positions available at the beginning of a tick.
    pub(crate) const fn first_slice(&self) -> u64 {
        if self.slice_bits == 0 {
            1 << self.seq_bits
        } else {
            self.reached(1)
        }
    }

    /// Positions below the cap that a claim of this size leaves to claims of one: a sixteenth of a
    /// slice, so none if a slice has fewer than 16.
    const fn left_by(&self, want: u32) -> u64 {
        if want == 1 {
            0
        } else {
            (1 << (self.seq_bits - self.slice_bits)) / 16
        }
    }

    /// Exclusive upper bound of a contiguous claim from `start` in a slice: the IDs of neighbouring
    /// positions are equally spaced within a tick only.
    pub(crate) const fn end(&self, start: u64, now: u64, want: u32, bound: u64) -> u64 {
        let (cap, tick_end) = (self.cap(now, want), self.position(self.tick(start) + 1));
        let end = if cap < tick_end { cap } else { tick_end };
        if end < bound { end } else { bound }
    }

    /// True if a claim that no caller received may be given back, provided that no position after it was
    /// taken. A claim that ends with its tick may not: the clock may be past that tick.
    pub(crate) const fn may_give_back(&self, claim: Claim) -> bool {
        self.tick(claim.start) == self.tick(claim.end)
    }

    /// The first slice in which a position may be taken.
    pub(crate) const fn due(&self, position: u64) -> u64 {
        self.slice(position).saturating_sub(self.burst)
    }

    /// The slice until which a caller that waits for a position sleeps. Callers wake up at common slices,
    /// and none after the position's own slice: later, the positions that follow it there would be lost.
    pub(crate) fn wake(&self, position: u64) -> u64 {
        self.due(position)
            .next_multiple_of(1 << self.rest_bits)
            .min(self.slice(position))
    }

    /// The slice of a position.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most the slices of a tick"
    )]
    const fn slice(&self, position: u64) -> u64 {
        let (tick, seq) = (self.tick(position), position & ((1 << self.seq_bits) - 1));
        // The smallest number of slices that reaches it, minus one.
        let shared = (seq + 1).saturating_sub(self.for_bursts()) as u128;
        let begun = (shared << self.slice_bits).div_ceil(self.for_slices() as u128) as u64;
        (tick << self.slice_bits) + begun.saturating_sub(1)
    }

    /// A tick has 2 to the power of this many slices.
    pub(crate) const fn slice_bits(&self) -> u8 {
        self.slice_bits
    }

    /// The first tick of the clock in which a generator at this position may continue.
    pub(crate) const fn earliest_tick(&self, position: u64) -> u64 {
        self.tick(position)
            .saturating_sub(self.burst >> self.slice_bits)
    }

    /// The last tick of the layout.
    pub(crate) const fn max_tick(&self) -> u64 {
        self.max_tick
    }
}

/// Takes up to `want` contiguous positions of one tick, given the first position not yet issued, the
/// slice that the clock shows, and the durable bound. The caller makes `claim.end` its new `next`.
///
/// # Errors
/// A [`Refusal`]; nothing is taken then, and `next` is unchanged.
pub(crate) const fn advance(
    next: u64,
    now: u64,
    want: u32,
    rules: &Rules,
    bound: u64,
) -> Result<Claim, Refusal> {
    let now_tick = now >> rules.slice_bits;
    let start = if next > rules.position(now_tick) {
        next
    } else {
        rules.start(now_tick)
    };
    if start >= rules.cap(now, want) {
        let end = rules.position(rules.max_tick + 1);
        let beyond = start + rules.left_by(want);
        return Err(if start >= end {
            Refusal::TimeExhausted
        } else {
            Refusal::SequenceUsedUp {
                until: rules.due(if beyond < end { beyond } else { end - 1 }),
            }
        });
    }
    if start >= bound {
        return Err(Refusal::AwaitingLease);
    }
    Ok(within(start, want, rules.end(start, now, want, bound)))
}

/// Up to `want` positions from `start` on, all below `end`.
#[inline]
pub(crate) const fn within(start: u64, want: u32, end: u64) -> Claim {
    let (want, room) = (want as u64, end - start);
    Claim {
        start,
        end: start + if want < room { want } else { room },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_BOUND: u64 = u64::MAX;

    #[test]
    fn a_new_tick_starts_at_sequence_zero() {
        let rules = Rules::new(4, 3, 0);
        assert_eq!(
            advance(0, 5, 1, &rules, NO_BOUND),
            Ok(Claim { start: 40, end: 41 })
        );
    }

    #[test]
    fn a_used_up_tick_waits_for_the_next_one_without_repeating() {
        let rules = Rules::new(4, 3, 0);
        assert_eq!(
            advance(48, 5, 1, &rules, NO_BOUND),
            Err(Refusal::SequenceUsedUp { until: 6 })
        );
        assert_eq!(
            advance(48, 6, 1, &rules, NO_BOUND),
            Ok(Claim { start: 48, end: 49 })
        );
    }

    #[test]
    fn future_ticks_may_be_borrowed_up_to_the_burst() {
        let rules = Rules::new(4, 3, 2);
        assert_eq!(
            advance(48, 5, 99, &rules, NO_BOUND),
            Ok(Claim { start: 48, end: 56 })
        );
        assert_eq!(
            advance(56, 5, 99, &rules, NO_BOUND),
            Ok(Claim { start: 56, end: 64 })
        );
        assert_eq!(
            advance(64, 5, 1, &rules, NO_BOUND),
            Err(Refusal::SequenceUsedUp { until: 6 })
        );
    }

    #[test]
    fn a_position_continues_from_its_earliest_tick_and_not_before() {
        for (burst, tick_millis) in [(0, 1), (2, 1), (0, 16), (2, 16)] {
            let rules = Rules::new(4, 3, burst).paced(tick_millis);
            for next in 0..128 {
                let earliest = rules.earliest_tick(next);
                let goes_on = |before: u64| {
                    let end_of_tick = (earliest + 1 - before) << rules.slice_bits();
                    end_of_tick > 0 && advance(next, end_of_tick - 1, 1, &rules, NO_BOUND).is_ok()
                };
                assert!(goes_on(0) && !goes_on(1), "{rules:?} {next}");
            }
        }
    }

    #[test]
    fn a_random_start_is_bounded_and_differs_between_ticks() {
        let rules = Rules::new(20, 10, 0).starting_below(100, 42);
        let mut seen = std::collections::HashSet::new();
        for tick in 1..10_000 {
            let claim = advance(0, tick, 1, &rules, NO_BOUND).unwrap();
            let seq = claim.start - rules.position(tick);
            assert!(seq < 100);
            seen.insert(seq);
            let within = advance(claim.end, tick, 1, &rules, NO_BOUND).unwrap();
            assert_eq!(within.start, claim.end, "it continues without another leap");
        }
        assert_eq!(seen.len(), 100);
        let other = Rules::new(20, 10, 0).starting_below(100, 43);
        assert!((1..100).any(|tick| other.start(tick) != rules.start(tick)));
    }

    #[test]
    fn a_random_start_issues_each_position_once_and_none_beyond_the_end() {
        for below in 1..=4 {
            for salt in 0..16 {
                let rules = Rules::new(3, 2, 0).starting_below(below, salt);
                let mut next = 0;
                for tick in 0..=9 {
                    loop {
                        match advance(next, tick, 2, &rules, NO_BOUND) {
                            Ok(claim) => {
                                assert!(claim.start >= next && claim.end > claim.start);
                                assert_eq!(claim.start >> 2, tick);
                                assert!(claim.end <= 32);
                                next = claim.end;
                            }
                            Err(Refusal::SequenceUsedUp { until }) => {
                                assert_eq!(until, tick + 1);
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

    #[test]
    fn a_paced_tick_is_released_in_slices_that_include_earlier_rests() {
        // Four slices; 4 of 32 for bursts, and 7 for each slice.
        let rules = Rules::new(4, 5, 0).paced(16);
        assert_eq!(rules.slice_bits(), 2);
        let claim = |next, slice, want| advance(next, slice, want, &rules, NO_BOUND);
        let taken = |start, end| Ok(Claim { start, end });
        assert_eq!(claim(0, 20, 99), taken(160, 171));
        assert_eq!(
            claim(171, 20, 1),
            Err(Refusal::SequenceUsedUp { until: 21 })
        );
        assert_eq!(claim(171, 21, 99), taken(171, 178));
        assert_eq!(claim(178, 23, 99), taken(178, 192));
        assert_eq!(
            claim(192, 23, 1),
            Err(Refusal::SequenceUsedUp { until: 24 })
        );
        assert_eq!(claim(161, 24, 99), taken(192, 203));
        for (millis, bits) in [(1, 0), (4, 0), (5, 1), (10, 2), (1000, 8), (60_000, 10)] {
            assert_eq!(
                Rules::new(20, 10, 0).paced(millis).slice_bits(),
                bits,
                "{millis} ms"
            );
        }
    }

    #[test]
    fn the_first_slice_of_a_second_has_an_eighth_of_it_and_the_last_one_all() {
        for seq_bits in [8, 9, 13, 20, 41] {
            let rules = Rules::new(20, seq_bits, 0).paced(1000);
            let of_a_tick = 1_u64 << seq_bits;
            let cap = |slice: u64| rules.cap(256 + slice, 1) - rules.position(1);
            assert!(cap(0) >= of_a_tick / 8, "{seq_bits}");
            assert_eq!(cap(255), of_a_tick);
            assert!((1..256).all(|slice| cap(slice) >= cap(slice - 1)));
            // Seven eighths by 256, rounded down or up.
            let off = |slice: u64| ((cap(slice) - cap(slice - 1)) * 2048).abs_diff(of_a_tick * 7);
            assert!((1..256).all(|slice| off(slice) < 2048));
        }
    }

    #[test]
    fn batch_leaves_the_last_sixteenth_of_a_slice_to_claims_of_one() {
        let whole = Rules::new(4, 5, 0);
        let paced = Rules::new(4, 6, 0).paced(8);
        let borrowing = Rules::new(4, 5, 1);
        for (rules, next, now, cap) in [(whole, 160, 5, 192), (paced, 320, 10, 356)] {
            assert_eq!(rules.cap(now, 1), cap);
            let claim = |next, want| advance(next, now, want, &rules, NO_BOUND);
            assert_eq!(
                claim(next, 2),
                Ok(Claim {
                    start: next,
                    end: next + 2
                })
            );
            assert_eq!(
                claim(next, 99),
                Ok(Claim {
                    start: next,
                    end: cap - 2
                })
            );
            let until = now + 1;
            assert_eq!(claim(cap - 2, 2), Err(Refusal::SequenceUsedUp { until }));
            assert_eq!(
                claim(cap - 2, 1),
                Ok(Claim {
                    start: cap - 2,
                    end: cap - 1
                })
            );
            assert_eq!(claim(cap, 1), Err(Refusal::SequenceUsedUp { until }));
        }
        // The rest of a slice is available in the next one; the rest of a tick is not.
        let claim = |next, now, rules| advance(next, now, 99, rules, NO_BOUND).unwrap();
        assert_eq!(
            claim(354, 11, &paced),
            Claim {
                start: 354,
                end: 382
            }
        );
        assert_eq!(
            claim(190, 6, &whole),
            Claim {
                start: 192,
                end: 222
            }
        );
        // Only the last of the ticks that may be borrowed keeps a reserve.
        assert_eq!(
            claim(160, 5, &borrowing),
            Claim {
                start: 160,
                end: 192
            }
        );
        assert_eq!(
            claim(192, 5, &borrowing),
            Claim {
                start: 192,
                end: 222
            }
        );
    }

    #[test]
    fn a_waiting_caller_takes_a_position_ahead_and_knows_when_it_is_due() {
        for rules in [Rules::new(4, 3, 0), Rules::new(4, 3, 1).paced(16)] {
            let now = 5 << rules.slice_bits();
            let next = rules.cap(now, 1);
            let waiting = rules.reserving(3);
            let claim = advance(next, now, 1, &waiting, NO_BOUND).unwrap();
            assert_eq!(
                claim,
                Claim {
                    start: next,
                    end: next + 1
                }
            );
            let due = rules.due(claim.start);
            assert!(advance(claim.start, due, 1, &rules, NO_BOUND).is_ok());
            assert!(advance(claim.start, due - 1, 1, &rules, NO_BOUND).is_err());
            let furthest = waiting.cap(now, 1);
            let refusal = advance(furthest, now, 1, &waiting, NO_BOUND);
            assert_eq!(refusal, Err(Refusal::SequenceUsedUp { until: now + 1 }));
        }
    }

    #[test]
    fn a_waiting_caller_sleeps_through_short_ticks_that_can_be_borrowed() {
        let wakes = |rules: Rules| {
            let wakes = (16..24).map(|tick| rules.wake(rules.position(tick)));
            wakes.collect::<Vec<_>>()
        };
        let rules = |burst| Rules::new(10, 3, burst);
        let own: Vec<_> = (16..24).collect();
        assert_eq!(wakes(rules(0).paced(1)), own);
        assert_eq!(
            wakes(rules(8)),
            (8..16).collect::<Vec<_>>(),
            "without pacing when it is due"
        );
        assert_eq!(wakes(rules(1).paced(1)), [16, 16, 18, 19, 20, 20, 22, 23]);
        assert_eq!(wakes(rules(3).paced(1)), [16, 16, 16, 16, 20, 20, 20, 20]);
        assert_eq!(wakes(rules(8).paced(1)), [8, 12, 12, 12, 12, 16, 16, 16]);
        assert_eq!(wakes(rules(8).paced(2)), [8, 10, 10, 12, 12, 14, 14, 16]);
        assert_eq!(wakes(rules(8).paced(4)), (8..16).collect::<Vec<_>>());
    }

    /// The whole state space of a tiny layout: every rule, at every point.
    #[test]
    fn exhaustively_at_small_widths() {
        let mut taken = 0u64;
        // Ticks of 1, 2 and 4 slices, with fewer than 16 positions and with more.
        let ticks = (0..=2).flat_map(|burst| (0..=2).map(move |bits| (burst, bits)));
        for (seq_bits, (burst, slice_bits)) in ticks.flat_map(|tick| [(2, tick), (5, tick)]) {
            let rules = Rules::new(3, seq_bits, burst).paced(4 << slice_bits);
            let (end, per_slice) = (8 << seq_bits, (1 << seq_bits) >> slice_bits);
            let some_bounds = if seq_bits == 2 { 1 } else { 13 };
            for next in 0..=end {
                for now in 0..=10 << slice_bits {
                    for bound in (0..=end + 1).step_by(some_bounds) {
                        for want in 1..=6 {
                            let result = advance(next, now, want, &rules, bound);
                            let earliest = next.max(((now >> slice_bits) << seq_bits).min(end));
                            let ahead = 1 + (burst << slice_bits);
                            let left = if want == 1 { 0 } else { per_slice / 16 };
                            let (tick, begun) = (
                                (now + ahead) >> slice_bits,
                                (now + ahead) % (1 << slice_bits),
                            );
                            let eighth = if slice_bits > 0 {
                                (1 << seq_bits) / 8
                            } else {
                                0
                            };
                            let shared = (((1 << seq_bits) - eighth) * begun) >> slice_bits;
                            let cap =
                                (tick << seq_bits) + if begun > 0 { eighth + shared } else { 0 };
                            let cap = if cap < end { cap - left } else { end };
                            let expected = (earliest..cap.min(bound))
                                .take_while(|position| position >> seq_bits == earliest >> seq_bits)
                                .take(want as usize);
                            match result {
                                Ok(Claim { start, end }) => {
                                    taken += 1;
                                    assert!((start..end).eq(expected));
                                }
                                Err(refusal) => {
                                    assert_eq!(expected.count(), 0, "refused though there was one");
                                    match refusal {
                                        Refusal::TimeExhausted => assert!(earliest >= end),
                                        Refusal::AwaitingLease => assert!(earliest >= bound),
                                        Refusal::SequenceUsedUp { until } => {
                                            assert!(until > now);
                                            // A retry is useful then, and not before.
                                            let then =
                                                |now| advance(next, now, want, &rules, NO_BOUND);
                                            assert!(then(until).is_ok());
                                            assert!(then(until - 1).is_err());
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
        assert!(taken > 100_000, "only {taken} claims succeeded");
    }
}

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The call interrupts another one of its thread, in a signal handler.
    Reentered,
    /// One thread alone uses the populator, and the system no longer lets another one take it away.
    NoBarrier,
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
mod tests;

//! Feistel network over HMAC-SHA256.

use std::sync::Arc;

use super::ShuffleKey;

const ROUNDS: u8 = 10;

/// Halves of up to so many bits have a table of all values of the round function, at most 1.3 MB: a number
/// then costs a twentieth.
const TABLE_BITS: u32 = 16;

/// The permutation of 0 to `size` − 1.
#[derive(Clone)]
pub(super) struct Feistel {
    key: ShuffleKey,
    size: u64,
    /// Bits of a half.
    bits: u32,
    /// The round function of each round and half; empty if they are too many.
    table: Arc<[u16]>,
}

impl Feistel {
    pub(super) fn new(key: ShuffleKey, size: u64) -> Self {
        let bits = (64 - (size - 1).leading_zeros()).div_ceil(2);
        let mut feistel = Self { key, size, bits, table: Arc::default() };
        if bits <= TABLE_BITS {
            let halves = |round| (0..1u64 << bits).map(move |half| (round, half));
            let value = |(round, half)| u16::try_from(feistel.compute(round, half)).ok();
            // A value has as many bits as a half: none is left out.
            feistel.table = (0..ROUNDS).flat_map(halves).filter_map(value).collect();
        }
        feistel
    }

    pub(super) fn shuffle(&self, number: u64) -> u64 {
        self.walk(number, |this, number| {
            let (mut left, mut right) = this.halves(number);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ this.round(round, right));
            }
            left << this.bits | right
        })
    }

    pub(super) fn restore(&self, shuffled: u64) -> u64 {
        self.walk(shuffled, |this, number| {
            let (mut left, mut right) = this.halves(number);
            for round in (0..ROUNDS).rev() {
                (left, right) = (right ^ this.round(round, left), left);
            }
            left << this.bits | right
        })
    }

    /// Permutes until the number is one of ours again: its cycle leads back to it at the latest.
    fn walk(&self, mut number: u64, permute: impl Fn(&Self, u64) -> u64) -> u64 {
        loop {
            number = permute(self, number);
            if number < self.size {
                return number;
            }
        }
    }

    const fn halves(&self, number: u64) -> (u64, u64) {
        (number >> self.bits, number & self.mask())
    }

    const fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    #[inline]
    fn round(&self, round: u8, half: u64) -> u64 {
        let place = usize::try_from(u64::from(round) << self.bits | half);
        match place.ok().and_then(|place| self.table.get(place)) {
            Some(value) => (*value).into(),
            None => self.compute(round, half),
        }
    }

    fn compute(&self, round: u8, half: u64) -> u64 {
        let mut message = [0; 10];
        (message[0], message[1]) = (round, self.bits.to_le_bytes()[0]);
        message[2..].copy_from_slice(&half.to_be_bytes());
        self.key.hmac(&message) & self.mask()
    }
}

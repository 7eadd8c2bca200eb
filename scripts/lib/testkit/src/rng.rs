//! Seeded random numbers: SplitMix64 (Steele, Lea, Flood 2014).

use std::ops::RangeInclusive;

/// The random number generator of a test: the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed ^ 0x5EED_0F7E_57A1_D5EE);
        rng.bits();
        rng
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `sides` - 1.
    ///
    /// # Panics
    /// If `sides` is 0.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.bits() % sides
    }

    /// An index into a sequence of this length.
    ///
    /// # Panics
    /// If the length is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("smaller than a length")
    }

    /// A number in this range.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// True in this percentage of cases.
    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }

    /// One of these, all equally likely.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// One of these, with a probability by weight.
    pub fn weighed<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let mut at = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, what) in from {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return *what,
            }
        }
        unreachable!("the weights were summed up")
    }

    /// A length of time up to `max`; each order of magnitude is equally likely.
    pub fn span(&mut self, max: u64) -> u64 {
        let bits = self.below(u64::from(max.max(1).ilog2()) + 1);
        self.within(0..=max.min((2 << bits) - 1))
    }
}

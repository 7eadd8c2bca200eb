//! Tags of which a database has every second number, or every third. So several databases can hand out
//! the numbers of one tag without knowing of each other.

use std::ops::Range;

/// The numbers `x` with `x % delta == remainder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stride {
    /// Distance between neighbouring numbers: at least 1.
    pub delta: u64,
    /// Below `delta`.
    pub remainder: u64,
}

impl Stride {
    /// Every number.
    pub const ONE: Self = Self {
        delta: 1,
        remainder: 0,
    };

    /// True if such numbers exist.
    pub const fn is_valid(self) -> bool {
        self.remainder < self.delta
    }

    /// The first of them at or above `from`, which has at most 63 bits.
    ///
    /// ```
    /// use vesta_numbers::segment::Stride;
    ///
    /// let stride = Stride { delta: 3, remainder: 1 };
    /// assert_eq!([0, 1, 2, 4, 5].map(|from| stride.align(from)), [1, 1, 4, 4, 7]);
    /// ```
    pub const fn align(self, from: u64) -> u64 {
        let Self { delta, remainder } = self;
        from + (delta + remainder - from % delta) % delta
    }

    /// Those within a range: every [`delta`](Self::delta)-th from the start of the result. Empty if
    /// there are none.
    pub fn within(self, numbers: Range<u64>) -> Range<u64> {
        self.align(numbers.start).min(numbers.end)..numbers.end
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The numbers of a range, enumerated by hand.
    fn listed(range: Range<u64>, stride: Stride) -> Vec<u64> {
        range
            .filter(|number| number % stride.delta == stride.remainder)
            .collect()
    }

    #[test]
    fn every_small_range_has_the_numbers_of_every_stride() {
        for (start, end) in (0..30).flat_map(|start| (start..45).map(move |end| (start, end))) {
            for delta in 1..=7 {
                for remainder in 0..delta {
                    let stride = Stride { delta, remainder };
                    let within = stride.within(start..end);
                    assert!(within.start <= end);
                    let step = usize::try_from(delta).unwrap();
                    let numbers: Vec<_> = within.clone().step_by(step).collect();
                    assert_eq!(
                        numbers,
                        listed(start..end, stride),
                        "{stride:?} {start}..{end}"
                    );
                }
            }
        }
    }

    /// `(current, max]` of Tinyid, with its delta and remainder: the first two, the last, and the count.
    #[test]
    fn known_ranges_of_tinyid() {
        for (current, max, [delta, remainder], expected) in [
            (1, 100_001, [1, 0], Some((2, 3, 100_001, 100_000))),
            (1, 100_001, [2, 0], Some((2, 4, 100_000, 50_000))),
            (1000, 2000, [3, 1], Some((1003, 1006, 1999, 333))),
            (5, 5, [1, 0], None),
        ] {
            let stride = Stride { delta, remainder };
            let within = stride.within(current + 1..max + 1);
            let step = usize::try_from(delta).unwrap();
            let mut numbers = within.clone().step_by(step);
            let found = numbers.next().zip(numbers.next()).zip(numbers.last());
            let count = (within.end - within.start).div_ceil(delta);
            let found = found.map(|((first, second), last)| (first, second, last, count));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let stride = Stride {
            delta: 1 << 31,
            remainder: (1 << 31) - 1,
        };
        let max = i64::MAX.unsigned_abs();
        assert_eq!(stride.align(max), max);
        assert_eq!(stride.within(max - 5..max), max..max);
        assert!(
            !Stride {
                delta: 0,
                remainder: 0
            }
            .is_valid()
        );
        assert!(
            !Stride {
                delta: 3,
                remainder: 3
            }
            .is_valid()
        );
    }
}

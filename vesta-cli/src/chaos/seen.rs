//! The IDs so far, and the dice. Pure.

use std::collections::BTreeMap;

use vesta_intf::UnixMillis;

use super::MACHINE;

/// The process that an ID came from, and the second in which it was received.
pub(super) type Origin = (u32, UnixMillis);

/// All IDs so far.
#[derive(Default)]
pub(super) struct Seen {
    /// Ranges of consecutive IDs, by their first: the last ID and the origin. Here the machine ID is the
    /// most significant part, so the IDs of one process fall into few ranges, however many they are.
    ranges: BTreeMap<u64, (u64, Origin)>,
    pub(super) ids: u64,
    pub(super) repeated: u64,
    /// The first repeated ID.
    pub(super) twice: Option<(u64, [Origin; 2])>,
}

impl Seen {
    pub(super) fn add(&mut self, mut ids: Vec<u64>, origin: Origin) {
        ids.iter_mut().for_each(|id| *id = id.rotate_right(MACHINE));
        ids.sort_unstable();
        self.ids += ids.len() as u64;
        for run in ids.chunk_by(|one, next| next - one == 1) {
            let (first, last) = (run[0], run[run.len() - 1]);
            // Of ranges that do not overlap, only this one can reach into the run.
            match self.ranges.range_mut(..=last).next_back() {
                Some((start, (end, before))) if *end >= first => {
                    let again = first.max(*start);
                    self.repeated += last.min(*end) - again + 1;
                    self.twice
                        .get_or_insert((again.rotate_left(MACHINE), [*before, origin]));
                }
                Some((_, (end, before))) if first - *end == 1 && *before == origin => *end = last,
                _ => _ = self.ranges.insert(first, (last, origin)),
            }
        }
    }
}

/// Pseudo-random numbers from a seed (SplitMix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn origin(process: u32) -> Origin {
        (process, UnixMillis(0))
    }

    #[test]
    fn a_repeated_id_is_found_wherever_the_first_is() {
        let (mut dice, machines) = (Dice(1), 1 << MACHINE);
        for planted in [0, 1, 999, 1000, 12_345, 19_999] {
            let mut seen = Seen::default();
            // Two machine IDs: batches of each in any order, and scattered single IDs.
            for start in (0..20_000)
                .step_by(2000)
                .chain((1000..20_000).step_by(2000))
            {
                for machine in [3, 4] {
                    let ids = (start..start + 1000)
                        .rev()
                        .map(|at| at * machines + machine);
                    seen.add(ids.collect(), origin(machine as u32));
                }
            }
            assert_eq!((seen.ids, seen.repeated, &seen.twice), (40_000, 0, &None));
            assert!(seen.ranges.len() <= 40, "{}", seen.ranges.len());
            let mut ids: Vec<_> = (0..999).map(|_| (1 << 40) + dice.below(1 << 60)).collect();
            seen.add(ids.clone(), origin(5));
            seen.add(vec![], origin(5));
            assert_eq!(seen.repeated, 0);
            ids.iter_mut().for_each(|id| *id += 1 << 61);
            ids.push(planted * machines + 4);
            seen.add(ids, origin(6));
            let twice = (planted * machines + 4, [origin(4), origin(6)]);
            assert_eq!((seen.repeated, seen.twice), (1, Some(twice)));
        }
        let mut seen = Seen::default();
        seen.add(vec![7, 8, 7], origin(1));
        assert_eq!((seen.repeated, seen.twice), (1, Some((7, [origin(1); 2]))));
    }

    #[test]
    fn every_repeated_id_counts() {
        let mut seen = Seen::default();
        let ids = |from: u64, to: u64| (from..to).map(|at| at << 10).collect();
        seen.add(ids(0, 1000), origin(1));
        seen.add(ids(900, 1900), origin(2));
        assert_eq!((seen.ids, seen.repeated), (2000, 100));
    }

    #[test]
    fn the_same_seed_draws_the_same_numbers() {
        let throw = |seed| {
            let mut dice = Dice(seed);
            [(); 5].map(|()| dice.below(100))
        };
        assert_eq!(throw(7), throw(7));
        assert_ne!(throw(7), throw(8));
    }
}

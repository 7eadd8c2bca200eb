//! The machine IDs that a service may claim, and their order.

use std::ops::RangeInclusive;

use super::Timing;

/// The order in which the free machine IDs of a pool are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClaimOrder {
    /// The one this host had last; then one that was never used, then one that was given back, then
    /// one whose owner expired. A host keeps its number, and a number that was just used
    /// elsewhere comes last.
    #[default]
    Stable,
    /// The lowest free number. Numbers stay small and are used again soon.
    Lowest,
}

/// The machine IDs in question.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Any free one of these.
    Any(RangeInclusive<u64>),
    /// This one. `alone` if the store proves that nobody else can hold it.
    Only { machine: u64, alone: bool },
}

impl Choice {
    /// The durations for this choice in a store of these: whoever names an ID wants it back soon
    /// after a crash.
    pub(crate) fn timing(&self, timing: Timing) -> Timing {
        match self {
            Choice::Only { .. } if timing.window > Timing::ONE_HOST.window => Timing::ONE_HOST,
            _ => timing,
        }
    }

    /// All machine IDs in question.
    pub(crate) fn range(&self) -> RangeInclusive<u64> {
        match self {
            Choice::Any(range) => range.clone(),
            Choice::Only { machine, .. } => *machine..=*machine,
        }
    }
}

//! Machine IDs that a service may claim, and the order in which they are tried.

use std::ops::RangeInclusive;

use super::Timing;

/// Order in which the free machine IDs of a pool are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClaimOrder {
    /// The machine ID that this host held last; then unused ones, then released ones, then those of
    /// expired owners. So a host keeps its machine ID, and one that was just in use elsewhere comes
    /// last.
    #[default]
    Stable,
    /// The lowest free machine ID. Machine IDs stay small and are soon used again.
    Lowest,
}

/// Machine IDs that may be claimed.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Any free one of these.
    Any(RangeInclusive<u64>),
    /// Only this one. `alone` if the store proves that no other process can hold it.
    Only { machine: u64, alone: bool },
}

impl Choice {
    /// Durations for this choice, given the store's own. A process that names a machine ID wants it
    /// back soon after a crash, so its durations are short.
    pub(crate) fn timing(&self, timing: Timing) -> Timing {
        match self {
            Choice::Only { .. } if timing.window > Timing::ONE_HOST.window => Timing::ONE_HOST,
            _ => timing,
        }
    }

    /// Range of these machine IDs.
    pub(crate) fn range(&self) -> RangeInclusive<u64> {
        match self {
            Choice::Any(range) => range.clone(),
            Choice::Only { machine, .. } => *machine..=*machine,
        }
    }
}

//! The position on the line, stored and guarded. What may be taken is decided by
//! [`sequence::advance`](crate::sequence::advance) alone; a populator only makes it atomic.

mod atomic;
mod cursor;
mod lock;
#[cfg(all(test, loom))]
mod races;
mod sync;

use std::fmt;
use std::str::FromStr;

use cursor::Cursor;

pub use atomic::AtomicIdPopulator;
pub use lock::LockIdPopulator;
pub use sync::SyncIdPopulator;

use crate::sequence::{Claim, Refusal, Rules};

/// Stores the first position not yet issued. The three implementations differ in cost only and pass
/// one test suite.
pub trait IdPopulator: Send + Sync + fmt::Debug {
    /// Takes up to `want` positions, atomically, without waiting for anything but another claim.
    ///
    /// # Errors
    /// A [`Refusal`]; then the position has not moved.
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal>;

    /// Ends the line for good and returns the first position that was never issued. From then on
    /// every claim is refused. Sealing again returns the same position.
    fn seal(&self) -> u64;

    /// The first position not yet issued.
    fn position(&self) -> u64;
}

/// The populators, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum PopulatorKind {
    /// [`LockIdPopulator`]: the default, as in the original.
    #[default]
    Lock,
    /// [`SyncIdPopulator`].
    Sync,
    /// [`AtomicIdPopulator`]: the fastest.
    Atomic,
}

impl PopulatorKind {
    /// Every populator there is.
    pub const ALL: [PopulatorKind; 3] = [Self::Lock, Self::Sync, Self::Atomic];

    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            PopulatorKind::Lock => "lock",
            PopulatorKind::Sync => "sync",
            PopulatorKind::Atomic => "atomic",
        }
    }
}

impl fmt::Display for PopulatorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PopulatorKind {
    type Err = vesta_intf::IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            vesta_intf::IdError::invalid(
                "populator",
                format!("`{name}` is not one of lock, sync, atomic"),
            )
        })
    }
}

/// A populator chosen at run time. An enum and not a box: the call can then be inlined.
#[derive(Debug)]
pub(crate) enum AnyPopulator {
    Lock(LockIdPopulator),
    Sync(SyncIdPopulator),
    Atomic(AtomicIdPopulator),
}

impl AnyPopulator {
    pub(crate) fn new(kind: PopulatorKind, position: u64) -> Self {
        match kind {
            PopulatorKind::Lock => Self::Lock(LockIdPopulator::new(position)),
            PopulatorKind::Sync => Self::Sync(SyncIdPopulator::new(position)),
            PopulatorKind::Atomic => Self::Atomic(AtomicIdPopulator::new(position)),
        }
    }

    fn as_dyn(&self) -> &dyn IdPopulator {
        match self {
            Self::Lock(populator) => populator,
            Self::Sync(populator) => populator,
            Self::Atomic(populator) => populator,
        }
    }
}

impl IdPopulator for AnyPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        match self {
            Self::Lock(populator) => populator.claim(now_tick, want, rules, limit),
            Self::Sync(populator) => populator.claim(now_tick, want, rules, limit),
            Self::Atomic(populator) => populator.claim(now_tick, want, rules, limit),
        }
    }

    fn seal(&self) -> u64 {
        self.as_dyn().seal()
    }

    fn position(&self) -> u64 {
        self.as_dyn().position()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_is_chosen_by_its_name_and_goes_by_the_same_rule() {
        let rules = Rules::new(3, 2, 0);
        for kind in PopulatorKind::ALL {
            assert_eq!(kind.to_string().parse::<PopulatorKind>().unwrap(), kind);
            let chosen = AnyPopulator::new(kind, 5);
            assert_eq!(chosen.position(), 5);
            assert_eq!(chosen.claim(2, 2, &rules, u64::MAX), Ok(Claim { start: 8, end: 10 }));
            assert_eq!((chosen.position(), chosen.seal()), (10, 10));
            assert_eq!(chosen.claim(3, 1, &rules, u64::MAX), Err(Refusal::Sealed));
        }
        let names: Vec<_> = PopulatorKind::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["lock", "sync", "atomic"]);
        assert!("mutex".parse::<PopulatorKind>().is_err());
    }
}

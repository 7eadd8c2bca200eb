//! The record of one machine ID in a store.

use vesta_intf::UnixMillis;

/// What a store keeps for one machine ID. Never deleted, never given a time to live.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// How many claims there were; grows by one with each.
    pub epoch: u64,
    /// The random number of the incarnation that holds the record; 0 if nobody does.
    pub owner: u128,
    /// The first position that no owner so far may have used.
    pub bound: u64,
    /// The random number of the request that wrote this state: how a writer whose reply was lost
    /// recognises its own success.
    pub attempt: u64,
    /// Whether the last owner gave the record back after sealing its line.
    pub released: bool,
    /// The host of the last owner, for people.
    pub host: String,
    /// The process ID of the last owner, for people.
    pub pid: u32,
    /// The writer's wall clock at this change, for people.
    pub info_time: UnixMillis,
}

/// What a record must still be for a compare-and-set to take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// [`Record::epoch`].
    pub epoch: u64,
    /// [`Record::owner`].
    pub owner: u128,
    /// [`Record::bound`].
    pub bound: u64,
}

impl Record {
    /// The [`owner`](Self::owner) of a machine ID that a process of another system uses. A pool never
    /// hands it out; who names it, or an operator who frees it, says that the other process is gone.
    pub const FOREIGN: u128 = u128::MAX;

    /// The record of a machine ID that was never claimed: an absent record means this one.
    pub fn unclaimed(floor: u64) -> Self {
        Self { bound: floor, ..Self::default() }
    }

    /// The precondition of a change of this very state.
    pub const fn expect(&self) -> Expect {
        Expect { epoch: self.epoch, owner: self.owner, bound: self.bound }
    }

    /// Whether the precondition holds for this state.
    pub fn meets(&self, expect: &Expect) -> bool {
        self.expect() == *expect
    }
}

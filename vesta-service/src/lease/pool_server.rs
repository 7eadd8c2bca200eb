//! Checks of a pool server: the areas that it opens to others, and the changes that an owner writes there. Pure.
//!
//! A pool server does not trust its members: a record that no owner would write is refused before it reaches the
//! store. The old value of each change is compared by the store, so old and new together show what the writer
//! did. Operators' commands, such as freeing a machine ID, are for the pool server's own host.

mod refusal;
mod seen;
#[cfg(test)]
mod strangers;

use std::ops::RangeInclusive;

use super::codec::{Entry, Marks};
use super::history::key as key_of_claim;
use super::kv::Put;
use super::leases::{
    BLOCK_OF, MARKS, NAMESPACE, block_of, block_text, machines_of, marked_by, number,
};
use super::record::{Namespace, Record, check_namespace};
pub use refusal::Refusal;
pub use seen::Seen;
use seen::{Positions, UNKNOWN_LAYOUT};

/// Entries of [`Place::Proof`]: as many members can prove at the same time that servers share a store.
pub const PROOFS: u64 = 256;

/// Contents of an area of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A block of the machine IDs of a namespace.
    Leases {
        /// The namespace.
        namespace: &'a str,
        /// Number of the block of 1,024 machine IDs.
        block: u64,
    },
    /// Past claims in a namespace.
    History {
        /// The namespace.
        namespace: &'a str,
    },
    /// Ranges of segment or serial tags, which belong to no namespace.
    Ranges,
    /// Definitions of serial tags.
    Definitions,
    /// Random values that members put by way of one server and read by way of another.
    Proof,
}

impl<'a> Place<'a> {
    /// Contents of the area with this name; `None` if Vesta has no such area.
    pub fn of(area: &'a str) -> Option<Self> {
        let (kind, rest) = area.split_once('/')?;
        let is_name = |name: &&str| !name.is_empty() && !name.contains('/');
        let place = match (kind, rest) {
            ("segment", "tags") | ("serial", "counters") => Self::Ranges,
            ("serial", "tags") => Self::Definitions,
            ("pool", "proof") => Self::Proof,
            ("lease", namespace) => Self::Leases {
                namespace,
                block: 0,
            },
            ("history", namespace) => Self::History { namespace },
            ("block", rest) => {
                let (namespace, block) = rest.rsplit_once('/')?;
                let block = number(block).filter(|block| *block > 0)?;
                Self::Leases { namespace, block }
            }
            _ => return None,
        };
        Some(place).filter(|place| place.namespace().as_ref().is_none_or(is_name))
    }

    /// True for tags, and for a namespace whose name a setting can give.
    pub fn can_be_named(&self) -> bool {
        self.namespace()
            .is_none_or(|name| check_namespace(name).is_ok())
    }

    /// The namespace; `None` for tags and proofs.
    pub const fn namespace(&self) -> Option<&'a str> {
        match self {
            Self::Leases { namespace, .. } | Self::History { namespace } => Some(namespace),
            Self::Ranges | Self::Definitions | Self::Proof => None,
        }
    }

    /// Checks a change of an entry here.
    ///
    /// # Errors
    /// The reason why no owner would make the change, or not yet.
    pub fn check(&self, put: &Put, seen: &Seen<'_>) -> Result<(), Refusal> {
        put.check_lengths()?;
        match self {
            Self::Leases { block, .. } => check_lease(*block, put, seen),
            Self::History { .. } => check_past(put, seen),
            Self::Ranges | Self::Definitions => Err(Refusal::of("vesta-numbers checks tags")),
            Self::Proof => check_proof(put),
        }
    }
}

/// Longest value and key that every store takes, in bytes.
const LONGEST_VALUE: usize = 16 << 10;
const LONGEST_KEY: usize = 1600;

impl Put {
    /// Checks that every store takes the entry.
    ///
    /// # Errors
    /// If its key or its value is too long.
    pub fn check_lengths(&self) -> Result<(), Refusal> {
        let is_long = self.new.len() > LONGEST_VALUE || self.key.len() > LONGEST_KEY;
        refuse(is_long.then_some("the entry is too long"))
    }
}

/// A proof is any 16 hexadecimal digits, so that the area has a greatest size.
fn check_proof(Put { key, new, .. }: &Put) -> Result<(), Refusal> {
    let is_slot = number(key).is_some_and(|slot| slot < PROOFS);
    let is_digits = new.len() == 16 && new.bytes().all(|it| it.is_ascii_hexdigit());
    match is_slot && is_digits {
        true => Ok(()),
        false => Err(Refusal::of("no version of Vesta writes such a proof")),
    }
}

fn check_lease(block: u64, put: &Put, seen: &Seen<'_>) -> Result<(), Refusal> {
    let Put { key, old, new, .. } = put;
    let old = old.as_deref();
    if key == NAMESPACE && block == 0 {
        return check_namespace_entry(old.map(decode).transpose()?.as_ref(), &decode(new)?, seen);
    }
    let positions = seen.positions()?;
    let uuid = seen.namespace.map_or(0, |namespace| namespace.uuid);
    if let Some(named) = key.strip_prefix(BLOCK_OF).and_then(number) {
        let exists = positions.has(*machines_of(named).start());
        let fits = exists && block == 0 && named > 0 && old.is_none() && *new == block_text(named);
        return refuse((!fits).then_some("it is not the name of a block"));
    }
    if let Some(bucket) = key.strip_prefix(MARKS).and_then(number) {
        let (old, new): (Option<Marks>, Marks) = (old.map(decode).transpose()?, decode(new)?);
        let machines = marked_by(bucket);
        let inside = block_of(*machines.start()) == block;
        let exist = new.births.keys().all(|machine| positions.has(*machine));
        let flaw = marks_flaw(old.as_ref(), &new, uuid, machines);
        let flaw = flaw.or((!inside).then_some(ELSEWHERE));
        return refuse(flaw.or((!exist).then_some(NO_MACHINE)));
    }
    let machine = number(key).ok_or(Refusal::of("no version of Vesta writes such an entry"))?;
    let inside = machines_of(block).contains(&machine);
    let (old, new): (Option<Record>, Record) = (old.map(decode).transpose()?, decode(new)?);
    let flaw = record_flaw(old.as_ref(), &new, uuid);
    let flaw = flaw.or((!inside).then_some(ELSEWHERE));
    refuse(flaw.or((!positions.has(machine)).then_some(NO_MACHINE)))?;
    let Some(old) = old else { return Ok(()) };
    check_owner(&old, &new, put, positions, seen)?;
    if new.bound > old.bound {
        seen.near("the bound lies too far ahead", positions, new.bound)?;
    }
    let window = new.standby.map_or(Default::default(), |it| it.window);
    seen.short("the window is too long", window)
}

/// A record belongs to its owner until its bound has passed. Changes that do not end its claim are always the owner's.
fn check_owner(
    old: &Record,
    new: &Record,
    put: &Put,
    positions: Positions,
    seen: &Seen<'_>,
) -> Result<(), Refusal> {
    let proves = put.secret.bytes().is_some() && put.secret.owner() == old.owner;
    if old.owner == 0 || proves {
        return Ok(());
    }
    if new.epoch == old.epoch {
        return Err(Refusal::of("another owner's claim does not change"));
    }
    seen.passed(positions, old.bound)
}

/// The history informs people; still, nothing but claims is written there.
fn check_past(put: &Put, seen: &Seen<'_>) -> Result<(), Refusal> {
    let claim: Record = decode(&put.new)?;
    let uuid = seen.namespace.map(|namespace| namespace.uuid);
    let machine = put
        .key
        .split_once('-')
        .and_then(|(machine, _)| number(machine));
    let fits = machine.is_some_and(|machine| key_of_claim(machine, &claim) == put.key);
    let flaw = (uuid != Some(claim.namespace)).then_some(FOREIGN);
    refuse(flaw.or((!fits).then_some("no version of Vesta writes such an entry")))
}

const ELSEWHERE: &str = "it belongs to another area";
const FOREIGN: &str = "it belongs to another namespace";
const NO_MACHINE: &str = "the layout has no such machine ID";

fn decode<T: Entry>(text: &str) -> Result<T, Refusal> {
    T::decode(text).map_err(Refusal::undecoded)
}

fn refuse(flaw: Option<&'static str>) -> Result<(), Refusal> {
    flaw.map_or(Ok(()), |flaw| Err(Refusal::of(flaw)))
}

/// Facts of a namespace only grow, and none reaches further than its members can have reserved: an operator clears a
/// doubt on the pool server's host.
fn check_namespace_entry(
    old: Option<&Namespace>,
    new: &Namespace,
    seen: &Seen<'_>,
) -> Result<(), Refusal> {
    refuse(old.and_then(|old| namespace_flaw(old, new)))?;
    let positions = Positions::of(&new.fingerprint).ok_or(Refusal::of(UNKNOWN_LAYOUT))?;
    if new.floor > old.map_or(0, |old| old.floor) {
        seen.near("the floor lies too far ahead", positions, new.floor)?;
    }
    seen.short("the window is too long", new.window)?;
    let Some(doubt) = &new.doubt else {
        return Ok(());
    };
    if old.is_none_or(|old| old.doubt.is_none()) {
        seen.near_moment("the reach of the doubt lies too far ahead", doubt.reach)?;
    }
    seen.short("the window is too long", doubt.window)
}

fn namespace_flaw(old: &Namespace, new: &Namespace) -> Option<&'static str> {
    let doubt = |of: &Namespace| {
        of.doubt
            .clone()
            .map(|doubt| (doubt.since, doubt.reach, doubt.why))
    };
    let window = |of: &Namespace| of.doubt.as_ref().map(|doubt| doubt.window);
    if new.uuid != old.uuid {
        Some(FOREIGN)
    } else if new.fingerprint != old.fingerprint {
        Some("a namespace keeps its layout")
    } else if old.doubt.is_some() && doubt(old) != doubt(new) {
        Some("a doubt is cleared or changed")
    } else if new.floor < old.floor || new.window < old.window || window(new) < window(old) {
        Some("the floor or the longest window falls")
    } else {
        None
    }
}

fn marks_flaw(
    old: Option<&Marks>,
    new: &Marks,
    uuid: u128,
    machines: RangeInclusive<u64>,
) -> Option<&'static str> {
    let keeps = |old: &Marks| {
        let kept = |(machine, birth)| new.births.get(machine) == Some(birth);
        old.namespace != uuid || old.births.iter().all(kept)
    };
    if new.namespace != uuid {
        Some(FOREIGN)
    } else if !new.births.keys().all(|machine| machines.contains(machine)) {
        Some("it marks machine IDs of another entry")
    } else if !old.is_none_or(keeps) {
        Some("a mark is removed or changed")
    } else {
        None
    }
}

/// A record is created unclaimed; after that it is claimed, extended and released (SAFETY.md, rules 1 to 5).
fn record_flaw(old: Option<&Record>, new: &Record, uuid: u128) -> Option<&'static str> {
    if new.namespace != uuid {
        return Some(FOREIGN);
    }
    let Some(old) = old else {
        let unclaimed = (new.epoch, new.owner, new.bound) == (0, 0, 0);
        return (!unclaimed).then_some("a new record is not yet claimed");
    };
    if new.birth != old.birth || [old.owner, new.owner].contains(&Record::FOREIGN) {
        return Some(
            "only an operator replaces, reserves or frees a record, on the pool server's host",
        );
    }
    if old.epoch.checked_add(1) == Some(new.epoch) {
        let claims = new.owner != 0 && !new.released && new.from >= old.bound;
        return (!claims || new.bound < new.from).then_some("a claim begins at or above the bound");
    }
    if new.epoch != old.epoch {
        return Some("the number of the claim falls or leaps");
    }
    if old.owner == 0 || new.from != old.from {
        return Some("without a claim, a record does not change");
    }
    if new.owner == 0 && new.released {
        let fits = (old.from..=old.bound).contains(&new.bound);
        return (!fits).then_some("a release ends inside the claim");
    }
    if new.owner != old.owner || new.released {
        return Some("another owner's claim does not change");
    }
    (new.bound < old.bound).then_some("the bound falls")
}

#[cfg(test)]
mod tests;

//! Checks of a registry: the areas that it opens to others, and the changes that an owner writes there. Pure.
//!
//! A registry does not trust its members: a record that no owner would write is refused before it reaches the
//! store. The old value of each change is compared by the store, so old and new together show what the writer
//! did. Operators' commands, such as freeing a machine ID, are for the registry's own host.

use std::ops::RangeInclusive;

use super::codec::{Entry as _, Fields, Marks, SCHEMA};
use super::kv::{KvStore, Put};
use super::leases::{
    BLOCK_OF, MARKS, NAMESPACE, block_of, block_text, machines_of, marked_by, number,
};
use super::record::{Namespace, Record};
use crate::error::StoreError;

/// Area and key of a store's identity.
const IDENTITY: (&str, &str) = ("registry", "identity");

/// Random number of the data in a store, drawn at the first call. Two servers that answer with different ones do
/// not share a store.
///
/// # Errors
/// [`StoreError`] if the store does not answer, or the entry is damaged.
pub fn identity(store: &dyn KvStore) -> Result<u64, StoreError> {
    let (area, key) = IDENTITY;
    let text = |identity: u64| format!(r#"{{"schema":{SCHEMA},"identity":"{identity:016x}"}}"#);
    let found = match store.get(area, key)? {
        None => {
            store.put_if(area, key, None, &text(crate::random::u63()))?;
            store.get(area, key)?
        }
        found => found,
    };
    let found = found.unwrap_or_default();
    let identity = Fields::parse(&found).and_then(|fields| fields.hex_64("identity"));
    let damaged = |why| StoreError::permanent(format!("entry `{key}` of {area} is damaged: {why}"));
    identity.map_err(damaged)
}

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
    /// Segment or serial tags, which belong to no namespace.
    Tags,
}

impl<'a> Place<'a> {
    /// Contents of the area with this name; `None` if Vesta has no such area.
    pub fn of(area: &'a str) -> Option<Self> {
        let (kind, rest) = area.split_once('/')?;
        let is_name = |name: &&str| !name.is_empty() && !name.contains('/');
        let place = match (kind, rest) {
            ("segment", "tags") | ("serial", "tags" | "counters") => Self::Tags,
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

    /// The namespace; `None` for tags.
    pub const fn namespace(&self) -> Option<&'a str> {
        match self {
            Self::Leases { namespace, .. } | Self::History { namespace } => Some(namespace),
            Self::Tags => None,
        }
    }

    /// Checks a change of an entry here. `uuid` is that of the namespace as stored, unless there is none yet.
    ///
    /// # Errors
    /// The reason why no owner would make the change.
    pub fn check(&self, put: &Put, uuid: Option<u128>) -> Result<(), String> {
        match self {
            Self::Leases { block, .. } => check_lease(*block, put, uuid),
            Self::History { .. } => Record::decode(&put.new).map(drop),
            Self::Tags => Ok(()), // their ranges may also be given back
        }
        .map_err(|why| format!("entry `{}`: {why}", put.key))
    }
}

fn check_lease(block: u64, put: &Put, uuid: Option<u128>) -> Result<(), String> {
    let Put { key, old, new } = put;
    let old = old.as_deref();
    if key == NAMESPACE && block == 0 {
        let old = old.map(Namespace::decode).transpose()?;
        return refuse(namespace_flaw(old.as_ref(), &Namespace::decode(new)?));
    }
    let uuid = uuid.ok_or("its namespace does not exist")?;
    if let Some(named) = key.strip_prefix(BLOCK_OF).and_then(number) {
        let fits = block == 0 && named > 0 && old.is_none() && *new == block_text(named);
        return refuse((!fits).then_some("it is not the name of a block"));
    }
    if let Some(bucket) = key.strip_prefix(MARKS).and_then(number) {
        let old = old.map(Marks::decode).transpose()?;
        let machines = marked_by(bucket);
        let inside = block_of(*machines.start()) == block;
        let flaw = marks_flaw(old.as_ref(), &Marks::decode(new)?, uuid, machines);
        return refuse(flaw.or((!inside).then_some(ELSEWHERE)));
    }
    let machine = number(key).ok_or("no version of Vesta writes such an entry")?;
    let inside = machines_of(block).contains(&machine);
    let old = old.map(Record::decode).transpose()?;
    let flaw = record_flaw(old.as_ref(), &Record::decode(new)?, uuid);
    refuse(flaw.or((!inside).then_some(ELSEWHERE)))
}

const ELSEWHERE: &str = "it belongs to another area";
const FOREIGN: &str = "it belongs to another namespace";

fn refuse(flaw: Option<&str>) -> Result<(), String> {
    flaw.map_or(Ok(()), |flaw| Err(flaw.into()))
}

/// Facts of a namespace only grow: an operator clears a doubt on the registry's host.
fn namespace_flaw(old: Option<&Namespace>, new: &Namespace) -> Option<&'static str> {
    let old = old?;
    let doubt = |of: &Namespace| {
        of.doubt
            .clone()
            .map(|doubt| (doubt.since, doubt.reach, doubt.why))
    };
    if new.uuid != old.uuid {
        Some(FOREIGN)
    } else if new.fingerprint != old.fingerprint {
        Some("a namespace keeps its layout")
    } else if new.floor < old.floor || new.window < old.window {
        Some("the floor or the longest window falls")
    } else if old.doubt.is_some() && doubt(old) != doubt(new) {
        Some("a doubt is cleared or changed")
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
    if new.birth != old.birth || new.owner == Record::FOREIGN {
        return Some("only an operator replaces or reserves a record, on the registry's host");
    }
    if old.epoch.checked_add(1) == Some(new.epoch) {
        let claims = new.owner != 0 && !new.released && new.from >= old.bound;
        return (!claims || new.bound < new.from).then_some("a claim begins at or above the bound");
    }
    if new.epoch != old.epoch {
        return Some("the epoch falls or leaps");
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
mod tests {
    use super::*;

    const UUID: u128 = 9;

    fn held() -> Record {
        Record {
            namespace: UUID,
            birth: 3,
            epoch: 4,
            owner: 5,
            from: 100,
            bound: 200,
            ..Record::default()
        }
    }

    fn check(area: &str, key: &str, old: Option<&str>, new: &str) -> Result<(), String> {
        let put = Put {
            key: key.into(),
            old: old.map(str::to_owned),
            new: new.into(),
        };
        Place::of(area).expect("an area").check(&put, Some(UUID))
    }

    fn change(change: impl Fn(&mut Record)) -> Result<(), String> {
        let mut new = held();
        change(&mut new);
        check("lease/x", "7", Some(&held().encode()), &new.encode())
    }

    #[test]
    fn areas_of_vesta_have_a_place() {
        let leases = |namespace, block| Some(Place::Leases { namespace, block });
        for (area, place) in [
            ("lease/orders", leases("orders", 0)),
            ("block/orders/3", leases("orders", 3)),
            (
                "history/orders",
                Some(Place::History {
                    namespace: "orders",
                }),
            ),
            ("segment/tags", Some(Place::Tags)),
            ("serial/counters", Some(Place::Tags)),
            ("block/orders/0", None),
            ("block/orders/03", None),
            ("block/orders", None),
            ("lease/", None),
            ("lease/a/b", None),
            ("block/a/b/3", None),
            ("registry", None),
            ("segment/other", None),
        ] {
            assert_eq!(Place::of(area), place, "{area}");
        }
    }

    #[test]
    fn an_owner_claims_extends_and_releases() {
        for allowed in [
            |it: &mut Record| it.bound = 300,
            |_: &mut Record| (),
            |it: &mut Record| (it.owner, it.released, it.bound) = (0, true, 150),
            |it: &mut Record| (it.owner, it.released) = (0, true),
            |it: &mut Record| (it.epoch, it.owner, it.from, it.bound) = (5, 6, 200, 260),
            |it: &mut Record| (it.epoch, it.owner, it.from, it.bound) = (5, 6, 250, 250),
        ] {
            assert_eq!(change(allowed), Ok(()));
        }
        let new = Record {
            namespace: UUID,
            birth: 8,
            ..Record::default()
        };
        assert_eq!(check("lease/x", "7", None, &new.encode()), Ok(()));
        assert_eq!(check("block/x/1", "1024", None, &new.encode()), Ok(()));
    }

    #[test]
    fn a_record_that_no_owner_would_write_is_refused() {
        type Change = fn(&mut Record);
        let refused: [(Change, &str); 13] = [
            (|it| it.bound = 199, "the bound falls"),
            (|it| it.epoch = 3, "the epoch falls"),
            (|it| it.epoch = 6, "the epoch falls or leaps"),
            (|it| it.namespace = 1, "another namespace"),
            (|it| it.birth = 1, "only an operator"),
            (|it| it.owner = Record::FOREIGN, "only an operator"),
            (|it| it.owner = 6, "another owner's claim"),
            (|it| it.from = 99, "does not change"),
            (|it| it.released = true, "another owner's claim"),
            (
                |it| (it.owner, it.released, it.bound) = (0, true, 99),
                "inside the claim",
            ),
            (
                |it| (it.owner, it.released, it.bound) = (0, true, 201),
                "inside the claim",
            ),
            (
                |it| (it.epoch, it.owner, it.from, it.bound) = (5, 6, 199, 260),
                "at or above the bound",
            ),
            (
                |it| (it.epoch, it.owner, it.from, it.bound) = (5, 0, 200, 260),
                "at or above the bound",
            ),
        ];
        for (changed, why) in refused {
            let refusal = change(changed).expect_err(why);
            assert!(refusal.contains(why), "{refusal}");
        }
        let released = Record {
            owner: 0,
            released: true,
            ..held()
        };
        let old = released.encode();
        let raised = Record {
            bound: 300,
            ..released
        };
        for (area, key, old, new, why) in [
            ("lease/x", "7", Some(&old), &raised, "without a claim"),
            ("lease/x", "7", None, &held(), "not yet claimed"),
            (
                "lease/x",
                "1024",
                None,
                &Record {
                    namespace: UUID,
                    ..Record::default()
                },
                "another area",
            ),
            ("lease/x", "07", None, &held(), "no version of Vesta"),
            ("lease/x", "else", None, &held(), "no version of Vesta"),
        ] {
            let refusal = check(area, key, old.map(String::as_str), &new.encode()).expect_err(why);
            assert!(refusal.contains(why), "{refusal}");
        }
        let text = held().encode();
        let refusal = check("lease/x", "7", Some(&text), &text.replace(':', ": "));
        assert!(
            refusal
                .expect_err("not canonical")
                .contains("should be written as")
        );
    }

    #[test]
    fn facts_of_a_namespace_only_grow() {
        use crate::lease::Doubt;
        use std::time::Duration;
        use vesta_intf::UnixMillis;

        let doubt = |why: &str| {
            Some(Doubt {
                since: UnixMillis(1),
                reach: UnixMillis(2),
                window: Duration::ZERO,
                why: why.into(),
            })
        };
        let old = Namespace {
            uuid: UUID,
            fingerprint: "f".into(),
            floor: 10,
            window: Duration::from_secs(1),
            doubt: doubt("a replica"),
        };
        let change = |change: &dyn Fn(&mut Namespace)| {
            let mut new = old.clone();
            change(&mut new);
            check("lease/x", NAMESPACE, Some(&old.encode()), &new.encode())
        };
        assert_eq!(change(&|it| it.floor = 11), Ok(()));
        assert_eq!(change(&|it| it.window *= 2), Ok(()));
        for (why, refused) in [
            ("another namespace", change(&|it| it.uuid = 1)),
            (
                "keeps its layout",
                change(&|it| it.fingerprint = "g".into()),
            ),
            ("falls", change(&|it| it.floor = 9)),
            ("falls", change(&|it| it.window = Duration::ZERO)),
            ("cleared or changed", change(&|it| it.doubt = None)),
            (
                "cleared or changed",
                change(&|it| it.doubt = doubt("other")),
            ),
        ] {
            assert!(
                refused.as_ref().is_err_and(|it| it.contains(why)),
                "{refused:?}"
            );
        }
        assert_eq!(check("lease/x", NAMESPACE, None, &old.encode()), Ok(()));
        let block = check("block/x/1", NAMESPACE, None, &old.encode());
        assert!(block.is_err(), "a namespace lies in its first block");
    }

    #[test]
    fn a_mark_is_added_but_never_removed() {
        let marks = |namespace, births: &[(u64, u64)]| Marks {
            namespace,
            births: births.iter().copied().collect(),
        };
        let old = marks(UUID, &[(1, 7)]).encode();
        let put = |key, old: Option<&str>, new: &Marks| check("lease/x", key, old, &new.encode());
        let more = marks(UUID, &[(1, 7), (63, 8)]);
        assert_eq!(put("births-0", Some(&old), &more), Ok(()));
        let of_before = marks(1, &[(2, 2)]).encode();
        assert_eq!(put("births-0", Some(&of_before), &more), Ok(()));
        for (key, new, why) in [
            ("births-0", marks(UUID, &[]), "removed or changed"),
            ("births-0", marks(UUID, &[(1, 8)]), "removed or changed"),
            ("births-0", marks(1, &[(1, 7)]), "another namespace"),
            ("births-0", marks(UUID, &[(1, 7), (64, 8)]), "another entry"),
            ("births-16", marks(UUID, &[(1024, 8)]), "another area"),
        ] {
            let old = (key == "births-0").then_some(&*old);
            let refusal = put(key, old, &new).expect_err(why);
            assert!(refusal.contains(why), "{refusal}");
        }
        let named = block_text(3);
        assert_eq!(check("lease/x", "block-3", None, &named), Ok(()));
        assert!(check("lease/x", "block-2", None, &named).is_err());
        assert!(check("block/x/1", "block-3", None, &named).is_err());
        assert!(check("lease/x", "block-0", None, &block_text(0)).is_err());
    }

    #[test]
    fn records_without_their_namespace_are_refused() {
        let put = Put {
            key: "7".into(),
            old: None,
            new: held().encode(),
        };
        let refusal = Place::of("lease/x").expect("an area").check(&put, None);
        assert!(refusal.expect_err("refused").contains("does not exist"));
    }
}

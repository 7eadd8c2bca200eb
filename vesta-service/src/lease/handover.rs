//! Changes of a machine ID's holder, for a store that shows them to another system. Pure.

use std::time::Duration;

use super::leases::number;
use super::{Entry as _, Put, Record};

/// Time from a claim to the release by which older machine IDs may go back to the other system. The clocks of
/// its processes may be behind by less than this.
const QUIET: Duration = Duration::from_secs(60);

/// Change of who holds a machine ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handover {
    /// A process of Vesta claims the machine ID.
    Claim(Claim),
    /// Its process releases it.
    Release(Release),
}

/// Claim of a machine ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The machine ID.
    pub machine: u64,
    new: Record,
}

/// Release of a machine ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The machine ID.
    pub machine: u64,
    old: Record,
    new: Record,
}

impl Handover {
    /// The change that a put makes; `None` if the holder stays, or if the entry is not a record.
    pub fn of(area: &str, put: &Put) -> Option<Self> {
        if !(area.starts_with("lease/") || area.starts_with("block/")) {
            return None;
        }
        let machine = number(&put.key)?;
        let new = Record::decode(&put.new).ok()?;
        let old = match &put.old {
            None => Record::default(),
            Some(old) => Record::decode(old).ok()?,
        };
        let is_ours = |record: &Record| ![0, Record::FOREIGN].contains(&record.owner);
        if is_ours(&new) && (new.epoch != old.epoch || !is_ours(&old)) {
            return Some(Self::Claim(Claim { machine, new }));
        }
        let is_release = new.owner == 0 && is_ours(&old);
        is_release.then_some(Self::Release(Release { machine, old, new }))
    }
}

impl Claim {
    /// The record that is written in place of the claim if a process of the other system holds the machine ID.
    pub fn reserved_for(&self, holder: &str) -> String {
        Record {
            owner: Record::FOREIGN,
            host: holder.into(),
            pid: 0,
            version: String::new(),
            standby: None,
            ..self.new.clone()
        }
        .encode()
    }
}

impl Release {
    /// True if another machine ID of the namespace, with this record, may go back to the other system: it is
    /// released, and the time is past all of its IDs. The releasing process shows that: it began above them, a
    /// good while ago.
    pub fn outlasted(&self, other: &str) -> bool {
        let held = self.new.info_time.since(self.old.claimed).unwrap_or(0);
        u128::from(held) >= QUIET.as_millis()
            && Record::decode(other).is_ok_and(|other| {
                other.namespace == self.old.namespace
                    && other.owner == 0
                    && other.bound <= self.old.from
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Secret;
    use vesta_intf::UnixMillis;

    const OURS: Record = Record {
        namespace: 1,
        birth: 2,
        epoch: 3,
        owner: 4,
        secret: Secret::new(0),
        from: 1_000,
        bound: 2_000,
        attempt: 5,
        released: false,
        host: String::new(),
        pid: 6,
        version: String::new(),
        claimed: UnixMillis(100_000),
        info_time: UnixMillis(160_000),
        standby: None,
    };

    fn released(of: &Record) -> Record {
        Record {
            owner: 0,
            released: true,
            ..of.clone()
        }
    }

    fn handover(key: &str, old: Option<&Record>, new: &Record) -> Option<Handover> {
        let put = Put {
            key: key.into(),
            old: old.map(Record::encode),
            new: new.encode(),
            secret: Secret::default(),
        };
        let found = Handover::of("lease/ids", &put);
        assert_eq!(Handover::of("block/ids/3", &put), found);
        assert_eq!(Handover::of("history/ids", &put), None);
        found
    }

    #[test]
    fn a_claim_and_a_release_change_the_holder_and_nothing_else_does() {
        let before = Record {
            epoch: 2,
            ..released(&OURS)
        };
        let renewed = Record {
            bound: 3_000,
            ..OURS
        };
        let foreign = Record {
            owner: Record::FOREIGN,
            ..before.clone()
        };
        let crashed = Record { epoch: 2, ..OURS };
        for old in [None, Some(&before), Some(&foreign), Some(&crashed)] {
            let Some(Handover::Claim(claim)) = handover("7", old, &OURS) else {
                panic!("a claim after {old:?}")
            };
            assert_eq!(claim.machine, 7);
        }
        let Some(Handover::Release(release)) = handover("7", Some(&OURS), &released(&OURS)) else {
            panic!("a release")
        };
        assert_eq!(release.machine, 7);
        for (old, new) in [
            (Some(&OURS), &renewed),
            (None, &before),
            (None, &foreign),
            (Some(&foreign), &before),
            (Some(&before), &foreign),
        ] {
            assert_eq!(handover("7", old, new), None, "{old:?} to {new:?}");
        }
        assert_eq!(handover("namespace", None, &OURS), None);
        assert_eq!(handover("07", None, &OURS), None);
    }

    #[test]
    fn a_refused_claim_becomes_a_reservation_that_no_pool_takes() {
        let Some(Handover::Claim(claim)) = handover("7", None, &OURS) else {
            panic!("a claim")
        };
        let reserved = Record::decode(&claim.reserved_for("10.0.0.5")).expect("a record");
        let expected = Record {
            owner: Record::FOREIGN,
            host: "10.0.0.5".into(),
            pid: 0,
            ..OURS
        };
        assert_eq!(reserved, expected);
    }

    #[test]
    fn a_released_machine_id_goes_back_once_a_later_claim_is_a_minute_old() {
        let release = |claimed| Release {
            machine: 7,
            old: Record {
                claimed: UnixMillis(claimed),
                ..OURS
            },
            new: released(&OURS),
        };
        let free = Record {
            bound: 1_000,
            ..released(&OURS)
        };
        let held = Record {
            bound: 1_000,
            ..OURS
        };
        let later = Record {
            bound: 1_001,
            ..released(&OURS)
        };
        let elsewhere = Record {
            namespace: 9,
            ..free.clone()
        };
        assert!(release(100_000).outlasted(&free.encode()));
        assert!(!release(100_001).outlasted(&free.encode()), "too soon");
        assert!(!release(160_001).outlasted(&free.encode()), "no time");
        for other in [held, later, elsewhere] {
            assert!(!release(100_000).outlasted(&other.encode()), "{other:?}");
        }
        assert!(!release(100_000).outlasted("{}"));
    }
}

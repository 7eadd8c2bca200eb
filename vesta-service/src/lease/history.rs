//! History of claims: which claim made an ID, whatever happened to its process.
//!
//! Before a claim replaces a record, the claimant archives the record here. So every claim is in the record
//! or in the history, and no crash leaves a gap. The history takes no part in safety: no claim reads it to
//! decide anything.
//!
//! A store never deletes, so the entries of a machine ID form a ring of 1,000: `17-9` holds the ninth claim
//! of machine ID 17, and later the 1,009th.

use std::collections::BTreeMap;

use super::kv::Put;
use super::state::Write;
use super::{Area, Entry as _, Leases, Record, Secret, StoreError};
use crate::error::ask_store;

/// Claims kept per machine ID; at one start a day, nearly three years of them.
const CLAIMS: u64 = 1000;
/// Maximum number of puts per request.
const AT_ONCE: usize = 128;

/// Origin of the ID with a given machine ID and position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The position belongs to this claim alone, given as its record last stood.
    Claim(Record),
    /// No process of Vesta: the machine ID was reserved for the host of this record, which ends at its bound or at the
    /// next claim. While [`Record::FOREIGN`] owns it, it has no end.
    Foreign(Record),
    /// None: the position is at or above the bound, up to which the last claim, given here, has reserved.
    NotReserved(Record),
    /// None: the position lies between two claims, or before the first. The claim given here is the next one
    /// above it.
    Skipped(Record),
    /// None: the machine ID was never claimed.
    NeverClaimed,
    /// Unknown: the position is older than the history of this machine ID, which begins with the claim given
    /// here.
    Forgotten(Record),
}

impl Origin {
    /// Origin of a position, given the claims of its machine ID in the order of their epochs.
    pub fn of(claims: &[Record], position: u64) -> Self {
        let Some(last) = claims.last() else {
            return Self::NeverClaimed;
        };
        let nexts = claims.iter().skip(1).map(Some).chain([None]);
        let ends = nexts.zip(claims).map(|(next, claim)| match claim.owner {
            // Its holder extends no bound.
            Record::FOREIGN => next.map_or(u64::MAX, |next| next.from),
            _ => claim.bound,
        });
        let Some((_, above)) = ends.zip(claims).find(|(end, _)| position < *end) else {
            return Self::NotReserved(last.clone());
        };
        match (position >= above.from, claims.first()) {
            (true, _) if above.was_reserved() => Self::Foreign(above.clone()),
            (true, _) => Self::Claim(above.clone()),
            (false, Some(first)) if above == first && first.epoch > 1 => {
                Self::Forgotten(above.clone())
            }
            _ => Self::Skipped(above.clone()),
        }
    }
}

impl Leases {
    fn past(&self) -> Area {
        let store = self.store().clone();
        Area {
            store,
            name: format!("history/{}", self.name()),
        }
    }

    /// Known claims of a machine ID, in the order of their epochs. The last one is in force, or was the last
    /// in force.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or an entry is damaged.
    pub fn claims(&self, machine: u64) -> Result<Vec<Record>, StoreError> {
        let (past, prefix) = (self.past(), format!("{machine}-"));
        // Listed before the record is read: a claim that takes effect in between is then in both.
        let mut claims = BTreeMap::new();
        for (key, text) in past
            .list()?
            .into_iter()
            .filter(|(key, _)| key.starts_with(&prefix))
        {
            let claim: Record = past.read(&key, &text)?;
            claims.insert(claim.epoch, claim);
        }
        let current = self.record(machine)?.filter(|record| record.epoch > 0);
        claims.extend(current.map(|current| (current.epoch, current)));
        Ok(claims.into_values().collect())
    }

    /// Archives the claims that these writes are about to replace.
    pub(super) fn archive(&self, writes: &[(u64, Write)]) -> Result<(), StoreError> {
        let ended = writes
            .iter()
            .filter_map(|(machine, write)| Some((key(*machine, ended(write)?), ended(write)?)));
        let ended: BTreeMap<_, _> = ended.collect();
        let past = self.past();
        if !past.store.keeps_history() {
            return Ok(());
        }
        let ended: Vec<_> = ended.into_iter().collect();
        for chunk in ended.chunks(AT_ONCE) {
            let put = |(key, claim): &(String, &Record)| Put {
                key: key.clone(),
                old: None,
                new: claim.encode(),
                secret: Secret::default(),
            };
            let puts: Vec<_> = chunk.iter().map(put).collect();
            let done = ask_store(|| past.store.put_all(&past.name, &puts))?;
            for ((key, claim), _) in chunk.iter().zip(done).filter(|(_, done)| !done) {
                replace(&past, key, claim)?;
            }
        }
        Ok(())
    }
}

/// Claim that a write ends, if any.
pub(super) fn ended(write: &Write) -> Option<&Record> {
    match write {
        Write::Record {
            old: Some(old),
            new,
        } if new.epoch > old.epoch && old.epoch > 0 => Some(old),
        _ => None,
    }
}

pub(super) fn key(machine: u64, claim: &Record) -> String {
    format!("{machine}-{}", claim.epoch % CLAIMS)
}

/// Replaces an earlier claim, or an earlier state of the same claim.
fn replace(past: &Area, key: &str, claim: &Record) -> Result<(), StoreError> {
    loop {
        let old: Option<Record> = ask_store(|| past.get(key))?;
        let newer = |old: &Record| {
            (old.epoch, old.info_time, old.bound) >= (claim.epoch, claim.info_time, claim.bound)
        };
        if old.as_ref().is_some_and(newer) {
            return Ok(());
        }
        if past.put(key, old.as_ref(), claim)? == super::Cas::Done {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::MemoryStore;

    fn claim(epoch: u64, from: u64, bound: u64) -> Record {
        Record {
            epoch,
            from,
            bound,
            owner: epoch.into(),
            pid: 1,
            ..Record::default()
        }
    }

    #[test]
    fn a_position_has_one_origin() {
        let claims = [
            claim(1, 100, 200),
            claim(2, 250, 300),
            claim(3, 300, 300),
            claim(4, 300, 400),
        ];
        for (position, origin) in [
            (99, Origin::Skipped(claims[0].clone())),
            (100, Origin::Claim(claims[0].clone())),
            (199, Origin::Claim(claims[0].clone())),
            (200, Origin::Skipped(claims[1].clone())),
            (299, Origin::Claim(claims[1].clone())),
            (300, Origin::Claim(claims[3].clone())),
            (399, Origin::Claim(claims[3].clone())),
            (400, Origin::NotReserved(claims[3].clone())),
        ] {
            assert_eq!(Origin::of(&claims, position), origin, "{position}");
        }
        assert_eq!(Origin::of(&[], 1), Origin::NeverClaimed);
        assert_eq!(
            Origin::of(&claims[1..], 99),
            Origin::Forgotten(claims[1].clone())
        );
    }

    #[test]
    fn a_reservation_lasts_until_it_is_freed_or_claimed() {
        let reserved = |owner| Record {
            owner,
            pid: 0,
            ..claim(2, 200, 210)
        };
        let (held, freed) = (reserved(Record::FOREIGN), reserved(0));
        let (first, next) = (claim(1, 100, 200), claim(3, 900, 950));
        for (claims, position, origin) in [
            (
                vec![first.clone(), held.clone()],
                199,
                Origin::Claim(first.clone()),
            ),
            (
                vec![first.clone(), held.clone()],
                200,
                Origin::Foreign(held.clone()),
            ),
            (
                vec![first.clone(), held.clone()],
                1 << 40,
                Origin::Foreign(held.clone()),
            ),
            (
                vec![first.clone(), held.clone(), next.clone()],
                899,
                Origin::Foreign(held.clone()),
            ),
            (
                vec![first.clone(), held, next.clone()],
                900,
                Origin::Claim(next.clone()),
            ),
            (
                vec![first.clone(), freed.clone()],
                209,
                Origin::Foreign(freed.clone()),
            ),
            (
                vec![first.clone(), freed.clone()],
                210,
                Origin::NotReserved(freed.clone()),
            ),
            (vec![first, freed, next.clone()], 899, Origin::Skipped(next)),
        ] {
            assert_eq!(Origin::of(&claims, position), origin, "{position}");
        }
    }

    #[test]
    fn every_claim_is_in_the_record_or_in_the_history() {
        let leases = Leases::new(Arc::new(MemoryStore::new()), "x");
        let write = |old: Option<Record>, new: Record| (17, Write::Record { old, new });
        let mut last = None;
        for epoch in 0..=CLAIMS + 7 {
            let new = claim(epoch, 10 * epoch, 10 * epoch + 10);
            let writes = [write(last.replace(new.clone()), new)];
            // Twice, as after a lost reply.
            for _ in 0..2 {
                leases.write_all(&writes);
            }
            let known = leases.claims(17).unwrap();
            let first = epoch.saturating_sub(CLAIMS).max(1);
            assert!(
                known.iter().map(|claim| claim.epoch).eq(first..=epoch),
                "{epoch}"
            );
        }
        assert!(
            leases.claims(1).unwrap().is_empty(),
            "17 begins with the same digit"
        );
    }

    #[test]
    fn renewal_before_a_claim_is_in_the_history_too() {
        let leases = Leases::new(Arc::new(MemoryStore::new()), "x");
        let (old, renewed, next) = (claim(1, 0, 10), claim(1, 0, 20), claim(2, 20, 30));
        for old in [&old, &renewed, &old] {
            let new = next.clone();
            leases
                .archive(&[(
                    5,
                    Write::Record {
                        old: Some(old.clone()),
                        new,
                    },
                )])
                .unwrap();
        }
        assert_eq!(leases.claims(5).unwrap(), [renewed]);
    }
}

//! Every change that a stranger can send of a held record, in a small world. The guard lets none through that makes an
//! ID repeat or ends the owner's right to issue; without the guard, some would.

use super::*;
use crate::lease::Secret;
use vesta_intf::UnixMillis;

const SEQ_BITS: u64 = 1;
/// One position in each half of a millisecond since 1970.
const LAYOUT: &str = "0/0/0/41/1/1 tsm 1ms @0";
/// Bound of the held record, as a moment.
const UNTIL: u64 = 3;

fn held() -> Record {
    Record {
        namespace: 1,
        birth: 1,
        epoch: 2,
        owner: Secret::new(1).owner(),
        from: 2 << SEQ_BITS,
        bound: UNTIL << SEQ_BITS,
        ..Record::default()
    }
}

/// Every record that differs from the held one in these fields.
fn all() -> impl Iterator<Item = Record> {
    let owners = [0, held().owner, Secret::new(2).owner(), Record::FOREIGN];
    let positions = || 0..=10_u64;
    (1..=4).flat_map(move |epoch| {
        owners.into_iter().flat_map(move |owner| {
            positions().flat_map(move |from| {
                positions().flat_map(move |bound| {
                    [false, true].map(|released| Record {
                        epoch,
                        owner,
                        from,
                        bound,
                        released,
                        ..held()
                    })
                })
            })
        })
    })
}

/// The changes that pass with this proof, at a moment of the pool server's clock.
fn passed(secret: Secret, now: u64) -> Vec<Record> {
    let namespace = Namespace {
        uuid: 1,
        fingerprint: LAYOUT.into(),
        ..Namespace::default()
    };
    let seen = Seen {
        namespace: Some(&namespace),
        now: UnixMillis(now),
    };
    let passes = |new: &Record| {
        let put = Put {
            key: "1".into(),
            old: Some(held().encode()),
            new: new.encode(),
            secret,
        };
        Place::of("lease/x")
            .expect("an area")
            .check(&put, &seen)
            .is_ok()
    };
    all().filter(passes).collect()
}

/// True if a record that is read as this one lets another process issue what the owner may have issued, or does not
/// show the owner any more although its right to issue has not ended.
fn hurts(new: &Record, now: u64) -> bool {
    let repeats = match new.epoch == held().epoch {
        true => new.bound < held().bound,
        false => new.from < held().bound,
    };
    repeats || now < UNTIL && new.owner != held().owner
}

#[test]
fn no_stranger_hurts_an_owner() {
    for stranger in [Secret::default(), Secret::new(2)] {
        for now in 0..UNTIL {
            assert_eq!(passed(stranger, now), []);
        }
        let after = passed(stranger, UNTIL);
        assert!(!after.is_empty(), "somebody must be able to claim it");
        assert!(after.iter().all(|new| !hurts(new, UNTIL) && new.epoch == 3));
    }
}

/// The guard lets the holder of the secret pass.
#[test]
fn without_the_guard_a_stranger_would_hurt_the_owner() {
    for now in [0, UNTIL] {
        assert!(
            passed(Secret::new(1), now)
                .iter()
                .any(|new| hurts(new, now))
        );
    }
}

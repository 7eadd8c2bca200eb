//! Each kind of entry that a member may send, and each flaw of it.

use std::time::Duration;

use super::*;
use crate::lease::Secret;
use vesta_intf::UnixMillis;

const UUID: u128 = 9;
/// With 4,096 machine IDs, and 2^10 positions in each millisecond of 1970.
const LAYOUT: &str = "0/0/0/41/10/12 tsm 1ms @0";
/// Long after every position of the tests.
const LATER: UnixMillis = UnixMillis(1 << 50);

fn own() -> Secret {
    Secret::new(5)
}

fn held() -> Record {
    Record {
        namespace: UUID,
        birth: 3,
        epoch: 4,
        owner: own().owner(),
        from: 100,
        bound: 200,
        ..Record::default()
    }
}

fn check(area: &str, key: &str, old: Option<&str>, new: &str) -> Result<(), String> {
    check_at(LATER, own(), area, key, old, new)
}

fn check_at(
    now: UnixMillis,
    secret: Secret,
    area: &str,
    key: &str,
    old: Option<&str>,
    new: &str,
) -> Result<(), String> {
    let put = Put {
        key: key.into(),
        old: old.map(str::to_owned),
        new: new.into(),
        secret,
    };
    let namespace = Namespace {
        uuid: UUID,
        fingerprint: LAYOUT.into(),
        ..Namespace::default()
    };
    let namespace = Some(&namespace);
    let place = Place::of(area).expect("an area");
    let checked = place.check(&put, &Seen { namespace, now });
    checked.map_err(|refusal| refusal.to_string())
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
        ("segment/tags", Some(Place::Ranges)),
        ("serial/counters", Some(Place::Ranges)),
        ("serial/tags", Some(Place::Definitions)),
        ("pool/proof", Some(Place::Proof)),
        ("block/orders/0", None),
        ("block/orders/03", None),
        ("block/orders", None),
        ("lease/", None),
        ("lease/a/b", None),
        ("block/a/b/3", None),
        ("pool", None),
        ("segment/other", None),
    ] {
        assert_eq!(Place::of(area), place, "{area}");
    }
    let can_be_named =
        |name: &str| Place::of(&format!("lease/{name}")).is_some_and(|it| it.can_be_named());
    assert!(can_be_named("orders-2.eu") && can_be_named(&"a".repeat(64)));
    for name in ["ö", "a b", "a\0", ".a", &"a".repeat(65), &"a".repeat(5_000)] {
        assert!(!can_be_named(name), "{name}");
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
        (|it| it.epoch = 3, "the number of the claim falls"),
        (|it| it.epoch = 6, "the number of the claim falls or leaps"),
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

    let doubt = |why: &str| {
        Some(Doubt {
            since: UnixMillis(1),
            reach: UnixMillis(2),
            window: Duration::ZERO,
            took_over: false,
            why: why.into(),
        })
    };
    let old = Namespace {
        writer: None,
        uuid: UUID,
        fingerprint: LAYOUT.into(),
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
    assert_eq!(change(&|it| it.writer = Some("a".into())), Ok(()));
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
fn proofs_are_small_and_few() {
    let put = |key, new| check("pool/proof", key, None, new);
    assert_eq!(put("255", "0123456789abcdef"), Ok(()));
    for (key, new) in [
        ("256", "0123456789abcdef"),
        ("x", "0123456789abcdef"),
        ("07", "0123456789abcdef"),
        ("7", "0123456789abcdef0"),
        ("7", "0123456789abcdeg"),
    ] {
        assert!(put(key, new).is_err(), "{key} {new}");
    }
}

#[test]
fn records_without_their_namespace_are_refused() {
    let put = Put {
        key: "7".into(),
        old: None,
        new: held().encode(),
        secret: own(),
    };
    let seen = Seen {
        namespace: None,
        now: LATER,
    };
    let refusal = Place::of("lease/x").expect("an area").check(&put, &seen);
    assert!(
        refusal
            .expect_err("refused")
            .reason
            .contains("does not exist")
    );
}

/// A change of the held record, at a moment of the pool server's clock.
fn at(now: u64, secret: Secret, change: impl Fn(&mut Record)) -> Result<(), String> {
    let mut new = held();
    change(&mut new);
    let old = held().encode();
    check_at(
        UnixMillis(now),
        secret,
        "lease/x",
        "7",
        Some(&old),
        &new.encode(),
    )
}

/// The bound of the held record passes in the first millisecond; here it is later.
#[test]
fn a_record_belongs_to_its_owner_until_its_bound_has_passed() {
    let until = 1_000;
    let held = Record {
        bound: until << 10,
        ..held()
    };
    let claim = Record {
        epoch: 5,
        owner: 6,
        from: held.bound,
        bound: held.bound,
        ..held.clone()
    };
    let release = Record {
        owner: 0,
        released: true,
        ..held.clone()
    };
    let extension = Record {
        bound: held.bound + 1,
        ..held.clone()
    };
    let change = |now, secret, new: &Record| {
        let (now, old) = (UnixMillis(now), held.encode());
        check_at(now, secret, "lease/x", "7", Some(&old), &new.encode())
    };
    for stranger in [Secret::default(), Secret::new(4)] {
        for new in [&release, &extension] {
            let refusal = change(until + 1, stranger, new).expect_err("for ever");
            assert!(refusal.contains("another owner's claim"), "{refusal}");
        }
        let refusal = change(until - 1, stranger, &claim).expect_err("for now");
        assert_eq!(
            refusal,
            "it belongs to its owner until its bound has passed at 1970-01-01T00:00:01.000Z; \
             the pool_server's clock shows 1970-01-01T00:00:00.999Z"
        );
        assert_eq!(change(until, stranger, &claim), Ok(()));
    }
    for new in [&release, &extension, &claim] {
        assert_eq!(change(0, own(), new), Ok(()));
    }
}

#[test]
fn nothing_is_reserved_far_ahead_of_the_pool_servers_clock() {
    let ahead = |millis: u64| (720_000 + millis) << 10;
    assert_eq!(at(0, own(), |it| it.bound = ahead(0)), Ok(()));
    for far in [ahead(1), u64::MAX] {
        let refusal = at(0, own(), |it| it.bound = far).expect_err("too far");
        assert!(
            refusal.starts_with("the bound lies too far ahead, at "),
            "{refusal}"
        );
        assert!(
            refusal.contains("12 minutes ahead of its clock"),
            "{refusal}"
        );
    }
    let namespace = |change: &dyn Fn(&mut Namespace)| {
        let mut new = Namespace {
            uuid: UUID,
            fingerprint: LAYOUT.into(),
            ..Namespace::default()
        };
        let old = new.encode();
        change(&mut new);
        let now = UnixMillis(0);
        check_at(now, own(), "lease/x", NAMESPACE, Some(&old), &new.encode())
    };
    let doubt = |reach, window| {
        Some(crate::lease::Doubt {
            since: UnixMillis(0),
            reach: UnixMillis(reach),
            window: Duration::from_millis(window),
            took_over: false,
            why: String::new(),
        })
    };
    assert_eq!(namespace(&|it| it.floor = ahead(0)), Ok(()));
    assert_eq!(
        namespace(&|it| it.window = Duration::from_secs(600)),
        Ok(())
    );
    assert_eq!(namespace(&|it| it.doubt = doubt(720_000, 600_000)), Ok(()));
    for (refusal, why) in [
        (
            namespace(&|it| it.floor = u64::MAX),
            "the floor lies too far ahead",
        ),
        (
            namespace(&|it| it.window = Duration::from_millis(600_001)),
            "the window is too long: 600.001s",
        ),
        (
            namespace(&|it| it.doubt = doubt(720_001, 0)),
            "the reach of the doubt lies too far ahead",
        ),
        (
            namespace(&|it| it.doubt = doubt(u64::MAX, 0)),
            "at the year 10000 or later",
        ),
        (
            namespace(&|it| it.doubt = doubt(0, 600_001)),
            "the window is too long",
        ),
    ] {
        let refusal = refusal.expect_err(why);
        assert!(refusal.contains(why), "{refusal}");
    }
    let standby = Some(crate::lease::Standby {
        window: Duration::from_secs(601),
        base: 0,
    });
    let refusal = at(0, own(), |it| it.standby = standby).expect_err("for ever");
    assert!(refusal.contains("the window is too long"), "{refusal}");
}

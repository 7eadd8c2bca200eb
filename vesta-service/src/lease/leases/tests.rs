//! Creation of a namespace, and the facts added to it.

use vesta_intf::UnixMillis;

use super::*;
use crate::testing::MemoryStore;

fn opened() -> (Arc<MemoryStore>, Leases) {
    let store = Arc::new(MemoryStore::new());
    let leases = Leases::new(store.clone(), "orders");
    leases.open("a layout").unwrap();
    (store, leases)
}

#[test]
fn records_without_their_namespace_are_refused_and_no_namespace_is_made_for_them() {
    for (key, value) in [("17", "a record"), ("births-0", "marks")] {
        let (store, leases) = opened();
        assert!(store.put_if(&leases.area.name, key, None, value).unwrap());
        store.delete(&leases.area.name, NAMESPACE);
        for _ in 0..2 {
            let refused = leases
                .open("a layout")
                .expect_err("its floor may be gone with it");
            assert!(refused.is_permanent(), "{refused}");
            assert!(
                refused
                    .to_string()
                    .contains("namespace `orders` was deleted"),
                "{refused}"
            );
            assert_eq!(leases.find().unwrap(), None);
        }
    }
}

#[test]
fn first_doubt_that_was_written_stays_until_it_is_cleared() {
    let (_, leases) = opened();
    let doubt = |since: u64, reach: u64| Doubt {
        since: UnixMillis(since),
        reach: UnixMillis(reach),
        window: Duration::ZERO,
        took_over: false,
        why: format!("seen at {since}"),
    };
    let namespace = leases.find().unwrap().unwrap().uuid;
    let written = |doubt: &Doubt| {
        let doubt = Some(doubt.clone());
        leases
            .amend(&Amendment {
                namespace,
                doubt,
                ..Amendment::default()
            })
            .unwrap()
            .unwrap()
            .doubt
    };
    let first = doubt(1000, 90_000);
    assert_eq!(written(&first).as_ref(), Some(&first));
    for later in [doubt(2000, 3000), doubt(2000, 99_000)] {
        assert_eq!(written(&later).as_ref(), Some(&first));
        assert_eq!(leases.find().unwrap().unwrap().doubt.as_ref(), Some(&first));
    }
    assert_eq!(leases.clear_doubt().unwrap(), Some(first));
    let later = doubt(2000, 3000);
    assert_eq!(written(&later), Some(later));
}

#[test]
fn facts_only_raise_what_a_namespace_shows_and_reach_no_other_namespace() {
    let (_, leases) = opened();
    let namespace = leases.find().unwrap().unwrap().uuid;
    let facts = |floor, seconds| Amendment {
        namespace,
        floor,
        window: Duration::from_secs(seconds),
        ..Amendment::default()
    };
    let shown = |facts| {
        let shown = leases.amend(&facts).unwrap().unwrap();
        (shown.floor, shown.window.as_secs())
    };
    assert_eq!(shown(facts(7, 60)), (7, 60));
    assert_eq!(shown(facts(9, 30)), (9, 60));
    assert_eq!(shown(facts(8, 90)), (9, 90));
    let other = Amendment {
        namespace: namespace ^ 1,
        ..facts(99, 600)
    };
    assert_eq!(
        shown(other),
        (9, 90),
        "these facts belong to a namespace that is gone"
    );
}

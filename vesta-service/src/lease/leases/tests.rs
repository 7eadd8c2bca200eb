//! What stands in a namespace, and what becomes of it.

use vesta_intf::UnixMillis;

use super::*;
use crate::MemoryStore;

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
            let refused = leases.open("a layout").expect_err("its floor may be gone with it");
            assert!(refused.is_permanent(), "{refused}");
            assert!(refused.to_string().contains("namespace `orders` was deleted"), "{refused}");
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
        why: format!("seen at {since}"),
    };
    let first = doubt(1000, 90_000);
    assert_eq!(leases.doubt(&first).unwrap().doubt.as_ref(), Some(&first));
    for later in [doubt(2000, 3000), doubt(2000, 99_000)] {
        assert_eq!(leases.doubt(&later).unwrap().doubt.as_ref(), Some(&first));
        assert_eq!(leases.find().unwrap().unwrap().doubt.as_ref(), Some(&first));
    }
    assert_eq!(leases.trust().unwrap(), Some(first));
    let later = doubt(2000, 3000);
    assert_eq!(leases.doubt(&later).unwrap().doubt, Some(later));
}

//! Keys and values, read without the store.

use vesta_service::clock::{Clock as _, SystemClock};
use vesta_store::{OpenError, Options};

use super::{AREA, Area, get, open, opened, put, refused};

/// No entry can expire, and there is no other key.
#[test]
fn each_entry_is_one_key_without_a_lease() {
    let documented = include_str!("../../../src/backends/etcd/mod.rs");
    assert!(documented.contains("/// vesta/lease/orders/17\n"));
    let area = Area::new();
    let (store, raw) = (area.store(), area.raw());
    for number in 1..=3 {
        assert!(put(&store, number).unwrap());
        let [entry] = &raw.below(&area.prefix)[..] else {
            panic!("one key")
        };
        assert_eq!(
            (entry.key(), entry.lease),
            (&*format!("{}/{AREA}/7", area.prefix), 0)
        );
        assert_eq!(entry.value(), number.to_string());
    }
}

/// More entries than fit into one etcd response.
#[test]
fn a_long_list_is_read_in_pages() {
    let area = Area::new();
    let (store, raw) = (area.store(), area.raw());
    // Beside entries of other areas.
    for other in [
        "lease/id",
        "lease/ids2",
        "lease/ids-2",
        "lease/ids/2",
        "segment/ids",
    ] {
        assert!(store.put_if(other, "0", None, "x").unwrap());
    }
    let mut entries: Vec<_> = (0..2000)
        .map(|key| (format!("{key:04}"), "v".to_owned()))
        .collect();
    for some in entries.chunks(100) {
        let put = |(key, value): &(String, String)| {
            (format!("{}/{AREA}/{key}", area.prefix), value.clone())
        };
        raw.put_all(some.iter().map(put));
    }
    assert_eq!(store.list(AREA).unwrap(), entries);
    assert!(store.put_if(AREA, "2000", None, "v").unwrap());
    entries.push(("2000".into(), "v".into()));
    assert_eq!(store.list(AREA).unwrap(), entries);
}

/// The error has its name, for every request.
#[test]
fn a_key_with_a_lease_is_refused() {
    let area = Area::new();
    let (store, raw) = (area.store(), area.raw());
    assert!(put(&store, 1).unwrap());
    let key = format!("{}/{AREA}/7", area.prefix);
    raw.put(&key, "1", raw.lease());
    for said in [
        refused(get(&store)),
        refused(store.list(AREA)),
        refused(put(&store, 2)),
    ] {
        assert!(
            said.contains(&format!("the key {key} has a lease")),
            "{said}"
        );
    }
    raw.put(&key, "1", 0);
    assert!(put(&store, 2).unwrap(), "mended");
}

#[test]
fn without_auto_init_nothing_is_created() {
    let area = Area::new();
    let careful = open(
        &area.url(),
        &Options {
            auto_init: false,
            ..Options::default()
        },
    );
    let said = refused(careful.put_if(AREA, "namespace", None, "n"));
    assert!(said.contains("auto_init is off; create it with `vesta store init`"));
    assert_eq!(area.raw().below(&area.prefix), []);

    assert!(area.store().put_if(AREA, "namespace", None, "n").unwrap());
    assert!(put(&careful, 1).unwrap());
}

#[test]
fn the_display_form_hides_the_password() {
    let url = "etcd://ann:hunter2@a,b:1/ids";
    let store = opened(url);
    assert_eq!(store.describe(), "etcd ann@a:2379,b:1/ids");
    assert!(!format!("{store:?}").contains("hunter2"), "{store:?}");
    assert!(store.now().is_err(), "no such member");
    assert_eq!(store.doubt().unwrap(), None);

    let request_timeout = Some(std::time::Duration::from_millis(700));
    let options = Options {
        request_timeout,
        ..Options::default()
    };
    let store = open(url, &options);
    assert_eq!(Some(store.timing().request_timeout), request_timeout);
    assert!(
        !format!("{store:?} {store:#?}").contains("hunter2"),
        "{store:?}"
    );

    for url in ["etcd://ann:hunter2", "etcd://ann:hunter2@a?secret=hunter2"] {
        let error = url
            .parse()
            .and_then(|url| vesta_store::open(&url))
            .expect_err(url);
        assert!(matches!(error, OpenError::Malformed { .. }), "{error:?}");
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
}

/// This holds for a runtime with a single thread, too.
#[test]
fn the_store_can_be_called_from_inside_a_runtime() {
    let area = Area::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = area.store();
        assert!(put(&store, 1).unwrap());
        assert_eq!(store.list(AREA).unwrap(), [("7".into(), "1".into())]);
        drop(store);
    });
}

#[test]
fn the_member_shows_its_clock() {
    let area = Area::new();
    let before = SystemClock::new().wall().0;
    let theirs = area.store().now().unwrap().expect("a clock").0;
    let after = SystemClock::new().wall().0;
    // Whole seconds count as the nearest moment within them.
    assert!(
        (before..=after).contains(&theirs),
        "{before} {theirs} {after}"
    );
}

//! Serial tags made from templates: which template, how many, and by several servers at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use vesta_intf::{ErrorKind, IdError, ShuffleKey};
use vesta_numbers::Created;
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_service::lease::{KvStore, StoreError};
use vesta_service::testing::{Intercept, MemoryStore, Request};

fn service(store: &Arc<MemoryStore>) -> SerialService {
    SerialService::builder(store.clone())
        .build()
        .expect("a service")
}

fn new(tag: &str, pattern: &str) -> NewSerialTag {
    let pattern = Pattern::new(pattern, Reset::Never).expect("a pattern");
    NewSerialTag::new(tag, pattern, None).expect("a tag")
}

fn create(serials: &SerialService, tag: &str, pattern: &str, most: u64) {
    let template = new(tag, pattern).max_tags(most).expect("a maximum");
    assert_eq!(
        serials.create(&template).expect("memory answers"),
        Created::New
    );
}

fn next(serials: &SerialService, tag: &str) -> Result<String, IdError> {
    Ok(serials.tag_or_made(tag)?.next()?.text)
}

fn refused(serials: &SerialService, tag: &str) -> (ErrorKind, String) {
    let error = next(serials, tag).expect_err(tag);
    (error.kind(), error.to_string())
}

/// Names of the tags in the store, without templates.
fn tags(store: &MemoryStore) -> usize {
    let tags = store.list("serial/tags").expect("memory answers");
    tags.iter()
        .filter(|(name, _)| !name.contains("%7B"))
        .count()
}

#[test]
fn a_tag_is_made_when_first_used_and_has_its_own_counter() {
    let store = Arc::new(MemoryStore::new());
    let serials = service(&store);
    create(&serials, "orders-{tenant}", "A{n:4}", 10);
    create(&serials, "orders-eu-{tenant}", "B{n:4}", 10);
    assert_eq!(
        serials
            .create(&new("orders-own", "C{n:4}"))
            .expect("memory answers"),
        Created::New
    );
    for (tag, serial) in [
        ("orders-acme", "A0001"),
        ("orders-acme", "A0002"),
        ("orders-beta", "A0001"),
        ("orders-eu-acme", "B0001"),
        ("orders-own", "C0001"),
        ("orders-acme", "A0003"),
    ] {
        assert_eq!(next(&serials, tag).as_deref().ok(), Some(serial), "{tag}");
    }
    let (kind, why) = refused(&serials, "orders-{tenant}");
    assert!(
        kind == ErrorKind::Invalid && why.contains("it is a template"),
        "{why}"
    );
    assert_eq!(refused(&serials, "orders- ").0, ErrorKind::NotFound);
    let long = refused(&serials, &format!("orders-{}", "v".repeat(65)));
    assert_eq!(long.0, ErrorKind::NotFound);
    let looked_up = serials.tag("orders-gamma").expect_err("not made");
    assert_eq!(looked_up.kind(), ErrorKind::NotFound);
    let listed = serials.status().into_iter();
    let listed = listed.map(|tag| (tag.segment.key, tag.next, tag.last, tag.segment.description));
    let made_from = |template| Some(format!("made from {template}"));
    let listed: Vec<_> = listed.filter(|tag| tag.0 != "orders-own").collect();
    assert_eq!(listed.len(), 5, "{listed:?}");
    assert_eq!(listed[0].3, made_from("orders-{tenant}"));
    assert_eq!(listed[2].3, made_from("orders-eu-{tenant}"));
    assert_eq!(
        (&*listed[4].0, listed[4].1, listed[4].2),
        ("orders-{tenant}", 3, 10)
    );
}

#[test]
fn a_full_template_makes_no_tag_but_its_tags_serve() {
    let store = Arc::new(MemoryStore::new());
    let serials = service(&store);
    create(&serials, "{tenant}-bills", "{n:4}", 2);
    for tag in ["a-bills", "b-bills"] {
        assert_eq!(next(&serials, tag).expect(tag), "0001");
    }
    let expected =
        "template `{tenant}-bills` has its 2 tags; create `c-bills` with `vesta serial create`";
    for serials in [&serials, &service(&store)] {
        let full = (ErrorKind::Unsupported, expected.to_owned());
        assert_eq!(refused(serials, "c-bills"), full);
        assert!(next(serials, "a-bills").is_ok());
    }
    assert_eq!(tags(&store), 2);
    // As the error suggests.
    assert_eq!(
        serials
            .create(&new("c-bills", "{n:4}"))
            .expect("memory answers"),
        Created::New
    );
    assert_eq!(next(&serials, "c-bills").expect("it exists"), "0001");
}

#[test]
fn racing_servers_make_one_tag_and_issue_each_serial_once() {
    let store = Arc::new(MemoryStore::new());
    create(&service(&store), "orders-{tenant}", "{n:6}", 1000);
    let servers: Vec<_> = (0..4).map(|_| service(&store)).collect();
    let take = |server: &SerialService| -> Vec<String> {
        let each = |tenant| next(server, &format!("orders-{tenant}")).expect("a serial");
        (0..20)
            .map(|tenant| format!("{tenant} {}", each(tenant)))
            .collect()
    };
    let serials: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = servers
            .iter()
            .chain(&servers)
            .map(|server| scope.spawn(move || take(server)))
            .collect();
        let joined = threads
            .into_iter()
            .flat_map(|it| it.join().expect("no panic"));
        joined.collect()
    });
    let distinct: BTreeSet<_> = serials.iter().collect();
    assert_eq!((serials.len(), distinct.len()), (8 * 20, 8 * 20));
    assert_eq!(tags(&store), 20);
    // At most one place for each server and tag, usually far fewer.
    let fresh = service(&store);
    fresh.refresh().expect("memory answers");
    let template = fresh
        .status()
        .into_iter()
        .find(|tag| tag.segment.key == "orders-{tenant}");
    let places = template.expect("it is listed").next - 1;
    assert!((20..=80).contains(&places), "{places}");
}

#[test]
fn racing_servers_never_exceed_the_maximum() {
    let store = Arc::new(MemoryStore::new());
    create(&service(&store), "orders-{tenant}", "{n:6}", 10);
    let servers: Vec<_> = (0..4).map(|_| service(&store)).collect();
    let ask = |server: &SerialService| {
        let outcomes = (0..30).map(|tenant| next(server, &format!("orders-{tenant}")));
        for error in outcomes.filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    };
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(move || ask(server));
        }
    });
    assert!((1..=10).contains(&tags(&store)), "{}", tags(&store));
}

#[test]
fn a_tag_whose_maker_stopped_halfway_is_completed_in_its_place() {
    let store = Arc::new(MemoryStore::new());
    create(&service(&store), "orders-{tenant}", "{n:4}", 1);
    // Fails between the definition and the counter.
    let broken = Intercept::new(store.clone(), |request, store| match request {
        Request::Put {
            area: "serial/counters",
            puts,
        } if puts[0].key == "orders-acme" => {
            let error = std::io::Error::other("cut");
            Err(StoreError::unavailable("the store is gone", error))
        }
        _ => request.send(store),
    });
    let broken = SerialService::builder(Arc::new(broken))
        .build()
        .expect("a service");
    assert_eq!(refused(&broken, "orders-acme").0, ErrorKind::Unavailable);
    assert_eq!(tags(&store), 1);
    let other = service(&store);
    assert_eq!(next(&other, "orders-acme").expect("completed"), "0001");
    assert_eq!(refused(&other, "orders-beta").0, ErrorKind::Unsupported);
}

#[test]
fn templates_that_cannot_work_are_refused() {
    let pattern = |text| Pattern::new(text, Reset::Never).expect("a pattern");
    for (refused, why) in [
        (
            NewSerialTag::new("{all}", pattern("{n:4}"), None),
            "one placeholder beside",
        ),
        (
            NewSerialTag::new("a{b}", pattern("{shuffle:8}"), None),
            "cannot shuffle",
        ),
        (new("a{b}", "{n:4}").starting_at(7), "start at 1"),
        (
            new("a{b}", "{n:4}").max_tags(0),
            "maxTags must be 1 to 10000",
        ),
        (
            new("a{b}", "{n:4}").max_tags(10_001),
            "maxTags must be 1 to 10000",
        ),
        (new("ab", "{n:4}").max_tags(7), "only a template"),
        (
            new("a{b}", "{n:4}").shuffled_with(&ShuffleKey::new(&[7; 32])),
            "needs no key",
        ),
    ] {
        let error = refused.expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
    let named = Pattern::new("{tenant}-{n:4}", Reset::Never).expect_err("no such part");
    assert_eq!(named.kind(), ErrorKind::Invalid);
}

//! Conformance suite for databases of segment tags, run against each unchanged.
//!
//! ```no_run
//! use std::sync::Arc;
//! use vesta_numbers::segment::SegmentStore;
//! use vesta_numbers::testing::MemorySegmentStore;
//! use vesta_store::segment_conformance::{Database, Databases};
//!
//! struct Memory;
//! struct One(Arc<MemorySegmentStore>);
//!
//! impl Databases for Memory {
//!     fn fresh(&self) -> Box<dyn Database> {
//!         Box::new(One(Arc::new(MemorySegmentStore::new())))
//!     }
//! }
//!
//! impl Database for One {
//!     fn connect(&self) -> Arc<dyn SegmentStore> {
//!         self.0.clone()
//!     }
//! }
//!
//! vesta_store::segment_conformance!(Memory);
//! # fn main() {}
//! ```

use std::ops::Range;
use std::sync::Arc;

use vesta_intf::MAX_TAG;
use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, Stride};

/// A kind of database.
pub trait Databases: Send + Sync {
    /// Creates one without any tag.
    fn fresh(&self) -> Box<dyn Database>;
}

/// One database; dropping it may remove it.
pub trait Database: Send + Sync {
    /// Opens a new connection to it.
    fn connect(&self) -> Arc<dyn SegmentStore>;

    /// The step that a tag gets if this one is requested.
    fn step(&self, wanted: u64) -> u64 {
        wanted
    }

    /// True if a tag may have this name.
    fn takes(&self, key: &str) -> bool {
        let _ = key;
        true
    }

    /// True if tags have descriptions.
    fn describes(&self) -> bool {
        true
    }
}

/// A named promise: panics if the database does not keep it.
pub type SegmentPromise = fn(&dyn Databases);

macro_rules! promises {
    ($d:tt $($name:ident)*) => {
        /// Every promise with its name.
        pub const SEGMENT_PROMISES: &[(&str, SegmentPromise)] = &[$((stringify!($name), $name),)*];

        /// Generates a test for each promise of the [suite](mod@crate::segment_conformance).
        #[macro_export]
        macro_rules! segment_conformance {
            ($d databases:expr) => {
                $(
                    #[test]
                    fn $name() {
                        ::vesta_store::segment_conformance::check(stringify!($name), &$d databases);
                    }
                )*
            };
        }
    };
}

promises! { $
    a_tag_comes_back_as_it_was_created
    a_tag_is_created_once
    ranges_follow_one_another
    an_unknown_tag_is_reported_as_unknown
    concurrent_callers_never_get_the_same_number
    the_last_number_is_handed_out_and_then_no_more
    numbers_are_given_back_only_if_none_were_taken_since
    concurrent_giving_back_and_taking_hands_nothing_out_twice
    tags_do_not_touch_each_other
}

/// Checks one promise by its name.
///
/// # Panics
/// If the database does not keep it, or the name is unknown.
pub fn check(name: &str, databases: &dyn Databases) {
    let promise = SEGMENT_PROMISES.iter().find(|(known, _)| *known == name);
    let (_, promise) = promise.expect("a name from SEGMENT_PROMISES");
    promise(databases);
}

fn tag(key: &str, step: u64) -> NewSegmentTag {
    NewSegmentTag::new(key, step).expect("a name and a step that are right")
}

fn numbers(store: &dyn SegmentStore, key: &str, step: u64) -> Range<u64> {
    match store.next_range(key, step).expect("the database answers") {
        NextRange::Numbers(range) => range,
        other => panic!("expected numbers, got {other:?}"),
    }
}

fn create(store: &dyn SegmentStore, tag: &NewSegmentTag) -> bool {
    store.create(tag).expect("the database answers")
}

fn a_tag_comes_back_as_it_was_created(databases: &dyn Databases) {
    let database = databases.fresh();
    let store = database.connect();
    assert_eq!(store.tags().expect("the database answers"), []);
    let [first, second] = [1000, NewSegmentTag::MAX_STEP].map(|step| database.step(step));
    let odd = "a'b\"c\\d; DROP TABLE leaf_alloc --\u{1F980}";
    let odd = if database.takes(odd) {
        odd
    } else {
        "users-1.2_3~4"
    };
    let description = database.describes().then_some("für \u{8ba2}\u{5355}");
    let mut other = tag(odd, second)
        .starting_at(1 << 53 | 1)
        .expect("it is allowed");
    if let Some(description) = description {
        other = other.described_as(description).expect("it is allowed");
    }
    assert!(create(&*store, &other));
    assert!(create(&*store, &tag("orders", first)));
    let mut tags = database.connect().tags().expect("the database answers");
    tags.sort_by_key(|tag| tag.max_id);
    let [orders, other] = &tags[..] else {
        panic!("{tags:?}")
    };
    let of = |tag: &SegmentTag| (tag.key.clone(), tag.max_id, tag.step.unsigned_abs());
    assert_eq!(of(orders), ("orders".into(), 1, first));
    assert_eq!(
        (orders.description.as_deref(), orders.stride),
        (None, Stride::ONE)
    );
    assert_eq!(of(other), (odd.into(), 1 << 53 | 1, second));
    assert_eq!(other.description.as_deref(), description);
}

fn a_tag_is_created_once(databases: &dyn Databases) {
    let database = databases.fresh();
    let store = database.connect();
    assert!(create(&*store, &tag("orders", database.step(10))));
    assert_eq!(numbers(&*store, "orders", 10), 1..11);
    assert!(!create(
        &*database.connect(),
        &tag("orders", database.step(20))
    ));
    let tags = store.tags().expect("the database answers");
    let step = i64::try_from(database.step(10)).expect("small");
    assert_eq!(
        (tags[0].max_id, tags[0].step),
        (11, step),
        "it stays as it was"
    );
}

fn ranges_follow_one_another(databases: &dyn Databases) {
    let database = databases.fresh();
    let (one, other) = (database.connect(), database.connect());
    assert!(create(&*one, &tag("orders", database.step(10))));
    assert_eq!(numbers(&*one, "orders", 10), 1..11);
    assert_eq!(
        numbers(&*other, "orders", 25),
        11..36,
        "whatever step the table has"
    );
    assert_eq!(numbers(&*one, "orders", 1), 36..37);
    assert_eq!(one.tags().expect("the database answers")[0].max_id, 37);
}

fn an_unknown_tag_is_reported_as_unknown(databases: &dyn Databases) {
    let database = databases.fresh();
    let store = database.connect();
    assert_eq!(store.tags().expect("the database answers"), []);
    assert_eq!(
        store.next_range("nothing", 10).expect("it answers"),
        NextRange::NoTag
    );
    assert_eq!(
        store.tags().expect("the database answers"),
        [],
        "and it is not created"
    );
}

fn concurrent_callers_never_get_the_same_number(databases: &dyn Databases) {
    const CALLERS: u64 = 8;
    const CALLS: u64 = 40;
    let database = databases.fresh();
    assert!(create(
        &*database.connect(),
        &tag("orders", database.step(10))
    ));
    let mut ranges: Vec<Range<u64>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let store = database.connect();
                scope.spawn(move || {
                    let mut own = Vec::new();
                    for _ in 0..CALLS {
                        // The database may be busy at a moment; numbers taken then are only lost.
                        if let Ok(NextRange::Numbers(range)) =
                            store.next_range("orders", 3 + caller)
                        {
                            assert_eq!(range.end - range.start, 3 + caller);
                            own.push(range);
                        }
                    }
                    assert!(own.is_sorted_by(|a, b| a.end <= b.start));
                    own
                })
            })
            .collect();
        callers
            .into_iter()
            .flat_map(|caller| caller.join().expect("no panic"))
            .collect()
    });
    assert!(
        ranges.len() as u64 > CALLERS * CALLS / 2,
        "only {} were answered",
        ranges.len()
    );
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

fn the_last_number_is_handed_out_and_then_no_more(databases: &dyn Databases) {
    let database = databases.fresh();
    let store = database.connect();
    let end = i64::MAX.unsigned_abs();
    let late = tag("late", database.step(10))
        .starting_at(end - 12)
        .expect("it is allowed");
    assert!(create(&*store, &late));
    assert_eq!(numbers(&*store, "late", 10), end - 12..end - 2);
    assert_eq!(
        store.next_range("late", 10).expect("it answers"),
        NextRange::UsedUp
    );
    assert_eq!(numbers(&*store, "late", 2), end - 2..end);
    for step in [1, 10, 1 << 62] {
        assert_eq!(
            store.next_range("late", step).expect("it answers"),
            NextRange::UsedUp
        );
    }
    assert_eq!(
        store.tags().expect("the database answers")[0].max_id,
        i64::MAX,
        "it stays"
    );
}

fn give_back(store: &dyn SegmentStore, key: &str, numbers: Range<u64>) -> bool {
    store.give_back(key, numbers).expect("the database answers")
}

fn numbers_are_given_back_only_if_none_were_taken_since(databases: &dyn Databases) {
    let database = databases.fresh();
    let (one, other) = (database.connect(), database.connect());
    assert!(
        create(&*one, &tag("orders", database.step(10)))
            && create(&*one, &tag("users", database.step(10)))
    );
    assert_eq!(numbers(&*one, "orders", 10), 1..11);
    assert!(!give_back(&*one, "orders", 5..10), "not what ends before");
    assert!(!give_back(&*one, "orders", 5..12), "nor after");
    assert!(!give_back(&*one, "nothing", 5..11));
    assert!(give_back(&*one, "orders", 5..11));
    assert!(!give_back(&*one, "orders", 5..11), "once");
    let found = one.tags().expect("the database answers");
    let found: Vec<_> = found.iter().map(|tag| tag.max_id).collect();
    assert_eq!(found, [5, 1], "nothing else changes");
    assert_eq!(numbers(&*other, "orders", 10), 5..15);
    assert_eq!(numbers(&*one, "orders", 10), 15..25);
    assert!(
        !give_back(&*other, "orders", 8..15),
        "a range was taken since"
    );
    assert!(give_back(&*one, "orders", 15..25), "all of a range");
    assert!(
        give_back(&*other, "orders", 8..15),
        "in the order of their ends"
    );
    assert_eq!(numbers(&*one, "orders", 1), 8..9);
    let end = i64::MAX.unsigned_abs();
    let late = tag("late", database.step(10))
        .starting_at(end - 10)
        .expect("it is allowed");
    assert!(create(&*one, &late));
    assert_eq!(numbers(&*one, "late", 10), end - 10..end);
    assert!(give_back(&*one, "late", end - 3..end));
    assert_eq!(numbers(&*one, "late", 3), end - 3..end);
}

/// Each thread takes ranges, uses a part of each, and gives the rest back: of concurrent attempts
/// exactly one takes effect.
fn concurrent_giving_back_and_taking_hands_nothing_out_twice(databases: &dyn Databases) {
    const CALLERS: u64 = 4;
    let database = databases.fresh();
    assert!(create(
        &*database.connect(),
        &tag("orders", database.step(10))
    ));
    let (mut used, back): (Vec<Range<u64>>, Vec<bool>) = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let store = database.connect();
                scope.spawn(move || {
                    let (mut used, mut back) = (Vec::new(), Vec::new());
                    for round in 0..60 {
                        let Ok(NextRange::Numbers(range)) = store.next_range("orders", 10) else {
                            continue; // busy at the moment
                        };
                        let middle = range.start + (round + caller) % 10;
                        used.push(range.start..middle);
                        match store.give_back("orders", middle..range.end) {
                            Ok(true) => back.push(true),
                            Ok(false) => {
                                back.push(false);
                                used.push(middle..range.end);
                            }
                            Err(_) => {} // unknown: the numbers may be handed out, so they are not used
                        }
                    }
                    (used, back)
                })
            })
            .collect();
        let all = callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"));
        let (used, back): (Vec<_>, Vec<_>) = all.unzip();
        (used.concat(), back.concat())
    });
    used.retain(|range| !range.is_empty());
    used.sort_by_key(|range| range.start);
    assert!(
        used.windows(2).all(|pair| pair[0].end <= pair[1].start),
        "handed out twice"
    );
    assert!(back.contains(&true), "some came back, of {}", back.len());
}

fn tags_do_not_touch_each_other(databases: &dyn Databases) {
    let database = databases.fresh();
    let store = database.connect();
    let long = "\u{1F980}".repeat(MAX_TAG);
    let keys = [
        "a", "A", "b", "a:b", "a b", "a/b", "a%2Fb", "a%b", ".", "..", "\u{e9}", "e\u{301}", &long,
    ];
    let keys: Vec<_> = keys.into_iter().filter(|key| database.takes(key)).collect();
    assert!(keys.len() >= 3);
    for key in &keys {
        assert!(create(&*store, &tag(key, database.step(10))), "{key}");
    }
    for round in 0..2 {
        for (key, step) in keys.iter().zip(5..) {
            let first = 1 + round * step;
            assert_eq!(numbers(&*store, key, step), first..first + step, "{key}");
        }
    }
    let mut expected = keys;
    expected.sort_unstable();
    let mut found = store.tags().expect("the database answers");
    found.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(
        found.iter().map(|tag| &*tag.key).collect::<Vec<_>>(),
        expected
    );
}

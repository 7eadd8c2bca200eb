//! Segment imports: from parsed segments to tags and the report.

use vesta_numbers::segment::NextRange;
use vesta_numbers::testing::MemorySegmentStore;

use super::*;

fn segment(key: &str, last: u64) -> ForeignSegment {
    ForeignSegment {
        key: key.into(),
        last,
    }
}

/// The output, and the error if any.
fn import(store: &MemorySegmentStore, found: &[ForeignSegment]) -> (String, Option<Error>) {
    let tags = checked(found, 100).expect("right tags");
    let mut said = String::new();
    match run(store, &tags, |text| said += text) {
        Ok(report) => (said + &report, None),
        Err(error) => (said, Some(error)),
    }
}

fn next(store: &MemorySegmentStore, key: &str) -> Option<u64> {
    match store.next_range(key, 1).expect("memory") {
        NextRange::Numbers(range) => Some(range.start),
        _ => None,
    }
}

const STOP: &str = "CosId must not hand out any more of these numbers: stop it for these segments, or \
                    import again once it is stopped. With a Redis cluster, import from each primary: \
                    each has a part of them.";

#[test]
fn each_segment_becomes_a_tag_above_its_last_number() {
    let store = MemorySegmentStore::new();
    let (said, error) = import(
        &store,
        &[segment("shop.item", 0), segment("shop.order@260131", 4200)],
    );
    assert!(error.is_none());
    let expected = [
        "  shop.item  created: numbers from 1 on, 100 at a time",
        "  shop.order@260131  created: numbers from 4201 on, 100 at a time",
        "2 tags created, 0 left alone, 0 not changed, in memory.",
        STOP,
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert_eq!(
        [next(&store, "shop.item"), next(&store, "shop.order@260131")],
        [Some(1), Some(4201)]
    );
}

#[test]
fn a_repeated_import_changes_nothing() {
    let store = MemorySegmentStore::new();
    let found = [segment("shop.item", 7), segment("shop.order", 4200)];
    import(&store, &found);
    assert_eq!(next(&store, "shop.item"), Some(8));
    let (said, error) = import(&store, &found);
    assert!(error.is_none());
    let expected = [
        "  shop.item  left alone: its next number is already 9",
        "  shop.order  left alone: its next number is already 4201",
        "0 tags created, 2 left alone, 0 not changed, in memory.",
        STOP,
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert_eq!(
        [next(&store, "shop.item"), next(&store, "shop.order")],
        [Some(9), Some(4201)]
    );
}

#[test]
fn a_tag_that_cosid_is_beyond_is_an_error_and_the_others_are_imported() {
    let store = MemorySegmentStore::new();
    import(&store, &[segment("shop.b", 4200)]);
    let found = [
        segment("shop.a", 1),
        segment("shop.b", 4201),
        segment("shop.c", 9),
    ];
    let (said, error) = import(&store, &found);
    let error = error.expect("an error");
    assert_eq!(error.exit_code(), 64);
    let error = error.to_string();
    assert!(
        error.contains("raise max_id in memory (shop.b to 4202), and import again"),
        "{error}"
    );
    let expected = [
        "  shop.a  created: numbers from 2 on, 100 at a time",
        "  shop.c  created: numbers from 10 on, 100 at a time",
        "  shop.b  not changed: its next number is 4201, but CosId's is 4202",
        "2 tags created, 0 left alone, 1 not changed, in memory.",
        STOP,
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let all = ["shop.a", "shop.b", "shop.c"].map(|key| next(&store, key));
    assert_eq!(all, [Some(2), Some(4201), Some(10)]);
}

#[test]
fn segments_that_cannot_be_tags_are_named_before_anything_is_created() {
    let long = format!("shop.{}", "x".repeat(124));
    let found = [
        segment("shop.a", 1),
        segment(&long, 1),
        segment("shop.b\u{1b}", 1),
        segment("shop.c", u64::MAX),
    ];
    let said = checked(&found, 100).expect_err("refused").to_string();
    for named in [
        &format!("{long} (tag: "),
        r"shop.b\u001b (tag: ",
        "shop.c (first must be",
    ] {
        assert!(said.contains(named), "{said}");
    }
    assert!(
        !said.contains("shop.a") && said.ends_with("Nothing was created"),
        "{said}"
    );
}

#[test]
fn a_source_of_another_kind_is_refused_without_its_password() {
    let from = "etcd://u:pl4nted@h".parse().expect("a right URL");
    let (system, cosid_namespace) = (LegacySegments::CosId, "shop".to_owned());
    let asked = SegmentImport {
        system,
        from,
        cosid_namespace,
        step: 100,
    };
    let said = tags(&asked).expect_err("refused").to_string();
    assert!(
        said.starts_with("--from: CosId keeps its data in redis or mysql or zookeeper"),
        "{said}"
    );
    assert!(!said.contains("pl4nted"), "{said}");
}

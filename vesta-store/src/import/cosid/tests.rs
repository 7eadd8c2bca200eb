//! Valid and invalid states of CosId, without a store.

use super::*;

/// Entries whose place equals their key.
fn entries(them: &[(&str, &str)]) -> Vec<Entry> {
    let entry = |(key, value): &(&str, &str)| Entry {
        place: format!("at {key}"),
        key: (*key).into(),
        value: (*value).into(),
    };
    them.iter().map(entry).collect()
}

fn machines(in_use: &[(&str, &str)], given_back: &[(&str, &str)], counter: &str) -> Machines {
    let counter = entries(&[("counter", counter)])
        .pop()
        .filter(|it| !it.value.is_empty());
    Machines {
        in_use: entries(in_use),
        given_back: entries(given_back),
        counter,
    }
}

/// Machine ID, host and last use of each owner.
fn found(machines: &Machines) -> Result<Vec<(u64, String, Option<u64>)>, String> {
    let owners = owners(machines, "shop", 1023).map_err(|error| error.to_string())?;
    let shown = |it: ForeignOwner| {
        (
            it.machine,
            it.host,
            it.last_used.map(|UnixMillis(millis)| millis),
        )
    };
    Ok(owners.into_iter().map(shown).collect())
}

fn owner(machine: u64, host: &str, last: Option<u64>) -> (u64, String, Option<u64>) {
    (machine, host.into(), last)
}

const STAMP: u64 = 1_769_832_000_123;
const UNKNOWN: &str = "an unknown instance";

#[test]
fn every_number_up_to_the_counter_has_an_owner() {
    let state = machines(
        &[
            ("10.0.0.5:8080", "1|1769832000123"),
            ("10.0.0.6:77", "4|1769832000124"),
        ],
        &[("2", "1769832000125"), ("3", "3|1769832000126")],
        "6",
    );
    let expected = [
        owner(0, UNKNOWN, None),
        owner(1, "10.0.0.5:8080", Some(STAMP + 300_000)),
        owner(2, "an instance that gave it back", Some(STAMP + 300_002)),
        owner(3, "an instance that gave it back", Some(STAMP + 300_003)),
        owner(4, "10.0.0.6:77", Some(STAMP + 300_001)),
        owner(5, UNKNOWN, None),
        owner(6, UNKNOWN, None),
    ];
    assert_eq!(found(&state).expect("a right state"), expected);
}

#[test]
fn without_a_counter_the_highest_number_counts() {
    for counter in ["", "-1", "0"] {
        let state = machines(&[("a:1", "2|7")], &[], counter);
        let numbers: Vec<_> = found(&state)
            .expect("right")
            .iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(numbers, [0, 1, 2], "{counter:?}");
    }
}

#[test]
fn a_counter_beyond_the_layout_is_capped() {
    for counter in ["1023", "1024", "99999", "18446744073709551615"] {
        assert_eq!(
            found(&machines(&[], &[], counter)).expect("right").len(),
            1024,
            "{counter}"
        );
    }
    // A larger machine ID of an owner is kept: it shows that the layout is the wrong one.
    let state = machines(&[("a:1", "1024|7")], &[], "-1");
    assert_eq!(
        found(&state).expect("right").last(),
        Some(&owner(1024, "a:1", Some(300_007)))
    );
}

#[test]
fn a_machine_id_found_twice_is_one_owner_with_the_later_moment() {
    let state = machines(&[("a:1", "0|500"), ("b:1", "0|900")], &[("0", "700")], "0");
    let expected = [owner(
        0,
        "a:1, b:1, an instance that gave it back",
        Some(300_900),
    )];
    assert_eq!(found(&state).expect("right"), expected);
}

#[test]
fn a_stamp_of_minus_one_is_none_and_large_ones_are_kept() {
    let state = machines(
        &[("a:1", "0|-1")],
        &[("1", "1|-1"), ("2", "18446744073709551615")],
        "",
    );
    let expected = [
        owner(0, "a:1", None),
        owner(1, "an instance that gave it back", None),
        owner(2, "an instance that gave it back", Some(u64::MAX)),
    ];
    assert_eq!(found(&state).expect("right"), expected);
}

#[test]
fn a_missing_namespace_differs_from_an_empty_one() {
    let said = found(&Machines::default()).expect_err("nothing");
    assert!(
        said.starts_with("no machine IDs found in CosId's namespace `shop`; check"),
        "{said}"
    );
    assert_eq!(found(&machines(&[], &[], "-1")).expect("right"), []);
}

#[test]
fn malformed_entries_are_refused_and_named() {
    let odd = |state: &Machines, named: &str| {
        let said = found(state).expect_err(named);
        let expected = "unexpected entries (not written by CosId): ";
        assert!(
            said.starts_with(&format!("{expected}{named}; correct")),
            "{said}"
        );
    };
    let too_large = "18446744073709551616";
    for value in [
        "",
        "5",
        "|",
        "5|",
        "|7",
        "5|7|",
        "5|7|8",
        "+5|7",
        "5|+7",
        " 5|7",
        "5|7 ",
        "-1|7",
        "5|-2",
        "5|x",
        "5.0|7",
        "5|1.7e12",
        "５|7",
        "5;7",
        &format!("{too_large}|7"),
        &format!("5|{too_large}"),
    ] {
        odd(
            &machines(&[("a:1", value), ("b:1", "1|7")], &[], ""),
            &format!("at a:1 = {value:?}"),
        );
    }
    for (key, value) in [
        ("5", ""),
        ("5", "x"),
        ("5", "-2"),
        ("5", "6|7"),
        ("5", "5|"),
        ("5", "5|5|7"),
        ("", "7"),
        ("+5", "7"),
        ("-1", "7"),
        ("five", "7"),
        (too_large, "7"),
        ("5", too_large),
    ] {
        odd(
            &machines(&[], &[(key, value), ("1", "7")], ""),
            &format!("at {key} = {value:?}"),
        );
    }
    for counter in ["x", "-2", "+1", "1.5", " 1", "3 bytes, not 4", too_large] {
        let state = machines(&[("a:1", "1|7")], &[], counter);
        odd(&state, &format!("at counter = {counter:?}"));
    }
    let state = machines(&[("a:1", "x"), ("b:1", "2|7")], &[("z", "7")], "y");
    odd(&state, r#"at a:1 = "x", at z = "7", at counter = "y""#);
}

#[test]
fn an_error_has_a_readable_length() {
    let long = "\u{1b}".repeat(1000);
    let many: Vec<_> = (0..30).map(|_| ("a:1", long.as_str())).collect();
    let said = found(&machines(&many, &[], "")).expect_err("refused");
    assert!(
        said.contains(", and 20 more; correct") && said.len() < 5000,
        "{said}"
    );
    assert!(!said.contains('\u{1b}'));
}

#[test]
fn a_segment_belongs_to_its_namespace() {
    for (name, is) in [
        ("shop.order", true),
        ("shop.order@260131", true),
        ("shop.eu.order", true),
        ("shop.", false),
        ("shop", false),
        ("shopping.cart", false),
        ("Shop.order", false),
        ("a.shop.order", false),
        ("", false),
    ] {
        assert_eq!(is_within("shop", name), is, "{name}");
    }
}

#[test]
fn a_tag_continues_above_the_last_number() {
    let all = segments(entries(&[("shop.b", "200"), ("shop.a", "0")]), "shop").expect("right");
    let names: Vec<_> = all.iter().map(|it| (it.key.as_str(), it.last)).collect();
    assert_eq!(names, [("shop.a", 0), ("shop.b", 200)]);
    let tag = all[1].tag(50).expect("a right tag");
    assert_eq!(
        (tag.key.as_str(), tag.max_id, tag.step),
        ("shop.b", 201, 50)
    );
    assert_eq!(all[0].tag(50).expect("a right tag").max_id, 1);

    for last in [
        i64::MAX.unsigned_abs() - 1,
        i64::MAX.unsigned_abs(),
        u64::MAX,
    ] {
        let full = ForeignSegment {
            key: "shop.a".into(),
            last,
        };
        assert!(
            full.tag(1)
                .expect_err("used up")
                .to_string()
                .starts_with("first must be")
        );
    }
    let odd = ForeignSegment {
        key: "shop.a\n".into(),
        last: 1,
    };
    assert!(
        odd.tag(1)
            .expect_err("a control character")
            .to_string()
            .starts_with("tag: it must")
    );
}

#[test]
fn a_malformed_segment_is_refused_and_named() {
    let refused = |found: Vec<Entry>| segments(found, "shop").expect_err("refused").to_string();
    for value in [
        "",
        "-1",
        "-5",
        "x",
        "+7",
        "7.5",
        "18446744073709551616",
        "0 bytes, not 8",
    ] {
        let said = refused(entries(&[("shop.a", value), ("shop.b", "7")]));
        assert!(
            said.contains(&format!(": at shop.a = {value:?}; correct")),
            "{said}"
        );
    }
    assert!(refused(Vec::new()).starts_with("no segments found in CosId's namespace `shop`"));
}

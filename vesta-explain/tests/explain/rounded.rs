//! Rounded IDs, and how often other IDs look like them.

use proptest::prelude::*;
use vesta_explain::{in_javascript, rounded};

/// As printed by JavaScript engines, from public issues about rounded IDs.
#[test]
fn javascript_prints_the_shortest_number_of_a_double() {
    for (id, printed) in [
        (1_785_223_470_585_921_538, "1785223470585921500"),
        (175_928_847_299_117_063, "175928847299117060"),
        (1_342_647_857_257_299_304, "1342647857257299200"),
        (3_791_411_052_119_578_828, "3791411052119578600"),
        (1_234_567_890_123_456_789, "1234567890123456800"),
        (1_528_669_910_682_107_904, "1528669910682108000"),
        (9_223_372_036_854_775_807, "9223372036854776000"),
        (u64::MAX, "18446744073709552000"),
        (9_007_199_254_740_993, "9007199254740992"),
        (9_007_199_254_740_991, "9007199254740991"),
        (0, "0"),
    ] {
        assert_eq!(in_javascript(id), printed);
    }
}

#[test]
fn a_rounded_id_is_reported_with_its_possible_originals() {
    for (shown, by, from, until) in [
        // Its double is 1785223470585921536; the next ones are 256 away.
        (
            1_785_223_470_585_921_500,
            "JavaScript",
            1_785_223_470_585_921_408,
            1_785_223_470_585_921_664,
        ),
        // 175928847299117056, 32 apart.
        (
            175_928_847_299_117_060,
            "JavaScript",
            175_928_847_299_117_040,
            175_928_847_299_117_072,
        ),
        // Its double is 1785223470585920000; the numbers rounded to it begin 128 below.
        (
            1_785_223_470_585_920_000,
            "Excel",
            1_785_223_470_585_919_872,
            1_785_223_470_585_929_999,
        ),
        (
            18_446_744_073_709_500_000,
            "Excel",
            18_446_744_073_709_499_393,
            u64::MAX,
        ),
    ] {
        let found = rounded(shown).unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(
            (found.by, found.from, found.until),
            (by, from, until),
            "{shown}"
        );
    }
}

#[test]
fn exact_ids_are_not_called_rounded() {
    for id in [
        0,
        9_007_199_254_740_992,
        1_785_223_470_585_921_538,
        1_785_223_470_585_921_536, // the double itself, which JavaScript prints with zeros
        2_407_837_855_670_862_845,
        175_928_847_299_117_063,
        1_098_230_906_194_546_688,
        4_091_509_081_366_570, // one zero: too common
        u64::MAX,
    ] {
        assert_eq!(rounded(id), None, "{id}");
    }
}

/// Random numbers of a width in bits.
fn of_bits(bits: impl Strategy<Value = u32>) -> impl Strategy<Value = u64> {
    (any::<u64>(), bits).prop_map(|(raw, bits)| (raw | 1 << 63) >> (64 - bits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn bounds_of_a_number_from_javascript_hold_the_id(id in of_bits(57u32..=64)) {
        // The largest ones print as numbers above 64 bits, which no ID is.
        let Ok(shown) = in_javascript(id).parse() else { return Ok(()) };
        let found = rounded(shown).expect("it is rounded");
        prop_assert!((found.from..=found.until).contains(&id), "{found:?}");
        if found.by == "JavaScript" {
            let inside = [found.from, found.until].map(in_javascript);
            prop_assert_eq!(inside, [shown.to_string(), shown.to_string()]);
            let outside = [found.from - 1, found.until.saturating_add(1)].map(in_javascript);
            prop_assert!(!outside.contains(&shown.to_string()) || found.until == u64::MAX);
        }
    }

    #[test]
    fn bounds_of_a_number_from_excel_hold_the_id(id in 10_000_000_000_000_000u64..) {
        let step = 10u64.pow(id.ilog10() - 14);
        let found = rounded(id / step * step).expect("it is rounded");
        prop_assert!(found.by == "Excel" && (found.from..=found.until).contains(&id), "{found:?}");
    }
}

/// Share of random numbers by width: those that JavaScript prints unchanged, plus up to one in a hundred with the
/// zeros of Excel.
#[test]
fn few_other_ids_look_rounded() {
    let mut random = 42u64;
    let mut next = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        random ^ random >> 29
    };
    for bits in 54..=64 {
        let ids = (0..20_000).map(|_| (next() | 1 << 63) >> (64 - bits));
        let share = ids.filter(|id| rounded(*id).is_some()).count() as f64 / 20_000.0;
        let javascript = if bits > 56 {
            0.5f64.powi(bits - 53)
        } else {
            0.0
        };
        let most = javascript + 0.01;
        println!("{bits} bits: {:.2} %", share * 100.0);
        assert!(
            share <= 1.15 * most && share >= 0.8 * javascript,
            "{bits} bits: {share}, {most}"
        );
    }
}

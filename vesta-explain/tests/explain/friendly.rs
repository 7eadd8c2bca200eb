//! CosId's friendly IDs: written as its own parser does, round trips, and refusal of every other text.

use proptest::prelude::*;
use vesta_explain::layouts;
use vesta_explain::{friendly, is_friendly, parse_friendly};
use vesta_intf::Field::{Machine, Seq};
use vesta_intf::{Id, IdMeta, UnixMillis};

const HOUR: i64 = 3_600_000;

fn ahead(hours: i64) -> impl Fn(UnixMillis) -> Option<UnixMillis> {
    move |at| at.0.checked_add_signed(hours * HOUR).map(UnixMillis)
}

fn refused(layout: IdMeta, text: &str) -> String {
    parse_friendly(&layout, text, Some)
        .expect_err(text)
        .to_string()
}

/// From CosId's own classes for 2026-01-31T12:00:00.123+08:00 in Asia/Shanghai. The last two: the
/// same moment in UTC, and the largest ID of the layout.
#[test]
fn known_ids() {
    for (layout, raw, hours, text) in [
        (
            layouts::COSID,
            807_943_746_871_128_106,
            8,
            "20260131120000123-7-42",
        ),
        (
            layouts::COSID_SECOND,
            827_334_396_297_084_970,
            8,
            "20260131120000-7-42",
        ),
        (
            layouts::COSID_JS,
            789_007_565_307_434,
            8,
            "20260131120000123-7-42",
        ),
        (
            layouts::COSID,
            807_943_746_871_128_106,
            0,
            "20260131040000123-7-42",
        ),
        (
            layouts::COSID,
            i64::MAX.unsigned_abs(),
            0,
            "20890830074735551-1023-4095",
        ),
    ] {
        assert_eq!(
            friendly(&layout, raw, ahead(hours)).expect("an ID"),
            text,
            "{layout}"
        );
        assert_eq!(
            parse_friendly(&layout, text, ahead(-hours)).expect(text),
            raw,
            "{layout}"
        );
        assert!(is_friendly(text));
    }
}

#[test]
fn numbers_may_be_padded() {
    for text in [
        "20260131120000123-7-42",
        "20260131120000123-0007-00000000000000000000000042",
    ] {
        let id = parse_friendly(&layouts::COSID, text, ahead(-8)).expect(text);
        assert_eq!(id, 807_943_746_871_128_106);
    }
}

#[test]
fn other_texts_do_not_look_like_friendly_ids() {
    for text in [
        "",
        "-",
        "--",
        "1-2",
        "1-2-",
        "-1-2",
        "1--2",
        "1-2-3-4",
        "1-2-x",
        "+1-2-3",
        "1 -2-3",
        "１-2-3",
        "919108f7-52d1-4320-9bac-f847db4148a8",
        "-9223372036854775808",
    ] {
        assert!(!is_friendly(text), "{text}");
        let said = refused(layouts::COSID, text);
        assert_eq!(
            said,
            "id: a friendly ID of cosid is yyyyMMddHHmmssSSS-MACHINE-SEQUENCE"
        );
    }
}

#[test]
fn refusals_name_the_defect() {
    let (cosid, second) = (layouts::COSID, layouts::COSID_SECOND);
    for (layout, text, says) in [
        (
            cosid,
            "20260131120000-7-42",
            "of cosid is yyyyMMddHHmmssSSS-MACHINE-SEQUENCE",
        ),
        (
            second,
            "20260131120000123-7-42",
            "of cosid-second is yyyyMMddHHmmss-MACHINE-SEQUENCE",
        ),
        (
            cosid,
            "20260132120000123-7-42",
            "the time 20260132120000123 does not exist",
        ),
        (
            cosid,
            "20260229120000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20260001120000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20261301120000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20260100120000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20260131240000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20260131126000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20260131120060123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "19691231235959999-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "00000131120000123-7-42",
            "does not exist (expected yyyy",
        ),
        (
            cosid,
            "20191224155959999-7-42",
            "before 2019-12-24T16:00:00.000Z, where the layout begins",
        ),
        (cosid, "20890830074735552-7-42", "where the layout ends"),
        (
            cosid,
            "20260131120000123-1024-42",
            "machine must be 0 to 1023, but is 1024",
        ),
        (
            cosid,
            "20260131120000123-7-4096",
            "seq must be 0 to 4095, but is 4096",
        ),
        (
            cosid,
            "20260131120000123-7-99999999999999999999",
            "seq must be 0 to 4095",
        ),
        (
            layouts::SONYFLAKE,
            "20260131120000123-7-42",
            "between two ticks of sonyflake (one: 10 ms)",
        ),
    ] {
        let said = refused(layout, text);
        assert!(said.contains(says), "{text}: {said}");
    }
    assert!(parse_friendly(&layouts::COSID, "20260131120000123-7-42", |_| None).is_err());
    assert!(friendly(&layouts::COSID, 7, |_| None).is_err());
    assert!(
        friendly(&layouts::COSID_JS, 1 << 53, Some).is_err(),
        "its IDs end at 53 bits"
    );
    let leap = parse_friendly(&layouts::COSID, "20280229120000123-7-42", Some).expect("a leap day");
    assert_eq!(
        friendly(&layouts::COSID, leap, Some).expect("an ID"),
        "20280229120000123-7-42"
    );
}

proptest! {
    /// Within the years 1971 to 9998, so that no time zone leaves them.
    #[test]
    fn every_id_round_trips(at in 31_536_000_000..253_339_228_800_000u64, parts: (u64, u64), hours in -12..15i64) {
        for layout in layouts::all() {
            let Ok(time) = layout.tick_at(UnixMillis(at)) else { continue };
            let (machine, seq) = (parts.0 & layout.max(Machine), parts.1 & layout.max(Seq));
            let raw = layout.pack(&Id { time, machine, seq, ..layout.blank() }).unwrap();
            let text = friendly(&layout, raw, ahead(hours)).unwrap();
            prop_assert!(is_friendly(&text));
            prop_assert_eq!(parse_friendly(&layout, &text, ahead(-hours)).unwrap(), raw, "{} {}", layout, text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9]{14}-[0-9]{1,4}-[0-9]{1,4}|[0-9]{17}-[0-9]{1,4}-[0-9]{1,4}|[0-9-]{0,30}|\\PC{0,30}") {
        for layout in layouts::all() {
            if let Ok(raw) = parse_friendly(&layout, &text, Some) {
                let again = friendly(&layout, raw, Some).unwrap();
                let numbers = |text: &str| -> Vec<u128> { text.split('-').map(|it| it.parse().unwrap()).collect() };
                prop_assert_eq!(numbers(&again), numbers(&text));
            }
        }
    }
}

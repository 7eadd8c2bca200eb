//! IDs as people, programs and exports write them.

use vesta_explain::{Written, layouts, read, read_as};
use vesta_intf::{IdFormat, UnixMillis, UuidV7};

const ID: u64 = 2_407_837_855_670_862_845;

/// All readings of a text, by the names of their forms.
fn ids(text: &str) -> Vec<(&'static str, u64)> {
    match read(text) {
        Ok(Written::Ids(ids)) => ids.iter().map(|it| (it.form.name(), it.id)).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

/// IDs of every layout that makes some: at its begin, in 2024 and at its end, with low, odd and highest fields.
fn samples() -> Vec<u64> {
    let mut samples = vec![0, 1, ID, u64::MAX];
    for layout in layouts::all() {
        for millis in [1_704_067_200_000, 1_785_000_000_123, 1_795_651_200_000] {
            let Ok(tick) = layout.tick_within(UnixMillis(millis)) else {
                continue;
            };
            for part in [0, 7, u64::MAX] {
                let id = vesta_intf::Id {
                    time: tick,
                    seq: part.min(layout.max(vesta_intf::Field::Seq)),
                    machine: part.min(layout.max(vesta_intf::Field::Machine)),
                    ..layout.blank()
                };
                samples.extend(layout.pack(&id));
            }
        }
    }
    samples
}

#[test]
fn every_format_is_among_the_readings_and_read_exactly_by_its_name() {
    let samples = samples();
    assert!(samples.len() > 150, "{}", samples.len());
    for format in IdFormat::ALL {
        for id in &samples {
            let text = format.encode(*id);
            assert_eq!(read_as(&text, format).ok(), Some(*id), "{text}");
            let found = ids(&text);
            // A number with its leading zeros is the same number in decimal.
            assert!(
                found.iter().any(|it| it.1 == *id),
                "{format} {text}: {found:?}"
            );
            // Each is what its own format reads.
            for (name, read) in found {
                let format = name.parse::<IdFormat>();
                let again = format.ok().and_then(|format| read_as(&text, format).ok());
                assert!(name == "tid" || again == Some(read), "{name} {text}");
            }
        }
    }
}

#[test]
fn uuids_of_version_7_are_read_as_ids_of_their_layout() {
    let (samples, mut read) = (samples(), 0);
    for layout in layouts::all() {
        let Ok(uuids) = UuidV7::new(&layout) else {
            continue;
        };
        for id in &samples {
            if let Ok(text) = uuids.format(*id) {
                // Other layouts may have the same UUID, of the same ID.
                assert_eq!(ids(text.as_str()), [("uuid-v7", *id)], "{layout}");
                read += 1;
            }
        }
    }
    assert!(read > 500, "{read}");
}

/// `Radix36IdConverter` and `Radix62IdConverter`, padded and not: digits, upper-case and lower-case letters.
#[test]
fn cosids_texts_are_read_with_and_without_padding() {
    let mut state = 42u64;
    for n in 0..120u64 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // 2020 to 2026, in milliseconds since its epoch.
        let (time, low) = (1_000_000_000 + n * 1_700_000_000, state >> 42);
        let id = time << 22 | low;
        for format in [IdFormat::Base36, IdFormat::Base62] {
            let padded = format.encode(id);
            let bare = padded.trim_start_matches('0');
            for text in [&*padded, bare] {
                let found = ids(text);
                assert!(
                    found.iter().any(|it| it.1 == id),
                    "{format} {text}: {found:?}"
                );
                assert_eq!(read_as(text, format).ok(), Some(id), "{text}");
            }
        }
    }
    assert_eq!(
        ids("64XWEPJXTR0QQ").first().map(|it| it.0),
        Some("crockford")
    );
}

#[test]
fn a_text_that_fits_several_formats_has_all_of_them() {
    for (text, all) in [
        (
            "0IAKJA8DRATQ5",
            &[("base36", ID), ("crockford", 47_976_443_015_424_741)][..],
        ),
        (
            "12854822224129331276",
            &[
                ("decimal", 12_854_822_224_129_331_276),
                ("decimal-luhn", 1_285_482_222_412_933_127),
            ],
        ),
        (
            "0x123456789",
            &[("hex", 4_886_718_345), ("base62", 798_913_663_704_924_021)],
        ),
        ("0x0123456789", &[("hex", 4_886_718_345)]),
        (
            "0x123456789ab",
            &[
                ("hex", 1_250_999_896_491),
                ("crockford", 1_046_034_823_752_459_595),
            ],
        ),
        (
            "3k4duaz5vfs2b",
            &[
                ("tid", 1_731_979_542_948_864_007),
                ("base36", 16_863_608_498_488_516_307),
            ],
        ),
        ("7e39c56700c0001", &[("hex", 568_469_873_039_769_601)]),
        ("0000000000000400", &[("decimal", 400), ("hex", 1024)]),
        ("-1", &[("signed", u64::MAX)]),
        ("-9223372036854775808", &[("signed", 1 << 63)]),
        ("02407837855670862845", &[("padded-decimal", ID)]),
        (
            "22tjvrqoooozx",
            &[("base36", 9_848_053_946_594_847_885), ("crockford", ID)],
        ),
    ] {
        let found = ids(text);
        assert!(all.iter().all(|it| found.contains(it)), "{text}: {found:?}");
        assert_eq!(found[0], all[0], "{text}: {found:?}");
    }
    let one = |text: &str| read(text).and_then(|it| it.one("--format")).map(|it| it.id);
    assert_eq!(
        one("12854822224129331276").ok(),
        Some(12_854_822_224_129_331_276)
    );
    let said = one("0IAKJA8DRATQ5").unwrap_err().to_string();
    let all =
        "several formats: base36 (2407837855670862845), crockford (47976443015424741); choose";
    assert!(said.contains(all), "{said}");
}

#[test]
fn writing_around_a_number_is_taken_off_and_named() {
    let id = 1_785_223_470_585_921_538;
    for (text, names) in [
        ("1785223470585921538", &[][..]),
        (" \"1785223470585921538\" ", &["quotes or brackets"]),
        ("'1785223470585921538", &["quotes or brackets"]),
        ("“1785223470585921538”", &["quotes or brackets"]),
        ("「1785223470585921538」", &["quotes or brackets"]),
        ("[1785223470585921538]", &["quotes or brackets"]),
        ("\\\"1785223470585921538\\\"", &["quotes or brackets"]),
        ("\u{feff}1785223470585921538", &["invisible characters"]),
        (
            "\u{202d}1785223470585921538\u{202c}",
            &["invisible characters"],
        ),
        ("\u{a0}1785223470585921538\u{3000}", &[]),
        (
            "１７８５２２３４７０５８５９２１５３８",
            &["full-width characters"],
        ),
        (
            "＂1785223470585921538＂",
            &["full-width characters", "quotes or brackets"],
        ),
        ("| 1785223470585921538 |", &["table border"]),
        ("│ 1785223470585921538 │", &["table border"]),
        ("1785223470585921538,", &["punctuation behind it"]),
        (
            "\"1785223470585921538\";",
            &["punctuation behind it", "quotes or brackets"],
        ),
        (
            "=\"1785223470585921538\"",
            &["formula of a spreadsheet", "quotes or brackets"],
        ),
        (
            "{\"$numberLong\":\"1785223470585921538\"}",
            &["member of JSON", "quotes or brackets"],
        ),
        ("{ \"id\": 1785223470585921538 }", &["member of JSON"]),
        (
            "\"id\": 1785223470585921538,",
            &["punctuation behind it", "label"],
        ),
        ("1785223470585921538::bigint", &["type cast"]),
        ("(integer) 1785223470585921538", &["type cast"]),
        (
            "NumberLong(\"1785223470585921538\")",
            &["constructor", "quotes or brackets"],
        ),
        ("NumberLong(1785223470585921538)", &["constructor"]),
        (
            "Long('1785223470585921538')",
            &["constructor", "quotes or brackets"],
        ),
        (
            "new Long( \"1785223470585921538\" )",
            &["constructor", "quotes or brackets"],
        ),
        ("np.int64(1785223470585921538)", &["constructor"]),
        ("CAST(1785223470585921538 AS BIGINT)", &["constructor"]),
        (
            "Decimal('1785223470585921538')",
            &["constructor", "quotes or brackets"],
        ),
        ("ID_1785223470585921538", &["label"]),
        ("id=1785223470585921538", &["label"]),
        ("user:1785223470585921538", &["label"]),
        ("#1785223470585921538", &["label"]),
        ("ORD-1785223470585921538", &["label"]),
        ("<@!1785223470585921538>", &["mention"]),
        ("1785223470585921538n", &["literal of a language"]),
        ("1785223470585921538L", &["literal of a language"]),
        ("1785223470585921538UL", &["literal of a language"]),
        ("1785223470585921538ull", &["literal of a language"]),
        (
            "1_785_223_470_585_921_538_u64",
            &["literal of a language", "digit separators"],
        ),
        ("X'18C66349B8F6C002'", &["hexadecimal or binary literal"]),
        ("\\x18c66349b8f6c002", &["hexadecimal or binary literal"]),
        ("+1785223470585921538", &["plus sign"]),
        ("1,785,223,470,585,921,538", &["digit separators"]),
        ("1.785.223.470.585.921.538", &["digit separators"]),
        (
            "1\u{202f}785\u{202f}223\u{202f}470\u{202f}585\u{202f}921\u{202f}538",
            &["digit separators"],
        ),
        ("1'785'223'470'585'921'538", &["digit separators"]),
        ("1_785_223_470_585_921_538", &["digit separators"]),
        ("1785223470585921538.0", &["decimal fraction"]),
        ("1785223470585921538,00", &["decimal fraction"]),
        ("1.785223470585921538E+18", &["scientific notation"]),
    ] {
        let Ok(Written::Ids(found)) = read(text) else {
            panic!("{text}: {:?}", read(text));
        };
        let it = found
            .iter()
            .find(|it| it.id == id)
            .unwrap_or_else(|| panic!("{text}: {found:?}"));
        let around: Vec<_> = it.around.iter().map(|it| it.name).collect();
        assert_eq!(around, names, "{text}");
    }
    assert_eq!(ids("(-1)"), [("signed", u64::MAX)]);
    assert_eq!(ids("\u{2212}1"), [("signed", u64::MAX)]);
    assert_eq!(ids("-1L"), [("signed", u64::MAX)]);
    // A literal may be base62, too.
    assert_eq!(ids("2407837855L")[0].0, "base62");
    assert!(ids("2407837855L").contains(&("decimal", 2_407_837_855)));
}

/// IDs that Python, Go, Lua, PHP, Java, C# and Excel print in these texts.
#[test]
fn a_notation_that_loses_digits_has_an_interval_and_a_remedy() {
    let id = 1_785_223_470_585_921_538;
    for (text, from, until) in [
        // 17 digits name the double, whose neighbours are 256 away.
        (
            "1.7852234705859215e+18",
            1_785_223_470_585_921_408,
            1_785_223_470_585_921_664,
        ),
        (
            "1.7852234705859215E18",
            1_785_223_470_585_921_408,
            1_785_223_470_585_921_664,
        ),
        (
            "np.float64(1.7852234705859215e+18)",
            1_785_223_470_585_921_408,
            1_785_223_470_585_921_664,
        ),
        // 14 and 15 digits.
        (
            "1.7852234705859e+18",
            1_785_223_470_585_849_984,
            1_785_223_470_586_000_000,
        ),
        (
            "1.78522347058592E+18",
            1_785_223_470_585_914_880,
            1_785_223_470_585_930_112,
        ),
        (
            "\"1,78522E+18\"",
            1_785_214_999_999_999_872,
            1_785_230_000_000_000_127,
        ),
    ] {
        let Ok(Written::Lost {
            by,
            from: least,
            until: most,
        }) = read(text)
        else {
            panic!("{text}: {:?}", read(text));
        };
        assert_eq!(
            (by.name, by.remedy),
            ("scientific notation", "export the column as text")
        );
        assert!((least..=most).contains(&id), "{text}: {least} to {most}");
        assert!(
            least.abs_diff(from) <= 256 && most.abs_diff(until) <= 256,
            "{text}: {least} to {most}"
        );
        let said = read(text)
            .and_then(|it| it.one("--format"))
            .unwrap_err()
            .to_string();
        let all = format!("lies between {least} and {most}; export the column as text");
        assert!(said.contains(&all), "{said}");
    }
    // The whole number is that of a double.
    let fraction = read("1785223470585921536.0");
    assert!(
        matches!(
            fraction,
            Ok(Written::Lost {
                from: 1_785_223_470_585_921_408,
                until: 1_785_223_470_585_921_664,
                ..
            })
        ),
        "{fraction:?}"
    );
    // Below 2^53 nothing is lost.
    assert_eq!(
        ids("4091509081366570.0")[0],
        ("decimal", 4_091_509_081_366_570)
    );
    assert_eq!(ids("4.091509081366570e+15")[0].1, 4_091_509_081_366_570);
}

#[test]
fn an_unreadable_text_is_refused_with_the_accepted_forms() {
    for (text, said) in [
        ("", "it must be decimal"),
        ("hello", "base62 (11 characters)"),
        ("none", "it must be decimal"),
        ("18446744073709551616", "above 18446744073709551615"),
        ("-9223372036854775809", "-9223372036854775808 or above"),
        ("--1", "it must be decimal"),
        ("0xabcdefabcdefabcdef", "exactly 16 characters"),
        ("22TJVRQ0000ZX2", "check symbol is wrong"),
        ("zzzzzzzzzzZ", "above"),
        ("81ARYZ6S41TSV4RRFFQ69G5FAV", "above 128 bits"),
        (
            "919108f7-52d1-4320-9bac-f847db4148ag",
            "character 36 is 'g'",
        ),
        ("0x", "it must be decimal"),
        ("{123}", "it must be decimal"),
        ("0x-12345678", "not a digit"),
        ("九一九一零八七四三二零九", "must be"),
        ("1e40", "it must be decimal"),
        ("1.5n", "it must be decimal"),
        ("1.5", "it must be decimal"),
        ("n", "it must be decimal"),
        ("18446744073709551616n", "above"),
        ("user_id", "it must be decimal"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

/// Multi-byte characters, at every length and place.
#[test]
fn no_text_makes_the_reader_panic() {
    for length in 0..48 {
        for at in 0..length {
            for filler in ["a", "0", "F", "z", "1,", "\"", "e", "("] {
                let text = [&filler.repeat(at), "九", &filler.repeat(length - at)].concat();
                assert!(read(&text).is_err(), "{text}");
            }
        }
    }
}

/// The examples of RFC 9562, Appendix A, and of the ULID specification.
#[test]
fn ids_of_128_bits_are_named() {
    let moment = Some(UnixMillis(1_645_557_742_000));
    for (text, version) in [
        ("C232AB00-9414-11EC-B3C8-9F6BDECED846", 1),
        ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", 6),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7),
        ("017F22E279B07CC398C4DC0C0C07398F", 7),
        ("{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}", 7),
        ("urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", 7),
        ("URN:UUID:017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7),
    ] {
        assert_eq!(
            read(text).ok(),
            Some(Written::Long {
                kind: format!("UUID of version {version}"),
                bits: 128,
                moment
            }),
            "{text}"
        );
    }
    let unversioned = Some(Written::Long {
        kind: "UUID of version 4".to_owned(),
        bits: 128,
        moment: None,
    });
    let random = read("919108f7-52d1-4320-9bac-f847db4148a8");
    assert_eq!(random.ok(), unversioned);
    let digits = read("12345678901242348901234567890123"); // all decimal, but too many digits
    assert_eq!(digits.ok(), unversioned);
}

/// The examples of their specifications and READMEs: ULID, MongoDB's `getTimestamp`, segmentio/ksuid,
/// svix-ksuid, ksuid-cli, rs/xid, epyxid.
#[test]
fn longer_ids_are_named_with_their_time() {
    for (text, kind, bits, time) in [
        (
            "01ARYZ6S41TSV4RRFFQ69G5FAV",
            "ULID",
            128,
            "2016-07-30T22:36:16.385Z",
        ),
        (
            "507c7f79bcf86cd7994f6c0e",
            "ObjectId",
            96,
            "2012-10-15T21:26:17.000Z",
        ),
        (
            "\"507C7F79BCF86CD7994F6C0E\"",
            "ObjectId",
            96,
            "2012-10-15T21:26:17.000Z",
        ),
        (
            "507079790286077994160120",
            "ObjectId",
            96,
            "2012-10-06T18:33:29.000Z",
        ), // digits alone
        (
            "0ujtsYcgvSTl8PAuAdqWYSMnLOv",
            "KSUID",
            160,
            "2017-10-10T04:00:47.000Z",
        ),
        (
            "1srOrx2ZWZBpBUvZwXKQmoEYga2",
            "KSUID",
            160,
            "2021-05-21T20:04:03.000Z",
        ),
        (
            "151zOCJ2I9szGtX4VwDJjnmvrpZ",
            "KSUID",
            160,
            "2018-05-24T01:46:00.000Z",
        ),
        (
            "aWgEPTl1tmebfsQzFP4bxwgy80V",
            "KSUID",
            160,
            "2150-06-19T23:21:35.000Z",
        ), // the largest
        (
            "9m4e2mr0ui3e8a215n4g",
            "XID",
            96,
            "2011-03-22T17:50:19.000Z",
        ),
        (
            "cnisffq7qo0qnbtbu5gg",
            "XID",
            96,
            "2024-03-04T13:08:15.000Z",
        ),
    ] {
        let Ok(Written::Long {
            kind: found,
            bits: width,
            moment,
        }) = read(text)
        else {
            panic!("{text}")
        };
        let moment = moment.expect(text).to_string();
        assert_eq!(
            (found.as_str(), width, moment.as_str()),
            (kind, bits, time),
            "{text}"
        );
    }
}

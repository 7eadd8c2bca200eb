//! Serials: formatting and parsing, and patterns that would not allow both.

use proptest::prelude::*;
use vesta_intf::{CheckSymbol, ErrorKind, IdError};
use vesta_numbers::serial::{CivilHour, Pattern, Reset};

const NOON: CivilHour = CivilHour {
    year: 2026,
    month: 11,
    day: 22,
    hour: 12,
};

fn pattern(text: &str, reset: Reset) -> Pattern {
    Pattern::new(text, reset).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn serial(text: &str, reset: Reset, counter: u64) -> String {
    pattern(text, reset)
        .format(&NOON, counter)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn known_serials() {
    for (text, reset, counter, expected) in [
        (
            "INV-{date:yyMMdd}-{n:6}{check:damm}",
            Reset::Day,
            42,
            "INV-261122-0000427",
        ),
        ("{date:yyMMdd}-BIZ{n:6}", Reset::Day, 1, "261122-BIZ000001"), // CosId's date and prefix
        ("{n:13:base36}", Reset::Never, 352_546_905, "00000005TWAXL"), // CosId's radix 36
        (
            "{n:11:base62}",
            Reset::Never,
            438_338_964_253_212_672,
            "0WNb1HFWYC0",
        ), // and 62
        (
            "{n:13:crockford}{check:crockford}",
            Reset::Never,
            175_928_847_299_117_063,
            "04W86BB0G4007R",
        ),
        (
            "{n:1+}{check:luhn}",
            Reset::Never,
            175_928_847_299_117_063,
            "1759288472991170634",
        ),
        (
            "{n:1+}{check:mod97}",
            Reset::Never,
            175_928_847_299_117_063,
            "17592884729911706354",
        ),
        (
            "{date:yyyy.MM.dd/HH}_{n:3}",
            Reset::Month,
            7,
            "2026.11.22/12_007",
        ),
        ("{date:yyyyDDD}{n:3+}", Reset::Month, 1234, "20263261234"),
        ("订单{{{n:2}}}", Reset::Never, 7, "订单{07}"),
        ("{shuffle:8}", Reset::Never, 48_066_486, "48066486"),
    ] {
        assert_eq!(serial(text, reset, counter), expected, "{text}");
        let parsed = pattern(text, reset).parse(expected).expect(expected);
        assert_eq!(parsed.counter, counter, "{text}");
        let period = reset.show(reset.period(&NOON));
        assert_eq!(parsed.period.unwrap_or_default(), period, "{text}");
    }
}

/// Weeks and fiscal years of 2026-11-22, a Sunday, and of days around the turn of a year.
#[test]
fn quarters_weeks_and_fiscal_years() {
    let april: Reset = "year:04-01".parse().unwrap();
    let july: Reset = "year:07-01".parse().unwrap();
    let date = |year, month, day| CivilHour {
        year,
        month,
        day,
        hour: 9,
    };
    for (text, reset, on, expected, shown, period) in [
        (
            "Q{q}/{date:yy}-{n:3}",
            Reset::Quarter,
            NOON,
            "Q4/26-007",
            "2026-Q4",
            "2026-Q4",
        ),
        (
            "{date:yyyyMM}{n:3}",
            Reset::Quarter,
            NOON,
            "202611007",
            "2026-11",
            "2026-Q4",
        ),
        (
            "{date:YYYY}-W{ww}-{n:3}",
            Reset::Week,
            NOON,
            "2026-W47-007",
            "2026-W47",
            "2026-W47",
        ),
        (
            "{date:YY}{ww}{n:3}",
            Reset::Week,
            date(2027, 1, 3),
            "2653007",
            "2026-W53",
            "2026-W53",
        ),
        (
            "{date:YY}{ww}{n:3}",
            Reset::Week,
            date(2024, 12, 30),
            "2501007",
            "2025-W01",
            "2025-W01",
        ),
        (
            "{date:yyMMdd}{n:3}",
            Reset::Week,
            date(2027, 1, 3),
            "270103007",
            "2027-01-03",
            "2026-W53",
        ),
        (
            "{fy:yy-yy}/{n:3}",
            april,
            NOON,
            "26-27/007",
            "2026-04-01",
            "2026-04-01",
        ),
        (
            "{fy:yy-yy}/{n:3}",
            april,
            date(2026, 3, 31),
            "25-26/007",
            "2025-04-01",
            "2025-04-01",
        ),
        (
            "FY{fy:yyyy}-{n:3}",
            july,
            date(2026, 7, 1),
            "FY2026-007",
            "2026-07-01",
            "2026-07-01",
        ),
        (
            "{fy:yy}{date:yyMMdd}{n:3}",
            april,
            NOON,
            "26261122007",
            "2026-11-22",
            "2026-04-01",
        ),
        (
            "{date:yyDDD}{n:3}",
            july,
            NOON,
            "26326007",
            "2026-11-22",
            "2026-07-01",
        ),
    ] {
        let pattern = pattern(text, reset);
        assert_eq!(pattern.format(&on, 7).unwrap(), expected, "{text}");
        let parsed = pattern.parse(expected).expect(expected);
        assert_eq!(parsed.counter, 7);
        assert_eq!(parsed.date.as_deref(), Some(shown), "{text}");
        assert_eq!(parsed.period.as_deref(), Some(period), "{text}");
    }
    for (text, reset, serial, expected) in [
        (
            "{date:yy}{q}-{n:1}",
            Reset::Quarter,
            "265-1",
            "quarter 5 does not exist",
        ),
        (
            "{date:yyMMq}-{n:1}",
            Reset::Quarter,
            "26113-1",
            "at character 5: the quarter (q) does not match the date",
        ),
        (
            "{date:YY}{ww}-{n:1}",
            Reset::Week,
            "2500-1",
            "week 0 does not exist",
        ),
        (
            "{date:YY}{ww}-{n:1}",
            Reset::Week,
            "2553-1",
            "does not match the date",
        ), // 2025 has 52
        (
            "{fy:yy-yy}-{n:1}",
            april,
            "25-27-1",
            "the end of the fiscal year (fy) does not match",
        ),
        (
            "{fy:yy}{date:yyMMdd}{n:1}",
            april,
            "262603311",
            "the fiscal year (fy) does not match",
        ),
    ] {
        let said = refusal(
            pattern(text, reset).parse(serial).expect_err(serial),
            "serial",
        );
        assert!(said.contains(expected), "{serial}: {said}");
    }
    for (text, reset, expected) in [
        ("{n:3}{q}", Reset::Never, "requires the year (yy or yyyy)"),
        (
            "{date:yy}{n:3}",
            Reset::Quarter,
            "restarts each quarter; without the quarter (q)",
        ),
        (
            "{date:yy}{ww}{n:3}",
            Reset::Week,
            "requires the year of the week (YY or YYYY)",
        ),
        ("{date:YYYY}{n:3}", Reset::Never, "requires the week (ww)"),
        (
            "{date:YYYYwwyyMM}{n:3}",
            Reset::Week,
            "beside other parts of the date the week (ww) requires the day",
        ),
        ("{date:yyMM}{n:3}", Reset::Week, "without the week (ww)"),
        (
            "{fy:yy-yy}{n:3}",
            Reset::Year,
            "fy needs a counter that restarts each fiscal year",
        ),
        (
            "{fy:yy-yy-yy}{n:3}",
            april,
            "the end of the fiscal year (fy) overlaps",
        ),
        ("{fy:yy-MM}{n:3}", april, "`MM` is not one of yy, yyyy"),
        (
            "{date:yyyy}{n:3}",
            april,
            "restarts each fiscal year; without the fiscal year (fy)",
        ),
        (
            "{fy:yy}{date:yy}{n:3}",
            april,
            "the fiscal year (fy) requires the day",
        ),
        ("{fy:yy}{date:YYww}{n:3}", april, "requires the day"),
        ("{q:x}{n:3}", Reset::Never, "`q` is not one of"),
    ] {
        let said = refusal(Pattern::new(text, reset).expect_err(text), "pattern");
        assert!(said.contains(expected), "{text}: {said}");
    }
}

/// `all` covers everything before it: a letter counts as in an IBAN, or by its value in Crockford's base32.
#[test]
fn a_check_symbol_covers_the_counter_or_all() {
    let damm = serial("{date:yyMMdd}{n:6}{check:damm:all}", Reset::Day, 42);
    let number = vesta_intf::IdFormat::DecimalDamm.encode(261_122_000_042);
    assert_eq!(damm, number);
    // GB82 WEST 1234 5698 7654 32 in the order of its standard: bank and account first, then GB and the
    // check digits.
    let iban = pattern("WEST{n:14}GB{check:mod97:all}", Reset::Never);
    assert_eq!(
        iban.format(&NOON, 12_345_698_765_432).unwrap(),
        "WEST12345698765432GB82"
    );
    let both = pattern("K7{n:3:crockford}{check:crockford:all}", Reset::Never);
    let value = (19 * 32 + 7) * 32_768 + 5;
    let expected = vesta_intf::IdFormat::CrockfordCheck.encode(value);
    assert_eq!(both.format(&NOON, 5).unwrap(), expected[8..]);
    for changed in ["K8005", "L7005", "K7006"] {
        let wrong = format!("{changed}{}", &expected[13..]);
        assert!(both.parse(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_serial_parses_to_its_parts() {
    let day = pattern("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day);
    let parsed = day.parse("INV-261122-0000427").unwrap();
    assert_eq!(parsed.date.as_deref(), Some("2026-11-22"));
    assert_eq!(
        (parsed.counter, parsed.check),
        (42, Some(CheckSymbol::Damm))
    );
    assert_eq!(parsed.period.as_deref(), Some("2026-11-22"));
    for (text, reset, serial, date) in [
        ("{date:yyyy}-{n:1}", Reset::Year, "1970-1", Some("1970")),
        (
            "{date:yyyyMM}-{n:1}",
            Reset::Year,
            "202611-1",
            Some("2026-11"),
        ),
        (
            "{date:yyDDD}-{n:1}",
            Reset::Day,
            "24366-1",
            Some("2024-12-31"),
        ),
        (
            "{date:yyMMddHH}-{n:1}",
            Reset::Day,
            "24022923-1",
            Some("2024-02-29T23"),
        ),
        ("{n:1}", Reset::Never, "1", None),
    ] {
        let parsed = pattern(text, reset).parse(serial).expect(serial);
        assert_eq!(
            (parsed.date.as_deref(), parsed.check),
            (date, None),
            "{text}"
        );
    }
    // Lenient about spellings of digits.
    let coupon = pattern("{n:4:crockford}{check:crockford}", Reset::Never);
    let written = coupon.format(&NOON, (32 + 1) * 32).unwrap();
    assert_eq!(written, "0110M");
    assert_eq!(coupon.parse("oIl0m").unwrap().counter, 33 * 32);
    let lower = pattern("{n:3:base36}", Reset::Never).parse("0ab").unwrap();
    assert_eq!(lower.counter, 371);
}

fn refusal(error: IdError, field: &str) -> String {
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let said = error.to_string();
    let reason = said.strip_prefix(&format!("{field}: "));
    reason.unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn a_mismatching_serial_is_refused_with_the_position() {
    let day = pattern("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day);
    for (serial, expected) in [
        (
            "",
            "a serial of INV-{date:yyMMdd}-{n:6}{check:damm} has 18 characters, such as INV-261122-0000013; this one has 0",
        ),
        ("INV-261122-00000427", "; this one has 19"),
        ("inv-261122-0000427", "character 1 is 'i', but must be 'I'"),
        ("INV_261122-0000427", "character 4 is '_', but must be '-'"),
        (
            "INV-26112x-0000427",
            "character 10 is 'x', but must be a digit of the date",
        ),
        (
            "INV-261122-00 0427",
            "character 14 is ' ', but must be a digit of the counter",
        ),
        (
            "INV-261322-0000427",
            "at character 7: month 13 does not exist",
        ),
        (
            "INV-260022-0000427",
            "at character 7: month 0 does not exist",
        ),
        (
            "INV-261131-0000427",
            "at character 9: day 31 does not exist",
        ),
        (
            "INV-260229-0000427",
            "at character 9: day 29 does not exist",
        ),
        ("INV-261100-0000427", "at character 9: day 0 does not exist"),
        ("INV-261122-0000428", "its check symbol is wrong (damm)"),
        ("INV-261122-0000437", "its check symbol is wrong (damm)"),
        ("INV-261122-000042é", "its check symbol is wrong (damm)"),
    ] {
        let said = refusal(day.parse(serial).expect_err(serial), "serial");
        assert!(said.contains(expected), "{serial}: {said}");
    }
    assert!(day.parse("INV-240229-0000427").is_ok(), "a leap day");
    for (text, reset, serial, expected) in [
        (
            "{date:yyyyDDD}{n:1}",
            Reset::Day,
            "20263661",
            "at character 5: day 366 does not exist",
        ),
        (
            "{date:yyyyDDD}{n:1}",
            Reset::Day,
            "20260001",
            "at character 5: day 0 does not exist",
        ),
        (
            "{date:yyyy}{n:1}",
            Reset::Year,
            "19691",
            "at character 1: year 1969 does not exist",
        ),
        (
            "{date:yyMMddHH}{n:1}",
            Reset::Day,
            "261122241",
            "at character 7: hour 24 does not exist",
        ),
        (
            "{date:yyyyMM/DDD}{n:1}",
            Reset::Day,
            "202612/3261",
            "at character 8: day 326 does not exist",
        ),
        (
            "{n:2+}",
            Reset::Never,
            "007",
            "its counter has leading zeros",
        ),
        (
            "{n:2+}",
            Reset::Never,
            "7",
            "has 2 or more characters, such as 01; this one has 1",
        ),
        (
            "{n:18+}",
            Reset::Never,
            "99999999999999999999",
            "its counter has more than 64 bits",
        ),
        (
            "{n:1+}",
            Reset::Never,
            "9223372036854775807",
            "counter must be 0 to 9223372036854775806",
        ),
        (
            "{date:yyMMdd}{n:13}",
            Reset::Day,
            "2611221099511627776",
            "counter must be 0 to 1099511627774",
        ),
        (
            "{n:5}{check:mod97}",
            Reset::Never,
            "0000196",
            "its check symbols are wrong (mod97)",
        ),
    ] {
        let said = refusal(
            pattern(text, reset).parse(serial).expect_err(serial),
            "serial",
        );
        assert!(said.contains(expected), "{serial}: {said}");
    }
}

/// A reset, a pattern, and part of the expected error.
const REFUSED: &str = "
Never INV at character 4: a counter is missing, such as {n:6}
Never A{n:6 at character 2: unclosed brace
Never A{ at character 2: unclosed brace
Never A{n{n:6} at character 2: unclosed brace
Never A}{n:6} at character 2: unmatched closing brace
Never {seq:6} at character 2: `seq` is not one of date, q, ww, fy, n, shuffle, check
Never {} at character 2: `` is not one of
Never {n} at character 4: the width must be 1 to 18 digits
Never {n:0} at character 4: the width
Never {n:19} at character 4: the width
Never {n:+6} at character 4: the width
Never {n:６} at character 4: the width
Never {n:6:hex} at character 6: `hex` is not one of decimal, base36, base62, crockford
Never {n:6}-{n:6} at character 8: the counter overlaps the one at character 2
Never {n:6}{shuffle:6} at character 7: the counter overlaps the one at character 2
Never {shuffle:6+} at character 10: a shuffled counter cannot grow
Day {date:yyMMdd}{shuffle:9} at character 15: the shuffled order would repeat each day, which reveals how many there were
Never {shuffle:18:base36} at character 2: this many digits exceed the counter's 63 bits
Never {date:}{n:6} at character 7: a format is missing
Never {date:yyMMDD}{n:6} at character 11: `DD` is not one of yy, yyyy, MM, dd, DDD, HH
Never {date:yy-mm}{n:6} at character 10: `mm` is not one of
Never {date:yyyy}{date:yy}{n:6} at character 18: the year (yy or yyyy) overlaps the one at character 7
Never {date:yyDDDdd}{n:6} at character 12: the day (dd or DDD) overlaps the one at character 9
Never {date:MM}{n:6} at character 7: this part of the date requires the year
Never {date:yyyydd}{n:6} at character 11: this part of the date requires the month
Never {date:yyyyMMHH}{n:6} at character 13: this part of the date requires the day
Day {n:6} at character 2: the counter restarts each day; without the day (dd or DDD) in the pattern its serials would repeat those of the previous day
Day {date:yyMM}-{n:6} at character 14: the counter restarts each day
Month {date:yy}-{n:6} without the month (MM)
Year {n:6} without the year (yy or yyyy)
Never {check:damm}{n:6} at character 2: a check symbol has to come after the counter
Never {n:6}{check} at character 13: `` is not one of damm, mod97, crockford, luhn
Never {n:6}{check:verhoeff} at character 13: `verhoeff` is not one of
Never {n:6}{check:damm:date} at character 18: `date` is not `all`
Never {n:6}{check:damm:} at character 18: `` is not `all`
Never {n:6}{check:damm}{check:luhn} at character 19: the check symbol overlaps the one at character 7
Never {n:6:base36}{check:damm} at character 14: damm does not cover these digits
Never {n:6:base36}{check:crockford} at character 14: crockford does not cover
Never {n:6:base62}{check:mod97} at character 14: mod97 does not cover
Never 订单{x} at character 4: `x` is not one of";

#[test]
fn an_unusable_pattern_is_refused_with_the_position() {
    use Reset::{Day, Month, Never, Year};
    let lines = REFUSED.lines().skip(1).map(|line| {
        let [reset, text, expected] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let resets = [
            ("Never", Never),
            ("Day", Day),
            ("Month", Month),
            ("Year", Year),
        ];
        (
            text,
            resets
                .into_iter()
                .find(|(name, _)| *name == reset)
                .expect(reset)
                .1,
            expected,
        )
    });
    let with_blanks = [
        ("", Never, "it must have 1 to 128 characters"),
        ("A {n:6}", Never, "at character 2: white space"),
        ("{n:6}\n", Never, "at character 6: white space"),
        ("{date:yyyy MM}{n:6}", Never, "at character 11: white space"),
    ];
    for (text, reset, expected) in lines.chain(with_blanks) {
        let said = refusal(Pattern::new(text, reset).expect_err(text), "pattern");
        assert!(said.contains(expected), "{text}: {said}");
    }
    assert!(Pattern::new(&"x".repeat(129), Never).is_err());
    assert!(Pattern::new(&format!("{}{{n:6}}", "x".repeat(123)), Never).is_ok());
}

#[test]
fn a_counter_beyond_its_digits_is_an_error_or_grows() {
    let fixed = pattern("{date:yyMMdd}{n:2}", Reset::Day);
    assert_eq!(
        (
            fixed.end_of_counters(),
            fixed.format(&NOON, 99).unwrap().as_str()
        ),
        (100, "26112299")
    );
    let said = fixed.format(&NOON, 100).unwrap_err();
    assert_eq!(
        (said.kind(), said.to_string().as_str()),
        (ErrorKind::OutOfRange, "counter must be 0 to 99, but is 100")
    );
    let grows = pattern("{date:yyMMdd}{n:2+}", Reset::Day);
    assert_eq!(
        (
            grows.end_of_counters(),
            grows.format(&NOON, 100).unwrap().as_str()
        ),
        ((1 << 40) - 1, "261122100")
    );
    assert!(grows.format(&NOON, (1 << 40) - 1).is_err());
    let wide = pattern("{n:18:base62}", Reset::Never);
    assert_eq!(wide.end_of_counters(), i64::MAX.unsigned_abs());
    // A two-digit year belongs to one century.
    let next = CivilHour {
        year: 2100,
        month: 1,
        day: 1,
        hour: 0,
    };
    let said = fixed.format(&next, 1).unwrap_err().to_string();
    assert_eq!(said, "year must be 2000 to 2099, but is 2100");
}

/// A pattern, its reset, and text that may surround the counter.
fn any_pattern() -> impl Strategy<Value = Pattern> {
    let dates = prop_oneof![
        Just(""),
        Just("{date:yy}"),
        Just("{date:yyyyMM}"),
        Just("{date:yyMMdd}"),
        Just("{date:yyyy-DDD}"),
        Just("{date:yyMMdd:HH}"),
        Just("{date:yy}{date:MM}x{date:dd}"),
        Just("{date:yy}{q}"),
        Just("{date:yyyyMM-q}"),
        Just("{date:DDDyyyy}Q{q}"),
        Just("{date:YYYY}W{ww}"),
        Just("{ww}{date:YY}"),
        Just("{date:yyMMdd}W{date:wwYY}"),
        Just("{fy:yy-yy}"),
        Just("{fy:yyyy/yy}"),
        Just("{fy:yyyy}"),
        Just("{fy:yy}{date:yyyyDDD}"),
    ];
    let literals = "[A-Za-z0-9/-]{0,3}|é|\\{\\{|\\}\\}";
    let radix = prop_oneof![
        Just(""),
        Just(":base36"),
        Just(":base62"),
        Just(":crockford")
    ];
    let check = prop_oneof![
        Just(""),
        Just("damm"),
        Just("mod97"),
        Just("crockford"),
        Just("luhn")
    ];
    let reset = (0..8usize).prop_map(any_reset);
    (
        dates,
        literals,
        1..19u32,
        any::<(bool, bool)>(),
        (radix, check, reset),
        literals,
    )
        .prop_filter_map(
            "a pattern that is refused",
            |(date, one, width, (grows, all), (radix, check, reset), other)| {
                let grows = if grows { "+" } else { "" };
                let all = if all { ":all" } else { "" };
                let check = if check.is_empty() {
                    String::new()
                } else {
                    format!("{{check:{check}{all}}}")
                };
                Pattern::new(
                    &format!("{one}{date}{{n:{width}{grows}{radix}}}{check}{other}"),
                    reset,
                )
                .ok()
            },
        )
}

/// Each reset, two of them fiscal years.
fn any_reset(i: usize) -> Reset {
    let fiscal = |text: &str| text.parse().expect("a fiscal year");
    match i {
        6 => fiscal("year:04-01"),
        7 => fiscal("year:07-15"),
        i => Reset::ALL[i],
    }
}

/// Years of weeks and fiscal years may begin in the year before.
fn any_date() -> impl Strategy<Value = CivilHour> {
    (2001..2099u64, 1..13u64, 1..29u64, 0..24u64).prop_map(|(year, month, day, hour)| CivilHour {
        year,
        month,
        day,
        hour,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_serial_round_trips(pattern in any_pattern(), date in any_date(), counter in any::<u64>(), bits in 0..64u32) {
        let counter = (counter >> bits) % pattern.end_of_counters();
        let serial = pattern.format(&date, counter).unwrap();
        let parsed = pattern.parse(&serial).unwrap();
        prop_assert_eq!(parsed.counter, counter);
        let period = pattern.reset().show(pattern.reset().period(&date));
        prop_assert_eq!(parsed.period.unwrap_or_default(), period);
        prop_assert_eq!(parsed.date.is_some(), pattern.has_date());
    }

    #[test]
    fn two_positions_never_share_a_serial(
        pattern in any_pattern(), dates in (any_date(), any_date()), counters in (0..300u64, 0..300u64)
    ) {
        let end = pattern.end_of_counters();
        let counters = (counters.0 % end, counters.1 % end);
        let place = |date: &CivilHour, n| (pattern.reset().period(date), n);
        if place(&dates.0, counters.0) != place(&dates.1, counters.1) {
            let one = pattern.format(&dates.0, counters.0).unwrap();
            prop_assert_ne!(one, pattern.format(&dates.1, counters.1).unwrap());
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}|[{}:ndateshufflecheck0-9+yYMdDHqw-]{0,40}", serial in "\\PC{0,30}", which in 0..8usize) {
        if let Ok(pattern) = Pattern::new(&text, any_reset(which)) {
            prop_assert_eq!(pattern.as_str(), text);
            let _ = pattern.parse(&serial);
        }
    }

    /// One changed character: refused, or another meaning, unless it is an alternative spelling.
    #[test]
    fn a_wrong_character_never_passes_for_the_right_one(
        pattern in any_pattern(), date in any_date(), counter in 0..5000u64, place in 0..30usize,
        with in any::<char>().prop_union(proptest::char::range('0', 'z')),
    ) {
        let serial = pattern.format(&date, counter % pattern.end_of_counters()).unwrap();
        let mut changed: Vec<char> = serial.chars().collect();
        let place = place % changed.len();
        let right = std::mem::replace(&mut changed[place], with);
        let changed: String = changed.into_iter().collect();
        if let Ok(parsed) = pattern.parse(&changed) {
            let same = parsed == pattern.parse(&serial).unwrap();
            let spelling = |c: char| match c.to_ascii_uppercase() {
                'I' | 'L' => '1',
                'O' => '0',
                c => c,
            };
            prop_assert!(!same || spelling(with) == spelling(right), "{} for {}", changed, serial);
        }
    }
}

//! IDs as text: round trips, order, and refusal of every other text.

use proptest::prelude::*;
use vesta_intf::{CheckSymbol, ErrorKind, IdFormat};

/// Computed independently, in Python: `f"{n:020}"`, `f"{n:016x}"`, and repeated division by 62 and 32
/// with the documented alphabets. GNU MP also prints `LygHa16AHYF` and `AzL8n0Y58m7` for 2^64 − 1 and
/// 2^63 − 1 in base 62.
const GOLDEN: [(u64, &str, &str, &str, &str); 10] = [
    (
        0,
        "00000000000000000000",
        "0000000000000000",
        "00000000000",
        "0000000000000",
    ),
    (
        1,
        "00000000000000000001",
        "0000000000000001",
        "00000000001",
        "0000000000001",
    ),
    (
        61,
        "00000000000000000061",
        "000000000000003d",
        "0000000000z",
        "000000000001X",
    ),
    (
        62,
        "00000000000000000062",
        "000000000000003e",
        "00000000010",
        "000000000001Y",
    ),
    (
        175928847299117063,
        "00175928847299117063",
        "0271065ac1020007",
        "0Czks0tP37X",
        "04W86BB0G4007",
    ),
    (
        1285482222412933127,
        "01285482222412933127",
        "11d6f3454000a807",
        "1WxWNOqQKdL",
        "13NQK8N001A07",
    ),
    (
        9007199254740991,
        "00009007199254740991",
        "001fffffffffffff",
        "00fFgnDxSe7",
        "007ZZZZZZZZZZ",
    ),
    (
        9223372036854775807,
        "09223372036854775807",
        "7fffffffffffffff",
        "AzL8n0Y58m7",
        "7ZZZZZZZZZZZZ",
    ),
    (
        9223372036854775808,
        "09223372036854775808",
        "8000000000000000",
        "AzL8n0Y58m8",
        "8000000000000",
    ),
    (
        18446744073709551615,
        "18446744073709551615",
        "ffffffffffffffff",
        "LygHa16AHYF",
        "FZZZZZZZZZZZZ",
    ),
];

const FIXED: [IdFormat; 5] = [
    IdFormat::PaddedDecimal,
    IdFormat::Hex,
    IdFormat::Base62,
    IdFormat::Crockford,
    IdFormat::Uuid,
];

/// The formats that are a number alone, without a check symbol and without fixed digits.
fn plain() -> impl Iterator<Item = IdFormat> {
    IdFormat::ALL
        .into_iter()
        .filter(|format| format.check().is_none() && *format != IdFormat::Uuid)
}

/// The formats with one.
fn checked() -> impl Iterator<Item = (IdFormat, CheckSymbol)> {
    IdFormat::ALL
        .into_iter()
        .filter_map(|format| Some((format, format.check()?.0)))
}

fn alphabet(format: IdFormat) -> &'static [u8] {
    match format {
        IdFormat::Base36 => b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        IdFormat::Hex => b"0123456789abcdef",
        IdFormat::Base62 => b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        IdFormat::Crockford | IdFormat::CrockfordCheck => b"0123456789ABCDEFGHJKMNPQRSTVWXYZ",
        _ => b"0123456789",
    }
}

/// The digits of any number in the format's longest text; `None` if it does not fit.
fn digits(format: IdFormat, mut number: u128) -> Option<String> {
    let symbols = alphabet(format);
    let mut text = vec![b'0'; format.lengths().1];
    for place in text.iter_mut().rev() {
        *place = symbols[usize::try_from(number % symbols.len() as u128).unwrap()];
        number /= symbols.len() as u128;
    }
    (number == 0).then(|| String::from_utf8(text).unwrap())
}

/// Reference parser, written from the documentation: the number of a text, if the text is an ID.
fn by_the_book(format: IdFormat, text: &str) -> Option<u64> {
    let (min, max) = format.lengths();
    let length = text.chars().count();
    if !(min..=max).contains(&length) {
        return None;
    }
    if let Some((method, body)) = format.check() {
        let characters: Vec<char> = text.chars().collect();
        let (number, symbols) = characters.split_at(length - method.count());
        let number = by_the_book(body, &number.iter().collect::<String>())?;
        let symbols: String = symbols.iter().collect();
        let symbols = symbols.to_ascii_uppercase();
        let symbols = match method {
            CheckSymbol::Crockford => symbols.replace(['I', 'L'], "1").replace('O', "0"),
            _ => symbols,
        };
        return (symbols == symbols_of(method, number)).then_some(number);
    }
    if format == IdFormat::Uuid {
        return of_uuid(&text.to_ascii_lowercase());
    }
    let mut number = 0u128;
    for character in text.chars() {
        let meant = match (format, character) {
            (IdFormat::Hex, c) => c.to_ascii_lowercase(),
            (IdFormat::Base36, c) => c.to_ascii_uppercase(),
            (IdFormat::Crockford, 'i' | 'I' | 'l' | 'L') => '1',
            (IdFormat::Crockford, 'o' | 'O') => '0',
            (IdFormat::Crockford, c) => c.to_ascii_uppercase(),
            (_, c) => c,
        };
        let symbols = alphabet(format);
        let value = symbols
            .iter()
            .position(|symbol| char::from(*symbol) == meant)?;
        number = number * symbols.len() as u128 + value as u128;
    }
    u64::try_from(number).ok()
}

/// The number whose digits are at the places `i` of `iiiiiiii-iiii-8iii-8i00-007665737461`.
fn of_uuid(text: &str) -> Option<u64> {
    let mut digits = String::new();
    for (given, shape) in text
        .chars()
        .zip("iiiiiiii-iiii-8iii-8i00-007665737461".chars())
    {
        match shape {
            'i' => digits.push(given),
            _ if shape != given => return None,
            _ => {}
        }
    }
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(&digits, 16).ok())?
}

/// The check symbols of a number, by the definitions in their standards.
fn symbols_of(method: CheckSymbol, number: u64) -> String {
    let digits: Vec<u32> = number
        .to_string()
        .chars()
        .map(|c| c.to_digit(10).unwrap())
        .collect();
    match method {
        CheckSymbol::Damm => {
            const TABLE: [&str; 10] = [
                "0317598642",
                "7092154863",
                "4206871359",
                "1750983426",
                "6123045978",
                "3674209581",
                "5869720134",
                "8945362017",
                "9438617205",
                "2581436790",
            ];
            let step = |row: usize, digit: &u32| {
                TABLE[row][*digit as usize..]
                    .chars()
                    .next()
                    .unwrap()
                    .to_digit(10)
                    .unwrap() as usize
            };
            digits.iter().fold(0, step).to_string()
        }
        // The whole number must leave 1.
        CheckSymbol::Mod97 => {
            let right = |check: &u32| (u128::from(number) * 100 + u128::from(*check)) % 97 == 1;
            format!("{:02}", (2..=98).find(right).unwrap())
        }
        CheckSymbol::Crockford => {
            let symbols = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";
            symbols
                .chars()
                .nth((number % 37) as usize)
                .unwrap()
                .to_string()
        }
        // From the right, every second digit doubled, the one next to the check digit first.
        CheckSymbol::Luhn => {
            let doubled = |(i, digit): (usize, &u32)| match i % 2 {
                0 if digit * 2 > 9 => digit * 2 - 9,
                0 => digit * 2,
                _ => *digit,
            };
            let sum: u32 = digits.iter().rev().enumerate().map(doubled).sum();
            (sum.next_multiple_of(10) - sum).to_string()
        }
    }
}

fn refusal(format: IdFormat, text: &str) -> String {
    let error = format.parse(text).expect_err(text);
    assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
    error.to_string()
}

#[test]
fn golden_texts() {
    for (id, padded, hex, base62, crockford) in GOLDEN {
        assert_eq!(IdFormat::Decimal.encode(id), id.to_string());
        assert_eq!(IdFormat::Decimal.parse(&id.to_string()).unwrap(), id);
        for (format, text) in FIXED.into_iter().zip([padded, hex, base62, crockford]) {
            assert_eq!(format.encode(id), text);
            assert_eq!(format.format(id).to_string(), text);
            assert_eq!(format.parse(text).unwrap(), id, "{format} {text}");
        }
    }
}

/// The texts that the clients of other languages are tested with.
#[test]
fn golden_texts_of_the_clients() {
    let table = include_str!("../../../scripts/check/clients/formats.txt");
    let rows: Vec<_> = table.lines().filter(|row| !row.starts_with('#')).collect();
    for row in &rows {
        let (name, rest) = row.split_once(' ').expect(row);
        let (what, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let format: IdFormat = name.parse().expect(row);
        if let Some(words) = what.strip_prefix('!') {
            let said = refusal(format, text);
            assert!(said.contains(&words.replace('_', " ")), "{row}: {said}");
            continue;
        }
        let id: u64 = what.trim_start_matches('<').parse().expect(row);
        assert_eq!(format.parse(text).expect(row), id, "{row}");
        assert_eq!(format.encode(id) == text, !what.starts_with('<'), "{row}");
    }
    for format in IdFormat::ALL {
        let name = format!("{format} ");
        assert!(rows.iter().any(|row| row.starts_with(&name)), "{format}");
    }
}

#[test]
fn format_names_round_trip() {
    for format in IdFormat::ALL {
        assert_eq!(format.name().parse::<IdFormat>().unwrap(), format);
        assert_eq!(format.to_string(), format.name());
    }
    for name in ["", "Hex", "base64", "base 62"] {
        let error = name.parse::<IdFormat>().expect_err(name).to_string();
        assert!(
            error.contains("decimal, padded-decimal, hex, base36, base62, crockford"),
            "{error}"
        );
    }
}

#[test]
fn alternative_spellings_of_an_id_are_read() {
    let id = 0xabcd_ef01_2345_6789;
    assert_eq!(IdFormat::Hex.parse("ABCDEF0123456789").unwrap(), id);
    assert_eq!(IdFormat::Hex.parse("aBcDeF0123456789").unwrap(), id);
    assert_eq!(
        IdFormat::Crockford.parse("0000000000110").unwrap(),
        0b00001_00001_00000
    );
    for text in [
        "0000000000IL0",
        "0000000000il0",
        "oooooooooo11O",
        "OoOoOoOoOolI0",
    ] {
        assert_eq!(
            IdFormat::Crockford.parse(text).unwrap(),
            0b00001_00001_00000,
            "{text}"
        );
    }
    let upper = IdFormat::Crockford.encode(id);
    assert_eq!(
        IdFormat::Crockford
            .parse(&upper.to_ascii_lowercase())
            .unwrap(),
        id
    );
    for text in ["7", "007", "00000000000000000007"] {
        assert_eq!(IdFormat::Decimal.parse(text).unwrap(), 7);
    }
}

#[test]
fn refusals_name_the_defect() {
    for (format, text, says) in [
        (
            IdFormat::Decimal,
            "",
            "decimal takes 1 to 20 characters, not 0",
        ),
        (
            IdFormat::Decimal,
            "000000000000000000007",
            "1 to 20 characters, not 21",
        ),
        (
            IdFormat::Decimal,
            "-1",
            "character 1 is '-', which is not a digit of decimal (0-9)",
        ),
        (IdFormat::Decimal, "+1", "character 1 is '+'"),
        (IdFormat::Decimal, "1 ", "character 2 is ' '"),
        (IdFormat::Decimal, "1_000", "character 2 is '_'"),
        (IdFormat::Decimal, "٣", "character 1 is '٣'"),
        (IdFormat::Decimal, "1\n", r"character 2 is '\n'"),
        (
            IdFormat::Decimal,
            "18446744073709551616",
            "above 18446744073709551615",
        ),
        (
            IdFormat::PaddedDecimal,
            "7",
            "padded-decimal takes exactly 20 characters, not 1",
        ),
        (
            IdFormat::PaddedDecimal,
            "18446744073709551616",
            "above 18446744073709551615",
        ),
        (
            IdFormat::Hex,
            "0x271065ac1020007",
            "hex takes exactly 16 characters, not 17",
        ),
        (IdFormat::Hex, "0x71065ac1020007", "character 2 is 'x'"),
        (
            IdFormat::Hex,
            "ffffffffffffffffff",
            "exactly 16 characters, not 18",
        ),
        (
            IdFormat::Base62,
            "LygHa16AHY",
            "base62 takes exactly 11 characters, not 10",
        ),
        (
            IdFormat::Base62,
            "LygHa16AHY-",
            "not a digit of base62 (0-9, A-Z, a-z)",
        ),
        (IdFormat::Base62, "LygHa16AHYG", "above LygHa16AHYF"),
        (IdFormat::Base62, "zzzzzzzzzzz", "above LygHa16AHYF"),
        (IdFormat::Crockford, "G000000000000", "above FZZZZZZZZZZZZ"),
        (IdFormat::Crockford, "ZZZZZZZZZZZZZ", "above FZZZZZZZZZZZZ"),
        (IdFormat::Crockford, "U000000000000", "character 1 is 'U'"),
        (
            IdFormat::Crockford,
            "0000-0000-0000-0",
            "exactly 13 characters, not 16",
        ),
        (IdFormat::Crockford, "0000-0000-000", "character 5 is '-'"),
    ] {
        let error = refusal(format, text);
        assert!(error.starts_with("id: ") && error.contains(says), "{error}");
    }
}

#[test]
fn nothing_above_64_bits_is_an_id() {
    for format in plain() {
        let last = digits(format, u64::MAX.into()).unwrap();
        assert_eq!(format.parse(&last).unwrap(), u64::MAX);
        let width = u32::try_from(format.lengths().1).unwrap();
        let largest = (alphabet(format).len() as u128).pow(width) - 1;
        if format == IdFormat::Hex {
            assert_eq!(largest, u64::MAX.into(), "16 digits are exactly 64 bits");
            continue;
        }
        let first = u128::from(u64::MAX) + 1;
        for above in [first, first + 1, first * 3 / 2, largest - 1, largest] {
            assert!(refusal(format, &digits(format, above).unwrap()).contains("above"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_id_round_trips(id in any_id()) {
        for format in IdFormat::ALL {
            let text = format.format(id);
            let (min, max) = format.lengths();
            prop_assert!((min..=max).contains(&text.as_str().len()));
            prop_assert_eq!(format.parse(text.as_str()).unwrap(), id);
            if format != IdFormat::Decimal && plain().any(|it| it == format) {
                prop_assert_eq!(Some(text.to_string()), digits(format, id.into()));
            }
        }
    }

    #[test]
    fn sortable_texts_sort_as_their_ids(a in any_id(), b in any_id(), near in 0..100u64) {
        for b in [b, a.saturating_add(near)] {
            for format in IdFormat::ALL.into_iter().filter(|format| format.is_sortable()) {
                prop_assert_eq!(format.encode(a).cmp(&format.encode(b)), a.cmp(&b), "{}", format);
            }
        }
    }

    #[test]
    fn an_overflowing_text_is_refused(beyond in any::<u64>(), times in 1..5u128) {
        let number = (times << 64) + u128::from(beyond);
        for format in plain() {
            if let Some(text) = digits(format, number) {
                prop_assert!(format.parse(&text).is_err(), "{} {}", format, text);
            }
        }
    }

    /// One changed character: refused or another ID, unless both are spellings of one digit.
    #[test]
    fn a_wrong_character_never_passes_for_the_right_one(id in any_id(), place in 0..20usize) {
        for format in IdFormat::ALL {
            let text: Vec<char> = format.encode(id).chars().collect();
            let place = place % text.len();
            for wrong in (0..=0xffu8).map(char::from).chain(['Ａ', '٣', '\u{301}', '🦀']) {
                let mut changed = text.clone();
                changed[place] = wrong;
                let changed: String = changed.into_iter().collect();
                let read = format.parse(&changed).ok();
                prop_assert_eq!(read, by_the_book(format, &changed), "{} {}", format, changed);
                if read == Some(id) {
                    let two_spellings = matches!(
                        format,
                        IdFormat::Hex
                            | IdFormat::Uuid
                            | IdFormat::Base36
                            | IdFormat::Crockford
                            | IdFormat::CrockfordCheck
                    );
                    prop_assert!(wrong == text[place] || two_spellings, "{} {}", format, changed);
                }
            }
        }
    }

    #[test]
    fn a_character_too_few_or_too_many_is_refused(id in any_id(), place in 0..20usize) {
        for format in FIXED {
            let text = format.encode(id);
            let (front, back) = text.split_at(place % text.len());
            let fewer = [front, &back[1..]].concat();
            prop_assert!(format.parse(&fewer).is_err(), "{} {}", format, fewer);
            for extra in ["0", "1", " ", "é"] {
                let more = [front, extra, back].concat();
                prop_assert!(format.parse(&more).is_err(), "{} {}", format, more);
            }
        }
    }

    #[test]
    fn any_text_is_read_as_the_reference_reads_it(text in "[0-9A-Za-z]{0,22}|[0-9a-fA-F]{16}|[0-9]{1,20}|\\PC{0,24}") {
        for format in IdFormat::ALL {
            prop_assert_eq!(format.parse(&text).ok(), by_the_book(format, &text));
        }
    }
}

#[test]
fn golden_check_symbols() {
    for (format, large, one) in [
        (IdFormat::CrockfordCheck, "04W86BB0G4007R", "00000000000011"),
        (IdFormat::DecimalLuhn, "1759288472991170634", "18"),
        (IdFormat::DecimalDamm, "1759288472991170635", "13"),
        (IdFormat::DecimalMod97, "17592884729911706354", "195"),
    ] {
        for (id, text) in [(175_928_847_299_117_063, large), (1, one)] {
            assert_eq!(format.encode(id), text);
            assert_eq!(format.parse(text).unwrap(), id);
        }
    }
    // By CosId's radix-36 converter.
    for (id, text) in [
        (352_546_905, "00000005TWAXL"),
        (i64::MAX as u64, "1Y2P0IJ32E8E7"),
    ] {
        assert_eq!(IdFormat::Base36.encode(id), text);
        assert_eq!(IdFormat::Base36.parse(&text.to_lowercase()).unwrap(), id);
    }
    assert_eq!(
        IdFormat::Base62.encode(438_338_964_253_212_672),
        "0WNb1HFWYC0"
    );
}

#[test]
fn a_wrong_check_symbol_is_refused_without_naming_the_right_one() {
    for (format, text) in [
        (IdFormat::CrockfordCheck, "04W86BB0G4007S"),
        (IdFormat::DecimalLuhn, "1759288472991170635"),
        (IdFormat::DecimalDamm, "1759288472991170634"),
        (IdFormat::DecimalDamm, "175928847299117063é"),
        (IdFormat::DecimalMod97, "17592884729911706353"),
    ] {
        let error = refusal(format, text);
        let (method, _) = format.check().unwrap();
        assert!(
            error.contains("its check symbol") && error.contains("wrong"),
            "{error}"
        );
        assert!(error.contains(&format!("({method})")), "{error}");
    }
}

/// A wrong digit at every place, and each swap of neighbours: detected, except the swaps that Luhn misses.
#[test]
fn single_errors_and_swaps_are_detected() {
    let numbers = (0..5000u64).chain((0..64).map(|bit| (1 << bit) + 90_918_273));
    let mut missed = Vec::new();
    for id in numbers {
        for (format, method) in checked() {
            let text = format.encode(id).into_bytes();
            for place in 0..text.len() {
                for digit in alphabet(format)
                    .iter()
                    .filter(|digit| **digit != text[place])
                {
                    let mut wrong = text.clone();
                    wrong[place] = *digit;
                    let wrong = String::from_utf8(wrong).unwrap();
                    assert!(format.parse(&wrong).is_err(), "{format} {wrong}");
                }
                if place > 0 && text[place] != text[place - 1] {
                    let mut swapped = text.clone();
                    swapped.swap(place, place - 1);
                    let swapped = String::from_utf8(swapped).unwrap();
                    if format.parse(&swapped).is_ok() {
                        let mut pair = [text[place - 1], text[place]];
                        pair.sort_unstable();
                        missed.push((method, String::from_utf8(pair.to_vec()).unwrap()));
                    }
                }
            }
        }
    }
    missed.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    missed.dedup();
    assert_eq!(missed, [(CheckSymbol::Luhn, "09".to_owned())]);
}

/// Small, large, and near powers of two.
fn any_id() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..100_000u64,
        (0..64u32, 0..3u64).prop_map(|(bit, off)| (1u64 << bit).wrapping_add(off).wrapping_sub(1)),
        (0..100u64).prop_map(|off| u64::MAX - off),
    ]
}

//! IDs as text: a written ID reads back as the same ID, and a text reads as arithmetic says.

use vesta_intf::{IdError, IdFormat};

use super::texts::{Changes, damaged, kept};

type Parse = fn(IdFormat, &str) -> Result<u64, IdError>;

fn inputs() -> Vec<Vec<u8>> {
    kept(env!("CARGO_MANIFEST_DIR"), "ids")
}

/// The number that a text means, by the definition of the format, of any size.
fn meaning(format: IdFormat, text: &str) -> Option<u128> {
    if let Some((method, body)) = format.check() {
        let at = text.char_indices().rev().nth(method.count() - 1)?.0;
        let number = meaning(body, &text[..at])?;
        let written = format.encode(u64::try_from(number).ok()?);
        let right = &written[written.len() - method.count()..];
        let given = text[at..].to_ascii_uppercase();
        let given = match format {
            IdFormat::CrockfordCheck => given.replace(['I', 'L'], "1").replace('O', "0"),
            _ => given,
        };
        return (given == right).then_some(number);
    }
    const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const CROCKFORD: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let (min, max) = format.lengths();
    if !(min..=max).contains(&text.chars().count()) {
        return None;
    }
    if format == IdFormat::Uuid {
        let at = |places: std::ops::Range<usize>| text.get(places).unwrap_or_default();
        let digits = [at(0..8), at(9..13), at(15..18), at(20..21)].concat();
        let fixed = [at(8..9), at(13..15), at(18..20), at(21..36)].concat();
        let is_hex = digits.len() == 16 && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
        return number.filter(|_| fixed == "--8-800-007665737461");
    }
    let (radix, digit): (u128, fn(char) -> Option<usize>) = match format {
        IdFormat::Base36 => (36, |c| {
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".find(c.to_ascii_uppercase())
        }),
        IdFormat::Hex => (16, |c| "0123456789abcdef".find(c.to_ascii_lowercase())),
        IdFormat::Base62 => (62, |c| BASE62.find(c)),
        IdFormat::Crockford => (32, |c| match c.to_ascii_uppercase() {
            'I' | 'L' => Some(1),
            'O' => Some(0),
            c => CROCKFORD.find(c),
        }),
        _ => (10, |c| "0123456789".find(c)),
    };
    text.chars()
        .try_fold(0, |number, c| Some(number * radix + digit(c)? as u128))
}

fn check(parse: Parse, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for format in IdFormat::ALL {
        let fits = meaning(format, &text).and_then(|number| u64::try_from(number).ok());
        match (parse(format, &text), fits) {
            (Ok(id), Some(number)) => {
                assert_eq!(id, number, "{format} {text:?}");
                let canonical = format.encode(id);
                assert_eq!(parse(format, &canonical).unwrap(), id, "{format} {text:?}");
                let (min, max) = format.lengths();
                assert!(
                    (min..=max).contains(&canonical.len()),
                    "{format} {canonical}"
                );
            }
            (Err(IdError::Invalid { field: "id", .. }), None) => {}
            (read, _) => panic!("{format} reads {text:?} as {read:?}, but it means {fits:?}"),
        }
    }
    let _ = text.parse::<IdFormat>();
}

#[test]
fn ids_from_any_text() {
    inputs()
        .iter()
        .for_each(|input| check(IdFormat::parse, input));
    bolero::check!()
        .with_iterations(20_000)
        .for_each(|input: &[u8]| check(IdFormat::parse, input));
}

#[test]
fn ids_from_damaged_text() {
    let inputs = inputs();
    bolero::check!()
        .with_iterations(50_000)
        .with_type()
        .for_each(|(which, changes): &(u16, Changes)| {
            check(IdFormat::parse, &damaged(&inputs, *which, changes));
        });
}

/// Every number in every format: the text reads back as the number, and sorts in the same order.
#[test]
fn ids_of_any_number() {
    bolero::check!()
        .with_iterations(50_000)
        .with_type()
        .for_each(|(a, b): &(u64, u64)| {
            for format in IdFormat::ALL {
                let (a_text, b_text) = (format.encode(*a), format.encode(*b));
                assert_eq!(format.parse(&a_text).unwrap(), *a);
                assert_eq!(meaning(format, &a_text), Some(u128::from(*a)));
                if format.is_sortable() {
                    assert_eq!(a_text.cmp(&b_text), a.cmp(b), "{format}");
                }
            }
        });
}

/// Like [`IdFormat::parse`], but numbers above 64 bits wrap around.
fn planted(format: IdFormat, text: &str) -> Result<u64, IdError> {
    format
        .parse(text)
        .or_else(|error| match meaning(format, text) {
            #[allow(clippy::cast_possible_truncation, reason = "the planted fault")]
            Some(number) => Ok(number as u64),
            None => Err(error),
        })
}

#[test]
#[should_panic(expected = "test failed")]
fn a_parser_that_wraps_is_detected() {
    let within: Vec<_> = inputs()
        .into_iter()
        .filter(|input| {
            IdFormat::ALL
                .iter()
                .any(|f| std::str::from_utf8(input).is_ok_and(|text| f.parse(text).is_ok()))
        })
        .collect();
    bolero::check!()
        .with_iterations(50_000)
        .with_shrink_time(std::time::Duration::ZERO)
        .with_type()
        .for_each(|(which, changes): &(u16, Changes)| {
            check(planted, &damaged(&within, *which, changes));
        });
}

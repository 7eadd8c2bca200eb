//! Detection rates of check symbols, as docs/use/serials.md has them.

use vesta_intf::{CheckSymbol, IdFormat};

const DOCUMENT: &str = include_str!("../../../docs/use/serials.md");
const NUMBERS: u64 = 1_000_000;

/// SplitMix64, seeded: the figures of the document come from the same numbers each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

const DIGITS: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A mistake of a person; the text stays as it is where there is no occasion.
type Mistake = fn(&mut Vec<u8>, &[u8], &mut Random);

const MISTAKES: [(&str, Mistake); 8] = [
    ("a wrong character", |text, digits, random| {
        let place = random.below(text.len());
        text[place] = digits[random.below(digits.len())];
    }),
    ("two neighbours swapped", |text, _, random| {
        let place = random.below(text.len() - 1);
        text.swap(place, place + 1);
    }),
    ("of those, 09 for 90", |text, _, _| {
        let place = text
            .windows(2)
            .position(|pair| matches!(pair, b"09" | b"90"));
        if let Some(place) = place {
            text.swap(place, place + 1);
        }
    }),
    ("two swapped around a third", |text, _, random| {
        let place = random.below(text.len() - 2);
        text.swap(place, place + 2);
    }),
    ("a pair mistaken: 77 for 44", |text, digits, random| {
        let place = random.below(text.len() - 1);
        if text[place] == text[place + 1] {
            text[place..place + 2].fill(digits[random.below(digits.len())]);
        }
    }),
    ("two wrong characters", |text, digits, random| {
        for _ in 0..2 {
            let place = random.below(text.len());
            text[place] = digits[random.below(digits.len())];
        }
    }),
    ("a character lost", |text, _, random| {
        text.remove(random.below(text.len()));
    }),
    ("a character too many", |text, digits, random| {
        text.insert(
            random.below(text.len() + 1),
            digits[random.below(digits.len())],
        );
    }),
];

/// Counts of the mistakes of each kind, and of those that went unnoticed.
fn measure(format: IdFormat, is_wrong: impl Fn(&str) -> bool) -> [(u64, u64); MISTAKES.len()] {
    let (method, _) = format.check().expect("with check symbols");
    let digits = if method == CheckSymbol::Crockford {
        DIGITS
    } else {
        &DIGITS[..10]
    };
    let (mut random, mut counts) = (Random(20_261_122), [(0, 0); MISTAKES.len()]);
    for _ in 0..NUMBERS {
        let right = format.encode(random.next() >> 1).into_bytes();
        for ((made, missed), (_, mistake)) in counts.iter_mut().zip(MISTAKES) {
            let mut wrong = right.clone();
            mistake(&mut wrong, digits, &mut random);
            if wrong != right {
                *made += 1;
                *missed += u64::from(!is_wrong(str::from_utf8(&wrong).expect("ASCII")));
            }
        }
    }
    counts
}

/// `all`, or hundredths of a per cent.
fn rate((made, missed): (u64, u64)) -> String {
    let noticed = (made - missed) * 10_000 / made;
    match missed {
        0 => "all".to_owned(),
        _ if missed == made => "none".to_owned(),
        _ => format!("{}.{:02} %", noticed / 100, noticed % 100),
    }
}

#[test]
fn what_they_notice_is_what_the_document_says() {
    let formats: Vec<_> = IdFormat::ALL
        .into_iter()
        .filter(|it| it.check().is_some())
        .collect();
    let all: Vec<_> = formats
        .iter()
        .map(|format| measure(*format, |text| format.parse(text).is_err()))
        .collect();
    for (kind, (name, _)) in MISTAKES.into_iter().enumerate() {
        let rates: Vec<_> = all.iter().map(|counts| rate(counts[kind])).collect();
        let row = format!("| {name} | {} |", rates.join(" | "));
        assert!(
            DOCUMENT.contains(&row),
            "docs/use/serials.md should say:\n{row}"
        );
    }
    for (format, counts) in formats.iter().zip(&all) {
        let [wrong, swapped, of_90, ..] = counts.map(|(_, missed)| missed);
        assert!(
            counts.iter().all(|(made, _)| *made > NUMBERS / 50),
            "{format}: {counts:?}"
        );
        match format.check() {
            Some((CheckSymbol::Luhn, _)) => assert!(wrong == 0 && of_90 == counts[2].0),
            _ => assert_eq!((wrong, swapped, of_90), (0, 0, 0), "{format}"),
        }
    }
}

/// The planted fault: who looks at the digits alone misses what check symbols are for.
#[test]
fn a_reader_that_does_not_check_is_found_out() {
    let careless = |text: &str| IdFormat::Decimal.parse(&text[..text.len() - 1]).is_err();
    let [wrong, swapped, ..] = measure(IdFormat::DecimalDamm, careless);
    assert!(wrong.1 > wrong.0 / 2 && swapped.1 > swapped.0 / 2);
}

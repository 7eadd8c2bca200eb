//! The pages of docs/use about layouts and formats agree with the code.

use std::fmt::Write;

use vesta_explain::layouts;
use vesta_intf::{Field, IdFormat, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

/// The name of a page in docs/use and its text.
type Page = (&'static str, &'static str);

const LAYOUTS: Page = ("layouts.md", include_str!("../../../docs/use/layouts.md"));
const OTHER_LAYOUTS: Page = (
    "other-layouts.md",
    include_str!("../../../docs/use/other-layouts.md"),
);
const FORMATS: Page = ("formats.md", include_str!("../../../docs/use/formats.md"));

#[track_caller]
fn says((name, text): Page, expected: &str) {
    assert!(
        text.contains(expected),
        "docs/use/{name} should say:\n{expected}"
    );
}

/// 1,048,576
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

fn date(moment: UnixMillis) -> String {
    moment.to_string().replace(".000Z", "Z")
}

fn widths(meta: &IdMeta) -> Vec<(Field, u8)> {
    let all = meta
        .fields()
        .into_iter()
        .map(|field| (field, meta.bits(field)));
    all.filter(|(_, bits)| *bits > 0).collect()
}

fn row(meta: &IdMeta) -> String {
    let bits: Vec<_> = widths(meta)
        .iter()
        .map(|(field, bits)| format!("{} {bits}", field.name()))
        .collect();
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} |",
        meta.name(),
        bits.join(", "),
        meta.spec().unit,
        grouped(meta.capacity_per_second()),
        grouped(meta.max(Field::Machine) + 1),
        date(meta.spec().epoch),
        date(meta.end())
    )
}

/// A box for each field, as wide as its bits or its words need.
fn picture(meta: &IdMeta) -> String {
    let mut boxes = Vec::new();
    if meta.total_bits() < 64 {
        boxes.push(("always 0".to_owned(), 64 - meta.total_bits()));
    }
    for (field, bits) in widths(meta) {
        let title = match (field, meta.spec().unit) {
            (Field::Time, TimeUnit::Second) => "time (seconds)",
            (Field::Time, TimeUnit::TenMillis) => "time (10 ms)",
            (Field::Time, TimeUnit::Millisecond) => "time (milliseconds)",
            (Field::Time, TimeUnit::Microsecond) => "time (microseconds)",
            _ => field.name(),
        };
        boxes.push((title.to_owned(), bits));
    }
    let mut lines = [const { String::new() }; 4];
    let mut above = 64;
    for (title, bits) in boxes {
        let (top, bottom) = (above - 1, above - bits);
        above = bottom;
        let range = if bits == 1 {
            top.to_string()
        } else {
            format!("{top}..{bottom}")
        };
        let width = (title.len() + 2).max(range.len() + 2).max(bits.into());
        write!(lines[0], "+{:-<width$}", "").unwrap();
        write!(lines[1], "|{title:^width$}").unwrap();
        write!(lines[2], "|{bits:^width$}").unwrap();
        write!(lines[3], " {range:^width$}").unwrap();
    }
    let [rule, titles, sizes, ranges] = lines;
    let ranges = ranges.trim_end();
    format!("```text\n{rule}+\n{titles}|\n{sizes}|\n{rule}+\n{ranges}\n```")
}

#[test]
fn bits_capacity_and_dates_of_every_layout() {
    for meta in IdMeta::PRESETS {
        says(LAYOUTS, &row(&meta));
        says(LAYOUTS, &picture(&meta));
    }
    for meta in layouts::FOREIGN {
        says(OTHER_LAYOUTS, &row(&meta));
    }
}

#[test]
fn foreign_layouts_that_generate_are_documented() {
    for meta in layouts::FOREIGN {
        let makes = if meta.check_generates().is_ok() {
            "yes"
        } else {
            "no"
        };
        let line = OTHER_LAYOUTS
            .1
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` | {makes} |", meta.name())));
        assert!(
            line.is_some(),
            "docs/use/other-layouts.md should say whether {} makes IDs",
            meta.name()
        );
    }
}

#[test]
fn documented_dates_are_right() {
    let day = |moment: UnixMillis| moment.to_string()[..10].to_owned();
    for (meta, sign) in [(layouts::DISCORD, 1 << 41), (layouts::INSTAGRAM, 1 << 40)] {
        assert_eq!(
            meta.lower_bound(meta.moment_of(sign).unwrap(), &meta.blank())
                .unwrap(),
            1 << 63
        );
        let from = day(meta.moment_of(sign).unwrap());
        says(OTHER_LAYOUTS, &format!("`{}` from {from}", meta.name()));
    }
    let epoch = UnixMillis(1_767_225_600_000); // 2026-01-01T00:00:00Z
    let uid = IdMeta::new(LayoutSpec {
        epoch,
        ..*IdMeta::UID.spec()
    })
    .unwrap();
    says(LAYOUTS, &format!("they last until {}", day(uid.end())));
    let start = UnixMillis(1_735_689_600_000); // 2025-01-01T00:00:00Z
    let v2 = IdMeta::new(LayoutSpec {
        epoch: start,
        ..*layouts::SONYFLAKE.spec()
    })
    .unwrap();
    says(OTHER_LAYOUTS, &format!("{} at 10 ms a step", day(v2.end())));
}

#[test]
fn documented_lifetimes_of_time_fields_are_right() {
    // In tenths of a year of 365.25 days.
    let tenths = |bits: u32, unit: TimeUnit| (10 << bits) * unit.millis() / 31_557_600_000;
    for bits in [28, 30, 31, 32, 38, 39, 40, 41, 42] {
        let line = LAYOUTS
            .1
            .lines()
            .find(|line| line.starts_with(&format!("| {bits} |")))
            .unwrap();
        let units = [TimeUnit::Second, TimeUnit::TenMillis, TimeUnit::Millisecond];
        for (cell, unit) in line.split('|').skip(2).zip(units) {
            let Some(years) = cell.trim().strip_suffix(" years") else {
                continue;
            };
            let tenths = tenths(bits, unit);
            let expected = if years.contains('.') {
                format!("{}.{}", tenths / 10, tenths % 10)
            } else {
                (tenths / 10).to_string()
            };
            assert_eq!(years, expected, "{bits} bits of {unit}");
        }
    }
}

#[test]
fn documented_texts_of_ids_are_right() {
    for id in [
        1,
        175_928_847_299_117_063,
        1_285_482_222_412_933_127,
        u64::MAX,
    ] {
        let texts = IdFormat::ALL.map(|format| format!(" `{}` ", format.encode(id)));
        says(FORMATS, &format!("|{}|", texts.join("|")));
    }
    for format in IdFormat::ALL {
        let (min, max) = format.lengths();
        let length = if min == max {
            max.to_string()
        } else {
            format!("{min} to {max}")
        };
        let sorts = if format.is_sortable() { "yes" } else { "no" };
        says(FORMATS, &format!("| `{format}` | {length} | {sorts} |"));
    }
}

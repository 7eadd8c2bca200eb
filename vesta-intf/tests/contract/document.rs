//! The pages of docs/use about layouts and formats agree with the code.

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

/// The bits of each field, those that are always 0 last.
fn places(meta: &IdMeta) -> String {
    let range = |top: u8, bits: u8| match bits {
        0 => String::new(),
        1 => format!(" {}", top - 1),
        _ => format!(" {}..{}", top - 1, top - bits),
    };
    let mut cells = [const { String::new() }; 7];
    cells[6] = range(64, 64 - meta.total_bits());
    let mut top = meta.total_bits();
    for (field, bits) in widths(meta) {
        let columns = ["version", "type", "genMethod", "time", "seq", "machine"];
        let column = columns.iter().position(|it| *it == field.name()).unwrap();
        cells[column] = range(top, bits);
        top -= bits;
    }
    format!("| `{}` |{} |", meta.name(), cells.join(" |"))
}

#[test]
fn bits_capacity_and_dates_of_every_layout() {
    for meta in IdMeta::PRESETS {
        says(LAYOUTS, &row(&meta));
        says(LAYOUTS, &places(&meta));
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
}

#[test]
fn documented_lifetimes_of_time_fields_are_right() {
    // In years of 365.25 days.
    let years = |bits: u32, unit: TimeUnit| (1 << bits) * unit.millis() / 31_557_600_000;
    for (field, bits, unit) in [
        ("in seconds lasts", 30, TimeUnit::Second),
        ("10 ms", 38, TimeUnit::TenMillis),
        ("in milliseconds", 41, TimeUnit::Millisecond),
    ] {
        let says = format!("{field} for {} years with {bits}", years(bits, unit));
        let text = LAYOUTS.1.replace('\n', " ");
        assert!(
            text.contains(&says),
            "docs/use/layouts.md should say: {says}"
        );
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

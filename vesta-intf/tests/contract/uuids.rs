//! UUIDs that contain an ID: exact, sorted, and refused if they are not that of an ID.

use proptest::prelude::*;
use vesta_explain::layouts;
use vesta_explain::{Form, Written, read};
use vesta_intf::{FieldOrder, Id, IdFormat, IdMeta, LayoutSpec, TimeUnit, UnixMillis, UuidV7};

/// A random UUID, the examples of RFC 9562, and almost those of IDs.
const FOREIGN: [&str; 8] = [
    "919108f7-52d1-4320-9bac-f847db4148a8",
    "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0",
    "0271065a-c102-7000-8700-007665737461",
    "0271065a-c102-8000-9700-007665737461",
    "0271065a-c102-8000-8701-007665737461",
    "0271065a-c102-8000-8700-007665737462",
    "00000000-0000-0000-0000-000000000000",
];

fn of(layout: IdMeta) -> UuidV7 {
    UuidV7::new(&layout).expect("its time is on top")
}

/// Computed independently, with Python's `uuid`.
#[test]
fn golden_uuids() {
    for (id, text) in [
        (1, "00000000-0000-8000-8100-007665737461"),
        (
            175_928_847_299_117_063,
            "0271065a-c102-8000-8700-007665737461",
        ),
        (u64::MAX, "ffffffff-ffff-8fff-8f00-007665737461"),
    ] {
        assert_eq!(IdFormat::Uuid.encode(id), text);
        assert_eq!(IdFormat::Uuid.parse(&text.to_uppercase()).unwrap(), id);
    }
    for (layout, id, text) in [
        (
            IdMeta::SNOWFLAKE,
            1_785_223_470_585_921_538,
            "018f2e1a-2aa4-718c-8663-49b8f6c00276",
        ),
        (
            IdMeta::JS_SAFE,
            1_442_840_576_012_345,
            "019ab912-ac00-7000-8520-418000303976",
        ),
    ] {
        assert_eq!(of(layout).format(id).unwrap().as_str(), text);
        assert_eq!(of(layout).parse(&text.to_uppercase()).unwrap(), id);
    }
}

#[test]
fn a_uuid_from_elsewhere_is_refused() {
    for text in FOREIGN {
        let error = IdFormat::Uuid.parse(text).expect_err(text).to_string();
        assert!(error.contains("not that of an ID"), "{error}");
        let error = of(IdMeta::SNOWFLAKE)
            .parse(text)
            .expect_err(text)
            .to_string();
        assert!(
            error.contains("not the uuid-v7 of an ID of the layout snowflake"),
            "{error}"
        );
        assert!(matches!(read(text), Ok(Written::Long { .. })), "{text}");
    }
    for (text, said) in [
        ("", "36 characters"),
        ("0271065ac10280008700007665737461", "36 characters"),
        (
            "0271065a-c102-8000-8700-00766573746g",
            "character 36 is 'g'",
        ),
        ("+271065a-c102-8000-8700-007665737461", "character 1 is '+'"),
    ] {
        for error in [
            IdFormat::Uuid.parse(text).unwrap_err(),
            of(IdMeta::UID).parse(text).unwrap_err(),
        ] {
            assert!(error.to_string().contains(said), "{text}: {error}");
        }
    }
}

#[test]
fn a_uuid_of_an_id_is_recognised_without_its_layout() {
    let form = |text: &str| match read(text) {
        Ok(Written::Ids(ids)) => Some((ids[0].id, ids[0].form.name())),
        _ => None,
    };
    let (id, v8, v7) = (
        1_785_223_470_585_921_538,
        "18c66349-b8f6-8c00-8200-007665737461",
        "018f2e1a-2aa4-718c-8663-49b8f6c00276",
    );
    for (text, name) in [(v8, "uuid"), (v7, "uuid-v7")] {
        for text in [
            text.to_owned(),
            format!("\"{text}\""),
            format!("{{{text}}}"),
            text.replace('-', ""),
        ] {
            assert_eq!(form(&text), Some((id, name)), "{text}");
        }
    }
    assert_eq!(Form::UuidV7(IdMeta::UID).name(), UuidV7::NAME);
    // Of a layout that has no name.
    let spec = LayoutSpec {
        epoch: UnixMillis(1_700_000_000_000),
        ..*IdMeta::SNOWFLAKE.spec()
    };
    let text = of(IdMeta::new(spec).unwrap()).format(id).unwrap();
    assert!(matches!(
        read(text.as_str()),
        Ok(Written::Long { bits: 128, .. })
    ));
}

#[test]
fn only_layouts_with_the_time_on_top_have_uuids_of_version_7() {
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let error = UuidV7::new(&layout).unwrap_err().to_string();
        assert!(
            error.contains("fields above the time") && error.contains("the format uuid,"),
            "{error}"
        );
    }
    let machine_first = LayoutSpec {
        order: FieldOrder::MachineTimeSeq,
        ..*IdMeta::SNOWFLAKE.spec()
    };
    assert!(UuidV7::new(&IdMeta::foreign(machine_first).unwrap()).is_err());
    let long = LayoutSpec {
        time_bits: 50,
        seq_bits: 12,
        machine_bits: 1,
        ..*IdMeta::SNOWFLAKE.spec()
    };
    let error = UuidV7::new(&IdMeta::new(long).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.contains("10889"), "{error}");
    let negative = of(IdMeta::SNOWFLAKE)
        .format(1 << 63 | 5)
        .unwrap_err()
        .to_string();
    assert!(negative.contains("version 0"), "{negative}");
    let above = of(IdMeta::JS_SAFE).format(1 << 53).unwrap_err().to_string();
    assert!(above.contains("9007199254740991"), "{above}");
}

/// Layouts with the time on top, in each unit.
fn layouts() -> Vec<IdMeta> {
    let own = |unit| {
        IdMeta::foreign(LayoutSpec {
            unit,
            ..*IdMeta::SNOWFLAKE.spec()
        })
        .unwrap()
    };
    let units = [
        TimeUnit::TenMillis,
        TimeUnit::TenMicros,
        TimeUnit::Microsecond,
    ]
    .map(own);
    let named = layouts::all().filter(|layout| UuidV7::new(layout).is_ok());
    named.chain(units).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_id_of_every_layout_reads_back_and_sorts(raw in any::<[u64; 2]>(), near in 0..1000u64) {
        for layout in layouts() {
            let below = 1u64 << (layout.total_bits() - layout.spec().version_bits).min(63);
            let [a, b] = raw.map(|raw| raw % below);
            for b in [b, (a + near) % below] {
                let uuids = of(layout);
                let [x, y] = [a, b].map(|id| uuids.format(id).unwrap());
                prop_assert_eq!(uuids.parse(x.as_str()).unwrap(), a);
                prop_assert_eq!(x.as_str().cmp(y.as_str()), a.cmp(&b), "{}", layout);
                let millis = u64::from_str_radix(&x.as_str().replace('-', "")[..12], 16).unwrap();
                let Id { time, .. } = layout.unpack(a).unwrap();
                prop_assert_eq!(UnixMillis(millis), layout.moment_of(time).unwrap());
                // Another time, version, variant or ending.
                for (at, digit) in [(0, 'e'), (12, '5'), (14, '8'), (19, '9'), (35, '5')] {
                    let mut other = x.to_string();
                    other.replace_range(at..=at, &digit.to_string());
                    prop_assert!(other == x.as_str() || uuids.parse(&other).is_err(), "{}", other);
                }
            }
        }
    }
}

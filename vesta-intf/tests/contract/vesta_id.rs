//! `VestaId`: the ID as a value in a program.

use vesta_intf::{ErrorKind, IdMeta, IdType, VestaId};

const LARGEST_SIGNED: u64 = i64::MAX as u64;

#[test]
fn only_digits_parse() {
    for id in [0, 7, (1 << 53) + 1, LARGEST_SIGNED, u64::MAX] {
        let text = VestaId::from(id).to_string();
        assert_eq!(text, id.to_string());
        assert_eq!(text.parse::<VestaId>().map(u64::from).unwrap(), id);
    }
    for text in [
        "",
        "+1",
        "-1",
        " 1",
        "1 ",
        "1e3",
        "0x1",
        "١",
        "18446744073709551616",
    ] {
        assert_eq!(
            text.parse::<VestaId>().unwrap_err().kind(),
            ErrorKind::Invalid,
            "{text:?}"
        );
    }
}

#[test]
fn order_is_that_of_unsigned_numbers() {
    let ascending = [0, 1, LARGEST_SIGNED, LARGEST_SIGNED + 1, u64::MAX].map(VestaId::from);
    assert!(ascending.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_sign_bit_is_an_error_and_does_not_wrap() {
    for id in [0, LARGEST_SIGNED] {
        let signed = i64::try_from(VestaId::from(id)).unwrap();
        assert_eq!(signed.cast_unsigned(), id);
        assert_eq!(VestaId::try_from(signed).unwrap(), VestaId::from(id));
    }
    for id in [LARGEST_SIGNED + 1, u64::MAX] {
        let error = i64::try_from(VestaId::from(id)).unwrap_err().to_string();
        assert!(
            error.contains("version 1") && error.contains(&id.to_string()),
            "{error}"
        );
        let error = VestaId::try_from(id.cast_signed()).unwrap_err().to_string();
        assert!(
            error.contains("version 1") && error.contains("negative"),
            "{error}"
        );
    }
}

#[test]
fn the_type_bit_selects_the_layout_of_the_moment() {
    let moment = IdMeta::MAX_PEAK.moment_of(86_400).unwrap();
    for (id_type, time) in [
        (IdType::MaxPeak, 86_400),
        (IdType::MinGranularity, 86_400_000),
    ] {
        let meta = IdMeta::of_type(id_type);
        let id = vesta_intf::Id {
            time,
            id_type: id_type.value(),
            ..Default::default()
        };
        let id = VestaId::from(meta.pack(&id).unwrap());
        assert_eq!(
            id.created_at(&IdMeta::MAX_PEAK).unwrap(),
            moment,
            "{id_type:?}"
        );
    }
    let too_long = VestaId::from(u64::MAX).created_at(&IdMeta::JS_SAFE);
    assert_eq!(too_long.unwrap_err().kind(), ErrorKind::OutOfRange);
}

#[cfg(feature = "serde")]
mod json {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Order {
        id: VestaId,
        #[serde(with = "vesta_intf::id_as_number")]
        number: VestaId,
    }

    #[test]
    fn an_id_serializes_as_a_string_unless_a_number_is_requested() {
        let id = VestaId::from((1 << 53) + 1);
        let json = r#"{"id":"9007199254740993","number":9007199254740993}"#;
        assert_eq!(
            serde_json::to_string(&Order { id, number: id }).unwrap(),
            json
        );
        assert_eq!(
            serde_json::from_str::<Order>(json).unwrap(),
            Order { id, number: id }
        );
    }

    #[test]
    fn a_number_is_refused_where_a_string_is_expected() {
        for json in ["1", "9007199254740992.0", "null", "\"-1\"", "\"1.0\""] {
            assert!(serde_json::from_str::<VestaId>(json).is_err(), "{json}");
        }
        let error = serde_json::from_str::<VestaId>("1")
            .unwrap_err()
            .to_string();
        assert!(error.contains("a string of decimal digits"), "{error}");
    }
}

#[cfg(feature = "utoipa")]
#[test]
fn the_schema_is_that_of_the_string() {
    let schema = serde_json::to_value(<VestaId as utoipa::PartialSchema>::schema()).unwrap();
    let id = VestaId::from(u64::MAX);
    assert_eq!(
        (&schema["type"], &schema["format"]),
        (&"string".into(), &"uint64".into())
    );
    assert_eq!(
        schema["pattern"],
        format!("^[0-9]{{1,{}}}$", id.to_string().len())
    );
}

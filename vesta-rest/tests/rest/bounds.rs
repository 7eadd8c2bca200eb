//! ID bounds of a moment, for comparisons in a database.

use serde_json::{Value, json};
use vesta_intf::{IdMeta, LayoutSpec, UnixMillis};

use crate::support::{NOW, get, service, service_of};

const NEW_YEAR: &str = "2026-01-01T00:00:00Z";

#[actix_web::test]
async fn a_published_moment_has_its_bounds() {
    // 2022-06-28T16:07:40.105Z is 367,597,485,448 ms after Twitter's epoch.
    let answer = get(
        &service_of(IdMeta::SNOWFLAKE),
        "/v1/ids:bound?time=1656432460105",
    )
    .await;
    let lower: u64 = 367_597_485_448 << 22;
    assert_eq!(
        answer.json(),
        json!({
            "lower": lower.to_string(), "upper": (lower + (1 << 22) - 1).to_string(),
            "moment": "2022-06-28T16:07:40.105Z", "layout": "snowflake", "genMethod": 0,
        })
    );
}

/// The texts come from repeated division in Python.
#[actix_web::test]
async fn bounds_use_the_requested_format() {
    let service = service();
    for (format, lower, upper) in [
        ("decimal", "2678628990637309952", "2678628991711051775"),
        (
            "padded-decimal",
            "02678628990637309952",
            "02678628991711051775",
        ),
        ("base62", "3Bs9FVQAXuy", "3Bs9FWaprDT"),
    ] {
        let uri = format!("/v1/ids:bound?time={NEW_YEAR}&format={format}");
        let answer = get(&service, &uri).await.json();
        assert_eq!(
            (&answer["lower"], &answer["upper"]),
            (&json!(lower), &json!(upper)),
            "{format}"
        );
    }
}

#[actix_web::test]
async fn a_time_span_is_a_range_of_ids() {
    for layout in [
        IdMeta::MAX_PEAK,
        IdMeta::MIN_GRANULARITY,
        IdMeta::SNOWFLAKE,
        IdMeta::JS_SAFE,
    ] {
        let service = service_of(layout);
        let number = |answer: &Value, name: &str| -> u64 {
            answer[name].as_str().expect("a string").parse().unwrap()
        };
        let unit = layout.spec().unit.millis();
        let at = async |millis: u64| {
            let uri = format!("/v1/ids:bound?time={millis}");
            let answer = get(&service, &uri).await.json();
            (number(&answer, "lower"), number(&answer, "upper"), answer)
        };
        let (lower, upper, _) = at(NOW.0).await;
        let (next, _, _) = at(NOW.0 + unit).await;
        let (_, before, _) = at(NOW.0 - 1).await;
        assert_eq!((upper + 1, before + 1), (next, lower), "{layout}");
        for _ in 0..100 {
            let id = service.gen_id().unwrap();
            assert!((lower..=upper).contains(&id), "{layout}: {id}");
        }
        // A tick counts as a whole, and the answer has its start.
        let (within, _, answer) = at(NOW.0 + unit - 1).await;
        assert_eq!(within, lower);
        let now = NOW.to_string();
        assert!(now.starts_with(answer["moment"].as_str().unwrap().trim_end_matches('Z')));
    }
}

/// A query, the kind of the problem, the parameter that it names, and its detail.
const REFUSED: &str = "
? INVALID time time is missing; it must be {forms}
?time= INVALID time {a_moment}, but is empty
?time=-1 INVALID time {a_moment}, but is `-1`
?time=now INVALID time {a_moment}, but is `now`
?time=2026-01-32 INVALID time {a_moment}, but is `2026-01-32`
?time=2026-01-01T00:00:00 INVALID time time must have an offset from UTC: 2026-01-01T00:00:00Z in UTC, 2026-01-01T00:00:00+08:00 in China, but is `2026-01-01T00:00:00`
?time=2026-01-01T08:00:00+08:00 INVALID time {a_moment}, but is `2026-01-01T08:00:00 08:00`; in a URL + is written %2B
?time=2026-02-29T00:00:00Z INVALID time {a_moment}, but is `2026-02-29T00:00:00Z`
?time=1767225600 INVALID time {a_moment} (with at least 12 digits: fewer may be meant as seconds or as a date), but is `1767225600`
?time=2049-01-09T05:37:04Z INVALID time time: 2049-01-09T05:37:04.000Z is not before 2049-01-09T05:37:04.000Z, where the layout ends
?time=1960-01-01T00:00:00Z INVALID time time must not be before 1970, but is `1960-01-01T00:00:00Z`
?time=18446744073709551616 INVALID time time must be at most 18446744073709551615, but is `18446744073709551616`
?time=0&time=1 INVALID time time must be given only once
?time=1767225600000&type=2 OUT_OF_RANGE type type must be a whole number 0 to 1, but is `2`
?time=1767225600000&genMethod=4 OUT_OF_RANGE genMethod genMethod must be a whole number 0 to 3, but is `4`
?time=1767225600000&version=2 OUT_OF_RANGE version version must be a whole number 0 to 1, but is `2`
?time=1767225600000&genMethod=rest INVALID genMethod genMethod must be a whole number 0 to 3, but is `rest`
?time=1767225600000&machine=1 INVALID machine unknown parameter `machine`; this endpoint takes time, type, genMethod, version, format";

#[actix_web::test]
async fn times_outside_the_layout_are_refused() {
    let service = service();
    let forms = vesta_boot::moment::FORMS;
    for line in REFUSED.lines().skip(1) {
        let [query, kind, parameter, detail] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let detail = detail
            .replace("{a_moment}", "time must be {forms}")
            .replace("{forms}", forms);
        let answer = get(&service, &format!("/v1/ids:bound{query}")).await;
        assert_eq!(answer.problem(400, kind), detail, "{query}");
        assert_eq!(answer.json()["parameter"], parameter, "{query}");
    }
    // The other type's time field reaches further.
    let uri = "/v1/ids:bound?time=2049-01-09T05:37:04Z&type=1";
    assert_eq!(get(&service, uri).await.status, 200);
}

#[actix_web::test]
async fn a_layout_without_type_and_method_accepts_only_zero_for_them() {
    let service = service_of(IdMeta::SNOWFLAKE);
    let plain = get(&service, "/v1/ids:bound?time=1767225600000").await;
    let zeros = get(
        &service,
        "/v1/ids:bound?time=1767225600000&type=0&genMethod=0&version=0",
    )
    .await;
    assert_eq!((plain.status, &plain.body), (200, &zeros.body));
    for name in ["type", "genMethod"] {
        let uri = format!("/v1/ids:bound?time=1767225600000&{name}=1");
        let detail = get(&service, &uri).await.problem(400, "OUT_OF_RANGE");
        assert_eq!(
            detail,
            format!("{name} must be a whole number 0 to 0, but is `1`")
        );
    }
    // A layout whose epoch is 1970 has bounds from there on.
    let spec = LayoutSpec {
        epoch: UnixMillis(0),
        time_bits: 42,
        machine_bits: 9,
        ..*IdMeta::SNOWFLAKE.spec()
    };
    let service = service_of(IdMeta::new(spec).unwrap());
    let answer = get(&service, "/v1/ids:bound?time=0").await.json();
    assert_eq!(
        answer,
        json!({"lower": "0", "upper": "2097151", "moment": "1970-01-01T00:00:00.000Z", "layout": "custom", "genMethod": 0})
    );
}

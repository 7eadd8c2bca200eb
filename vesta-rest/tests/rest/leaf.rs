//! Requests of Leaf and uid-generator clients, and their responses.

use std::collections::BTreeMap;

use serde_json::Value;
use vesta_boot::Outcome;
use vesta_intf::{ErrorKind, FieldOrder, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

use vesta_rest::METHODS;

use crate::limits::Server;
use crate::segments::leafs;
use crate::support::{NOW, Raw, get, get_with, service_of};

/// `Accept` of an HTTP client without preferences, of a browser, of Spring's RestTemplate for a number.
const ACCEPTS: [(&str, &str); 6] = [
    ("*/*", "text/plain; charset=utf-8"),
    (
        "text/html,application/xhtml+xml,*/*;q=0.8",
        "text/plain; charset=utf-8",
    ),
    (
        "text/plain, application/json, application/*+json, */*",
        "text/plain; charset=utf-8",
    ),
    ("application/json", "application/json"),
    ("application/json, application/*+json", "application/json"),
    ("text/plain;q=0.5, application/json", "application/json"),
];

#[actix_web::test]
async fn a_snowflake_id_has_the_same_digits_under_either_media_type() {
    let service = service_of(IdMeta::SNOWFLAKE);
    let mut last = 0;
    for (accept, expected) in ACCEPTS {
        let answer = get_with(&service, "/api/snowflake/get/order", ("accept", accept)).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, expected),
            "{accept}"
        );
        assert_eq!(answer.header("cache-control"), "no-store");
        let id: u64 = answer.body.parse().expect("decimal digits");
        assert!(id > last);
        last = id;
    }
    let answer = get(&service, "/api/snowflake/get/any%20text").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, ACCEPTS[0].1)
    );
}

#[test]
fn superfluous_slashes_are_dropped_as_by_spring_mvc_5() {
    let server = Server::usual(service_of(uid_layout(WIDTHS[1])), Some(leafs()));
    let mut client = Raw::connect(server.address);
    let mut counted = BTreeMap::new();
    for (uri, path, status) in [
        (
            "/api/segment/get/leaf-segment-test/",
            "/api/segment/get/{tag}",
            200,
        ),
        (
            "//api//segment/get//leaf-segment-test",
            "/api/segment/get/{tag}",
            200,
        ),
        (
            "/api/segment/get/a%2Fb%20%3Ci%3E/",
            "/api/segment/get/{tag}",
            200,
        ),
        ("/api/segment/get/none/?x=1", "/api/segment/get/{tag}", 404),
        ("/api/snowflake/get/order/", "/api/snowflake/get/{key}", 200),
        ("/uid/get/", "/uid/get", 200),
        ("//uid/parse/?uid=1", "/uid/parse", 200),
        (
            "/tinyid/id/nextId/?bizType=a&token=b",
            "/tinyid/id/nextId",
            501,
        ),
        ("/genid/", "/genid", 200),
        ("/cache/", "/cache", 200),
        ("/v1/id/", "other", 404),
        ("/api/segment/get/", "other", 404),
    ] {
        assert_eq!(client.get(uri).status, status, "{uri}");
        *counted.entry(path).or_insert(0) += 1;
    }
    for (path, expected) in counted {
        let method = METHODS.iter().position(|method| *method == path).unwrap();
        let kinds = ErrorKind::all().map(Outcome::Error).chain([Outcome::Ok]);
        let found: u64 = kinds.map(|it| server.metrics.requests(method, it)).sum();
        assert_eq!(found, expected, "{path}");
    }
}

#[actix_web::test]
async fn an_id_is_decoded_to_leafs_json() {
    let service = service_of(IdMeta::SNOWFLAKE);
    let id = (1_563_000_000_000_u64 - 1_288_834_974_657) << 22 | 42 << 12 | 7;
    let answer = get(&service, &format!("/decodeSnowflakeId?snowflakeId={id}")).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    let body = answer.json();
    assert_eq!(
        (&body["workerId"], &body["sequenceId"]),
        (&"42".into(), &"7".into())
    );
    let moment = body["timestamp"].as_str().expect("a string");
    let (millis, readable) = moment.split_once('(').expect("both");
    assert_eq!(millis, "1563000000000");
    // The time zone is the host's; dates and minutes are the same in every zone, except near
    // midnight.
    assert_eq!(readable.len(), "2019-07-13 06:40:00.000)".len());
    assert!(
        readable.starts_with("2019-07-1") && readable.ends_with("00.000)"),
        "{readable}"
    );
    assert_eq!(body.as_object().expect("an object").len(), 3);

    for uri in [
        "/decodeSnowflakeId",
        "/decodeSnowflakeId?snowflakeId=x",
        "/decodeSnowflakeId?id=1",
    ] {
        let detail = get(&service, uri).await.problem(400, "INVALID");
        assert!(detail.contains("snowflakeId"), "{detail}");
    }
}

/// Defaults of uid-generator and of its Spring Boot port, and two other widths, as (timeBits, workerBits, seqBits).
pub(crate) const WIDTHS: [(u8, u8, u8); 4] =
    [(28, 22, 13), (31, 20, 12), (30, 18, 15), (33, 10, 20)];

pub(crate) fn uid_layout((time_bits, machine_bits, seq_bits): (u8, u8, u8)) -> IdMeta {
    // The default's epoch ran out in 2024.
    let epoch = UnixMillis(1_704_038_400_000);
    let spec = LayoutSpec {
        time_bits,
        machine_bits,
        seq_bits,
        epoch,
        ..*IdMeta::UID.spec()
    };
    IdMeta::new(spec).expect("it adds up")
}

/// The time that uid-generator's JSON shows in the host's time zone.
fn shown(timestamp: &Value) -> i64 {
    let shown = jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", timestamp.as_str().unwrap());
    let zoned = shown.unwrap().to_zoned(jiff::tz::TimeZone::system());
    zoned.unwrap().timestamp().as_millisecond()
}

#[actix_web::test]
async fn uids_of_any_widths_are_made_parsed_and_explained() {
    for widths in WIDTHS {
        let layout = uid_layout(widths);
        let service = service_of(layout);
        for seq in 0..3_u64 {
            let uid = get(&service, "/uid/get").await;
            assert_eq!((uid.status, uid.header("cache-control")), (200, "no-store"));
            let parsed = get(&service, &format!("/uid/parse?uid={}", uid.body))
                .await
                .json();
            let explained = get(&service, &format!("/v1/ids/{}", uid.body)).await.json();
            assert_eq!(parsed["UID"], uid.body.as_str());
            assert_eq!(
                [&parsed["workerId"], &parsed["sequence"]],
                ["1021", &seq.to_string()]
            );
            assert_eq!(
                [&explained["machine"], &explained["seq"]],
                [1021, seq],
                "{widths:?}"
            );
            assert_eq!(explained["moment"], "2026-01-01T00:00:00Z");
            assert_eq!(
                shown(&parsed["timestamp"]),
                NOW.0.cast_signed(),
                "{widths:?}"
            );
            let id: u64 = uid.body.parse().expect("decimal digits");
            let time = (NOW.0 - layout.spec().epoch.0) / 1000;
            let (_, worker_bits, seq_bits) = widths;
            assert_eq!(
                id,
                time << (worker_bits + seq_bits) | 1021 << seq_bits | seq
            );
        }
        get(&service, "/uid/parse?uid=-1")
            .await
            .problem(400, "INVALID");
    }
}

#[actix_web::test]
async fn a_server_of_another_layout_refuses_uids() {
    let in_millis = LayoutSpec {
        unit: TimeUnit::Millisecond,
        time_bits: 41,
        machine_bits: 9,
        ..*IdMeta::UID.spec()
    };
    let seq_above = LayoutSpec {
        order: FieldOrder::TimeSeqMachine,
        ..*uid_layout(WIDTHS[1]).spec()
    };
    let others = [in_millis, seq_above].map(|spec| IdMeta::new(spec).expect("it adds up"));
    let vestas = [
        IdMeta::MAX_PEAK,
        IdMeta::MIN_GRANULARITY,
        IdMeta::SNOWFLAKE,
        IdMeta::JS_SAFE,
    ];
    for layout in vestas.into_iter().chain(others) {
        let service = service_of(layout);
        let own = get(&service, "/genid").await.body;
        for uri in [
            "/uid/get",
            &format!("/uid/parse?uid={own}"),
            "/uid/parse?uid=3504693469186",
        ] {
            let detail = get(&service, uri).await.problem(501, "UNSUPPORTED");
            let named = format!("layout {}", layout.name());
            assert!(
                detail.contains(&named) && detail.contains("move/uid-generator.md"),
                "{detail}"
            );
            assert!(detail.contains("/expid?layout=uid"), "{detail}");
        }
        let old = get(&service, "/expid?layout=uid&id=3504693469186")
            .await
            .json();
        assert_eq!([&old["machine"], &old["seq"], &old["time"]], [19, 2, 102]);
    }
}

//! The JSON API.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vesta_intf::IdMeta;

use crate::support::{MACHINE, ask, builder, get, post, service, service_of};

#[actix_web::test]
async fn ids_are_strings_strictly_ascending_and_not_cached() {
    let service = service();
    let answer = get(&service, "/v1/id").await;
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, "no-store")
    );
    let mut last: u64 = answer.json()["id"]
        .as_str()
        .expect("a string")
        .parse()
        .unwrap();

    for count in [1, 2, 999, 1000] {
        let answer = get(&service, &format!("/v1/ids?count={count}")).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store")
        );
        let ids = answer.json()["ids"].as_array().unwrap().clone();
        assert_eq!(ids.len(), count);
        for id in ids {
            let id: u64 = id.as_str().expect("a string").parse().unwrap();
            assert!(id > last, "{id} after {last}");
            last = id;
            assert_eq!(service.exp_id(id).unwrap().machine, MACHINE);
        }
    }
}

#[actix_web::test]
async fn counts_outside_1_to_1000_are_refused_not_clamped() {
    let service = service();
    for (query, kind) in [
        ("?count=0", "OUT_OF_RANGE"),
        ("?count=1001", "OUT_OF_RANGE"),
        ("?count=18446744073709551616", "OUT_OF_RANGE"),
        ("?count=-1", "INVALID"),
        ("?count=ten", "INVALID"),
        ("?count=", "INVALID"),
        ("?count=1&count=2", "INVALID"),
        ("?n=1", "INVALID"),
        ("", "INVALID"),
    ] {
        let detail = get(&service, &format!("/v1/ids{query}"))
            .await
            .problem(400, kind);
        assert!(
            detail.contains("count") || query == "?n=1",
            "{query}: {detail}"
        );
    }
    assert_eq!(
        get(&service, "/v1/ids?count=1001").await.json()["detail"],
        "count must be a whole number 1 to 1000, but is `1001`"
    );
}

/// First ID, step and count of the runs in an answer; the numbers that may exceed 2^53 are strings.
fn runs_of(answer: &Value) -> Vec<[u64; 3]> {
    let text = |run: &Value, name: &str| run[name].as_str().expect("a string").parse().unwrap();
    let run = |run: &Value| {
        let count = run["count"].as_u64().expect("a number");
        [text(run, "first"), text(run, "step"), count]
    };
    answer["runs"].as_array().unwrap().iter().map(run).collect()
}

#[actix_web::test]
async fn runs_add_up_to_the_count_and_share_no_id_with_other_answers() {
    // This clock stands still, and batches leave the last sixteenth of its second to single IDs.
    let service = std::sync::Arc::new(builder().pacing(false).build().unwrap());
    let mut seen = BTreeSet::from([service.gen_id().unwrap()]);
    for count in [1, 2, 10_000, 900_000] {
        let answer = get(&service, &format!("/v1/runs?count={count}")).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store")
        );
        let runs = runs_of(&answer.json());
        assert!(answer.body.len() < 200, "{}", answer.body);
        assert_eq!(runs.iter().map(|[_, _, count]| count).sum::<u64>(), count);
        for [first, step, count] in runs {
            for id in (0..count).map(|n| first + n * step) {
                assert!(seen.insert(id), "{id} twice");
            }
            let id = first + (count - 1) * step;
            assert_eq!(service.exp_id(id).unwrap().machine, MACHINE);
        }
        let id: u64 = get(&service, "/genid").await.body.parse().unwrap();
        assert!(seen.insert(id), "{id} twice");
    }
}

#[actix_web::test]
async fn runs_have_ids_above_2_to_the_63() {
    let service = std::sync::Arc::new(builder().version(1).build().unwrap());
    let answer = get(&service, "/v1/runs?count=3").await;
    let [[first, step, count]] = runs_of(&answer.json())[..] else {
        panic!("{answer:?}");
    };
    assert!(first > 1 << 63, "{first}");
    assert_eq!((step, count), (1024, 3));
}

#[actix_web::test]
async fn counts_of_runs_outside_1_to_1_048_576_are_refused_and_so_is_a_format() {
    let service = service();
    let before = service.gen_id().unwrap();
    for (query, kind, says) in [
        ("?count=0", "OUT_OF_RANGE", "whole number 1 to 1048576"),
        ("?count=1048577", "OUT_OF_RANGE", "but is `1048577`"),
        ("?count=4294967297", "OUT_OF_RANGE", "but is `4294967297`"),
        ("?count=-1", "INVALID", "but is `-1`"),
        ("?count=1&count=2", "INVALID", "given only once"),
        ("", "INVALID", "count is missing"),
        (
            "?count=1&format=hex",
            "INVALID",
            "unknown parameter `format`",
        ),
    ] {
        let answer = get(&service, &format!("/v1/runs{query}")).await;
        let detail = answer.problem(400, kind);
        assert!(detail.contains(says), "{query}: {detail}");
    }
    let after = service.gen_id().unwrap();
    assert_eq!(after - before, 1024, "a refused request takes no ID");
}

#[actix_web::test]
async fn only_numbers_are_explained() {
    let service = service();
    for (uri, kind) in [
        ("/v1/ids/abc", "INVALID"),
        ("/v1/ids/-1", "INVALID"),
        ("/v1/ids/18446744073709551616", "OUT_OF_RANGE"),
        ("/v1/ids/1?x=1", "INVALID"),
    ] {
        get(&service, uri).await.problem(400, kind);
    }
}

#[actix_web::test]
async fn invalid_bodies_are_refused_with_name_and_range() {
    let service = service();
    for (body, kind, detail) in [
        ("", "INVALID", "EOF"),
        ("{", "INVALID", "EOF"),
        ("[]", "INVALID", "the body does not match its schema"),
        (
            "{}",
            "INVALID",
            "time is missing; it must be a whole number 0 to 1073741823",
        ),
        (
            r#"{"time":1}"#,
            "INVALID",
            "seq is missing; it must be a whole number 0 to 1048575",
        ),
        (
            r#"{"time":1,"seq":0,"tine":2}"#,
            "INVALID",
            "unknown field `tine`",
        ),
        (
            r#"{"time":1,"seq":0,"seq":0}"#,
            "INVALID",
            "duplicate field `seq`",
        ),
        (
            r#"{"time":"1","seq":0}"#,
            "INVALID",
            "time must be a whole number 0 to 1073741823, but is `\"1\"`",
        ),
        (
            r#"{"time":-1,"seq":0}"#,
            "INVALID",
            "time must be a whole number 0 to 1073741823, but is `-1`",
        ),
        (r#"{"time":1.5,"seq":0}"#, "INVALID", "but is `1.5`"),
        (
            r#"{"time":1,"seq":0,"machine":1024}"#,
            "OUT_OF_RANGE",
            "machine must be a whole number 0 to 1023, but is `1024`",
        ),
        (
            r#"{"time":1,"seq":1048576}"#,
            "OUT_OF_RANGE",
            "seq must be a whole number 0 to 1048575",
        ),
        (
            r#"{"time":1,"seq":1024,"type":1}"#,
            "OUT_OF_RANGE",
            "seq must be a whole number 0 to 1023",
        ),
        (
            r#"{"time":1,"seq":0,"type":2}"#,
            "OUT_OF_RANGE",
            "type must be a whole number 0 to 1",
        ),
        (
            r#"{"time":1,"seq":0,"genMethod":4}"#,
            "OUT_OF_RANGE",
            "genMethod must be a whole number 0 to 3",
        ),
        (
            r#"{"time":1,"seq":0,"version":2}"#,
            "OUT_OF_RANGE",
            "version must be a whole number 0 to 1",
        ),
        (
            r#"{"time":18446744073709551616,"seq":0}"#,
            "INVALID",
            "time must be a whole number",
        ),
    ] {
        let said = post(&service, "/v1/ids:make", body)
            .await
            .problem(400, kind);
        assert!(said.contains(detail), "{body}: {said}");
    }
}

#[actix_web::test]
async fn a_body_is_json_of_at_most_16_kib() {
    let service = service();
    let padded = |length: usize| format!("{:length$}", r#"{"time":94990103,"seq":0}"#);
    assert_eq!(
        post(&service, "/v1/ids:make", padded(16 * 1024))
            .await
            .status,
        200
    );
    let detail = post(&service, "/v1/ids:make", padded(16 * 1024 + 1))
        .await
        .problem(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(detail, "the body must not be larger than 16384 bytes");

    let form = actix_web::test::TestRequest::post()
        .uri("/v1/ids:make")
        .insert_header(("content-type", "application/x-www-form-urlencoded"))
        .set_payload("time=1");
    ask(&service, form)
        .await
        .problem(415, "UNSUPPORTED_MEDIA_TYPE");
}

#[actix_web::test]
async fn the_layout_is_described() {
    let answer = get(&service(), "/v1/layout").await.json();
    let own = ["machine", "genMethod", "type", "version"].map(|name| answer[name].as_u64());
    assert_eq!(own, [Some(MACHINE), Some(2), Some(0), Some(0)]);
    let other = get(&service_of(IdMeta::SNOWFLAKE), "/v1/layout")
        .await
        .json();
    assert_eq!(other["order"], json!(["version", "time", "machine", "seq"]));
    assert_eq!(
        (&other["genMethod"], &other["machine"]),
        (&json!(0), &json!(MACHINE))
    );
}

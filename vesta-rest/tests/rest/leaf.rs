//! Requests of Leaf and uid-generator clients, and their responses.

use vesta_intf::{IdMeta, LayoutSpec, UnixMillis};

use crate::support::{get, get_with, service, service_of};

/// The request of an HTTP client with no wishes, of a browser, of Spring's RestTemplate for a number.
const ACCEPTS: [(&str, &str); 6] = [
    ("*/*", "text/plain; charset=utf-8"),
    ("text/html,application/xhtml+xml,*/*;q=0.8", "text/plain; charset=utf-8"),
    ("text/plain, application/json, application/*+json, */*", "text/plain; charset=utf-8"),
    ("application/json", "application/json"),
    ("application/json, application/*+json", "application/json"),
    ("text/plain;q=0.5, application/json", "application/json"),
];

#[actix_web::test]
async fn a_snowflake_id_is_the_same_digits_under_the_type_that_is_preferred() {
    let service = service_of(IdMeta::SNOWFLAKE);
    let mut last = 0;
    for (accept, expected) in ACCEPTS {
        let answer = get_with(&service, "/api/snowflake/get/order", ("accept", accept)).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, expected), "{accept}");
        assert_eq!(answer.header("cache-control"), "no-store");
        let id: u64 = answer.body.parse().expect("decimal digits");
        assert!(id > last);
        last = id;
    }
    let answer = get(&service, "/api/snowflake/get/any%20text").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, ACCEPTS[0].1));
}

#[actix_web::test]
async fn an_id_is_decoded_to_leafs_json() {
    let service = service_of(IdMeta::SNOWFLAKE);
    let id = (1_563_000_000_000_u64 - 1_288_834_974_657) << 22 | 42 << 12 | 7;
    let answer = get(&service, &format!("/decodeSnowflakeId?snowflakeId={id}")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    let body = answer.json();
    assert_eq!((&body["workerId"], &body["sequenceId"]), (&"42".into(), &"7".into()));
    let moment = body["timestamp"].as_str().expect("a string");
    let (millis, readable) = moment.split_once('(').expect("both");
    assert_eq!(millis, "1563000000000");
    // The zone is the host's; dates and minutes are the same in any of them but for the day's edge.
    assert_eq!(readable.len(), "2019-07-13 06:40:00.000)".len());
    assert!(readable.starts_with("2019-07-1") && readable.ends_with("00.000)"), "{readable}");
    assert_eq!(body.as_object().expect("an object").len(), 3);

    for uri in ["/decodeSnowflakeId", "/decodeSnowflakeId?snowflakeId=x", "/decodeSnowflakeId?id=1"]
    {
        let detail = get(&service, uri).await.problem(400, "INVALID");
        assert!(detail.contains("snowflakeId"), "{detail}");
    }
}

#[actix_web::test]
async fn a_uid_is_made_and_parsed_as_uid_generator_does() {
    // The default's epoch ran out in 2024.
    let spec = LayoutSpec { epoch: UnixMillis(1_704_038_400_000), ..*IdMeta::UID.spec() };
    let service = service_of(IdMeta::new(spec).expect("it adds up"));
    let uid = get(&service, "/uid/get").await;
    assert_eq!((uid.status, uid.header("cache-control")), (200, "no-store"));
    let answer = get(&service, &format!("/uid/parse?uid={}", uid.body)).await;
    let body = answer.json();
    assert_eq!(body["UID"], uid.body.as_str());
    assert_eq!((&body["workerId"], &body["sequence"]), (&"1021".into(), &"0".into()));
    let moment = body["timestamp"].as_str().expect("a string");
    assert_eq!(moment.len(), "2026-01-01 00:00:00".len());

    // 102 s after the epoch, worker 19, the third of its second.
    let id = 102_u64 << 35 | 19 << 13 | 2;
    let body = get(&service, &format!("/uid/parse?uid={id}")).await.json();
    assert_eq!((&body["workerId"], &body["sequence"]), (&"19".into(), &"2".into()));
    assert!(body["timestamp"].as_str().is_some_and(|text| text.ends_with(":01:42")), "{body}");
}

#[actix_web::test]
async fn a_server_of_another_layout_parses_uids_but_says_that_it_makes_none() {
    let service = service();
    let detail = get(&service, "/uid/get").await.problem(501, "UNSUPPORTED");
    assert!(
        detail.contains("layout max-peak") && detail.contains("FROM-UID-GENERATOR"),
        "{detail}"
    );
    let body = get(&service, &format!("/uid/parse?uid={}", 102_u64 << 35)).await.json();
    assert_eq!(body["workerId"], "0");
    get(&service, "/uid/parse?uid=-1").await.problem(400, "INVALID");
}

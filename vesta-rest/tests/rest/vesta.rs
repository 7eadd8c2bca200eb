//! Vesta's own four endpoints: golden values, and every input that must be refused.

use vesta_intf::{FieldOrder, IdMeta, LayoutSpec, TimeUnit};

use crate::support::{MACHINE, builder, get, service, service_of};

/// Type, machine, seq, time, genMethod, version and the ID: computed with the original converter.
pub(crate) const GOLDEN: [([u64; 6], u64); 9] = [
    ([0, 1, 0, 0, 0, 0], 0x1),
    ([0, 0, 1, 0, 0, 0], 0x400),
    ([0, 0, 0, 1, 0, 0], 0x4000_0000),
    ([0, 7, 42, 123_456_789, 1, 0], 1_285_482_222_412_933_127),
    (
        [0, 1023, 1_048_575, 1_073_741_823, 3, 1],
        0xbfff_ffff_ffff_ffff,
    ),
    ([0, 1021, 0, 94_990_103, 2, 0], 2_407_837_855_670_862_845),
    ([1, 0, 0, 1, 0, 0], 0x4000_0000_0010_0000),
    ([1, 7, 42, 123_456_789_012, 2, 0], 7_046_982_853_636_171_783),
    (
        [1, 1023, 1023, 1_099_511_627_775, 3, 1],
        0xffff_ffff_ffff_ffff,
    ),
];

#[actix_web::test]
async fn expid_has_the_original_body() {
    let service = service();
    for ([id_type, machine, seq, time, gen_method, version], id) in GOLDEN {
        let answer = get(&service, &format!("/expid?id={id}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(
            answer.body,
            format!(
                r#"{{"genMethod":{gen_method},"machine":{machine},"seq":{seq},"time":{time},"type":{id_type},"version":{version}}}"#
            )
        );
    }
}

#[actix_web::test]
async fn makeid_makes_the_golden_ids() {
    let service = service();
    for ([id_type, machine, seq, time, gen_method, version], id) in GOLDEN {
        let uri = format!(
            "/makeid?genMethod={gen_method}&type={id_type}&machine={machine}&time={time}&version={version}&seq={seq}"
        );
        let answer = get(&service, &uri).await;
        assert_eq!((answer.status, answer.body), (200, id.to_string()), "{uri}");
    }
}

#[actix_web::test]
async fn makeid_fills_in_the_servers_own_fields() {
    let service = service();
    let answer = get(&service, "/makeid?time=94990103&seq=0").await;
    assert_eq!(
        answer.body, "2407837855670862845",
        "machine {MACHINE}, genMethod 2, type 0, version 0"
    );
}

#[actix_web::test]
async fn transtime_returns_the_time_in_the_requested_zone() {
    let service = service();
    for (query, text) in [
        ("time=0", "2014-12-31T16:00:00.000Z"),
        ("time=94990103", "2018-01-04T02:08:23.000Z"),
        ("time=0&tz=Asia/Shanghai", "2015-01-01T00:00:00.000+08:00"),
        ("time=0&tz=Asia%2FShanghai", "2015-01-01T00:00:00.000+08:00"),
        (
            "time=15000000&tz=Europe/Berlin",
            "2015-06-23T08:40:00.000+02:00",
        ),
        ("time=0&tz=UTC", "2014-12-31T16:00:00.000+00:00"),
        ("time=1073741823", "2049-01-09T05:37:03.000Z"),
    ] {
        let answer = get(&service, &format!("/transtime?{query}")).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, text),
            "{query}"
        );
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
    let service = service_of(IdMeta::MIN_GRANULARITY);
    assert_eq!(
        get(&service, "/transtime?time=1").await.body,
        "2014-12-31T16:00:00.001Z"
    );
}

#[actix_web::test]
async fn genid_returns_a_new_id_that_no_cache_keeps() {
    let service = service();
    let mut last = 0;
    for _ in 0..100 {
        let answer = get(&service, "/genid").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-store");
        let id: u64 = answer.body.parse().unwrap();
        assert!(id > last, "{id} after {last}");
        last = id;
        let parts = service.exp_id(id).unwrap();
        assert_eq!(
            (parts.machine, parts.gen_method, parts.id_type),
            (MACHINE, 2, 0)
        );
    }
}

/// A path with its query, the kind of the problem, and its detail.
const REFUSED: &str = "
/v1/id?x=1 INVALID unknown parameter `x`; this endpoint takes format, once
/expid INVALID id is missing; it must be a whole number 0 to {max}
/expid?id= INVALID id must be a whole number 0 to {max}, but is empty
/expid?id=-1 INVALID id must be a whole number 0 to {max}, but is `-1`
/expid?id=%2B1 INVALID id must be a whole number 0 to {max}, but is `+1`
/expid?id=abc INVALID id must be a whole number 0 to {max}, but is `abc`
/expid?id=1.5 INVALID id must be a whole number 0 to {max}, but is `1.5`
/expid?id=18446744073709551616 OUT_OF_RANGE id must be a whole number 0 to {max}, but is `18446744073709551616`
/expid?id=1&id=1 INVALID id must be given only once
/expid?ID=1 INVALID id is missing; it must be a whole number 0 to {max}
/transtime INVALID time is missing; it must be a whole number 0 to 1073741823
/transtime?time=1073741824 OUT_OF_RANGE time must be a whole number 0 to 1073741823, but is `1073741824`
/transtime?time=0&tz=Mars/Olympus INVALID tz must be an IANA time zone, for example Asia/Shanghai, but is `Mars/Olympus`
/transtime?time=0&tz= INVALID tz must be an IANA time zone, for example Asia/Shanghai, but is ``
/makeid?seq=0 INVALID time is missing; it must be a whole number 0 to 1073741823
/makeid?time=0 INVALID seq is missing; it must be a whole number 0 to 1048575
/makeid?time=0&seq=0&machine=1024 OUT_OF_RANGE machine must be a whole number 0 to 1023, but is `1024`
/makeid?time=0&seq=1048576 OUT_OF_RANGE seq must be a whole number 0 to 1048575, but is `1048576`
/makeid?time=0&seq=1024&type=1 OUT_OF_RANGE seq must be a whole number 0 to 1023, but is `1024`
/makeid?time=0&seq=0&genMethod=4 OUT_OF_RANGE genMethod must be a whole number 0 to 3, but is `4`
/makeid?time=0&seq=0&type=2 OUT_OF_RANGE type must be a whole number 0 to 1, but is `2`
/makeid?time=0&seq=0&version=2 OUT_OF_RANGE version must be a whole number 0 to 1, but is `2`
/makeid?time=0&seq=0&seq=1 INVALID seq must be given only once";

#[actix_web::test]
async fn invalid_parameters_are_refused_with_name_and_range() {
    let service = service();
    for line in REFUSED.lines().skip(1) {
        let (uri, rest) = line.split_once(' ').unwrap();
        let (kind, detail) = rest.split_once(' ').unwrap();
        let detail = detail.replace("{max}", &u64::MAX.to_string());
        let answer = get(&service, uri).await;
        assert_eq!(answer.problem(400, kind), detail, "{uri}");
        let named = answer.json()["parameter"].as_str().unwrap().to_owned();
        assert!(detail.contains(&named), "{uri} names {named}");
    }
}

#[actix_web::test]
async fn an_id_beyond_a_narrow_layout_is_refused() {
    let service = service_of(IdMeta::JS_SAFE);
    assert_eq!(
        get(&service, "/expid?id=9007199254740991").await.status,
        200
    );
    let detail = get(&service, "/expid?id=9007199254740992")
        .await
        .problem(400, "OUT_OF_RANGE");
    assert!(
        detail.starts_with("id must be 0 to 9007199254740991"),
        "{detail}"
    );
}

/// A layout with one bit of sequence: two IDs a second.
pub(crate) fn tiny() -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 2,
        time_bits: 32,
        seq_bits: 1,
        machine_bits: 10,
        order: FieldOrder::TimeSeqMachine,
        unit: TimeUnit::Second,
        epoch: vesta_intf::UnixMillis(1_420_041_600_000),
    })
    .unwrap()
}

#[actix_web::test]
async fn without_an_id_in_time_the_answer_has_retry_after() {
    let service = builder()
        .layout(tiny())
        .pacing(false)
        .max_wait(std::time::Duration::ZERO)
        .build()
        .unwrap();
    let service = std::sync::Arc::new(service);
    for _ in 0..2 {
        assert_eq!(get(&service, "/genid").await.status, 200);
    }
    for uri in ["/genid", "/v1/id", "/v1/ids?count=2", "/v1/runs?count=2"] {
        let answer = get(&service, uri).await;
        answer.problem(429, "SEQUENCE_USED_UP");
        assert_eq!(answer.header("retry-after"), "1", "{uri}");
        // A second, less the tenth during which the refusal is held back.
        let left = answer.json()["retryAfterMs"].as_u64();
        assert!(
            left.is_some_and(|left| (900..1000).contains(&left)),
            "{uri}: {left:?}"
        );
        assert_eq!(answer.header("cache-control"), "no-store", "{uri}");
    }
}

#[actix_web::test]
async fn no_request_waits_beyond_its_limit() {
    // This clock stands still, so the next second never comes; tokio's clock jumps to its next timer.
    let service = std::sync::Arc::new(builder().layout(tiny()).pacing(false).build().unwrap());
    for _ in 0..2 {
        assert_eq!(get(&service, "/genid").await.status, 200);
    }
    tokio::time::pause();
    for uri in ["/genid", "/v1/id", "/v1/ids?count=2", "/v1/runs?count=2"] {
        get(&service, uri).await.problem(504, "DEADLINE_EXCEEDED");
    }
}

#[actix_web::test]
async fn a_closed_generator_is_503_with_retry_after() {
    let service = service();
    service.close();
    for uri in ["/genid", "/v1/id", "/v1/ids?count=2", "/v1/runs?count=2"] {
        let answer = get(&service, uri).await;
        answer.problem(503, "SEALED");
        assert_eq!(answer.header("retry-after"), "1", "{uri}");
    }
    assert_eq!(
        get(&service, "/expid?id=1").await.status,
        200,
        "explaining needs no machine ID"
    );
}

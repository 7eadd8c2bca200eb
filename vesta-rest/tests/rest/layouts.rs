//! Foreign IDs, explained by their layouts.

use serde_json::{Value, json};
use vesta_intf::{IdMeta, LayoutSpec, UnixMillis};

use crate::support::{get, service, service_of};

const NAMES: &str = "max-peak, min-granularity, snowflake, uid, js-safe, discord, instagram, mastodon, sonyflake, \
    sonyflake-2, uid-boot, cosid, cosid-second, cosid-js, yitter, seata, cockroach, tso, tsid, linkedin, \
    clickhouse, tiktok, weibo, bluesky, shardingsphere, vesta-old";

/// Published IDs and their known fields: Discord's API reference, Mastodon's documentation of "Status",
/// sony/sonyflake's `Decompose`. More are in vesta-intf/tests/contract/foreign.rs.
const PUBLISHED: [(&str, u64, &str, u64, u64); 3] = [
    (
        "discord",
        175_928_847_299_117_063,
        "2016-04-30T11:18:25.796Z",
        1 << 5,
        7,
    ),
    (
        "mastodon",
        103_270_115_826_048_975,
        "2019-12-08T03:48:33.849Z",
        0,
        40_911,
    ),
    (
        "sonyflake",
        257_532_141_091_473_317,
        "2019-07-13T15:11:57.880Z",
        51_109,
        0,
    ),
];

#[actix_web::test]
async fn published_foreign_ids_are_explained() {
    for service in [service(), service_of(IdMeta::JS_SAFE)] {
        for (layout, id, moment, machine, seq) in PUBLISHED {
            let answer = get(&service, &format!("/v1/ids/{id}?layout={layout}")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let explained = answer.json();
            assert_eq!(
                [&explained["id"], &explained["layout"], &explained["moment"]],
                [id.to_string().as_str(), layout, moment]
            );
            assert_eq!(
                [&explained["machine"], &explained["seq"]],
                [machine, seq],
                "{layout}"
            );

            let fields = get(&service, &format!("/expid?id={id}&layout={layout}"))
                .await
                .json();
            assert_eq!(fields.as_object().unwrap().len(), 6);
            for (name, value) in fields.as_object().unwrap() {
                assert_eq!(explained[name], *value, "{layout} {name}");
            }
        }
    }
    // Discord's example in base62, computed in Python.
    let uri = "/v1/ids/0Czks0tP37X?format=base62&layout=discord";
    assert_eq!(
        get(&service(), uri).await.json(),
        json!({
            "id": "0Czks0tP37X", "layout": "discord", "moment": "2016-04-30T11:18:25.796Z",
            "genMethod": 0, "machine": 32, "seq": 7, "time": 41_944_705_796_u64, "type": 0, "version": 0,
            "forms": {"base62": "0Czks0tP37X", "crockford": "04W86BB0G4007", "hex": "0271065ac1020007"},
            "tick": {"lower": "175928847298985984", "upper": "175928847303180287"},
        })
    );
}

#[actix_web::test]
async fn an_unknown_layout_is_refused_with_the_known_names() {
    let service = service();
    for (given, shown) in [
        ("", "``"),
        ("Discord", "`Discord`"),
        ("custom", "`custom`"),
        ("twitter%0a", "`twitter\u{fffd}`"),
    ] {
        for uri in [
            format!("/v1/ids/1?layout={given}"),
            format!("/expid?id=1&layout={given}"),
        ] {
            let answer = get(&service, &uri).await;
            let detail = answer.problem(400, "INVALID");
            assert_eq!(
                detail,
                format!("layout must be one of {NAMES}, but is {shown}")
            );
            assert_eq!(answer.json()["parameter"], "layout");
        }
    }
    let twice = get(&service, "/expid?id=1&layout=uid&layout=uid")
        .await
        .problem(400, "INVALID");
    assert_eq!(twice, "layout must be given only once");
    for (uri, max) in [
        (
            "/expid?id=9223372036854775808&layout=sonyflake",
            9_223_372_036_854_775_807_u64,
        ),
        (
            "/v1/ids/9007199254740992?layout=js-safe",
            9_007_199_254_740_991,
        ),
    ] {
        let detail = get(&service, uri).await.problem(400, "OUT_OF_RANGE");
        assert!(
            detail.starts_with(&format!("id must be 0 to {max}, but is")),
            "{detail}"
        );
    }
}

/// 2407837855670862845 has type 0, 7046982853636171783 type 1.
#[actix_web::test]
async fn the_type_bit_decides_between_vestas_two_layouts() {
    for service in [service(), service_of(IdMeta::SNOWFLAKE)] {
        for (id, right, wrong) in [
            (2_407_837_855_670_862_845_u64, "max-peak", "min-granularity"),
            (7_046_982_853_636_171_783, "min-granularity", "max-peak"),
        ] {
            let answer = get(&service, &format!("/v1/ids/{id}?layout={right}"))
                .await
                .json();
            assert_eq!(
                (&answer["layout"], &answer["genMethod"]),
                (&right.into(), &2.into())
            );
            let detail = get(&service, &format!("/v1/ids/{id}?layout={wrong}"))
                .await
                .problem(400, "INVALID");
            assert_eq!(
                detail,
                format!("layout must be {right} for {id}, by its type bit, but is `{wrong}`")
            );
        }
    }
}

#[actix_web::test]
async fn each_listed_layout_can_be_requested() {
    let service = service();
    let answer = get(&service, "/v1/layouts").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    let layouts = answer.json()["layouts"].as_array().unwrap().clone();
    let names: Vec<_> = layouts
        .iter()
        .map(|layout| layout["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.join(", "), NAMES);
    for layout in &layouts {
        let name = layout["name"].as_str().unwrap();
        assert_eq!(layout["own"], name == "max-peak", "{name}");
        assert_eq!(
            layout["makesIds"],
            ![
                "mastodon",
                "seata",
                "cockroach",
                "tso",
                "tiktok",
                "weibo",
                "bluesky",
                "vesta-old"
            ]
            .contains(&name),
            "{name}"
        );
        assert!(
            layout["about"]
                .as_str()
                .is_some_and(|about| about.len() > 10),
            "{name}"
        );
        let bits: u64 = layout["bits"]
            .as_object()
            .unwrap()
            .values()
            .map(|bits| bits.as_u64().unwrap())
            .sum();
        assert_eq!(layout["totalBits"], bits, "{name}");
        if name != "min-granularity" {
            let explained = get(&service, &format!("/v1/ids/1?layout={name}"))
                .await
                .json();
            let epoch = layout["epoch"].as_str().unwrap();
            let epoch = match layout["unit"].as_str() {
                Some("second") => epoch.replace(".000Z", "Z"),
                _ => epoch.to_owned(),
            };
            assert_eq!(
                (&explained["layout"], explained["moment"].as_str()),
                (&layout["name"], Some(&*epoch))
            );
        }
    }
    // Numbers from Discord's API reference; the end is 2^42 ms after the epoch.
    let discord = layouts
        .iter()
        .find(|layout| layout["name"] == "discord")
        .unwrap();
    assert_eq!(
        *discord,
        json!({
            "name": "discord",
            "bits": {"version": 0, "type": 0, "genMethod": 0, "time": 42, "seq": 12, "machine": 10},
            "order": ["time", "machine", "seq"], "totalBits": 64,
            "unit": "millisecond", "unitMicros": 1000,
            "epoch": "2015-01-01T00:00:00.000Z", "epochMillis": 1_420_070_400_000_u64,
            "ends": "2154-05-15T07:35:11.104Z", "machineIds": 1024, "capacityPerSecond": 4_096_000, "sameLowBits": 0,
            "about": "Discord: machine is worker * 32 + process",
            "makesIds": true, "own": false,
        })
    );
    get(&service, "/v1/layouts?name=uid")
        .await
        .problem(400, "INVALID");
}

#[actix_web::test]
async fn a_custom_layout_is_listed_and_explains_ids() {
    let epoch = UnixMillis(1_704_067_200_000); // 2024-01-01T00:00:00Z
    let spec = LayoutSpec {
        epoch,
        ..*IdMeta::UID.spec()
    };
    let service = service_of(IdMeta::new(spec).unwrap());
    let layouts = get(&service, "/v1/layouts").await.json()["layouts"]
        .as_array()
        .unwrap()
        .clone();
    let own: Vec<&Value> = layouts
        .iter()
        .filter(|layout| layout["own"] == true)
        .collect();
    assert_eq!((layouts.len(), own.len()), (27, 1));
    assert_eq!(
        (&own[0]["name"], &own[0]["epoch"]),
        (&"custom".into(), &"2024-01-01T00:00:00.000Z".into())
    );
    let id = 3600_u64 << 35;
    for (query, moment) in [
        ("", "2024-01-01T01:00:00Z"),
        ("?layout=custom", "2024-01-01T01:00:00Z"),
        ("?layout=uid", "2016-05-19T17:00:00Z"),
    ] {
        assert_eq!(
            get(&service, &format!("/v1/ids/{id}{query}")).await.json()["moment"],
            moment
        );
    }
    let detail = get(&service, "/v1/ids/1?layout=x")
        .await
        .problem(400, "INVALID");
    assert!(
        detail.starts_with("layout must be one of custom, max-peak,"),
        "{detail}"
    );

    let other = get(&service_of(IdMeta::SNOWFLAKE), "/v1/layouts")
        .await
        .json();
    let own: Vec<_> = other["layouts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|layout| layout["own"] == true)
        .collect();
    assert_eq!((own.len(), &own[0]["name"]), (1, &"snowflake".into()));
}

#[actix_web::test]
async fn an_id_that_looks_rounded_comes_with_the_range_it_stands_for() {
    let service = service();
    for (id, rounded) in [
        (
            "2407837855670863000",
            json!({"by": "JavaScript", "from": "2407837855670862592", "until": "2407837855670863104"}),
        ),
        (
            "2407837855670860000",
            json!({"by": "Excel", "from": "2407837855670859520", "until": "2407837855670869999"}),
        ),
        ("2407837855670862845", Value::Null),
    ] {
        let explained = get(&service, &format!("/v1/ids/{id}")).await.json();
        assert_eq!(explained["rounded"], rounded, "{id}");
        assert_eq!(
            explained.get("rounded").is_some(),
            rounded.is_object(),
            "{id}: absent, not null"
        );
    }
    // Only decimal text is checked for rounding.
    let text = vesta_intf::IdFormat::Base62.encode(2_407_837_855_670_863_000);
    let explained = get(&service, &format!("/v1/ids/{text}?format=base62"))
        .await
        .json();
    assert_eq!(
        (explained["id"].as_str(), explained.get("rounded")),
        (Some(text.as_str()), None)
    );
}

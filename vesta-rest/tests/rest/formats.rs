//! ID text in every format: issued, parsed, and refused if malformed.

use actix_web::web;
use serde_json::{Value, json};
use vesta_boot::{Running, Security};
use vesta_intf::{IdFormat, IdMeta, MakeId, Shuffle, ShuffleKey, UuidV7};

use crate::support::{MACHINE, get, get_at, post, running, service, service_of};
use crate::vesta::GOLDEN;

/// The IDs of [`GOLDEN`] from the fifth on, in every format but decimal. Computed independently in Python:
/// `f"{n:020}"`, `f"{n:016x}"`, repeated division by 36, 62 and 32, and check symbols digit by digit.
const TEXTS: [&str; 5] = [
    "13835058055282163711 bfffffffffffffff 2X41IRSMLLCLB GU0iBVp7iAB BZZZZZZZZZZZZ BZZZZZZZZZZZZ8 138350580552821637115 1383505805528216371185 138350580552821637115 bfffffff-ffff-8fff-8f00-007665737461",
    "02407837855670862845 216a5bc5c00003fd 0IAKJA8DRATQ5 2rrvDihMXHR 22TJVRQ0000ZX 22TJVRQ0000ZX1 24078378556708628453 240783785567086284524 24078378556708628451 216a5bc5-c000-803f-8d00-007665737461",
    "04611686018428436480 4000000000100000 0Z1CI99JJTLA8 5UfZOVH6yAa 4000000010000 4000000010000U 46116860184284364802 461168601842843648010 46116860184284364800 40000000-0010-8000-8000-007665737461",
    "07046982853636171783 61cbe991a140a807 1HJFEXQZ9J8QV 8OZFsxR4MhL 63JZ9J6GM1A07 63JZ9J6GM1A070 70469828536361717838 704698285363617178322 70469828536361717833 61cbe991-a140-8a80-8700-007665737461",
    "18446744073709551615 ffffffffffffffff 3W5E11264SGSF LygHa16AHYF FZZZZZZZZZZZZ FZZZZZZZZZZZZB 184467440737095516158 1844674407370955161515 184467440737095516153 ffffffff-ffff-8fff-8f00-007665737461",
];

const NAMES: &str = "decimal, padded-decimal, hex, base36, base62, crockford, crockford-check, decimal-damm, decimal-mod97, decimal-luhn, uuid, uuid-v7, opaque";

/// The parts, the ID, the name of a format and the text in it.
fn golden() -> impl Iterator<Item = ([u64; 6], u64, IdFormat, String)> {
    GOLDEN[4..]
        .iter()
        .zip(TEXTS)
        .flat_map(|((parts, id), texts)| {
            let all = [id.to_string()]
                .into_iter()
                .chain(texts.split(' ').map(str::to_owned));
            IdFormat::ALL
                .into_iter()
                .zip(all)
                .map(|(format, text)| (*parts, *id, format, text))
        })
}

#[actix_web::test]
async fn golden_ids_are_assembled_in_every_format() {
    let service = service();
    for ([id_type, machine, seq, time, gen_method, version], _, format, text) in golden() {
        let uri = format!(
            "/makeid?type={id_type}&machine={machine}&seq={seq}&time={time}&genMethod={gen_method}&version={version}&format={format}"
        );
        let answer = get(&service, &uri).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, text.as_str()),
            "{uri}"
        );
        let body = json!({
            "type": id_type, "machine": machine, "seq": seq, "time": time,
            "genMethod": gen_method, "version": version,
        });
        let uri = format!("/v1/ids:make?format={format}");
        let answer = post(&service, &uri, body.to_string()).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"id": text})),
            "{uri}"
        );
    }
}

#[actix_web::test]
async fn golden_ids_are_explained_from_every_format() {
    let service = service();
    for (_, id, format, text) in golden() {
        let decimal = get(&service, &format!("/expid?id={id}")).await;
        let answer = get(&service, &format!("/expid?id={text}&format={format}")).await;
        assert_eq!(
            (answer.status, &answer.body),
            (200, &decimal.body),
            "{format} {text}"
        );

        let mut explained = get(&service, &format!("/v1/ids/{id}")).await.json();
        explained["id"] = Value::from(text.as_str());
        let answer = get(&service, &format!("/v1/ids/{text}?format={format}")).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, explained),
            "{format} {text}"
        );
    }
    // Hand-typed variants are accepted; the response has the canonical form.
    for (format, text) in [
        ("crockford", "22tjvrqOoooZX"),
        ("hex", "216A5BC5C00003FD"),
        ("decimal", "002407837855670862845"),
    ] {
        let answer = get(&service, &format!("/v1/ids/{text}?format={format}"))
            .await
            .json();
        let format: IdFormat = format.parse().unwrap();
        assert_eq!(
            answer["id"],
            format.encode(2_407_837_855_670_862_845),
            "{text}"
        );
        assert_eq!(answer["time"], 94_990_103);
    }
}

#[actix_web::test]
async fn new_ids_use_the_requested_format() {
    let service = service();
    let mut last = 0;
    let mut newer = |format: IdFormat, text: &str| {
        let (min, max) = format.lengths();
        assert!((min..=max).contains(&text.len()), "{format} {text}");
        let id = format.parse(text).unwrap();
        assert!(id > last, "{id} after {last}");
        last = id;
        assert_eq!(service.exp_id(id).unwrap().machine, MACHINE);
    };
    for format in IdFormat::ALL {
        let answer = get(&service, &format!("/genid?format={format}")).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store")
        );
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        newer(format, &answer.body);

        let answer = get(&service, &format!("/v1/id?format={format}")).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store")
        );
        newer(format, answer.json()["id"].as_str().expect("a string"));

        let answer = get(&service, &format!("/v1/ids?format={format}&count=1000")).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store")
        );
        let ids = answer.json()["ids"].as_array().unwrap().clone();
        assert_eq!(ids.len(), 1000);
        ids.iter()
            .for_each(|id| newer(format, id.as_str().expect("a string")));
        if format.is_sortable() {
            assert!(ids.is_sorted_by(|a, b| a.as_str() < b.as_str()), "{format}");
        }
    }
}

#[actix_web::test]
async fn an_unknown_format_is_refused_and_takes_no_id() {
    let service = service();
    let before = service.gen_id().unwrap();
    for path in [
        "/genid?",
        "/v1/id?",
        "/v1/ids?count=2&",
        "/expid?id=1&",
        "/v1/ids/1?",
        "/makeid?time=1&seq=0&",
        "/v1/ids:bound?time=2026-01-01T00:00:00Z&",
    ] {
        for (given, shown) in [
            ("", "``"),
            ("Hex", "`Hex`"),
            ("base64", "`base64`"),
            ("padded_decimal", "`padded_decimal`"),
            ("hex%20", "`hex `"),
            ("hex%0a", "`hex\u{fffd}`"),
        ] {
            let answer = get(&service, &format!("{path}format={given}")).await;
            let detail = answer.problem(400, "INVALID");
            assert_eq!(
                detail,
                format!("format must be one of {NAMES}, but is {shown}"),
                "{path}"
            );
            assert_eq!(answer.json()["parameter"], "format");
        }
        let detail = get(&service, &format!("{path}format=hex&format=hex"))
            .await
            .problem(400, "INVALID");
        assert_eq!(detail, "format must be given only once");
        let long = get(&service, &format!("{path}format={}", "x".repeat(2000))).await;
        assert!(long.problem(400, "INVALID").len() < 250);
    }
    let body = r#"{"time":1,"seq":0}"#;
    for (query, detail) in [
        (
            "format=Hex",
            format!("format must be one of {NAMES}, but is `Hex`"),
        ),
        (
            "x=1",
            "unknown parameter `x`; this endpoint takes format, once".to_owned(),
        ),
    ] {
        let answer = post(&service, &format!("/v1/ids:make?{query}"), body).await;
        assert_eq!(answer.problem(400, "INVALID"), detail);
    }
    let step = service.meta().step();
    assert_eq!(
        service.gen_id().unwrap(),
        before + step,
        "a refused request takes no ID"
    );

    // Leaf's and uid-generator's answers stay digits, as their callers expect.
    for query in [
        "/api/snowflake/get/order?",
        "/decodeSnowflakeId?snowflakeId=1&",
    ] {
        let answer = get(&service, &format!("{query}format=hex")).await;
        assert!(
            answer.status == 200 && !answer.body.contains("000000000"),
            "{answer:?}"
        );
    }
}

/// The default is decimal; another text is refused with all formats that it fits.
#[actix_web::test]
async fn a_text_without_its_format_is_refused_with_all_that_it_fits() {
    let answer = get(&service(), "/v1/ids/0IAKJA8DRATQ5").await;
    assert_eq!(
        answer.problem(400, "INVALID"),
        "id must be a whole number, but is `0IAKJA8DRATQ5`; it fits base36 (2407837855670862845), \
         crockford (47976443015424741): choose one with format="
    );
    let answer = get(
        &service(),
        "/v1/ids/0IAKJA8DRATQ5?format=base36&to=crockford",
    )
    .await;
    assert_eq!(answer.json()["id"], "22TJVRQ0000ZX");
    let answer = get(&service(), "/v1/ids/1?to=base63").await;
    let names = format!("to must be one of {NAMES}, but is `base63`");
    assert_eq!(answer.problem(400, "INVALID"), names);
}

const MISTYPED: &str = "a character of it was mistyped, swapped, lost or added";

/// vesta-intf describes and tests the faults of each format.
#[actix_web::test]
async fn malformed_id_text_is_refused_in_every_format() {
    let service = service();
    let decimal = "id must be a whole number 0 to 18446744073709551615, but is";
    for (format, text, kind, says) in [
        ("decimal", "", "INVALID", format!("{decimal} empty")),
        (
            "decimal",
            "216a5bc5c00003fd",
            "INVALID",
            format!("{decimal} `216a5bc5c00003fd`"),
        ),
        (
            "decimal",
            "18446744073709551616",
            "OUT_OF_RANGE",
            format!("{decimal} `18446744073709551616`"),
        ),
        // Digits alone are not taken as decimal.
        (
            "hex",
            "2407837855670862845",
            "INVALID",
            "id: hex takes exactly 16 characters, not 19".to_owned(),
        ),
        (
            "crockford-check",
            "22TJVRQ0000ZX2",
            "INVALID",
            format!("id: its check symbol is wrong (crockford): {MISTYPED}"),
        ),
    ] {
        let answer = get(&service, &format!("/expid?id={text}&format={format}")).await;
        assert_eq!(answer.problem(400, kind), says);
        assert_eq!(answer.json()["parameter"], "id");
        if !text.is_empty() {
            let answer = get(&service, &format!("/v1/ids/{text}?format={format}")).await;
            assert_eq!(answer.problem(400, kind), says);
        }
    }
    let detail = get(&service, "/expid?format=base62")
        .await
        .problem(400, "INVALID");
    assert_eq!(detail, "id is missing; it must be an ID as base62");
    // Without `format`, nothing is guessed.
    let texts = TEXTS.iter().flat_map(|texts| texts.split(' ').skip(1));
    for text in texts.filter(|text| text.contains(|c: char| !c.is_ascii_digit())) {
        get(&service, &format!("/expid?id={text}"))
            .await
            .problem(400, "INVALID");
        get(&service, &format!("/v1/ids/{text}"))
            .await
            .problem(400, "INVALID");
    }
}

/// The key of 32 bytes 1.
fn key() -> Shuffle {
    Shuffle::of_all(ShuffleKey::new(&[1; 32]))
}

fn with_key(layout: IdMeta, opaque: Option<Shuffle>) -> web::Data<Running> {
    let security = Security {
        opaque,
        ..Security::default()
    };
    web::Data::new(Running {
        security,
        ..running(service_of(layout), None)
    })
}

#[actix_web::test]
async fn uuids_of_version_7_and_opaque_ids_read_back() {
    let state = with_key(IdMeta::SNOWFLAKE, Some(key()));
    for format in ["uuid-v7", "opaque"] {
        let answer = get_at(&state, &format!("/v1/ids?format={format}&count=3")).await;
        let texts = answer.json()["ids"].clone();
        let mut last = 0;
        for text in texts.as_array().expect("a list") {
            let text = text.as_str().expect("a string");
            let explained = get_at(&state, &format!("/v1/ids/{text}?format={format}"))
                .await
                .json();
            assert_eq!(explained["id"], text);
            let id = state.service.make_id(&MakeId::new(
                explained["time"].as_u64().expect("a number"),
                explained["seq"].as_u64().expect("a number"),
            ));
            let id = id.expect("an ID");
            assert!(id > last, "{id} after {last}");
            last = id;
            let right = match format {
                "opaque" => IdFormat::Crockford.encode(key().shuffle(id)),
                _ => UuidV7::new(&IdMeta::SNOWFLAKE)
                    .and_then(|it| it.format(id))
                    .expect("a UUID")
                    .to_string(),
            };
            assert_eq!(text, right);
            // The existing ID, written so, and back.
            let to = get_at(&state, &format!("/v1/ids/{id}?to={format}")).await;
            assert_eq!(to.json()["id"], text);
            let back = format!("/v1/ids/{text}?format={format}&to=decimal");
            assert_eq!(get_at(&state, &back).await.json()["id"], id.to_string());
            assert_eq!(
                get_at(&state, &format!("/expid?id={text}&format={format}"))
                    .await
                    .status,
                200
            );
        }
    }
    let said = get_at(&state, "/v1/ids:bound?time=2026-01-01&format=opaque").await;
    assert!(said.problem(400, "INVALID").contains("do not sort"));
    let bound = get_at(&state, "/v1/ids:bound?time=2026-01-01&format=uuid-v7")
        .await
        .json();
    assert!(
        bound["lower"]
            .as_str()
            .expect("a text")
            .starts_with("019b76da-a800-7"),
        "{bound}"
    );
}

#[actix_web::test]
async fn a_format_without_its_key_or_layout_is_refused_and_takes_no_id() {
    let state = with_key(IdMeta::MAX_PEAK, None);
    let before = state.service.gen_id().expect("an ID");
    for (format, said) in [
        ("opaque", "set opaque.key_file"),
        ("uuid-v7", "use the format uuid,"),
    ] {
        for path in [
            "/genid?",
            "/v1/id?",
            "/v1/ids?count=2&",
            "/expid?id=1&",
            "/v1/ids/1?",
            "/makeid?time=1&seq=0&",
        ] {
            let answer = get_at(&state, &format!("{path}format={format}")).await;
            assert!(
                answer.problem(400, "INVALID").contains(said),
                "{path}: {answer:?}"
            );
            assert_eq!(answer.json()["parameter"], "format");
        }
    }
    assert_eq!(
        state.service.gen_id().expect("an ID"),
        before + state.service.meta().step()
    );
    // The opaque text of another key.
    let state = with_key(IdMeta::JS_SAFE, Some(key()));
    let foreign = Shuffle::of_all(ShuffleKey::new(&[2; 32])).shuffle(5);
    let text = IdFormat::Crockford.encode(foreign);
    let answer = get_at(&state, &format!("/v1/ids/{text}?format=opaque")).await;
    assert!(
        answer
            .problem(400, "INVALID")
            .contains("made with another key?"),
        "{answer:?}"
    );
}

//! The OpenAPI document matches the router.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::test::TestRequest;
use actix_web::web::Data;
use serde_json::{Value, json};
use vesta_boot::Running;
use vesta_boot::settings::Compat;
use vesta_explain::layouts;
use vesta_intf::{ErrorKind, IdMeta};
use vesta_rest::app::{ENDPOINTS, Verb};

use crate::support::{self, ask_with, get, post, running, service};

async fn document() -> Value {
    document_of(Compat::None).await
}

/// The document of a server with segments and serials.
async fn document_of(compat: Compat) -> Value {
    let mut running = running(service(), Some(crate::segments::leafs()));
    running.serials = Some(crate::serials::serials());
    running.config.compat = compat;
    document_by(running).await
}

async fn document_by(running: Running) -> Value {
    let request = TestRequest::get().uri("/openapi.json");
    let answer = ask_with(Data::new(running), request).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    answer.json()
}

/// Every object in the document, at any depth.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            found.push(object);
            object.values().for_each(|value| objects(value, found));
        }
        Value::Array(array) => array.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

fn operations(document: &Value) -> BTreeMap<(String, String), &Value> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.insert((path.clone(), method.clone()), operation);
        }
    }
    all
}

#[actix_web::test]
async fn it_lists_every_route_and_no_other() {
    for compat in [Compat::None, Compat::Tinyid] {
        let document = document_of(compat).await;
        let listed: BTreeSet<_> = operations(&document).into_keys().collect();
        assert_eq!(listed, routed(compat), "{compat:?}");
        let tags = document["tags"].as_array().unwrap();
        let has_tinyid = tags.iter().any(|tag| tag["name"] == "tinyid");
        assert_eq!(has_tinyid, compat == Compat::Tinyid);
    }
}

#[actix_web::test]
async fn the_document_omits_endpoints_that_are_off() {
    let paths = async |running| {
        let document = document_by(running).await;
        let tags = document["tags"].as_array().expect("tags").clone();
        let tags: Vec<_> = tags.iter().map(|tag| tag["name"].clone()).collect();
        let paths = document["paths"].as_object().expect("paths").clone();
        (
            paths.into_iter().map(|(path, _)| path).collect::<Vec<_>>(),
            json!(tags),
        )
    };
    let has = |paths: &[String], part: &str| paths.iter().any(|path| path.contains(part));
    let (bare, tags) = paths(running(service(), None)).await;
    for part in ["segment", "serial", "/cache", "/db", "/uid/", "/tinyid/"] {
        assert!(!has(&bare, part), "{part}: {bare:?}");
    }
    assert_eq!(tags, json!(["vesta", "v1", "leaf", "pages"]));
    let of_uid = layouts::named("uid-boot").expect("a layout that has not ended");
    let (of_uid, _) = paths(running(support::service_of(of_uid), None)).await;
    assert!(has(&of_uid, "/uid/get"), "{of_uid:?}");
    let (guarded, _) = paths(crate::tokens::guarded()).await;
    assert!(has(&guarded, "/db") && guarded.contains(&"/v1/serials".to_owned()));
}

fn routed(compat: Compat) -> BTreeSet<(String, String)> {
    ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.path != "/" && !endpoint.path.starts_with("/docs"))
        .filter(|endpoint| compat == Compat::Tinyid || !endpoint.path.starts_with("/tinyid/"))
        // For the layout of uid-generator, and for callers with tokens.
        .filter(|endpoint| !endpoint.path.starts_with("/uid/") && endpoint.path != "/v1/serials")
        .flat_map(|endpoint| {
            let methods: &[&str] = match endpoint.verb {
                Verb::Get => &["get"],
                Verb::Post => &["post"],
                Verb::Any => &["get", "post"],
                Verb::Every => &["get", "post", "put", "patch", "delete"],
            };
            methods
                .iter()
                .map(|method| (endpoint.path.to_owned(), (*method).to_owned()))
        })
        .collect()
}

#[actix_web::test]
async fn it_is_a_valid_document() {
    let document = document().await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    assert_eq!(document["info"]["title"], "Vesta");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));

    let mut all = Vec::new();
    objects(&document, &mut all);
    let mut references = 0;
    for reference in all.iter().filter_map(|object| object.get("$ref")?.as_str()) {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
        references += 1;
    }
    assert!(references > 10, "{references}");

    let mut ids = BTreeSet::new();
    for ((path, method), operation) in operations(&document) {
        assert!(
            ids.insert(operation["operationId"].as_str().unwrap()),
            "{path} {method}"
        );
        assert!(
            operation["summary"].as_str().is_some_and(|s| !s.is_empty()),
            "{path}"
        );
        let declared: BTreeSet<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
            .collect();
        let templated: BTreeSet<_> = path
            .split('/')
            .filter(|part| part.starts_with('{'))
            .map(str::to_owned)
            .collect();
        assert_eq!(declared, templated, "{path}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!(
                !response["description"].as_str().unwrap().is_empty(),
                "{path} {status}"
            );
            if status.starts_with('2') {
                continue;
            }
            let problem = &response["content"]["application/problem+json"];
            assert_eq!(
                problem["schema"]["$ref"], "#/components/schemas/Problem",
                "{path} {status}"
            );
            for (kind, example) in problem["examples"].as_object().unwrap() {
                assert_eq!(example["value"]["kind"], *kind, "{path}");
                assert_eq!(example["value"]["status"].to_string(), *status, "{path}");
            }
        }
    }
}

#[actix_web::test]
async fn it_names_the_errors_of_id_generation() {
    let document = document().await;
    for path in ["/genid", "/v1/id", "/v1/ids", "/v1/runs"] {
        let responses = &operations(&document)[&(path.to_owned(), "get".to_owned())]["responses"];
        for kind in [
            ErrorKind::OutOfRange,
            ErrorKind::Invalid,
            ErrorKind::SequenceUsedUp,
            ErrorKind::AwaitingLease,
            ErrorKind::ClockBehind,
            ErrorKind::NotHolder,
            ErrorKind::Sealed,
            ErrorKind::TimeExhausted,
            ErrorKind::DeadlineExceeded,
            ErrorKind::Internal,
        ] {
            let response = &responses[kind.http_status().to_string()];
            let examples = &response["content"]["application/problem+json"]["examples"];
            assert!(
                examples.get(kind.name()).is_some(),
                "{path} {}",
                kind.name()
            );
        }
        for status in ["429", "503"] {
            assert!(
                responses[status]["headers"].get("Retry-After").is_some(),
                "{path} {status}"
            );
        }
    }
}

#[actix_web::test]
async fn ids_are_strings_in_it() {
    let document = document().await;
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["IdText"]["type"], "string");
    for pointer in [
        "/OneId/properties/id",
        "/Explained/allOf/1/properties/id",
        "/ManyIds/properties/ids/items",
        "/Run/properties/first",
        "/Run/properties/step",
        "/Bounds/properties/lower",
        "/Bounds/properties/upper",
    ] {
        let reference = &schemas
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer}: {schemas:#}"))["$ref"];
        assert_eq!(reference, "#/components/schemas/IdText", "{pointer}");
    }
}

#[actix_web::test]
async fn it_names_every_format_and_every_layout() {
    let document = document().await;
    let formats = vesta_boot::TextFormat::names().collect::<Vec<_>>();
    let layouts: Vec<_> = layouts::all().map(|meta| meta.name()).collect();
    let mut takes = BTreeMap::new();
    for ((path, method), operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let names = match parameter["name"].as_str().unwrap() {
                "format" => &formats,
                "layout" => &layouts,
                _ => continue,
            };
            assert_eq!(
                (&parameter["in"], &parameter["required"]),
                (&"query".into(), &false.into())
            );
            assert_eq!(parameter["schema"]["enum"], json!(names), "{path}");
            takes
                .entry(format!("{method} {path}"))
                .or_insert_with(Vec::new)
                .push(names.len());
        }
    }
    let both = ["get /expid", "post /expid", "get /v1/ids/{id}"].map(|it| (it, vec![13, 26]));
    let format = [
        "get /genid",
        "post /genid",
        "get /makeid",
        "post /makeid",
        "get /v1/id",
        "get /v1/ids",
        "get /v1/ids:bound",
        "post /v1/ids:make",
    ];
    let all = format.map(|it| (it, vec![13])).into_iter().chain(both);
    assert_eq!(
        takes,
        all.map(|(it, counts)| (it.to_owned(), counts)).collect()
    );
}

#[actix_web::test]
async fn its_examples_are_real_answers() {
    let document = document().await;
    let service = service();
    let schemas = &document["components"]["schemas"];

    let explained = get(&service, "/v1/ids/2407837855670862845").await.json();
    assert_eq!(schemas["Explained"]["example"], explained);

    let made = post(
        &service,
        "/v1/ids:make",
        schemas["Parts"]["example"].to_string(),
    )
    .await
    .json();
    assert_eq!(schemas["OneId"]["example"], made);

    let mut layout = get(&service, "/v1/layout").await.json();
    layout["machine"] = schemas["Layout"]["example"]["machine"].clone();
    assert_eq!(schemas["Layout"]["example"], layout);

    let operations = operations(&document);
    let known = get(&service, "/v1/layouts").await.json();
    let example = &schemas["KnownLayout"]["example"];
    assert!(
        known["layouts"].as_array().unwrap().contains(example),
        "{known:#}"
    );

    for path in ["/expid", "/transtime", "/makeid", "/v1/ids:bound"] {
        let operation = operations[&(path.to_owned(), "get".to_owned())];
        let query: Vec<_> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|parameter| parameter["name"] != "once")
            .map(|parameter| {
                let example = parameter["example"].to_string();
                format!(
                    "{}={}",
                    parameter["name"].as_str().unwrap(),
                    example.trim_matches('"')
                )
            })
            .collect();
        let answer = get(&service, &format!("{path}?{}", query.join("&"))).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        if let Some(example) = operation["responses"]["200"]["content"]["text/plain"].get("example")
        {
            assert_eq!(*example, answer.body, "{path}");
        }
        if path == "/v1/ids:bound" {
            assert_eq!(schemas["Bounds"]["example"], answer.json());
        }
    }
}

#[actix_web::test]
async fn it_bounds_numbers_and_texts_as_the_server_does() {
    for (layout, time, seq, machine) in [
        (IdMeta::MAX_PEAK, (1_u64 << 40) - 1, (1 << 20) - 1, 1023),
        (IdMeta::JS_SAFE, (1 << 31) - 1, (1 << 14) - 1, (1 << 8) - 1),
    ] {
        let service = support::service_of(layout);
        let document = get(&service, "/openapi.json").await.json();
        let mut bounds = BTreeMap::new();
        for ((path, _), operation) in operations(&document) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
                let shape = [&schema["maximum"], &schema["pattern"], &schema["enum"]];
                assert!(
                    shape.iter().any(|it| !it.is_null()),
                    "{path} {name}: {schema}"
                );
                bounds.insert((path.clone(), name.to_owned()), schema["maximum"].as_u64());
            }
        }
        for (name, most) in [("time", time), ("seq", seq), ("machine", machine)] {
            assert_eq!(
                bounds[&("/makeid".to_owned(), name.to_owned())],
                Some(most),
                "{name}"
            );
            let query =
                format!("time=0&seq=0&{name}={}", most + 1).replacen(&format!("{name}=0&"), "", 1);
            get(&service, &format!("/makeid?{query}"))
                .await
                .problem(400, "OUT_OF_RANGE");
        }
    }
}

#[actix_web::test]
async fn a_new_id_leads_to_its_fields() {
    let document = document().await;
    let operations = operations(&document);
    let explain = &operations[&("/v1/ids/{id}".to_owned(), "get".to_owned())]["operationId"];
    for (path, method) in [("/v1/id", "get"), ("/v1/ids:make", "post")] {
        let link = &operations[&(path.to_owned(), method.to_owned())]["responses"]["200"]["links"]
            ["explain"];
        assert_eq!(link["operationId"], *explain);
        assert_eq!(link["parameters"]["id"], "$response.body#/id");
    }
}

//! The OpenAPI document, generated from the handlers' annotations.

mod tokens;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use actix_web::web::Bytes;
use serde::Serialize;
use serde_json::json;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder, Type,
};
use utoipa::{IntoParams, IntoResponses, OpenApi, ToSchema};
use vesta_intf::{IdError, IdFormat, IdMeta, NotReady, NotReadyReason};

use crate::dto;
use crate::handlers::{leaf, pages, segments, uid, v1, vesta};
use crate::problem::{PROBLEM_JSON, Problem};
use tokens::Tokens;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Vesta",
        description = "64-bit IDs that never repeat.\n\n\
            IDs are strings in JSON, because JavaScript and many JSON parsers round numbers above 2^53.\n\n\
            Errors are `application/problem+json` (RFC 9457). Decide by `kind`; where another attempt makes \
            sense, `retry_after_ms` and `Retry-After` say when. Parameters that are unknown, repeated or out \
            of range are refused; nothing is clamped or masked.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "vesta", description = "Vesta's own four endpoints, with the bodies of the Java Vesta"),
        (name = "v1", description = "The JSON API"),
        (name = "leaf", description = "The endpoints of Meituan's Leaf, with its bodies"),
        (name = "segments", description = "Segment numbers: dense, increasing sequences by tag, from a database"),
        (name = "uid", description = "The endpoints of Baidu's uid-generator, for a server with its layout"),
        (name = "about", description = "This document"),
    ),
    paths(
        vesta::genid, vesta::expid, vesta::transtime, vesta::makeid,
        v1::id, v1::ids, v1::explain, v1::make, v1::bound, v1::layout, v1::layouts,
        leaf::snowflake, segments::leaf_get, leaf::decode, segments::cache, segments::db,
        segments::v1_next, uid::get, uid::parse,
        pages::openapi,
    ),
    components(schemas(dto::ProblemBody<'static>)),
    modifiers(&Tokens),
)]
struct Api;

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
    let text = Api::openapi().to_pretty_json().expect("the document consists of text and numbers");
    Bytes::from(text)
});

/// The document as JSON.
pub(crate) fn document() -> Bytes {
    DOCUMENT.clone()
}

/// One number, or with `count` several.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the responses of two types")]
pub(crate) enum OneOrMany {
    One(dto::OneId),
    Many(dto::ManyIds),
}

/// The parameter `format` of a query.
pub(crate) struct FormatParam;

impl IntoParams for FormatParam {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![choice(
            "format",
            "Text format of IDs; default: decimal",
            IdFormat::ALL.map(IdFormat::name),
        )]
    }
}

/// The parameter `layout` of a query.
pub(crate) struct LayoutParam;

impl IntoParams for LayoutParam {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![choice(
            "layout",
            "The layout to explain the ID by; left out: the server's own, also if that is `custom`",
            IdMeta::all_known().map(|meta| meta.name()),
        )]
    }
}

/// A parameter that may be left out, with the names that it takes; the first is the example.
fn choice(
    name: &str,
    description: &str,
    names: impl IntoIterator<Item = &'static str>,
) -> Parameter {
    let names: Vec<_> = names.into_iter().collect();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .description(Some(description))
        .example(names.first().map(|first| json!(first)))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names))))
        .build()
}

type Responses = BTreeMap<String, RefOr<Response>>;

/// One response for each status, with an example of each problem that has it.
fn responses(problems: impl IntoIterator<Item = Problem>) -> Responses {
    let mut by_status: BTreeMap<u16, Vec<Problem>> = BTreeMap::new();
    for problem in problems {
        by_status.entry(problem.status().as_u16()).or_default().push(problem);
    }
    by_status.into_iter().map(|(code, all)| (code.to_string(), response(&all).into())).collect()
}

fn response(problems: &[Problem]) -> Response {
    let bodies = problems.iter().map(Problem::body);
    let description: Vec<_> =
        bodies.clone().map(|b| format!("`{}`: {}", b.kind, b.title)).collect();
    let examples = bodies.map(|b| (b.kind, ExampleBuilder::new().value(Some(json!(b))).build()));
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ProblemBody")))
        .examples_from_iter(examples)
        .build();
    let response =
        ResponseBuilder::new().description(description.join("; ")).content(PROBLEM_JSON, content);
    if problems.iter().all(|problem| problem.retry_after().is_none()) {
        return response.build();
    }
    let header = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
        .description(Some("Whole seconds after which another attempt makes sense, rounded up."))
        .build();
    response.header("Retry-After", header).build()
}

fn bad_input() -> [Problem; 2] {
    [
        IdError::OutOfRange { field: "machine", value: 1024, min: 0, max: 1023 }.into(),
        Problem::invalid("tim", "there is no parameter `tim`; this endpoint takes time, tz"),
    ]
}

/// Problems with the parameters of any endpoint.
pub(crate) struct BadInput;

impl IntoResponses for BadInput {
    fn responses() -> Responses {
        responses(bad_input())
    }
}

/// Problems with a JSON body, in addition to [`BadInput`].
pub(crate) struct BadJson;

impl IntoResponses for BadJson {
    fn responses() -> Responses {
        responses([
            Problem::body_too_slow(Duration::from_secs(2)),
            Problem::body_too_large(v1::MAX_BODY),
            Problem::not_json(),
        ])
    }
}

/// The server has no such tag.
pub(crate) struct NoSuchTag;

impl IntoResponses for NoSuchTag {
    fn responses() -> Responses {
        responses([IdError::NotFound { what: "segment tag `orders`".into() }.into()])
    }
}

/// The server does not offer this: it has another layout, or segment mode is off.
pub(crate) struct NotOffered;

impl IntoResponses for NotOffered {
    fn responses() -> Responses {
        let what = "segment mode is off; set segment.store (--segment-store)";
        responses([IdError::Unsupported { what: what.into() }.into()])
    }
}

/// Reasons why no ID can be made.
pub(crate) struct CannotMake;

impl IntoResponses for CannotMake {
    fn responses() -> Responses {
        let not_ready =
            |millis, why| NotReady { retry_after: Duration::from_millis(millis), why }.into();
        let errors: [IdError; 7] = [
            not_ready(480, NotReadyReason::SequenceUsedUp),
            not_ready(1500, NotReadyReason::AwaitingLease),
            not_ready(6000, NotReadyReason::ClockBehind),
            IdError::Sealed { reason: "the server is shutting down".into() },
            IdError::DeadlineExceeded,
            IdError::TimeExhausted,
            IdError::Internal {
                reason: "the state file could not be written".into(),
                source: None,
            },
        ];
        responses(bad_input().into_iter().chain(errors.map(Problem::from)))
    }
}

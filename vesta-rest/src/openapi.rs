//! The OpenAPI document, made from the endpoint table.

use actix_web::http::Method;
use actix_web::web::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::link::Link;
use utoipa::openapi::path::{Operation, OperationBuilder, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, Required, ResponseBuilder, Server};
use vesta_boot::settings::Compat;
use vesta_boot::{Running, Scopes, answers};
use vesta_intf::IdMeta;

use crate::described::content::{Schemas, named};

use crate::endpoint::Endpoint;
use crate::endpoints::ENDPOINTS;
use crate::handlers::uid::is_uid;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Vesta",
        description = "64-bit IDs that never repeat.\n\n\
            IDs are strings in JSON, because JavaScript and many JSON parsers round numbers above 2^53.\n\n\
            Errors are `application/problem+json` (RFC 9457). Branch on `kind`. If a retry makes \
            sense, `retryAfterMs` and `Retry-After` say when. Repeated or out-of-range parameters are \
            refused, and below `/v1` unknown ones too; nothing is clamped or masked.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "vesta", description = "Vesta's own four endpoints, with the bodies of the Java Vesta. As there, POST works too, \
            with a form or a query, and unknown parameters are ignored"),
        (name = "v1", description = "The JSON API"),
        (name = "leaf", description = "The endpoints of Meituan's Leaf, with its bodies. As there, POST works too, with a form \
            or a query, and unknown parameters are ignored"),
        (name = "segments", description = "Segment numbers: increasing sequences by tag, from a database"),
        (name = "serials", description = "Serials: formatted numbers by tag, such as invoice numbers"),
        (name = "uid", description = "The endpoints of Baidu's uid-generator, for a server with its layout. POST works too, \
            and unknown parameters are ignored"),
        (name = "tinyid", description = "The endpoints of Tinyid, for its clients. Every method works, and \
            unknown parameters are ignored"),
        (name = "pages", description = "This document and the gRPC protocol"),
    ),
)]
struct Api;

/// Name of the security scheme.
const TOKEN: &str = "token";

/// Name of the operation that explains an ID.
const EXPLAIN: &str = "v1_explain";

/// True if an endpoint works with the settings of this server: those of segments and serials need their store, others
/// the clients or the layout of another system.
fn is_offered(endpoint: &Endpoint, running: &Running) -> bool {
    let (needs, has_serials) = (endpoint.needs, running.serials.is_some());
    match endpoint.tag {
        "tinyid" => running.config.compat == Compat::Tinyid,
        "uid" => is_uid(running.service.meta()),
        "serials" if needs == Scopes::ADMIN => has_serials && running.security.auth.is_some(),
        "serials" => has_serials,
        _ if needs == Scopes::SEGMENTS => running.segments.is_some(),
        _ => true,
    }
}

/// The document of a server as JSON: the endpoints that it offers, with the bounds of its layout, and with tokens if it
/// has any.
pub(crate) fn document(running: &Running) -> Bytes {
    let (layout, tokens) = (running.service.meta(), running.security.auth.is_some());
    let mut document = Api::openapi();
    let mut schemas = Schemas::new();
    named::<answers::Problem>(&mut schemas);
    let documented = |it: &&Endpoint| !it.summary.is_empty() && is_offered(it, running);
    if let Some(tags) = &mut document.tags {
        tags.retain(|tag| {
            let mut offered = ENDPOINTS.iter().filter(documented);
            offered.any(|endpoint| endpoint.tag == tag.name)
        });
    }
    for endpoint in ENDPOINTS.iter().filter(documented) {
        let mut item = PathItem::default();
        // GET implies HEAD.
        let methods = endpoint
            .verb
            .methods()
            .iter()
            .filter(|method| **method != Method::HEAD);
        for (nth, method) in methods.enumerate() {
            let name = method.as_str().to_ascii_lowercase();
            let suffix = if nth == 0 {
                String::new()
            } else {
                format!("_{name}")
            };
            let operation = operation(endpoint, &suffix, layout, tokens, &mut schemas);
            let place = match name.as_str() {
                "get" => &mut item.get,
                "post" => &mut item.post,
                "put" => &mut item.put,
                "patch" => &mut item.patch,
                "delete" => &mut item.delete,
                _ => unreachable!("no endpoint takes {method}"),
            };
            *place = Some(operation);
        }
        document.paths.paths.insert(endpoint.path.to_owned(), item);
    }
    let mut components = Components::new();
    components.schemas = schemas;
    if tokens {
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A token from the server's settings ([[auth.tokens]]).",
            ));
        components.add_security_scheme(TOKEN, SecurityScheme::Http(token.build()));
    }
    if !running.config.base_path.is_empty() {
        document.servers = Some(vec![Server::new(&running.config.base_path)]);
    }
    document.components = Some(components);
    let text = document
        .to_pretty_json()
        .expect("the document consists of text and numbers");
    Bytes::from(text)
}

fn operation(
    endpoint: &Endpoint,
    suffix: &str,
    layout: &IdMeta,
    tokens: bool,
    schemas: &mut Schemas,
) -> Operation {
    let needs = if tokens { endpoint.needs } else { Scopes::NONE };
    let mut success = ResponseBuilder::new().description(endpoint.summary);
    for content in endpoint.returns {
        success = success.content(content.media, content.described(schemas));
        if content.has_id {
            let link = Link::builder()
                .operation_id(EXPLAIN)
                .parameter("id", "$response.body#/id")
                .description("The fields of this ID");
            success = success.link("explain", link.build());
        }
    }
    let mut operation = OperationBuilder::new()
        .operation_id(Some([endpoint.name, suffix].concat()))
        .tag(endpoint.tag)
        .summary(Some(endpoint.summary))
        .response("200", success);
    if !endpoint.description.is_empty() {
        operation = operation.description(Some(endpoint.description));
    }
    for param in endpoint.params {
        operation = operation.parameter(param.described(layout));
    }
    for body in endpoint.body {
        let body = RequestBodyBuilder::new()
            .description(Some("At most 16 KiB."))
            .content(body.media, body.described(schemas))
            .required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    if needs != Scopes::NONE {
        operation = operation.security(SecurityRequirement::new(TOKEN, [] as [&str; 0]));
    }
    let problems = crate::described::failures::problems(
        endpoint.failures,
        !endpoint.body.is_empty(),
        endpoint.needs != Scopes::NONE,
        needs,
    );
    for (status, response) in crate::described::failures::responses(problems) {
        operation = operation.response(status, response);
    }
    operation.build()
}

//! The application built from the endpoint table: a route for each path, a 405 for its other methods,
//! a 404 for everything else.

use actix_web::http::{Method, header};
use actix_web::middleware::{Compress, Condition};
use actix_web::web::{self, Bytes, Payload, ServiceConfig};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use vesta_boot::{Caller, Outcome, Running, Scopes, Span, answers};

pub use crate::endpoint::{Endpoint, Verb};
use crate::endpoints::OTHER;
pub use crate::endpoints::{ENDPOINTS, METHODS};
use crate::openapi;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::{self, Call, Document, authorize};
use crate::values::MAX_BODY;

/// Adds every endpoint and the shared state to an application.
pub fn configure(app: &mut ServiceConfig, running: web::Data<Running>) {
    app.app_data(running)
        .app_data(Document::new(openapi::document));
    for (method, endpoint) in ENDPOINTS.iter().enumerate() {
        let Endpoint {
            needs,
            handler,
            verb,
            ..
        } = *endpoint;
        // Only documents are worth compressing: an ID is shorter than a `Content-Encoding` header.
        let is_document = needs == Scopes::NONE && endpoint.params.is_empty();
        let known = (!is_document).then_some(endpoint.params);
        let mut resource = web::resource(endpoint.path);
        for way in verb.methods() {
            let route = move |req, payload| {
                answer(req, method, needs, move |req, caller| async move {
                    let body = body(verb, &req, payload).await?;
                    let params = match (verb, known) {
                        (Verb::Any | Verb::Every, Some(known)) => {
                            Params::lenient(req.query_string(), &body, known)?
                        }
                        _ => Params::read(req.query_string(), known)?,
                    };
                    handler(Call {
                        req,
                        caller,
                        params,
                        body,
                    })
                    .await
                })
            };
            resource = resource.route(web::method(way.clone()).to(route));
        }
        let allow = verb.allow();
        let resource = resource.wrap(Condition::new(is_document, Compress::default()));
        app.service(resource.default_service(web::to(move |req| {
            answer(req, OTHER, needs, move |_, _| async move {
                Err(Problem::method_not_allowed(allow))
            })
        })));
    }
    app.default_service(web::to(|req| {
        answer(req, OTHER, Scopes::ANY, |req: HttpRequest, _| async move {
            Err(state::no_such_path(&req))
        })
    }));
}

/// Authorizes a request, runs its handler, counts and times it, and turns an error into a response. A handler dropped
/// because its client went away counts as cancelled.
///
/// Authorization runs behind the router, so no other spelling of a path bypasses it.
async fn answer<F: Future<Output = Result<HttpResponse, Problem>>>(
    req: HttpRequest,
    method: usize,
    needs: Scopes,
    handler: impl FnOnce(HttpRequest, Caller) -> F,
) -> HttpResponse {
    let running = req
        .app_data::<web::Data<Running>>()
        .cloned()
        .expect("see state::running");
    let call = running.metrics.start(method);
    let mut span = Span::begin(
        |name| state::text(req.headers(), name),
        || described(&running, &req, method),
    );
    let result = match authorize(&running, req.headers(), needs) {
        Ok(caller) => handler(req, caller).await,
        Err(denied) => Err(denied.into()),
    };
    let (response, error) = match result {
        Ok(response) => (response, None),
        Err(problem) => (problem.response(), Some(problem.kind())),
    };
    call.done(error.map_or(Outcome::Ok, Outcome::Error));
    span.answered(
        "http.response.status_code",
        response.status().as_u16(),
        error,
    );
    response
}

/// Methods that a span names; those that a caller makes up are one.
const KNOWN: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
    Method::CONNECT,
];

/// Name and attributes of a request's span, as OpenTelemetry has them. Without the query: Tinyid's clients send their
/// tokens there.
fn described(
    running: &Running,
    req: &HttpRequest,
    method: usize,
) -> (String, Vec<(&'static str, String)>) {
    let below = |path: &str| [&running.config.base_path, path].concat();
    let is_https = running.security.http_tls.is_some();
    let scheme = if is_https { "https" } else { "http" };
    let is_known = KNOWN.contains(req.method());
    let (verb, short) = match req.method().as_str() {
        known if is_known => (known, known),
        _ => ("_OTHER", "HTTP"),
    };
    let mut attributes = vec![
        ("http.request.method", verb.to_owned()),
        ("url.path", below(req.path())),
        ("url.scheme", scheme.to_owned()),
    ];
    if !is_known {
        attributes.push(("http.request.method_original", req.method().to_string()));
    }
    if method == OTHER {
        return (short.to_owned(), attributes);
    }
    let route = below(METHODS[method]);
    let name = format!("{short} {route}");
    attributes.push(("http.route", route));
    (name, attributes)
}

/// Reads the body that an endpoint takes (JSON or a form) within the size and time limits. Other bodies are left
/// unread.
async fn body(verb: Verb, req: &HttpRequest, payload: Payload) -> Result<Bytes, Problem> {
    let is = |content_type| req.content_type().eq_ignore_ascii_case(content_type);
    match verb {
        // A request without a content type is accepted: hand-written clients omit it.
        Verb::Post
            if req.headers().contains_key(header::CONTENT_TYPE) && !is("application/json") =>
        {
            return Err(answers::Problem::not_json().into());
        }
        Verb::Post => {}
        Verb::Any | Verb::Every if is("application/x-www-form-urlencoded") => {}
        Verb::Any | Verb::Every | Verb::Get => return Ok(Bytes::new()),
    }
    let limit = state::running(req).config.limits.request_timeout;
    match tokio::time::timeout(limit, payload.to_bytes_limited(MAX_BODY)).await {
        Err(_) => Err(answers::Problem::body_too_slow(limit).into()),
        Ok(Err(_)) => Err(answers::Problem::body_too_large(MAX_BODY).into()),
        Ok(Ok(Err(error))) => Err(Problem::bad_body(format!(
            "the body cannot be read: {error}"
        ))),
        Ok(Ok(Ok(body))) => Ok(body),
    }
}

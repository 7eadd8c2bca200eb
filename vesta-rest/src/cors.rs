//! CORS: pages of other origins that may call the endpoints and read every answer, errors too.

use std::sync::Arc;

use actix_http::{HttpMessage as _, Request};
use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::problem::{Problem, quoted};

/// Methods that pages may use.
const METHODS: &str = "GET, HEAD, POST";

/// Time in seconds for which a browser keeps the answer to a preflight.
const MAX_AGE: u32 = 3600;

/// The origins that may call: some, none, or `*` for all.
#[derive(Debug, Clone)]
pub(crate) struct Cors(pub(crate) Arc<[String]>);

impl Cors {
    /// Headers of the answer to a request with these headers.
    pub(crate) fn of(&self, request: &HeaderMap) -> CorsHeaders {
        let origin = request.get(header::ORIGIN);
        let allows_all = self.0.first().is_some_and(|origin| origin == "*");
        let named =
            |origin: &&HeaderValue| self.0.iter().any(|it| it.as_bytes() == origin.as_bytes());
        CorsHeaders {
            varies: !allows_all && !self.0.is_empty(),
            allowed: if allows_all {
                origin.map(|_| HeaderValue::from_static("*"))
            } else {
                origin.filter(named).cloned()
            },
        }
    }

    /// Answers a preflight, if the request is one. The headers that it asks for are all allowed: tracing libraries and
    /// proxies add theirs, and no endpoint acts on an unknown one.
    pub(crate) fn preflight(&self, req: &Request) -> Option<Result<HttpResponse, Problem>> {
        if req.method() != Method::OPTIONS {
            return None;
        }
        let headers = req.headers();
        let method = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
        let origin = headers.get(header::ORIGIN)?;
        Some(if self.of(headers).allowed.is_none() {
            Err(Problem::foreign_origin(&String::from_utf8_lossy(
                origin.as_bytes(),
            )))
        } else if METHODS
            .split(", ")
            .all(|it| it.as_bytes() != method.as_bytes())
        {
            Err(Problem::method_not_allowed(METHODS))
        } else {
            asked_for(headers).map(|names| {
                let mut response = HttpResponse::NoContent();
                response.insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS));
                response.insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE));
                response.insert_header((
                    header::VARY,
                    "access-control-request-method, access-control-request-headers",
                ));
                if !names.is_empty() {
                    response.insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, names));
                }
                response.finish()
            })
        })
    }
}

/// Headers of an answer that let a page of an allowed origin read it.
#[derive(Debug)]
pub(crate) struct CorsHeaders {
    /// True if the answer to another origin has others.
    varies: bool,
    allowed: Option<HeaderValue>,
}

impl CorsHeaders {
    pub(crate) fn add_to(self, answer: &mut HeaderMap) {
        if self.varies {
            answer.append(header::VARY, HeaderValue::from_static("origin"));
        }
        if let Some(allowed) = self.allowed {
            answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
            let exposed = HeaderValue::from_static("retry-after");
            answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

/// The header names that a preflight asks for, as a list.
fn asked_for(headers: &HeaderMap) -> Result<String, Problem> {
    let lines = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let names = names
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty());
    let checked = names.map(|name| {
        HeaderName::from_bytes(name).map_err(|_| {
            let name = quoted(&String::from_utf8_lossy(name));
            let detail = format!("each name must be that of a header, but one is {name}");
            Problem::invalid("access-control-request-headers", detail)
        })
    });
    Ok(checked.collect::<Result<Vec<_>, _>>()?.join(", "))
}

//! One endpoint: path, method, scope, handler and documentation.

use std::pin::Pin;

use actix_web::HttpResponse;
use actix_web::http::Method;
use vesta_boot::Scopes;

use crate::described::content::Content;
use crate::described::failures::Failures;
use crate::described::params::Param;
use crate::problem::Problem;
use crate::state::Call;

/// HTTP method of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// GET and HEAD.
    Get,
    /// POST.
    Post,
    /// GET, HEAD and POST, for the paths of Vesta, Leaf and uid-generator. Like the servers of those systems, these
    /// paths take a form as well as a query, and ignore unknown parameters and superfluous slashes.
    Any,
    /// As `Any`, and every other method too, as in Tinyid.
    Every,
}

impl Verb {
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            Verb::Get => &[Method::GET, Method::HEAD],
            Verb::Post => &[Method::POST],
            Verb::Any => &[Method::GET, Method::HEAD, Method::POST],
            Verb::Every => &[
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ],
        }
    }

    /// Value of the `Allow` header.
    pub fn allow(self) -> &'static str {
        match self {
            Verb::Get => "GET, HEAD",
            Verb::Post => "POST",
            Verb::Any => "GET, HEAD, POST",
            Verb::Every => "GET, HEAD, POST, PUT, PATCH, DELETE",
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<HttpResponse, Problem>>>>;

/// One path with its method, authorization, handler and documentation.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// Path pattern; `{name}` is a variable segment.
    pub path: &'static str,
    /// HTTP method.
    pub verb: Verb,
    /// Accepted scopes: the caller's token must have one of them. `NONE` for documentation pages, which ignore their
    /// query, and for Tinyid's clients, which send tokens as parameters.
    pub needs: Scopes,
    pub(crate) handler: fn(Call) -> Answer,
    pub(crate) params: &'static [Param],
    /// Section of the OpenAPI document.
    pub(crate) tag: &'static str,
    pub(crate) name: &'static str,
    /// Title in the OpenAPI document; empty if the endpoint is not in it.
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    pub(crate) body: &'static [Content],
    pub(crate) returns: &'static [Content],
    pub(crate) failures: &'static [Failures],
}

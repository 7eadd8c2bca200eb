//! Endpoint table, and the application built from it: a route for each path, a 405 for its other
//! methods, a 404 for everything else.

use std::sync::Arc;
use std::time::Duration;

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Route};
use vesta_boot::{Auth, Metrics, Outcome, Scopes};
use vesta_service::{LocalIdService, SegmentService};

use crate::access;
use crate::handlers::{leaf, pages, segments, uid, v1, vesta};
use crate::problem::Problem;

/// State shared by all handlers.
#[derive(Debug)]
pub struct State {
    /// The generator.
    pub service: Arc<LocalIdService>,
    /// The segment service, if segment mode is on.
    pub segments: Option<Arc<SegmentService>>,
    /// Request metrics, created with [`METHODS`].
    pub metrics: Arc<Metrics>,
    /// Accepted tokens; `None` if callers need none.
    pub auth: Option<Auth>,
    /// True if callers reach this server over https.
    pub encrypted: bool,
    /// Time limit of a request, for receiving its body and for waiting for an ID.
    pub request_timeout: Duration,
}

impl State {
    /// The state that [`configure`] gave to the application.
    pub(crate) fn of(req: &HttpRequest) -> &State {
        req.app_data::<web::Data<State>>()
            .expect("configure() puts the state into every application")
    }
}

/// The method of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// GET, and HEAD with it.
    Get,
    /// POST.
    Post,
}

impl Verb {
    /// Value of the `Allow` header.
    pub fn allow(self) -> &'static str {
        match self {
            Verb::Get => "GET, HEAD",
            Verb::Post => "POST",
        }
    }
}

/// One path and its method.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// Path pattern; `{name}` is a variable segment.
    pub path: &'static str,
    /// Its one method.
    pub verb: Verb,
    /// Scopes, one of which a caller's token must have; none if no token is needed.
    pub needs: Scopes,
    /// Adds the handler to a route. The number is the endpoint's index in [`METHODS`].
    handler: fn(usize, Route) -> Route,
}

const fn get(path: &'static str, needs: Scopes, handler: fn(usize, Route) -> Route) -> Endpoint {
    Endpoint { path, verb: Verb::Get, needs, handler }
}

const fn post(path: &'static str, needs: Scopes, handler: fn(usize, Route) -> Route) -> Endpoint {
    Endpoint { path, verb: Verb::Post, needs, handler }
}

// Short names for the table.
const NONE: Scopes = Scopes::NONE;
const GENERATE: Scopes = Scopes::GENERATE;
const READ: Scopes = Scopes::READ;
const SEGMENTS: Scopes = Scopes::SEGMENTS;

/// All endpoints. A request is matched in this order, so the busiest come first.
pub const ENDPOINTS: [Endpoint; 23] = [
    get("/genid", GENERATE, |i, route| route.to(move |req| vesta::genid(req, i))),
    get("/v1/id", GENERATE, |i, route| route.to(move |req| v1::id(req, i))),
    get("/v1/ids", GENERATE, |i, route| route.to(move |req| counted(req, i, v1::ids))),
    get("/expid", READ, |i, route| route.to(move |req| counted(req, i, vesta::expid))),
    get("/transtime", READ, |i, route| route.to(move |req| counted(req, i, vesta::transtime))),
    get("/makeid", READ, |i, route| route.to(move |req| counted(req, i, vesta::makeid))),
    get("/v1/ids/{id}", READ, |i, route| route.to(move |req| counted(req, i, v1::explain))),
    post("/v1/ids:make", READ, |i, route| {
        route.to(move |req, body| counted(req, i, move |req| v1::make(req, body)))
    }),
    get("/v1/ids:bound", READ, |i, route| route.to(move |req| counted(req, i, v1::bound))),
    get("/v1/layout", READ, |i, route| route.to(move |req| counted(req, i, v1::layout))),
    get("/v1/layouts", READ, |i, route| route.to(move |req| counted(req, i, v1::layouts))),
    get("/api/snowflake/get/{key}", GENERATE, |i, route| {
        route.to(move |req| leaf::snowflake(req, i))
    }),
    get("/api/segment/get/{key}", SEGMENTS, |i, route| {
        route.to(move |req| counted(req, i, segments::leaf_get))
    }),
    get("/v1/segments/{key}/next", SEGMENTS, |i, route| {
        route.to(move |req| counted(req, i, segments::v1_next))
    }),
    get("/cache", SEGMENTS, |i, route| route.to(move |req| counted(req, i, segments::cache))),
    get("/db", SEGMENTS, |i, route| route.to(move |req| counted(req, i, segments::db))),
    get("/decodeSnowflakeId", READ, |i, route| route.to(move |req| counted(req, i, leaf::decode))),
    get("/uid/get", GENERATE, |i, route| route.to(move |req| uid::get(req, i))),
    get("/uid/parse", READ, |i, route| route.to(move |req| counted(req, i, uid::parse))),
    get("/openapi.json", NONE, |i, route| route.to(move |req| counted(req, i, pages::openapi))),
    get("/", NONE, |i, route| route.to(move |req| counted(req, i, pages::index))),
    get("/docs", NONE, |i, route| route.to(move |req| counted(req, i, pages::docs_moved))),
    get("/docs/{file:.*}", NONE, |i, route| route.to(move |req| counted(req, i, pages::docs))),
];

/// Index in [`METHODS`] of requests to unknown paths or methods.
const OTHER: usize = ENDPOINTS.len();

/// Metric labels of requests: the paths of [`ENDPOINTS`], and `other`.
pub const METHODS: &[&str] = &{
    let mut names = ["other"; OTHER + 1];
    let mut i = 0;
    while i < OTHER {
        names[i] = ENDPOINTS[i].path;
        i += 1;
    }
    names
};

/// Adds every endpoint and the shared state to an application.
pub fn configure(app: &mut ServiceConfig, state: web::Data<State>) {
    let open = state.auth.is_none();
    app.app_data(state);
    for (i, Endpoint { path, verb, needs, handler }) in ENDPOINTS.into_iter().enumerate() {
        let resource = match verb {
            Verb::Get => {
                web::resource(path).route(handler(i, web::get())).route(handler(i, web::head()))
            }
            Verb::Post => web::resource(path).route(handler(i, web::post())),
        };
        let resource =
            resource.default_service(web::to(move |req| {
                counted(req, OTHER, move |_| async move {
                    Err(Problem::method_not_allowed(verb.allow()))
                })
            }));
        if open || needs == NONE {
            app.service(resource);
        } else {
            // Behind the router, so that no other spelling of a path bypasses it.
            let check = from_fn(move |req, next| access::check(i, needs, req, next));
            app.service(resource.wrap(check));
        }
    }
    app.default_service(web::to(|req| {
        counted(req, OTHER, |req: HttpRequest| async move {
            access::of_request(&req, Scopes::ANY)?;
            Err(Problem::no_such_path(req.path()))
        })
    }));
}

/// Runs a handler, counts and times it, and turns its error into a response. A handler dropped
/// because its client went away counts as cancelled.
async fn counted<F: Future<Output = Result<HttpResponse, Problem>>>(
    req: HttpRequest,
    method: usize,
    handler: impl FnOnce(HttpRequest) -> F,
) -> HttpResponse {
    let state = req.app_data::<web::Data<State>>().cloned().expect("see State::of");
    let call = state.metrics.start(method);
    match handler(req).await {
        Ok(response) => {
            call.done(Outcome::Ok);
            response
        }
        Err(problem) => {
            call.done(Outcome::Error(problem.kind()));
            problem.response()
        }
    }
}

//! The application built from the endpoint table: a route for each path, a 405 for its other methods,
//! a 404 for everything else.

use actix_web::middleware::{Compress, Condition};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use vesta_boot::{Caller, Outcome, Running, Scopes, Span};

use crate::endpoints::OTHER;
pub use crate::endpoints::{ENDPOINTS, Endpoint, METHODS, Verb};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::{self, Call, Document, authorize, body};

/// Adds every endpoint and the shared state to an application.
pub fn configure(app: &mut ServiceConfig, running: web::Data<Running>) {
    app.app_data(running).app_data(Document::default());
    for (method, endpoint) in ENDPOINTS.iter().enumerate() {
        let Endpoint { needs, handler, verb, .. } = *endpoint;
        // Documents are long; an ID is shorter than what would say that it is compressed.
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
                    handler(Call { req, caller, params, body }).await
                })
            };
            resource = resource.route(web::method(way.clone()).to(route));
        }
        let allow = verb.allow();
        let resource = resource.wrap(Condition::new(is_document, Compress::default()));
        app.service(resource.default_service(web::to(move |req| {
            answer(
                req,
                OTHER,
                needs,
                move |_, _| async move { Err(Problem::method_not_allowed(allow)) },
            )
        })));
    }
    app.default_service(web::to(|req| {
        answer(req, OTHER, Scopes::ANY, |req: HttpRequest, _| async move {
            Err(Problem::no_such_path(req.path()))
        })
    }));
}

/// Authorizes a request, runs its handler, counts and times it, and turns an error into a response. A
/// handler dropped because its client went away counts as cancelled.
///
/// Authorization is behind the router, so that no other spelling of a path bypasses it.
async fn answer<F: Future<Output = Result<HttpResponse, Problem>>>(
    req: HttpRequest,
    method: usize,
    needs: Scopes,
    handler: impl FnOnce(HttpRequest, Caller) -> F,
) -> HttpResponse {
    let running = req.app_data::<web::Data<Running>>().cloned().expect("see state::running");
    let call = running.metrics.start(method);
    let mut span =
        Span::begin("http.route", METHODS[method], |name| state::text(req.headers(), name));
    let result = match authorize(&running, req.headers(), needs) {
        Ok(caller) => handler(req, caller).await,
        Err(denied) => Err(denied.into()),
    };
    match result {
        Ok(response) => {
            call.done(Outcome::Ok);
            response
        }
        Err(problem) => {
            call.done(Outcome::Error(problem.kind()));
            span.fails(problem.kind().name());
            problem.response()
        }
    }
}

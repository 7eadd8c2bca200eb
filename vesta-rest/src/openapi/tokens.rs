//! Tokens in the OpenAPI document: the security scheme, and the responses to a missing or
//! insufficient token.

use utoipa::Modify;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use vesta_boot::{Denied, Scopes};

use super::responses;
use crate::app::ENDPOINTS;
use crate::problem::Problem;

/// The name of the scheme in the document.
const SCHEME: &str = "token";

pub(super) struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Needed if the server's settings name tokens ([[auth.tokens]])."))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(SCHEME, SecurityScheme::Http(scheme));
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.needs != Scopes::NONE) {
            let Some(item) = document.paths.paths.get_mut(endpoint.path) else { continue };
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                let needed = SecurityRequirement::new(SCHEME, [] as [&str; 0]);
                operation.security = Some(vec![SecurityRequirement::default(), needed]);
                let lacks = Denied::Lacks { token: "ci".into(), needs: endpoint.needs };
                let refusals = [Denied::NoToken, lacks].map(Problem::from);
                operation.responses.responses.extend(responses(refusals));
            }
        }
    }
}

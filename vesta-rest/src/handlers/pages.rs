//! Pages: the ID page, the OpenAPI document and the Swagger UI, all embedded in this binary.

use std::sync::{Arc, LazyLock};

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header;
use utoipa_swagger_ui::Config;
use vesta_boot::admin::{PAGE, PAGE_POLICY};
use vesta_boot::not_ready_because;

use super::Answer;
use crate::responses::{TEXT, ok};
use crate::state::{Call, Document, no_such_path};

/// The documentation loads from this server only. The Swagger UI styles itself with inline styles and data images.
const OWN_ONLY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

/// `none` disables the badge of an online validator, which would receive the document's URL.
static SWAGGER: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    Arc::new(
        Config::from("../openapi.json")
            .validator_url("none")
            .try_it_out_enabled(true),
    )
});

fn page(content_type: &'static str, body: impl Into<actix_web::web::Bytes>) -> HttpResponse {
    let mut response = ok(content_type, body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        header::HeaderValue::from_static(OWN_ONLY),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    );
    response
}

/// `GET /`: the page, with status 503 while the server is not ready, because some load balancers check this path.
pub(crate) async fn index(call: Call) -> Answer {
    let running = call.running();
    let mut response = styled(PAGE);
    if not_ready_because(&running.service, &running.leaving).is_some() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

/// HTML with the page's style and content security policy.
pub(super) fn styled(html: impl Into<actix_web::web::Bytes>) -> HttpResponse {
    let mut response = page("text/html; charset=utf-8", html);
    let policy = header::HeaderValue::from_static(PAGE_POLICY);
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

pub(crate) async fn openapi(call: Call) -> Answer {
    let document = call
        .req
        .app_data::<Document>()
        .expect("configure() adds it");
    Ok(page("application/json", document.get(call.running())))
}

/// `GET /vesta.proto`
pub(crate) async fn proto(_: Call) -> Answer {
    Ok(page(TEXT, vesta_intf::PROTO))
}

/// `GET /docs`: the page's own links are relative to `/docs/`.
pub(crate) async fn docs_moved(_: Call) -> Answer {
    let moved = HttpResponse::build(StatusCode::PERMANENT_REDIRECT)
        .insert_header((header::LOCATION, "docs/"))
        .finish();
    Ok(moved)
}

/// `GET /docs/…`: the files of the Swagger UI.
pub(crate) async fn docs(Call { req, .. }: Call) -> Answer {
    let name = req.match_info().query("file");
    let file = utoipa_swagger_ui::serve(name, SWAGGER.clone())
        .ok()
        .flatten();
    let file = file.ok_or_else(|| no_such_path(&req))?;
    let mut response = page("text/html; charset=utf-8", file.bytes.into_owned());
    let content_type = header::HeaderValue::from_str(&file.content_type)
        .expect("guessed from a table of media types");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    if file.gzpipped {
        let gzip = header::HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

//! The ID page and the Swagger UI: complete, and served by this server alone.

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::dev::Service as _;
use actix_web::test::{self, TestRequest};
use vesta_boot::admin::{PAGE, PAGE_POLICY};
use vesta_rest::app::configure;

use crate::support::{get, service, state};

/// The addresses that a page loads or links to.
fn links(page: &str) -> Vec<String> {
    ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|attribute| page.split(attribute).skip(1))
        .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
        .map(|link| link.trim_start_matches("./").to_owned())
        .collect()
}

#[actix_web::test]
async fn the_page_is_one_file_and_its_links_lead_somewhere() {
    let service = service();
    let index = get(&service, "/").await;
    assert_eq!(index.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(index.header("content-security-policy"), PAGE_POLICY);
    assert_eq!(index.body, PAGE);
    let links = links(&index.body);
    for link in ["docs/", "openapi.json"] {
        assert!(links.iter().any(|it| it == link), "{links:?}");
        assert_eq!(
            get(&service, &format!("/{link}")).await.status,
            200,
            "{link}"
        );
    }
    assert!(
        links.iter().all(|link| !link.contains("//")),
        "{links:?} leave the server"
    );
}

#[actix_web::test]
async fn the_served_proto_file_is_the_one_in_the_sources() {
    let answer = get(&service(), "/vesta.proto").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/plain; charset=utf-8")
    );
    assert_eq!(
        answer.body,
        include_str!("../../../vesta-intf/proto/vesta/v1/vesta.proto")
    );
    let document = get(&service(), "/openapi.json").await.json();
    assert!(document["paths"]["/vesta.proto"]["get"].is_object());
}

#[actix_web::test]
async fn documents_are_compressed_if_the_client_accepts_it() {
    for (uri, packed) in [("/openapi.json", "gzip"), ("/", "gzip"), ("/v1/layout", "")] {
        let request = TestRequest::get()
            .uri(uri)
            .insert_header(("accept-encoding", "gzip"));
        let app =
            test::init_service(App::new().configure(|app| configure(app, state(service())))).await;
        let answer = app.call(request.to_request()).await.unwrap();
        let coding = answer
            .headers()
            .get("content-encoding")
            .map_or("", |it| it.to_str().unwrap());
        assert_eq!(coding, packed, "{uri}");
        let plain = get(&service(), uri).await;
        assert_eq!(plain.header("content-encoding"), "", "{uri}");
        let length = to_bytes(answer.into_body()).await.unwrap().len();
        assert!(
            packed.is_empty() || length * 4 < plain.body.len() * 3,
            "{uri}: {length}"
        );
    }
}

#[actix_web::test]
async fn the_swagger_ui_needs_no_network() {
    let service = service();
    let moved = get(&service, "/docs").await;
    assert_eq!((moved.status, moved.header("location")), (308, "docs/"));

    let page = get(&service, "/docs/").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(
        !page.body.contains("http://") && !page.body.contains("https://"),
        "{}",
        page.body
    );
    let links = links(&page.body);
    assert!(
        links
            .iter()
            .any(|link| link.ends_with("swagger-ui-bundle.js")),
        "{links:?}"
    );
    for link in links {
        let file = get(&service, &format!("/docs/{link}")).await;
        assert_eq!(file.status, 200, "{link}");
        assert!(!file.body.is_empty(), "{link}");
        let policy = file.header("content-security-policy");
        assert!(
            policy.contains("default-src 'self'") && !policy.contains("http"),
            "{policy}"
        );
    }

    let initializer = get(&service, "/docs/swagger-initializer.js").await;
    assert!(
        initializer.body.contains("../openapi.json"),
        "{}",
        initializer.body
    );
    assert!(
        initializer.body.contains("\"validatorUrl\": \"none\""),
        "{}",
        initializer.body
    );
    assert!(!initializer.body.contains("http"), "{}", initializer.body);

    get(&service, "/docs/no-such-file.js")
        .await
        .problem(404, "NOT_FOUND");
}

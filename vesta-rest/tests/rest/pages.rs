//! The index and the Swagger UI: complete, and from this server alone.

use actix_web::test::TestRequest;

use crate::support::{ask, get, service};

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
async fn the_links_of_the_index_lead_somewhere() {
    let service = service();
    let index = get(&service, "/").await;
    assert_eq!(index.header("content-type"), "text/html; charset=utf-8");
    let links = links(&index.body);
    assert!(links.len() >= 9, "{links:?}");
    for link in links {
        assert!(!link.contains("//"), "{link} leaves the server");
        assert_eq!(get(&service, &format!("/{link}")).await.status, 200, "{link}");
    }
}

#[actix_web::test]
async fn the_index_shows_a_command_to_copy_and_nothing_of_a_hostile_host() {
    let service = service();
    for (host, shown) in [
        ("ids.example.com:8088", "curl http://ids.example.com:8088/genid"),
        ("[::1]:8088", "curl http://[::1]:8088/genid"),
        ("x\"><script>", "curl http://127.0.0.1:8088/genid"),
    ] {
        let request = TestRequest::get().uri("/").insert_header(("host", host));
        let index = ask(&service, request).await;
        assert!(index.body.contains(shown), "{host}");
        assert!(!index.body.contains("<script>"), "{host}");
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
    assert!(!page.body.contains("http://") && !page.body.contains("https://"), "{}", page.body);
    let links = links(&page.body);
    assert!(links.iter().any(|link| link.ends_with("swagger-ui-bundle.js")), "{links:?}");
    for link in links {
        let file = get(&service, &format!("/docs/{link}")).await;
        assert_eq!(file.status, 200, "{link}");
        assert!(!file.body.is_empty(), "{link}");
        let policy = file.header("content-security-policy");
        assert!(policy.contains("default-src 'self'") && !policy.contains("http"), "{policy}");
    }

    let initializer = get(&service, "/docs/swagger-initializer.js").await;
    assert!(initializer.body.contains("../openapi.json"), "{}", initializer.body);
    assert!(initializer.body.contains("\"validatorUrl\": \"none\""), "{}", initializer.body);
    assert!(!initializer.body.contains("http"), "{}", initializer.body);

    get(&service, "/docs/no-such-file.js").await.problem(404, "NOT_FOUND");
}

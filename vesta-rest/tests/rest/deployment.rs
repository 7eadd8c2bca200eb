//! Behind proxies and load balancers: a base path, readiness on the public port, ages of connections.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use vesta_boot::Config;
use vesta_boot::admin::PAGE;
use vesta_rest::{Limits, serve_with};
use vesta_service::LocalIdService;

use crate::limits::Server;
use crate::support::{Raw, get_at, running, service};

fn server(service: Arc<LocalIdService>, adjust: impl FnOnce(&mut Config)) -> (Server, Raw) {
    let server = Server::start_with(service, Limits::default(), adjust);
    let client = Raw::connect(server.address);
    (server, client)
}

#[test]
fn every_path_is_below_the_base_path() {
    let (_server, mut client) = server(service(), |config| {
        config.base_path = "/ids".to_owned();
        config.readiness_path = Some("/readyz".to_owned());
    });
    let id = client.get("/ids/genid").body;
    assert_eq!(
        client
            .get(&format!("/ids/v1/ids/{id}?format=decimal"))
            .json()["id"],
        id.as_str()
    );
    assert_eq!(
        client.get("/ids//genid/").status,
        200,
        "as without a base path"
    );
    let document = client.get("/ids/openapi.json");
    assert_eq!(document.json()["servers"][0]["url"], "/ids");
    for path in ["/", "/docs/"] {
        assert_eq!(client.get(&format!("/ids{path}")).status, 200, "{path}");
    }
    for (path, to) in [("/ids", "/ids/"), ("/ids/docs", "docs/")] {
        let moved = client.get(path);
        assert_eq!((moved.status, moved.header("location")), (308, to));
    }
    let unknown = [
        "/",
        "/genid",
        "/idsgenid",
        "/IDS/genid",
        "/ids?x",
        "/docs/",
        "/ids/nope",
        "/ids/docs/nope",
    ];
    for path in unknown {
        let said = client.get(path).problem(404, "NOT_FOUND");
        let quoted = format!("`{}`", path.trim_end_matches("?x"));
        assert!(
            said.contains(&quoted) && said.contains("GET /ids/docs/"),
            "{said}"
        );
    }
    assert_eq!(client.get("/readyz").body, "ready\n");
    assert_eq!(client.get("/ids/readyz").status, 404);
}

#[test]
fn the_public_port_reports_readiness_without_a_token_if_asked_to() {
    let service = service();
    let ready = |config: &mut Config| config.readiness_path = Some("/readyz".to_owned());
    let (server, mut client) = server(service.clone(), ready);
    let answer = client.get("/readyz");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ready\n"));
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(client.get("/").status, 200);
    service.close();
    for _ in 0..2 {
        let answer = client.get("/readyz");
        assert_eq!(answer.status, 503);
        assert!(answer.body.starts_with("not ready: "), "{}", answer.body);
    }
    let page = client.get("/");
    assert_eq!(
        (page.status, page.body.as_str()),
        (503, PAGE),
        "the page stays"
    );
    drop((client, server));
    let (_server, mut client) = self::server(self::service(), |_| ());
    assert_eq!(client.get("/readyz").status, 404, "off by default");
}

#[actix_web::test]
async fn the_page_of_a_server_that_leaves_has_status_503() {
    let state = actix_web::web::Data::new(running(service(), None));
    assert_eq!(get_at(&state, "/").await.status, 200);
    state.leaving.cancel();
    assert_eq!(get_at(&state, "/").await.status, 503);
    assert_eq!(get_at(&state, "/genid").await.status, 200);
}

#[test]
fn a_readiness_path_that_is_an_endpoint_is_refused() {
    for path in ["/genid", "/", "/docs/index.html"] {
        let mut running = running(service(), None);
        running.config.readiness_path = Some(path.to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let refused = serve_with(
            listener.try_into().unwrap(),
            Arc::new(running),
            Limits::default(),
        );
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("is an endpoint; choose another"), "{said}");
    }
}

#[test]
fn an_old_connection_is_closed_after_its_answer() {
    for path in ["/genid", "/v1/layout"] {
        // Every connection is too old at once.
        let (_server, mut client) = server(service(), |config| {
            config.limits.max_connection_age = Duration::ZERO;
        });
        let answer = client.get(path);
        assert_eq!((answer.status, answer.header("connection")), (200, "close"));
        assert_eq!(client.closed(), "");
        // With a limit that is far away, and with none, a connection stays.
        for age in [Duration::from_secs(3600), Duration::MAX] {
            let (_server, mut client) = server(service(), |config| {
                config.limits.max_connection_age = age;
            });
            for _ in 0..3 {
                assert_eq!(client.get(path).header("connection"), "");
            }
        }
    }
}

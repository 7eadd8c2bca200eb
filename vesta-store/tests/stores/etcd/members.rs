//! Members that become unreachable and return.

use std::sync::Arc;
use std::time::Duration;

use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::KvStore;
use vesta_store::conformance::Proxy;
use vesta_store::{OpenError, Options};

use super::server::Server;
use super::{AREA, Area, get, opened, put, refused, unavailable};

fn open(url: &str, milliseconds: u64) -> Arc<dyn KvStore> {
    let request_timeout = Some(Duration::from_millis(milliseconds));
    super::open(
        url,
        &Options {
            request_timeout,
            ..Options::default()
        },
    )
}

/// The reverse holds too, whether the dead member refuses connections or does not answer at all.
#[test]
fn the_second_member_is_used_when_the_first_is_dead() {
    let area = Area::new();
    let one = Proxy::start(area.address()).unwrap();
    let two = Proxy::start(area.address()).unwrap();
    let store = open(
        &area.url_over(&format!("{},{}", one.address(), two.address())),
        4000,
    );

    one.refuse();
    assert!(put(&store, 1).unwrap());
    let tried = one.accepted();
    assert!(put(&store, 2).unwrap());
    assert_eq!(
        one.accepted(),
        tried,
        "it continues with the one that answers"
    );

    one.heal();
    two.freeze();
    assert!(put(&store, 3).unwrap());
    assert!(put(&store, 4).unwrap());
    two.heal();
    one.refuse();
    assert_eq!(get(&store).unwrap().as_deref(), Some("4"));

    two.refuse();
    assert!(unavailable(put(&store, 5)).starts_with("etcd cannot be reached: 127.0.0.1:"));
    one.heal();
    two.heal();
    assert!(put(&store, 5).unwrap());
}

/// The request ends in time, after another connection was tried, and neither connection is used again.
#[test]
fn a_silent_member_costs_the_request_time_out_and_its_connection() {
    const LIMIT: u64 = 1000;
    let area = Area::new();
    let proxy = Proxy::start(area.address()).unwrap();
    let store = open(&area.url_over(&proxy.address().to_string()), LIMIT);
    assert_eq!(get(&store).unwrap(), None);

    proxy.freeze();
    let clock = SystemClock::new();
    for connections in 2..=3 {
        let start = clock.monotonic();
        let said = unavailable(put(&store, 1));
        assert!(said.starts_with("etcd did not answer: "), "{said}");
        let took = clock.monotonic() - start;
        assert!(
            took.as_millis() >= LIMIT.into() && took.as_secs() < 10,
            "{took:?}"
        );
        assert_eq!(proxy.accepted(), connections);
    }
    proxy.heal();
    assert!(put(&store, 1).unwrap());
    assert_eq!(proxy.accepted(), 4);
}

/// No request is lost if the member is back in time.
#[test]
fn a_killed_member_is_used_again_after_its_restart() {
    let mut server = Server::start();
    let store = opened(&format!("etcd://{}", server.address()));
    for epoch in [1, 3, 5] {
        assert!(put(&store, epoch).unwrap());
        server.kill();
        if epoch > 1 {
            assert!(unavailable(get(&store)).starts_with("etcd cannot be reached: "));
        }
        server.restart();
        assert_eq!(get(&store).unwrap(), Some(epoch.to_string()));
        assert!(put(&store, epoch + 1).unwrap());
    }
}

/// It does not know the claims made in the first cluster.
#[test]
fn a_member_of_another_cluster_is_refused() {
    let (area, other) = (Area::new(), Server::start());
    let proxy = Proxy::start(area.address()).unwrap();
    let url = area.url_over(&format!("{},{}", proxy.address(), other.address()));
    let store = opened(&url);
    assert!(put(&store, 1).unwrap());
    proxy.refuse();
    let said = refused(put(&store, 2));
    assert!(said.contains("another etcd cluster"), "{said}");
    assert_eq!(other.raw().below(&area.prefix), []);
}

macro_rules! tls {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stores/etcd/tls/", $name)
    };
}

#[test]
fn tls_is_checked_against_the_authority_of_the_file() {
    let server = Server::start_with(&[
        "--cert-file",
        tls!("server.pem"),
        "--key-file",
        tls!("server.key"),
    ]);
    let at = |scheme: &str, address: &str, options: &str| {
        opened(&format!("{scheme}://{address}{options}"))
    };
    let address = server.address();
    let authority = concat!("?ca=", tls!("authority.pem"));
    let store = at("etcds", &address, authority);
    assert!(put(&store, 1).unwrap());
    assert!(store.now().unwrap().is_some(), "its clock");

    let elsewhere = address.replace("127.0.0.1", "localhost");
    for (store, why) in [
        (at("etcds", &address, ""), "UnknownIssuer"),
        (at("etcds", &elsewhere, authority), "not valid for name"),
        (at("etcd", &address, ""), ""),
    ] {
        let said = unavailable(store.list(AREA));
        assert!(
            said.starts_with("etcd cannot be reached: ") && said.contains(why),
            "{said}"
        );
    }

    for file in [tls!("server.key"), tls!("missing.pem")] {
        let url = format!("etcds://{address}?ca={file}").parse().unwrap();
        let error = vesta_store::open(&url).expect_err(file);
        assert!(matches!(error, OpenError::Store { .. }), "{error:?}");
        assert!(
            error
                .to_string()
                .contains(&format!("the certificates in {file}")),
            "{error}"
        );
    }
}

/// The error has advice, and existing entries stay readable.
#[test]
fn a_full_database_is_a_transient_error() {
    let server = Server::start_with(&["--quota-backend-bytes", "1000000"]);
    let store = opened(&format!("etcd://{}", server.address()));
    let mut before = None;
    for number in 1..10_000 {
        let after = format!("{number:0>16000}");
        match store.put_if(AREA, "7", before.as_deref(), &after) {
            Ok(done) => assert!(done),
            full => {
                let said = unavailable(full);
                assert!(said.starts_with("etcd's database is full; have its history compacted"));
                // Even with this response, etcd carries out the request that fills it.
                let found = get(&store).unwrap();
                assert!(found == before || found == Some(after));
                return;
            }
        }
        before = Some(after);
    }
    panic!("it is never full");
}

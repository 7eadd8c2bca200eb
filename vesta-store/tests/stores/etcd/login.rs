//! Users and passwords, on dedicated servers: they apply to a whole cluster.

use std::sync::Arc;

use vesta_service::lease::KvStore;

use super::server::Server;
use super::{AREA, get, opened, put, refused, unavailable};

/// A server where `ann`, whose password is `p@ss/w:rd`, may use the keys below `vesta/`.
fn server() -> Server {
    let server = Server::start();
    let raw = server.raw();
    raw.add_root("r00t");
    raw.add_user("ann", "p@ss/w:rd");
    raw.permit("ann", "vesta/");
    raw.enable_users();
    server
}

fn open(server: &Server, login: &str, prefix: &str) -> Arc<dyn KvStore> {
    opened(&format!("etcd://{login}{}/{prefix}", server.address()))
}

const ANN: &str = "ann:p%40ss%2Fw%3Ard@";

#[test]
fn a_user_logs_in_again_after_the_server_forgot_the_session() {
    let mut server = server();
    let store = open(&server, ANN, "vesta");
    assert!(put(&store, 1).unwrap());
    server.kill();
    server.restart();
    assert!(put(&store, 2).unwrap());
    assert_eq!(store.list(AREA).unwrap(), [("7".into(), "2".into())]);
}

#[test]
fn a_denied_user_is_refused_without_showing_the_password() {
    let server = server();
    for (login, prefix, advice) in [
        (
            "ann:hunter2@",
            "vesta",
            "check the user and the password in the URL",
        ),
        (
            "hunter2:hunter2@",
            "vesta",
            "check the user and the password in the URL",
        ),
        ("", "vesta", "write etcd://user:password@host"),
    ] {
        let store = open(&server, login, prefix);
        for _ in 0..2 {
            let said = refused(get(&store));
            assert!(said.contains(advice), "{said}");
            assert!(
                !said.contains("hunter2") && !said.contains("p@ss"),
                "{said}"
            );
        }
    }
}

/// An operator can grant the user a role.
#[test]
fn a_missing_role_is_a_transient_error() {
    let server = server();
    let store = open(&server, ANN, "other");
    let said = unavailable(get(&store));
    assert!(
        said.contains("let the user read and write the keys with this prefix"),
        "{said}"
    );
}

/// Users can thus be introduced during operation, in the programs first.
#[test]
fn a_user_is_accepted_before_etcd_requires_one() {
    let server = Server::start();
    let store = open(&server, "root:r00t@", "vesta");
    assert!(put(&store, 1).unwrap());
    server.raw().add_root("r00t");
    server.raw().enable_users();
    assert!(put(&store, 2).unwrap());
    assert_eq!(store.list(AREA).unwrap(), [("7".into(), "2".into())]);
}

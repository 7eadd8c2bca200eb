//! Users and passwords, on servers of one's own: they hold for a whole cluster.

use std::sync::Arc;

use vesta_service::{LeaseStore, Record};

use crate::server::Server;
use crate::{claimed, refused};

/// Where `ann`, whose password is `p@ss/w:rd`, may use the keys below `vesta/`.
fn server() -> Server {
    let server = Server::start();
    let raw = server.raw();
    raw.add_root("r00t");
    raw.add_user("ann", "p@ss/w:rd");
    raw.permit("ann", "vesta/");
    raw.enable_users();
    server
}

fn open(server: &Server, login: &str, prefix: &str) -> Arc<dyn LeaseStore> {
    vesta_store::open(&format!("etcd://{login}{}/{prefix}", server.address())).unwrap()
}

const ANN: &str = "ann:p%40ss%2Fw%3Ard@";

#[test]
fn a_user_logs_in_and_does_so_again_when_the_server_has_forgotten_it() {
    let mut server = server();
    let store = open(&server, ANN, "vesta");
    store.open_namespace("ids", "a layout").unwrap();
    store.cas("ids", 0, &Record::unclaimed(0).expect(), &claimed(1)).unwrap();
    server.kill();
    server.restart();
    store.cas("ids", 0, &claimed(1).expect(), &claimed(2)).unwrap();
    assert_eq!(store.list("ids").unwrap(), [(0, claimed(2))]);
    assert_eq!(store.raise_floor("ids", 7).unwrap(), 7);
}

#[test]
fn whoever_may_not_is_refused_without_showing_the_password() {
    let server = server();
    for (login, prefix, advice) in [
        ("ann:hunter2@", "vesta", "check the user and the password in the URL"),
        ("hunter2:hunter2@", "vesta", "check the user and the password in the URL"),
        ("", "vesta", "write etcd://user:password@host"),
        (ANN, "other", "let the user read and write the keys with this prefix"),
    ] {
        let store = open(&server, login, prefix);
        for _ in 0..2 {
            let said = refused(store.open_namespace("ids", "a layout"));
            assert!(said.contains(advice), "{said}");
            assert!(!said.contains("hunter2") && !said.contains("p@ss"), "{said}");
        }
    }
}

/// So that they can be introduced while everything runs: the programs first.
#[test]
fn a_user_is_no_obstacle_where_etcd_asks_for_none_yet() {
    let server = Server::start();
    let store = open(&server, "root:r00t@", "vesta");
    store.open_namespace("ids", "a layout").unwrap();
    server.raw().add_root("r00t");
    server.raw().enable_users();
    store.cas("ids", 0, &Record::unclaimed(0).expect(), &claimed(1)).unwrap();
    assert_eq!(store.list("ids").unwrap(), [(0, claimed(1))]);
}

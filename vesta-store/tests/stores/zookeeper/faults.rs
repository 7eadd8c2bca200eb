//! Sessions that expire, unreachable servers, lost replies, and overtaken requests.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use vesta_store::Options;

use super::proxy::{CREATE, SET_DATA};
use super::tree::{Tree, patient};
use super::{AREA, ENTRY, begun, get, open, put};

#[test]
fn an_entry_outlives_the_session_and_so_does_its_owner() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = begun(&tree.url_over(proxy.address()));
    for (old, new) in [("1", "2"), ("2", "3"), ("3", "4")] {
        proxy.expire_session();
        assert!(put(&store, Some(old), new).unwrap());
    }
    assert_eq!(get(&store).as_deref(), Some("4"));
}

#[test]
fn a_change_whose_reply_is_lost_is_not_sent_again() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = open(&tree.url_over(proxy.address()), &patient());
    assert!(store.put_if(AREA, "namespace", None, "n").unwrap());
    for (kind, old, new) in [(CREATE, None, "1"), (SET_DATA, Some("1"), "2")] {
        proxy.lose_reply(kind);
        assert!(!put(&store, old, new).expect_err("unknown").is_permanent());
        assert_eq!(get(&store).as_deref(), Some(new));
    }
    assert_eq!(tree.stat(ENTRY).expect("it is there").version, 1);
}

#[test]
fn a_change_is_refused_when_the_entry_changed_meanwhile() {
    let tree = Tree::new();
    for (kind, old) in [(CREATE, None), (SET_DATA, Some("theirs"))] {
        let proxy = tree.proxy();
        let store = open(&tree.url_over(proxy.address()), &patient());
        let other = open(&tree.url(), &patient());
        store.put_if(AREA, "namespace", None, "n").unwrap();
        proxy.hold(kind);
        let changing = thread::spawn(move || put(&store, old, "ours"));
        proxy.wait_until_caught();
        let theirs = if old.is_none() {
            "theirs"
        } else {
            "theirs again"
        };
        assert!(put(&other, old, theirs).unwrap());
        proxy.release();
        assert!(!changing.join().expect("no panic").unwrap());
        assert_eq!(get(&other).as_deref(), Some(theirs));
    }
}

#[test]
fn an_unresponsive_server_costs_at_most_the_request_timeout() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let url = tree.url_over(proxy.address());
    drop(begun(&url));
    let hasty = Options {
        request_timeout: Some(Duration::from_millis(200)),
        ..Options::default()
    };
    let store = open(&url, &hasty);
    let _ = store.get(AREA, "7"); // connects, if the machine is not too busy
    proxy.silence(true);
    for _ in 0..3 {
        let answers = [
            store.get(AREA, "7").map(drop),
            store.list(AREA).map(drop),
            put(&store, Some("1"), "2").map(drop),
            store.put_if(AREA, "8", None, "1").map(drop),
        ];
        for answer in answers {
            let error = answer.expect_err("no answer");
            assert!(!error.is_permanent(), "{error}");
        }
    }
    drop(store);
    proxy.silence(false);
    // A change counts once, whether or not it arrived late.
    let store = open(&url, &patient());
    let _ = put(&store, Some("1"), "2").unwrap();
    assert_eq!(get(&store).as_deref(), Some("2"));
    assert_eq!(tree.stat(ENTRY).expect("it is there").version, 1);
}

#[test]
fn unreachable_servers_are_skipped() {
    let tree = Tree::new();
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = |it: &TcpListener| it.local_addr().expect("it listens").to_string();
    let (hole, closed) = (listener(), listener());
    let (hole_address, closed_address) = (address(&hole), address(&closed));
    drop(closed);

    let hasty = Options {
        request_timeout: Some(Duration::from_millis(100)),
        ..Options::default()
    };
    for away in [&hole_address, &closed_address] {
        let store = open(&tree.url_over(away), &hasty);
        let error = store.list(AREA).expect_err("no answer");
        assert!(!error.is_permanent(), "{error}");
    }
    let three = format!("{closed_address},{hole_address},{}", tree.servers);
    // Less than the client itself would wait for one server.
    let ample = Options {
        request_timeout: Some(Duration::from_millis(3600)),
        ..patient()
    };
    for key in ["1", "2", "3"] {
        // Each session begins with a random server.
        assert!(
            open(&tree.url_over(&three), &ample)
                .put_if(AREA, key, None, "1")
                .unwrap()
        );
    }
    assert_eq!(open(&tree.url(), &patient()).list(AREA).unwrap().len(), 3);
}

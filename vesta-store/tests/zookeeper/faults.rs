//! Sessions that end, servers that are away, replies that are lost, and requests that are overtaken.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use vesta_service::{Cas, LeaseStore, Record};
use vesta_store::Options;
use vesta_store::import;

use super::proxy::{MULTI, SET_DATA};
use super::tree::{Tree, patient};
use super::{NAMESPACE, change, claim, claimed, extended, open, opened};

#[test]
fn an_owner_outlives_its_session() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = opened(&tree.url_over(proxy.address()), &patient());
    let mut record = claim(&*store);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let is_new = |id| id != 0 && !sessions.contains(&id);
        tree.wait_until("ids/alive/7", |it| it.is_some_and(|it| is_new(it.ephemeral_owner)));
        sessions.push(tree.stat("ids/alive/7").expect("it is there").ephemeral_owner);

        proxy.expire_session();
        assert_eq!(tree.stat("ids/alive/7"), None, "it went with the session");
        let later = extended(&record);
        assert_eq!(change(&*store, &record, &later).unwrap(), Cas::Done);
        record = later;
    }
    tree.wait_until("ids/alive/7", |stat| stat.is_some());
    assert_eq!(store.read(NAMESPACE, 7).unwrap(), Some(record));
}

#[test]
fn a_connection_that_breaks_is_made_again_by_the_next_request() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = opened(&tree.url_over(proxy.address()), &patient());
    let record = claim(&*store);
    proxy.cut();
    let later = extended(&record);
    assert_eq!(change(&*store, &record, &later).unwrap(), Cas::Done);
    assert_eq!(store.list(NAMESPACE).unwrap(), [(7, later)]);
}

#[test]
fn a_change_whose_reply_is_lost_is_made_once_and_recognised() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = opened(&tree.url_over(proxy.address()), &patient());
    let (absent, record) = (Record::unclaimed(0), claimed(1));
    let later = extended(&record);
    for (kind, from, to) in [(MULTI, &absent, &record), (SET_DATA, &record, &later)] {
        proxy.lose_reply(kind);
        // Carried out again in a new session, where its own success is found.
        assert_eq!(change(&*store, from, to).unwrap(), Cas::Conflict(to.clone()));
        assert_eq!(store.read(NAMESPACE, 7).unwrap().as_ref(), Some(to));
    }
    assert_eq!(tree.stat("ids/records/7").expect("it is there").version, 1);

    // The liveness znode of a session that was given up is replaced before that session runs out.
    let mut record = later;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let later = extended(&record);
        assert_eq!(change(&*store, &record, &later).unwrap(), Cas::Done);
        let is_new = |id| id != 0 && !sessions.contains(&id);
        tree.wait_until("ids/alive/7", |it| it.is_some_and(|it| is_new(it.ephemeral_owner)));
        sessions.push(tree.stat("ids/alive/7").expect("it is there").ephemeral_owner);
        record = extended(&later);
        proxy.lose_reply(SET_DATA);
        assert_eq!(change(&*store, &later, &record).unwrap(), Cas::Conflict(record.clone()));
    }
}

#[test]
fn a_first_claim_is_refused_when_the_floor_was_raised_meanwhile() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = opened(&tree.url_over(proxy.address()), &patient());
    let operator = opened(&tree.url(), &patient());
    proxy.hold(MULTI);
    let claiming = thread::spawn(move || change(&*store, &Record::unclaimed(0), &claimed(1)));
    proxy.wait_until_caught();
    assert_eq!(operator.raise_floor(NAMESPACE, 500).unwrap(), 500);
    proxy.release();
    let answer = claiming.join().expect("no panic").unwrap();
    assert_eq!(answer, Cas::Conflict(Record::unclaimed(500)));
    assert_eq!(operator.list(NAMESPACE).unwrap(), []);

    assert_eq!(operator.raise_floor(NAMESPACE, 400).unwrap(), 500, "it is never lowered");
    assert_eq!(operator.open_namespace(NAMESPACE, "x").unwrap().floor, 500);
    let answer = change(&*operator, &Record::unclaimed(500), &claimed(6)).unwrap();
    assert_eq!(answer, Cas::Done);
}

#[test]
fn a_change_is_refused_when_the_record_changed_meanwhile() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let store = opened(&tree.url_over(proxy.address()), &patient());
    let other = opened(&tree.url(), &patient());
    let record = claim(&*store);
    proxy.hold(SET_DATA);
    let later = extended(&record);
    let extending = thread::spawn({
        let record = record.clone();
        move || change(&*store, &record, &later)
    });
    proxy.wait_until_caught();
    assert_eq!(change(&*other, &record, &claimed(2)).unwrap(), Cas::Done);
    proxy.release();
    let answer = extending.join().expect("no panic").unwrap();
    assert_eq!(answer, Cas::Conflict(claimed(2)));
}

#[test]
fn a_server_that_is_silent_costs_no_more_than_the_request_time_out() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let url = tree.url_over(proxy.address());
    let record = claim(&*opened(&url, &patient()));
    let hasty = Options { request_timeout: Some(Duration::from_millis(200)), ..Options::default() };
    let store = open(&url, &hasty);
    let _ = store.read(NAMESPACE, 7); // has a connection, if the machine is not too busy
    proxy.silence(true);
    for _ in 0..3 {
        let later = extended(&record);
        let answers = [
            store.read(NAMESPACE, 7).map(drop),
            store.list(NAMESPACE).map(drop),
            change(&*store, &record, &later).map(drop),
            store.open_namespace(NAMESPACE, "x").map(drop),
            store.raise_floor(NAMESPACE, 1).map(drop),
        ];
        for answer in answers {
            let error = answer.expect_err("no answer");
            assert!(!error.is_permanent(), "{error}");
        }
    }
    drop(store);
    proxy.silence(false);
    // Whether the change has gone through late or not: it counts once.
    let store = opened(&url, &patient());
    let later = extended(&record);
    let answer = import::change(&*store, NAMESPACE, 7, &record.expect(), &later).unwrap();
    assert_eq!(answer, Cas::Done);
    assert_eq!(tree.stat("ids/records/7").expect("it is there").version, 1);
}

#[test]
fn servers_that_are_away_are_passed_over() {
    let tree = Tree::new();
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = |it: &TcpListener| it.local_addr().expect("it listens").to_string();
    let (hole, closed) = (listener(), listener());
    let (hole_address, closed_address) = (address(&hole), address(&closed));
    drop(closed);

    let hasty = Options { request_timeout: Some(Duration::from_millis(100)), ..Options::default() };
    for away in [&hole_address, &closed_address] {
        let store = open(&tree.url_over(away), &hasty);
        let error = store.open_namespace(NAMESPACE, "a layout").expect_err("nobody answers");
        assert!(!error.is_permanent(), "{error}");
    }
    let three = format!("{closed_address},{hole_address},{}", tree.servers);
    // Less than the client itself would wait for one server.
    let ample = Options { request_timeout: Some(Duration::from_millis(3600)), ..patient() };
    for _ in 0..3 {
        claim_another(&*opened(&tree.url_over(&three), &ample)); // each begins where it likes
    }
    assert_eq!(opened(&tree.url(), &patient()).list(NAMESPACE).unwrap().len(), 3);
}

fn claim_another(store: &dyn LeaseStore) {
    let machine = store.list(NAMESPACE).unwrap().len() as u64;
    let absent = Record::unclaimed(0).expect();
    assert_eq!(store.cas(NAMESPACE, machine, &absent, &claimed(1)).unwrap(), Cas::Done);
}

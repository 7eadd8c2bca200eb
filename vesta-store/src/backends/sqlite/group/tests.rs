//! Callers that come while another one writes.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{scope, yield_now};
use std::time::Duration;

use tempfile::TempDir;
use vesta_service::lease::{KvStore as _, Secret};

use super::super::{Database, PAGE};
use super::*;
use crate::Options;

const AREA: &str = "lease/ids";
const OTHER: &str = "block/ids/1";

fn opened(folder: &TempDir) -> Database {
    let url = format!("sqlite:{}", folder.path().join("vesta.db").display());
    let options = Options {
        request_timeout: Some(Duration::from_millis(20)),
        ..Options::default()
    };
    Database::open(&url.parse().expect("a URL"), &options).expect("it opens")
}

fn put(key: &str, old: Option<&str>, new: &str) -> [Put; 1] {
    [Put {
        key: key.into(),
        old: old.map(str::to_owned),
        new: new.into(),
        secret: Secret::default(),
    }]
}

/// Number of transactions in the log: the last page of each has the size of the database.
fn transactions(folder: &TempDir) -> usize {
    let log = fs::read(folder.path().join("vesta.db-wal")).expect("there is a log");
    let pages = log[32..].chunks(24 + PAGE as usize);
    pages.filter(|page| page[4..8] != [0; 4]).count()
}

/// Lets all callers but the first one wait until this one is at the connection. Returns the answers of the others.
fn together(store: &Database, callers: &[(&str, [Put; 1])]) -> Vec<Answer> {
    let [(area, first), others @ ..] = callers else {
        unreachable!("there are callers");
    };
    let connection = store.state.lock().expect("no panic");
    scope(|scope| {
        let first = scope.spawn(move || store.put_all(area, first));
        while store.group.waiting() != Some(0) {
            yield_now();
        }
        let mut running = Vec::new();
        for (area, puts) in others {
            running.push(scope.spawn(move || store.put_all(area, puts)));
            while store.group.waiting() != Some(running.len()) {
                yield_now();
            }
        }
        drop(connection);
        let first = first.join().expect("no panic");
        assert!(!matches!(first, Ok(done) if done != [true]));
        running
            .into_iter()
            .map(|it| it.join().expect("no panic"))
            .collect()
    })
}

fn callers() -> [(&'static str, [Put; 1]); 6] {
    [
        (AREA, put("1", None, "a")),
        (AREA, put("2", None, "b")),
        (OTHER, put("2", None, "c")),
        (AREA, put("3", Some("of another"), "d")),
        (AREA, put("2", Some("b"), "e")),
        (OTHER, put("2", None, "f")),
    ]
}

#[test]
fn callers_that_wait_share_a_transaction_and_each_has_its_own_answer() {
    let folder = vesta_testkit::fast_folder();
    let store = opened(&folder);
    store
        .put_all(AREA, &put("0", None, ""))
        .expect("it is alone");
    let before = transactions(&folder);
    let answers = together(&store, &callers());
    let done: Vec<_> = answers
        .into_iter()
        .map(|it| it.expect("an answer"))
        .collect();
    assert_eq!(done, [[true], [true], [false], [true], [false]]);
    assert_eq!(transactions(&folder) - before, 2, "the first one was alone");
    let value = |area, key| store.get(area, key).expect("it answers");
    assert_eq!(value(AREA, "2").as_deref(), Some("e"));
    assert_eq!(value(OTHER, "2").as_deref(), Some("c"));
    assert_eq!(value(AREA, "3"), None);
}

#[test]
fn if_the_outcome_is_unknown_it_is_unknown_to_all() {
    let folder = vesta_testkit::fast_folder();
    let store = opened(&folder);
    let other = rusqlite::Connection::open(folder.path().join("vesta.db")).expect("it opens");
    other
        .execute_batch("BEGIN IMMEDIATE")
        .expect("the lock is free");
    for answer in together(&store, &callers()) {
        assert!(!answer.expect_err("another process writes").is_permanent());
    }
    other.execute_batch("COMMIT").expect("nothing was changed");
    assert_eq!(store.list(AREA).expect("it answers"), []);
    assert_eq!(
        store.put_all(AREA, &put("1", None, "a")).expect("free"),
        [true]
    );
}

/// Those who waited do not wait for ever, and the next one writes.
#[test]
fn a_panic_while_writing_ends_the_wait_of_all() {
    let group = Group::default();
    let puts = put("1", None, "a");
    scope(|scope| {
        let mut others = Vec::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            group.put(AREA, &puts, |_| {
                for _ in 0..2 {
                    let other = || group.put(AREA, &puts, |jobs| Ok(vec![vec![true]; jobs.len()]));
                    others.push(scope.spawn(other));
                }
                while group.waiting() != Some(2) {
                    yield_now();
                }
                panic!("planted");
            })
        }));
        assert!(panicked.is_err());
        for other in others {
            assert_eq!(other.join().expect("no panic").expect("written"), [true]);
        }
    });
}

#[test]
fn transactions_pause_only_if_many_come_one_after_another() {
    let millis = Duration::from_millis;
    let mut pace = Pace::default();
    for at in (0..100).map(|at| millis(at * 10)) {
        assert_eq!(pace.pause(at), Duration::ZERO, "100 a second");
    }
    let mut pace = Pace::default();
    let mut now = millis(7_000);
    let pauses: Vec<_> = (0..20)
        .map(|_| {
            let pause = pace.pause(now);
            now += pause + millis(1);
            pause
        })
        .collect();
    assert!(pauses[..17].iter().all(Duration::is_zero), "{pauses:?}");
    for _ in 0..10 {
        pace.pause(now);
    }
    let pause = pace.pause(now);
    assert!(pause > millis(30), "{pause:?}");
    assert_eq!(
        pace.pause(now + millis(500)),
        Duration::ZERO,
        "they are over"
    );
}

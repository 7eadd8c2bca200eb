//! What both of the databases on a network have to do, beside the suite.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Duration;

use vesta_service::{
    Cas, Clock as _, LeaseStore, NewSegmentTag, NextRange, Record, StoreError, SystemClock, Timing,
};
use vesta_store::{Options, open, open_segments, open_with, open_worker_nodes};

/// The URL of the server to use.
pub(crate) fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("set {variable} to the URL of a throw-away server, or run scripts/test.sh")
    })
}

/// A name that nothing else on the server has.
pub(crate) fn fresh_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("vesta_test_{random:016x}")
}

/// The same URL, with a password that is wrong.
pub(crate) fn with_wrong_password(url: &str) -> String {
    let (before, place) = url.rsplit_once('@').expect("a URL with a user");
    let (user, _) = before.rsplit_once(':').expect("a URL with a password");
    format!("{user}:hunter2@{place}")
}

pub(crate) fn claimed(epoch: u64, owner: u128) -> Record {
    let attempt = u64::try_from(owner).unwrap();
    Record { epoch, owner, bound: 1000 * epoch, attempt, host: "h".into(), ..Record::default() }
}

pub(crate) fn opened(url: &str) -> Arc<dyn LeaseStore> {
    let store = open(url).unwrap();
    store.open_namespace("ids", "a layout").unwrap();
    store
}

fn quickly(millis: u64) -> Options {
    Options { request_timeout: Some(Duration::from_millis(millis)), ..Options::default() }
}

pub(crate) fn refused(answer: Result<impl Sized, StoreError>) -> String {
    let error = answer.err().expect("refused");
    assert!(error.is_permanent(), "{error}");
    error.to_string()
}

pub(crate) fn unavailable(answer: Result<impl Sized, StoreError>) -> String {
    let error = answer.err().expect("unavailable");
    assert!(!error.is_permanent(), "{error}");
    error.to_string()
}

/// 32 connections claim one machine ID at once: first as one that nobody ever had, then again.
/// Whoever loses learns who won.
pub(crate) fn one_of_many_claims_wins(url: &str) {
    const CLAIMERS: u128 = 32;
    const ROUNDS: u64 = 4;
    let start = Barrier::new(CLAIMERS.try_into().unwrap());
    let stores: Vec<_> = (0..CLAIMERS).map(|_| opened(url)).collect();
    let outcomes: Vec<Vec<_>> = std::thread::scope(|scope| {
        let claimers: Vec<_> = (1..)
            .zip(&stores)
            .map(|(claimer, store)| {
                let start = &start;
                scope.spawn(move || {
                    let mut outcomes = Vec::new();
                    for epoch in 1..=ROUNDS {
                        // No panic before the barrier: the others would wait for ever.
                        let before = store.read("ids", 7);
                        start.wait();
                        let before = before.ok().flatten().unwrap_or_default();
                        let new = claimed(epoch, claimer);
                        outcomes.push((store.cas("ids", 7, &before.expect(), &new), new));
                        start.wait();
                    }
                    outcomes
                })
            })
            .collect();
        claimers.into_iter().map(|claimer| claimer.join().unwrap()).collect()
    });
    for round in 0..outcomes[0].len() {
        let (won, lost): (Vec<_>, Vec<_>) = outcomes
            .iter()
            .map(|rounds| &rounds[round])
            .partition(|(o, _)| matches!(o, Ok(Cas::Done)));
        let [(_, winner)] = won[..] else { panic!("round {round}: {} won", won.len()) };
        for (outcome, _) in lost {
            match outcome {
                Ok(Cas::Conflict(current)) => assert_eq!(current, winner, "round {round}"),
                other => panic!("round {round}: {other:?}"),
            }
        }
    }
}

/// 32 connections take ranges of one tag at once: they follow one another without an overlap or a gap.
/// Returns how many the server refused for a conflict; those took nothing.
pub(crate) fn ranges_of_many_claims_follow_one_another(url: &str) -> usize {
    const CLAIMERS: u64 = 32;
    const ROUNDS: u64 = 8;
    let start = Barrier::new(CLAIMERS.try_into().unwrap());
    let opened = || open_segments(url, &Options::default()).unwrap();
    assert!(opened().create(&NewSegmentTag::new("orders", 10).unwrap()).unwrap());
    let answers: Vec<_> = std::thread::scope(|scope| {
        let claimers: Vec<_> = (1..=CLAIMERS)
            .map(|step| {
                let (store, start) = (opened(), &start);
                scope.spawn(move || {
                    let _ = store.tags(); // it connects
                    let claim = |_| {
                        start.wait();
                        store.next_range("orders", step)
                    };
                    (0..ROUNDS).map(claim).collect::<Vec<_>>()
                })
            })
            .collect();
        claimers.into_iter().flat_map(|claimer| claimer.join().unwrap()).collect()
    });
    let (mut ranges, mut refused) = (Vec::new(), 0);
    for answer in answers {
        match answer {
            Ok(NextRange::Numbers(range)) => ranges.push(range),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert!(
                    error.to_string().starts_with("other processes were in the way"),
                    "{error}"
                );
                refused += 1;
            }
        }
    }
    let end = u64::try_from(opened().tags().unwrap()[0].max_id).unwrap();
    assert!(in_order(&mut ranges, end), "to {end}: {ranges:?}");
    ranges.push(1..2);
    assert!(!in_order(&mut ranges, end), "a planted duplicate is found");
    refused
}

fn in_order(ranges: &mut [Range<u64>], end: u64) -> bool {
    ranges.sort_by_key(|range| range.start);
    let whole = ranges[0].start == 1 && ranges[ranges.len() - 1].end == end;
    whole && ranges.windows(2).all(|pair| pair[0].end == pair[1].start)
}

/// Once it is acknowledged, no first claim that counts with the old floor takes effect any more.
pub(crate) fn a_raised_floor_holds_for_claims_that_are_under_way(url: &str) {
    for round in 0..10 {
        let name = format!("round-{round}");
        let stores: Vec<_> = (0..9).map(|_| opened(url)).collect();
        for store in &stores {
            store.open_namespace(&name, "a layout").unwrap();
        }
        let start = Barrier::new(9);
        let (seen, last) = std::thread::scope(|scope| {
            for (claimer, store) in (0..).zip(&stores[1..]) {
                let (start, name) = (&start, &name);
                scope.spawn(move || {
                    start.wait();
                    for machine in (0..).map(|i| i * 8 + claimer) {
                        let expect = Record::unclaimed(0).expect();
                        match store.cas(name, machine, &expect, &claimed(1, 1)).unwrap() {
                            Cas::Done => {}
                            Cas::Conflict(current) => {
                                assert_eq!(current, Record::unclaimed(500));
                                break;
                            }
                        }
                    }
                });
            }
            start.wait();
            while stores[0].list(&name).unwrap().len() < 8 {}
            assert_eq!(stores[0].raise_floor(&name, 500).unwrap(), 500);
            (stores[0].list(&name).unwrap(), &name)
        });
        assert_eq!(stores[0].list(last).unwrap(), seen, "a claim came after the floor was raised");
        assert_eq!(stores[0].raise_floor(&name, 400).unwrap(), 500, "it never drops");
        let current = stores[0].open_namespace(&name, "x").unwrap();
        assert_eq!(current.floor, 500);
        let from_the_floor = Record::unclaimed(500).expect();
        let done = stores[0].cas(&name, 1 << 40, &from_the_floor, &claimed(1, 1)).unwrap();
        assert_eq!(done, Cas::Done);
    }
}

pub(crate) fn a_namespace_that_was_not_opened_has_no_floor(url: &str) {
    let said = refused(opened(url).raise_floor("unknown", 1));
    assert!(said.contains("namespace `unknown` was not opened"), "{said}");
}

/// With a driver's error, and what wraps it, in every form.
pub(crate) fn a_wrong_password_is_permanent_and_not_shown(url: &str) {
    let url = with_wrong_password(url);
    let store = open(&url).unwrap();
    let error = store.open_namespace("ids", "a layout").unwrap_err();
    assert!(error.is_permanent());
    assert!(error.to_string().contains("check the user, the password"), "{error}");
    let nodes = open_worker_nodes(&url, &Options::default()).unwrap();
    let again = nodes.insert("h", 1).unwrap_err();
    let shown = format!("{error} {error:?} {again} {again:?} {store:?} {nodes:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(!store.describe().contains("hunter2"));
}

/// Somebody else's slowness is no reason to hang, and neither is a port where nobody listens.
pub(crate) fn a_server_that_does_not_answer_is_given_up_in_time(scheme: &str) {
    let clock = SystemClock::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{scheme}://u:p@{}/d", listener.local_addr().unwrap());
    let store = open_with(&url, &quickly(200)).unwrap();
    let limit = Duration::from_millis(200);
    assert_eq!(store.timing(), Timing { request_timeout: limit, ..Timing::NETWORK });
    let begin = clock.monotonic();
    let said = unavailable(store.open_namespace("ids", "a layout"));
    assert!(said.contains("no answer within 200 ms"), "{said}");
    let expect = Record::unclaimed(0).expect();
    unavailable(store.cas("ids", 0, &expect, &claimed(1, 1)));
    let took = clock.monotonic() - begin;
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(4), "{took:?}");
    drop(listener);
    let said = unavailable(store.list("ids"));
    assert!(said.contains("the server cannot be reached"), "{said}");
}

/// A store may be used, and dropped, inside somebody's runtime.
pub(crate) fn it_works_inside_a_runtime(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = opened(url);
        let expect = Record::unclaimed(0).expect();
        assert_eq!(store.cas("ids", 3, &expect, &claimed(1, 1)).unwrap(), Cas::Done);
        drop(store);
        drop(open(url).unwrap()); // never connected
    });
}

/// `end` ends every connection of the store from the server's side.
pub(crate) fn a_connection_that_was_ended_is_made_anew(url: &str, end: impl Fn()) {
    let store = opened(url);
    for _ in 0..3 {
        end();
        assert_eq!(store.read("ids", 3).unwrap(), None);
    }
}

pub(crate) fn without_auto_init_nothing_is_created(url: &str) {
    let options = Options { auto_init: false, ..Options::default() };
    let store = open_with(url, &options).unwrap();
    let nodes = open_worker_nodes(url, &options).unwrap();
    for said in [refused(store.open_namespace("known", "a layout")), refused(nodes.insert("h", 1))]
    {
        assert!(said.contains("does not exist, and auto_init is off; have it created"), "{said}");
    }
    let made = open(url).unwrap().open_namespace("known", "a layout").unwrap();
    open_worker_nodes(url, &Options::default()).unwrap().insert("h", 1).unwrap();
    let said = refused(store.open_namespace("unknown", "a layout"));
    assert!(said.contains("namespace `unknown` does not exist, and auto_init"), "{said}");
    assert_eq!(store.open_namespace("known", "x").unwrap(), made);
    nodes.insert("h", 1).unwrap();
}

/// Tables and namespaces, by starters that all find nothing.
pub(crate) fn many_may_create_the_tables_at_once(url: impl Fn() -> String) {
    for _ in 0..5 {
        let url = url();
        let start = Barrier::new(8);
        let made: Vec<_> = std::thread::scope(|scope| {
            let starters: Vec<_> = (0..8)
                .map(|_| {
                    let (url, start) = (&url, &start);
                    scope.spawn(move || {
                        let store = open(url).unwrap();
                        let nodes = open_worker_nodes(url, &Options::default()).unwrap();
                        start.wait();
                        let namespace = store.open_namespace("ids", "a layout").unwrap();
                        (namespace.uuid, nodes.insert("h", 1).unwrap())
                    })
                })
                .collect();
            starters.into_iter().map(|starter| starter.join().unwrap()).collect()
        });
        let numbers: HashSet<_> = made.iter().map(|(_, number)| number).collect();
        assert_eq!(numbers.len(), 8);
        assert!(made.iter().all(|(uuid, _)| *uuid == made[0].0 && *uuid != 0), "{made:?}");
    }
}

pub(crate) fn a_thousand_racing_nodes_get_different_numbers(url: &str) -> HashSet<u64> {
    let numbers: Vec<u64> = std::thread::scope(|scope| {
        let starters: Vec<_> = (0..20)
            .map(|pid| {
                scope.spawn(move || {
                    let nodes = open_worker_nodes(url, &Options::default()).unwrap();
                    (0..50).map(|_| nodes.insert("häst", pid).unwrap()).collect::<Vec<_>>()
                })
            })
            .collect();
        starters.into_iter().flat_map(|starter| starter.join().unwrap()).collect()
    });
    assert_eq!(numbers.len(), 1000);
    let distinct: HashSet<_> = numbers.into_iter().collect();
    assert_eq!(distinct.len(), 1000);
    assert!(!distinct.contains(&0));
    distinct
}

pub(crate) fn a_long_host_name_is_cut(url: &str) {
    let store = opened(url);
    let long = Record { host: "é".repeat(300), ..claimed(1, 1) };
    assert_eq!(store.cas("ids", 1, &Record::unclaimed(0).expect(), &long).unwrap(), Cas::Done);
    let cut = Record { host: "é".repeat(255), ..long };
    assert_eq!(store.read("ids", 1).unwrap(), Some(cut));
    open_worker_nodes(url, &Options::default()).unwrap().insert(&"é".repeat(300), 1).unwrap();
}

/// Neither case nor trailing blanks, nor anything that is alike in some language.
pub(crate) fn names_are_compared_exactly(url: &str) {
    let store = open(url).unwrap();
    let names = ["ids", "IDS", "Ids", "ïds", " ids", "ids\t", "ıds", "x'; --", "名"];
    for name in names {
        store.open_namespace(name, name).unwrap();
        store.cas(name, 1, &Record::unclaimed(0).expect(), &claimed(1, 1)).unwrap();
    }
    let made: HashSet<_> =
        names.iter().map(|name| store.open_namespace(name, "x").unwrap().uuid).collect();
    assert_eq!(made.len(), names.len());
    assert!(names.iter().all(|n| store.open_namespace(n, "x").unwrap().fingerprint == *n));
    assert!(refused(store.open_namespace("ids ", "x")).contains("choose another name"));
    refused(store.open_namespace(&"x".repeat(129), "x"));
    refused(store.open_namespace("long", &"x".repeat(129)));
}

/// No statement, no value, no password: at no level.
pub(crate) fn nothing_of_it_is_logged(url: &str) {
    let log = Log::installed();
    let store = opened(url);
    let secret = Record { host: "planted-secret".into(), ..claimed(1, 1) };
    store.cas("ids", 1, &Record::unclaimed(0).expect(), &secret).unwrap();
    refused(open(&with_wrong_password(url)).unwrap().list("ids"));
    tracing::trace!("it does listen");
    let lines = log.text();
    assert!(lines.contains("it does listen"));
    for never in ["planted-secret", "hunter2", "vesta_record", "sqlx::query"] {
        assert!(!lines.contains(never), "{never} in {lines}");
    }
}

/// Whatever is logged anywhere in this process, at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn installed() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Log::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(move || writer.clone())
                .init();
            log
        })
        .clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes a test of each of the functions above, for a fixture with a `url`.
#[macro_export]
macro_rules! shared_tests {
    ($fresh:expr, $url:expr, $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let fixture = $fresh();
                shared::$name(&$url(&fixture));
            }
        )*
    };
}

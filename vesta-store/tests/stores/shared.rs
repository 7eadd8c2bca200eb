//! Tests of both SQL databases on a network, in addition to the suite.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Duration;

use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentService};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{KvStore, StoreError, Timing};
use vesta_store::{Options, open_segments, open_with, open_worker_nodes};

/// A name that is unique on the server.
pub(crate) fn fresh_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("vesta_test_{random:016x}")
}

/// The same URL with a wrong password.
pub(crate) fn with_wrong_password(url: &str) -> String {
    let (before, place) = url.rsplit_once('@').expect("a URL with a user");
    let (user, _) = before.rsplit_once(':').expect("a URL with a password");
    format!("{user}:hunter2@{place}")
}

pub(crate) const AREA: &str = "lease/ids";

/// A store that has not connected yet.
pub(crate) fn open(url: &str) -> Arc<dyn KvStore> {
    open_with(&url.parse().unwrap(), &Options::default()).unwrap()
}

/// A store whose table exists.
pub(crate) fn opened(url: &str) -> Arc<dyn KvStore> {
    let store = open(url);
    store
        .put_if(AREA, "namespace", None, "a namespace")
        .unwrap();
    store
}

fn quickly(millis: u64) -> Options {
    Options {
        request_timeout: Some(Duration::from_millis(millis)),
        ..Options::default()
    }
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

/// 32 connections put one entry concurrently: first an absent one, then repeatedly an existing one.
/// Returns how many puts the server refused because of a conflict; those put nothing.
pub(crate) fn one_of_many_puts_wins(url: &str) -> usize {
    const PUTTERS: usize = 32;
    const ROUNDS: usize = 4;
    let start = Barrier::new(PUTTERS);
    let stores: Vec<_> = (0..PUTTERS).map(|_| opened(url)).collect();
    let outcomes: Vec<Vec<_>> = std::thread::scope(|scope| {
        let putters: Vec<_> = (0..)
            .zip(&stores)
            .map(|(putter, store)| {
                let start = &start;
                scope.spawn(move || {
                    let round = |round: usize| {
                        // No panic before the barrier: it would block the other threads forever.
                        let before = store.get(AREA, "7");
                        start.wait();
                        let before = before.ok().flatten();
                        let new = format!("{round} of {putter}");
                        let outcome = store.put_if(AREA, "7", before.as_deref(), &new);
                        start.wait();
                        (outcome, new, store.get(AREA, "7"))
                    };
                    (0..ROUNDS).map(round).collect()
                })
            })
            .collect();
        putters
            .into_iter()
            .map(|putter| putter.join().unwrap())
            .collect()
    });
    let mut refused = 0;
    for round in (0..ROUNDS).map(|round| outcomes.iter().map(move |rounds| &rounds[round])) {
        let round: Vec<_> = round.collect();
        let won: Vec<_> = round
            .iter()
            .filter(|(won, ..)| matches!(won, Ok(true)))
            .collect();
        let [(_, winner, _)] = won[..] else {
            panic!("{round:?}")
        };
        for (outcome, _, seen) in &round {
            refused += usize::from(outcome.as_ref().is_err_and(is_conflict));
            assert!(outcome.as_ref().err().is_none_or(is_conflict), "{round:?}");
            assert_eq!(seen.as_ref().unwrap().as_ref(), Some(winner), "{round:?}");
        }
    }
    refused
}

/// True if the server repeatedly refused a change because of concurrent changes.
fn is_conflict(error: &StoreError) -> bool {
    !error.is_permanent()
        && error
            .to_string()
            .starts_with("other processes were in the way")
}

/// 32 connections take ranges of one tag concurrently: the ranges have no overlap and no gap. Returns
/// how many the server refused because of a conflict; those took nothing.
pub(crate) fn ranges_of_many_claims_follow_one_another(url: &str) -> usize {
    const CLAIMERS: u64 = 32;
    const ROUNDS: u64 = 8;
    let start = Barrier::new(CLAIMERS.try_into().unwrap());
    let opened = || open_segments(&url.parse().unwrap(), &Options::default()).unwrap();
    assert!(
        opened()
            .create(&NewSegmentTag::new("orders", 10).unwrap())
            .unwrap()
    );
    let answers: Vec<_> = std::thread::scope(|scope| {
        let claimers: Vec<_> = (1..=CLAIMERS)
            .map(|step| {
                let (store, start) = (opened(), &start);
                scope.spawn(move || {
                    let _ = store.tags(); // connects
                    let claim = |_| {
                        start.wait();
                        store.next_range("orders", step)
                    };
                    (0..ROUNDS).map(claim).collect::<Vec<_>>()
                })
            })
            .collect();
        claimers
            .into_iter()
            .flat_map(|claimer| claimer.join().unwrap())
            .collect()
    });
    let (mut ranges, mut refused) = (Vec::new(), 0);
    for answer in answers {
        match answer {
            Ok(NextRange::Numbers(range)) => ranges.push(range),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert!(is_conflict(&error), "{error}");
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

/// In a driver's error and its wrappers, in every format.
pub(crate) fn a_wrong_password_is_permanent_and_not_shown(url: &str) {
    let url = with_wrong_password(url);
    let store = open(&url);
    let error = store.get(AREA, "1").unwrap_err();
    assert!(error.is_permanent());
    assert!(
        error.to_string().contains("check the user, the password"),
        "{error}"
    );
    let nodes = open_worker_nodes(&url.parse().unwrap(), &Options::default()).unwrap();
    let again = nodes.insert("h", 1).unwrap_err();
    let shown = format!("{error} {error:?} {again} {again:?} {store:?} {nodes:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(!store.describe().contains("hunter2"));
}

/// An unresponsive server must not block the caller, and neither must a port without a listener.
pub(crate) fn an_unresponsive_server_times_out(scheme: &str) {
    let clock = SystemClock::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{scheme}://u:p@{}/d", listener.local_addr().unwrap());
    let store = open_with(&url.parse().unwrap(), &quickly(200)).unwrap();
    let limit = Duration::from_millis(200);
    assert_eq!(
        store.timing(),
        Timing {
            request_timeout: limit,
            ..Timing::NETWORK
        }
    );
    let begin = clock.monotonic();
    let said = unavailable(store.get(AREA, "1"));
    assert!(said.contains("no answer within 200 ms"), "{said}");
    unavailable(store.put_if(AREA, "1", None, "a"));
    let took = clock.monotonic() - begin;
    assert!(
        took >= Duration::from_millis(400) && took < Duration::from_secs(4),
        "{took:?}"
    );
    drop(listener);
    let said = unavailable(store.list(AREA));
    assert!(said.contains("the server cannot be reached"), "{said}");
}

/// A store may be used and dropped inside another runtime.
pub(crate) fn the_store_works_inside_a_runtime(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = opened(url);
        assert!(store.put_if(AREA, "3", None, "a").unwrap());
        drop(store);
        drop(open(url)); // never connected
    });
}

/// `end` closes every connection of the store on the server's side.
pub(crate) fn a_closed_connection_is_reopened(url: &str, end: impl Fn()) {
    let store = opened(url);
    for _ in 0..3 {
        end();
        assert_eq!(store.get(AREA, "3").unwrap(), None);
    }
}

pub(crate) fn without_auto_init_nothing_is_created(url: &str) {
    let options = Options {
        auto_init: false,
        ..Options::default()
    };
    let store = open_with(&url.parse().unwrap(), &options).unwrap();
    let nodes = open_worker_nodes(&url.parse().unwrap(), &options).unwrap();
    for said in [
        refused(store.get(AREA, "namespace")),
        refused(nodes.insert("h", 1)),
    ] {
        assert!(
            said.contains("does not exist, and auto_init is off; create it with"),
            "{said}"
        );
    }
    opened(url);
    open_worker_nodes(&url.parse().unwrap(), &Options::default())
        .unwrap()
        .insert("h", 1)
        .unwrap();
    let said = refused(store.put_if("lease/unknown", "namespace", None, "x"));
    assert!(
        said.contains("namespace `unknown` does not exist, and auto_init"),
        "{said}"
    );
    assert_eq!(store.get("lease/unknown", "namespace").unwrap(), None);
    assert!(store.put_if(AREA, "1", None, "x").unwrap());
    nodes.insert("h", 1).unwrap();
}

/// Concurrently starting processes all find no tables.
pub(crate) fn tables_can_be_created_concurrently<F>(
    fresh: impl Fn() -> F,
    url: impl Fn(&F) -> String,
) {
    for _ in 0..5 {
        let fixture = fresh();
        let url = url(&fixture);
        let start = Barrier::new(8);
        let made: Vec<_> = std::thread::scope(|scope| {
            let starters: Vec<_> = (0..8)
                .map(|_| {
                    let (url, start) = (&url, &start);
                    scope.spawn(move || {
                        let store = open(url);
                        let nodes =
                            open_worker_nodes(&url.parse().unwrap(), &Options::default()).unwrap();
                        start.wait();
                        let first = store.put_if(AREA, "namespace", None, "x").unwrap();
                        (first, nodes.insert("h", 1).unwrap())
                    })
                })
                .collect();
            starters
                .into_iter()
                .map(|starter| starter.join().unwrap())
                .collect()
        });
        let numbers: HashSet<_> = made.iter().map(|(_, number)| number).collect();
        assert_eq!(numbers.len(), 8);
        assert_eq!(
            made.iter().filter(|(first, _)| *first).count(),
            1,
            "{made:?}"
        );
    }
}

pub(crate) fn a_thousand_racing_nodes_get_different_numbers(url: &str) -> HashSet<u64> {
    let numbers: Vec<u64> = std::thread::scope(|scope| {
        let starters: Vec<_> = (0..20)
            .map(|pid| {
                scope.spawn(move || {
                    let nodes =
                        open_worker_nodes(&url.parse().unwrap(), &Options::default()).unwrap();
                    (0..50)
                        .map(|_| nodes.insert("häst", pid).unwrap())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        starters
            .into_iter()
            .flat_map(|starter| starter.join().unwrap())
            .collect()
    });
    assert_eq!(numbers.len(), 1000);
    let distinct: HashSet<_> = numbers.into_iter().collect();
    assert_eq!(distinct.len(), 1000);
    assert!(!distinct.contains(&0));
    distinct
}

/// Sets the first machine ID of a region.
pub(crate) fn the_next_number_is(number: u64, url: &str) {
    let nodes = open_worker_nodes(&url.parse().unwrap(), &Options::default()).unwrap();
    assert_eq!(nodes.insert("host", 1).unwrap(), number);
}

pub(crate) fn a_long_host_name_is_truncated(url: &str) {
    open_worker_nodes(&url.parse().unwrap(), &Options::default())
        .unwrap()
        .insert(&"é".repeat(300), 1)
        .unwrap();
}

/// The log has no statement, value or password at any level. It is that of the whole process, so the name of
/// a table alone may occur in an error of another test.
pub(crate) fn no_statement_or_password_is_logged(url: &str) {
    let log = Log::installed();
    let store = opened(url);
    store.put_if(AREA, "1", None, "planted-secret").unwrap();
    refused(open(&with_wrong_password(url)).list(AREA));
    tracing::trace!("it does listen");
    let lines = log.text();
    assert!(lines.contains("it does listen"));
    let statements = [
        "EXISTS vesta_kv",
        "FROM vesta_kv",
        "INTO vesta_kv",
        "UPDATE vesta_kv",
        "sqlx::query",
    ];
    for never in ["planted-secret", "hunter2"].into_iter().chain(statements) {
        assert!(!lines.contains(never), "{never} in {lines}");
    }
}

/// Everything logged in this process, at any level.
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

/// Generates a test of each of the functions above, for a fixture with a `url`.
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

/// Column types of a database, and the statements that change `leaf_alloc` to them.
pub(crate) struct ColumnTypes<'a> {
    pub(crate) whole: &'a [&'a str],
    /// Types that stop counting, or never did.
    pub(crate) lossy: &'a [&'a str],
    /// Changes both columns from one whole type to another.
    pub(crate) both: fn(&str) -> String,
    pub(crate) max_id: fn(&str) -> String,
    /// Statements that restore whole numbers, and allow nulls if wanted.
    pub(crate) nullable: &'a [&'a str],
}

pub(crate) fn whole_numbers_of_any_width_are_read(
    url: &str,
    ask: impl Fn(&str),
    types: &ColumnTypes<'_>,
) {
    let store = open_segments(&url.parse().unwrap(), &Options::default()).expect("it opens");
    for key in ["orders", "users"] {
        let tag = NewSegmentTag::new(key, 10).expect("a right tag");
        assert!(store.create(&tag).expect("it answers"));
    }
    let mut end = 1;
    for kind in types.whole {
        ask(&(types.both)(kind));
        end += 10;
        let range = store.next_range("orders", 10).expect(kind);
        assert_eq!(range, NextRange::Numbers(end - 10..end), "{kind}");
        assert!(
            store.give_back("orders", end - 3..end).expect(kind),
            "{kind}"
        );
        end -= 3;
        let tags = store.tags().expect(kind);
        assert_eq!(
            (tags[0].max_id.unsigned_abs(), tags[0].step),
            (end, 10),
            "{kind}"
        );
    }
    for kind in types.lossy {
        ask(&(types.max_id)(kind));
        let tags = store.tags().expect(kind);
        assert_eq!(tags.len(), 2);
        assert!(
            tags.iter().all(|tag| tag.max_id == -1),
            "{kind} loses numbers: {tags:?}"
        );
    }
    types.nullable.iter().for_each(|sql| ask(sql));
    ask("UPDATE leaf_alloc SET max_id = NULL WHERE biz_tag = 'orders'");
    let tags = store.tags().expect("it answers");
    assert_eq!(
        tags.iter().map(|tag| tag.max_id).collect::<Vec<_>>(),
        [-1, 1],
        "null"
    );
    let service = SegmentService::builder(store).build().expect("a service");
    assert!(service.segment("users").and_then(|tag| tag.next()).is_ok());
    assert!(
        service
            .segment("orders")
            .and_then(|tag| tag.next())
            .is_err()
    );
}

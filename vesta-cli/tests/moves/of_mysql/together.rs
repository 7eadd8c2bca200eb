//! The moves of the guides, step by step: the old servers alone, both at once on the same rows, Vesta alone,
//! and back. No number repeats, whichever server issued it.
#![allow(
    clippy::single_range_in_vec_init,
    reason = "ranges of numbers are what is meant"
)]

use std::net::SocketAddr;
use std::ops::Range;

use vesta_testkit::folder;

use super::databases::{Database, TOKEN, tinyid};
use crate::http::get;
use crate::originals::{Original, Server};
use crate::programs::serve;

/// All numbers received; none repeats.
#[derive(Default)]
struct Seen(Vec<Range<u64>>);

impl Seen {
    fn add(&mut self, who: &str, numbers: impl IntoIterator<Item = Range<u64>>) {
        for numbers in numbers {
            let twice = self
                .0
                .iter()
                .find(|it| it.start < numbers.end && numbers.start < it.end);
            assert!(
                twice.is_none(),
                "{who} handed out {numbers:?} after {twice:?}"
            );
            self.0.push(numbers);
        }
    }
}

/// Takes numbers from several old servers at once.
fn old(servers: &mut [Server], tag: &str, rounds: usize) -> Vec<Range<u64>> {
    std::thread::scope(|scope| {
        let taking = servers.iter_mut().map(|server| {
            scope.spawn(|| (0..rounds).map(|_| server.take(tag)).collect::<Vec<_>>())
        });
        let taking: Vec<_> = taking.collect();
        taking
            .into_iter()
            .flat_map(|taken| taken.join().expect("no panic"))
            .collect()
    })
}

/// A client's way to get numbers of a tag.
type Ask = fn(SocketAddr, &str) -> Vec<Range<u64>>;

fn leaf(to: SocketAddr, tag: &str) -> Vec<Range<u64>> {
    let number = get(to, &format!("/api/segment/get/{tag}"))
        .parse()
        .expect("a number");
    vec![number..number + 1]
}

/// One number from the server, and a range that the client issues.
fn of_tinyid(to: SocketAddr, tag: &str) -> Vec<Range<u64>> {
    let ask = |name: &str| {
        get(
            to,
            &format!("/tinyid/id/{name}?token={TOKEN}&bizType={tag}"),
        )
    };
    let number = ask("nextIdSimple").parse().expect("a number");
    let range = ask("nextSegmentIdSimple");
    let range: Vec<u64> = range
        .split(',')
        .map(|it| it.parse().expect("a number"))
        .collect();
    vec![number..number + 1, range[0] + 1..range[2] + 1]
}

fn move_and_back(original: Original, database: &Database, flags: &[&str], ask: Ask) {
    const TAG: &str = "shop.order";
    let (folder, url) = (folder(), database.url());
    let mut seen = Seen::default();
    let mut servers = [(); 2].map(|()| Server::start(original, &url));
    seen.add("the old", old(&mut servers, TAG, 20));

    let flags = [flags, &["--segment-store", &url]].concat();
    let program = serve("vesta-rest", folder.path(), &flags);
    let to = program.address();
    let (by_old, by_both) = std::thread::scope(|scope| {
        let taking = scope.spawn(|| old(&mut servers, TAG, 100));
        let own: Vec<_> = (0..300).flat_map(|_| ask(to, TAG)).collect();
        (taking.join().expect("no panic"), own)
    });
    seen.add("the old, beside Vesta", by_old);
    seen.add("Vesta, beside the old", by_both);

    seen.add("Vesta alone", (0..300).flat_map(|_| ask(to, TAG)));
    let (code, log) = program.stop();
    assert_eq!(code, Some(0), "{log}");
    seen.add("the old again", old(&mut servers, TAG, 20));
    let program = serve("vesta-rest", folder.path(), &flags);
    seen.add("Vesta again", ask(program.address(), TAG));
}

#[test]
fn from_tinyid_and_back() {
    let database = tinyid(&[("shop.order", 1, "100", 1, 0)]);
    move_and_back(Original::Tinyid, &database, &["--compat=tinyid"], of_tinyid);
}

#[test]
fn from_leaf_and_back() {
    let database = Database::with(
        "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', \
         max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL, \
         description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT \
         CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE=InnoDB; \
         INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('shop.order', 1, 100)",
    );
    move_and_back(Original::Leaf, &database, &[], leaf);
}

#[test]
fn from_cosid_and_back() {
    let database = Database::with(
        "create table if not exists cosid (name varchar(100) not null comment '{namespace}.{name}', \
         last_max_id bigint unsigned not null default 0, \
         last_fetch_time bigint unsigned not null default 0, constraint cosid_pk primary key (name)) \
         engine = InnoDB; insert into cosid (name, last_max_id, last_fetch_time) value \
         ('shop.order', 0, unix_timestamp())",
    );
    move_and_back(Original::Cosid, &database, &["--segment-table=cosid"], leaf);
}

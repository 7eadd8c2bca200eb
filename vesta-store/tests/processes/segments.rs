//! Numbers of a tag, taken by several processes concurrently from one database: none repeats, each
//! process gets ascending ones, and calls wait for an unreachable database.

mod taker;

use std::ops::Range;
use std::time::Duration;

use vesta_numbers::segment::NewSegmentTag;
use vesta_store::{Options, open_segments};

use vesta_testkit::fleet::numbers::{count, disjoint};
use vesta_testkit::fleet::{Event, Process, now, random};
use vesta_testkit::is_full_run;

use crate::server::Server;
use crate::stores::Store;
use crate::world::World;
use taker::STEP;
pub(crate) use taker::Task;

const PROCESSES: usize = 4;
const NUMBERS: u64 = 10_000_000;
const MANY_NUMBERS: u64 = 100_000_000;
/// The outage of a database in the full run; otherwise it lasts until every process has noticed it.
const OUTAGE: Duration = Duration::from_secs(20);

impl World {
    /// Task on a new, unique tag.
    pub(crate) fn taker(&self) -> Task {
        let tag = format!("processes-{:x}", random(u64::MAX));
        let store =
            open_segments(&self.url().parse().unwrap(), &Options::default()).expect("it opens");
        let new = NewSegmentTag::new(&tag, STEP).expect("a right tag");
        assert!(store.create(&new).expect("the database answers"));
        Task {
            url: self.url().into(),
            tag,
            count: None,
            repeats: false,
        }
    }
}

/// The numbers that all processes took, if none repeats.
pub(crate) fn union(takers: &[Process]) -> Result<Vec<Range<u64>>, String> {
    disjoint(takers.iter().flat_map(|taker| taker.runs.clone()).collect())
}

/// Starts them at once, and waits until each has its numbers.
pub(crate) fn run(takers: &mut [Process]) {
    takers.iter_mut().for_each(Process::until_started);
    takers.iter_mut().for_each(Process::go);
    takers.iter_mut().for_each(Process::until_closed);
}

/// How often consecutive numbers were taken by different processes.
fn turns(takers: &[Process]) -> usize {
    let of = |(owner, taker): (usize, &Process)| {
        taker
            .runs
            .iter()
            .map(move |run| (run.start, owner))
            .collect::<Vec<_>>()
    };
    let mut runs: Vec<_> = takers.iter().enumerate().flat_map(of).collect();
    runs.sort_unstable();
    runs.windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .count()
}

pub(crate) fn four_servers_take_ten_million_numbers_of_one_tag_and_none_repeats(store: &Store) {
    take_at_once(
        &World::of(store),
        if is_full_run() { MANY_NUMBERS } else { NUMBERS },
    );
}

/// Processes that take this many numbers of one tag in total.
pub(crate) fn take_at_once(world: &World, numbers: u64) {
    let each = numbers / PROCESSES as u64;
    let task = Task {
        count: Some(each),
        ..world.taker()
    };
    let mut takers = [(); PROCESSES].map(|()| task.start());
    let begin = now();
    run(&mut takers);
    let took = now() - begin;
    let runs = union(&takers).unwrap_or_else(|duplicate| panic!("{duplicate}"));
    assert_eq!(count(&runs), numbers);
    for taker in &takers {
        assert_eq!(
            taker.held, [""; 0],
            "no call fails while the database answers"
        );
        assert_eq!(count(&taker.runs), each);
    }
    let turns = turns(&takers);
    assert!(
        turns >= PROCESSES,
        "they came one after another, not at once"
    );
    println!(
        "{:9} | {PROCESSES} processes took {numbers} numbers of one tag in {took:.1?}, in {turns} \
         turns, 0 duplicates; the highest is {}",
        world.name,
        runs.last().map_or(0, |run| run.end - 1),
    );
}

pub(crate) fn nothing_repeats_while_calls_wait_for_unreachable_tags(store: &Store) {
    let server = Server::start(store);
    let world = World::at(store, &server.url());
    let (pause, resume) = (|| server.run("pause"), || server.run("resume"));
    let (kill, start) = (|| server.run("kill"), || server.run("start"));
    outages(
        &world,
        &[
            ("paused", &pause, &resume),
            ("killed and started again", &kill, &start),
        ],
    );
}

pub(crate) type Switch<'a> = &'a dyn Fn();

pub(crate) fn outages(world: &World, ways: &[(&str, Switch<'_>, Switch<'_>)]) {
    let task = world.taker();
    let mut takers = [(); PROCESSES].map(|()| task.start());
    for taker in &mut takers {
        taker.until_ids();
    }
    for (way, stop, back) in ways {
        stop();
        let stopped = now();
        for taker in &mut takers {
            taker.until(|event| match event {
                Event::Held(why) if why.starts_with("UNAVAILABLE ") => Some(()),
                _ => None,
            });
        }
        if is_full_run() {
            takers[0].listen(OUTAGE.saturating_sub(now() - stopped));
        }
        back();
        let is_back = now();
        let recovered = takers
            .each_mut()
            .map(|taker| taker.until_ids_after(is_back) - is_back);
        println!(
            "{:9} | tags {way} for {:.1?}: {PROCESSES} processes waited, then UNAVAILABLE; recovered \
             in {:.0?} at the latest",
            world.name,
            is_back - stopped,
            recovered.into_iter().max().unwrap_or_default(),
        );
    }
    for taker in &mut takers {
        taker.close();
        let said = "UNAVAILABLE the store returned no numbers for tag `";
        for why in &taker.held {
            assert!(
                why.starts_with("AWAITING_LEASE ") || why.starts_with(said),
                "{why}"
            );
        }
    }
    let runs = union(&takers).unwrap_or_else(|duplicate| panic!("{duplicate}"));
    println!("{:9} | {} numbers, 0 duplicates", world.name, count(&runs));
}

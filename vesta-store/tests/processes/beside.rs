//! Servers of Vesta and of the system whose table they share, all on one row, each killed once.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStore};
use vesta_store::{Options, SegmentTable, open_segments};

use vesta_testkit::fleet::numbers::{count, disjoint};
use vesta_testkit::fleet::{Event, Process, child, now, random};

use crate::originals::{Original, Server};
use crate::stores::Store;
use crate::world::World;

const SERVERS: usize = 8;
const NUMBERS: u64 = 10_000_000;
/// As many numbers as a server of the original takes at a time.
const STEP: u64 = 2_000;

impl Original {
    const ALL: [Self; 3] = [Self::Leaf, Self::Tinyid, Self::Cosid];

    const fn table(self) -> SegmentTable {
        match self {
            Self::Leaf => SegmentTable::Leaf,
            Self::Tinyid => SegmentTable::Tinyid,
            Self::Cosid => SegmentTable::Cosid,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Tinyid => "tinyid",
            Self::Cosid => "cosid",
        }
    }

    fn named(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|it| it.name() == name)
            .expect("one of three")
    }

    /// The step of a row for which this one is requested.
    const fn step(self, wanted: u64) -> u64 {
        match self {
            Self::Cosid => 100,
            Self::Leaf | Self::Tinyid => wanted,
        }
    }
}

/// Task of a process.
#[derive(Debug, Clone)]
struct Task {
    url: String,
    tag: String,
    /// The count of numbers to take.
    count: u64,
    original: Original,
    /// Stands in for the original.
    stands_in: bool,
}

impl Task {
    fn start(&self) -> Process {
        let words = [
            self.url.clone(),
            self.tag.clone(),
            self.count.to_string(),
            self.original.name().to_owned(),
            self.stands_in.to_string(),
        ];
        Process::start(&mut child::command("beside::server", &words))
    }
}

fn opened(original: Original, url: &str) -> Arc<dyn SegmentStore> {
    let options = Options {
        segment_table: Some(original.table()),
        ..Options::default()
    };
    open_segments(&url.parse().unwrap(), &options).expect("it opens")
}

pub(crate) fn servers_of_tinyid_and_vesta_share_a_row_while_each_is_killed(store: &Store) {
    share_a_row(store, Original::Tinyid, NUMBERS);
}

pub(crate) fn servers_of_leaf_and_vesta_share_a_row_while_each_is_killed(store: &Store) {
    share_a_row(store, Original::Leaf, NUMBERS / 4);
}

pub(crate) fn servers_of_cosid_and_vesta_share_a_row_while_each_is_killed(store: &Store) {
    share_a_row(store, Original::Cosid, NUMBERS / 4);
}

fn share_a_row(store: &Store, original: Original, numbers: u64) {
    let world = World::of(store);
    let tag = format!("beside-{:x}", random(u64::MAX));
    let rows = opened(original, world.url());
    let new = NewSegmentTag::new(&tag, original.step(STEP)).expect("a right tag");
    assert!(rows.create(&new).expect("the database answers"));
    let begin = now();
    let task = |server: usize, count| Task {
        url: world.url().to_owned(),
        tag: tag.clone(),
        count,
        original,
        stands_in: server.is_multiple_of(2),
    };
    let each = numbers / SERVERS as u64;
    let mut killed: Vec<_> = (0..SERVERS)
        .map(|server| task(server, u64::MAX).start())
        .collect();
    let mut successors = Vec::new();
    for (server, process) in killed.iter_mut().enumerate() {
        // At a random point, while the others continue.
        let enough = each / 4 + random(each / 4);
        while count(&process.runs) < enough {
            process.until(|event| matches!(event, Event::Runs(_)).then_some(()));
        }
        process.kill();
        let rest = each.saturating_sub(count(&process.runs)).max(1);
        successors.push(task(server, rest).start());
    }
    successors.iter_mut().for_each(Process::until_closed);
    let took = now() - begin;

    let all: Vec<_> = killed.iter().chain(&successors).collect();
    for process in &all {
        assert!(
            process.runs.is_sorted_by(|a, b| a.end <= b.start),
            "each server's numbers ascend"
        );
        assert_eq!(process.held, [""; 0]);
    }
    let runs = disjoint(
        all.iter()
            .flat_map(|process| process.runs.clone())
            .collect(),
    );
    let runs = runs.unwrap_or_else(|duplicate| panic!("{duplicate}"));
    assert!(count(&runs) >= numbers, "{}", count(&runs));
    let row = rows.tags().expect("the database answers");
    let row = row.iter().find(|row| row.key == tag).expect("the row");
    assert!(
        runs.last()
            .is_some_and(|last| last.end <= row.max_id.unsigned_abs())
    );
    let of = |kind: usize| {
        let its = all.iter().enumerate().filter(|(at, _)| at % 2 == kind);
        its.map(|(_, process)| count(&process.runs)).sum::<u64>()
    };
    println!(
        "{:9} | 4 stand-ins of {original:?} took {} numbers and 4 servers of Vesta {} of one row in {took:.1?}, \
         each killed once: 0 duplicates",
        world.name,
        of(0),
        of(1),
    );
}

#[test]
#[ignore = "what runs in the processes of the other tests"]
fn server() {
    let Some([url, tag, count, original, stands_in]) = child::task() else {
        return;
    };
    let count = count.parse().expect("a number");
    let out = &mut std::io::stdout().lock();
    // If the starting process is gone, errors do not matter.
    let original = Original::named(&original);
    let _ = if stands_in == "true" {
        let mut server = Server::start(original, &url);
        say(count, out, || vec![server.take(&tag)])
    } else {
        let service = SegmentService::builder(opened(original, &url));
        let service = service.max_wait(Duration::from_secs(60));
        let service = service.step_cap(16 * STEP).build().expect("a service");
        let segment = service.segment(&tag).expect("the tag");
        say(count, out, || {
            let runs = segment.next_runs(500).expect("the database answers");
            runs.iter()
                .map(|run| run.first..run.first + u64::from(run.count))
                .collect()
        })
    };
}

/// Prints the numbers that it hands out, in order.
fn say(
    mut left: u64,
    out: &mut impl Write,
    mut take: impl FnMut() -> Vec<Range<u64>>,
) -> std::io::Result<()> {
    Event::Started.say(out)?;
    while left > 0 {
        let runs = take();
        left = left.saturating_sub(count(&runs));
        Event::Runs(runs).say(out)?;
    }
    Event::Closed.say(out)
}

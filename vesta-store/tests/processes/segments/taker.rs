//! Program of the processes: this test program starts itself, takes numbers of one tag in several
//! threads and prints them. It exits at once if a number repeats, or follows a higher one.

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use vesta_numbers::segment::{
    NewSegmentTag, NextRange, Segment, SegmentService, SegmentStore, SegmentTag,
};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::StoreError;
use vesta_service::{ErrorKind, IdError};
use vesta_store::{Options, open_segments};

use vesta_testkit::fleet::numbers::{Order, disjoint};
use vesta_testkit::fleet::{Event, Process, child};

const THREADS: u64 = 8;
/// Step of the tag, which does not grow, so that the processes often meet at the database.
pub(crate) const STEP: u64 = 100;
/// Timeout of one call, and of one request: short, so that an outage is noticed soon.
const MAX_WAIT: Duration = Duration::from_millis(400);
const REQUEST_TIMEOUT: Duration = Duration::from_millis(400);
const PACE: Duration = Duration::from_millis(5);
/// Numbers of one thread between pauses, without a count to reach.
const BATCH: u64 = 100;

/// Task of a process.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) tag: String,
    /// The count of numbers to take as fast as possible, once a line has been read. Without a count it
    /// begins at once, runs slowly, and takes numbers until its input ends.
    pub(crate) count: Option<u64>,
    /// Its store hands out numbers that others have.
    pub(crate) repeats: bool,
}

impl Task {
    pub(crate) fn start(&self) -> Process {
        let words = [
            self.url.clone(),
            self.tag.clone(),
            self.count.map_or(String::new(), |count| count.to_string()),
            self.repeats.to_string(),
        ];
        Process::start(&mut child::command("segments::taker::taker", &words))
    }

    fn of([url, tag, count, repeats]: [String; 4]) -> Self {
        Self {
            url,
            tag,
            count: count.parse().ok(),
            repeats: repeats == "true",
        }
    }

    fn service(&self) -> SegmentService {
        // A process with a count to reach has all the time it needs.
        let (wait, limit) = match self.count {
            Some(_) => (Duration::from_secs(60), None),
            None => (MAX_WAIT, Some(REQUEST_TIMEOUT)),
        };
        let options = Options {
            request_timeout: limit,
            ..Options::default()
        };
        let store = open_segments(&self.url.parse().unwrap(), &options).expect("it opens");
        let store = if self.repeats {
            Arc::new(Repeating::of(store))
        } else {
            store
        };
        SegmentService::builder(store)
            .max_wait(wait)
            .step_cap(256 * STEP)
            .build()
            .expect("a service")
    }
}

/// A store whose first range begins at 1, even if those numbers are taken.
#[derive(Debug)]
struct Repeating {
    store: Arc<dyn SegmentStore>,
    shift: OnceLock<u64>,
}

impl Repeating {
    fn of(store: Arc<dyn SegmentStore>) -> Self {
        Self {
            store,
            shift: OnceLock::new(),
        }
    }
}

impl SegmentStore for Repeating {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.store.tags()
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        let range = self.store.next_range(key, step)?;
        let NextRange::Numbers(numbers) = range else {
            return Ok(range);
        };
        let shift = self.shift.get_or_init(|| numbers.start - 1);
        Ok(NextRange::Numbers(
            numbers.start - shift..numbers.end - shift,
        ))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.store.create(tag)
    }
}

#[test]
#[ignore = "what runs in the processes of the other tests"]
fn taker() {
    let Some(task) = child::task().map(Task::of) else {
        return;
    };
    // If the starting process is gone, errors do not matter.
    let _ = run(&task, &mut std::io::stdout().lock());
}

/// Prints `ids` with the highest number now and then, `held` if there is none, and at the end `runs` with
/// all numbers and `closed`.
fn run(task: &Task, out: &mut impl Write) -> std::io::Result<()> {
    Event::Started.say(out)?;
    let commands = child::commands();
    let service = task.service();
    let segment = loop {
        match service.segment(&task.tag) {
            Ok(segment) => break segment,
            // The store may be too busy at the moment; a missing tag would be a mistake.
            Err(error) => {
                let busy = [ErrorKind::AwaitingLease, ErrorKind::Unavailable];
                assert!(busy.contains(&error.kind()), "{error}");
            }
        }
    };
    if task.count.is_some() && commands.recv().is_err() {
        return Ok(());
    }
    let (order, stop) = (Order::default(), AtomicBool::new(false));
    let (errors, held) = channel();
    let start = Barrier::new(THREADS.try_into().expect("a few"));
    let runs = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let count = task.count.map(|count| (count + thread) / THREADS);
                let (segment, errors, order, stop) = (&segment, errors.clone(), &order, &stop);
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    take(segment, count, order, stop, &errors)
                })
            })
            .collect();
        drop(errors);
        let said = report(&order, &commands, &held, out);
        stop.store(true, Ordering::Relaxed);
        let runs = takers
            .into_iter()
            .flat_map(|taker| taker.join().expect("in order"))
            .collect();
        said.map(|()| runs)
    })?;
    let runs = disjoint(runs).unwrap_or_else(|duplicate| panic!("{duplicate}"));
    Event::Runs(runs).say(out)?;
    Event::Closed.say(out)
}

/// Takes this many numbers, or until told to stop.
fn take(
    segment: &Segment,
    count: Option<u64>,
    order: &Order,
    stop: &AtomicBool,
    errors: &Sender<IdError>,
) -> Vec<Range<u64>> {
    let clock = SystemClock::new();
    let mut runs: Vec<Range<u64>> = Vec::new();
    let mut taken = 0;
    while count != Some(taken) && !stop.load(Ordering::Relaxed) {
        let before = order.highest();
        match segment.next() {
            Ok(number) => {
                order
                    .returned(before, number)
                    .unwrap_or_else(|error| panic!("{error}"));
                match runs.last_mut() {
                    Some(last) if last.end == number => last.end += 1,
                    _ => runs.push(number..number + 1),
                }
                taken += 1;
                if count.is_none() && taken % BATCH == 0 {
                    clock.park(PACE);
                }
            }
            Err(error) => {
                let _ = errors.send(error); // the receiver may be gone
                clock.park(PACE);
            }
        }
    }
    runs
}

/// Reports until all threads have ended, or the input has.
fn report(
    order: &Order,
    commands: &Receiver<()>,
    held: &Receiver<IdError>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let (mut highest, mut last) = (0, None);
    loop {
        let now = order.highest();
        if now > highest {
            (highest, last) = (now, None);
            Event::Ids(vec![now]).say(out)?;
        }
        match held.recv_timeout(PACE) {
            Ok(error) => {
                let kind = error.kind();
                if last.replace(kind) != Some(kind) {
                    let source = std::error::Error::source(&error);
                    let source = source.map_or(String::new(), |source| format!(": {source}"));
                    Event::Held(format!("{} {error}{source}", kind.name())).say(out)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if commands.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected) {
            return Ok(());
        }
    }
}

//! The program of the processes: this test program, started by itself, takes numbers of one tag in
//! several threads and says which. It ends at once if one comes twice, or after a higher one.

use std::io::{BufRead as _, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::StoreError;
use vesta_service::segment::{
    NewSegmentTag, NextRange, Segment, SegmentService, SegmentStore, SegmentTag,
};
use vesta_service::{ErrorKind, IdError};
use vesta_store::{Options, open_segments};

use vesta_testkit::fleet::Process;

use super::numbers::{Order, disjoint};

const THREADS: u64 = 8;
/// Of the tag, and not to grow: so the processes often meet at the database.
pub(crate) const STEP: u64 = 100;
/// The wait of one call, and the time of one request: short, so that an outage is soon seen.
const MAX_WAIT: Duration = Duration::from_millis(400);
const REQUEST_TIMEOUT: Duration = Duration::from_millis(400);
const PREFIX: &str = "VESTA_TAKER_";
const PACE: Duration = Duration::from_millis(5);
/// Numbers of one thread before it pauses, if it has no number to reach.
const BATCH: u64 = 100;

/// The order to a process.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) tag: String,
    /// The count of numbers to take, as fast as they come, once a line has come in. Without it, it begins at
    /// once, goes slowly, and takes numbers until its input ends.
    pub(crate) count: Option<u64>,
    /// Its store hands out what others have.
    pub(crate) repeats: bool,
}

impl Task {
    pub(crate) fn start(&self) -> Process {
        let variables = [
            ("URL", self.url.clone()),
            ("TAG", self.tag.clone()),
            (
                "COUNT",
                self.count.map_or(String::new(), |count| count.to_string()),
            ),
            ("REPEATS", self.repeats.to_string()),
        ];
        let variables = variables.map(|(name, value)| (format!("{PREFIX}{name}"), value));
        Process::start(&mut Process::command("segments::taker::taker", variables))
    }

    /// `None` if this process is no taker.
    fn from_variables() -> Option<Self> {
        let text = |name: &str| std::env::var(format!("{PREFIX}{name}"));
        let url = text("URL").ok()?;
        let text = |name: &str| text(name).expect("set together");
        Some(Self {
            url,
            tag: text("TAG"),
            count: text("COUNT").parse().ok(),
            repeats: text("REPEATS") == "true",
        })
    }

    fn service(&self) -> SegmentService {
        // One that is to bring as much as it can has all the time it needs.
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

/// Has its first range begin at 1, whoever has that already.
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
    let Some(task) = Task::from_variables() else {
        return;
    };
    // Whoever started this process and is gone wants nothing more.
    let _ = run(&task, &mut std::io::stdout().lock());
}

/// Says `ids` with the highest number now and then, `held` when there is none, and in the end `runs` with
/// all numbers and `closed`.
fn run(task: &Task, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "\nstarted")?; // after what the test harness says
    out.flush()?;
    let commands = commands();
    let service = task.service();
    let segment = loop {
        match service.segment(&task.tag) {
            Ok(segment) => break segment,
            // It may be too busy at a moment; a tag that is not there would be a mistake.
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
    let runs: String = runs
        .iter()
        .map(|run| format!(" {}..{}", run.start, run.end))
        .collect();
    writeln!(out, "runs{runs}\nclosed")
}

/// The lines that come in; the channel closes with them.
fn commands() -> Receiver<()> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Takes so many numbers, or until it is to stop.
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
                let _ = errors.send(error); // nobody may listen any more
                clock.park(PACE);
            }
        }
    }
    runs
}

/// Tells how it goes until all threads have ended, or the input has.
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
            writeln!(out, "ids {now}")?;
            out.flush()?;
        }
        match held.recv_timeout(PACE) {
            Ok(error) => {
                let kind = error.kind();
                if last.replace(kind) != Some(kind) {
                    let source = std::error::Error::source(&error);
                    let source = source.map_or(String::new(), |source| format!(": {source}"));
                    writeln!(out, "held {} {error}{source}", kind.name())?;
                    out.flush()?;
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

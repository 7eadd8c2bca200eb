//! Processes as the test that starts them sees them: their output, line by line.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "steps of tests"
)]

use std::io::{BufRead, BufReader, Write as _};
use std::ops::Range;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::{now, pause, resume};

/// Longer than anything here takes; a test that hangs fails.
const WATCHDOG: Duration = Duration::from_secs(120);

/// A process that makes IDs. It is killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    events: Receiver<(Duration, Event)>,
    spawned: Duration,
    /// Its output so far.
    pub ids: Vec<u64>,
    pub runs: Vec<Range<u64>>,
    pub machines: Vec<u64>,
    pub held: Vec<String>,
    pub other: Vec<String>,
    /// Its stderr, if it traces.
    pub log: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Started,
    Machine(u64),
    Ids(Vec<u64>),
    /// Numbers of a tag; may be printed any number of times.
    Runs(Vec<Range<u64>>),
    /// No IDs at the moment: the kind of the error and its text.
    Held(String),
    /// No machine ID, with the reason; the process ends.
    Refused(String),
    Closed,
    /// A line of stderr.
    Log(String),
    Other(String),
}

impl Event {
    fn read(line: &str) -> Self {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| text.parse().expect("a number");
        match word {
            "started" => Self::Started,
            "machine" => Self::Machine(number(rest)),
            "ids" => Self::Ids(rest.split(' ').map(number).collect()),
            "runs" => {
                let run = |text: &str| {
                    let (start, end) = text.split_once("..").expect("a range");
                    number(start)..number(end)
                };
                Self::Runs(rest.split(' ').map(run).collect())
            }
            "held" => Self::Held(rest.to_owned()),
            "refused" => Self::Refused(rest.to_owned()),
            "closed" => Self::Closed,
            _ => Self::Other(line.to_owned()),
        }
    }
}

impl Process {
    /// This test program, to be [started](Self::start) again for one test that is otherwise ignored.
    pub fn command(test: &str, variables: impl IntoIterator<Item = (String, String)>) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
        command
            .args(["--exact", test, "--ignored", "--nocapture"])
            .envs(variables);
        command
            .env_remove("RUST_BACKTRACE")
            .stderr(Stdio::inherit());
        command
    }

    /// Starts a process. Its stderr is read if it is piped.
    pub fn start(command: &mut Command) -> Self {
        let spawned = now();
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("it starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let stderr = child.stderr.take().map(BufReader::new);
        let (sender, events) = channel();
        let log_sender = sender.clone();
        // The receiver may be gone.
        std::thread::spawn(move || {
            read_lines(stdout, |line| drop(sender.send((now(), Event::read(line)))));
        });
        if let Some(stderr) = stderr {
            std::thread::spawn(move || {
                read_lines(stderr, |line| {
                    drop(log_sender.send((now(), Event::Log(line.into()))))
                });
            });
        }
        let (ids, runs, machines, held, other, log) = Default::default();
        Self {
            child,
            stdin,
            events,
            spawned,
            ids,
            runs,
            machines,
            held,
            other,
            log,
        }
    }

    /// The next line of its output; `None` if it has ended.
    fn next(&mut self, limit: Duration) -> Result<Option<(Duration, Event)>, RecvTimeoutError> {
        let next = match self.events.recv_timeout(limit) {
            Ok(next) => next,
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(timeout) => return Err(timeout),
        };
        match &next.1 {
            Event::Machine(machine) => self.machines.push(*machine),
            Event::Ids(ids) => self.ids.extend(ids),
            Event::Runs(runs) => self.runs.extend_from_slice(runs),
            Event::Held(why) => self.held.push(why.clone()),
            Event::Refused(text) | Event::Other(text) => self.other.push(text.clone()),
            Event::Log(line) => self.log.extend([line, "\n"]),
            Event::Started | Event::Closed => {}
        }
        Ok(Some(next))
    }

    /// Waits until `find` accepts an event; returns the result and the time of the event.
    ///
    /// # Panics
    /// If the process ends first, or the watchdog fires.
    pub fn until<T>(&mut self, find: impl Fn(&Event) -> Option<T>) -> (Duration, T) {
        let deadline = now() + WATCHDOG;
        loop {
            let left = deadline.saturating_sub(now());
            let Ok(Some((at, event))) = self.next(left) else {
                panic!(
                    "{} does not come; held: {:?}, said: {:?}",
                    std::any::type_name::<T>(),
                    self.held,
                    self.other
                )
            };
            if let Some(found) = find(&event) {
                return (at, found);
            }
        }
    }

    /// Waits until it has its machine ID, or another one than before.
    pub fn until_machine(&mut self) -> u64 {
        self.until(|event| match event {
            Event::Machine(machine) => Some(*machine),
            _ => None,
        })
        .1
    }

    /// Waits for the next IDs; returns their time.
    pub fn until_ids(&mut self) -> Duration {
        self.until(|event| matches!(event, Event::Ids(_)).then_some(()))
            .0
    }

    /// Waits until it cannot make IDs.
    pub fn until_held(&mut self) {
        self.until(|event| matches!(event, Event::Held(_)).then_some(()));
    }

    /// Waits until it fails to get a machine ID; returns the reason.
    pub fn until_refused(&mut self) -> String {
        self.until(|event| match event {
            Event::Refused(why) => Some(why.clone()),
            _ => None,
        })
        .1
    }

    /// Waits for its first ID; returns the time since the start of the process.
    pub fn until_first_id(&mut self) -> Duration {
        assert!(self.ids.is_empty(), "it was already read");
        self.until_ids() - self.spawned
    }

    /// Waits for IDs that came after this time.
    pub fn until_ids_after(&mut self, moment: Duration) -> Duration {
        loop {
            let at = self.until_ids();
            if at >= moment {
                return at;
            }
        }
    }

    /// Reads its output for this long.
    pub fn listen(&mut self, duration: Duration) {
        let deadline = now() + duration;
        while let Ok(Some(_)) = self.next(deadline.saturating_sub(now())) {}
    }

    /// Checks that every time without IDs was due to the store; a machine that stands still for
    /// longer than a window causes that, too.
    pub fn check_holds(&self) {
        for why in &self.held {
            assert!(why.starts_with("AWAITING_LEASE "), "{why}");
        }
    }

    /// Lets a waiting process continue.
    pub fn go(&mut self) {
        let stdin = self.stdin.as_mut().expect("it is not told to end");
        stdin.write_all(b"go\n").expect("it listens");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGSTOP.
    pub fn pause(&self) {
        pause(self.pid());
    }

    /// SIGCONT.
    pub fn resume(&self) {
        resume(self.pid());
    }

    /// SIGKILL. Output from before still counts.
    pub fn kill(&mut self) {
        self.child.kill().expect("it may be killed");
        self.end();
    }

    /// Makes it release its machine ID, or print its numbers.
    pub fn close(&mut self) {
        self.stdin = None;
        self.until_closed();
    }

    /// Waits until it has finished its work and ended. It may take any time while it makes progress.
    pub fn until_closed(&mut self) {
        let closed = |event: &Event| match event {
            Event::Ids(_) | Event::Runs(_) => Some(false),
            Event::Closed => Some(true),
            _ => None,
        };
        while !self.until(closed).1 {}
        self.end();
    }

    /// Waits until it has ended, and reads the rest of its output.
    fn end(&mut self) {
        self.child.wait().expect("it ends");
        while self.next(WATCHDOG).expect("its end is seen").is_some() {}
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Whole lines only: a kill may cut off the last one.
fn read_lines(mut from: impl BufRead, mut take: impl FnMut(&str)) {
    let mut line = Vec::new();
    while from
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        if let Some(line) = line.strip_suffix(b"\n").filter(|line| !line.is_empty()) {
            take(&String::from_utf8_lossy(line));
        }
        line.clear();
    }
}

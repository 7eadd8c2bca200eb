//! Processes as the test that starts them sees them: their output, line by line.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "steps of tests"
)]

use std::io::{BufRead, Write as _};
use std::ops::{Deref, Range};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::{Event, now};
use crate::programs::Program;

/// Longer than anything here takes; a test that hangs fails.
const WATCHDOG: Duration = Duration::from_secs(120);

/// A program whose output is read as it comes.
#[derive(Debug)]
pub struct Process {
    program: Program,
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

impl Deref for Process {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl Process {
    /// Starts a process. Its stderr is read if it is piped.
    pub fn start(command: &mut Command) -> Self {
        let spawned = now();
        let mut program = Program::spawn(command.stdin(Stdio::piped()));
        let stdin = program.child.stdin.take();
        let stdout = program.stdout.take().expect("it is not read yet");
        let stderr = program.stderr.take();
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
            program,
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
        self.find(find).unwrap_or_else(|| {
            panic!(
                "{} does not come; held: {:?}, said: {:?}",
                std::any::type_name::<T>(),
                self.held,
                self.other
            )
        })
    }

    /// The same; `None` if the process ends first, or the watchdog fires.
    pub fn find<T>(&mut self, find: impl Fn(&Event) -> Option<T>) -> Option<(Duration, T)> {
        let deadline = now() + WATCHDOG;
        loop {
            let (at, event) = self.next(deadline.saturating_sub(now())).ok()??;
            if let Some(found) = find(&event) {
                return Some((at, found));
            }
        }
    }

    /// Waits for a line that contains this text; false if the process ends first.
    pub fn finds(&mut self, text: &str) -> bool {
        let has = |event: &Event| match event {
            Event::Log(line) | Event::Other(line) => line.contains(text).then_some(()),
            _ => None,
        };
        self.find(has).is_some()
    }

    /// Waits until it has started, and listens to [`go`](Self::go).
    pub fn until_started(&mut self) {
        self.until(|event| (*event == Event::Started).then_some(()));
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

    /// SIGKILL. Output from before still counts.
    pub fn kill(&mut self) {
        self.program.child.kill().expect("it may be killed");
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
        self.program.child.wait().expect("it ends");
        while self.next(WATCHDOG).expect("its end is seen").is_some() {}
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

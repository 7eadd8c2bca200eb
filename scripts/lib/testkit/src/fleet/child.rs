//! Both sides of a process that is this test program again: its task, what it says line by line, and its input.
#![allow(missing_docs, clippy::missing_panics_doc, reason = "steps of tests")]

use std::io::{self, BufRead as _, Write};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

const TASK: &str = "VESTA_TEST_TASK";
/// Stands between the words of a task.
const UNIT: &str = "\u{1f}";

/// This test program, to be started again for one test that is otherwise ignored, with the words of its task.
pub fn command<const N: usize>(test: &str, task: &[String; N]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command.env(TASK, task.join(UNIT));
    command
        .env_remove("RUST_BACKTRACE")
        .stderr(Stdio::inherit());
    command
}

/// The task of this process; `None` if no other test started it.
#[must_use]
pub fn task<const N: usize>() -> Option<[String; N]> {
    let task = std::env::var(TASK).ok()?;
    let words: Vec<_> = task.split(UNIT).map(str::to_owned).collect();
    Some(words.try_into().expect("the words of this task"))
}

/// Input lines; the channel closes at the end of the input.
#[must_use]
pub fn commands() -> Receiver<()> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if line.is_err() || sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A line of a process.
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
    /// Says it to the test that started this process.
    ///
    /// # Errors
    /// That test is gone.
    pub fn say(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Started => writeln!(out, "\nstarted"), // after the output of the test harness
            Self::Machine(machine) => writeln!(out, "machine {machine}"),
            Self::Ids(ids) => {
                let ids: String = ids.iter().map(|id| format!(" {id}")).collect();
                writeln!(out, "ids{ids}")
            }
            Self::Runs(runs) => {
                let runs: String = runs.iter().map(|run| format!(" {run:?}")).collect();
                writeln!(out, "runs{runs}")
            }
            Self::Held(why) => writeln!(out, "held {why}"),
            Self::Refused(why) => writeln!(out, "refused {why}"),
            Self::Closed => writeln!(out, "closed"),
            Self::Log(line) | Self::Other(line) => writeln!(out, "{line}"),
        }?;
        out.flush()
    }

    pub(super) fn read(line: &str) -> Self {
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

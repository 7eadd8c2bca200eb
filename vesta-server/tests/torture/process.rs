//! A shipped program, its callers, and the signals sent to it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal as Unix;
use vesta_testkit::fleet::{Answer, Marks, Receiver};
use vesta_testkit::programs::{self, Program};

use crate::callers::{Api, Caller};
use crate::watch::{Signal, Watch};
use crate::world::World;

/// The path of a shipped program. The other one is next to this crate's.
pub(crate) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_vesta-server")).with_file_name(name)
}

/// The ways in which a process may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Ends by itself only if it refuses to start.
    Runs,
    /// Ends with 0, if it was ready.
    Stops,
    Killed,
    /// Its process ID is free for another process.
    Gone,
}

/// A running process. Its own thread watches it until the process and its callers have ended.
pub(crate) struct Process {
    pid: u32,
    pub(crate) name: String,
    fate: Mutex<Fate>,
    /// Set once it has ended: its callers get no more answers.
    ended: Signal,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Process {
    /// Starts a program; callers start as soon as it is ready.
    pub(crate) fn start(
        command: &mut Command,
        name: &str,
        world: &Arc<World>,
        watch: &Arc<Watch>,
        api: Api,
    ) -> Arc<Self> {
        let program = Program::start(command);
        let pid = program.id();
        let started = watch.elapsed().as_secs_f64();
        let name = format!("{name} (pid {pid}, started {started:.3} s)");
        let process = Arc::new(Self {
            pid,
            name,
            fate: Mutex::new(Fate::Runs),
            ended: Signal::default(),
            thread: Mutex::default(),
        });
        world.count(|counts| &mut counts.starts);
        let (this, world, watch) = (process.clone(), world.clone(), watch.clone());
        let thread = thread::spawn(move || this.attend(program, &world, &watch, &api));
        *process.thread.lock().expect("no panic") = Some(thread);
        process
    }

    fn attend(
        self: &Arc<Self>,
        mut program: Program,
        world: &Arc<World>,
        watch: &Arc<Watch>,
        api: &Api,
    ) {
        let is_ready = program.is_ready();
        let mut callers = Vec::new();
        if is_ready {
            let number = world.ledger().join(self.name.clone());
            // The first ID is printed, so a user may use it; a slow start has none yet.
            if let Ok(first) = program.fact("first ID").parse() {
                let by = Receiver {
                    process: number,
                    caller: 0,
                    at: watch.elapsed(),
                };
                world
                    .ledger()
                    .record(by, &Answer::Ids(vec![first]), &mut Marks::new());
            }
            for caller in 1..=api.callers() {
                let caller = Caller {
                    process: number,
                    caller,
                    world: world.clone(),
                    watch: watch.clone(),
                    server: self.clone(),
                };
                let (api, address) = (api.clone(), program.address());
                callers.push(thread::spawn(move || caller.run(&api, address)));
            }
            program.drain();
        }
        let (fate, output) = {
            let mut fate = self.fate.lock().expect("no panic");
            let output = program.end();
            (std::mem::replace(&mut *fate, Fate::Gone), output)
        };
        self.ended.set();
        for caller in callers {
            caller.join().expect("no panic of a caller");
        }
        self.judge(fate, is_ready, &output, world, watch);
    }

    fn judge(&self, fate: Fate, is_ready: bool, output: &Output, world: &World, watch: &Watch) {
        let status = output.status;
        let log = String::from_utf8_lossy(&output.stderr);
        let last = log.trim_end().lines().last().unwrap_or_default();
        let killed = status.signal() == Some(Unix::KILL.as_raw());
        let is_right = match fate {
            Fate::Killed if is_ready => killed || status.code() == Some(0),
            // The signal to stop may have come before the program could handle it.
            Fate::Killed => {
                let stopped = status.signal() == Some(Unix::TERM.as_raw());
                killed
                    || stopped
                    || status
                        .code()
                        .is_some_and(|code| [0, 64, 69].contains(&code))
            }
            Fate::Stops if is_ready => status.code() == Some(0),
            Fate::Stops => status.code().is_some() || status.signal() == Some(Unix::TERM.as_raw()),
            Fate::Runs | Fate::Gone => !is_ready && matches!(status.code(), Some(64 | 69)),
        };
        if fate == Fate::Runs && is_right {
            world.count(|counts| &mut counts.refused_starts);
            watch.say(&format!("{}: refused: {last}", self.name));
        }
        if !is_right {
            let finding = format!("{}: {fate:?}, but ended with {status}: {last}", self.name);
            world.ledger().find(finding);
        }
    }

    /// True if the signal was sent. A killed process stays killed, even before its end is seen.
    fn send(&self, signal: &str, becomes: Option<Fate>) -> bool {
        let mut fate = self.fate.lock().expect("no panic");
        if matches!(*fate, Fate::Killed | Fate::Gone) {
            return false;
        }
        if let Some(becomes) = becomes {
            *fate = becomes;
        }
        programs::signal(self.pid, signal)
    }

    pub(crate) fn kill(&self) -> bool {
        self.send("-KILL", Some(Fate::Killed))
    }

    pub(crate) fn stop(&self) -> bool {
        self.send("-TERM", Some(Fate::Stops))
    }

    pub(crate) fn pause(&self) -> bool {
        self.send("-STOP", None)
    }

    pub(crate) fn resume(&self) -> bool {
        self.send("-CONT", None)
    }

    /// True as soon as the process has ended; false if it has not within this time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        self.ended.within(time)
    }

    /// Waits until the process has ended and everything that its callers received has been checked;
    /// false if one of them panicked.
    pub(crate) fn join(&self) -> bool {
        let thread = self.thread.lock().expect("no panic").take();
        thread.is_none_or(|thread| thread.join().is_ok())
    }
}

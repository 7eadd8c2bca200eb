//! Processes that another process may have started: found in `/proc`, told apart by their start time.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::fleet::now;

/// A process: its ID, and its start time in ticks since boot. Together they are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pid: i32,
    started: u64,
}

impl Process {
    /// The process with this ID, unless it has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok()?;
        Stat::of(pid).map(|it| Self {
            pid,
            started: it.started,
        })
    }

    /// The process that a line of [`Display`](std::fmt::Display) names, unless it has ended.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let (pid, started) = line.trim().split_once(' ')?;
        let process = Self {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        };
        process.runs().then_some(process)
    }

    pub(super) fn runs(self) -> bool {
        Stat::of(self.pid).is_some_and(|it| it.started == self.started)
    }

    fn children(self) -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| {
            let stat = Stat::of(pid).filter(|it| it.parent == self.pid)?;
            Some(Self {
                pid,
                started: stat.started,
            })
        })
        .collect()
    }

    pub(super) fn signal(self, signal: Signal) -> Result<(), String> {
        let pid = Pid::from_raw(self.pid).ok_or("no process has this ID")?;
        kill_process(pid, signal).map_err(|error| format!("process {}: {error}", self.pid))
    }

    /// Sends a signal to it and its child processes. Stopped first, it starts no new ones.
    pub(super) fn signal_all(self, signal: Signal) -> Result<(), String> {
        if signal != Signal::CONT {
            self.signal(Signal::STOP)?;
        }
        let children = self.children();
        for child in &children {
            let _ = child.signal(signal); // it may have ended
        }
        self.signal(signal)?;
        if signal != Signal::KILL {
            return Ok(());
        }
        // A child that waits for the disk dies later, and the next server would find it using the data.
        match [vec![self], children].concat().iter().find(|it| !it.ends()) {
            Some(process) => Err(format!("process {} did not die", process.pid)),
            None => Ok(()),
        }
    }

    /// Waits for its end; false after 15 s.
    pub(super) fn ends(self) -> bool {
        within(Duration::from_secs(15), || !self.runs())
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} {}", self.pid, self.started)
    }
}

/// What `/proc` says of a process.
struct Stat {
    parent: i32,
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `None` if it has ended, and its parent has not waited for it yet. While other threads of it are ending, its
    /// ports and files are still open.
    fn read(line: &str) -> Option<Self> {
        let fields: Vec<_> = line.rsplit_once(") ")?.1.split(' ').collect();
        let (state, threads) = (*fields.first()?, *fields.get(17)?);
        if state == "Z" && threads == "1" {
            return None;
        }
        Some(Self {
            parent: fields[1].parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

/// True as soon as the condition holds; false if it does not within this time. Another program wakes no thread of this
/// one, so it is asked every 20 ms.
pub(super) fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = now() + limit;
    while !holds() {
        if now() > end {
            return false;
        }
        let pause = Duration::from_millis(20).try_into().expect("20 ms");
        let _ = rustix::thread::nanosleep(&pause); // a signal may end it early
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{Process, Stat};

    #[test]
    fn a_name_may_contain_what_separates_the_fields() {
        let stat = Stat::read(&line("S", 1)).expect("it runs");
        assert_eq!((stat.parent, stat.started), (5, 4711));
    }

    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        assert!(Stat::read(&line("Z", 2)).is_some());
        assert!(Stat::read(&line("Z", 1)).is_none());
    }

    fn line(state: &str, threads: u8) -> String {
        format!("7 (a) b (c) {state} 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 4711 9 9")
    }

    #[test]
    fn another_process_with_the_same_id_is_not_taken_for_it() {
        let own = Process::of(std::process::id()).expect("it runs");
        assert_eq!(Process::from_line(&own.to_string()), Some(own));
        let later = Process {
            started: own.started + 1,
            ..own
        };
        assert_eq!(Process::from_line(&later.to_string()), None);
    }
}

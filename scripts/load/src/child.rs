//! Servers as child processes: started on a free port, and stopped by their own process ID however
//! this program ends.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::CpuSet;
use tokio::time::Instant;

use crate::{Failure, cores};

const START_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A server that is stopped on drop.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its name in the reports.
    pub(crate) name: &'static str,
    /// Its listening address.
    pub(crate) address: SocketAddr,
    process: Process,
}

impl Server {
    /// Starts a program, on the given cores if any, and waits for an output line with its listening address after
    /// `label`.
    pub(crate) fn start(
        name: &'static str,
        label: &str,
        command: &mut Command,
        cores: Option<&CpuSet>,
    ) -> Result<Self, Failure> {
        let mut process = Process::start(command, cores).map_err(|error| {
            format!(
                "{name}: cannot start {}: {error}",
                command.get_program().display()
            )
        })?;
        let began = Instant::now();
        loop {
            match process
                .lines
                .recv_timeout(START_LIMIT.saturating_sub(began.elapsed()))
            {
                Ok(line) => {
                    let address = line.trim_start().strip_prefix(label).map(str::trim);
                    if let Some(address) = address.and_then(|address| address.parse().ok()) {
                        return Ok(Self {
                            name,
                            address,
                            process,
                        });
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("{name}: does not say where it listens").into());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = process.child.wait()?;
                    return Err(format!("{name}: ended instead of serving: {status}").into());
                }
            }
        }
    }

    /// Starts a program that does not print its address, and waits until it listens at `address`.
    pub(crate) fn start_at(
        name: &'static str,
        address: SocketAddr,
        command: &mut Command,
    ) -> Result<Self, Failure> {
        let mut process = Process::start(command, None)
            .map_err(|error| format!("{name}: cannot start: {error}"))?;
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = process.child.try_wait()? {
                return Err(format!("{name}: ended instead of serving: {status}").into());
            }
            if began.elapsed() > START_LIMIT {
                return Err(format!("{name}: does not listen at {address}").into());
            }
            std::thread::yield_now();
        }
        Ok(Self {
            name,
            address,
            process,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Asks the server to stop and waits until it has ended. Returns the time that took.
    pub(crate) fn stop(mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        kill_process(Pid::from_child(&self.process.child), Signal::TERM)?;
        let status = self.process.child.wait()?;
        match status.success() {
            true => Ok(began.elapsed()),
            false => Err(format!("{}: stopped with {status}", self.name).into()),
        }
    }
}

#[derive(Debug)]
struct Process {
    child: std::process::Child,
    /// Its output; disconnected when the process has ended.
    lines: Receiver<String>,
}

impl Process {
    fn start(command: &mut Command, cores: Option<&CpuSet>) -> std::io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = match cores {
            Some(cores) => cores::on(cores, || command.spawn())?,
            None => command.spawn()?,
        };
        let output = child.stdout.take().expect("stdout is piped");
        let (send, lines) = channel();
        // Reads to the end, so that the child never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        Ok(Self { child, lines })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let began = Instant::now();
        while self
            .lines
            .recv_timeout(STOP_LIMIT.saturating_sub(began.elapsed()))
            .is_ok()
        {}
        // Too late for grace; harmless if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_server_is_found_by_its_output_and_stops_on_drop() {
        let script = "echo hello; echo '  HTTP        127.0.0.1:8088'; exec sleep 1000";
        let server = Server::start("sleeper", "HTTP", &mut shell(script), None).unwrap();
        assert_eq!(server.address, "127.0.0.1:8088".parse().unwrap());
        let stat = format!("/proc/{}/stat", server.pid());
        assert!(std::fs::exists(&stat).unwrap());
        drop(server);
        assert!(!std::fs::exists(&stat).unwrap());
    }

    #[test]
    fn a_program_that_ends_early_is_an_error() {
        let error = Server::start("brief", "HTTP", &mut shell("exit 64"), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "brief: ended instead of serving: exit status: 64"
        );
        let error = Server::start("none", "HTTP", &mut Command::new("/no/such"), None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("none: cannot start /no/such: "),
            "{error}"
        );
    }
}

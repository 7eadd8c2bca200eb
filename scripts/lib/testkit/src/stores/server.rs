//! One server in its folder: its process, its start and its end.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::Signal;

use super::PATIENCE;
use super::kind::Kind;
use super::process::{Process, within};
use super::tools::{create_folder, into_log, read, write};

/// A server, started or not.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The folder of all servers.
    pub(super) folder: PathBuf,
    /// Its own folder.
    pub(super) home: PathBuf,
    pub(super) password: String,
    pub(super) port: u16,
    pub(super) second_port: u16,
    /// The port of the server that it follows.
    pub(super) source: Option<u16>,
}

impl Server {
    /// A server with the password and the ports that it had before.
    pub(super) fn at(folder: &Path, name: &str) -> Result<Self, String> {
        let home = folder.join(name);
        let ports = |of: &Path| {
            let line = read(&of.join("ready")).ok()?;
            let (port, second_port) = line.split_once(' ')?;
            Some((port.parse().ok()?, second_port.parse().ok()?))
        };
        let (port, second_port) = ports(&home).unwrap_or_default();
        let source = read(&home.join("source")).ok();
        Ok(Self {
            name: name.to_owned(),
            kind: Kind::of(name).ok_or_else(|| format!("there is no store {name}"))?,
            folder: folder.to_owned(),
            password: read(&home.join("password")).unwrap_or_default(),
            port,
            second_port,
            source: source.and_then(|it| Some(ports(&folder.join(it))?.0)),
            home,
        })
    }

    /// A server that has been started once.
    pub(super) fn started(folder: &Path, name: &str) -> Result<Self, String> {
        let server = Self::at(folder, name)?;
        match server.was_ready() {
            true => Ok(server),
            false => Err(format!("there is no {name} in {}", folder.display())),
        }
    }

    /// True if its data is complete.
    pub(super) fn was_ready(&self) -> bool {
        self.port != 0
    }

    pub(super) fn process(&self) -> Option<Process> {
        Process::from_line(&read(&self.home.join("pid")).ok()?)
    }

    pub(super) fn running(&self) -> Result<Process, String> {
        let gone = || format!("{} does not run in {}", self.name, self.folder.display());
        self.process().ok_or_else(gone)
    }

    pub(super) fn log(&self) -> Result<File, String> {
        let path = self.home.join("log");
        let file = File::options().append(true).create(true).open(&path);
        file.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Starts it and waits until it answers. It gets these ports, unless it has run before; `under` are words before
    /// the command of postgres.
    pub(super) fn start(&mut self, ports: [u16; 2], under: &[String]) -> Result<(), String> {
        if self.process().is_some() {
            return Ok(());
        }
        create_folder(&self.home)?;
        if self.password.is_empty() {
            self.password = match self.kind {
                Kind::Pgbouncer => Self::started(&self.folder, "postgres")?.password,
                _ => password()?,
            };
            write(&self.home.join("password"), &self.password)?;
        }
        let data_is_complete = self.was_ready();
        if !data_is_complete {
            [self.port, self.second_port] = ports;
        }
        write(&self.home.join("log"), "")?;
        let url = self.launch(data_is_complete, under)?;
        let ready = within(PATIENCE, || self.answers() || self.process().is_none());
        if !ready || self.process().is_none() {
            return Err("it does not answer".to_owned());
        }
        write(&self.home.join("url"), &format!("{url}\n"))?;
        let ports = format!("{} {}\n", self.port, self.second_port);
        write(&self.home.join("ready"), &ports)
    }

    /// Starts a command that outlives this program, and records its process.
    pub(super) fn daemon(&self, command: &mut Command) -> Result<(), String> {
        let failed = |error| format!("{}: {error}", self.name);
        // Ctrl-C does not reach another group.
        let command = into_log(command.stdin(Stdio::null()).process_group(0), &self.log()?)?;
        let mut child = command.spawn().map_err(failed)?;
        let process = Process::of(child.id());
        thread::spawn(move || child.wait());
        let process = process.ok_or("it ended at once")?;
        write(&self.home.join("pid"), &format!("{process}\n"))
    }

    pub(super) fn stop(&self) -> Result<(), String> {
        let Some(process) = self.process() else {
            return Ok(());
        };
        let signal = match self.kind {
            Kind::Postgres => Signal::INT, // does not wait for clients
            _ => Signal::TERM,
        };
        process.signal_all(Signal::CONT)?;
        let _ = process.signal(signal); // it may have ended
        match process.ends() {
            true => Ok(()),
            false => process.signal_all(Signal::KILL),
        }
    }

    /// The last lines of its log.
    pub(super) fn end_of_log(&self) -> String {
        let log = fs::read(self.home.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Waits until it has everything that its source has now.
    pub(super) fn catch_up(&self) -> Result<(), String> {
        let state = self.state_of_source()?;
        match within(PATIENCE, || self.has(&state)) {
            true => Ok(()),
            false => Err(format!("{} does not catch up", self.name)),
        }
    }

    /// The port of its source.
    pub(super) fn source(&self) -> Result<u16, String> {
        let follows_none = || format!("{} follows no server", self.name);
        self.source.ok_or_else(follows_none)
    }
}

fn password() -> Result<String, String> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut bytes));
    read.map_err(|error| error.to_string())?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).concat())
}

//! Programs as child processes. Each is signalled and ended by its own process ID, and none outlives
//! its test.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

/// Flags of Vesta's servers: listen on free ports.
pub const FREE_PORTS: [&str; 6] = [
    "--http-listen",
    "127.0.0.1:0",
    "--grpc-listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
];

/// A running program. It is killed on drop.
#[derive(Debug)]
pub struct Program {
    pub(crate) child: Child,
    /// `None` if another thread reads it.
    pub(crate) stdout: Option<BufReader<ChildStdout>>,
    /// `None` if it is not piped, another thread reads it, or the log is ignored.
    pub(crate) stderr: Option<BufReader<ChildStderr>>,
    said: String,
    logged: String,
}

impl Program {
    /// Starts a command without input, with its output piped.
    ///
    /// # Panics
    /// If the command cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::null()).stderr(Stdio::piped()))
    }

    /// Starts a command with its output piped.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = child.stderr.take().map(BufReader::new);
        Self {
            child,
            stdout,
            stderr,
            said: String::new(),
            logged: String::new(),
        }
    }

    /// Starts a server of Vesta and reads its output until it is ready.
    ///
    /// # Errors
    /// The output of a program that ended first.
    pub fn serve(command: &mut Command) -> Result<Self, Output> {
        let mut program = Self::start(command);
        if program.is_ready() {
            Ok(program)
        } else {
            Err(program.end())
        }
    }

    /// Reads the output of a server of Vesta until it is ready; false if it ended first.
    ///
    /// # Panics
    /// If another thread reads it.
    pub fn is_ready(&mut self) -> bool {
        let stdout = self.stdout.as_mut().expect("it is read here");
        // The last start-up line names the status page.
        read_until(stdout, &mut self.said, |line| line.ends_with("/status"))
    }

    /// Reads its log up to a line that contains `part`.
    ///
    /// # Panics
    /// If the program ends first.
    pub fn logs(&mut self, part: &str) -> &str {
        let stderr = self.stderr.as_mut().expect("it is read");
        let found = read_until(stderr, &mut self.logged, |line| line.contains(part));
        assert!(found, "it ended without {part}: {}", self.logged);
        self.logged.lines().last().expect("the line")
    }

    /// Its output so far.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }

    /// The text after a label in its start-up lines.
    ///
    /// # Panics
    /// If the label is missing.
    #[must_use]
    pub fn fact(&self, label: &str) -> &str {
        self.find(label)
            .unwrap_or_else(|| panic!("no {label} in {}", self.said))
    }

    fn find(&self, label: &str) -> Option<&str> {
        self.said.lines().find_map(|line| {
            line.strip_prefix("  ")?
                .strip_prefix(label)?
                .strip_prefix(' ')
                .map(str::trim)
        })
    }

    /// A value in its log; a program that waits for its store logs the addresses of its listeners.
    fn logged(&self, name: &str) -> Option<&str> {
        let value = self.logged.split(name).nth(1)?;
        let value = value.split_whitespace().next()?;
        Some(value.trim_matches('"'))
    }

    /// The address of its public listener.
    ///
    /// # Panics
    /// If the program has none.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let found = self.find("HTTP").or_else(|| self.find("gRPC"));
        let found = found.or_else(|| self.logged(" listen="));
        found.expect("a listener").parse().expect("an address")
    }

    /// The address of its gRPC listener beside an HTTP one, if it has both.
    #[must_use]
    pub fn grpc(&self) -> Option<SocketAddr> {
        self.find("HTTP")
            .and_then(|_| self.find("gRPC")?.parse().ok())
    }

    /// Its machine ID at the start.
    ///
    /// # Panics
    /// If the start-up lines do not name it.
    #[must_use]
    pub fn machine(&self) -> u64 {
        let text = self.fact("machine ID");
        text.split(' ')
            .next()
            .and_then(|id| id.parse().ok())
            .expect("a machine ID")
    }

    /// The first ID that it made.
    ///
    /// # Panics
    /// If the start-up lines do not show it.
    #[must_use]
    pub fn first_id(&self) -> u64 {
        self.fact("first ID").parse().expect("an ID")
    }

    /// The address of its admin listener.
    ///
    /// # Panics
    /// If neither the start-up lines nor the log name it.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        let url = self.find("admin").or_else(|| self.logged("admin_listen="));
        let place = url.expect("a listener").trim_end_matches('/');
        let place = place.rsplit('/').next().expect("a place");
        place.parse().expect("an address")
    }

    /// Status and body of a page of its admin listener.
    ///
    /// # Panics
    /// If the listener does not answer.
    #[must_use]
    pub fn get(&self, path: &str) -> (u16, String) {
        get(&self.admin().to_string(), path)
    }

    /// Its process ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name for `kill`: `-TERM`.
    ///
    /// # Panics
    /// If the program is gone.
    pub fn signal(&self, name: &str) {
        assert!(signal(self.id(), name), "it is there");
    }

    /// SIGSTOP.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Closes the pipe of its log, which nothing reads any more.
    pub fn ignore_log(&mut self) {
        self.stderr = None;
    }

    /// Kills it as a crash would; returns the output until then.
    pub fn kill(mut self) -> Output {
        self.child.kill().expect("it runs");
        self.end()
    }

    /// Asks it to stop and waits; returns the exit code and the whole log.
    #[must_use]
    pub fn stop(self) -> (Option<i32>, String) {
        self.signal("-TERM");
        self.wait()
    }

    /// Waits until it ends; returns the exit code and the whole log.
    #[must_use]
    pub fn wait(self) -> (Option<i32>, String) {
        let output = self.end();
        (
            output.status.code(),
            String::from_utf8(output.stderr).expect("text"),
        )
    }

    /// Reads output and log to their end. The program has then ended, and keeps its process ID
    /// until [`end`](Self::end).
    ///
    /// # Panics
    /// If they are not text.
    pub fn drain(&mut self) {
        if let Some(stderr) = &mut self.stderr {
            stderr.read_to_string(&mut self.logged).expect("text");
        }
        if let Some(stdout) = &mut self.stdout {
            stdout.read_to_string(&mut self.said).expect("text");
        }
    }

    /// Waits until it ends; returns its whole output and log.
    ///
    /// # Panics
    /// If they are not text.
    #[must_use]
    pub fn end(mut self) -> Output {
        self.drain();
        let status = self.child.wait().expect("an end");
        let [stdout, stderr] =
            [&mut self.said, &mut self.logged].map(|said| std::mem::take(said).into());
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process that has not been waited for, so its process ID is still its own: by its name for `kill`,
/// `-TERM`. False if it may not be signalled.
///
/// # Panics
/// If there is no `kill`.
#[must_use]
pub fn signal(pid: u32, name: &str) -> bool {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    sent.expect("kill runs").success()
}

/// Status and body of a page, by HTTP/1.1.
///
/// # Panics
/// If the server does not answer.
#[must_use]
pub fn get(address: &str, path: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(address).expect("a listener");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .expect("a status");
    (status, body.to_owned())
}

/// Reads whole lines up to one that satisfies `is_last`; false if the input ends first.
fn read_until(from: &mut impl BufRead, into: &mut String, is_last: impl Fn(&str) -> bool) -> bool {
    loop {
        let start = into.len();
        match from.read_line(into) {
            Ok(0) | Err(_) => return false,
            Ok(_) if is_last(into[start..].trim_end()) => return true,
            Ok(_) => {}
        }
    }
}

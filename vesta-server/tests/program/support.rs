//! The program as a child process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

pub(crate) const FREE_PORTS: [&str; 4] =
    ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];

/// The program with an empty environment, in a folder of its own.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta-server"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

pub(crate) fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    program(folder).args(args).envs(env.iter().copied()).output().expect("the program runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A running program, ended with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) lines: Vec<String>,
}

impl Running {
    /// Starts the program and reads its start-up lines, the last of which names the status page.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        Self::spawn(program(folder).args(FREE_PORTS).args(args))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        let mut running = Self { child, lines: Vec::new() };
        let stdout = BufReader::new(running.child.stdout.take().expect("its output"));
        for line in stdout.lines() {
            running.lines.push(line.expect("text"));
            if running.lines.last().is_some_and(|line| line.ends_with("/status")) {
                return running;
            }
        }
        let lines = running.lines.clone();
        panic!("it ended early: {lines:?} {:?}", running.end());
    }

    /// The text after a label.
    pub(crate) fn fact(&self, label: &str) -> &str {
        let found = self.lines.iter().find_map(|line| {
            line.strip_prefix("  ")?.strip_prefix(label)?.strip_prefix(' ').map(str::trim)
        });
        found.unwrap_or_else(|| panic!("no {label} in {:#?}", self.lines))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.fact("gRPC").parse().expect("an address")
    }

    pub(crate) fn machine(&self) -> u64 {
        let text = self.fact("machine ID");
        text.split(' ').next().and_then(|id| id.parse().ok()).expect("a machine ID")
    }

    pub(crate) fn first_id(&self) -> u64 {
        self.fact("first ID").parse().expect("an ID")
    }

    /// Status and body of a page of the admin listener.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let address = self.fact("admin").strip_prefix("http://").expect("a URL").trim_matches('/');
        get(address, path)
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for the end: the exit code and what was logged.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let stderr = self.child.stderr.take();
        let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut said));
        (self.child.wait().expect("an end").code(), said)
    }
}

/// Status and body of a page.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(address).expect("the admin listener");
    let request = format!("GET {path} HTTP/1.1\r\nhost: vesta\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, body.to_owned())
}

pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// A program that waits for its store, ended with the test.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    pub(crate) admin: String,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Waiting {
    /// Starts the program and reads its log until it says where its admin listener is.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = program(folder);
        command.args(FREE_PORTS).arg("--wait-for-store").args(args);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("its log"));
        let mut waiting = Self { child, admin: String::new(), stderr, said: String::new() };
        let line = waiting.until("admin_listen=");
        waiting.admin = line.split("admin_listen=").nth(1).expect("it is there").trim().to_owned();
        waiting
    }

    /// Reads the log up to a line with this in it.
    pub(crate) fn until(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).expect("text");
            assert!(read > 0, "it ended without {part}: {}", self.said);
            self.said += &line;
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        get(&self.admin, path)
    }

    /// Asks it to stop: its exit code and all that it said.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        signal(&self.child, "-TERM");
        let mut said = std::mem::take(&mut self.said);
        self.stderr.read_to_string(&mut said).expect("text");
        let stdout = self.child.stdout.take();
        let _ = stdout.map(|mut stdout| stdout.read_to_string(&mut said));
        (self.child.wait().expect("an end").code(), said)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

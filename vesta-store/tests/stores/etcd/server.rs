//! A dedicated server, to be killed or to have users.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::raw;

/// A process `etcd` on loopback. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    ports: [u16; 2],
    options: &'static [&'static str],
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with more etcd options; a certificate enables TLS.
    pub(crate) fn start_with(options: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        // Another program may take a port before etcd does.
        for _ in 0..10 {
            let ports = free_ports();
            if let Some(child) = run(folder.path(), ports, options) {
                return Self {
                    child,
                    folder,
                    ports,
                    options,
                };
            }
        }
        panic!("etcd does not start");
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    pub(crate) fn raw(&self) -> raw::Etcd {
        raw::Etcd::connect(&self.address())
    }

    /// Ends it like a crash.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Restarts it with its data after a kill.
    pub(crate) fn restart(&mut self) {
        self.child = run(self.folder.path(), self.ports, self.options).expect("it starts again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may be dead already
        let _ = self.child.wait();
    }
}

fn free_ports() -> [u16; 2] {
    let listeners = [(); 2]
        .map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port of loopback"));
    listeners.map(|listener| listener.local_addr().expect("its port").port())
}

/// Returns once it answers; `None` if it exited before.
fn run(folder: &Path, [clients, peers]: [u16; 2], options: &[&str]) -> Option<Child> {
    let tls = if options.contains(&"--cert-file") {
        "s"
    } else {
        ""
    };
    let clients = format!("http{tls}://127.0.0.1:{clients}");
    let peers = format!("http://127.0.0.1:{peers}");
    let mut command = Command::new("etcd");
    command
        .args([
            "--listen-client-urls",
            &clients,
            "--advertise-client-urls",
            &clients,
        ])
        .args([
            "--listen-peer-urls",
            &peers,
            "--initial-advertise-peer-urls",
            &peers,
        ])
        .args(["--initial-cluster", &format!("default={peers}")])
        .args(options)
        .arg("--data-dir")
        .arg(folder.join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .expect("the program `etcd` is installed and in PATH");
    let mut words = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while words.read_line(&mut line).expect("text") > 0 {
        if line.contains("ready to serve client requests") {
            // It blocks if its output is no longer read.
            std::thread::spawn(move || words.read_to_end(&mut Vec::new()));
            return Some(child);
        }
        line.clear();
    }
    child.wait().expect("it ends");
    None
}

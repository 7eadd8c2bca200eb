//! A dedicated server, to be killed or to have users.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use vesta_testkit::fleet::{Process, free_ports};

use super::raw;

/// A process `etcd` on loopback. Dropping it kills it.
pub(crate) struct Server {
    process: Process,
    folder: TempDir,
    ports: Vec<u16>,
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
            let ports = free_ports(2);
            if let Some(process) = run(folder.path(), &ports, options) {
                return Self {
                    process,
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
        self.process.kill();
    }

    /// Restarts it with its data after a kill.
    pub(crate) fn restart(&mut self) {
        self.process = run(self.folder.path(), &self.ports, self.options).expect("it starts again");
    }
}

/// Returns once it answers; `None` if it exited before.
fn run(folder: &Path, ports: &[u16], options: &[&str]) -> Option<Process> {
    let tls = if options.contains(&"--cert-file") {
        "s"
    } else {
        ""
    };
    let clients = format!("http{tls}://127.0.0.1:{}", ports[0]);
    let peers = format!("http://127.0.0.1:{}", ports[1]);
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
        .stderr(Stdio::piped());
    let mut process = Process::start(&mut command);
    process
        .finds("ready to serve client requests")
        .then_some(process)
}

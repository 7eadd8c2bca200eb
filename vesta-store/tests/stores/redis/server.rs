//! A Redis server of a test's own.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, ToRedisArgs};
use tempfile::TempDir;
use vesta_service::lease::KvStore;
use vesta_store::Options;
use vesta_testkit::fleet::{Process, free_ports};

/// Settings with which every acknowledged change is durable.
pub(crate) const DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

/// Stopped on drop; its port is never reused by another server.
pub(crate) struct Server {
    pub(crate) process: Process,
    port: u16,
    folder: TempDir,
    settings: Vec<String>,
}

impl Server {
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let settings: Vec<_> = settings
            .iter()
            .map(|setting| (*setting).to_owned())
            .collect();
        for _ in 0..10 {
            let port = free_ports(1)[0];
            if let Some(process) = spawn(port, &folder, &settings) {
                return Self {
                    process,
                    port,
                    folder,
                    settings,
                };
            }
        }
        panic!("no redis-server could be started");
    }

    /// Kills it and restarts it with its data on disk.
    pub(crate) fn restart(&mut self) {
        self.process.kill();
        let again = spawn(self.port, &self.folder, &self.settings);
        self.process = again.expect("its port is still free");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn store(&self) -> Arc<dyn KvStore> {
        opened(&self.url(), &Options::default())
    }

    /// A store with a short timeout.
    pub(crate) fn hasty_store(&self) -> Arc<dyn KvStore> {
        opened(&self.url(), &hasty())
    }

    /// Sends a command directly, without the store.
    pub(crate) fn command<T: FromRedisValue>(&self, words: impl ToRedisArgs) -> T {
        command(&self.url(), words)
    }
}

pub(crate) fn opened(url: &str, options: &Options) -> Arc<dyn KvStore> {
    vesta_store::open_with(&url.parse().unwrap(), options).expect("a URL")
}

pub(crate) fn hasty() -> Options {
    Options {
        request_timeout: Some(Duration::from_millis(200)),
        ..Options::default()
    }
}

pub(crate) fn command<T: FromRedisValue>(url: &str, words: impl ToRedisArgs) -> T {
    let client = redis::Client::open(url).expect("a URL");
    let mut connection = client.get_connection().expect("Redis answers");
    let mut command = redis::Cmd::new();
    command
        .arg(words)
        .query(&mut connection)
        .expect("Redis does it")
}

/// `None` if it exits at once because the port is in use.
fn spawn(port: u16, folder: &TempDir, settings: &[String]) -> Option<Process> {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--dir"]).arg(folder.path());
    let mut process = Process::start(command.args(settings).stderr(Stdio::null()));
    process
        .finds("eady to accept connections")
        .then_some(process)
}

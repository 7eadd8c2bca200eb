//! A Redis server of a test's own.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, ToRedisArgs};
use tempfile::TempDir;
use vesta_service::lease::KvStore;
use vesta_store::Options;

/// Settings with which every acknowledged change is durable.
pub(crate) const DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

/// Stopped on drop; its port is never reused by another server.
pub(crate) struct Server {
    child: Child,
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
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = free.local_addr().expect("it is bound").port();
            drop(free);
            if let Some(child) = spawn(port, &folder, &settings) {
                return Self {
                    child,
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
        self.kill();
        let again = spawn(self.port, &self.folder, &self.settings);
        self.child = again.expect("its port is still free");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends `STOP` or `CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.expect("kill is installed").success());
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
fn spawn(port: u16, folder: &TempDir, settings: &[String]) -> Option<Child> {
    let mut child = Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
        ])
        .arg("--dir")
        .arg(folder.path())
        .args(settings)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let mut log = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    while log.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.contains("eady to accept connections") {
            // A full pipe would block it.
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return Some(child);
        }
        line.clear();
    }
    child.wait().expect("it has ended");
    None
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have exited
        let _ = self.child.wait();
    }
}

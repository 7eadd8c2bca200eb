//! A server of one's own, that may be stopped.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::stores::Store;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/stores.sh");

/// A server that `scripts/stores.sh` started. Dropping it stops it.
pub(crate) struct Server {
    folder: TempDir,
    name: &'static str,
}

impl Server {
    pub(crate) fn start(store: &Store) -> Self {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("own.");
        // Where the test command looks for what is left behind.
        let folder = match std::env::var_os("VESTA_TEST_STORES") {
            Some(stores) => builder.tempdir_in(stores),
            None => builder.tempdir(),
        };
        let server = Self { folder: folder.expect("a folder for a server"), name: store.name };
        server.run("start");
        server
    }

    /// One with an asynchronous replica.
    pub(crate) fn with_replica(store: &Store) -> Self {
        let server = Self::start(store);
        server.run("replica");
        server
    }

    fn run(&self, command: &str) {
        self.run_on(command, self.name);
    }

    fn run_on(&self, command: &str, name: &str) {
        let done = script(command, self.folder.path(), &[name]);
        assert!(done.0, "stores.sh {command} {name}: {}", done.1);
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(self.name)
    }

    pub(crate) fn replica_url(&self) -> String {
        self.url_of(&self.replica())
    }

    fn replica(&self) -> String {
        format!("{}-replica", self.name)
    }

    fn url_of(&self, name: &str) -> String {
        let (_, lines) = script("env", self.folder.path(), &[]);
        let start = format!("export VESTA_TEST_{}='", name.to_uppercase().replace('-', "_"));
        let url = lines.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('\''));
        url.unwrap_or_else(|| panic!("no URL of {name} in {lines}")).to_owned()
    }

    /// From now on the replica gets nothing more; what was there before it has.
    pub(crate) fn lag(&self) {
        self.run("lag");
    }

    /// The server dies, and its replica takes over.
    pub(crate) fn fail_over(&self) {
        self.kill();
        self.run("promote");
    }

    /// One whose tables another server takes over, which can be written, too: a replica that is not
    /// read-only, or a subscriber.
    pub(crate) fn replicate_writable(&self) {
        match self.name {
            "mysql" => {
                self.run("replica");
                self.sql_on_replica("SET GLOBAL read_only = 0");
            }
            _ => self.run("subscriber"),
        }
    }

    /// Promotes the replica.
    pub(crate) fn promote(&self) {
        self.run("promote");
    }

    /// What the administrator gets for a text.
    pub(crate) fn sql(&self, text: &str) {
        self.sql_on(self.name, text);
    }

    pub(crate) fn sql_on_replica(&self, text: &str) {
        self.sql_on(&self.replica(), text);
    }

    fn sql_on(&self, name: &str, text: &str) {
        let done = script("sql", self.folder.path(), &[name, text]);
        assert!(done.0, "{text} on {name}: {}", done.1);
    }

    /// The URL of a pooler before it, which is started.
    pub(crate) fn pooler(&self) -> String {
        self.run_on("start", "pgbouncer");
        self.url_of("pgbouncer")
    }

    /// Kills the replica and starts it again.
    pub(crate) fn restart_replica(&self) {
        for command in ["kill", "start"] {
            self.run_on(command, &self.replica());
        }
    }

    /// SIGSTOP: its connections stay.
    pub(crate) fn pause(&self) {
        self.run("pause");
    }

    pub(crate) fn resume(&self) {
        self.run("resume");
    }

    /// SIGKILL.
    pub(crate) fn kill(&self) {
        self.run("kill");
    }

    /// Starts it with what it has on disk, and waits until it answers.
    pub(crate) fn start_again(&self) {
        self.run("start");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let (stopped, said) = script("stop", self.folder.path(), &[]);
        if !stopped {
            eprintln!("{} in {} was not stopped: {said}", self.name, self.folder.path().display());
        }
    }
}

/// Its success, and its output.
fn script(command: &str, folder: &Path, stores: &[&str]) -> (bool, String) {
    let done = Command::new(SCRIPT)
        .arg(command)
        .arg(folder)
        .args(stores)
        .stdin(Stdio::null())
        .output()
        .expect("scripts/stores.sh runs");
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&said).into_owned())
}

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

    fn run(&self, command: &str) {
        let done = script(command, self.folder.path(), &[self.name]);
        assert!(done.0, "stores.sh {command} {}: {}", self.name, done.1);
    }

    pub(crate) fn url(&self) -> String {
        let (_, lines) = script("env", self.folder.path(), &[]);
        let start = format!("export VESTA_TEST_{}='", self.name.to_uppercase());
        let url = lines.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('\''));
        url.unwrap_or_else(|| panic!("no URL of {} in {lines}", self.name)).to_owned()
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

//! The servers of stores: those named by the environment, and private ones of a test.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../stores.sh");

fn variable(store: &str) -> String {
    format!("VESTA_TEST_{}", store.to_uppercase().replace('-', "_"))
}

/// The URL of the server of a store that all tests share: `mysql`.
///
/// # Panics
/// If none is set.
#[must_use]
pub fn store_url(store: &str) -> String {
    let variable = variable(store);
    std::env::var(&variable).unwrap_or_else(|_| {
        panic!("set {variable} to the URL of a throw-away server, or run scripts/test.sh")
    })
}

/// Private servers of a test below one folder, from `scripts/lib/stores.sh`. They stop on drop.
#[derive(Debug)]
pub struct StoreServers(TempDir);

impl StoreServers {
    /// Starts the servers of these stores.
    ///
    /// # Panics
    /// If one does not start.
    #[must_use]
    pub fn start(stores: &[&str]) -> Self {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("own.");
        // The folder in which the test command looks for leftovers.
        let folder = match std::env::var_os("VESTA_TEST_STORES") {
            Some(stores) => builder.tempdir_in(stores),
            None => builder.tempdir(),
        };
        let servers = Self(folder.expect("a folder for servers"));
        if !stores.is_empty() {
            servers.run("start", stores);
        }
        servers
    }

    /// True if the environment says that this store's server is present.
    #[must_use]
    pub fn is_present(store: &str) -> bool {
        std::env::var_os(variable(store)).is_some()
    }

    /// The folder; a separate thread may use it with [`run_in`](Self::run_in).
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Runs a command of the script; returns its output.
    ///
    /// # Panics
    /// If the command fails.
    pub fn run(&self, command: &str, args: &[&str]) -> String {
        Self::run_in(self.folder(), command, args)
            .unwrap_or_else(|said| panic!("stores.sh {command} {args:?}: {said}"))
    }

    /// The output of a command of the script.
    ///
    /// # Errors
    /// The output of a failed command.
    ///
    /// # Panics
    /// If the script is missing.
    pub fn run_in(folder: &Path, command: &str, args: &[&str]) -> Result<String, String> {
        let mut script = Command::new(SCRIPT);
        script
            .arg(command)
            .arg(folder)
            .args(args)
            .stdin(Stdio::null());
        let done = script.output().expect("scripts/lib/stores.sh runs");
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        if done.status.success() {
            Ok(said)
        } else {
            Err(said)
        }
    }

    /// The URL of a server: `mysql`, `mysql-replica`.
    ///
    /// # Panics
    /// If the server was not started.
    #[must_use]
    pub fn url(folder: &Path, name: &str) -> String {
        let lines = Self::run_in(folder, "env", &[]).unwrap_or_else(|said| panic!("{said}"));
        let start = format!("export {}='", variable(name));
        let url = lines
            .lines()
            .find_map(|line| line.strip_prefix(&start)?.strip_suffix('\''));
        url.unwrap_or_else(|| panic!("no URL of {name} in {lines}"))
            .to_owned()
    }
}

impl Drop for StoreServers {
    fn drop(&mut self) {
        if let Err(said) = Self::run_in(self.folder(), "stop", &[]) {
            eprintln!("{} was not stopped: {said}", self.folder().display());
        }
    }
}

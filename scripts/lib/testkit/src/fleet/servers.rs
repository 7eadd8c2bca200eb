//! The servers of stores: those named by the environment, and private ones of a test.

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;

use crate::stores::{self, carry_out, variable};

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

/// Private servers of a test below one folder. They stop on drop.
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

    /// Starts its postgres under a command.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_postgres_under(&self, command: &[String]) {
        stores::start(self.folder(), &["postgres"], command)
            .unwrap_or_else(|said| panic!("{said}"));
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

    /// The output of a command of [`USAGE`](stores::USAGE).
    ///
    /// # Panics
    /// If the command fails.
    pub fn run(&self, command: &str, args: &[&str]) -> String {
        Self::run_in(self.folder(), command, args)
            .unwrap_or_else(|said| panic!("{command} {args:?}: {said}"))
    }

    /// The output of a command of [`USAGE`](stores::USAGE).
    ///
    /// # Errors
    /// The sentence of a failed command.
    ///
    /// # Panics
    /// If the folder's name is no text.
    pub fn run_in(folder: &Path, command: &str, args: &[&str]) -> Result<String, String> {
        let folder = folder.to_str().expect("a temporary folder");
        carry_out(&[&[command, folder], args].concat())
    }

    /// The address in the URL of a server; `None` if the store is a file.
    #[must_use]
    pub fn address(url: &str) -> Option<SocketAddr> {
        let at = url.find("127.0.0.1:")?;
        url[at..].split(['/', '?']).next()?.parse().ok()
    }

    /// The URL of a server: `mysql`, `mysql-replica`.
    ///
    /// # Panics
    /// If the server was not started.
    #[must_use]
    pub fn url(folder: &Path, name: &str) -> String {
        stores::url(folder, name).unwrap_or_else(|| panic!("{name} was not started"))
    }
}

impl Drop for StoreServers {
    fn drop(&mut self) {
        if let Err(said) = Self::run_in(self.folder(), "stop", &[]) {
            eprintln!("{} was not stopped: {said}", self.folder().display());
        }
    }
}

//! A dedicated server, which may be stopped.

use vesta_testkit::fleet::StoreServers;

use crate::stores::Store;

/// A server started by `vesta_testkit::stores`. Dropping it stops it.
pub(crate) struct Server {
    servers: StoreServers,
    name: &'static str,
}

impl Server {
    pub(crate) fn start(store: &Store) -> Self {
        Self {
            servers: StoreServers::start(&[store.name]),
            name: store.name,
        }
    }

    /// A server with an asynchronous replica.
    pub(crate) fn with_replica(store: &Store) -> Self {
        let server = Self::start(store);
        server.run("replica");
        server
    }

    /// A command of `vesta_testkit::stores`: `kill`, `start` with its data, `pause`, `resume`, `lag`, `promote`.
    pub(crate) fn run(&self, command: &str) {
        self.run_on(command, self.name);
    }

    fn run_on(&self, command: &str, name: &str) {
        self.servers.run(command, &[name]);
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
        StoreServers::url(self.servers.folder(), name)
    }

    /// The server dies, and its replica takes over.
    pub(crate) fn fail_over(&self) {
        self.run("kill");
        self.run("promote");
    }

    /// Starts a writable server that replicates the tables: a replica without read-only mode, or a
    /// subscriber.
    pub(crate) fn replicate_writable(&self) {
        match self.name {
            "mysql" => {
                self.run("replica");
                self.sql_on_replica("SET GLOBAL read_only = 0");
            }
            _ => self.run("subscriber"),
        }
    }

    /// Result of a statement for the administrator.
    pub(crate) fn sql(&self, text: &str) {
        self.sql_on(self.name, text);
    }

    pub(crate) fn sql_on_replica(&self, text: &str) {
        self.sql_on(&self.replica(), text);
    }

    fn sql_on(&self, name: &str, text: &str) {
        self.servers.run("sql", &[name, text]);
    }

    /// Starts a pooler in front of it and returns its URL.
    pub(crate) fn pooler(&self) -> String {
        self.run_on("start", "pgbouncer");
        self.url_of("pgbouncer")
    }

    /// Kills the replica and restarts it.
    pub(crate) fn restart_replica(&self) {
        for command in ["kill", "start"] {
            self.run_on(command, &self.replica());
        }
    }
}

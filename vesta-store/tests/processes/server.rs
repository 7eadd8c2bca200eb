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

    fn run(&self, command: &str) {
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

    /// From now on the replica receives nothing more; it keeps earlier changes.
    pub(crate) fn lag(&self) {
        self.run("lag");
    }

    /// The server dies, and its replica takes over.
    pub(crate) fn fail_over(&self) {
        self.kill();
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

    /// Promotes the replica.
    pub(crate) fn promote(&self) {
        self.run("promote");
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

    /// SIGSTOP: its connections stay open.
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

    /// Starts it with its data on disk, and waits until it answers.
    pub(crate) fn start_again(&self) {
        self.run("start");
    }
}

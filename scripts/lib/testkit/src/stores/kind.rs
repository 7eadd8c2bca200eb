//! The kinds of stores: their programs, and how each is started and asked.

use std::fs;
use std::path::Path;

use super::others::ZOOKEEPER_JAR;
use super::server::Server;
use super::sql::postgres_folder;
use super::tools::{ask, command, output, path_of};
use super::{POOLER, vesta_server};

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mysql,
    Postgres,
    Redis,
    Zookeeper,
    Etcd,
    PoolServer,
    Pgbouncer,
}

impl Kind {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "mysql" | "mysql-replica" => Some(Self::Mysql),
            "postgres" | "postgres-replica" => Some(Self::Postgres),
            "redis" | "redis-replica" => Some(Self::Redis),
            "zookeeper" => Some(Self::Zookeeper),
            "etcd" => Some(Self::Etcd),
            "pool_server" => Some(Self::PoolServer),
            POOLER => Some(Self::Pgbouncer),
            _ => None,
        }
    }

    /// Its programs, and the Debian packages that have them.
    pub(super) fn programs(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Mysql => (
                &["mariadbd", "mariadb", "mariadb-install-db"],
                &["mariadb-server"],
            ),
            Self::Postgres => (&["psql"], &["postgresql"]),
            Self::Redis => (&["redis-server", "redis-cli"], &["redis-server"]),
            Self::Zookeeper => (&["java"], &["libzookeeper-java", "default-jre-headless"]),
            Self::Etcd => (&["etcd"], &["etcd-server"]),
            Self::PoolServer => (&[], &[]),
            Self::Pgbouncer => (&["pgbouncer"], &["pgbouncer"]),
        }
    }

    /// Why it cannot be started here; nothing if it can.
    pub(super) fn lacks(self) -> Option<String> {
        let missing = match self {
            Self::Mysql | Self::Postgres if output(&mut command(["id", "-un"]), "").is_err() => {
                return Some("this user has no name".to_owned());
            }
            Self::Postgres if postgres_folder().is_none() => "initdb".to_owned(),
            Self::Zookeeper if !Path::new(ZOOKEEPER_JAR).exists() => ZOOKEEPER_JAR.to_owned(),
            Self::PoolServer => {
                let program = vesta_server();
                let missing = (!program.exists()).then(|| program.display().to_string())?;
                format!("{missing}: cargo build -p vesta-server")
            }
            _ => {
                let mut programs = self.programs().0.iter();
                programs.find(|it| path_of(it).is_none())?.to_string()
            }
        };
        Some(format!("no {missing}"))
    }
}

impl Server {
    /// Starts its program; returns its URL.
    pub(super) fn launch(
        &self,
        data_is_complete: bool,
        under: &[String],
    ) -> Result<String, String> {
        match self.kind {
            Kind::Mysql => self.launch_mysql(data_is_complete),
            Kind::Postgres => self.launch_postgres(data_is_complete, under),
            Kind::Redis => self.launch_redis(),
            Kind::Zookeeper => self.launch_zookeeper(),
            Kind::Etcd => self.launch_etcd(),
            Kind::PoolServer => self.launch_pool_server(),
            Kind::Pgbouncer => self.launch_pgbouncer(),
        }
    }

    pub(super) fn answers(&self) -> bool {
        let (port, second_port) = (self.port, self.second_port);
        let (health, ready) = (
            "GET /health HTTP/1.0\r\n\r\n",
            "GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n",
        );
        match self.kind {
            Kind::Mysql => self.ask_mysql(port, "SELECT 1").is_ok(),
            Kind::Postgres | Kind::Pgbouncer => {
                self.ask_postgres(port, "vesta", "SELECT 1").is_ok()
            }
            Kind::Redis => self.ask_redis(port, &["PING"]).is_ok_and(|it| it == "PONG"),
            Kind::Zookeeper => ask(port, "srvr").contains("\nMode:"),
            Kind::Etcd => ask(port, health).contains("\"health\":\"true\""),
            Kind::PoolServer => ask(second_port, ready).contains(" 200 "),
        }
    }

    /// Has the administrator execute a text; returns the rows.
    pub(super) fn sql(&self, text: &str) -> Result<String, String> {
        match self.kind {
            Kind::Mysql => self.ask_mysql(self.port, text),
            Kind::Postgres => self.ask_postgres(self.port, "owner", text),
            _ => Err(format!("{} knows no SQL", self.name)),
        }
    }

    /// How far the log of its source is.
    pub(super) fn state_of_source(&self) -> Result<String, String> {
        let source = self.source()?;
        match self.kind {
            Kind::Mysql => self.ask_mysql(source, "SELECT @@gtid_binlog_pos"),
            Kind::Postgres => self.ask_postgres(source, "owner", "SELECT pg_current_wal_lsn()"),
            _ => Ok(self.offset(source, "master_repl_offset")?.to_string()),
        }
    }

    /// True if it has everything up to a state of its source.
    pub(super) fn has(&self, state: &str) -> bool {
        let port = self.port;
        match self.kind {
            Kind::Mysql => {
                let sql = format!("SELECT MASTER_GTID_WAIT('{state}', 1)");
                self.ask_mysql(port, &sql).is_ok_and(|it| it == "0")
            }
            Kind::Postgres => {
                let sql = format!("SELECT pg_last_wal_replay_lsn() >= '{state}'");
                self.ask_postgres(port, "owner", &sql)
                    .is_ok_and(|it| it == "t")
            }
            _ => {
                let offset = self.offset(port, "slave_repl_offset").ok();
                self.is_linked()
                    && offset.is_some_and(|it| state.parse().is_ok_and(|all| it >= all))
            }
        }
    }

    /// Once it has caught up, cuts it off from its source.
    pub(super) fn lag(&self) -> Result<(), String> {
        self.catch_up()?;
        match self.kind {
            Kind::Mysql => self.ask_mysql(self.port, "STOP SLAVE"),
            Kind::Postgres => self.lag_postgres(),
            // Port 1 has no listener.
            _ => self.ask_redis(self.port, &["REPLICAOF", "127.0.0.1", "1"]),
        }
        .map(drop)
    }

    /// Makes it an independent server, with its data.
    pub(super) fn promote(&self) -> Result<(), String> {
        let sql = "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0";
        match self.kind {
            Kind::Mysql => self.ask_mysql(self.port, sql),
            Kind::Postgres => self.promote_postgres(),
            _ => self.ask_redis(self.port, &["REPLICAOF", "NO", "ONE"]),
        }?;
        let _ = fs::remove_file(self.home.join("source")); // a subscriber has none
        Ok(())
    }
}

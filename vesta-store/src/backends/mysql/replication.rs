//! Replication of MySQL or MariaDB as the server reports it: the source that it replicates from, and reasons
//! to doubt that it keeps acknowledged writes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::Row as _;
use sqlx::mysql::{MySqlConnection, MySqlRow};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::StoreError;

use super::Config;
use super::kv::{REPLICAS, REPLICATION, SOURCES, USER};
use crate::backends::ServerMessage;
use crate::backends::sql::Statement::Rows;
use crate::backends::sql::{Cells as _, Class, Dialect as _, explain};

/// Minimum time between two looks that show whether a position advances.
const APART: Duration = Duration::from_secs(1);
const UNSEEN: &str = "another one, which this user may not see (GRANT REPLICATION CLIENT, in MariaDB \
                      REPLICA MONITOR)";

impl Config {
    /// The server that this one replicates from, even while replication is stopped. `None` if only a
    /// later look can tell. If the user may not see it, replication that is stopped is missed; then also the statement
    /// that grants the privilege.
    pub(super) async fn source(
        &self,
        connection: &mut MySqlConnection,
        facts: &Facts,
    ) -> Result<(Option<Option<String>>, Option<String>), StoreError> {
        for question in SOURCES {
            match sqlx::raw_sql(question).fetch_all(&mut *connection).await {
                Ok(rows) => return Ok((Some(rows.iter().find_map(source_of)), None)),
                Err(error) => match error.as_database_error().map(Self::class) {
                    Some(Class::Unfit) => {} // the statement has another name there
                    Some(Class::Refused) => break,
                    _ => return Err(explain::<Self>(error)),
                },
            }
        }
        let now = SystemClock::new().monotonic();
        let advances = self.looks.advances(&facts.foreign_position(), now);
        let follows = if facts.counts("slaves_running") {
            Some(true)
        } else {
            advances
        };
        let source = follows.map(|follows| follows.then(|| UNSEEN.into()));
        Ok((source, Some(self.grant(connection, facts).await?)))
    }

    async fn grant(
        &self,
        connection: &mut MySqlConnection,
        facts: &Facts,
    ) -> Result<String, StoreError> {
        let answer = self.run(connection, Rows(USER), &[]).await;
        let user = answer.and_then(|answer| answer.first()?.text(0));
        let user = user.map_err(explain::<Self>)?.unwrap_or_default();
        let privilege = match facts.get("gtid_slave_pos") {
            Some(_) => "REPLICA MONITOR",
            None => "REPLICATION CLIENT",
        };
        Ok(format!("GRANT {privilege} ON *.* TO {user}"))
    }
}

/// The source in a channel's row, unless it is a group replication channel.
fn source_of(row: &MySqlRow) -> Option<String> {
    let text = |name| row.try_get::<Option<String>, _>(name).ok().flatten();
    if text("Channel_Name").is_some_and(|name| name.starts_with("group_replication_")) {
        return None;
    }
    let host = text("Source_Host")
        .or_else(|| text("Master_Host"))
        .unwrap_or_default();
    let port = |name| row.try_get_unchecked::<i64, _>(name);
    let port = port("Source_Port")
        .or_else(|_| port("Master_Port"))
        .unwrap_or_default();
    Some(format!("{host}:{port}"))
}

/// Replicated position in the logs of other servers at the last look, and the time since which it has not
/// changed.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<Option<(String, Duration)>>);

impl Looks {
    /// True if the position advances, so the server replicates. `None` until two looks are far enough
    /// apart.
    fn advances(&self, position: &str, now: Duration) -> Option<bool> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            _ if position.is_empty() => Some(false),
            Some((before, since)) if before == position => {
                (now.saturating_sub(*since) >= APART).then_some(false)
            }
            before => {
                let advances = before.is_some().then_some(true);
                *last = Some((position.to_owned(), now));
                advances
            }
        }
    }
}

/// The setting by which a crash may undo commits.
pub(super) fn undone_in_a_crash(flush: i64) -> Option<String> {
    // 3 is MariaDB's, and syncs once more.
    (!matches!(flush, 1 | 3)).then(|| {
        format!(
            "commits reach its disk only later (set innodb_flush_log_at_trx_commit = 1; it is {flush})"
        )
    })
}

/// Variables and counters by lower-case name. Each server has only its own.
#[derive(Debug, Default)]
pub(super) struct Facts(HashMap<String, String>);

impl Facts {
    pub(super) async fn learn(connection: &mut MySqlConnection) -> Result<Self, sqlx::Error> {
        let mut facts = Self::default();
        for question in [REPLICATION[0], REPLICATION[1], REPLICAS] {
            if question == REPLICAS && !facts.counts_no_replicas() {
                break;
            }
            for row in sqlx::raw_sql(question).fetch_all(&mut *connection).await? {
                let (name, value) = (row.text(0)?.unwrap_or_default(), row.text(1)?);
                facts
                    .0
                    .insert(name.to_lowercase(), value.unwrap_or_default());
            }
        }
        Ok(facts)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    fn counts(&self, name: &str) -> bool {
        self.get(name).is_some_and(|count| count != "0")
    }

    /// True for a MySQL server with a binary log. MariaDB counts its replicas.
    fn counts_no_replicas(&self) -> bool {
        self.is("log_bin", "ON") && self.get("slaves_connected").is_none()
    }

    /// Identity of the server. The nodes of a cluster that keeps what one of them acknowledged count as one.
    pub(super) fn server(&self) -> Option<String> {
        let cluster = match self.is("wsrep_on", "ON") {
            true => self.get("wsrep_cluster_state_uuid"),
            false => self.get("group_replication_group_name"),
        };
        let one = cluster.filter(|name| !name.is_empty());
        let one = one.or_else(|| self.get("server_uuid")).map(str::to_owned);
        // MariaDB has no uuid.
        one.or_else(|| {
            Some(format!(
                "{} on {}",
                self.get("server_id")?,
                self.get("hostname")?
            ))
        })
    }

    pub(super) fn doubts(&self) -> Vec<String> {
        let has_log = self.is("log_bin", "ON");
        let replicas = ["slaves_connected", "slave_connections", "replicas"];
        let has_replicas = replicas.iter().any(|name| self.counts(name));
        let may_be_seen = !self.counts_no_replicas() || self.counts("sees_replicas");
        // With GTIDs, an unseen replica is recognizable once it is promoted.
        let would_show = self.is("gtid_mode", "ON");
        [
            (
                has_log && !self.is("sync_binlog", "1"),
                "its binary log is not synced, but determines which commits survive a crash (set \
                 sync_binlog = 1)",
            ),
            (
                has_replicas && !self.is_semi_synchronous(),
                "it has or had replicas that do not confirm changes, and a fail-over may lose some",
            ),
            (
                self.was_replica(),
                "it is or was a replica, and may lack writes that its source had acknowledged",
            ),
            (
                !may_be_seen && !would_show,
                "this user cannot see whether it has replicas (GRANT PROCESS, or set gtid_mode = \
                 ON)",
            ),
        ]
        .into_iter()
        .filter(|(doubtful, _)| *doubtful)
        .map(|(_, doubt)| doubt.to_owned())
        .collect()
    }

    /// True if commits wait for a replica. A server whose wait timed out has switched this off.
    fn is_semi_synchronous(&self) -> bool {
        ["master", "source"].iter().any(|word| {
            self.is(&format!("rpl_semi_sync_{word}_status"), "ON")
                && self.counts(&format!("rpl_semi_sync_{word}_clients"))
        })
    }

    /// True if it has executed changes of another server.
    pub(super) fn was_replica(&self) -> bool {
        !self.foreign_position().is_empty()
    }

    /// Position up to which it has executed other servers' changes; empty if none. Group members write
    /// under the name of the group.
    fn foreign_position(&self) -> String {
        if let Some(position) = self.get("gtid_slave_pos") {
            return position.to_owned();
        }
        let own = [
            "server_uuid",
            "group_replication_group_name",
            "group_replication_view_change_uuid",
        ];
        let is_own = |set: &&str| {
            let uuid = set.split(':').next().unwrap_or_default();
            own.iter().any(|name| {
                self.get(name)
                    .is_some_and(|it| it.eq_ignore_ascii_case(uuid))
            })
        };
        let executed = self.get("gtid_executed").unwrap_or_default();
        let sets = executed
            .split(',')
            .map(str::trim)
            .filter(|set| !set.is_empty() && !is_own(set));
        sets.collect::<Vec<_>>().join(",")
    }

    /// State of a Galera node that lacks changes of the other nodes.
    pub(super) fn out_of_step(&self) -> Option<StoreError> {
        let state = ["wsrep_cluster_status", "wsrep_local_state_comment"];
        let state = state.map(|name| self.get(name).unwrap_or_default());
        (self.is("wsrep_on", "ON") && state != ["Primary", "Synced"]).then(|| {
            let state = ServerMessage(state.join(", "));
            StoreError::unavailable("this Galera node is out of sync with the others", state)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(of: &[(&str, &str)]) -> Vec<String> {
        facts(of).doubts()
    }

    const MARIADB: &[(&str, &str)] = &[
        ("log_bin", "ON"),
        ("sync_binlog", "1"),
        ("gtid_slave_pos", ""),
        ("slaves_connected", "0"),
        ("slave_connections", "0"),
        ("rpl_semi_sync_master_status", "OFF"),
        ("rpl_semi_sync_master_clients", "0"),
    ];
    const OWN: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const MYSQL: &[(&str, &str)] = &[
        ("log_bin", "ON"),
        ("sync_binlog", "1"),
        ("gtid_mode", "OFF"),
        ("gtid_executed", ""),
        ("server_uuid", OWN),
        ("replicas", "0"),
        ("sees_replicas", "1"),
    ];

    #[test]
    fn a_server_that_keeps_acknowledged_writes_is_not_doubted() {
        let own = format!("{OWN}:1-77,\n{}:1-5:9", OWN.to_uppercase());
        let group = (
            "group_replication_group_name",
            "aaaaaaaa-71ca-11e1-9e33-c80aa9429562",
        );
        let of_group = format!("{}:1-9", group.1);
        let synchronous = [
            ("slaves_connected", "2"),
            ("rpl_semi_sync_master_status", "ON"),
            ("rpl_semi_sync_master_clients", "1"),
        ];
        let of_mysql = [
            ("replicas", "1"),
            ("rpl_semi_sync_source_status", "ON"),
            ("rpl_semi_sync_source_clients", "1"),
        ];
        for (server, more) in [
            (MARIADB, &[] as &[_]),
            (MARIADB, &[("log_bin", "OFF"), ("sync_binlog", "0")]),
            (MARIADB, &synchronous),
            (MYSQL, &[]),
            (MYSQL, &[("gtid_executed", &own)]),
            (MYSQL, &[group, ("gtid_executed", &of_group)]),
            (MYSQL, &[("sees_replicas", "0"), ("gtid_mode", "ON")]),
            (MYSQL, &of_mysql),
        ] {
            assert_eq!(doubts(&[server, more].concat()), [""; 0], "{more:?}");
        }
    }

    fn facts(facts: &[(&str, &str)]) -> Facts {
        let facts = facts
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Facts(facts.collect())
    }

    #[test]
    fn a_position_that_advances_between_two_looks_shows_a_replica() {
        let followed = |executed: &str| {
            facts(&[("server_uuid", OWN), ("gtid_executed", executed)]).foreign_position()
        };
        let source = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562";
        let (looks, second) = (Looks::default(), Duration::from_secs);
        assert_eq!(
            looks.advances(&followed(&format!("{OWN}:1-9")), second(1)),
            Some(false)
        );
        let [at_77, at_78] = [77, 78].map(|at| followed(&format!("{OWN}:1-9,\n{source}:1-{at}")));
        assert_eq!(
            looks.advances(&at_77, second(2)),
            None,
            "nothing to compare with"
        );
        assert_eq!(looks.advances(&at_77, second(2)), None, "too soon");
        assert_eq!(looks.advances(&at_77, second(3)), Some(false));
        assert_eq!(looks.advances(&at_78, second(60)), Some(true));
        assert_eq!(looks.advances(&at_78, second(60)), None);
        assert_eq!(
            looks.advances(&at_78, second(61)),
            Some(false),
            "it was promoted"
        );
        let own = followed(&format!("{OWN}:1-99,{source}:1-78"));
        assert_eq!(
            looks.advances(&own, second(62)),
            Some(false),
            "its own changes do not count"
        );
        assert_eq!(
            facts(&[("gtid_slave_pos", "0-1-77")]).foreign_position(),
            "0-1-77"
        );
    }

    #[test]
    fn a_galera_node_counts_only_if_synced_with_the_primary_component() {
        let state = |on, status, comment| {
            let names = [
                "wsrep_on",
                "wsrep_cluster_status",
                "wsrep_local_state_comment",
            ];
            facts(&[(names[0], on), (names[1], status), (names[2], comment)]).out_of_step()
        };
        assert!(state("ON", "Primary", "Synced").is_none());
        assert!(state("OFF", "Disconnected", "").is_none());
        for (status, comment) in [
            ("non-Primary", "Initialized"),
            ("Primary", "Donor/Desynced"),
        ] {
            let said = state("ON", status, comment).expect("a reason").to_string();
            assert!(said.contains(status) && said.contains(comment), "{said}");
        }
    }

    #[test]
    fn each_way_to_lose_changes_is_reported() {
        let foreign = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-9";
        let timed_out = [
            ("slaves_connected", "1"),
            ("rpl_semi_sync_master_status", "OFF"),
            ("rpl_semi_sync_master_clients", "1"),
        ];
        let wait_off = [
            ("slave_connections", "3"),
            ("rpl_semi_sync_master_status", "ON"),
            ("rpl_semi_sync_master_clients", "0"),
        ];
        for (server, more, why) in [
            (
                MARIADB,
                &[("sync_binlog", "0")] as &[_],
                "set sync_binlog = 1",
            ),
            (MARIADB, &[("slaves_connected", "1")], "has or had replicas"),
            (MARIADB, &timed_out, "has or had replicas"),
            (MARIADB, &wait_off, "has or had replicas"),
            (
                MARIADB,
                &[("gtid_slave_pos", "0-1-77")],
                "is or was a replica",
            ),
            (MYSQL, &[("replicas", "1")], "has or had replicas"),
            (MYSQL, &[("gtid_executed", foreign)], "is or was a replica"),
            (MYSQL, &[("sees_replicas", "0")], "GRANT PROCESS"),
        ] {
            let found = doubts(&[server, more].concat());
            assert!(
                found.len() == 1 && found[0].contains(why),
                "{more:?}: {found:?}"
            );
        }
        assert_eq!(undone_in_a_crash(1).or(undone_in_a_crash(3)), None);
        for flush in [0, 2] {
            let doubt = undone_in_a_crash(flush).expect("a doubt");
            assert!(
                doubt.contains("set innodb_flush_log_at_trx_commit = 1"),
                "{doubt}"
            );
        }
    }
}

//! Doubts about a MySQL or MariaDB that may lose changes it acknowledged, from what it says about itself.

use std::collections::HashMap;

use sqlx::mysql::MySqlConnection;
use vesta_service::StoreError;

use super::Config;
use crate::backends::sql::Statement::Rows;
use crate::backends::sql::{Cells as _, explain, run};

/// The setting by which a crash may undo commits.
pub(super) fn undone_in_a_crash(flush: i64) -> Option<String> {
    // 3 is MariaDB's, and syncs once more.
    (!matches!(flush, 1 | 3)).then(|| {
        format!(
            "commits are on its disk only later (set innodb_flush_log_at_trx_commit = 1; it is {flush})"
        )
    })
}

/// Variables and counters by name, in lower case. A server lacks those of the others.
#[derive(Debug, Default)]
pub(super) struct Facts(HashMap<String, String>);

impl Facts {
    pub(super) async fn learn(
        &mut self,
        connection: &mut MySqlConnection,
        question: &'static str,
    ) -> Result<(), StoreError> {
        let answer = run::<Config>(connection, Rows(question), &[]).await?;
        for row in &answer.rows {
            let fact = row.text(0).and_then(|name| Ok((name, row.text(1)?)));
            let (name, value) = fact.map_err(explain::<Config>)?;
            self.0.insert(name.unwrap_or_default().to_lowercase(), value.unwrap_or_default());
        }
        Ok(())
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

    /// True for a MySQL with a binary log. MariaDB counts its replicas.
    pub(super) fn counts_no_replicas(&self) -> bool {
        self.is("log_bin", "ON") && self.get("slaves_connected").is_none()
    }

    pub(super) fn doubts(&self) -> Vec<String> {
        let has_log = self.is("log_bin", "ON");
        let replicas = ["slaves_connected", "slave_connections", "replicas"];
        let has_replicas = replicas.iter().any(|name| self.counts(name));
        let may_be_seen = !self.counts_no_replicas() || self.counts("sees_replicas");
        // Its GTIDs would show once it was promoted.
        let would_show = self.is("gtid_mode", "ON");
        [
            (
                has_log && !self.is("sync_binlog", "1"),
                "its binary log is not synced, and decides in a crash which commits are kept (set \
                 sync_binlog = 1)",
            ),
            (
                has_replicas && !self.is_semi_synchronous(),
                "it has or had replicas that do not confirm changes, and a fail-over may lose some",
            ),
            (
                self.was_replica(),
                "it is or was a replica, and may lack what its source had acknowledged",
            ),
            (
                !may_be_seen && !would_show,
                "this user does not see whether it has replicas (GRANT PROCESS, or set gtid_mode = \
                 ON)",
            ),
        ]
        .into_iter()
        .filter(|(doubtful, _)| *doubtful)
        .map(|(_, doubt)| doubt.to_owned())
        .collect()
    }

    /// True if commits wait for a replica. A server that waited in vain has switched that off.
    fn is_semi_synchronous(&self) -> bool {
        ["master", "source"].iter().any(|word| {
            self.is(&format!("rpl_semi_sync_{word}_status"), "ON")
                && self.counts(&format!("rpl_semi_sync_{word}_clients"))
        })
    }

    /// True if it has executed what another server wrote. Members of a group write under its name.
    pub(super) fn was_replica(&self) -> bool {
        let own =
            ["server_uuid", "group_replication_group_name", "group_replication_view_change_uuid"];
        let is_own = |uuid: &str| {
            own.iter().any(|name| self.get(name).is_some_and(|it| it.eq_ignore_ascii_case(uuid)))
        };
        let executed = self.get("gtid_executed").unwrap_or_default();
        let mut uuids = executed.split(',').filter_map(|set| set.trim().split(':').next());
        self.get("gtid_slave_pos").is_some_and(|position| !position.is_empty())
            || uuids.any(|uuid| !uuid.is_empty() && !is_own(uuid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(facts: &[(&str, &str)]) -> Vec<String> {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Facts(facts.collect()).doubts()
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
    fn a_server_that_keeps_what_it_acknowledged_is_not_doubted() {
        let own = format!("{OWN}:1-77,\n{}:1-5:9", OWN.to_uppercase());
        let group = ("group_replication_group_name", "aaaaaaaa-71ca-11e1-9e33-c80aa9429562");
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

    #[test]
    fn each_way_to_lose_changes_is_named() {
        let foreign = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-9";
        let timed_out = [
            ("slaves_connected", "1"),
            ("rpl_semi_sync_master_status", "OFF"),
            ("rpl_semi_sync_master_clients", "1"),
        ];
        let nobody_waits = [
            ("slave_connections", "3"),
            ("rpl_semi_sync_master_status", "ON"),
            ("rpl_semi_sync_master_clients", "0"),
        ];
        for (server, more, why) in [
            (MARIADB, &[("sync_binlog", "0")] as &[_], "set sync_binlog = 1"),
            (MARIADB, &[("slaves_connected", "1")], "has or had replicas"),
            (MARIADB, &timed_out, "has or had replicas"),
            (MARIADB, &nobody_waits, "has or had replicas"),
            (MARIADB, &[("gtid_slave_pos", "0-1-77")], "is or was a replica"),
            (MYSQL, &[("replicas", "1")], "has or had replicas"),
            (MYSQL, &[("gtid_executed", foreign)], "is or was a replica"),
            (MYSQL, &[("sees_replicas", "0")], "GRANT PROCESS"),
        ] {
            let found = doubts(&[server, more].concat());
            assert!(found.len() == 1 && found[0].contains(why), "{more:?}: {found:?}");
        }
        assert_eq!(undone_in_a_crash(1).or(undone_in_a_crash(3)), None);
        for flush in [0, 2] {
            let doubt = undone_in_a_crash(flush).expect("a doubt");
            assert!(doubt.contains("set innodb_flush_log_at_trx_commit = 1"), "{doubt}");
        }
    }
}

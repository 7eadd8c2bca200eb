//! Whether a Redis keeps what it acknowledged.

use vesta_service::StoreError;

use super::errors::{NotConfirmed, Said};
use super::link::Link;

/// Why a Redis may forget a change that it acknowledged, and what to do; none if it may not.
pub(super) type Doubts = Vec<&'static str>;

const REPLICAS: &str = "it has or had replicas, and a fail-over may lose changes";

/// Looks at how Redis is set up.
pub(super) fn examine(link: &mut Link) -> Result<Doubts, StoreError> {
    let info: String = link.ask(&redis::cmd("INFO"))?;
    if field(&info, "redis_mode") == Some("sentinel") {
        return Err(StoreError::permanent(
            "this is a Sentinel, which keeps no data; write the address of the Redis into the URL",
        ));
    }
    let replication = Replication::of(&info)?;
    let eviction = field(&info, "maxmemory_policy");
    if field(&info, "maxmemory") != Some("0")
        && eviction.is_some_and(|policy| policy != "noeviction")
    {
        return Err(StoreError::permanent(format!(
            "Redis would evict keys when its memory is full (maxmemory-policy {}); set \
             maxmemory-policy noeviction",
            eviction.unwrap_or_default()
        )));
    }

    let mut doubts = Doubts::new();
    if eviction.is_none() {
        doubts.push("it does not say whether it evicts keys (set maxmemory-policy noeviction)");
    }
    if replication.any {
        doubts.push(REPLICAS);
    }
    if field(&info, "cluster_enabled") == Some("1") {
        doubts.push("it is part of a cluster");
    }
    doubts.extend(files(link)?);
    Ok(doubts)
}

/// How it writes to its disk.
fn files(link: &mut Link) -> Result<Doubts, StoreError> {
    let Some(settings) = link.ask_if_allowed(redis::cmd("CONFIG").arg("GET").arg("*append*"))?
    else {
        return Ok(vec![
            "CONFIG GET is not permitted, so that nobody knows how it writes to its disk",
        ]);
    };
    let settings: Vec<String> = settings;
    let is = |name: &str, value: &str| {
        settings.chunks_exact(2).any(|setting| setting[0] == name && setting[1] == value)
    };
    let mut doubts = Doubts::new();
    if !is("appendonly", "yes") {
        doubts.push("it does not log changes to its disk (set appendonly yes)");
    }
    if !is("appendfsync", "always") {
        doubts.push("it acknowledges changes before they are on its disk (set appendfsync always)");
    }
    // It then does the same for as long as the log is rewritten.
    if !is("no-appendfsync-on-rewrite", "no") {
        doubts.push("it does not always wait for its disk (set no-appendfsync-on-rewrite no)");
    }
    Ok(doubts)
}

/// Waits until a change that was made over this connection is on a replica, too, if there is one.
/// Returns what that tells about the Redis.
pub(super) fn confirm(link: &mut Link) -> Result<Doubts, StoreError> {
    let info: String = link.ask(redis::cmd("INFO").arg("replication"))?;
    let replication = Replication::of(&info)?;
    if replication.online {
        // The answer has to be here before nobody waits for it any more.
        let wait = (link.remaining()? * 9 / 10).as_millis().max(1).to_string();
        let confirmed: u64 = link.ask(redis::cmd("WAIT").arg(1).arg(wait))?;
        if confirmed == 0 {
            return Err(StoreError::unavailable("the change may yet be lost", NotConfirmed));
        }
    }
    Ok(if replication.any { vec![REPLICAS] } else { Vec::new() })
}

#[derive(Debug, PartialEq, Eq)]
struct Replication {
    /// Whether there is a replica, or was one within the last hour or so.
    any: bool,
    /// Whether one has caught up, so that it can confirm changes.
    online: bool,
}

impl Replication {
    fn of(info: &str) -> Result<Self, StoreError> {
        match field(info, "role") {
            Some("master") => {}
            role => {
                let role = Said(format!("its role is {}", role.unwrap_or("unknown")));
                return Err(StoreError::unavailable(
                    "this Redis is no master; a fail-over may be in progress, or the URL names the \
                     wrong server",
                    role,
                ));
            }
        }
        let connected = field(info, "connected_slaves").is_some_and(|count| count != "0");
        // Redis keeps it for a while after the last replica is gone.
        let backlog = field(info, "repl_backlog_active") == Some("1");
        let online = info.lines().any(|line| {
            let replica = line.strip_prefix("slave").and_then(|rest| rest.split_once(':'));
            replica.is_some_and(|(number, state)| {
                number.bytes().all(|digit| digit.is_ascii_digit())
                    && state.split(',').any(|part| part == "state=online")
            })
        });
        Ok(Self { any: connected || backlog, online })
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_found_in_every_state() {
        let alone = "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
        let found = |more: &str| Replication::of(&format!("{alone}{more}\r\n")).unwrap();
        assert_eq!(found("repl_backlog_active:0"), Replication { any: false, online: false });
        assert_eq!(found("repl_backlog_active:1"), Replication { any: true, online: false });
        let with = |replica: &str| {
            let info = format!("role:master\r\nconnected_slaves:1\r\n{replica}\r\nslave_x:1\r\n");
            Replication::of(&info).unwrap()
        };
        let online = "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0";
        assert_eq!(with(online), Replication { any: true, online: true });
        let loading = "slave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0";
        assert_eq!(with(loading), Replication { any: true, online: false });
    }

    #[test]
    fn what_is_no_master_is_asked_again() {
        for info in ["role:slave\r\n", "", "# Replication\r\n"] {
            let error = Replication::of(info).unwrap_err();
            assert!(!error.is_permanent());
            assert!(error.to_string().contains("no master"), "{error}");
        }
    }
}

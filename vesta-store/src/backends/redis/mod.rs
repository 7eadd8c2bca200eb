//! Redis: connections, and whether the server keeps acknowledged writes.

mod config;
mod errors;
mod kv;

use std::time::Duration;

use redis::aio::MultiplexedConnection as Connection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue};
use vesta_service::lease::{StoreError, Timing};

use crate::backends::ServerMessage;
use crate::options::Purpose;
use crate::remote::{Client, Remote};
use crate::{OpenError, Options, StoreUrl};
use config::Config;
use errors::{explain, explain_about, explain_login, forgetful};

/// Reasons why Redis may forget acknowledged writes, with remedies; empty if it keeps them.
type Doubts = Vec<&'static str>;

pub(crate) type Store = Remote<Redis>;

/// Entries in Redis 5 or newer, or in a server that speaks its protocol and runs its scripts.
///
/// # URL
/// `redis://[user][:password]@host:port/db`, or `rediss://` with TLS. The server's certificate must
/// be trusted by the system, or be in the file named by the environment variable `SSL_CERT_FILE`.
/// `?prefix=` sets the prefix of the keys; the default is `vesta`.
///
/// # Keys
/// One hash per area (another prefix replaces `vesta`):
/// ```text
/// vesta:lease/orders   hash   namespace   {"schema":1,…}
///                             17          {"schema":1,…}
/// vesta:segment/tags   hash   orders      {"schema":1,…}
/// ```
/// Nothing is ever deleted or expires: a key with a time to live, or of another type, is an error
/// that names it. A change is one script, hence one atomic step.
///
/// # Durability requirements
/// On every new connection, and whenever entries are read, the server's configuration is checked.
///
/// * If keys may be evicted (`maxmemory` with a `maxmemory-policy` other than `noeviction`), the
///   server is refused.
/// * With `appendonly yes`, `appendfsync always` and `no-appendfsync-on-rewrite no`, without replicas
///   and cluster, the server forgets no acknowledged write.
/// * Any other server, including one that hides its configuration or was once promoted,
///   [may forget](KvStore::doubt) the last moments, and a warning gives the reason. Machine IDs are
///   then claimed at a distance of one window. Segment tags are refused: a forgotten range would be
///   handed out again unnoticed. After Redis was restored from a backup, raise the `max_id` of each
///   tag above every number handed out.
///
/// If there are replicas, a change counts only once one of them has confirmed it (`WAIT`); until then
/// its outcome is unknown, even if the same change is requested again. A primary that is cut off from
/// all its replicas should not continue alone: set `min-replicas-to-write 1` on it. Sentinels are not
/// queried and cluster redirections are not followed: the URL names the one server, or an address that
/// follows the primary.
///
/// The user needs `+@connection +info +config|get +time +wait +eval +pttl +hget +hgetall +hset` and
/// `~vesta:*`.
pub(crate) struct Redis {
    config: Config,
    limit: Duration,
    purpose: Purpose,
}

impl Client for Redis {
    const NAME: &'static str = "Redis";
    const TIMING: Timing = Timing::IN_MEMORY;

    type Connection = Connection;

    fn new(url: &StoreUrl, options: &Options, purpose: Purpose) -> Result<Self, OpenError> {
        let (config, limit) = (url.try_into()?, options.limit(Self::TIMING));
        Ok(Self {
            config,
            limit,
            purpose,
        })
    }

    fn shown(&self) -> &str {
        &self.config.shown
    }

    /// The client must not reconnect by itself between a change and its confirmation.
    async fn connect(&self, _: usize, _: Duration) -> Result<Connection, StoreError> {
        let client = self
            .config
            .server()
            .and_then(redis::Client::open)
            .map_err(explain)?;
        // The client's own timeouts may be shorter than this store's.
        let unlimited = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connection = client
            .get_multiplexed_async_connection_with_config(&unlimited)
            .await;
        let mut connection = connection.map_err(explain)?;
        self.log_in(&mut connection).await?;
        self.examine(&mut connection).await?;
        Ok(connection)
    }

    /// Not probed: a dead connection costs one failed request, which is repeated, while a probe would
    /// cost one each time.
    async fn is_alive(&self, _: &mut Connection) -> bool {
        true
    }
}

impl Store {
    /// Queries a key of a legacy system.
    pub(crate) fn question<T: FromRedisValue + Send + 'static>(
        &self,
        key: &str,
        question: Cmd,
    ) -> Result<T, StoreError> {
        let key = key.to_owned();
        let to_do = "not of the type that the other system uses; check the namespace and the URL";
        self.ask(move |_, connection| {
            Box::pin(async move {
                let answer = question.query_async(connection).await;
                answer.map_err(|error| explain_about(&key, to_do, error))
            })
        })
    }
}

impl Redis {
    /// Not left to the client, which discards the server's messages.
    async fn log_in(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let Config {
            user,
            password,
            database,
            ..
        } = &self.config;
        if let Some(password) = password {
            let mut login = redis::cmd("AUTH");
            login.arg(user).arg(password);
            login
                .query_async::<()>(connection)
                .await
                .map_err(explain_login)?;
        }
        if *database != 0 {
            let mut select = redis::cmd("SELECT");
            if_allowed::<()>(connection, select.arg(database)).await?.ok_or_else(|| {
                StoreError::permanent(format!(
                    "Redis has no database {database}, or this user may not use it; write another \
                     number into the URL"
                ))
            })?;
        }
        Ok(())
    }

    /// Checks the server's configuration, which may change at any time, and whether the server took
    /// over from another.
    async fn examine(&self, connection: &mut Connection) -> Result<(Doubts, bool), StoreError> {
        let info: String = redis::cmd("INFO")
            .query_async(connection)
            .await
            .map_err(explain)?;
        if field(&info, "redis_mode") == Some("sentinel") {
            return Err(StoreError::permanent(
                "this is a Sentinel, which stores no data; write the address of the Redis server into the \
                 URL",
            ));
        }
        let replication = Replication::of(&info)?;
        let eviction = field(&info, "maxmemory_policy");
        if self.purpose != Purpose::Import
            && field(&info, "maxmemory") != Some("0")
            && eviction.is_some_and(|policy| policy != "noeviction")
        {
            return Err(StoreError::permanent(format!(
                "Redis would evict keys when its memory is full (maxmemory-policy {}); set \
                 maxmemory-policy noeviction",
                eviction.unwrap_or_default()
            )));
        }
        let mut question = redis::cmd("CONFIG");
        let settings: Option<Vec<String>> =
            if_allowed(connection, question.arg("GET").arg("*append*")).await?;
        let is_not = |name: &str, value: &str| {
            let is = |setting: &[String]| setting[0] == name && setting[1] == value;
            settings
                .as_ref()
                .is_some_and(|settings| !settings.chunks_exact(2).any(is))
        };
        let doubts: Doubts = [
            (
                settings.is_none(),
                "CONFIG GET is not permitted, so its durability is unknown",
            ),
            (
                is_not("appendonly", "yes"),
                "it does not log changes to its disk (set appendonly yes)",
            ),
            (
                is_not("appendfsync", "always"),
                "it acknowledges changes before they are on its disk (set appendfsync always)",
            ),
            // Otherwise appendfsync is suspended while the log is rewritten.
            (
                is_not("no-appendfsync-on-rewrite", "no"),
                "it does not always wait for its disk (set no-appendfsync-on-rewrite no)",
            ),
            (
                eviction.is_none(),
                "it does not say whether it evicts keys (set maxmemory-policy noeviction)",
            ),
            (
                replication.any,
                "it has or had replicas, and a fail-over may lose changes",
            ),
            (
                replication.promoted,
                "it was a replica, and may lack writes that its primary had acknowledged",
            ),
            (
                field(&info, "cluster_enabled") == Some("1"),
                "it is part of a cluster",
            ),
        ]
        .into_iter()
        .filter_map(|(doubtful, doubt)| doubtful.then_some(doubt))
        .collect();
        if self.purpose == Purpose::Segments && !doubts.is_empty() {
            return Err(forgetful(&doubts));
        }
        Ok((doubts, replication.promoted))
    }

    /// Waits until a replica, if there is one, has the changes made over this connection.
    async fn confirm(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let info = redis::cmd("INFO")
            .arg("replication")
            .query_async::<String>(connection)
            .await;
        let replication = Replication::of(&info.map_err(explain)?)?;
        if replication.online {
            // The reply must arrive before the request times out.
            let wait = (self.limit / 2).as_millis().max(1).to_string();
            let confirmed = redis::cmd("WAIT")
                .arg(1)
                .arg(wait)
                .query_async::<u64>(connection)
                .await;
            if confirmed.map_err(explain)? == 0 {
                let silence = ServerMessage("no replica confirmed it in time".into());
                return Err(StoreError::unavailable(
                    "the change may yet be lost",
                    silence,
                ));
            }
        }
        Ok(())
    }
}

/// `None` if the server denies the request.
async fn if_allowed<T: FromRedisValue>(
    connection: &mut Connection,
    command: &Cmd,
) -> Result<Option<T>, StoreError> {
    match command.query_async(connection).await {
        Err(error) if error.code().is_some() => Ok(None),
        answer => answer.map(Some).map_err(explain),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Replication {
    /// True if there is a replica, or was one within the last hour or so.
    any: bool,
    /// True if one has caught up and can confirm changes.
    online: bool,
    /// True if it continues the history of another primary.
    promoted: bool,
}

impl Replication {
    fn of(info: &str) -> Result<Self, StoreError> {
        match field(info, "role") {
            Some("master") => {}
            role => {
                let role = ServerMessage(format!("its role is {}", role.unwrap_or("unknown")));
                return Err(StoreError::unavailable(
                    "this Redis server is not the primary; a fail-over may be in progress, or the URL names the \
                     wrong server",
                    role,
                ));
            }
        }
        let connected = field(info, "connected_slaves").is_some_and(|count| count != "0");
        // Redis keeps the backlog for a while after the last replica is gone.
        let backlog = field(info, "repl_backlog_active") == Some("1");
        let online = info.lines().any(|line| {
            let replica = line
                .strip_prefix("slave")
                .and_then(|rest| rest.split_once(':'));
            replica.is_some_and(|(number, state)| {
                number.bytes().all(|digit| digit.is_ascii_digit())
                    && state.split(',').any(|part| part == "state=online")
            })
        });
        let promoted = field(info, "master_replid2")
            .is_some_and(|id| !id.bytes().all(|digit| digit == b'0'))
            || field(info, "second_repl_offset").is_some_and(|offset| offset != "-1");
        Ok(Self {
            any: connected || backlog,
            online,
            promoted,
        })
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_found_in_every_state() {
        let alone = "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
        let found = |more: &str| Replication::of(&format!("{alone}{more}\r\n")).unwrap();
        let (none, promoted) = (Replication::default(), true);
        assert_eq!(found("repl_backlog_active:0"), none);
        assert_eq!(
            found("repl_backlog_active:1"),
            Replication { any: true, ..none }
        );
        let never = format!("master_replid2:{}\r\nsecond_repl_offset:-1", "0".repeat(40));
        assert_eq!(found(&never), none);
        for once in ["master_replid2:5c1d", "second_repl_offset:77"] {
            assert_eq!(found(once), Replication { promoted, ..none });
        }
        let with = |replica: &str| {
            let info = format!("role:master\r\nconnected_slaves:1\r\n{replica}\r\nslave_x:1\r\n");
            Replication::of(&info).unwrap()
        };
        let online = "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0";
        assert_eq!(
            with(online),
            Replication {
                any: true,
                online: true,
                ..none
            }
        );
        let loading = "slave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0";
        assert_eq!(with(loading), Replication { any: true, ..none });
    }

    #[test]
    fn a_server_that_is_not_the_primary_is_retried() {
        for info in ["role:slave\r\n", "", "# Replication\r\n"] {
            let error = Replication::of(info).unwrap_err();
            assert!(!error.is_permanent());
            assert!(error.to_string().contains("not the primary"), "{error}");
        }
    }
}

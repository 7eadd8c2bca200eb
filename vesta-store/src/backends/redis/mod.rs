//! Redis: connections to it, and whether it keeps what it acknowledged.

mod config;
mod errors;
mod kv;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisError};
use vesta_service::{KvStore, StoreError, Timing};

use crate::options::Losses;
use crate::runtime::Background;
use crate::{OpenError, Options, StoreUrl};
use config::Config;
use errors::{NotConfirmed, ServerMessage, explain};
use kv::RedisKv;

pub(crate) fn open(
    url: &StoreUrl,
    options: &Options,
    losses: Losses,
) -> Result<Arc<dyn KvStore>, OpenError> {
    let server = Server::open(url, options)?;
    Ok(Arc::new(RedisKv { server, options: options.clone(), losses }))
}

/// Why a Redis may forget a change that it acknowledged, and what to do; none if it may not.
type Doubts = Vec<&'static str>;

const REPLICAS: &str = "it has or had replicas, and a fail-over may lose changes";

/// A server, and the runtime of its client.
#[derive(Debug)]
struct Server {
    config: Arc<Config>,
    limit: Duration,
    background: Background,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// `None` after trouble: the next request connects anew.
    connection: Option<MultiplexedConnection>,
    /// `None` as long as Redis was never asked.
    doubts: Option<Doubts>,
}

impl Known {
    fn open(&self) -> Option<(MultiplexedConnection, Doubts)> {
        self.connection.clone().zip(self.doubts.clone())
    }
}

impl Server {
    /// A server that nothing is asked yet.
    fn open(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        let config = Arc::new(Config::try_from(url)?);
        let background = Background::start().map_err(|error| OpenError::Store {
            store: config.to_string(),
            source: StoreError::unavailable("no thread can be started", error),
        })?;
        let limit = options.request_timeout.unwrap_or(Timing::IN_MEMORY.request_timeout);
        Ok(Self { config, limit, background, known: Mutex::default() })
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn may_forget(&self) -> bool {
        self.known().doubts.as_ref().is_none_or(|doubts| !doubts.is_empty())
    }

    /// Makes a request within the time limit. The connection is kept if it was answered: no client of
    /// its own accord connects anew between a change and its confirmation.
    fn ask<T, F>(&self, request: impl FnOnce(Link) -> F + Send + 'static) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<(T, Link), StoreError>> + Send,
    {
        let (config, limit) = (self.config.clone(), self.limit);
        let open = self.known().open();
        let answer = self.background.run(limit, async move {
            request(match open {
                Some((connection, doubts)) => Link { connection, limit, doubts },
                None => Link::connect(&config, limit).await?,
            })
            .await
        });
        let answer = answer.unwrap_or_else(|silence| Err(errors::silent(silence)));
        let mut known = self.known();
        match answer {
            Ok((answer, link)) => {
                if known.doubts.as_ref() != Some(&link.doubts) && !link.doubts.is_empty() {
                    tracing::warn!(
                        store = %self.config,
                        why = link.doubts.join("; "),
                        "this Redis may forget what it acknowledged: machine IDs are claimed with a \
                         distance of one window"
                    );
                }
                *known = Known { connection: Some(link.connection), doubts: Some(link.doubts) };
                Ok(answer)
            }
            Err(error) => {
                known.connection = None;
                Err(error)
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use, and what is known of the server at its end.
struct Link {
    connection: MultiplexedConnection,
    limit: Duration,
    doubts: Doubts,
}

impl Link {
    async fn connect(config: &Config, limit: Duration) -> Result<Self, StoreError> {
        let client = config.server().and_then(redis::Client::open).map_err(explain)?;
        // Its own limits are shorter than ours may be.
        let unlimited =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&unlimited).await;
        let mut link =
            Self { connection: connection.map_err(explain)?, limit, doubts: Doubts::new() };
        link.log_in(config).await?;
        link.examine().await?;
        Ok(link)
    }

    /// Not left to the client, which does not pass on what the server says.
    async fn log_in(&mut self, config: &Config) -> Result<(), StoreError> {
        if let Some(password) = &config.password {
            let mut login = redis::cmd("AUTH");
            login.arg(&config.user).arg(password);
            self.query::<()>(&login).await.map_err(errors::explain_login)?;
        }
        if config.database != 0 {
            let select: Option<()> =
                self.ask_if_allowed(redis::cmd("SELECT").arg(config.database)).await?;
            select.ok_or_else(|| {
                StoreError::permanent(format!(
                    "Redis has no database {}, or this user may not use it; write another number \
                     into the URL",
                    config.database
                ))
            })?;
        }
        Ok(())
    }

    async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        command.query_async(&mut self.connection).await
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, StoreError> {
        self.query(command).await.map_err(explain)
    }

    /// The same about a key, which an error then names.
    async fn ask_about<T: FromRedisValue>(
        &mut self,
        key: &str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        self.query(command).await.map_err(|error| errors::explain_about(key, error))
    }

    /// `None` if the server answers that it does not want to.
    async fn ask_if_allowed<T: FromRedisValue>(
        &mut self,
        command: &Cmd,
    ) -> Result<Option<T>, StoreError> {
        match self.query(command).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.code().is_some() => Ok(None),
            Err(error) => Err(explain(error)),
        }
    }

    /// Looks at how Redis is set up; it may be changed, or get a replica, at any time.
    async fn examine_for(&mut self, losses: Losses) -> Result<(), StoreError> {
        self.examine().await?;
        if losses == Losses::Refused && !self.doubts.is_empty() {
            return Err(errors::forgetful(&self.doubts));
        }
        Ok(())
    }

    async fn examine(&mut self) -> Result<(), StoreError> {
        let info: String = self.ask(&redis::cmd("INFO")).await?;
        if field(&info, "redis_mode") == Some("sentinel") {
            return Err(StoreError::permanent(
                "this is a Sentinel, which keeps no data; write the address of the Redis into the \
                 URL",
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
        let settings = redis::cmd("CONFIG").arg("GET").arg("*append*").clone();
        self.doubts = files(self.ask_if_allowed(&settings).await?);
        for (doubtful, doubt) in [
            (
                eviction.is_none(),
                "it does not say whether it evicts keys (set maxmemory-policy noeviction)",
            ),
            (replication.any, REPLICAS),
            (field(&info, "cluster_enabled") == Some("1"), "it is part of a cluster"),
        ] {
            if doubtful {
                self.doubts.push(doubt);
            }
        }
        Ok(())
    }

    /// Waits until a change that was made over this connection is on a replica, too, if there is one.
    async fn confirm(&mut self) -> Result<(), StoreError> {
        let info: String = self.ask(redis::cmd("INFO").arg("replication")).await?;
        let replication = Replication::of(&info)?;
        if replication.online {
            // The answer has to be here before nobody waits for it any more.
            let wait = (self.limit / 2).as_millis().max(1).to_string();
            let confirmed: u64 = self.ask(redis::cmd("WAIT").arg(1).arg(wait)).await?;
            if confirmed == 0 {
                return Err(StoreError::unavailable("the change may yet be lost", NotConfirmed));
            }
        }
        if replication.any && !self.doubts.contains(&REPLICAS) {
            self.doubts.push(REPLICAS);
        }
        Ok(())
    }
}

/// The doubts about how it writes to its disk; `None` if it does not say.
fn files(settings: Option<Vec<String>>) -> Doubts {
    let Some(settings) = settings else {
        return vec!["CONFIG GET is not permitted, so that nobody knows how it writes to its disk"];
    };
    let is = |name: &str, value: &str| {
        settings.chunks_exact(2).any(|setting| setting[0] == name && setting[1] == value)
    };
    [
        ("appendonly", "yes", "it does not log changes to its disk (set appendonly yes)"),
        (
            "appendfsync",
            "always",
            "it acknowledges changes before they are on its disk (set appendfsync always)",
        ),
        // It then does the same for as long as the log is rewritten.
        (
            "no-appendfsync-on-rewrite",
            "no",
            "it does not always wait for its disk (set no-appendfsync-on-rewrite no)",
        ),
    ]
    .into_iter()
    .filter(|(name, value, _)| !is(name, value))
    .map(|(.., doubt)| doubt)
    .collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Replication {
    /// True if there is a replica, or was one within the last hour or so.
    any: bool,
    /// True if one has caught up, so that it can confirm changes.
    online: bool,
}

impl Replication {
    fn of(info: &str) -> Result<Self, StoreError> {
        match field(info, "role") {
            Some("master") => {}
            role => {
                let role = ServerMessage(format!("its role is {}", role.unwrap_or("unknown")));
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

//! Entries as the fields of hashes.

use redis::{Cmd, FromRedisValue};
use vesta_service::{KvStore, StoreError, Timing, UnixMillis};

use super::{Server, errors};
use crate::Options;
use crate::backends::text;
use crate::options::Losses;

const PUT_IF: &str = include_str!("put_if.lua");

/// Entries in a Redis (5 or newer), or in what speaks its protocol and runs its scripts.
///
/// # URL
/// `redis://[user][:password]@host:port/db`, or `rediss://` with TLS: the server's certificate must
/// be one that the system trusts, or one in the file that the environment variable `SSL_CERT_FILE`
/// names. Behind `?prefix=`, what the keys begin with; `vesta` if it is left out.
///
/// # Keys
/// One hash for each area (with another prefix, that one in place of `vesta`):
/// ```text
/// vesta:lease/orders   hash   namespace   {"schema":1,…}
///                             17          {"schema":1,…}
/// vesta:segment/tags   hash   orders      {"schema":1,…}
/// ```
/// Nothing is ever deleted and nothing has a time to live: a key that has one, or is of another type,
/// is an error that names it. A change is one script, so it is one atomic step.
///
/// # What Redis must promise
/// On every new connection and whenever entries are read it is asked how it is set up.
///
/// * If keys may be evicted (`maxmemory` with a `maxmemory-policy` other than `noeviction`), it is
///   refused.
/// * With `appendonly yes`, `appendfsync always` and `no-appendfsync-on-rewrite no`, no replicas and
///   no cluster, it forgets nothing that it acknowledged.
/// * Anything else, also a Redis that may not be asked, [may forget](KvStore::may_forget) the last
///   moments, and a warning says why. Machine IDs are then claimed with a distance of one window.
///   Segment tags are refused: a range that is forgotten would be handed out again, and nothing would
///   notice. After Redis was restored from a backup, raise the `max_id` of each tag above all that was
///   handed out.
///
/// If there are replicas, a change counts only once one of them has confirmed it (`WAIT`); until then
/// its outcome is unknown, also when the same change is asked for again. A master that is cut off from
/// all its replicas should not go on alone: set `min-replicas-to-write 1` on it. Sentinels are not
/// asked and redirections of a cluster not followed: the URL names the one server, or an address that
/// moves with the master.
///
/// A user needs `+@connection +info +config|get +time +wait +eval +pttl +hget +hgetall +hset` and
/// `~vesta:*`.
#[derive(Debug)]
pub(super) struct RedisKv {
    pub(super) server: Server,
    pub(super) options: Options,
    pub(super) losses: Losses,
}

impl RedisKv {
    fn key(&self, area: &str) -> String {
        format!("{}:{area}", self.server.config().prefix)
    }

    /// The answer to a question about the hash of an area.
    fn read<T>(&self, area: &str, question: &str, field: Option<&str>) -> Result<T, StoreError>
    where
        T: FromRedisValue + Send + 'static,
    {
        let key = self.key(area);
        let mut command = redis::cmd(question);
        command.arg(&key).arg(field);
        let losses = self.losses;
        self.server.ask(move |mut link| async move {
            link.examine_for(losses).await?;
            let lifetime: i64 = link.ask(redis::cmd("PTTL").arg(&key)).await?;
            if lifetime >= 0 {
                return Err(errors::expires(&key));
            }
            Ok((link.ask_about(&key, &command).await?, link))
        })
    }
}

impl KvStore for RedisKv {
    fn describe(&self) -> String {
        self.server.config().to_string()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.server.limit(), ..Timing::IN_MEMORY }
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let found: Vec<(Vec<u8>, Vec<u8>)> = self.read(area, "HGETALL", None)?;
        let entry = |(key, value)| {
            let key = text(&self.key(area), key)?;
            let value = text(&format!("{key} of {}", self.key(area)), value)?;
            Ok((key, value))
        };
        found.into_iter().map(entry).collect()
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        let found: Option<Vec<u8>> = self.read(area, "HGET", Some(key))?;
        found.map(|value| text(&format!("{key} of {}", self.key(area)), value)).transpose()
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.options.check_put(area, key, old)?;
        let area = self.key(area);
        let mut call = Cmd::new();
        call.arg(&["EVAL", PUT_IF, "1", &area, key, new]).arg(old);
        let losses = self.losses;
        self.server.ask(move |mut link| async move {
            if losses == Losses::Refused {
                link.examine_for(losses).await?;
            }
            let said: String = link.ask_about(&area, &call).await?;
            let done = match said.as_str() {
                "other" => return Ok((false, link)),
                "put" => true,
                "repeated" => false,
                _ => return Err(errors::expires(&area)),
            };
            link.confirm().await?;
            Ok((done, link))
        })
    }

    fn may_forget(&self) -> bool {
        self.server.may_forget()
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        let (seconds, micros): (u64, u64) = self
            .server
            .ask(|mut link| async move { Ok((link.ask(&redis::cmd("TIME")).await?, link)) })?;
        Ok(Some(UnixMillis(seconds * 1000 + micros / 1000)))
    }
}

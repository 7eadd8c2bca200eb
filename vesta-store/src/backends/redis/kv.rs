//! Entries as the fields of hashes.

use redis::{Cmd, FromRedisValue, RedisResult};
use vesta_service::{Suspicion, UnixMillis};

use super::{Connection, Redis, errors};
use crate::backends::text;
use crate::options::Purpose;
use crate::remote::{Entries, Kv, Put, Result};

const PUT_IF: &str = include_str!("put_if.lua");

impl Kv for Redis {
    const HAS_CLOCK: bool = true;
    const MAY_FORGET: bool = true;

    async fn list(&self, connection: &mut Connection, area: &str) -> Result<Entries> {
        let area = self.key(area);
        let found = self.read(connection, &area, redis::cmd("HGETALL").arg(&area)).await?;
        let entry = |(key, value): (Vec<u8>, Vec<u8>)| {
            let key = text(&area, key)?;
            let value = text(&format!("{key} of {area}"), value)?;
            Ok((key, value))
        };
        Vec::into_iter(found).map(entry).collect()
    }

    async fn get(
        &self,
        connection: &mut Connection,
        area: &str,
        key: &str,
    ) -> Result<Option<String>> {
        let area = self.key(area);
        let found: Option<_> =
            self.read(connection, &area, redis::cmd("HGET").arg(&area).arg(key)).await?;
        found.map(|value| text(&format!("{key} of {area}"), value)).transpose()
    }

    async fn put_if(&self, connection: &mut Connection, put: &Put) -> Result<bool> {
        if self.purpose == Purpose::Segments {
            self.examine(connection).await?;
        }
        let area = self.key(&put.area);
        let mut call = Cmd::new();
        call.arg(&["EVAL", PUT_IF, "1", &area, &put.key, &put.new]).arg(put.old.as_deref());
        let said: String = about(&area, call.query_async(connection).await)?;
        let done = match said.as_str() {
            "other" => return Ok(false),
            "put" => true,
            "repeated" => false,
            _ => return Err(errors::expires(&area)),
        };
        self.confirm(connection).await?;
        Ok(done)
    }

    async fn doubt(&self, connection: &mut Connection) -> Result<Option<Suspicion>> {
        let (doubts, took_over) = self.examine(connection).await?;
        Ok((!doubts.is_empty()).then(|| Suspicion { why: doubts.join("; "), took_over }))
    }

    async fn now(&self, connection: &mut Connection) -> Result<Option<UnixMillis>> {
        let time = redis::cmd("TIME").query_async(connection).await;
        let (seconds, micros): (u64, u64) = time.map_err(errors::explain)?;
        Ok(Some(UnixMillis(seconds * 1000 + micros / 1000)))
    }
}

impl Redis {
    fn key(&self, area: &str) -> String {
        format!("{}:{area}", self.config.prefix)
    }

    /// The answer to a question about the hash of an area.
    async fn read<T: FromRedisValue>(
        &self,
        connection: &mut Connection,
        area: &str,
        question: &Cmd,
    ) -> Result<T> {
        self.examine(connection).await?;
        let lifetime = redis::cmd("PTTL").arg(area).query_async::<i64>(connection).await;
        if lifetime.map_err(errors::explain)? >= 0 {
            return Err(errors::expires(area));
        }
        about(area, question.query_async(connection).await)
    }
}

/// An error names the key.
fn about<T>(key: &str, answer: RedisResult<T>) -> Result<T> {
    answer.map_err(|error| errors::explain_about(key, error))
}

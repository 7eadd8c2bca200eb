//! Entries as hash fields.

use redis::{Cmd, FromRedisValue, RedisResult};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, Put};

use super::{Connection, Redis, errors};
use crate::backends::text;
use crate::options::Purpose;
use crate::remote::{Entries, Kv, Result};

const PUT_ALL: &str = include_str!("put_all.lua");

impl Kv for Redis {
    const HAS_CLOCK: bool = true;
    const MAY_FORGET: bool = true;

    async fn list(&self, connection: &mut Connection, area: &str) -> Result<Entries> {
        let area = self.key(area);
        let found = self
            .read(connection, &area, redis::cmd("HGETALL").arg(&area))
            .await?;
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
        let found: Option<_> = self
            .read(connection, &area, redis::cmd("HGET").arg(&area).arg(key))
            .await?;
        found
            .map(|value| text(&format!("{key} of {area}"), value))
            .transpose()
    }

    async fn get_all(
        &self,
        connection: &mut Connection,
        area: &str,
        keys: &[String],
    ) -> Result<Entries> {
        let area = self.key(area);
        let found: Vec<Option<Vec<u8>>> = self
            .read(connection, &area, redis::cmd("HMGET").arg(&area).arg(keys))
            .await?;
        let there = keys.iter().zip(found);
        let there = there.filter_map(|(key, value)| Some((key.clone(), value?)));
        let entry = |(key, value)| {
            let value = text(&format!("{key} of {area}"), value)?;
            Ok((key, value))
        };
        there.map(entry).collect()
    }

    async fn put_all(
        &self,
        connection: &mut Connection,
        area: &str,
        puts: &[Put],
    ) -> Result<Vec<bool>> {
        if self.purpose == Purpose::Segments {
            self.examine(connection).await?;
        }
        let area = self.key(area);
        let mut call = Cmd::new();
        call.arg(&["EVAL", PUT_ALL, "1", &area]);
        for Put { key, old, new, .. } in puts {
            let kind = if old.is_some() { "over" } else { "absent" };
            call.arg(&[key, new, kind, old.as_deref().unwrap_or_default()]);
        }
        let said: Vec<String> = about(&area, call.query_async(connection).await)?;
        if said.len() != puts.len() || said.iter().any(|said| said == "expires") {
            return Err(errors::expires(&area));
        }
        if said.iter().any(|said| said != "other") {
            self.confirm(connection).await?;
        }
        Ok(said.iter().map(|said| said == "put").collect())
    }

    async fn doubt(&self, connection: &mut Connection) -> Result<Option<Doubt>> {
        let (doubts, took_over) = self.examine(connection).await?;
        Ok((!doubts.is_empty()).then(|| Doubt::of(doubts.join("; "), took_over)))
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

    /// Reads from the hash of an area.
    async fn read<T: FromRedisValue>(
        &self,
        connection: &mut Connection,
        area: &str,
        question: &Cmd,
    ) -> Result<T> {
        self.examine(connection).await?;
        let lifetime = redis::cmd("PTTL")
            .arg(area)
            .query_async::<i64>(connection)
            .await;
        if lifetime.map_err(errors::explain)? >= 0 {
            return Err(errors::expires(area));
        }
        about(area, question.query_async(connection).await)
    }
}

/// Adds the key to an error.
fn about<T>(key: &str, answer: RedisResult<T>) -> Result<T> {
    let to_do = "not a hash, so it is not a Vesta record; use another prefix= or remove it";
    answer.map_err(|error| errors::explain_about(key, to_do, error))
}

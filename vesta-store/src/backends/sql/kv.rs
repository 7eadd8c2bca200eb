//! Entries in the table `vesta_kv`.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, Put, Writer};

use super::dialect::{Cells, Dialect, Look, Value};
use super::{Sql, errors, explain, pause_before};
use crate::remote::{Entries, Kv, Result};

fn bytes<const N: usize>(texts: [&str; N]) -> [Value; N] {
    texts.map(|text| Value::Bytes(text.as_bytes().into()))
}

fn entries<R: Cells>(rows: &[R]) -> Result<Entries, sqlx::Error> {
    rows.iter()
        .map(|row| Ok((row.bytes(0)?, row.bytes(1)?)))
        .collect()
}

impl<D: Dialect> Sql<D> {
    /// True if the table has not been created yet.
    async fn is_missing(&self, connection: &mut D::Connection) -> Result<bool> {
        Ok(!self.seen.load(Ordering::Relaxed)
            && !self.is_there(connection, &D::STATEMENTS.table).await?)
    }
}

impl<D: Dialect> Kv for Sql<D> {
    const HAS_CLOCK: bool = true;
    const MAY_FORGET: bool = true;

    async fn list(&self, connection: &mut D::Connection, area: &str) -> Result<Entries> {
        if self.is_missing(connection).await? {
            return Ok(Entries::default());
        }
        let found = self
            .run(connection, D::STATEMENTS.list, &bytes([area]))
            .await?;
        entries(&found.rows).map_err(explain::<D>)
    }

    async fn get_all(
        &self,
        connection: &mut D::Connection,
        area: &str,
        keys: &[String],
    ) -> Result<Entries> {
        if self.is_missing(connection).await? {
            return Ok(Entries::default());
        }
        let found = self.dialect.get_many(connection, area, keys).await;
        found.and_then(|rows| entries(&rows)).map_err(explain::<D>)
    }

    async fn get(
        &self,
        connection: &mut D::Connection,
        area: &str,
        key: &str,
    ) -> Result<Option<String>> {
        if self.is_missing(connection).await? {
            return Ok(None);
        }
        let found = self
            .run(connection, D::STATEMENTS.get, &bytes([area, key]))
            .await?;
        found
            .rows
            .first()
            .map(|row| row.bytes(0))
            .transpose()
            .map_err(explain::<D>)
    }

    async fn put_all(
        &self,
        connection: &mut D::Connection,
        area: &str,
        puts: &[Put],
    ) -> Result<Vec<bool>> {
        if self.is_missing(connection).await? {
            self.make(connection, &D::STATEMENTS.table).await?;
        }
        if let [Put { key, old, new, .. }] = puts {
            let done = match old {
                None => {
                    self.run(connection, D::STATEMENTS.insert, &bytes([area, key, new]))
                        .await?
                }
                Some(old) => {
                    self.run(
                        connection,
                        D::STATEMENTS.update,
                        &bytes([new, area, key, old]),
                    )
                    .await?
                }
            };
            return Ok(vec![done.changed > 0]);
        }
        let mut done = BTreeSet::new();
        let (updates, inserts): (Vec<_>, Vec<_>) = puts.iter().partition(|put| put.old.is_some());
        for puts in [inserts, updates]
            .into_iter()
            .filter(|puts| !puts.is_empty())
        {
            let mut tries = 1;
            let keys = loop {
                match self.dialect.put_many(connection, area, &puts).await {
                    Ok(keys) => break keys,
                    Err(error) => tokio::time::sleep(pause_before::<D>(error, &mut tries)?).await,
                }
            };
            done.extend(keys);
        }
        Ok(puts.iter().map(|put| done.contains(&put.key)).collect())
    }

    async fn doubt(&self, connection: &mut D::Connection) -> Result<Option<Doubt>> {
        let look = self.look(connection).await?;
        let Look {
            undone,
            source,
            is_unsettled,
            doubts,
            took_over,
            ..
        } = look;
        if is_unsettled {
            return Err(errors::unsettled());
        }
        let source = source.map(|source| format!("it replicates from {source}"));
        let doubts: Vec<_> = undone.into_iter().chain(source).chain(doubts).collect();
        Ok((!doubts.is_empty()).then(|| Doubt::of(doubts.join("; "), took_over)))
    }

    fn writer(&self) -> Option<Writer> {
        Sql::writer(self).clone()
    }

    async fn now(&self, connection: &mut D::Connection) -> Result<Option<UnixMillis>> {
        let answer = self.run(connection, D::STATEMENTS.now, &[]).await?;
        let millis = answer
            .first()
            .and_then(|row| row.number(0))
            .map_err(explain::<D>)?;
        Ok(millis
            .and_then(|millis| millis.try_into().ok())
            .map(UnixMillis))
    }
}

//! Entries in the table `vesta_kv`.

use std::collections::BTreeSet;

use vesta_service::{Put, Suspicion, UnixMillis};

use super::dialect::{Cells as _, Dialect, Value};
use super::{Sql, explain, pause_before, run};
use crate::remote::{Entries, Kv, Result};

fn bytes<const N: usize>(texts: [&str; N]) -> [Value; N] {
    texts.map(|text| Value::Bytes(text.as_bytes().into()))
}

impl<D: Dialect> Kv for Sql<D> {
    const HAS_CLOCK: bool = true;
    const MAY_FORGET: bool = true;

    async fn list(&self, connection: &mut D::Connection, area: &str) -> Result<Entries> {
        let found = run::<D>(connection, D::STATEMENTS.list, &bytes([area])).await?;
        let entries = found.rows.iter().map(|row| Ok((row.bytes(0)?, row.bytes(1)?)));
        entries.collect::<Result<_, _>>().map_err(explain::<D>)
    }

    async fn get(
        &self,
        connection: &mut D::Connection,
        area: &str,
        key: &str,
    ) -> Result<Option<String>> {
        let found = run::<D>(connection, D::STATEMENTS.get, &bytes([area, key])).await?;
        found.rows.first().map(|row| row.bytes(0)).transpose().map_err(explain::<D>)
    }

    async fn put_all(
        &self,
        connection: &mut D::Connection,
        area: &str,
        puts: &[Put],
    ) -> Result<Vec<bool>> {
        if let [Put { key, old, new }] = puts {
            let done = match old {
                None => {
                    run::<D>(connection, D::STATEMENTS.insert, &bytes([area, key, new])).await?
                }
                Some(old) => {
                    run::<D>(connection, D::STATEMENTS.update, &bytes([new, area, key, old]))
                        .await?
                }
            };
            return Ok(vec![done.changed > 0]);
        }
        let mut done = BTreeSet::new();
        let (updates, inserts): (Vec<_>, Vec<_>) = puts.iter().partition(|put| put.old.is_some());
        for puts in [inserts, updates].into_iter().filter(|puts| !puts.is_empty()) {
            let mut tries = 1;
            let keys = loop {
                match D::put_many(connection, area, &puts).await {
                    Ok(keys) => break keys,
                    Err(error) => tokio::time::sleep(pause_before::<D>(error, &mut tries)?).await,
                }
            };
            done.extend(keys);
        }
        Ok(puts.iter().map(|put| done.contains(&put.key)).collect())
    }

    async fn doubt(&self, connection: &mut D::Connection) -> Result<Option<Suspicion>> {
        let mut doubts = Vec::from_iter(D::inspect(connection).await?);
        let mut took_over = false;
        match D::doubts(connection).await {
            Ok((more, it_did)) => {
                doubts.extend(more);
                took_over = it_did;
            }
            Err(error) if error.is_permanent() => {
                doubts.push(format!("it does not say whether it has replicas: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok((!doubts.is_empty()).then(|| Suspicion { why: doubts.join("; "), took_over }))
    }

    async fn now(&self, connection: &mut D::Connection) -> Result<Option<UnixMillis>> {
        let answer = run::<D>(connection, D::STATEMENTS.now, &[]).await?;
        let millis = answer.first().and_then(|row| row.number(0)).map_err(explain::<D>)?;
        Ok(millis.and_then(|millis| millis.try_into().ok()).map(UnixMillis))
    }
}

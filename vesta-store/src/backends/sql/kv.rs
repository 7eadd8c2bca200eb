//! Entries in the table `vesta_kv`.

use std::sync::atomic::Ordering;

use vesta_service::{KvStore, StoreError, Timing, UnixMillis};

use super::Sql;
use super::dialect::{Cells as _, Dialect, Value, foreign};
use super::errors::Failure;

fn bytes(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| Value::Bytes(text.as_bytes().into())).collect()
}

impl<D: Dialect> KvStore for Sql<D> {
    fn describe(&self) -> String {
        self.shown()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.shared.limit, ..Timing::NETWORK }
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let answer = self.ask(D::STATEMENTS.list, bytes(&[area]))?;
        let entries = answer.rows.iter().map(|row| Ok((row.bytes(0)?, row.bytes(1)?)));
        entries.collect::<Result<_, _>>().map_err(Failure::explain::<D>)
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        let answer = self.ask(D::STATEMENTS.get, bytes(&[area, key]))?;
        answer.rows.first().map(|row| row.bytes(0)).transpose().map_err(Failure::explain::<D>)
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.shared.options.check_put(area, key, old)?;
        match old {
            None => self.inserted(D::STATEMENTS.insert, bytes(&[area, key, new])),
            Some(old) => {
                let values = bytes(&[new, area, key, old]);
                Ok(self.ask(D::STATEMENTS.update, values)?.changed > 0)
            }
        }
    }

    /// As the server was set up when it was last connected to.
    fn may_forget(&self) -> bool {
        self.shared.may_forget.load(Ordering::Relaxed)
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        let answer = self.ask(D::STATEMENTS.now, Vec::new())?;
        let millis = answer.first().and_then(|row| row.number(0)).and_then(|millis| {
            millis.and_then(|it| it.try_into().ok()).ok_or_else(|| foreign("no time"))
        });
        millis.map(|millis| Some(UnixMillis(millis))).map_err(Failure::explain::<D>)
    }
}

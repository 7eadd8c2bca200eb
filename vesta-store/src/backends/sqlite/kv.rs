//! Entries in the table `vesta_kv`.

use std::any::Any;

use rusqlite::{OptionalExtension as _, params};
use vesta_service::{KvStore, StoreError, Timing};

use super::Database;

impl KvStore for Database {
    fn describe(&self) -> String {
        self.shown.clone()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.options.limit(Timing::ONE_HOST), ..Timing::ONE_HOST }
    }

    fn lock(&self, area: &str, key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        self.lock_entry(area, key)
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT name, value FROM vesta_kv WHERE area = ?1";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([area], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT value FROM vesta_kv WHERE area = ?1 AND name = ?2";
            let mut statement = connection.prepare(sql)?;
            Ok(statement.query_row([area, key], |row| row.get(0)).optional()?)
        })
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.options.check_put(area, key, old)?;
        // One statement: it takes the write lock at once, and commits by itself.
        self.ask(|connection| {
            let changed = match old {
                None => connection.execute(
                    "INSERT INTO vesta_kv (area, name, value) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (area, name) DO NOTHING",
                    params![area, key, new],
                )?,
                Some(old) => connection.execute(
                    "UPDATE vesta_kv SET value = ?3 WHERE area = ?1 AND name = ?2 AND value = ?4",
                    params![area, key, new, old],
                )?,
            };
            Ok(changed == 1)
        })
    }
}

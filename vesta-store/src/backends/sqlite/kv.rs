//! Entries in the table `vesta_kv`.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use vesta_service::lease::{FilePlace, KvStore, Put, Secret, StoreError, Timing};

use super::errors::Failure;
use super::group::Job;
use super::{Database, file};

const GET: &str = "SELECT value FROM vesta_kv WHERE area = ?1 AND name = ?2";
const INSERT: &str = "INSERT INTO vesta_kv (area, name, value) VALUES (?1, ?2, ?3) \
     ON CONFLICT (area, name) DO NOTHING";
const UPDATE: &str = "UPDATE vesta_kv SET value = ?3 WHERE area = ?1 AND name = ?2 AND value = ?4";

impl KvStore for Database {
    fn describe(&self) -> String {
        self.shown.clone()
    }

    /// By the file's own name: links lead to the same database.
    fn place(&self) -> String {
        let path = self.path.canonicalize();
        format!("SQLite {}", path.as_deref().unwrap_or(&self.path).display())
    }

    fn timing(&self) -> Timing {
        Timing {
            request_timeout: self.options.limit(Timing::ONE_HOST),
            ..Timing::ONE_HOST
        }
    }

    /// A pool server may serve the file to other hosts, whose windows are those of the network.
    fn usual_window(&self) -> Duration {
        Timing::NETWORK.window
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
            let mut statement = connection.prepare(GET)?;
            Ok(statement
                .query_row([area, key], |row| row.get(0))
                .optional()?)
        })
    }

    fn get_all(&self, area: &str, keys: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        self.ask(|connection| {
            let mut statement = connection.prepare(GET)?;
            let get = |key: &String| {
                let found = statement
                    .query_row([area, key], |row| row.get(0))
                    .optional();
                found
                    .map(|value| value.map(|value| (key.clone(), value)))
                    .transpose()
            };
            Ok(keys.iter().filter_map(get).collect::<Result<_, _>>()?)
        })
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        let put = Put {
            key: key.into(),
            old: old.map(str::to_owned),
            new: new.into(),
            secret: Secret::default(),
        };
        Ok(self.put_all(area, &[put])? == [true])
    }

    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        for Put { key, old, .. } in puts {
            self.options.check_put(area, key, old.as_deref())?;
        }
        self.group.put(area, puts, |jobs| {
            self.ask(|connection| write(connection, jobs))
        })
    }

    fn file_place(&self) -> Result<Option<FilePlace>, StoreError> {
        file::place(&self.path).map(Some)
    }

    fn namespaces(&self) -> Result<Option<Vec<String>>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT DISTINCT substr(area, 7) FROM vesta_kv WHERE area LIKE 'lease/%'";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(Some(rows.collect::<Result<_, _>>()?))
        })
    }
}

/// Writes the changes of several callers in one transaction. A change whose entry is not as expected does not keep the
/// others from taking effect.
fn write(connection: &mut Connection, jobs: &[Arc<Job>]) -> Result<Vec<Vec<bool>>, Failure> {
    let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut insert, mut update) = (all.prepare(INSERT)?, all.prepare(UPDATE)?);
    let mut put = |area: &str, Put { key, old, new, .. }: &Put| {
        let changed = match old {
            None => insert.execute(params![area, key, new])?,
            Some(old) => update.execute(params![area, key, new, old])?,
        };
        Ok(changed == 1)
    };
    let mut done = |Job { area, puts, .. }: &Job| puts.iter().map(|it| put(area, it)).collect();
    let done = jobs
        .iter()
        .map(|job| done(job))
        .collect::<rusqlite::Result<_>>()?;
    drop((insert, update));
    all.commit()?;
    Ok(done)
}

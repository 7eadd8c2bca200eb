//! Table of processes whose machine ID is used only once: uid-generator's `WORKER_NODE`.

use vesta_service::lease::{KvStore, StoreError};
use vesta_service::options::WorkerNodeStore;

use super::dialect::{Cells as _, Dialect, Value};
use super::{Sql, explain};
use crate::remote::Remote;

/// Column size, as created by uid-generator.
const HOST_CHARS: usize = 64;

impl<D: Dialect> WorkerNodeStore for Remote<Sql<D>> {
    fn describe(&self) -> String {
        self.shown().into()
    }

    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError> {
        let values = vec![Value::Text(fitted(host)), Value::Text(pid.to_string())];
        let answer = self.run(D::STATEMENTS.insert_node, values)?;
        let made = answer.made().map_err(explain::<D>)?;
        let id = made.ok_or_else(|| {
            StoreError::permanent(
                "WORKER_NODE made no ID: its sequence is behind the IDs of its rows; set it above them",
            )
        })?;
        id.try_into().map_err(|_| {
            StoreError::permanent(format!(
                "WORKER_NODE made the ID {id}, which is negative; correct it"
            ))
        })
    }

    fn highest(&self) -> Result<u64, StoreError> {
        let answer = self.run(D::STATEMENTS.highest_node, Vec::new())?;
        let highest = answer
            .first()
            .and_then(|row| row.number(0))
            .map_err(explain::<D>)?;
        highest
            .unwrap_or_default()
            .try_into()
            .map_err(|_| StoreError::permanent("the IDs in WORKER_NODE are negative; correct them"))
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(KvStore::doubt(self)?.map(|doubt| doubt.why))
    }
}

/// The longest prefix of the name that fits the column.
fn fitted(host: &str) -> String {
    host.chars()
        .filter(|c| *c != '\0')
        .take(HOST_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_host_name_is_truncated_between_characters() {
        assert_eq!(fitted("a\0b"), "ab");
        assert_eq!(fitted(&"é".repeat(300)).chars().count(), HOST_CHARS);
    }
}

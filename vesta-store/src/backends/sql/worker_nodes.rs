//! The table of processes whose machine ID is used once: uid-generator's `WORKER_NODE`.

use vesta_service::{StoreError, WorkerNodeStore};

use super::Sql;
use super::dialect::{Cells as _, Dialect, Value, foreign};
use super::errors::Failure;
use crate::OpenError;

/// The size of the column, as uid-generator made it.
const HOST_CHARS: usize = 64;

impl<D: Dialect> WorkerNodeStore for Sql<D> {
    fn describe(&self) -> String {
        self.shown()
    }

    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError> {
        let values = vec![Value::Text(fitted(host)), Value::Text(pid.to_string())];
        let answer = self.ask(D::STATEMENTS.insert_node, values)?;
        let made = answer.made().map_err(Failure::explain::<D>)?;
        made.and_then(|id| id.try_into().ok()).ok_or_else(|| {
            StoreError::permanent(format!(
                "WORKER_NODE has made the ID {made:?}, which is no number"
            ))
        })
    }
}

impl<D: Dialect> Sql<D> {
    /// The number that was given out last.
    pub(crate) fn highest_node(&self) -> Result<Option<u64>, OpenError> {
        self.once(|database| {
            let answer = database.run(D::STATEMENTS.highest_node, Vec::new())?;
            let Some(highest) = answer.first()?.number(0)? else { return Ok(None) };
            let negative = |_| foreign(&format!("the number {highest}"));
            u64::try_from(highest).map(Some).map_err(negative)
        })
    }
}

/// As much of the name as the column takes.
fn fitted(host: &str) -> String {
    host.chars().filter(|c| *c != '\0').take(HOST_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_host_name_is_cut_between_characters() {
        assert_eq!(fitted("a\0b"), "ab");
        assert_eq!(fitted(&"é".repeat(300)).chars().count(), HOST_CHARS);
    }
}

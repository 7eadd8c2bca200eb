//! Tokens of Tinyid's clients, each valid for some tags. Read at the start and once a minute, and kept as
//! digests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::RwLock;
use vesta_service::lease::StoreError;
use vesta_store::TinyidStore;

use vesta_net::sha256;

/// Intervals between two reads of the table, after a success and after a failure.
const EVERY: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(1);

/// The tokens in a table.
#[derive(Debug)]
pub struct TinyidTokens {
    table: Arc<Table>,
    /// Stops the reader thread when dropped.
    _reader: Sender<()>,
}

struct Table {
    store: Arc<dyn TinyidStore>,
    /// Tags by token digest; `None` until the table has been read.
    known: RwLock<Option<Known>>,
}

type Known = HashMap<[u8; 32], HashSet<String>>;

impl TinyidTokens {
    /// Reads the tokens and keeps them up to date. If the database is unreachable, callers wait for it; this
    /// function does not.
    ///
    /// # Errors
    /// A permanent [`StoreError`] if the table does not exist or cannot be read.
    pub(crate) fn start(store: Arc<dyn TinyidStore>) -> Result<Self, StoreError> {
        let table = Arc::new(Table {
            store,
            known: RwLock::default(),
        });
        match table.read() {
            Err(error) if error.is_permanent() => {
                let missing = format!("the tokens of Tinyid's clients (tiny_id_token): {error}");
                return Err(StoreError::permanent(missing));
            }
            _ => {}
        }
        let (reader, ended) = channel::<()>();
        let reading = Arc::clone(&table);
        let failing = table.known.read().is_none();
        let work = move || read_again(&ended, [EVERY, AGAIN], failing, || reading.read());
        let started = thread::Builder::new()
            .name("vesta-tokens".to_owned())
            .spawn(work);
        started.map_err(|error| StoreError::unavailable("cannot start a thread", error))?;
        Ok(Self {
            table,
            _reader: reader,
        })
    }

    /// True if a token is valid for a tag. `None` if the tokens have not been read yet.
    pub fn allows(&self, token: &str, tag: &str) -> Option<bool> {
        let known = self.table.known.read();
        let known = known.as_ref()?;
        if token.is_empty() || tag.is_empty() {
            return Some(false);
        }
        // Looked up by digest: the time reveals nothing about the token.
        Some(
            known
                .get(&sha256(token.as_bytes()))
                .is_some_and(|tags| tags.contains(tag)),
        )
    }
}

/// Reads until the sender is dropped, after the first of these pauses, or the second after a failure.
fn read_again(
    ended: &Receiver<()>,
    [every, again]: [Duration; 2],
    mut failing: bool,
    mut read: impl FnMut() -> Result<(), StoreError>,
) {
    let timeout = Err(RecvTimeoutError::Timeout);
    while ended.recv_timeout(if failing { again } else { every }) == timeout {
        let failed = read().err();
        if let (Some(error), false) = (&failed, failing) {
            tracing::warn!(%error, "the tokens of Tinyid's clients cannot be read");
        }
        failing = failed.is_some();
    }
}

impl Table {
    fn read(&self) -> Result<(), StoreError> {
        let mut known = Known::new();
        for (token, tag) in self.store.tokens()? {
            known
                .entry(sha256(token.as_bytes()))
                .or_default()
                .insert(tag);
        }
        *self.known.write() = Some(known);
        Ok(())
    }
}

/// Omits the tokens.
impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.known.read().as_ref().map(HashMap::len);
        f.debug_struct("Table")
            .field("tokens", &count)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_reread_sooner_after_a_failure_until_dropped() {
        const LONG: Duration = Duration::from_secs(3600);
        let (reader, ended) = channel::<()>();
        let mut reader = Some(reader);
        let mut answers = vec![Ok(()), Ok(()), Err(()), Err(())];
        // After a success it would wait for an hour.
        read_again(&ended, [LONG, Duration::from_millis(1)], true, || {
            let answer = answers.pop().expect("one too many");
            if answer.is_ok() {
                reader = None;
            }
            answer.map_err(|()| StoreError::permanent("no"))
        });
        assert_eq!(
            answers,
            [Ok(())],
            "after the first success it was stopped, and did not wait"
        );
    }
}

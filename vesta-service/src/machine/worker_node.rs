//! Single-use machine IDs.

use std::fmt;
use std::time::Duration;

use vesta_intf::IdMeta;

use crate::clock::Clock;
use crate::error::{BuildError, StoreError, ask_store};
use crate::lease::Doubt;
use crate::wait::retry_pause;

/// A table with a row for each start of a process, whose number becomes the machine ID, as in
/// Baidu's uid-generator. A number is never reused, so nothing has to be remembered or renewed; but
/// numbers run out, which requires a layout with a wide machine field.
///
/// The calls block, and are made at start-up only.
pub trait WorkerNodeStore: Send + Sync + fmt::Debug {
    /// Display name, without secrets.
    fn describe(&self) -> String;

    /// Inserts a row and returns its number, which no other row has ever had.
    ///
    /// # Errors
    /// [`StoreError`] if it is unknown whether a row was inserted. A retry may waste a number.
    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError>;

    /// The highest number of all rows; 0 without rows. Called first, so that a start does not take a number
    /// if none is left.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn highest(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// The reason why the store, in its current set-up, may lose an acknowledged row: its number
    /// would then be handed out again, and IDs would repeat as long as both owners run. Like
    /// [`KvStore::doubt`](crate::lease::KvStore::doubt).
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}

/// Takes a single-use machine ID. Retries an unreachable table until the claim times out.
pub(crate) fn use_up_number(
    nodes: &dyn WorkerNodeStore,
    meta: &IdMeta,
    clock: &dyn Clock,
    claim_timeout: Duration,
) -> Result<u64, BuildError> {
    let (host, pid, store) = (crate::os::host_name(), std::process::id(), nodes.describe());
    let deadline = clock.monotonic().saturating_add(claim_timeout);
    let machines = meta.machines();
    let next = || match nodes.highest()? {
        highest if highest >= *machines.end() => Ok(highest.saturating_add(1)),
        _ => nodes.insert(&host, pid),
    };
    let mut failures = 0;
    let number = loop {
        match ask_store(next) {
            Ok(number) => break number,
            Err(source) if source.is_permanent() || clock.monotonic() >= deadline => {
                return Err(BuildError::Store { store, source });
            }
            Err(error) => {
                tracing::warn!(store, %error, "the store does not answer; trying again");
                clock.park(retry_pause(failures));
                failures += 1;
            }
        }
    };
    // The number itself is used even in a region: then it is unique whatever the other processes have configured.
    if !machines.contains(&number) {
        return Err(BuildError::WorkerNodeOutside {
            store,
            number,
            machines,
        });
    }
    Ok(number)
}

/// The reason why numbers of a table may be handed out again, from the settings or else from the
/// table. No distance in time protects against that, so the service can only warn.
pub(crate) fn doubt(
    nodes: &dyn WorkerNodeStore,
    doubted: Option<bool>,
    clock: &dyn Clock,
) -> Option<Doubt> {
    let why = match doubted {
        Some(false) => None,
        Some(true) => Some("the settings say so".into()),
        None => ask_store(|| nodes.doubt())
            .unwrap_or_else(|error| Some(format!("the store did not answer: {error}"))),
    }?;
    tracing::warn!(
        store = nodes.describe(),
        why,
        "the store may forget which numbers were used once, and IDs repeat if it hands them out again"
    );
    let since = clock.wall();
    Some(Doubt {
        since,
        reach: since,
        ..Doubt::of(why, false)
    })
}

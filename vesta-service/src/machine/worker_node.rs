//! Machine IDs that are used once.

use std::fmt;
use std::time::Duration;

use vesta_intf::IdMeta;

use crate::clock::Clock;
use crate::error::{BuildError, StoreError, ask_store};
use crate::lease::Doubt;
use crate::wait::retry_pause;

/// A table with a row for each start of a process, whose number becomes the machine ID: the way of
/// Baidu's uid-generator. A number is never used again, so nothing has to be remembered and nothing
/// renewed; but numbers run out, which needs a layout with a wide machine field.
///
/// The calls block, and come from start-up only.
pub trait WorkerNodeStore: Send + Sync + fmt::Debug {
    /// Display name, without secrets.
    fn describe(&self) -> String;

    /// Inserts a row and returns its number, which no other row ever had.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether a row was inserted. Trying again may waste a number.
    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError>;

    /// The highest number that a row has; 0 without a row. Asked first, so that a start for which no number
    /// is left takes none.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn highest(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Why the store, as it is set up now, may lose a row that it acknowledged: its number would then
    /// be handed out again, and IDs repeat as long as both owners run. As
    /// [`KvStore::doubt`](crate::lease::KvStore::doubt).
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}

/// A machine ID that is used once. A table that does not answer is asked until the claim times out.
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
    // The number itself, in a region too: then it is nobody else's, whatever the others have configured.
    if !machines.contains(&number) {
        return Err(BuildError::WorkerNodeOutside {
            store,
            number,
            machines,
        });
    }
    Ok(number)
}

/// Why numbers of a table may be handed out again, as the operator or else the table says. No distance
/// in time protects from that, so all there is to do is to tell.
pub(crate) fn doubt(
    nodes: &dyn WorkerNodeStore,
    may_forget: Option<bool>,
    clock: &dyn Clock,
) -> Option<Doubt> {
    let why = match may_forget {
        Some(false) => None,
        Some(true) => Some("the settings say so".into()),
        None => ask_store(|| nodes.doubt())
            .unwrap_or_else(|error| Some(format!("it does not say: {error}"))),
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
        window: Duration::ZERO,
        why,
    })
}

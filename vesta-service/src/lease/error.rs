//! Errors of stores and of claims, each with what to do about it.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use vesta_intf::{IdError, UnixMillis};

/// A request to a store that was not answered, or whose answer makes no sense.
#[derive(Debug, Clone)]
pub struct StoreError {
    message: Box<str>,
    permanent: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// The store did not answer, or not in time: trying again can help. For a change it is not known
    /// whether it happened.
    pub fn unavailable(
        message: impl Into<Box<str>>,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self { message: message.into(), permanent: false, source: Some(Arc::new(source)) }
    }

    /// Trying again cannot help: the store is damaged, foreign, or refuses for good.
    pub fn permanent(message: impl Into<Box<str>>) -> Self {
        Self { message: message.into(), permanent: true, source: None }
    }

    /// True if trying again is pointless.
    pub const fn is_permanent(&self) -> bool {
        self.permanent
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn Error + 'static))
    }
}

/// Asks a store. A panic of it counts as a request without an answer: the thread that keeps a lease,
/// or fetches for a tag, must not end with it.
pub(crate) fn ask_store<T>(
    question: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(question)).unwrap_or_else(|_| {
        Err(StoreError::unavailable("the store panicked", std::io::Error::other("see above")))
    })
}

/// The reason why no machine ID was claimed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClaimError {
    /// The store did not answer for as long as it was asked, or it refused for good.
    Store {
        /// The store, without secrets.
        store: String,
        /// Its error.
        source: StoreError,
    },
    /// The namespace is for another layout.
    Fingerprint {
        /// The namespace.
        namespace: String,
        /// The layout it is for.
        theirs: String,
        /// The layout that was configured.
        ours: String,
    },
    /// No machine ID in question is free.
    Exhausted {
        /// Their holders: machine ID, host, process.
        holders: Vec<(u64, String, u32)>,
        /// The machine IDs in question.
        range: RangeInclusive<u64>,
        /// Of those that nobody holds, if there are any: up to when the first was used, which is too
        /// far ahead of the clock, and what the clock shows.
        ahead: Option<(UnixMillis, UnixMillis)>,
    },
    /// The fixed machine ID was used up to a moment too far ahead of the clock.
    ClockBehind {
        /// The machine ID.
        machine: u64,
        /// Up to when it was used.
        used_until: UnixMillis,
        /// The clock's time.
        now: UnixMillis,
    },
    /// This host's clock and the store's differ too much.
    ClocksDiffer {
        /// This host's.
        ours: UnixMillis,
        /// The store's.
        theirs: UnixMillis,
    },
    /// The table of worker nodes gave a number beyond the layout's machine field.
    WorkerNodesUsedUp {
        /// The table's store, without secrets.
        store: String,
        /// The number.
        number: u64,
        /// The layout's last machine ID.
        max: u64,
    },
    /// The store does not know what it once acknowledged to this host: it was wiped, restored, lost
    /// changes in a fail-over, or is another one.
    StoreRegressed {
        /// The store, without secrets.
        store: String,
        /// The namespace.
        namespace: String,
        /// The machine ID that this host remembers.
        machine: u64,
        /// Up to when it was reserved.
        used_until: UnixMillis,
    },
    /// Somebody deleted the record of the machine ID, or put another one in its place.
    RecordLost {
        /// The store, without secrets.
        store: String,
        /// The namespace.
        namespace: String,
        /// The machine ID.
        machine: u64,
    },
    /// The clock stands before the layout's epoch or after its end.
    Time(IdError),
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { store, source } => write!(f, "{store}: {source}"),
            Self::Fingerprint { namespace, theirs, ours } => write!(
                f,
                "namespace `{namespace}` is for layout {theirs}, but {ours} is configured; use \
                 another namespace for another layout"
            ),
            Self::Exhausted { holders, range, ahead: None } => {
                write!(f, "every machine ID of {} to {} is in use:", range.start(), range.end())?;
                list(f, holders)?;
                f.write_str(" stop one, or widen machine.range")
            }
            Self::Exhausted { holders, range, ahead: Some((used_until, now)) } => {
                let (first, last) = (range.start(), range.end());
                write!(f, "no machine ID of {first} to {last} can be had:")?;
                if !holders.is_empty() {
                    f.write_str(" in use are")?;
                    list(f, holders)?;
                    f.write_str(" and of the others")?;
                }
                write!(
                    f,
                    " the first was used up to {used_until}, but the clock shows {now}; set the \
                     clock, or widen machine.range"
                )
            }
            Self::ClockBehind { machine, used_until, now } => write!(
                f,
                "machine ID {machine} was used up to {used_until}, but the clock shows {now}; set \
                 the clock, or use another machine ID"
            ),
            Self::ClocksDiffer { ours, theirs } => write!(
                f,
                "this host's clock shows {ours}, the store's {theirs}; synchronise them (NTP)"
            ),
            Self::WorkerNodesUsedUp { store, number, max } => write!(
                f,
                "{store}: the next worker node has number {number}, but the layout's machine IDs end \
                 at {max} and each is used once; use a layout with more machine bits, or the \
                 strategy `lease`, which uses numbers again"
            ),
            Self::StoreRegressed { store, namespace, machine, used_until } => write!(
                f,
                "{store} has forgotten that machine ID {machine} of namespace `{namespace}` was \
                 reserved up to {used_until}: it was wiped, restored from a backup, lost changes in \
                 a fail-over, or is another store; make sure that no process uses the old one, then \
                 raise its floor (`vesta-server store raise-floor`)"
            ),
            Self::RecordLost { store, namespace, machine } => write!(
                f,
                "{store}: the record of machine ID {machine} of namespace `{namespace}` was deleted \
                 or replaced, so nobody knows up to where it was used; make sure that no process \
                 uses it, then create it anew (`vesta-server store repair {machine}`)"
            ),
            Self::Time(error) => error.fmt(f),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, holders: &[(u64, String, u32)]) -> fmt::Result {
    for (machine, host, pid) in holders.iter().take(10) {
        write!(f, " {machine} by {host} (pid {pid}),")?;
    }
    if holders.len() > 10 {
        write!(f, " … {} in all;", holders.len())?;
    }
    Ok(())
}

impl Error for ClaimError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exhausted(count: u64, ahead: Option<(UnixMillis, UnixMillis)>) -> String {
        let holders = (0..count).map(|machine| (machine, format!("h{machine}"), 1)).collect();
        ClaimError::Exhausted { holders, range: 0..=11, ahead }.to_string()
    }

    #[test]
    fn of_many_holders_the_first_ten_are_named() {
        let ten = "0 by h0 (pid 1), 1 by h1 (pid 1), 2 by h2 (pid 1), 3 by h3 (pid 1), 4 by h4 \
                   (pid 1), 5 by h5 (pid 1), 6 by h6 (pid 1), 7 by h7 (pid 1), 8 by h8 (pid 1), 9 \
                   by h9 (pid 1),";
        for (count, more) in [(10, ""), (11, " … 11 in all;")] {
            let expected = format!(
                "every machine ID of 0 to 11 is in use: {ten}{more} stop one, or widen machine.range"
            );
            assert_eq!(exhausted(count, None), expected);
        }
    }

    #[test]
    fn those_that_wait_for_the_clock_are_told_from_those_in_use() {
        let ahead = Some((UnixMillis(1_700_000_000_000), UnixMillis(1_600_000_000_000)));
        let the_first = "the first was used up to 2023-11-14T22:13:20.000Z, but the clock shows \
                         2020-09-13T12:26:40.000Z; set the clock, or widen machine.range";
        assert_eq!(
            exhausted(0, ahead),
            format!("no machine ID of 0 to 11 can be had: {the_first}")
        );
        let one = "in use are 0 by h0 (pid 1), and of the others";
        assert_eq!(
            exhausted(1, ahead),
            format!("no machine ID of 0 to 11 can be had: {one} {the_first}")
        );
    }

    #[test]
    fn a_stores_error_is_the_cause() {
        let source = StoreError::permanent("it is damaged");
        let error = ClaimError::Store { store: "a store".into(), source };
        assert_eq!(error.source().map(ToString::to_string), Some("it is damaged".into()));
        assert_eq!(error.to_string(), "a store: it is damaged");
        assert!(ClaimError::Time(IdError::TimeExhausted).source().is_none());
    }
}

//! Errors of stores, and errors of building a service, each with its remedy.

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use vesta_intf::{IdError, UnixMillis};

/// Begins each text about two stores behind one URL, for people and alarms.
pub const TWO_STORES: &str = "TWO_STORES";

/// A store request that was not answered, or whose reply makes no sense.
#[derive(Debug, Clone)]
pub struct StoreError {
    message: Box<str>,
    kind: Kind,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Classes of [`StoreError`] by what the caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unavailable,
    Permanent,
    Replaced,
    TwoStores,
}

impl StoreError {
    /// The store did not answer, or not in time: a retry can help. For a write the outcome is unknown.
    pub fn unavailable(
        message: impl Into<Box<str>>,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..Self::of(Kind::Unavailable, message.into())
        }
    }

    /// An operator has to act: the store is damaged, foreign, or refuses. A starting process gives
    /// up. A process that holds a machine ID continues up to its bound and retries.
    pub fn permanent(message: impl Into<Box<str>>) -> Self {
        Self::of(Kind::Permanent, message.into())
    }

    /// The file behind the store was replaced or is no longer writable, so nothing that this process
    /// writes there protects its IDs: an owner stops for good.
    pub fn replaced(message: impl Into<Box<str>>) -> Self {
        Self::of(Kind::Replaced, message.into())
    }

    /// Another, older store stands behind the same URL, so this one hands out machine IDs a second time: an owner stops
    /// for good.
    pub fn two_stores(why: impl fmt::Display) -> Self {
        Self::of(Kind::TwoStores, format!("{TWO_STORES}: {why}").into())
    }

    fn of(kind: Kind, message: Box<str>) -> Self {
        let source = None;
        Self {
            message,
            kind,
            source,
        }
    }

    /// True if only an operator can help.
    pub fn is_permanent(&self) -> bool {
        self.kind != Kind::Unavailable
    }

    /// True if an owner must stop for good.
    pub fn is_replaced(&self) -> bool {
        matches!(self.kind, Kind::Replaced | Kind::TwoStores)
    }

    /// True for the errors of [`two_stores`](Self::two_stores).
    pub fn is_two_stores(&self) -> bool {
        self.kind == Kind::TwoStores
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

/// Sends a request to a store. A panic in the store counts as an unanswered request: it must not end
/// the thread that keeps a lease or fetches for a tag.
pub fn ask_store<T>(question: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(question)).unwrap_or_else(|_| {
        Err(StoreError::unavailable(
            "the store panicked",
            std::io::Error::other("see above"),
        ))
    })
}

/// Reason why a service could not be built. Every variant names the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting is wrong.
    Setting(IdError),
    /// The operating system refused.
    Io {
        /// The action that failed, with the file or folder.
        doing: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another service of this process holds the fixed machine ID.
    BuiltTwice {
        /// The namespace.
        namespace: String,
        /// The machine ID.
        machine: u64,
    },
    /// The state file of a fixed machine ID is in use by another process.
    InUse(PathBuf),
    /// Another process of this host holds the fixed machine ID, with another state directory.
    InUseHere {
        /// The namespace.
        namespace: String,
        /// The machine ID.
        machine: u64,
        /// Users of its processes, for people.
        users: Vec<String>,
    },
    /// Neither slot of the state file can be read.
    Damaged(PathBuf),
    /// It is unknown which segment numbers this host was given.
    DamagedEnds {
        /// The file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// The state file belongs to another machine ID, namespace or layout.
    Foreign {
        /// The file.
        path: PathBuf,
        /// The identity recorded in it.
        belongs_to: String,
        /// The expected identity.
        wanted: String,
    },
    /// The store did not answer within the timeout, or it refused permanently.
    Store {
        /// The store, without secrets.
        store: String,
        /// Its error.
        source: StoreError,
    },
    /// The namespace belongs to another layout, or another region.
    Fingerprint {
        /// The namespace.
        namespace: String,
        /// The layout it belongs to.
        theirs: String,
        /// The layout that was configured.
        ours: String,
    },
    /// No machine ID in the range is free.
    Exhausted {
        /// Their owners: machine ID, host, process.
        holders: Vec<(u64, String, u32)>,
        /// The machine IDs that were considered.
        range: RangeInclusive<u64>,
        /// If some of them have no owner: the moment up to which the first of those was used, which
        /// is too far ahead of the clock, and the clock's time.
        ahead: Option<(UnixMillis, UnixMillis)>,
        /// Users of this host whose processes hold some of them outside of this pool, for people.
        users: Vec<String>,
    },
    /// The fixed machine ID was used up to a moment that is too far ahead of the clock.
    ClockBehind {
        /// The machine ID.
        machine: u64,
        /// The moment up to which it was used.
        used_until: UnixMillis,
        /// The clock's time.
        now: UnixMillis,
    },
    /// The namespace's floor lies too far ahead of the clock: no machine ID may be used before it.
    FloorAhead {
        /// The namespace.
        namespace: String,
        /// The moment of the floor; the end of the layout, if it lies beyond.
        floor: UnixMillis,
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
    /// The clock jumped ahead by more than an hour while no machine ID was held, and the store has no
    /// clock that confirms it.
    ClockSuspect,
    /// The table of worker nodes returned a number outside the machine IDs of the layout or its region.
    WorkerNodeOutside {
        /// The table's store, without secrets.
        store: String,
        /// The number.
        number: u64,
        /// The machine IDs.
        machines: RangeInclusive<u64>,
    },
    /// The store does not know what it once acknowledged to this host: it was wiped, restored, lost
    /// changes in a fail-over, or is a different store.
    StoreRegressed {
        /// The store, without secrets.
        store: String,
        /// The namespace.
        namespace: String,
        /// The machine ID that this host remembers.
        machine: u64,
        /// The moment up to which it was reserved.
        used_until: UnixMillis,
    },
    /// The record of the machine ID was deleted or replaced.
    RecordLost {
        /// The store, without secrets.
        store: String,
        /// The namespace.
        namespace: String,
        /// The machine ID.
        machine: u64,
    },
    /// The clock is before the layout's epoch or after its end.
    Time(IdError),
}

impl BuildError {
    /// A failure of the operating system while doing something.
    #[doc(hidden)]
    pub fn io(doing: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            doing: doing.into(),
            source,
        }
    }

    /// `true` if a setting has to change: a retry with the same settings cannot help.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Setting(_)
            | Self::Fingerprint { .. }
            | Self::Time(IdError::TimeExhausted)
            | Self::BuiltTwice { .. }
            | Self::InUse(_)
            | Self::InUseHere { .. }
            | Self::WorkerNodeOutside { .. }
            | Self::Damaged(_)
            | Self::DamagedEnds { .. }
            | Self::Foreign { .. } => true,
            // A pool can have a free machine ID later; a machine ID chosen by its number stays in use.
            Self::Exhausted {
                range, ahead: None, ..
            } => range.start() == range.end(),
            Self::Store { source, .. } => source.is_permanent(),
            _ => false,
        }
    }
}

impl From<IdError> for BuildError {
    fn from(error: IdError) -> Self {
        Self::Setting(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(error) | Self::Time(error) => error.fmt(f),
            Self::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::BuiltTwice { namespace, machine } => write!(
                f,
                "machine ID {machine} of namespace `{namespace}` is in use by another service of this very process; build \
                 one and share it (an `Arc`), or give this one another machine ID or namespace"
            ),
            Self::InUse(path) => write!(
                f,
                "the machine ID of state file {} is in use by another process; give this one \
                 another machine ID, or stop the other",
                path.display()
            ),
            Self::InUseHere { namespace, machine, users } => write!(
                f,
                "machine ID {machine} of namespace `{namespace}` is in use on this host by another process \
                 (another user or state directory: {}); give this one another machine ID or namespace, or stop the other",
                users.join(", ")
            ),
            Self::Damaged(path) => write!(
                f,
                "state file {} is damaged or empty, so it is unknown how far its machine ID was \
                 used; restore the file, or use a machine ID that was never used in this namespace, \
                 or delete the file only if no ID was made with this machine ID in the last minute \
                 and the clock has not been set back since",
                path.display()
            ),
            Self::DamagedEnds { path, why } => write!(
                f,
                "{} cannot be used: {why}; it records which segment numbers this host was given, so that \
                 a database that lost some is detected; restore it, or delete it if the database \
                 has not been rolled back since",
                path.display()
            ),
            Self::Foreign { path, belongs_to, wanted } => write!(
                f,
                "state file {} belongs to {belongs_to}, not to {wanted}; use another state_dir, or \
                 the settings it was made with",
                path.display()
            ),
            Self::Store { store, source } => write!(f, "{store}: {source}"),
            Self::Fingerprint { namespace, theirs, ours } => write!(
                f,
                "namespace `{namespace}` is for layout {theirs}, but {ours} is configured; use \
                 another namespace for another layout, and another store for another region"
            ),
            // The store shows no holder of some machine IDs, and still they are not free.
            Self::Exhausted { holders, range, ahead: None, users }
                if !users.is_empty() && (holders.len() as u64) <= range.end() - range.start() => write!(
                f,
                "every machine ID of {} to {} is in use:{} and of the others each that was tried belongs to {} on \
                 this host; end that process (`ss -xap | grep vesta/lease`), or set machine.store to a store on the \
                 network, which needs no names on this host",
                range.start(),
                range.end(),
                list(holders),
                users.join(", ")
            ),
            Self::Exhausted { holders, range, ahead, .. } => exhausted(f, holders, range, ahead.as_ref()),
            Self::ClockBehind { machine, used_until, now } => write!(
                f,
                "machine ID {machine} was used up to {used_until}, but the clock shows {now}; set \
                 the clock, or use another machine ID"
            ),
            Self::FloorAhead { namespace, floor, now } => write!(
                f,
                "the floor of namespace `{namespace}` lies at {floor}, but the clock shows {now}: no machine ID may be \
                 used before that; wait, set the clock, or if the floor is wrong, use another namespace"
            ),
            Self::ClocksDiffer { ours, theirs } => write!(
                f,
                "this host's clock shows {ours}, the store's {theirs}; synchronise them (NTP)"
            ),
            Self::ClockSuspect => f.write_str(
                "the clock jumped ahead by more than an hour and is not believed yet; correct it, restart \
                 to accept it, or wait 10 minutes",
            ),
            Self::WorkerNodeOutside { store, number, machines } => {
                worker_node_outside(f, store, *number, machines)
            }
            Self::StoreRegressed { store, namespace, machine, used_until } => write!(
                f,
                "{store} has forgotten that machine ID {machine} of namespace `{namespace}` was \
                 reserved up to {used_until}: it was wiped, restored from a backup, lost changes in \
                 a fail-over, or is another store; make sure that no process uses the old one, then \
                 raise its floor (`vesta store raise-floor`)"
            ),
            Self::RecordLost { store, namespace, machine } => write!(
                f,
                "{store}: the record of machine ID {machine} of namespace `{namespace}` was deleted \
                 or replaced, so it is unknown how far it was used; make sure that no process \
                 uses it, then recreate it (`vesta store repair {machine}`)"
            ),
        }
    }
}

/// All machine IDs are in use or ahead of the clock; for one machine ID, or several.
fn exhausted(
    f: &mut fmt::Formatter<'_>,
    holders: &[(u64, String, u32)],
    range: &RangeInclusive<u64>,
    ahead: Option<&(UnixMillis, UnixMillis)>,
) -> fmt::Result {
    let (first, last, held) = (range.start(), range.end(), list(holders));
    let (every, which, way_out) = if first == last {
        (
            format!("machine ID {first}"),
            "that process",
            // A container's next process may have the same name and number, so this is no proof.
            match holders {
                [(_, host, pid)]
                    if (host, *pid) == (&crate::os::host_name(), std::process::id()) =>
                {
                    "if this program built it twice, build one and share it (an `Arc`)"
                }
                _ => "use another machine ID",
            },
        )
    } else {
        (
            format!("every machine ID of {first} to {last}"),
            "one",
            "widen machine.range",
        )
    };
    let Some((used_until, now)) = ahead else {
        return write!(f, "{every} is in use:{held} stop {which}, or {way_out}");
    };
    let [are, others] = if held.is_empty() {
        ["", ""]
    } else {
        [" in use are", " and of the others"]
    };
    write!(
        f,
        "no machine ID of {first} to {last} is available:{are}{held}{others} the first was used up to \
         {used_until}, but the clock shows {now}; set the clock, or {way_out}"
    )
}

/// The number is below the region's machine IDs, or beyond their end.
fn worker_node_outside(
    f: &mut fmt::Formatter<'_>,
    store: &str,
    number: u64,
    machines: &RangeInclusive<u64>,
) -> fmt::Result {
    let (first, last) = (machines.start(), machines.end());
    write!(f, "{store}: the next worker node has number {number}, but ")?;
    if number < *first {
        write!(
            f,
            "this region's machine IDs begin with {first}; start the table's numbers there, or \
             use the region's own table"
        )
    } else {
        write!(
            f,
            "the machine IDs end at {last} and each is used once; use a layout with more machine bits, or \
             the strategy `lease`, which reuses numbers"
        )
    }
}

fn list(holders: &[(u64, String, u32)]) -> String {
    let first = holders.iter().take(10);
    let list = first.map(|(machine, host, pid)| format!(" {machine} by {host} (pid {pid}),"));
    let more = (holders.len() > 10).then(|| format!(" … {} in all;", holders.len()));
    list.chain(more).collect()
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Display shows the whole error; its source is next.
            Self::Setting(error) => error.source(),
            Self::Io { source, .. } => Some(source),
            Self::Store { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_about_machine_ids_in_use_fits_a_fixed_one() {
        let said_of = |holder, range| {
            BuildError::Exhausted {
                holders: vec![holder],
                range,
                ahead: None,
                users: Vec::new(),
            }
            .to_string()
        };
        let said = |range| said_of((7, "a".to_owned(), 42), range);
        let ours = (7, crate::os::host_name(), std::process::id());
        let twice = said_of(ours, 7..=7);
        assert!(twice.contains("build one and share it"), "{twice}");
        assert_eq!(
            said(7..=7),
            "machine ID 7 is in use: 7 by a (pid 42), stop that process, or use another machine ID"
        );
        assert_eq!(
            said(7..=8),
            "every machine ID of 7 to 8 is in use: 7 by a (pid 42), stop one, or widen machine.range"
        );
    }
}

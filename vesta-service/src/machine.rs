//! Sources of machine IDs.

mod host;
mod ip;
mod worker_node;

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use vesta_intf::{Field, IdError, IdMeta};

pub(crate) use host::name as host_name;
pub use ip::IpMap;
pub use worker_node::WorkerNodeStore;
pub(crate) use worker_node::use_up_number;

use crate::BuildError;
use crate::clock::AnyClock;
use crate::lease::{Choice, FileStore, KvStore, patiently};

/// Source of a service's machine ID. There is no default: two services that both think they
/// are machine 1 are the most common way to duplicate IDs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MachineSource {
    /// This number, made restart-safe by a state file in the state folder. No other process may use the
    /// number in this namespace; on the same host the file's lock sees to that.
    Fixed(u64),
    /// The number that the map has for one of this host's addresses; then as [`Fixed`](Self::Fixed).
    IpMap(IpMap),
    /// The number at the end of the host name, as a Kubernetes StatefulSet gives it (`vesta-3`);
    /// then as [`Fixed`](Self::Fixed).
    HostOrdinal,
    /// Any free number from a store, within the range (all of the layout's by default).
    Pool {
        /// The store that knows who holds which number.
        store: Arc<dyn KvStore>,
        /// The numbers that may be handed out.
        range: Option<RangeInclusive<u64>>,
    },
    /// This number, reserved through a store: a fixed number with the full promise on any host.
    Reserved {
        /// The store that knows who holds the number.
        store: Arc<dyn KvStore>,
        /// The number.
        id: u64,
    },
    /// A number that was never used before and never will be again, from a table with a row for each
    /// start. Needs a layout whose machine field outlasts the starts, such as `uid` with 22 bits.
    Disposable {
        /// The table.
        nodes: Arc<dyn WorkerNodeStore>,
    },
    /// This number, with nothing remembered. IDs can repeat after a restart within the same tick or
    /// with the clock set back, and if two processes use the number. For tests.
    Stateless(u64),
}

/// A source, resolved to what a claim needs.
#[derive(Debug)]
pub(crate) enum Resolved {
    Lease { store: Arc<dyn KvStore>, choice: Choice, guard: bool, shown: String, remember: bool },
    Disposable { nodes: Arc<dyn WorkerNodeStore> },
    Stateless { machine: u64 },
}

impl MachineSource {
    /// `true` if it can give one service several machine IDs.
    pub(crate) const fn hands_out(&self) -> bool {
        matches!(self, MachineSource::Pool { .. } | MachineSource::Disposable { .. })
    }

    pub(crate) fn resolve(
        self,
        meta: &IdMeta,
        namespace: &str,
        state_dir: &Path,
        clock: &AnyClock,
    ) -> Result<Resolved, BuildError> {
        let max = meta.max(Field::Machine);
        let check = |machine| IdError::check("machine ID", machine, 0, max);
        let fixed = |machine, origin: String| {
            check(machine)?;
            let open = || FileStore::open(state_dir, namespace, &meta.fingerprint(), machine);
            let in_use = |opened: &Result<_, _>| matches!(opened, Err(BuildError::InUse(_)));
            let file = patiently(clock, open, in_use)?;
            let shown = format!("{origin}, {}", file.describe());
            let guard = file.is_damaged();
            let choice = Choice::Only { machine, alone: true };
            Ok(Resolved::Lease { store: Arc::new(file), choice, guard, shown, remember: false })
        };
        match self {
            MachineSource::Fixed(machine) => fixed(machine, "fixed".into()),
            MachineSource::IpMap(map) => {
                let (address, machine) = map.find_own()?;
                fixed(machine, format!("address {address} of the IP map"))
            }
            MachineSource::HostOrdinal => {
                let name = host_name();
                fixed(host::ordinal(&name)?, format!("ordinal of host name {name}"))
            }
            MachineSource::Pool { store, range } => {
                let range = range.unwrap_or(0..=max);
                check(*range.end())?;
                if range.is_empty() {
                    return Err(IdError::invalid("machine range", "the range is empty").into());
                }
                let shown =
                    format!("pool {} to {} of {}", range.start(), range.end(), store.describe());
                let choice = Choice::Any(range);
                Ok(Resolved::Lease { store, choice, guard: false, shown, remember: true })
            }
            MachineSource::Reserved { store, id } => {
                check(id)?;
                let shown = format!("reserved through {}", store.describe());
                let choice = Choice::Only { machine: id, alone: false };
                Ok(Resolved::Lease { store, choice, guard: false, shown, remember: true })
            }
            MachineSource::Disposable { nodes } => Ok(Resolved::Disposable { nodes }),
            MachineSource::Stateless(machine) => {
                check(machine)?;
                Ok(Resolved::Stateless { machine })
            }
        }
    }
}

/// The number at the end of this host's name, as a Kubernetes StatefulSet gives it (`vesta-3`).
///
/// # Errors
/// [`IdError::Invalid`] if the name does not end in a hyphen and a number.
pub fn host_ordinal() -> Result<u64, IdError> {
    host::ordinal(&host_name())
}

impl fmt::Display for IpMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (address, machine)) in self.entries().enumerate() {
            write!(f, "{}{address}={machine}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

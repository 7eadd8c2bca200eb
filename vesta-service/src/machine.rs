//! Sources of machine IDs.

mod host;
mod ip;
mod worker_node;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use vesta_intf::{IdError, IdMeta};

pub use ip::IpMap;
pub use worker_node::WorkerNodeStore;
pub(crate) use worker_node::{doubt, use_up_number};

use crate::BuildError;
use crate::clock::AnyClock;
use crate::lease::{Choice, KvStore, StateFolder, is_own};

/// Source of a service's machine ID. It has no default: two services that both think they are
/// machine 1 are the most common cause of duplicate IDs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MachineSource {
    /// This number, made restart-safe by a state file in the state directory. No other process may use the
    /// number in this namespace; on the same host the file's lock ensures that.
    Fixed(u64),
    /// The number that the map assigns to one of this host's addresses; then as [`Fixed`](Self::Fixed).
    IpMap(IpMap),
    /// The number at the end of the host name, as assigned by a Kubernetes StatefulSet (`vesta-3`);
    /// then as [`Fixed`](Self::Fixed).
    ///
    /// A host name with several numbers is refused: `ip-10-0-3-17` is an address. Use one namespace per
    /// StatefulSet: two sets both have an ordinal 0, and nothing compares them.
    HostOrdinal,
    /// As [`HostOrdinal`](Self::HostOrdinal), of the StatefulSet with this name: another name is refused.
    HostOrdinalOf(String),
    /// Any free number from a store, within the range (by default all of the layout's).
    Pool {
        /// The store that records the owner of each number.
        store: Arc<dyn KvStore>,
        /// The numbers that the pool may hand out.
        range: Option<RangeInclusive<u64>>,
    },
    /// This number, reserved through a store: a fixed number with the full guarantee on any host.
    Reserved {
        /// The store that records the owner of the number.
        store: Arc<dyn KvStore>,
        /// The number.
        id: u64,
    },
    /// A number that was never used before and never will be again, from a table with a row for each
    /// start. Needs a layout with enough machine IDs for all starts, such as `uid` with 22 bits.
    Disposable {
        /// The table.
        nodes: Arc<dyn WorkerNodeStore>,
    },
    /// This number, without any state. IDs can repeat after a restart within the same tick or with
    /// the clock set back, and if two processes use the number. For tests.
    Stateless(u64),
}

/// A source, resolved to the input of a claim.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// To be leased from a store.
    Leased {
        store: Arc<dyn KvStore>,
        choice: Choice,
        is_damaged: bool,
    },
    /// Taken from a table at each start, and never reused.
    UsedUp(Arc<dyn WorkerNodeStore>),
    /// Held without a lease.
    Unbounded(u64),
}

impl MachineSource {
    /// `true` if the source can provide several machine IDs to one service.
    pub(crate) const fn hands_out(&self) -> bool {
        matches!(
            self,
            MachineSource::Pool { .. } | MachineSource::Disposable { .. }
        )
    }

    /// Resolves the source to the input of a claim and a display text.
    pub(crate) fn resolve(
        self,
        meta: &IdMeta,
        folder: &StateFolder,
        clock: &AnyClock,
    ) -> Result<(Resolved, String), BuildError> {
        let machines = meta.machines();
        let (first, last) = (*machines.start(), *machines.end());
        let leased = |store: Arc<dyn KvStore>, choice, is_damaged| Resolved::Leased {
            store,
            choice,
            is_damaged,
        };
        let check = |machine| IdError::check("machine ID", machine, first, last);
        let fixed = |machine, origin: String| {
            check(machine)?;
            let file = folder
                .open(machine, &**clock)
                .map_err(|error| match error {
                    BuildError::InUse(_) if is_own(&folder.namespace, machine) => {
                        let namespace = folder.namespace.clone();
                        BuildError::BuiltTwice { namespace, machine }
                    }
                    error => error,
                })?;
            let shown = format!("{origin}, {}", file.describe());
            let (is_damaged, alone) = (file.is_damaged, true);
            let choice = Choice::Only { machine, alone };
            Ok((leased(Arc::new(file), choice, is_damaged), shown))
        };
        let by_name = |of: Option<&str>| {
            let (name, machine) = (crate::os::host_name(), host_ordinal(meta, of)?);
            tracing::warn!(
                machine,
                "the machine ID is the ordinal of the host name: no other StatefulSet may use this namespace, \
                 and that cannot be checked without a store (machine.store)"
            );
            fixed(machine, format!("ordinal of host name {name}"))
        };
        match self {
            MachineSource::Fixed(machine) => fixed(machine, "fixed".into()),
            MachineSource::IpMap(map) => {
                let (address, machine) = map.find_own()?;
                fixed(machine, format!("address {address} of the IP map"))
            }
            MachineSource::HostOrdinal => by_name(None),
            MachineSource::HostOrdinalOf(of) => by_name(Some(&of)),
            MachineSource::Pool { store, range } => {
                let range = range.unwrap_or(machines);
                check(*range.start())?;
                check(*range.end())?;
                if range.is_empty() {
                    return Err(IdError::invalid("machine range", "the range is empty").into());
                }
                let shown = format!(
                    "pool {} to {} of {}",
                    range.start(),
                    range.end(),
                    store.describe()
                );
                Ok((leased(store, Choice::Any(range), false), shown))
            }
            MachineSource::Reserved { store, id } => {
                check(id)?;
                let shown = format!("reserved through {}", store.describe());
                let (machine, alone) = (id, false);
                let choice = Choice::Only { machine, alone };
                Ok((leased(store, choice, false), shown))
            }
            MachineSource::Disposable { nodes } => {
                let shown = format!("used once, from {}", nodes.describe());
                Ok((Resolved::UsedUp(nodes), shown))
            }
            MachineSource::Stateless(machine) => {
                check(machine)?;
                let shown = format!("fixed {machine}, stateless: IDs can repeat after a restart");
                Ok((Resolved::Unbounded(machine), shown))
            }
        }
    }
}

/// Number counted from 0, mapped into the region of a layout.
pub(crate) fn in_region(meta: &IdMeta, number: u64) -> u64 {
    meta.machines().start().saturating_add(number) // a number that is too large is refused unchanged
}

/// The machine ID of this host by the number at the end of its name, as assigned by a Kubernetes StatefulSet
/// (`vesta-3`). It counts from the first machine ID of the layout's region. With `of`, the name before the
/// number must equal it.
///
/// # Errors
/// [`IdError::Invalid`] unless the name consists of a name, a hyphen and a single number.
pub fn host_ordinal(layout: &IdMeta, of: Option<&str>) -> Result<u64, IdError> {
    Ok(in_region(
        layout,
        host::ordinal(&crate::os::host_name(), of)?,
    ))
}

impl fmt::Display for IpMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (address, machine)) in self.entries().enumerate() {
            write!(f, "{}{address}={machine}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_counts_from_the_first_machine_id_of_the_region() {
        let region = IdMeta::MAX_PEAK.in_region(3, 2).unwrap();
        assert_eq!([0, 127].map(|it| in_region(&region, it)), [256, 383]);
        assert_eq!(in_region(&region, u64::MAX), u64::MAX, "refused as it is");
        assert_eq!(in_region(&IdMeta::MAX_PEAK, 7), 7);
    }
}

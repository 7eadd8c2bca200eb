//! An open namespace, shared by the commands.

use std::sync::Arc;

use vesta_intf::{IdMeta, UnixMillis};
use vesta_service::clock::{Clock, SystemClock};
use vesta_service::lease::{KvStore, Leases, Namespace, Snapshot, StoreError};
use vesta_store::Options;

use crate::error::Error;
use crate::report::failed;
use crate::settings::{Config, Machine};
use crate::stores::open;
use crate::ticks::millis;

/// An open namespace.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) leases: Leases,
    pub(super) namespace: Namespace,
    pub(super) layout: IdMeta,
    /// Reservation window of processes with these settings.
    pub(super) window_ms: u64,
    pub(super) clock: Arc<dyn Clock>,
}

impl Opened {
    pub(super) fn open(config: &Config, options: &Options) -> Result<Self, Error> {
        let url = match &config.machine {
            Machine::Disposable { .. } => {
                return Error::refuse(
                    "machine.strategy = \"disposable\" has no leases for this command: its machine IDs \
                     are the rows of the table WORKER_NODE",
                );
            }
            machine => machine.store().ok_or_else(|| {
                Error::setting(
                    "these settings keep the machine ID in a state file, not in a store; set \
                     machine.store",
                )
            })?,
        };
        let window = config.lease.map(|timing| timing.window).unwrap_or_default();
        let clock = Arc::new(SystemClock::new());
        let layout = config.ids.layout;
        let leases = Leases::new(open(url, options)?, &config.ids.namespace);
        Self::new(leases, layout, millis(window), clock)
    }

    pub(super) fn new(
        leases: Leases,
        layout: IdMeta,
        window_ms: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let fingerprint = layout.fingerprint();
        let namespace = leases
            .open(&fingerprint)
            .map_err(|error| failed(&leases.store().describe(), &error))?;
        Ok(Self {
            leases,
            namespace,
            layout,
            window_ms,
            clock,
        })
    }

    pub(super) fn store(&self) -> &dyn KvStore {
        &**self.leases.store()
    }

    pub(super) fn name(&self) -> &str {
        self.leases.name()
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot, Error> {
        self.leases.snapshot().map_err(|error| self.failed(&error))
    }

    /// True if the configured layout is that of the namespace, so that positions convert to
    /// moments.
    pub(super) fn is_of_our_layout(&self) -> bool {
        self.namespace.fingerprint == self.layout.fingerprint()
    }

    /// Refuses a change unless the layout is that of the namespace.
    pub(super) fn insist_on_layout(&self) -> Result<(), Error> {
        if self.is_of_our_layout() {
            return Ok(());
        }
        Error::refuse(format!(
            "namespace `{}` is for layout {}, but {} ({}) is configured; set the layout it is for, or \
             another namespace",
            self.name(),
            self.namespace.fingerprint,
            self.layout.fingerprint(),
            self.layout.name(),
        ))
    }

    /// The moment for judging windows: the earlier one, if our clock and the store's differ.
    pub(super) fn now(&self) -> Result<UnixMillis, Error> {
        let (ours, theirs) = self.clocks()?;
        Ok(ours.min(theirs))
    }

    /// This host's clock and the store's; this host's twice if the store has no clock.
    pub(super) fn clocks(&self) -> Result<(UnixMillis, UnixMillis), Error> {
        let ours = self.clock.wall();
        let theirs = self.store().now().map_err(|error| self.failed(&error))?;
        Ok((ours, theirs.unwrap_or(ours)))
    }

    pub(super) fn position_at(&self, moment: UnixMillis) -> Result<u64, Error> {
        self.layout.position_at(moment).map_err(|error| {
            let layout = self.layout.name();
            Error::setting(format!(
                "layout {layout} cannot represent {moment}: {error}"
            ))
        })
    }

    pub(super) fn failed(&self, error: &StoreError) -> Error {
        failed(&self.store().describe(), error)
    }
}

/// Margin of bounds and floors above the windows, for clock differences.
pub(super) const MARGIN_MS: u64 = 60_000;

/// A random number that identifies a request, or a newly created record. At most 63 bits, which
/// every store can hold.
pub(super) fn attempt() -> u64 {
    let number = getrandom::u64().expect("the operating system's random generator works");
    number >> 1
}

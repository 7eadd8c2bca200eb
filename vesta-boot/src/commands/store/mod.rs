//! `store …`: looks at a store of machine IDs, prepares it, repairs it, moves to it.
//!
//! Each command is a few lines over [`Leases`], so that it works with every store.

mod floor;
mod free;
mod import;
mod init;
mod repair;
mod show;
mod trust;

use std::sync::Arc;

use vesta_intf::UnixMillis;
use vesta_service::clock::{Clock, SystemClock};
use vesta_service::lease::{KvStore, Leases, Namespace, Snapshot, StoreError};
use vesta_store::Options;

use super::console::UNCHANGED;
use super::{Console, StoreCommand, counted, plain, report, segment, serial};
use crate::assemble::{open, options};
use crate::error::Error;
use crate::output::Output;
use crate::settings::{Config, Machine};
use crate::ticks::{TickConverter, millis};

/// Carries out a command.
///
/// # Errors
/// [`Error`] with one sentence that says what to do.
pub(super) fn run(
    config: &Config,
    command: &StoreCommand,
    output: Output,
    console: &mut Console,
) -> Result<String, Error> {
    let open = || Opened::open(config, &Options { auto_init: false, ..options(config) });
    let said = match command {
        StoreCommand::Init => init(config, console),
        StoreCommand::Show => return show::run(&open()?, output),
        StoreCommand::RaiseFloor { to } => floor::run(&open()?, *to, console),
        StoreCommand::Free { machine } => free::run(&open()?, *machine, console),
        StoreCommand::Repair { machine } => repair::run(&open()?, *machine, console),
        StoreCommand::Trust => trust::run(&open()?, console),
        StoreCommand::Import(import) => import::run(config, import, console),
    };
    said.map(|said| report(output, said))
}

fn init(config: &Config, console: &mut Console) -> Result<String, Error> {
    let (segments, serials) = (&config.segments.store, &config.serials.store);
    // Tags can be all there is to prepare.
    let tags = segments.is_some() || serials.is_some();
    if !tags || config.machine.store().is_some() {
        (console.say)(&init::run(config)?);
    }
    if segments.is_some() {
        (console.say)(&segment::init(config)?);
    }
    serials.as_ref().map_or(Ok(String::new()), |store| serial::init(config, store))
}

/// The machine IDs that these settings lease, in their store.
///
/// # Errors
/// [`Error`] with one sentence that says what to do.
pub fn leases(config: &Config) -> Result<Leases, Error> {
    let opened = Opened::open(config, &Options { auto_init: false, ..options(config) })?;
    opened.insist_on_layout()?;
    Ok(opened.leases)
}

/// The namespace of a pool, as `store show --json` has it.
pub(crate) fn shown(
    leases: Leases,
    ticks: TickConverter,
    clock: Arc<dyn Clock>,
) -> Result<serde_json::Value, Error> {
    show::as_json(&Opened::new(leases, ticks, 0, clock)?)
}

/// A namespace that is open.
#[derive(Debug)]
struct Opened {
    leases: Leases,
    namespace: Namespace,
    ticks: TickConverter,
    /// Reservation ahead of now of processes with these settings.
    window_ms: u64,
    clock: Arc<dyn Clock>,
}

impl Opened {
    fn open(config: &Config, options: &Options) -> Result<Self, Error> {
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
        let ticks = TickConverter::new(config.ids.layout);
        let leases = Leases::new(open(url, options)?, &config.ids.namespace);
        Self::new(leases, ticks, millis(window), clock)
    }

    fn new(
        leases: Leases,
        ticks: TickConverter,
        window_ms: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let fingerprint = ticks.layout().fingerprint();
        let namespace = leases
            .open(&fingerprint)
            .map_err(|error| super::failed(&leases.store().describe(), &error))?;
        Ok(Self { leases, namespace, ticks, window_ms, clock })
    }

    fn store(&self) -> &dyn KvStore {
        &**self.leases.store()
    }

    fn name(&self) -> &str {
        self.leases.name()
    }

    fn snapshot(&self) -> Result<Snapshot, Error> {
        self.leases.snapshot().map_err(|error| self.failed(&error))
    }

    /// True if the configured layout is the namespace's, so that positions are moments.
    fn is_of_our_layout(&self) -> bool {
        self.namespace.fingerprint == self.ticks.layout().fingerprint()
    }

    /// Changing something takes the right layout.
    fn insist_on_layout(&self) -> Result<(), Error> {
        if self.is_of_our_layout() {
            return Ok(());
        }
        Error::refuse(format!(
            "namespace `{}` is for layout {}, but {} ({}) is configured; set the layout it is for, or \
             another namespace",
            self.name(),
            self.namespace.fingerprint,
            self.ticks.layout().fingerprint(),
            self.ticks.layout().name(),
        ))
    }

    /// The moment to judge windows by: the earlier one, if our clock and the store's differ.
    fn now(&self) -> Result<UnixMillis, Error> {
        let (ours, theirs) = self.clocks()?;
        Ok(ours.min(theirs))
    }

    /// Our clock and the store's; twice ours if it has none.
    fn clocks(&self) -> Result<(UnixMillis, UnixMillis), Error> {
        let ours = self.clock.wall();
        let theirs = self.store().now().map_err(|error| self.failed(&error))?;
        Ok((ours, theirs.unwrap_or(ours)))
    }

    fn position_at(&self, moment: UnixMillis) -> Result<u64, Error> {
        self.ticks.position_at(moment).map_err(|error| {
            let layout = self.ticks.layout().name();
            Error::setting(format!("layout {layout} has no {moment}: {error}"))
        })
    }

    fn failed(&self, error: &StoreError) -> Error {
        super::failed(&self.store().describe(), error)
    }
}

/// Margin of bounds and floors beyond the windows, for clocks that differ.
const MARGIN_MS: u64 = 60_000;

/// A random number that names a request, or a record that is created. At most 63 bits, which every
/// store can keep.
fn attempt() -> u64 {
    let number = getrandom::u64().expect("the operating system's random generator works");
    number >> 1
}

#[cfg(test)]
pub(crate) mod testing;

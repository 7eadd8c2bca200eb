//! `store …`: looks at a store of machine IDs, prepares it, repairs it, moves to it.
//!
//! Each command is a few lines over [`LeaseStore`], so that it works with every store.

mod floor;
mod free;
#[allow(clippy::duplicate_mod, reason = "one file stands in for every backend that is left out")]
mod import;
mod init;
mod show;

use std::sync::Arc;

use vesta_intf::UnixMillis;
use vesta_service::{Clock, LeaseStore, Namespace, StoreError, SystemClock};
use vesta_store::Options;

use super::{Console, StoreCommand, plain, segment};
use crate::assemble::{open, options};
use crate::settings::Machine;
use crate::ticks::TickConverter;
use crate::{Config, StartError};

/// Carries out a command.
///
/// # Errors
/// [`StartError`] with one sentence that says what to do.
pub(super) fn run(
    config: &Config,
    command: &StoreCommand,
    mut console: Console,
) -> Result<(), StartError> {
    let existing = Options { auto_init: false, ..options(config) };
    match command {
        StoreCommand::Init => {
            // Segment tags can be all there is to prepare.
            if config.machine.store().is_some() || config.segments.is_none() {
                init::run(config, &mut console)?;
            }
            segment::init(config, &mut console)
        }
        StoreCommand::Show { json } => {
            let opened = Opened::open(config, &existing)?;
            console.say(&show::run(&opened, *json)?);
            Ok(())
        }
        StoreCommand::RaiseFloor { to, yes } => {
            floor::run(&Opened::open(config, &existing)?, to.as_deref(), &mut console.sure(*yes))
        }
        StoreCommand::Free { machine, yes } => {
            free::run(&Opened::open(config, &existing)?, *machine, &mut console.sure(*yes))
        }
        StoreCommand::Import { system, from } => import::run(config, *system, from, &mut console),
    }
}

/// A store with its namespace open.
#[derive(Debug)]
struct Opened {
    store: Arc<dyn LeaseStore>,
    name: String,
    namespace: Namespace,
    ticks: TickConverter,
    /// Reservation ahead of now of processes with these settings.
    window_ms: u64,
    clock: Arc<dyn Clock>,
}

impl Opened {
    fn open(config: &Config, options: &Options) -> Result<Self, StartError> {
        let url = match &config.machine {
            Machine::Disposable { .. } => {
                return StartError::refuse(
                    "machine.strategy = \"disposable\" has no leases for this command: its machine IDs \
                     are the rows of the table WORKER_NODE",
                );
            }
            machine => machine.store().ok_or_else(|| {
                StartError::Setting(
                    "these settings keep the machine ID in a state file, not in a store; set \
                     machine.store"
                        .to_owned(),
                )
            })?,
        };
        let window = config.lease.map(|lease| lease.timing().window).unwrap_or_default();
        let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let clock = Arc::new(SystemClock::new());
        let ticks = TickConverter::new(config.ids.layout);
        Self::new(open(url, options)?, &config.ids.namespace, ticks, window_ms, clock)
    }

    fn new(
        store: Arc<dyn LeaseStore>,
        name: &str,
        ticks: TickConverter,
        window_ms: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let fingerprint = ticks.layout().fingerprint();
        let namespace = store
            .open_namespace(name, &fingerprint)
            .map_err(|error| super::failed(&store.describe(), &error))?;
        Ok(Self { store, name: name.to_owned(), namespace, ticks, window_ms, clock })
    }

    /// True if the configured layout is the namespace's, so that positions are moments.
    fn is_of_our_layout(&self) -> bool {
        self.namespace.fingerprint == self.ticks.layout().fingerprint()
    }

    /// Changing something takes the right layout.
    fn insist_on_layout(&self) -> Result<(), StartError> {
        if self.is_of_our_layout() {
            return Ok(());
        }
        StartError::refuse(format!(
            "namespace `{}` is for layout {}, but {} ({}) is configured; set the layout it is for, or \
             another namespace",
            self.name,
            self.namespace.fingerprint,
            self.ticks.layout().fingerprint(),
            self.ticks.layout().name(),
        ))
    }

    /// The moment to judge windows by: the earlier one, if our clock and the store's differ.
    fn now(&self) -> Result<UnixMillis, StartError> {
        let ours = self.clock.wall();
        let theirs = self.store.now().map_err(|error| self.failed(&error))?;
        Ok(theirs.map_or(ours, |theirs| theirs.min(ours)))
    }

    fn position_at(&self, moment: UnixMillis) -> Result<u64, StartError> {
        self.ticks.position_at(moment).map_err(|error| {
            let layout = self.ticks.layout().name();
            StartError::Setting(format!("layout {layout} has no {moment}: {error}"))
        })
    }

    fn failed(&self, error: &StoreError) -> StartError {
        super::failed(&self.store.describe(), error)
    }
}

/// A random number that names a request. At most 63 bits, which every store can keep.
fn attempt() -> u64 {
    let number = getrandom::u64().expect("the operating system's random generator works");
    number >> 1
}

#[cfg(test)]
pub(super) mod testing;

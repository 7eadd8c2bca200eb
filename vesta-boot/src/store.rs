//! `vesta-server store …`: looking at a store, preparing it, repairing it, moving to it; and
//! `vesta-server segment …` for the tags of segment mode.
//!
//! Each command is a few lines over [`LeaseStore`], so that it works with every store. None of them
//! can make a position be issued twice: bounds and floors only rise.

mod desk;
mod floor;
mod free;
#[allow(clippy::duplicate_mod, reason = "one file stands in for every backend that is left out")]
mod import;
mod init;
mod segments;
mod show;

use std::sync::Arc;

use vesta_intf::UnixMillis;
use vesta_service::{Clock, LeaseStore, Namespace, StoreError, SystemClock};
use vesta_store::Options;

use crate::assemble::{open, options};
use crate::calendar::Calendar;
use crate::{Config, Machine, SegmentCommand, StartError, StoreCommand, secret};
use desk::Desk;
pub(crate) use segments::new_tag;

/// Carries out a command and prints what it has to say.
///
/// # Errors
/// [`StartError`] with one sentence that says what to do.
pub(crate) fn run(config: &Config, command: &StoreCommand) -> Result<(), StartError> {
    carry_out(config, command, Desk::terminal()).map_err(|error| plainly(config, error))
}

/// As [`run`], for segment tags.
///
/// # Errors
/// [`StartError`] with one sentence that says what to do.
pub(crate) fn segment(config: &Config, command: &SegmentCommand) -> Result<(), StartError> {
    segments::run(config, command, &mut Desk::terminal()).map_err(|error| plainly(config, error))
}

fn plainly(config: &Config, error: StartError) -> StartError {
    match error {
        // Not a setting of anybody's: commands that only look create nothing.
        StartError::Setting(said) if config.auto_init => {
            StartError::Setting(said.replace(", and auto_init is off;", ";"))
        }
        error => error,
    }
}

fn carry_out(config: &Config, command: &StoreCommand, mut desk: Desk) -> Result<(), StartError> {
    let existing = Options { auto_init: false, ..options(config) };
    match command {
        StoreCommand::Init => {
            // Segment tags can be all there is to prepare.
            if config.machine.store().is_some() || config.segments.is_none() {
                init::run(config, &mut desk)?;
            }
            segments::init(config, &mut desk)
        }
        StoreCommand::Show { json } => {
            let opened = Opened::open(config, &existing)?;
            desk.say(&show::run(&opened, *json)?);
            Ok(())
        }
        StoreCommand::RaiseFloor { to, yes } => {
            floor::run(&Opened::open(config, &existing)?, to.as_deref(), &mut desk.sure(*yes))
        }
        StoreCommand::Free { machine, yes } => {
            free::run(&Opened::open(config, &existing)?, *machine, &mut desk.sure(*yes))
        }
        StoreCommand::Import(from) => import::run(config, from, &mut desk),
    }
}

/// A store with its namespace open.
#[derive(Debug)]
struct Opened {
    store: Arc<dyn LeaseStore>,
    name: String,
    namespace: Namespace,
    calendar: Calendar,
    /// How far ahead of now processes with these settings reserve.
    window_ms: u64,
    clock: Arc<dyn Clock>,
}

impl Opened {
    fn open(config: &Config, options: &Options) -> Result<Self, StartError> {
        let url = match &config.machine {
            Machine::Disposable { .. } => {
                return Err(StartError::Setting(
                    "machine.strategy = \"disposable\" keeps nothing that this command is about: its \
                     machine IDs are the rows of the table WORKER_NODE"
                        .to_owned(),
                ));
            }
            machine => machine.store().ok_or_else(|| {
                StartError::Setting(
                    "these settings keep the machine ID in a state file, and no store; set \
                     machine.store"
                        .to_owned(),
                )
            })?,
        };
        let window = config.lease.map(|lease| lease.timing().window).unwrap_or_default();
        let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let clock = Arc::new(SystemClock::new());
        let calendar = Calendar::new(config.layout);
        Self::new(open(url, options)?, &config.namespace, calendar, window_ms, clock)
    }

    fn new(
        store: Arc<dyn LeaseStore>,
        name: &str,
        calendar: Calendar,
        window_ms: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let fingerprint = calendar.layout().fingerprint();
        let namespace =
            store.open_namespace(name, &fingerprint).map_err(|error| failed(&*store, &error))?;
        Ok(Self { store, name: name.to_owned(), namespace, calendar, window_ms, clock })
    }

    /// Whether the configured layout is the namespace's, so that positions can be told as moments.
    fn is_of_our_layout(&self) -> bool {
        self.namespace.fingerprint == self.calendar.layout().fingerprint()
    }

    /// Changing something takes the right layout.
    fn insist_on_layout(&self) -> Result<(), StartError> {
        if self.is_of_our_layout() {
            return Ok(());
        }
        Err(StartError::Setting(format!(
            "namespace `{}` is for layout {}, but {} ({}) is configured; set the layout it is for, or \
             another namespace",
            self.name,
            self.namespace.fingerprint,
            self.calendar.layout().fingerprint(),
            self.calendar.layout().name(),
        )))
    }

    /// The moment to judge windows by: the earlier one, if our clock and the store's differ.
    fn now(&self) -> Result<UnixMillis, StartError> {
        let ours = self.clock.wall();
        let theirs = self.store.now().map_err(|error| self.failed(&error))?;
        Ok(theirs.map_or(ours, |theirs| theirs.min(ours)))
    }

    fn position_at(&self, moment: UnixMillis) -> Result<u64, StartError> {
        self.calendar.position_at(moment).map_err(|error| {
            let layout = self.calendar.layout().name();
            StartError::Setting(format!("layout {layout} has no {moment}: {error}"))
        })
    }

    fn failed(&self, error: &StoreError) -> StartError {
        failed(&*self.store, error)
    }
}

fn failed(store: &dyn LeaseStore, error: &StoreError) -> StartError {
    let sentence = secret::hide(&format!("{}: {error}", store.describe()));
    if error.is_permanent() {
        StartError::Setting(sentence)
    } else {
        StartError::Unavailable(sentence)
    }
}

/// A random number that names a request. At most 63 bits, which every store can keep.
fn attempt() -> u64 {
    let number = getrandom::u64().expect("the operating system's random generator works");
    number >> 1
}

/// What others wrote into the store, fit for a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod testing;

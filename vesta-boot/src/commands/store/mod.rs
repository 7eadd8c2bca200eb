//! `store …`: inspects, prepares and repairs a store of machine IDs, and migrates to it.
//!
//! Each command is a few lines on top of [`Leases`], so that it works with every store.

mod adopt;
mod floor;
mod free;
mod import;
mod init;
mod opened;
mod repair;
mod reserve;
mod show;
mod trust;

use std::sync::Arc;

use vesta_intf::IdMeta;
use vesta_service::clock::Clock;
use vesta_service::lease::Leases;
use vesta_store::Options;

use super::declared::StoreCommand;
use crate::answers;
use crate::console::Console;
use crate::error::Error;
use crate::output::Output;
use crate::report::report;
use crate::settings::Config;
use crate::stores::options;
use crate::{segments, serials};
use opened::Opened;

/// Runs a command.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub(super) fn run(
    config: &Config,
    command: &StoreCommand,
    output: Output,
    console: &mut Console,
) -> Result<String, Error> {
    let open = || {
        Opened::open(
            config,
            &Options {
                auto_init: false,
                ..options(config)
            },
        )
    };
    let said = match command {
        StoreCommand::Init => init(config, console),
        StoreCommand::Show => return show::run(&open()?, output),
        StoreCommand::RaiseFloor { to } => floor::run(&open()?, *to, console),
        StoreCommand::Free { machine } => free::run(&open()?, *machine, console),
        StoreCommand::Reserve { machine, holder } => reserve::run(&open()?, *machine, holder),
        StoreCommand::Repair { machine } => repair::run(&open()?, *machine, console),
        StoreCommand::Adopt => adopt::run(config, &open()?, console),
        StoreCommand::Trust => trust::run(&open()?, console),
        StoreCommand::Import(import) => import::run(config, import, console),
    };
    said.map(|said| report(output, said))
}

fn init(config: &Config, console: &mut Console) -> Result<String, Error> {
    let (segments, serials) = (&config.segments.store, &config.serials.store);
    // Tags may be all there is to prepare.
    let tags = segments.is_some() || serials.is_some();
    if !tags || config.machine.store().is_some() {
        (console.say)(&init::run(config)?);
    }
    if segments.is_some() {
        (console.say)(&segments::command::init(config)?);
    }
    serials.as_ref().map_or(Ok(String::new()), |store| {
        serials::command::init(config, store)
    })
}

/// Leases of the machine IDs that these settings use, in their store.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub fn leases(config: &Config) -> Result<Leases, Error> {
    let opened = Opened::open(
        config,
        &Options {
            auto_init: false,
            ..options(config)
        },
    )?;
    opened.insist_on_layout()?;
    Ok(opened.leases)
}

/// The namespace of a pool, as `store show` describes it.
pub(crate) fn shown(
    leases: Leases,
    layout: IdMeta,
    clock: Arc<dyn Clock>,
) -> Result<answers::Pool, Error> {
    show::pool(&Opened::new(leases, layout, 0, clock)?)
}

#[cfg(test)]
pub(crate) mod testing;

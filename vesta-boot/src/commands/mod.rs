//! Commands that run instead of a server: `store …`, `segment …`, `serial …` and `token …`.
//!
//! None of them can make a position be issued twice: bounds and floors only rise.

mod declared;
pub(crate) mod store;
mod token;

pub use declared::{
    Command, Format, KeyCommand, LegacySystem, StoreCommand, StoreImport, TokenCommand,
};
pub use store::leases;
pub(crate) use token::make_token;

use crate::console::{Console, print};
use crate::error::Error;
use crate::opaque_key;
use crate::output::Output;
use crate::report::report;
use crate::settings::Config;
use crate::{segments, serials};

/// Makes a key file of opaque IDs. Needs no settings.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub(crate) fn make_key(command: &KeyCommand, output: Output) -> Result<String, Error> {
    let KeyCommand::New { file } = command;
    let fingerprint = opaque_key::new(file)?;
    let path = file.display();
    let said = format!(
        "created the key {path}, fingerprint {fingerprint}: copy it to every server and to a safe place\n"
    );
    Ok(report(output, said))
}

/// Runs a command and prints its report.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub(crate) fn run(config: &Config, command: &Command) -> Result<(), Error> {
    let done = match command {
        Command::Store {
            command,
            yes,
            format,
        } => {
            let console = &mut Console::terminal(*yes, format.output);
            store::run(config, command, format.output, console)
        }
        Command::Segment { command, format } => {
            segments::command::run(config, command, format.output)
        }
        Command::Serial { command, format } => {
            serials::command::run(config, command, format.output)
        }
        Command::Key { command, format } => make_key(command, format.output),
        Command::Token { command, format } => return make_token(command, format.output),
    };
    let outcome = done.map_err(|error| match error {
        // auto_init was not chosen by the user: read-only commands turn it off.
        Error::Setting(said) if config.store.auto_init => {
            Error::Setting(said.replace(", and auto_init is off;", ";"))
        }
        error => error,
    })?;
    print(&outcome);
    Ok(())
}

//! Command line of a program: settings, other flags, and commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, FromArgMatches as _, Subcommand as _};

use crate::api::{Api, about, examples};
use crate::commands::{Command, Format, KeyCommand, TokenCommand};
use crate::error::Error;
use crate::output::Output;
use crate::settings::{Values, is_close, settings, shown};
use crate::version::VERSION;

/// Flags that are not settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "General")]
struct General {
    /// TOML file with any of these settings
    ///
    /// Flags and the environment override it. [env: VESTA_CONFIG]
    #[arg(
        long,
        short,
        value_name = "FILE",
        env = "VESTA_CONFIG",
        hide_env = true,
        global = true
    )]
    config: Option<PathBuf>,

    /// Print the resulting settings and exit
    ///
    /// As TOML, with the origin of each and passwords hidden.
    #[arg(long)]
    print_config: bool,

    /// Print the settings; --help has more, with examples
    #[arg(long, short, action = ArgAction::Help, global = true)]
    help: Option<bool>,

    /// Print the version
    #[arg(id = "print_version", long = "version", short = 'V', action = ArgAction::Version)]
    version: Option<bool>,
}

/// Command line of a server program: it serves unless a command is given. Values stay text.
pub fn command(name: &'static str, apis: &[Api]) -> clap::Command {
    // The description of the commands would replace that of the program.
    Command::augment_subcommands(Format::augment_args(serving(name, apis)))
        .subcommand_required(false)
        .about(about(apis))
}

/// Command line for serving, as a program called by this name, which may be two words.
pub fn serving(called: &'static str, apis: &[Api]) -> clap::Command {
    General::augment_args(clap::Command::new(called).args(arguments()))
        .version(VERSION)
        .about(about(apis))
        .after_help(
            "Each flag is also an environment variable: --max-wait-ms is VESTA_MAX_WAIT_MS.",
        )
        .after_long_help(examples(called, apis))
        .max_term_width(100)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .subcommand_value_name("COMMAND")
}

/// The settings as arguments. Values stay text: they are checked together with those of the file.
pub fn arguments() -> impl Iterator<Item = clap::Arg> {
    settings().get_arguments().cloned()
}

/// Parsed request of a command line.
#[derive(Debug)]
pub enum Invocation {
    /// Serve with these settings.
    Run(Values),
    /// Print these settings and exit.
    PrintConfig(Values),
    /// Run a command with these settings and exit.
    Command(Values, Command),
    /// Make a token and exit. Needs no settings.
    Token(TokenCommand, Output),
    /// Make a key file and exit. Needs no settings.
    Key(KeyCommand, Output),
    /// Print the help or the version and exit.
    Help(clap::Error),
}

impl Invocation {
    /// Reads flags (without the program's name), the environment, and the file that they name.
    ///
    /// # Errors
    /// [`Error::Usage`] for a command line that clap refuses, [`Error::Setting`] for a file that
    /// cannot be read.
    pub fn read<I, S>(name: &'static str, apis: &[Api], args: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString> + Clone,
    {
        let matches = match parse(command(name, apis), args)? {
            Parsed::Matches(matches) => matches,
            Parsed::Help(help) => return Ok(Invocation::Help(help)),
        };
        let command = matches
            .subcommand()
            .map(|_| Command::from_arg_matches(&matches));
        match command.transpose().map_err(usage)? {
            Some(command) if !matches.get_flag("print_config") => {
                Self::command(apis, command, &matches)
            }
            None if matches.value_source("output") == Some(ValueSource::CommandLine) => {
                Error::refuse("--output is for commands; leave it out to serve")
            }
            _ => Self::serving(apis, &matches),
        }
    }

    /// Builds the invocation of a command from its command line.
    ///
    /// # Errors
    /// [`Error::Setting`] for a file that cannot be read.
    pub fn command(apis: &[Api], command: Command, matches: &ArgMatches) -> Result<Self, Error> {
        match command {
            Command::Token { command, format } => Ok(Invocation::Token(command, format.output)),
            Command::Key { command, format } => Ok(Invocation::Key(command, format.output)),
            command => Ok(Invocation::Command(values(apis, matches)?, command)),
        }
    }

    /// Builds the invocation of a [`serving`] command line.
    ///
    /// # Errors
    /// [`Error::Setting`] for a file that cannot be read.
    pub fn serving(apis: &[Api], matches: &ArgMatches) -> Result<Self, Error> {
        let values = values(apis, matches)?;
        Ok(match matches.get_flag("print_config") {
            true => Invocation::PrintConfig(values),
            false => Invocation::Run(values),
        })
    }
}

/// A parsed command line, or the text it asks for.
#[derive(Debug)]
pub enum Parsed {
    /// Values from flags and the environment.
    Matches(ArgMatches),
    /// The help or the version.
    Help(clap::Error),
}

/// Parses a command line without the program's name, which the command has.
///
/// # Errors
/// [`Error::Usage`] for one that clap refuses.
pub fn parse<I, S>(command: clap::Command, args: I) -> Result<Parsed, Error>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString> + Clone,
{
    let args = args.into_iter().map(Into::into);
    let name = OsString::from(command.get_name());
    match command.try_get_matches_from([name].into_iter().chain(args)) {
        Ok(matches) => Ok(Parsed::Matches(matches)),
        Err(help) if !help.use_stderr() => Ok(Parsed::Help(help)),
        Err(error) => Err(usage(error)),
    }
}

/// Settings from a command line, the environment, and the file that they name.
///
/// # Errors
/// [`Error::Setting`] for a file that cannot be read.
pub fn values(apis: &[Api], matches: &ArgMatches) -> Result<Values, Error> {
    let path = matches.try_get_one::<PathBuf>("config").ok().flatten();
    let path = path.filter(|path| !path.as_os_str().is_empty());
    Values::merge(apis, Some(matches), path.map(PathBuf::as_path))
}

/// Explanation of a refused command line. It could quote a URL with a password, typed in the wrong
/// place.
fn usage(mut error: clap::Error) -> Error {
    for kind in [
        ContextKind::InvalidValue,
        ContextKind::InvalidArg,
        ContextKind::InvalidSubcommand,
    ] {
        let Some(ContextValue::String(typed)) = error.get(kind) else {
            continue;
        };
        let shown = shown("", typed);
        if shown != *typed {
            error.insert(kind, ContextValue::String(shown));
            error.remove(ContextKind::Suggested); // it quotes the same
        }
    }
    if let (Some(ContextValue::String(typed)), Some(ContextValue::String(tip))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::SuggestedArg),
    ) && !is_close(typed, tip)
    {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage); // of that argument
    }
    Error::Usage(error.render().to_string())
}

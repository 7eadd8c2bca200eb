//! `vesta-server store …`, `segment …` and `token …`: what can be done instead of serving.

use clap::{ArgMatches, FromArgMatches as _, Subcommand};

use super::flags::Task;
use crate::StoreUrl;
use crate::auth::Scopes;

/// What to do to the store that the settings name.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum StoreCommand {
    /// Create tables, keys and the namespace, and the segment tags' table; say what was made
    ///
    /// For stores in which the programs themselves may create nothing (auto_init = false). Does
    /// nothing if the namespace is there.
    Init,
    /// Show the namespace, and who has which machine ID; changes nothing
    ///
    /// States: held (its window is open), silent (its owner has let the window pass), released
    /// (given back), predecessor (a process of another system has it).
    Show {
        /// Print one JSON object. Positions and other large numbers are strings
        #[arg(long)]
        json: bool,
    },
    /// Keep every later claim above a moment, after a store has forgotten something
    ///
    /// When a store was wiped, restored from a backup, or lost changes in a fail-over, it may know
    /// less than what was issued. Stop what still uses it, then raise the floor: no machine ID of
    /// the namespace is then handed out below that moment, and programs that start wait for it. A
    /// floor is never lowered.
    RaiseFloor {
        /// The moment, as 2026-01-31T12:00:00Z [default: now + the window + 60 s]
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Say that the process with a machine ID is gone for good, so that the pool may hand it out
    ///
    /// For a silent owner that shall not be waited for, and for the predecessors that `store import`
    /// has written. What the owner had reserved stays reserved. Should it still run, it loses the
    /// machine ID at its next renewal; one of another system does not notice, so stop it first.
    Free {
        /// The machine ID
        #[arg(value_name = "ID")]
        machine: u64,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Take over the machine IDs of another system, so that no pool hands them out
    ///
    /// Writes a record for each machine ID that the other system has handed out. One that has a
    /// record already is left alone, so that doing it again changes nothing. When the process of
    /// the other system is stopped for good, `store free ID` gives its machine ID to the pool.
    #[command(subcommand)]
    Import(LegacySystem),
}

/// Where machine IDs of a predecessor are read.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum LegacySystem {
    /// From the MySQL database of the Java Vesta ID Generator
    VestaDb {
        /// mysql://user:password@host:3306/database
        #[arg(long, value_name = "URL", env = "VESTA_IMPORT_FROM", hide_env_values = true)]
        from: StoreUrl,
    },
    /// From the ZooKeeper of Leaf's snowflake mode
    Leaf {
        /// zookeeper://host:2181/snowflake/NAME/forever
        #[arg(long, value_name = "URL", env = "VESTA_IMPORT_FROM", hide_env_values = true)]
        from: StoreUrl,
    },
}

/// What to do with the tags in the database that `segment.store` names.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum SegmentCommand {
    /// Show every tag, and where it stands; changes nothing
    List {
        /// Print one JSON object. Numbers of tags are strings
        #[arg(long)]
        json: bool,
    },
    /// Add a tag; refused if there is one of this name
    ///
    /// Programs that run know it within a minute. With auto_init, a table that is missing is created.
    Create {
        /// The tag's name, 1 to 128 characters
        #[arg(value_name = "KEY")]
        key: String,
        /// How many numbers to fetch at a time, at least: about what one program needs in 15 minutes
        #[arg(long, value_name = "N")]
        step: u64,
        /// The first number
        #[arg(long, value_name = "N", default_value_t = 1)]
        first: u64,
        /// What the tag is for, at most 256 characters
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
}

/// What to do about tokens.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum TokenCommand {
    /// Make a token of 256 random bits: print it once, and what the settings file needs of it
    ///
    /// Works anywhere; reads no settings and changes nothing. The first line is the token, for the
    /// caller; the rest is a table [[auth.tokens]] with its digest, for the servers.
    New {
        /// What logs and errors call it: 1 to 64 letters, digits, `.`, `_` or `-`
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What it may be used for
        #[arg(long, value_name = "SCOPE,..", value_delimiter = ',', value_parser = Scopes::names())]
        #[arg(default_value = "generate,read,segments")]
        scopes: Vec<String>,
    },
}

/// What the command line asks for that needs no settings.
pub(super) fn token(matches: &ArgMatches) -> Result<Option<TokenCommand>, clap::Error> {
    match matches.subcommand() {
        Some(("token", matches)) => TokenCommand::from_arg_matches(matches).map(Some),
        _ => Ok(None),
    }
}

/// What the command line asks for, if it is not to serve.
pub(super) fn of(matches: &ArgMatches) -> Result<Option<Task>, clap::Error> {
    match matches.subcommand() {
        Some(_) => Task::from_arg_matches(matches).map(Some),
        None => Ok(None),
    }
}

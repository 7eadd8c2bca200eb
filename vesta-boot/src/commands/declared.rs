//! Command lines of the commands.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use vesta_intf::UnixMillis;
use vesta_store::StoreUrl;

use crate::output::Output;
use crate::segments::SegmentCommand;
use crate::serials::SerialCommand;
use crate::settings::moment::instant;
use vesta_net::{Scopes, checked_name};

/// Command that runs instead of a server.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Inspect, prepare and repair the store of machine IDs, or migrate to it
    Store {
        /// The command
        #[command(subcommand)]
        command: StoreCommand,
        /// Skip the confirmation prompt
        #[arg(long, global = true)]
        yes: bool,
        /// Output format
        #[command(flatten)]
        format: Format,
    },
    /// List and add tags of segment mode
    Segment {
        /// The command
        #[command(subcommand)]
        command: SegmentCommand,
        /// Output format
        #[command(flatten)]
        format: Format,
    },
    /// Serials (numbers for people): list and add tags, make and parse serials
    Serial {
        /// The command
        #[command(subcommand)]
        command: SerialCommand,
        /// Output format
        #[command(flatten)]
        format: Format,
    },
    /// Make key files of opaque IDs
    Key {
        /// The command
        #[command(subcommand)]
        command: KeyCommand,
        /// Output format
        #[command(flatten)]
        format: Format,
    },
    /// Make tokens for callers
    Token {
        /// The command
        #[command(subcommand)]
        command: TokenCommand,
        /// Output format
        #[command(flatten)]
        format: Format,
    },
}

/// Output format of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub struct Format {
    /// Format of the output: text, json or csv
    ///
    /// In JSON, IDs and other numbers that may exceed 2^53 are strings.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    #[arg(hide_possible_values = true)]
    pub output: Output,
}

/// Commands for the store of machine IDs.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum StoreCommand {
    /// Create missing tables, keys, the namespace, and the segment tags' table; report what was
    /// created
    ///
    /// For stores in which servers may not create anything (auto_init = false). Does nothing if the
    /// namespace exists.
    Init,
    /// Show the namespace and the owner of each machine ID; changes nothing
    ///
    /// States: held (its window is open), expired (its owner let the window pass), released (given
    /// back), foreign (held by a process of another system), lost (its record was deleted or
    /// replaced).
    Show,
    /// Keep every later claim above a moment, after a store has forgotten something
    ///
    /// A store that was wiped, restored from a backup, or lost changes in a fail-over may know less
    /// than was issued. Stop every process that still uses it, then raise the floor: no machine ID
    /// of the namespace is then handed out below that moment, and programs that start wait for it.
    /// A floor is never lowered.
    RaiseFloor {
        /// The moment, such as 2026-01-31T12:00:00Z [default: now + the window + 60 s]
        #[arg(long, value_name = "TIME", value_parser = instant)]
        to: Option<UnixMillis>,
    },
    /// Trust a store again that was found to be able to forget acknowledged writes
    ///
    /// A process that finds that the store may lose changes, in a crash or when a replica takes over, records this
    /// doubt in the namespace. From then on claims keep a distance. Only this command clears the doubt. Run it
    /// once replication or settings have been changed so that no acknowledged write is lost.
    Trust,
    /// Serve a copy of a pool server's store in place of the original, which is gone for good
    ///
    /// A pool server refuses to serve a file that was moved or copied, and a store beside an older one. This command gives
    /// the store a new identity, and raises the floor of every namespace above what members of the original may still
    /// hold. Run it on the pool server's host, while the pool server is stopped. If the original is still served, IDs repeat.
    Adopt,
    /// Declare the owner of a machine ID gone for good, so that the pool may hand it out again
    ///
    /// For expired owners before their grace is over, and for the foreign owners that `store import` has
    /// recorded. Ranges that the owner had reserved stay reserved. If it still runs, it loses the machine
    /// ID at its next renewal; a process of another system does not notice, so stop it first.
    Free {
        /// The machine ID
        #[arg(value_name = "ID")]
        machine: u64,
    },
    /// Reserve a machine ID for something that is not a Vesta process, such as a database that makes IDs
    ///
    /// No pool hands it out until `store free` gives it back. Refused if the machine ID has an owner, or may have
    /// made IDs above the current time.
    Reserve {
        /// The machine ID
        #[arg(value_name = "ID")]
        machine: u64,
        /// Its user, 1 to 200 characters; `store show` lists this text as the host
        #[arg(long = "for", value_name = "TEXT")]
        holder: String,
    },
    /// Recreate the record of a machine ID that was deleted or replaced
    ///
    /// The last ID made with such a machine ID is unknown, so no pool hands it out. Stop the process that had
    /// it; if it still runs, it loses the machine ID at its next renewal. The new record is free and starts
    /// above every window.
    Repair {
        /// The machine ID
        #[arg(value_name = "ID")]
        machine: u64,
    },
    /// Take over the machine IDs of another system, so that no pool hands them out
    ///
    /// Writes a record for each machine ID that the other system has handed out. Existing records
    /// are left alone, so repeating the import changes nothing. Once the process of the other
    /// system is stopped for good, `store free ID` gives its machine ID to the pool.
    Import(Box<StoreImport>),
}

/// Options of `store import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct StoreImport {
    /// The legacy system
    pub system: LegacySystem,
    /// URL of its store: mysql://user:password@host:3306/database,
    /// zookeeper://host:2181/snowflake/NAME/forever, or CosId's own store: redis://, mysql:// or
    /// zookeeper://host:2181
    #[arg(
        long,
        value_name = "URL",
        env = "VESTA_IMPORT_FROM",
        hide_env_values = true
    )]
    pub from: StoreUrl,
    /// Namespace of CosId, `cosid.namespace` of its applications
    #[arg(long, value_name = "NAME", required_if_eq("system", "cosid"))]
    pub cosid_namespace: Option<String>,
}

/// Legacy system whose machine IDs can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LegacySystem {
    /// The Java Vesta ID Generator, in MySQL
    VestaDb,
    /// Leaf's snowflake mode, in ZooKeeper
    Leaf,
    /// A system whose worker IDs are the names of a znode's children, in ZooKeeper
    Nodes,
    /// CosId, in Redis, MySQL or ZooKeeper
    #[value(name = "cosid")]
    CosId,
}

/// Commands for keys of opaque IDs.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeyCommand {
    /// Make a random key in a new file that only its owner may read
    ///
    /// Reads no settings. Servers take the key by opaque.key_file, `vesta explain` by --key.
    New {
        /// The file; refused if it exists
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Commands for tokens.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TokenCommand {
    /// Make a token of 256 random bits; print it once, with the table for the settings file
    ///
    /// Works anywhere; reads no settings and changes nothing. The first line is the token, for the
    /// caller. The rest is an [[auth.tokens]] table with its digest, for the servers.
    New {
        /// Its name in logs and errors: 1 to 64 letters, digits, `.`, `_` or `-`
        #[arg(long, value_name = "NAME", value_parser = checked_name)]
        name: String,
        /// Scopes of the token
        #[arg(long, value_name = "SCOPE,..", value_delimiter = ',', value_parser = PossibleValuesParser::new(Scopes::ANY.names()))]
        #[arg(default_value = "generate,read,segments,serials")]
        scopes: Vec<String>,
    },
}

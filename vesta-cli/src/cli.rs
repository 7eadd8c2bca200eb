//! The command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use vesta_boot::Role;
use vesta_boot::commands::Format;
use vesta_intf::{Field, GenMethod, Id, IdFormat, IdMeta, UnixMillis};

use crate::values::{self, ServerUrl};

/// 64-bit IDs that never repeat: serve, make, explain and check them
///
/// Data goes to standard output, words to standard error. Exit codes: 0; 1 if the answer is no; 64 for bad
/// input; 69 if something cannot be reached; 70 for another failure.
#[derive(Debug, Parser)]
#[command(
    name = "vesta",
    version = vesta_boot::VERSION,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Examples:\n  vesta gen\n  vesta explain 1785223470585921538 --layout snowflake\n  \
                        vesta help store free\n\n`vesta serve` starts a server: REST on port 8088, gRPC on 50051."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) format: Format,
    /// TOML file with settings, for the commands that take the settings of a server
    ///
    /// Flags and the environment win over it. [env: VESTA_CONFIG]
    #[arg(
        long,
        short,
        value_name = "FILE",
        env = "VESTA_CONFIG",
        hide_env = true,
        global = true
    )]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve IDs by REST and gRPC
    Serve(ServeArgs),
    /// Make IDs here, or take them from a server
    ///
    /// Without a server it takes the settings of `vesta serve`, as flags, from the environment and from the
    /// file of --config: --layout, --namespace, --machine-id, --machine-store …
    Gen(GenArgs),
    /// Take IDs apart: fields, time, other forms
    Explain(ExplainArgs),
    /// Put an ID together from its fields
    Make(MakeArgs),
    /// The smallest and the largest ID of a moment or a day, or a condition for a range of time
    Bound(BoundArgs),
    /// Look at layouts, check and design them
    #[command(subcommand)]
    Layout(LayoutCommand),
    /// Prove that two sets of IDs never meet, or show where they do
    #[command(subcommand)]
    Plan(PlanCommand),
    #[command(flatten)]
    OfServers(vesta_boot::commands::Command),
    /// Check this host and these settings: each line is ok, warn or fail, with what to do
    ///
    /// Takes the settings of `vesta serve`. Exit code 1 if something fails.
    Doctor,
    /// Show what servers are doing: a row for each, once a second
    Top(TopArgs),
    /// Ask a server on this host whether it is ready
    ///
    /// Takes the settings of `vesta serve` and asks /readyz of their admin listener: for containers, which
    /// have no shell. Exit code 1 if it is not ready, 69 if it does not answer.
    Healthcheck,
    /// Find out which process made an ID, from the history of claims in the store of machine IDs
    ///
    /// Takes the settings of `vesta serve`: --machine-store, --namespace, --layout … Exit code 1: no process
    /// of this namespace made it.
    Audit(AuditArgs),
    /// SQL that takes IDs apart in a database, and gives the bounds of a time
    ///
    /// PostgreSQL gets functions that have the layout in their names, the others statements. genMethod stands
    /// above the time, so the bounds take it as an argument.
    Sql(SqlArgs),
    /// Measure a server: requests a second and how long they take
    Bench(BenchArgs),
    /// Start servers, kill them, pause them and set their clocks wrong; compare every ID
    ///
    /// The servers are its own: processes of this program on loopback, in a temporary folder. The clocks are
    /// those of the servers, never this host's. Exit code 1: an ID came twice.
    Chaos(ChaosArgs),
    /// Print the completions of a shell
    #[command(after_help = "Example:\n  vesta completions bash")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual: vesta.1 to standard output, or a page for each command into a folder
    Man {
        /// The folder
        folder: Option<PathBuf>,
    },
}

/// One of the two fronts, or nothing for both. The settings are added by [`tree`].
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) front: Option<ServeCommand>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ServeCommand {
    /// Serve REST alone, as the program vesta-rest does
    Rest,
    /// Serve gRPC alone, as the program vesta-server does
    Grpc,
}

/// A layout: a name, a file with `[layout.custom]`, or the default of a command.
#[derive(Debug, Args)]
pub(crate) struct Layout {
    /// Layout: a name of `vesta layout list`, or a file with a table [layout.custom]
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "max-peak",
        env = "VESTA_LAYOUT"
    )]
    #[arg(hide_env_values = true, value_parser = values::layout)]
    pub(crate) layout: IdMeta,
}

#[derive(Debug, Args)]
pub(crate) struct GenArgs {
    /// Number of IDs, 1 to 10000000
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) count: u64,
    /// Text format of the IDs: decimal, padded-decimal, hex, base36, base62 or crockford; with check symbols
    /// crockford-check, decimal-damm, decimal-mod97 or decimal-luhn
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) format: IdFormat,
    /// Server to take them from, by gRPC or REST: http://host:50051, https://host:8088
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) access: Access,
}

/// Ways past the door of a server.
#[derive(Debug, Clone, Args)]
pub(crate) struct Access {
    /// Bearer token of the server
    #[arg(
        long,
        value_name = "TOKEN",
        env = "VESTA_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
    /// Authority of the server's certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The server: http://host:8088 (REST) or http://host:50051 (gRPC)
    #[arg(long, value_name = "URL")]
    pub(crate) server: ServerUrl,
    /// Connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) connections: u16,
    /// Duration: 10s, 1m
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = values::length)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) access: Access,
}

#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// Servers at a time
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) processes: u16,
    /// Duration in minutes; 0.5 is half of one
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = values::minutes)]
    pub(crate) minutes: f64,
    /// Store of their machine IDs, as --machine-store; a file of its own by default
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Seed of the faults: which, when and in which server; drawn if not given, and said
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The admin listeners: http://host:8089,http://host:50052
    #[arg(
        value_delimiter = ',',
        value_name = "URL",
        default_value = "http://127.0.0.1:8089"
    )]
    pub(crate) servers: Vec<ServerUrl>,
    /// Rows for each, then end
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) access: Access,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// IDs in decimal, signed, hex, base62, Crockford or CosId's friendly form; `-` reads one a line from
    /// standard input
    #[arg(required = true, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) ids: Vec<String>,
    /// Layout: a name of `vesta layout list`, a file with a table [layout.custom], or guess
    ///
    /// Of Vesta's two layouts the one that the ID's type bit names is taken.
    #[arg(
        long,
        value_name = "NAME|FILE|guess",
        default_value = "max-peak",
        env = "VESTA_LAYOUT"
    )]
    #[arg(hide_env_values = true)]
    pub(crate) layout: String,
    /// Year, month or day (UTC) in which it was made, or the moment, for a guess: 2016, 2016-04,
    /// 2016-04-30
    #[arg(long, value_name = "PERIOD", value_parser = vesta_boot::period)]
    pub(crate) made: Option<RangeInclusive<UnixMillis>>,
    /// Time zone to show beside UTC [default: the system's], and of friendly IDs [default: UTC]
    #[arg(long, visible_alias = "tz", value_name = "ZONE")]
    pub(crate) zone: Option<String>,
}

/// A layout, and the fields that stand above its time.
#[derive(Debug, Args)]
pub(crate) struct Upper {
    /// genMethod: 0 embedded, 1 gRPC, 2 REST [default: 2, or 0 in a layout without it]
    #[arg(long, value_name = "0-3")]
    pub(crate) gen_method: Option<u64>,
    /// Version bit
    #[arg(long, value_name = "0|1", default_value_t = 0)]
    pub(crate) id_version: u64,
    #[command(flatten)]
    layout: Layout,
}

impl Upper {
    /// The layout, and an ID of it with these fields alone.
    pub(crate) fn blank(&self) -> (IdMeta, Id) {
        let layout = self.layout.layout;
        let own = if layout.bits(Field::GenMethod) == 0 {
            0
        } else {
            2
        };
        let gen_method = self.gen_method.unwrap_or(own);
        (
            layout,
            Id {
                gen_method,
                version: self.id_version,
                ..layout.blank()
            },
        )
    }

    /// The same ID with each genMethod that IDs can have, or with the one that is given.
    pub(crate) fn blanks(&self) -> Vec<Id> {
        let (layout, blank) = self.blank();
        let last = layout
            .max(Field::GenMethod)
            .min(GenMethod::Reserved.value());
        let all = self.gen_method.map_or(0..=last, |only| only..=only);
        all.map(|gen_method| Id {
            gen_method,
            ..blank
        })
        .collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct MakeArgs {
    /// Ticks since the layout's epoch
    #[arg(long, value_name = "N")]
    pub(crate) time: u64,
    /// Sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seq: u64,
    /// Machine ID
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) machine: u64,
    #[command(flatten)]
    pub(crate) upper: Upper,
}

#[derive(Debug, Args)]
pub(crate) struct BoundArgs {
    /// A moment, a whole day, month or year (UTC), or two with / between them
    ///
    /// 2026-01-31T20:00:00+08:00 means the tick of that moment, 2026-01-31 the whole day, 2026-01 the month,
    /// 2026 the year. FROM/UNTIL means from the beginning of FROM up to, excluding, the beginning of UNTIL.
    #[arg(value_name = "TIME[/TIME]")]
    pub(crate) time: String,
    /// Print a condition on this column instead, over every genMethod unless --gen-method names one
    #[arg(long, value_name = "COLUMN", value_parser = values::column)]
    pub(crate) sql: Option<String>,
    #[command(flatten)]
    pub(crate) upper: Upper,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LayoutCommand {
    /// All layouts that have a name
    List,
    /// The bits, dates and capacity of a layout
    Show {
        /// A name, or a file with a table [layout.custom]
        #[arg(value_name = "NAME|FILE", value_parser = values::layout)]
        layout: IdMeta,
    },
    /// Check the table [layout.custom] of a settings file
    Check {
        /// The file
        file: PathBuf,
    },
    /// Find the narrowest layout for so many years, machines and IDs a second
    Design {
        /// Years that it lasts, from its epoch on
        #[arg(long, value_name = "N")]
        years: u64,
        /// Machine IDs
        #[arg(long, value_name = "N")]
        machines: u64,
        /// IDs a second of each machine ID
        #[arg(long, value_name = "N")]
        per_second: u64,
        /// Moment at which its time is 0, of a day the beginning in UTC [default: the beginning of this
        /// year]
        #[arg(long, value_name = "TIME", value_parser = vesta_boot::moment::moment)]
        epoch: Option<UnixMillis>,
        /// Print the table for the settings file instead
        #[arg(long)]
        toml: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Decide whether any number belongs to two sets of IDs
    ///
    /// A set is a layout with ranges of its fields, LAYOUT[,FIELD=FIRST-LAST]…, or a TOML file with the
    /// same keys. Fields: version, genMethod, seq, machine; region=2/3 fixes the upper 3 bits of the
    /// machine to 2; from and until are
    /// moments, or days, which mean their beginning in UTC; until is excluded. What is given twice must hold twice. Left out:
    /// every value, but version 0. `counter,until=N` are the numbers 1 to N, and
    /// `counter,from=M,until=N` those from M on.
    ///
    /// Prints `disjoint`, or a number that belongs to both and what it is in each: then the exit code is 1.
    #[command(
        after_help = "Example:\n  vesta plan overlap snowflake,until=2027-01-01 \
                            max-peak,genMethod=1,from=2026-11-22"
    )]
    Overlap {
        /// The IDs that there are
        old: String,
        /// Those to come
        new: String,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct AuditArgs {
    /// The ID, in any form
    #[arg(value_name = "ID", required = true, allow_negative_numbers = true)]
    pub(crate) id: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Look through the IDs of a table: repeated ones, clocks that went back, machines, the future
    ///
    /// Reads one column of a CSV file (comma, semicolon or tab; with or without a line of names), or of a table
    /// in MySQL, PostgreSQL or SQLite. To see clocks that went back, the rows must come in the order in which
    /// they were made: --order-by a column that grows with each row. Exit code 1 if anything is found, or if
    /// no row holds an ID of the layout.
    #[command(
        after_help = "Examples:\n  vesta audit table orders.csv --column id --layout snowflake\n  \
                            vesta audit table --from sqlite:shop.db --table orders --column id"
    )]
    Table(TableArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// CSV file, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Database instead of a file: mysql://…, postgres://…, sqlite:FILE
    #[arg(
        long,
        value_name = "URL",
        env = "VESTA_AUDIT_FROM",
        hide_env_values = true
    )]
    pub(crate) from: Option<String>,
    /// The table
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// The column with the IDs: its name, or in CSV its number, from 1 on [default in CSV: the only one, or
    /// `id`]
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
    /// The column that orders the rows [default: the column with the IDs]
    #[arg(long = "order-by", value_name = "NAME")]
    pub(crate) order: Option<String>,
    /// Machine IDs that are planned: 0-923 [default: all]
    #[arg(long, value_name = "FIRST-LAST", value_parser = values::machines)]
    pub(crate) machines: Option<RangeInclusive<u64>>,
    /// Steps back of a clock that are no finding, since rows overtake each other
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::length)]
    pub(crate) tolerance: Duration,
    #[command(flatten)]
    pub(crate) layout: Layout,
}

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// PostgreSQL
    Postgres,
    /// MySQL and MariaDB
    Mysql,
    /// SQLite
    Sqlite,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The database
    #[arg(long, value_enum)]
    pub(crate) dialect: Dialect,
    /// Version bit of the bounds
    #[arg(long, value_name = "0|1", default_value_t = 0)]
    pub(crate) id_version: u64,
    #[command(flatten)]
    pub(crate) layout: Layout,
}

/// Commands that take the settings of a server, which their help does not repeat.
const WITH_SETTINGS: [&str; 4] = ["gen", "audit", "doctor", "healthcheck"];
/// Commands that take the same settings, of which their help has those that they use.
const OF_SERVERS: [&str; 3] = ["store", "segment", "serial"];

/// The whole command line.
pub(crate) fn tree() -> clap::Command {
    let front = |name: &'static str, role, called| vesta_boot::serving(role, called).name(name);
    let serve = front("serve", Role::Vesta, "vesta serve").subcommands([
        front("rest", Role::Rest, "vesta serve rest")
            .about("Serve REST alone, as the program vesta-rest does"),
        front("grpc", Role::Server, "vesta serve grpc")
            .about("Serve gRPC alone, as the program vesta-server does"),
    ]);
    let hidden = || vesta_boot::arguments(Role::Vesta).map(|arg| arg.hide(true).global(false));
    // The others come from the environment and the file all the same, and are checked.
    let shared = || {
        vesta_boot::arguments(Role::Vesta).map(|arg| {
            if arg.is_global_set() {
                arg
            } else {
                arg.hide(true)
            }
        })
    };
    let tree = Cli::command().mut_subcommand("serve", |_| serve.display_order(0));
    let tree = WITH_SETTINGS.into_iter().fold(tree, |tree, name| {
        tree.mut_subcommand(name, |command| command.args(hidden()))
    });
    OF_SERVERS.into_iter().fold(tree, |tree, name| {
        tree.mut_subcommand(name, |command| command.args(shared()))
    })
}

/// Commands whose output has no other form.
const WITHOUT_FORMATS: [&str; 5] = ["serve", "healthcheck", "sql", "completions", "man"];

/// True if an option that stands before or after each command has an effect on this one.
pub(crate) fn has_effect(option: &str, name: &str) -> bool {
    match option {
        "config" => name == "serve" || WITH_SETTINGS.contains(&name) || OF_SERVERS.contains(&name),
        _ => !WITHOUT_FORMATS.contains(&name),
    }
}

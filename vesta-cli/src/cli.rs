//! The command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use vesta_boot::commands::Format;
use vesta_boot::{Api, TextFormat};
use vesta_intf::{Field, GenMethod, Id, IdFormat, IdMeta, UnixMillis};

use crate::values::{self, ServerUrl};

/// 64-bit IDs that never repeat: serve, make, explain and check them
///
/// Data goes to standard output, messages to standard error. Exit codes: 0; 1 if the answer is no; 64 for
/// bad input; 69 if something cannot be reached; 70 for another failure.
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
    /// TOML settings file, for the commands that take the settings of a server
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
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve IDs by REST and gRPC
    Serve(ServeArgs),
    /// Generate IDs here, or take them from a server
    ///
    /// Without --server it takes the settings of `vesta serve`, as flags, from the environment and from the
    /// file of --config: --layout, --namespace, --machine-id, --machine-store …
    Gen(GenArgs),
    /// Explain IDs: fields, time, other forms
    Explain(ExplainArgs),
    /// Assemble an ID from its fields
    Make(MakeArgs),
    /// Print the smallest and largest ID of a moment or day, or a condition for a time range
    Bound(BoundArgs),
    /// List, show, check and design layouts
    #[command(subcommand)]
    Layout(LayoutCommand),
    /// Prove that two sets of IDs never meet, or show where they do
    #[command(subcommand)]
    Plan(PlanCommand),
    #[command(flatten)]
    OfServers(vesta_boot::commands::Command),
    /// Check this host and these settings: each line is ok, warn or fail, with a remedy
    ///
    /// Takes the settings of `vesta serve`. Exit code 1 if a check fails.
    Doctor,
    /// Show server activity: one row per server, once a second
    Top(TopArgs),
    /// Ask a server on this host whether it is ready
    ///
    /// Takes the settings of `vesta serve` and requests /readyz from the admin listener, for containers,
    /// which have no shell. Exit code 1 if the server is not ready, 69 if it does not answer.
    Healthcheck,
    /// Find out which process made an ID, from the history of claims in the store of machine IDs
    ///
    /// Takes the settings of `vesta serve`: --machine-store, --namespace, --layout … Exit code 1 if no
    /// process of this namespace made it.
    Audit(AuditArgs),
    /// Print SQL that decodes IDs in a database and computes the bounds of a time, or that makes IDs
    ///
    /// For PostgreSQL it prints functions named after the layout, for others statements. genMethod is more
    /// significant than the time, so the bounds take it as an argument.
    #[command(
        after_help = "Examples:\n  vesta sql --dialect mysql --layout snowflake\n  \
                            vesta sql --generate --dialect postgres --machine 1000"
    )]
    Sql(SqlArgs),
    /// Measure a server: requests per second and latency
    Bench(BenchArgs),
    /// Start servers, kill and pause them and step their clocks; compare every ID
    ///
    /// The servers are processes of this program on loopback, in a temporary folder. Only their clocks are
    /// stepped, never this host's. Exit code 1 if an ID came twice.
    Chaos(ChaosArgs),
    /// Print shell completions
    #[command(after_help = "Example:\n  vesta completions bash")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual: vesta.1 to standard output, or one page per command into a folder
    Man {
        /// The folder
        folder: Option<PathBuf>,
    },
}

/// One of the two fronts, or none for both. [`tree`] adds the settings.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) front: Option<ServeCommand>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ServeCommand {
    /// Serve IDs by REST only
    Rest,
    /// Serve IDs by gRPC only
    Grpc,
}

/// A layout: a name, a file with `[layout.custom]`, or the default of a command.
#[derive(Debug, Args)]
pub(crate) struct Layout {
    /// Layout: a name from `vesta layout list`, or a file with a [layout.custom] table
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
    /// crockford-check, decimal-damm, decimal-mod97 or decimal-luhn; uuid, uuid-v7 or opaque
    ///
    /// uuid-v7 needs the layout of the IDs (--layout), opaque a key (--opaque-key-file), with --server too.
    #[arg(long, value_name = "NAME", default_value = "decimal")]
    #[arg(value_parser = PossibleValuesParser::new(TextFormat::names()), hide_possible_values = true)]
    pub(crate) format: String,
    /// Server to take IDs from, over gRPC or REST: http://host:50051, https://host:8088
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) access: Access,
}

/// Credentials for a server, and the authority it is checked by.
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
    /// Certificate authority of the server (PEM)
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
    /// Number of servers at a time
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) processes: u16,
    /// Duration in minutes; 0.5 is 30 seconds
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = values::minutes)]
    pub(crate) minutes: f64,
    /// Store of their machine IDs, like --machine-store [default: a temporary file]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Claim them through a pool server, which is killed and paused, too
    #[arg(long, conflicts_with = "store")]
    pub(crate) pool_server: bool,
    /// Seed of the faults: which, when and in which server [default: random; printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Admin listeners: http://host1:8089,http://host2:8089
    #[arg(
        value_delimiter = ',',
        value_name = "URL",
        default_value = "http://127.0.0.1:8089"
    )]
    pub(crate) servers: Vec<ServerUrl>,
    /// Rows per server before it exits [default: no limit]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) access: Access,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// IDs in any text format, as literals, UUIDs or in CosId's friendly form; `-` reads them from standard input, one
    /// per line
    ///
    /// A text that fits several formats is explained in each of them.
    #[arg(required = true, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) ids: Vec<String>,
    /// Layout: a name from `vesta layout list`, a file with a [layout.custom] table, or guess
    ///
    /// Between Vesta's two layouts, the ID's type bit decides.
    #[arg(
        long,
        value_name = "NAME|FILE|guess",
        default_value = "max-peak",
        env = "VESTA_LAYOUT"
    )]
    #[arg(hide_env_values = true)]
    pub(crate) layout: String,
    /// For a guess: year, month or day (UTC) in which the ID was made, or the moment: 2016,
    /// 2016-04, 2016-04-30
    #[arg(long, value_name = "PERIOD", value_parser = vesta_boot::period)]
    pub(crate) made: Option<RangeInclusive<UnixMillis>>,
    /// Text format of the IDs, read exactly; hex, base36 and base62 also without leading zeros
    #[arg(long, value_name = "FORMAT", value_parser = text_format())]
    pub(crate) format: Option<String>,
    /// Text format to write the IDs in; without -o nothing else is printed
    #[arg(long, value_name = "FORMAT", value_parser = text_format())]
    pub(crate) to: Option<String>,
    /// Key file of opaque IDs. Without --format and --to, the IDs are given as opaque
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Time zone shown beside UTC [default: the system's], and of friendly IDs [default: UTC]
    #[arg(long, visible_alias = "tz", value_name = "ZONE")]
    pub(crate) zone: Option<String>,
}

/// A text format by its name.
fn text_format() -> PossibleValuesParser {
    PossibleValuesParser::new(TextFormat::names())
}

/// A layout, and the fields above its time.
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

    /// The same ID with each genMethod that IDs can have, or with the given one.
    pub(crate) fn blanks(&self) -> Vec<Id> {
        let (layout, blank) = self.blank();
        let last = layout
            .max(Field::GenMethod)
            .min(GenMethod::Database.value());
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
    /// A moment, a whole day, month or year (UTC), or two of these separated by /
    ///
    /// 2026-01-31T20:00:00+08:00 means the tick of that moment, 2026-01-31 the whole day, 2026-01 the month,
    /// 2026 the year. FROM/UNTIL means from the start of FROM up to, but excluding, the start of UNTIL.
    #[arg(value_name = "TIME[/TIME]")]
    pub(crate) time: String,
    /// Print a condition on this column instead, for every genMethod unless --gen-method is given
    #[arg(long, value_name = "COLUMN", value_parser = values::column)]
    pub(crate) sql: Option<String>,
    #[command(flatten)]
    pub(crate) upper: Upper,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LayoutCommand {
    /// List the named layouts
    List,
    /// Show the bits, dates and capacity of a layout
    Show {
        /// A name, or a file with a [layout.custom] table
        #[arg(value_name = "NAME|FILE", value_parser = values::layout)]
        layout: IdMeta,
    },
    /// Check the [layout.custom] table of a settings file
    Check {
        /// The file
        file: PathBuf,
    },
    /// Find the narrowest layout for a lifetime, a number of machines and a rate
    ///
    /// With --digits instead of one of them, or of all: list the demands that IDs with this number of decimal digits meet.
    Design {
        /// Lifetime in years, from the layout's epoch
        #[arg(long, value_name = "N", required_unless_present = "digits")]
        years: Option<u64>,
        /// Number of machine IDs
        #[arg(long, value_name = "N", required_unless_present = "digits")]
        machines: Option<u64>,
        /// IDs per second and machine ID
        #[arg(long, value_name = "N", required_unless_present = "digits")]
        per_second: Option<u64>,
        /// Maximum decimal digits of an ID, 6 to 19
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(6..=19))]
        digits: Option<u32>,
        /// Moment at which the time field is 0, such as 2026-01-01T00:00:00Z [default: the start of
        /// this year in UTC]
        #[arg(long, value_name = "TIME", value_parser = vesta_boot::moment::instant)]
        epoch: Option<UnixMillis>,
        /// Print the table for the settings file instead
        #[arg(long)]
        toml: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Check whether any number belongs to both of two sets of IDs
    ///
    /// A set is a layout with ranges of its fields, LAYOUT[,FIELD=FIRST-LAST]…, or a TOML file with the same keys.
    /// Fields: version, genMethod, seq, machine. region=2/3 fixes the upper 3 bits of the machine to 2. from and until
    /// are moments, or days, which mean their start in UTC; until is excluded. If a key is given twice, both must hold.
    /// A field left out has every value, except version: 0. `counter,until=N` is the numbers 1 to N, and
    /// `counter,from=M,until=N` those from M on.
    ///
    /// Prints `disjoint`; otherwise a number that belongs to both, with its meaning in each, and exits with 1.
    #[command(
        after_help = "Example:\n  vesta plan overlap snowflake,until=2027-01-01 \
                            max-peak,genMethod=1,from=2026-11-22"
    )]
    Overlap {
        /// The existing IDs
        old: String,
        /// The future IDs
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
    /// Audit the IDs of a table: duplicates, clocks that went back, unplanned machines, future times
    ///
    /// Reads one column of a CSV file (comma, semicolon or tab; with or without a header line), or of a table
    /// in MySQL, PostgreSQL or SQLite. To detect clocks that went back, the rows must come in the order in
    /// which they were made: pass --order-by a column that grows with each row. Exit code 1 if anything is
    /// found, or if no row holds an ID of the layout.
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
    /// The column with the IDs: its name, or in CSV its number, starting at 1 [default in CSV: the only
    /// one, or `id`]
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
    /// Text format of the IDs, read exactly, as by `vesta explain --format` [default: each format that only one fits]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<IdFormat>,
    /// The column that orders the rows [default: the column with the IDs]
    #[arg(long = "order-by", value_name = "NAME")]
    pub(crate) order: Option<String>,
    /// Planned machine IDs: 0-923 [default: all]
    #[arg(long, value_name = "FIRST-LAST", value_parser = values::machines)]
    pub(crate) machines: Option<RangeInclusive<u64>>,
    /// Clock steps back up to this length are no finding, because rows overtake each other
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::length)]
    pub(crate) tolerance: Duration,
    #[command(flatten)]
    pub(crate) layout: Layout,
}

/// A database dialect.
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
    /// Version bit of the bounds, or of new IDs
    #[arg(long, value_name = "0|1", default_value_t = 0)]
    pub(crate) id_version: u64,
    /// Print the function vesta_id(), with which PostgreSQL makes IDs itself
    #[arg(long, requires = "machine", conflicts_with = "gapless")]
    pub(crate) generate: bool,
    /// For --generate: a machine ID that no process uses (vesta store reserve)
    #[arg(long, value_name = "N", requires = "generate")]
    pub(crate) machine: Option<u64>,
    /// For --generate: genMethod [default: 3, or 0 in a layout without it]
    #[arg(long, value_name = "0-3", requires = "generate")]
    pub(crate) gen_method: Option<u64>,
    /// For --generate: schema of the function [default: public]
    #[arg(long, value_name = "NAME", requires = "generate", value_parser = values::schema)]
    pub(crate) schema: Option<String>,
    /// For --generate: replace the function that is there; its IDs go on a minute ahead
    #[arg(long, requires = "generate")]
    pub(crate) replace: bool,
    /// Print a table and a statement for numbers without gaps
    #[arg(long)]
    pub(crate) gapless: bool,
    #[command(flatten)]
    pub(crate) layout: Layout,
}

/// Commands that take the settings of a server without repeating them in their help.
const WITH_SETTINGS: [&str; 4] = ["gen", "audit", "doctor", "healthcheck"];
/// Commands that take the same settings; their help shows those that they use.
const OF_SERVERS: [&str; 3] = ["store", "segment", "serial"];

/// The whole command line.
pub(crate) fn tree() -> clap::Command {
    let front = |name: &'static str, called, apis| vesta_boot::serving(called, apis).name(name);
    let serve = front("serve", "vesta serve", &Api::ALL).subcommands([
        front("rest", "vesta serve rest", &[Api::Rest]),
        front("grpc", "vesta serve grpc", &[Api::Grpc]),
    ]);
    let hidden = || vesta_boot::arguments().map(|arg| arg.hide(true).global(false));
    // The other settings still come from the environment and the file, and are checked.
    let shared = || {
        vesta_boot::arguments().map(|arg| {
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

/// Commands whose output has only one form.
const WITHOUT_FORMATS: [&str; 5] = ["serve", "healthcheck", "sql", "completions", "man"];

/// True if an option allowed before or after each command has an effect on this one.
pub(crate) fn has_effect(option: &str, name: &str) -> bool {
    match option {
        "config" => name == "serve" || WITH_SETTINGS.contains(&name) || OF_SERVERS.contains(&name),
        _ => !WITHOUT_FORMATS.contains(&name),
    }
}

//! The command line and the environment. Values stay text; `config` says what is wrong with them.

use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::commands::Command;

/// The flags of both programs. Defaults are filled in from `KEYS`.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    next_line_help = true,
    subcommand_value_name = "COMMAND"
)]
#[allow(dead_code, reason = "read by name, together with where each value came from")]
pub(super) struct Flags {
    /// Public listener: IP address and port; port 0 takes a free one, which the start-up lines tell
    #[arg(long, value_name = "IP:PORT", env = "VESTA_LISTEN", help_heading = "Listeners")]
    listen: Option<String>,

    /// Listener for /metrics, /healthz, /readyz, /status and /segments; "off" switches it off
    #[arg(long, value_name = "IP:PORT", env = "VESTA_ADMIN_LISTEN", help_heading = "Listeners")]
    admin_listen: Option<String>,

    /// PEM file with this server's certificate and its chain; switches TLS on for the public listener.
    /// Files that are replaced while it runs are read again [default: no TLS]
    #[arg(long, value_name = "FILE", env = "VESTA_TLS_CERT", help_heading = "Listeners")]
    tls_cert: Option<String>,

    /// PEM file with the private key of that certificate
    #[arg(long, value_name = "FILE", env = "VESTA_TLS_KEY", help_heading = "Listeners")]
    tls_key: Option<String>,

    /// PEM file with the authorities of clients; a client then needs a certificate of one of them
    #[arg(long, value_name = "FILE", env = "VESTA_TLS_CLIENT_CA", help_heading = "Listeners")]
    tls_client_ca: Option<String>,

    /// As --tls-cert, for the admin listener
    #[arg(long, value_name = "FILE", env = "VESTA_ADMIN_TLS_CERT", help_heading = "Listeners")]
    admin_tls_cert: Option<String>,

    /// As --tls-key, for the admin listener
    #[arg(long, value_name = "FILE", env = "VESTA_ADMIN_TLS_KEY", help_heading = "Listeners")]
    admin_tls_key: Option<String>,

    /// As --tls-client-ca, for the admin listener; its probes then need a certificate too
    #[arg(
        long,
        value_name = "FILE",
        env = "VESTA_ADMIN_TLS_CLIENT_CA",
        help_heading = "Listeners"
    )]
    admin_tls_client_ca: Option<String>,

    /// Accept that listeners beyond loopback are not encrypted
    #[arg(long, value_name = "BOOL", env = "VESTA_ALLOW_PLAINTEXT", help_heading = "Listeners")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_plaintext: Option<String>,

    /// Bits of an ID: max-peak, min-granularity, snowflake, uid, js-safe; discord, instagram,
    /// sonyflake; or custom, which is described by [layout.custom] in the file
    #[arg(long, value_name = "NAME", env = "VESTA_LAYOUT", help_heading = "IDs")]
    layout: Option<String>,

    /// How threads share a position: lock, sync or atomic
    #[arg(long, value_name = "NAME", env = "VESTA_POPULATOR", help_heading = "IDs")]
    populator: Option<String>,

    /// Value of the genMethod bits: 0 embedded, 1 central server, 2 REST, 3 reserved
    #[arg(long, value_name = "0-3", env = "VESTA_GEN_METHOD", help_heading = "IDs")]
    gen_method: Option<String>,

    /// Value of the version bit; 1 makes IDs negative as signed 64-bit numbers
    #[arg(long, value_name = "0|1", env = "VESTA_ID_VERSION", help_heading = "IDs")]
    id_version: Option<String>,

    /// Sequence number that a tick begins with: zero, or random:N for one below N; Leaf has
    /// random:100
    #[arg(long, value_name = "START", env = "VESTA_SEQUENCE_START", help_heading = "IDs")]
    sequence_start: Option<String>,

    /// IDs that may meet in one table share a namespace
    #[arg(long, value_name = "NAME", env = "VESTA_NAMESPACE", help_heading = "IDs")]
    namespace: Option<String>,

    /// A fixed machine ID, made restart-safe by a file in the state folder; together with
    /// --machine-store it is reserved in the store instead
    #[arg(
        long,
        value_name = "N",
        env = "VESTA_MACHINE_ID",
        help_heading = "Machine ID (choose one)"
    )]
    machine_id: Option<String>,

    /// Machine IDs by this host's address: 10.0.0.1=1,10.0.0.2=2; then as --machine-id
    #[arg(long, value_name = "IP=N,..", env = "VESTA_MACHINE_IPS")]
    #[arg(help_heading = "Machine ID (choose one)")]
    machine_ips: Option<String>,

    /// Kubernetes StatefulSet: the number at the end of the host name; then as --machine-id
    #[arg(long, value_name = "BOOL", env = "VESTA_MACHINE_ORDINAL")]
    #[arg(help_heading = "Machine ID (choose one)")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    machine_ordinal: Option<String>,

    /// Pool that hands out machine IDs: sqlite:PATH, mysql://, postgres://, redis://, zookeeper://
    /// or etcd:// [default: sqlite:vesta-data/vesta.db, inside the state folder]
    #[arg(long, value_name = "URL", env = "VESTA_MACHINE_STORE")]
    #[arg(help_heading = "Machine ID (choose one)")]
    machine_store: Option<String>,

    /// Folder of the state files and of the default pool
    #[arg(long, value_name = "FOLDER", env = "VESTA_STATE_DIR")]
    #[arg(help_heading = "Machine ID (choose one)")]
    state_dir: Option<String>,

    /// Keep no state for --machine-id: IDs may then repeat after a restart
    #[arg(long, value_name = "BOOL", env = "VESTA_STATELESS")]
    #[arg(help_heading = "Machine ID (choose one)")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    stateless: Option<String>,

    /// Machine IDs that the pool may hand out, both ends included [default: all of the layout's]
    #[arg(long, value_name = "FROM-TO", env = "VESTA_MACHINE_RANGE", help_heading = "Pool")]
    machine_range: Option<String>,

    /// How many machine IDs this process takes, 1 to 64; its capacity grows with them
    #[arg(long, value_name = "N", env = "VESTA_MACHINE_COUNT", help_heading = "Pool")]
    machine_count: Option<String>,

    /// lease: machine IDs are claimed, kept and given back. disposable: each start uses a new one
    /// up, which needs an SQL store and many machine bits
    #[arg(long, value_name = "NAME", env = "VESTA_MACHINE_STRATEGY", help_heading = "Pool")]
    machine_strategy: Option<String>,

    /// stable: a host keeps its machine ID over restarts. lowest: the lowest free one
    #[arg(long, value_name = "NAME", env = "VESTA_MACHINE_CLAIM_ORDER", help_heading = "Pool")]
    machine_claim_order: Option<String>,

    /// Create tables, keys and the namespace in the store if they are missing; if not, `store init`
    /// does it
    #[arg(long, value_name = "BOOL", env = "VESTA_AUTO_INIT", help_heading = "Store")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    auto_init: Option<String>,

    /// Stay up, not ready, while the store does not answer at start; if not, end after 30 s
    #[arg(long, value_name = "BOOL", env = "VESTA_WAIT_FOR_STORE", help_heading = "Store")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait_for_store: Option<String>,

    /// For how long IDs are made while the store is away, in milliseconds; what is left of it is
    /// skipped after a crash [default: the store's own]
    #[arg(long, value_name = "MS", env = "VESTA_MACHINE_WINDOW_MS", help_heading = "Store")]
    machine_window_ms: Option<String>,

    /// How often the reservation is renewed, in milliseconds (± 10 %); at most a third of the window
    /// [default: the store's own]
    #[arg(long, value_name = "MS", env = "VESTA_MACHINE_RENEW_EVERY_MS", help_heading = "Store")]
    machine_renew_every_ms: Option<String>,

    /// Longest time for one request to the store, in milliseconds [default: the store's own]
    #[arg(long, value_name = "MS", env = "VESTA_MACHINE_REQUEST_TIMEOUT_MS")]
    #[arg(help_heading = "Store")]
    machine_request_timeout_ms: Option<String>,

    /// How long after its window the machine ID of a silent process may be taken over, in
    /// milliseconds; at least three windows [default: the store's own]
    #[arg(long, value_name = "MS", env = "VESTA_MACHINE_TAKEOVER_GRACE_MS")]
    #[arg(help_heading = "Store")]
    machine_takeover_grace_ms: Option<String>,

    /// Switches segment mode on: the database with the tags, as sqlite:PATH, mysql://, postgres:// or
    /// redis:// [default: off]
    #[arg(long, value_name = "URL", env = "VESTA_SEGMENT_STORE", help_heading = "Segments")]
    segment_store: Option<String>,

    /// strict: the numbers of a tag increase over all calls. relaxed: only within each thread, which
    /// is faster under contention
    #[arg(long, value_name = "NAME", env = "VESTA_SEGMENT_MODE", help_heading = "Segments")]
    segment_mode: Option<String>,

    /// How far the step of a tag grows by itself, 1 to 1000000
    #[arg(long, value_name = "N", env = "VESTA_SEGMENT_MAX_STEP", help_heading = "Segments")]
    segment_max_step: Option<String>,

    /// Longest wait of one call for an ID, in milliseconds
    #[arg(long, value_name = "MS", env = "VESTA_MAX_WAIT_MS", help_heading = "Limits")]
    max_wait_ms: Option<String>,

    /// Longest time for one request, in milliseconds; a caller's own deadline may be shorter
    #[arg(long, value_name = "MS", env = "VESTA_REQUEST_TIMEOUT_MS", help_heading = "Limits")]
    request_timeout_ms: Option<String>,

    /// Longest time for a graceful stop, in milliseconds
    #[arg(long, value_name = "MS", env = "VESTA_DRAIN_LIMIT_MS", help_heading = "Limits")]
    drain_limit_ms: Option<String>,

    /// Connections at a time; further ones are closed at once
    #[arg(long, value_name = "N", env = "VESTA_MAX_CONNECTIONS", help_heading = "Limits")]
    max_connections: Option<String>,

    /// Threads that serve requests [default: one for each CPU]
    #[arg(long, value_name = "N", env = "VESTA_WORKERS", help_heading = "Limits")]
    workers: Option<String>,

    /// human or json (one object in each line, on stderr)
    #[arg(long, value_name = "FORMAT", env = "VESTA_LOG_FORMAT", help_heading = "Log")]
    log_format: Option<String>,

    /// error, warn, info, debug, trace or off; also by module: info,vesta_service=debug
    #[arg(long, value_name = "LEVEL", env = "VESTA_LOG_LEVEL", help_heading = "Log")]
    log_level: Option<String>,

    /// TOML file with any of these settings; flags and the environment win over it
    #[arg(long, short, value_name = "FILE", env = "VESTA_CONFIG", help_heading = "General")]
    #[arg(global = true)]
    config: Option<PathBuf>,

    /// Show the resulting settings as TOML, with the origin of each and passwords hidden, and end
    #[arg(long, help_heading = "General")]
    print_config: bool,

    /// Show this help
    #[arg(long, short, action = ArgAction::Help, help_heading = "General", global = true)]
    help: Option<bool>,

    /// Show the version
    #[arg(long, short = 'V', action = ArgAction::Version, help_heading = "General")]
    version: Option<bool>,

    #[command(subcommand)]
    command: Option<Command>,
}

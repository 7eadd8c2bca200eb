//! Settings that were checked. Whoever holds a [`Config`] need not doubt it.

mod auth;
mod check;
mod listeners;
mod machine;
mod print;
mod segment;
mod store;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use vesta_intf::{GenMethod, IdMeta, SequenceStart};
use vesta_service::PopulatorKind;

pub use machine::{Machine, Number};
pub use segment::Segments;
pub use store::Lease;
pub use tls::TlsFiles;

use crate::net::Auth;
use crate::raw::Raw;
use crate::{ConfigError, Role};

/// The settings of a program, checked. `Debug` hides passwords.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Which program it is for.
    pub role: Role,
    /// The public listener; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The admin listener; `None` if it is switched off.
    pub admin_listen: Option<SocketAddr>,
    /// The bits of an ID.
    pub layout: IdMeta,
    /// How threads share a position.
    pub populator: PopulatorKind,
    /// The genMethod bits.
    pub gen_method: GenMethod,
    /// The version bit.
    pub version: u64,
    /// Where the sequence of a tick begins.
    pub sequence_start: SequenceStart,
    /// Where machine IDs come from.
    pub machine: Machine,
    /// How they are kept; `None` if they are not renewed.
    pub lease: Option<Lease>,
    /// The longest time for one request to the store; `None` is the store's own.
    pub store_timeout: Option<Duration>,
    /// Whether what is missing in the store is created.
    pub auto_init: bool,
    /// Whether the program stays up while the store does not answer at start.
    pub wait_for_store: bool,
    /// Where segment tags are; `None` if segment mode is off.
    pub segments: Option<Segments>,
    /// IDs that may meet share it.
    pub namespace: String,
    /// The folder of the state files.
    pub state_dir: PathBuf,
    /// The longest wait of one call for an ID.
    pub max_wait: Duration,
    /// The longest time for one request.
    pub request_timeout: Duration,
    /// The longest time for a graceful stop.
    pub drain_limit: Duration,
    /// Connections at a time.
    pub max_connections: usize,
    /// Threads that serve requests.
    pub workers: usize,
    /// Whether listeners beyond loopback may be unencrypted.
    pub allow_plaintext: bool,
    /// TLS of the public listener; `None` if it is not encrypted.
    pub tls: Option<TlsFiles>,
    /// TLS of the admin listener; `None` if it is not encrypted.
    pub admin_tls: Option<TlsFiles>,
    /// The tokens of callers; `None` if they need none.
    pub auth: Option<Auth>,
    /// What is logged, and how.
    pub log: Log,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// For people or for machines.
    pub format: LogFormat,
    /// A level, or directives by module; it was checked.
    pub level: String,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object in each line.
    Json,
}

impl Config {
    /// The settings of a program to which nobody said anything. Reads no file and no environment.
    pub fn defaults(role: Role) -> Self {
        Self::check(&Raw::defaults(role)).expect("a test checks the defaults of both programs")
    }

    /// Checks what was typed.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] with one sentence that says what to do.
    pub fn check(raw: &Raw) -> Result<Self, ConfigError> {
        check::check(raw)
    }

    /// Warns of what was allowed although it is not safe.
    pub(crate) fn warn(&self) {
        if self.auth.is_none() {
            return;
        }
        for (name, address, tls) in listeners::exposed(self) {
            tracing::warn!(
                "{name} ({address}) is not encrypted: tokens can be read on their way; set {tls}.cert \
                 and {tls}.key"
            );
        }
    }

    /// The settings as TOML, with the origin of each and passwords hidden. Without hidden passwords
    /// it is a file that gives the same settings.
    pub fn print(&self, raw: &Raw) -> String {
        print::print(self, raw)
    }
}

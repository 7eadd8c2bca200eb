//! Log lines: to stderr, for people or as JSON.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::settings::{Log, LogFormat};

/// Starts logging for the whole process. A second call changes nothing.
pub(crate) fn init(log: &Log) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(directives(&log.level)))
        .with_writer(io::stderr)
        // The reader of the log may be gone. The error would be reported on the very pipe that is
        // closed, and the logging thread would panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // An error means that logging has been started before: by a test, or by an embedding program.
    let _ = match log.format {
        LogFormat::Human => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}

/// Quietens noisy libraries: actix-http reports faults of clients as errors, which could fill the log;
/// actix-server reports each worker, zookeeper-client each session. A directive in `log.level` comes
/// later and wins.
fn directives(level: &str) -> String {
    match level {
        "off" => level.to_owned(),
        level => format!("actix_http=off,actix_server=warn,zookeeper_client=warn,{level}"),
    }
}

//! Log lines: to stderr, for people or as JSON.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::{Log, LogFormat};

/// Starts logging for the whole process. A second call changes nothing.
pub(crate) fn init(log: &Log) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(directives(&log.level)))
        .with_writer(io::stderr)
        // Whoever reads the log may be gone. It would be told so on the very pipe that is closed, and
        // the thread that has something to say would panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // An error means that logging has been started before: by a test, or by an embedding program.
    let _ = match log.format {
        LogFormat::Human => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}

/// What clients do wrong, actix-http reports as errors: they could fill the log. actix-server tells
/// of each worker, zookeeper-client of each session. Whoever wants to see one of them names it in the
/// level, which comes later and wins.
fn directives(level: &str) -> String {
    match level {
        "off" => level.to_owned(),
        level => format!("actix_http=off,actix_server=warn,zookeeper_client=warn,{level}"),
    }
}

//! Log: format and level.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt, registry};

use super::parse::{Parsed, choice, either};
use super::values::may_be_url;

section! {
    /// Log lines: format and level.
    #[derive(PartialEq, Eq)]
    "Log" pub struct Log |values, _layout| {
        /// Format of log lines: human or json
        ///
        /// `json` writes one object per line. Both formats go to stderr.
        pub format: LogFormat = "log.format" "FORMAT" or "human" for commands,
            choice([("human", LogFormat::Human), ("json", LogFormat::Json)]);

        /// Least severe level that is logged
        ///
        /// `error`, `warn`, `info`, `debug`, `trace` or `off`; also by module: `info,vesta_service=debug`.
        pub level: String = "log.level" "LEVEL" or "info" for commands, level;
    }
}

impl Log {
    /// Starts logging for the whole process. A second call has no effect.
    pub(crate) fn start(&self) {
        let lines = fmt::layer()
            .with_writer(io::stderr)
            // The reader of the log may be gone. The error would be reported on the same closed pipe,
            // and the logging thread would panic.
            .log_internal_errors(false)
            .with_ansi(io::stderr().is_terminal());
        // An error means that a test or an embedding program has started logging before.
        let lines = match self.format {
            LogFormat::Human => lines.boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        let levels: Targets = directives(&self.level)
            .parse()
            .expect("the setting was checked");
        let _ = registry().with(lines.with_filter(levels)).try_init();
    }
}

/// Quietens noisy libraries: actix-http reports faults of clients as errors, which could fill the log;
/// zookeeper-client reports each session. A directive in `log.level` comes later and wins.
fn directives(level: &str) -> String {
    match level {
        "off" => level.to_owned(),
        level => format!("actix_http=off,zookeeper_client=warn,{level}"),
    }
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}

fn level(text: &str) -> Parsed<String> {
    // A filter takes any word for a module's name; a bare word is meant as a level.
    let levels = ["error", "warn", "info", "debug", "trace", "off"];
    let is_level = |part: &str| part.contains('=') || levels.contains(&part);
    let wrong = !text.split(',').all(is_level) || may_be_url(text);
    if wrong || text.parse::<Targets>().is_err() {
        return Err(format!(
            "must be {}, also by module as in info,h2=debug",
            either(levels)
        ));
    }
    Ok(text.to_owned())
}

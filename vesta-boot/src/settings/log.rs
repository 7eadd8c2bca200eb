//! Log: form and level.

use clap::Args;
use tracing_subscriber::EnvFilter;

use super::parse::{Parsed, choice, either};
use crate::secret;

/// Log lines: form and level.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(next_help_heading = "Log")]
pub struct Log {
    /// Form of log lines: human or json
    ///
    /// `json` writes one object in each line. Both go to stderr.
    #[arg(id = "log.format", value_name = "FORMAT", default_value = "human", global = true)]
    #[arg(value_parser = choice([("human", LogFormat::Human), ("json", LogFormat::Json)]))]
    pub format: LogFormat,

    /// Least severe level that is logged
    ///
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`; also by module: `info,vesta_service=debug`.
    #[arg(id = "log.level", value_name = "LEVEL", default_value = "info", global = true)]
    #[arg(value_parser = level)]
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

fn level(text: &str) -> Parsed<String> {
    // EnvFilter takes any word for a module's name; a bare word is meant as a level.
    let levels = ["error", "warn", "info", "debug", "trace", "off"];
    let is_level = |part: &str| part.contains('=') || levels.contains(&part);
    let wrong = !text.split(',').all(is_level) || secret::may_be_url(text);
    if wrong || EnvFilter::try_new(text).is_err() {
        return Err(format!("must be {}, also by module as in info,h2=debug", either(levels)));
    }
    Ok(text.to_owned())
}

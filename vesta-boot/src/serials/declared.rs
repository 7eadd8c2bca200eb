//! Command line of `serial …`.

use clap::{Subcommand, value_parser};

use super::NewSerial;

/// Commands for serials, in the store of `serial.store`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SerialCommand {
    /// Show every tag with its pattern and its next counter; changes nothing
    List,
    /// Add a tag, unless it exists
    ///
    /// The pattern of a tag never changes. Running servers see a new tag within a minute.
    ///
    /// A pattern has {date:FORMAT} with yy, yyyy, MM, dd, DDD, HH; {q}; {ww} with {date:YYYY};
    /// {fy:yy-yy} for a fiscal year; {n:WIDTH}, {n:WIDTH+} if it may grow,
    /// {n:WIDTH:base36|base62|crockford} or {shuffle:WIDTH};
    /// {check:damm|mod97|crockford|luhn}; and other text.
    ///
    /// Example: serial create bills 'B{date:yy}-{n:6}' --reset year --zone UTC
    #[command(verbatim_doc_comment)]
    Create(NewSerial),
    /// Make serials, one per line
    Next {
        /// The tag
        #[arg(value_name = "TAG")]
        tag: String,
        /// Number of serials, 1 to 10000
        #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=10_000))]
        count: u32,
    },
    /// Parse a serial: its date and counter, and whether its check symbol is right
    Parse {
        /// The tag
        #[arg(value_name = "TAG")]
        tag: String,
        /// The serial
        #[arg(value_name = "SERIAL")]
        serial: String,
    },
}

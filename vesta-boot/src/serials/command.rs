//! `serial …`: serial tags in their store, new tags, and serials on a terminal.

use clap::{Subcommand, value_parser};
use serde_json::json;
use vesta_intf::IdError;
use vesta_numbers::serial::Reset;
use vesta_numbers::serial::SerialService;
use vesta_service::BuildError;
use vesta_store::StoreUrl;

use super::{NewSerial, Serial, SerialCreated, SerialParsed, StoredSerial};
use crate::error::Error;
use crate::output::{Output, Table, say};
use crate::report::{counted, exists, failed, other, titled, told};
use crate::serial_keys;
use crate::settings::Config;
use crate::settings::SERIALS_OFF;
use crate::stores::serials;

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

pub(crate) fn run(
    config: &Config,
    command: &SerialCommand,
    output: Output,
) -> Result<String, Error> {
    let Some(store) = &config.serials.store else {
        return Error::refuse(SERIALS_OFF);
    };
    let open = |auto_init| serials(config, store, auto_init);
    match command {
        SerialCommand::List => list(&open(false)?, output),
        SerialCommand::Create(new) => {
            let (created, said) = create(config, new, output, || open(config.store.auto_init))?;
            let tag = new.tag.clone();
            Ok(told(output, said, &SerialCreated { tag, created }))
        }
        SerialCommand::Next { tag, count } => {
            let service = open(false)?;
            let made = service
                .tag_or_made(tag)
                .and_then(|tag| tag.next_many(*count));
            service.close();
            made.map(|made| lines(made, output)).map_err(refused)
        }
        SerialCommand::Parse { tag, serial } => {
            let service = open(false)?;
            service
                .tag(tag)
                .and_then(|tag| parse(&tag, serial, output))
                .map_err(refused)
        }
    }
}

/// Creates the table of tags, if missing.
pub(crate) fn init(config: &Config, store: &StoreUrl) -> Result<String, Error> {
    let service = serials(config, store, true)?;
    let store = service.describe();
    service.refresh().map_err(|error| failed(&store, &error))?;
    let tags = service.status().len();
    Ok(format!(
        "the serial tags exist in {store}: {}\n",
        counted(tags, "tag")
    ))
}

fn lines(serials: Vec<vesta_numbers::serial::Serial>, output: Output) -> String {
    if output == Output::Text {
        return serials
            .into_iter()
            .map(|serial| serial.text + "\n")
            .collect();
    }
    let serials: Vec<_> = serials.into_iter().map(Serial::from).collect();
    Table::of(&serials).render(output)
}

fn refused(error: IdError) -> Error {
    let passes = error.retry_after().is_some();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    Error::lasting(!passes, format!("{error}{}", source.unwrap_or_default()))
}

fn parse(
    tag: &vesta_numbers::serial::SerialTag,
    serial: &str,
    output: Output,
) -> Result<String, IdError> {
    let parsed = SerialParsed::new(tag.name(), tag.parse(serial)?);
    let table = Table::of(std::slice::from_ref(&parsed));
    if output != Output::Text {
        return Ok(table.render(output));
    }
    let check = parsed.check.map(|method| format!("right ({method})"));
    let lines = [
        ("tag", Some(parsed.tag)),
        ("period", parsed.period),
        ("date", parsed.date),
        ("counter", Some(parsed.counter.0.to_string())),
        ("check", check),
    ];
    let line = |(name, value)| Some(format!("{name:<7} {}\n", Option::<String>::as_ref(&value)?));
    Ok(lines.into_iter().filter_map(line).collect())
}

/// True if the tag is new, and what to say about it.
fn create(
    config: &Config,
    new: &NewSerial,
    output: Output,
    open: impl FnOnce() -> Result<SerialService, Error>,
) -> Result<(bool, String), Error> {
    let tag = &new.tag;
    let pattern = new.checked_pattern().map_err(Error::setting)?;
    let mut checked = new.checked(pattern.clone()).map_err(Error::setting)?;
    let mut made = String::new();
    if pattern.is_shuffled() {
        let Some(folder) = &config.serials.keys else {
            return Error::refuse(format!(
                "the pattern {pattern} shuffles, which needs a key: set serial.keys \
                 (--serial-keys) to the folder of keys; a missing key is created there"
            ));
        };
        let (key, path) = serial_keys::find_or_make(folder, tag)?;
        if let Some(path) = path {
            made = format!(
                "created the key {}, fingerprint {}: copy it to every server and to a safe place\n",
                path.display(),
                key.fingerprint()
            );
        }
        checked = checked.shuffled_with(&key).map_err(Error::setting)?;
    }
    let service = open()?;
    let store = service.describe();
    let created = service.create(&checked).map_err(|error| match error {
        BuildError::Store { store, source } => failed(&store, &source),
        other => Error::lasting(other.is_configuration(), other),
    })?;
    if !created.is_new(tag).map_err(other)? {
        return Ok((false, exists(tag, &store)));
    }
    let restart = match (pattern.reset(), &new.zone) {
        (Reset::Never, _) => "its counter never restarts".to_owned(),
        (Reset::FiscalYear(start), zone) => {
            let zone = zone.as_deref().unwrap_or("UTC"); // a pattern with a date has one
            format!("its counter restarts each year on {start} in {zone}")
        }
        (reset, Some(zone)) => format!("its counter restarts each {reset} in {zone}"),
        (reset, None) => format!("its counter restarts each {reset}"),
    };
    let kind = if checked.is_template() {
        "template"
    } else {
        "tag"
    };
    if output != Output::Text && !made.is_empty() {
        say(made.trim_end());
    }
    let said = format!("{made}created {kind} {tag} in {store}: {pattern}, {restart}\n");
    Ok((true, said))
}

fn list(service: &SerialService, output: Output) -> Result<String, Error> {
    let store = service.describe();
    // Waits for the refresh begun when the service was built, and reads the current tags.
    service.refresh().map_err(|error| failed(&store, &error))?;
    let tags = service.status();
    let serials: Vec<_> = tags.iter().map(StoredSerial::from).collect();
    let table = Table::of(&serials);
    let json = json!({ "store": store, "tags": serials });
    Ok(output.pick(
        &titled(&store, &table, tags.len()),
        &json,
        &table.render(Output::Csv),
    ))
}

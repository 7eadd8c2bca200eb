//! `serial …`: the tags of serials in their store, new ones, and serials from a terminal.

use serde_json::json;
use vesta_intf::{IdError, Pattern, Reset};
use vesta_service::{BuildError, NewSerialTag, SerialService, SerialStatus};
use vesta_store::StoreUrl;

use super::console::columns;
use super::{NewSerial, SerialCommand, counted, failed, plain};
use crate::assemble::serials;
use crate::error::Error;
use crate::keys;
use crate::running::SERIALS_OFF;
use crate::settings::Config;

pub(super) fn run(config: &Config, command: &SerialCommand) -> Result<String, Error> {
    let Some(store) = &config.serials.store else {
        return Error::refuse(SERIALS_OFF);
    };
    let open = |auto_init| serials(config, store, auto_init);
    match command {
        SerialCommand::List { json } => list(&open(false)?, *json),
        SerialCommand::Create(new) => create(config, new, || open(config.store.auto_init)),
        SerialCommand::Next { tag, count } => {
            let service = open(false)?;
            let made = service.tag(tag).and_then(|tag| tag.next_many(*count));
            service.close();
            made.map(lines).map_err(refused)
        }
        SerialCommand::Parse { tag, serial } => {
            let service = open(false)?;
            service.tag(tag).and_then(|tag| parse(&tag, serial)).map_err(refused)
        }
    }
}

/// Creates the table of tags, if it is missing.
pub(super) fn init(config: &Config, store: &StoreUrl) -> Result<String, Error> {
    let service = serials(config, store, true)?;
    let store = service.describe();
    service.refresh().map_err(|error| failed(&store, &error))?;
    let tags = service.status().len();
    Ok(format!("the serial tags exist in {store}: {}\n", counted(tags, "tag")))
}

fn lines(serials: Vec<vesta_service::Serial>) -> String {
    serials.into_iter().map(|serial| serial.text + "\n").collect()
}

fn refused(error: IdError) -> Error {
    let passes = error.retry_after().is_some();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    Error::lasting(!passes, format!("{error}{}", source.unwrap_or_default()))
}

fn parse(tag: &vesta_service::SerialTag, serial: &str) -> Result<String, IdError> {
    let parsed = tag.parse(serial)?;
    let mut text = format!("tag    {}\n", tag.name());
    for (name, value) in [
        ("period", parsed.period),
        ("date", parsed.date),
        ("n", Some(parsed.counter.to_string())),
        ("check", parsed.check.map(|method| format!("right ({method})"))),
    ] {
        text += &value.map(|value| format!("{name:<6} {value}\n")).unwrap_or_default();
    }
    Ok(text)
}

fn create(
    config: &Config,
    NewSerial { tag, pattern, reset, zone, step, first, description }: &NewSerial,
    open: impl FnOnce() -> Result<SerialService, Error>,
) -> Result<String, Error> {
    let pattern = Pattern::new(pattern, *reset).map_err(Error::setting)?;
    let new = NewSerialTag::new(tag, pattern.clone(), zone.as_deref()).and_then(|mut new| {
        if let Some(step) = step {
            new = new.step(*step)?;
        }
        if let Some(description) = description {
            new = new.described_as(description)?;
        }
        new.starting_at(*first)
    });
    let mut new = new.map_err(Error::setting)?;
    let mut made = String::new();
    if pattern.is_shuffled() {
        let Some(folder) = &config.serials.keys else {
            return Error::refuse(format!(
                "the pattern {pattern} shuffles, which needs a key: set serial.keys \
                 (--serial-keys) to the folder of keys; a key that is missing is made there"
            ));
        };
        let (key, path) = keys::find_or_make(folder, tag)?;
        if let Some(path) = path {
            made = format!(
                "made the key {}, fingerprint {}: copy it to every server and to a safe place\n",
                path.display(),
                key.fingerprint()
            );
        }
        new = new.shuffled_with(&key).map_err(Error::setting)?;
    }
    let service = open()?;
    let store = service.describe();
    let created = service.create(&new).map_err(|error| match error {
        BuildError::Store { store, source } => failed(&store, &source),
        other => Error::lasting(other.is_configuration(), other),
    })?;
    if !created {
        return Error::refuse(format!(
            "tag `{tag}` already exists in {store}; nothing was changed"
        ));
    }
    let anew = match (reset, zone) {
        (Reset::None, _) => "its counter never starts anew".to_owned(),
        (reset, Some(zone)) => format!("its counter starts anew each {reset} in {zone}"),
        (reset, None) => format!("its counter starts anew each {reset}"),
    };
    Ok(format!("{made}created tag {tag} in {store}: {pattern}, {anew}\n"))
}

fn list(service: &SerialService, json: bool) -> Result<String, Error> {
    let store = service.describe();
    // Waits for what was begun when the service was built, and reads what there is now.
    service.refresh().map_err(|error| failed(&store, &error))?;
    let tags = service.status();
    if json {
        let serials: Vec<_> = tags.iter().map(in_json).collect();
        return Ok(format!("{:#}\n", json!({ "store": store, "serials": serials })));
    }
    let title = format!("{store}: {}\n", counted(tags.len(), "tag"));
    if tags.is_empty() {
        return Ok(title);
    }
    let head = ["tag", "pattern", "reset", "zone", "period", "next", "step", "key", "description"];
    let dash = |text: Option<&str>| text.map_or("-".to_owned(), plain);
    let rows = tags.iter().map(|tag| {
        let SerialStatus { pattern, reset, zone, key, period, next, segment, .. } = tag;
        [
            plain(&segment.key),
            pattern.clone(),
            (*reset).to_owned(),
            dash(zone.as_deref()),
            dash(period.as_deref()),
            next.to_string(),
            segment.table_step.to_string(),
            dash(key.as_deref()),
            dash(segment.description.as_deref()),
        ]
    });
    let rows: Vec<_> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
    Ok(format!("{title}\n{}", columns(&rows, &[5, 6])))
}

/// Counters are text: they may have more bits than a number in JSON.
fn in_json(tag: &SerialStatus) -> serde_json::Value {
    json!({
        "tag": tag.segment.key,
        "pattern": tag.pattern,
        "reset": tag.reset,
        "zone": tag.zone,
        "key": tag.key,
        "period": tag.period,
        "next": tag.next.to_string(),
        "last": tag.last.to_string(),
        "step": tag.segment.table_step,
        "description": tag.segment.description,
    })
}

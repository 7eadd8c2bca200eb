//! `plan overlap`: whether two sets of IDs meet.

use std::path::Path;

use serde_json::{Value, json};
use vesta_boot::Error;
use vesta_intf::{Field, IdError, IdMeta, IdSet, UnixMillis, overlap};

use crate::Done;
use crate::cli::PlanCommand;
use crate::output::{Output, csv_line};
use crate::values::{beside, exact, layout, moment, range};

/// A set of IDs, as it was described.
struct Described {
    layout: Option<IdMeta>,
    set: IdSet,
}

pub(crate) fn run(PlanCommand::Overlap { old, new }: &PlanCommand, output: Output) -> Done {
    let (old, new) = (describe(old)?, describe(new)?);
    let Some(id) = overlap(&old.set, &new.set) else {
        let json = json!({ "disjoint": true });
        return output.answer(true, "disjoint\n", &json, "disjoint\ntrue\n");
    };
    let (old, new) = (reading(&old, id), reading(&new, id));
    let text = |reading: &[(&str, String)]| {
        let words = reading.iter().map(|(name, value)| match *name {
            "layout" | "made" => value.clone(),
            name => format!("{name} {value}"),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let meeting = format!("they meet at {id}\n  old  {}\n  new  {}\n", text(&old), text(&new));
    let csv = csv_line(&["false".to_owned(), id.to_string(), text(&old), text(&new)]);
    let [old, new] = [old, new].map(|reading| reading.into_iter().collect::<Value>());
    let json = json!({ "disjoint": false, "id": id.to_string(), "old": old, "new": new });
    output.answer(false, &meeting, &json, &format!("disjoint,id,old,new\n{csv}"))
}

/// An ID as one of the sets has it.
fn reading(described: &Described, id: u64) -> Vec<(&'static str, String)> {
    let Some((layout, fields)) = described.layout.zip(described.set.reading(id)) else {
        return vec![("layout", "counter".to_owned()), ("number", id.to_string())];
    };
    let made = layout.moment_of(fields.time).map_or(String::new(), |at| exact(at, &layout));
    let mut reading = vec![("layout", layout.name().to_owned()), ("made", made)];
    reading.extend(beside(&layout, &fields).map(|(name, value)| (name, value.to_string())));
    reading
}

/// `snowflake,machine=0-39,until=2027-01-01`, or a file with the same keys.
fn describe(text: &str) -> Result<Described, Error> {
    let parts = match Path::new(text).extension() {
        Some(it) if it == "toml" => from_file(text),
        _ => from_words(text),
    };
    let set = parts.and_then(|(name, pairs)| match name.as_str() {
        "counter" => counter(&pairs),
        name => ids(&layout(name)?, &pairs),
    });
    set.map_err(|error| Error::setting(format!("`{text}`: {error}")))
}

/// The numbers FIRST to LAST of `counter,from=FIRST,until=LAST`.
fn counter(pairs: &[Pair]) -> Result<Described, String> {
    if let Some((key, _)) = pairs.iter().find(|pair| !["from", "until"].contains(&&*pair.0)) {
        return Err(format!("a counter takes from=FIRST and until=LAST, but no `{key}`"));
    }
    let given = |key| {
        let values = pairs.iter().filter(move |pair| pair.0 == key);
        let number = |(key, value): &Pair| {
            value.parse().map_err(|_| format!("{key} must be a number, but is `{value}`"))
        };
        values.map(number).collect::<Result<Vec<u64>, _>>()
    };
    let from = given("from")?.into_iter().max().unwrap_or(1);
    let until = given("until")?.into_iter().min().ok_or("a counter needs until=LAST")?;
    if until < from {
        return Err(format!("a counter from {from} until {until} has no number"));
    }
    Ok(Described { layout: None, set: IdSet::counter(from..=until) })
}

fn ids(layout: &IdMeta, pairs: &[Pair]) -> Result<Described, String> {
    let refused = |error: IdError| error.to_string();
    let mut set = IdSet::of(layout);
    let (mut from, mut until) = (layout.spec().epoch, UnixMillis(layout.end().0 - 1));
    for (key, value) in pairs {
        let at = || moment(value).map_err(|must| format!("{key} {must}"));
        match key.as_str() {
            // What a description leaves out is all of it, also beyond its ends.
            "from" => from = from.max(at()?),
            "until" => until = until.min(UnixMillis(at()?.0.saturating_sub(1))),
            "region" => {
                let parts = value
                    .split_once('/')
                    .and_then(|(region, bits)| Some((bits.parse().ok()?, region.parse().ok()?)));
                let (bits, region) = parts.ok_or("region must be REGION/BITS, such as 2/3")?;
                set = set.region(bits, region).map_err(refused)?;
            }
            name => {
                let fields = [Field::Version, Field::GenMethod, Field::Seq, Field::Machine];
                let known = fields.into_iter().find(|field| field.name() == name);
                let field = known.ok_or_else(|| {
                    format!(
                        "`{name}` is none of version, genMethod, seq, machine, region, from, until"
                    )
                })?;
                let range = range(value)
                    .ok_or_else(|| format!("{name} must be N or FIRST-LAST, but is `{value}`"))?;
                set = set.with(field, range).map_err(refused)?;
            }
        }
    }
    if from > until {
        return Err("it ends before it begins".to_owned());
    }
    let set = set.between(from..=until).map_err(refused)?;
    Ok(Described { layout: Some(*layout), set })
}

type Pair = (String, String);

/// The name of the layout, and what is said of its fields.
type Parts = Result<(String, Vec<Pair>), String>;

fn from_words(text: &str) -> Parts {
    let mut words = text.split(',');
    let layout = words.next().unwrap_or_default().trim().to_owned();
    let pair = |word: &str| {
        let pair =
            word.split_once('=').map(|(key, value)| (key.trim().into(), value.trim().into()));
        pair.ok_or_else(|| format!("`{word}` must be FIELD=FIRST-LAST"))
    };
    Ok((layout, words.map(pair).collect::<Result<_, _>>()?))
}

/// A file of `key = value` lines; with a table [layout.custom] it is itself the layout.
fn from_file(path: &str) -> Parts {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let layout = match table.remove("layout").ok_or("it names no layout")? {
        toml::Value::String(name) => name,
        _ => path.to_owned(),
    };
    let pair = |(key, value): (String, toml::Value)| match value {
        toml::Value::String(text) => Ok((key, text)),
        toml::Value::Integer(number) => Ok((key, number.to_string())),
        other => Err(format!("{key} must be text or a number, but is {other}")),
    };
    Ok((layout, table.into_iter().map(pair).collect::<Result<_, _>>()?))
}

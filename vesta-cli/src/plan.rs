//! `plan overlap`: whether two sets of IDs meet.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Map, Value, json};
use vesta_boot::Error;
use vesta_intf::{Field, IdMeta, IdSet, UnixMillis, overlap};

use crate::cli::PlanCommand;
use crate::output::{Output, csv_line, print};
use crate::time::{exact, moment};
use crate::{Answer, Done, layout};

/// A set of IDs, as it was described.
struct Described {
    layout: Option<IdMeta>,
    set: IdSet,
}

pub(crate) fn run(PlanCommand::Overlap { old, new }: &PlanCommand, output: Output) -> Done {
    let (old, new) = (describe(old)?, describe(new)?);
    let Some(id) = overlap(&old.set, &new.set) else {
        print(match output {
            Output::Text => "disjoint\n",
            Output::Json => "{\"disjoint\":true}\n",
            Output::Csv => "disjoint\ntrue\n",
        })?;
        return Ok(Answer::Yes);
    };
    let (old, new) = (reading(&old, id), reading(&new, id));
    let text = |reading: &[(&str, String)]| {
        let words = reading.iter().map(|(name, value)| match *name {
            "layout" | "made" => value.clone(),
            name => format!("{name} {value}"),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let object = |reading: &[(&str, String)]| {
        let members =
            reading.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into()));
        Value::Object(members.collect::<Map<_, _>>())
    };
    print(&match output {
        Output::Text => {
            format!("they meet at {id}\n  old  {}\n  new  {}\n", text(&old), text(&new))
        }
        Output::Json => {
            let json = json!({ "disjoint": false, "id": id.to_string(), "old": object(&old), "new": object(&new) });
            format!("{json}\n")
        }
        Output::Csv => {
            let row = ["false".to_owned(), id.to_string(), text(&old), text(&new)];
            format!("disjoint,id,old,new\n{}", csv_line(&row))
        }
    })?;
    Ok(Answer::No)
}

/// An ID as one of the sets has it.
fn reading(described: &Described, id: u64) -> Vec<(&'static str, String)> {
    let Some((layout, fields)) = described.layout.zip(described.set.reading(id)) else {
        return vec![("layout", "counter".to_owned()), ("number", id.to_string())];
    };
    let made = layout.moment_of(fields.time).map_or(String::new(), |at| exact(at, &layout));
    let mut reading = vec![("layout", layout.name().to_owned()), ("made", made)];
    for (field, value) in [
        (Field::GenMethod, fields.gen_method),
        (Field::Machine, fields.machine),
        (Field::Seq, fields.seq),
    ] {
        if layout.bits(field) > 0 {
            reading.push((field.name(), value.to_string()));
        }
    }
    reading
}

/// `snowflake,machine=0-39,until=2027-01-01`, or a file with the same keys.
fn describe(text: &str) -> Result<Described, Error> {
    let pairs = match Path::new(text).extension() {
        Some(it) if it == "toml" => from_file(Path::new(text))?,
        _ => from_words(text)?,
    };
    let of = |error: String| Error::setting(format!("`{text}`: {error}"));
    let get = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1.as_str());
    let name = get("layout").ok_or_else(|| of("it names no layout".to_owned()))?;
    if name == "counter" {
        let until = get("until").and_then(|until| until.parse().ok());
        let until = until.ok_or_else(|| of("counter needs until=N".to_owned()))?;
        return Ok(Described { layout: None, set: IdSet::counter(1..=until) });
    }
    let layout = layout::find(name).map_err(of)?;
    let mut set = IdSet::of(&layout);
    let (mut from, mut until) = (layout.spec().epoch, UnixMillis(layout.end().0 - 1));
    for (key, value) in pairs.iter().filter(|pair| pair.0 != "layout") {
        let at = || moment(value).map_err(|must| of(format!("{key} {must}")));
        let refused = |error: vesta_intf::IdError| of(error.to_string());
        match key.as_str() {
            // What a description leaves out is all of it, also beyond its ends.
            "from" => from = from.max(at()?),
            "until" => until = until.min(UnixMillis(at()?.0.saturating_sub(1))),
            "region" => {
                let parts = value
                    .split_once('/')
                    .and_then(|(region, bits)| Some((bits.parse().ok()?, region.parse().ok()?)));
                let (bits, region) = parts
                    .ok_or_else(|| of("region must be REGION/BITS, such as 2/3".to_owned()))?;
                set = set.region(bits, region).map_err(refused)?;
            }
            name => {
                let fields = [Field::Version, Field::GenMethod, Field::Seq, Field::Machine];
                let known = fields.into_iter().find(|field| field.name() == name);
                let field = known.ok_or_else(|| {
                    of(format!(
                        "`{name}` is none of version, genMethod, seq, machine, region, from, until"
                    ))
                })?;
                let range = range(value).ok_or_else(|| {
                    of(format!("{name} must be N or FIRST-LAST, but is `{value}`"))
                })?;
                set = set.with(field, range).map_err(refused)?;
            }
        }
    }
    if from > until {
        return Err(of("it ends before it begins".to_owned()));
    }
    let set = set.between(from..=until).map_err(|error| of(error.to_string()))?;
    Ok(Described { layout: Some(layout), set })
}

/// `0-923`.
pub(crate) fn machines(text: &str) -> Result<RangeInclusive<u64>, String> {
    range(text).ok_or_else(|| "must be FIRST-LAST, such as 0-923".to_owned())
}

fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
    (range.start() <= range.end()).then_some(range)
}

type Pairs = Vec<(String, String)>;

fn from_words(text: &str) -> Result<Pairs, Error> {
    let mut words = text.split(',');
    let layout = ("layout".to_owned(), words.next().unwrap_or_default().trim().to_owned());
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            Error::setting(format!("`{text}`: `{word}` must be FIELD=FIRST-LAST"))
        })?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    [Ok(layout)].into_iter().chain(words.map(pair)).collect()
}

/// A file of `key = value` lines; with a table [layout.custom] it is itself the layout.
fn from_file(path: &Path) -> Result<Pairs, Error> {
    let shown = path.display();
    let refused = |error: String| Error::setting(format!("{shown}: {error}"));
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| refused(error.to_string()))?;
    let pair = |(key, value): (String, toml::Value)| match value {
        toml::Value::String(text) => Ok((key, text)),
        toml::Value::Table(_) if key == "layout" => Ok((key, shown.to_string())),
        toml::Value::Integer(number) => Ok((key, number.to_string())),
        other => Err(refused(format!("{key} must be text or a number, but is {other}"))),
    };
    table.into_iter().map(pair).collect()
}

//! `plan overlap`: checks whether two sets of IDs meet.

use std::path::Path;

use serde_json::{Value, json};
use vesta_boot::answers::in_utc;
use vesta_boot::settings::{layout_of, quoted};
use vesta_boot::{Error, moment};
use vesta_explain::{IdSet, overlap};
use vesta_intf::{Field, IdError, IdMeta, UnixMillis};

use crate::Done;
use crate::cli::PlanCommand;
use crate::output::{Output, answer, csv_line};
use crate::values::{beside, layout, range};

/// A set of IDs with its description.
struct Described {
    layout: Option<IdMeta>,
    set: IdSet,
}

pub(crate) fn run(PlanCommand::Overlap { old, new }: &PlanCommand, output: Output) -> Done {
    let (old, new) = (describe(old)?, describe(new)?);
    let Some(id) = overlap(&old.set, &new.set) else {
        let json = json!({ "disjoint": true });
        return answer(output, true, "disjoint\n", &json, "disjoint\ntrue\n");
    };
    let (old, new) = (reading(&old, id), reading(&new, id));
    let text = |reading: &[(&str, Value)]| {
        let words = reading.iter().map(|(name, value)| match (*name, value) {
            ("layout" | "moment", Value::String(text)) => text.clone(),
            (name, Value::String(text)) => format!("{name} {text}"),
            (name, value) => format!("{name} {value}"),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let meeting = format!(
        "they meet at {id}\n  old  {}\n  new  {}\n",
        text(&old),
        text(&new)
    );
    let csv = csv_line(&["false".to_owned(), id.to_string(), text(&old), text(&new)]);
    let [old, new] = [old, new].map(|reading| reading.into_iter().collect::<Value>());
    let json = json!({ "disjoint": false, "id": id.to_string(), "old": old, "new": new });
    answer(
        output,
        false,
        &meeting,
        &json,
        &format!("disjoint,id,old,new\n{csv}"),
    )
}

/// The fields of an ID in one of the sets.
fn reading(described: &Described, id: u64) -> Vec<(&'static str, Value)> {
    let Some((layout, fields)) = described.layout.zip(described.set.reading(id)) else {
        return vec![
            ("layout", "counter".into()),
            ("number", id.to_string().into()),
        ];
    };
    let made = layout
        .moment_of(fields.time)
        .map_or(String::new(), |at| in_utc(at, &layout));
    let mut reading = vec![("layout", layout.name().into()), ("moment", made.into())];
    reading.extend(beside(&layout, &fields).map(|(name, value)| (name, value.into())));
    reading
}

/// `snowflake,machine=0-39,until=2027-01-01`, or a file with the same keys.
fn describe(text: &str) -> Result<Described, Error> {
    let parts = match Path::new(text).extension() {
        Some(it) if it == "toml" => from_file(text),
        _ => from_words(text),
    };
    let set = parts.and_then(|(layout, pairs)| match layout {
        None => counter(&pairs),
        Some(layout) => ids(&layout, &pairs),
    });
    set.map_err(|error| Error::setting(format!("{}: {error}", quoted(text))))
}

/// The numbers FIRST to LAST of `counter,from=FIRST,until=LAST`.
fn counter(pairs: &[Pair]) -> Result<Described, String> {
    if let Some((key, _)) = pairs
        .iter()
        .find(|pair| !["from", "until"].contains(&&*pair.0))
    {
        return Err(format!(
            "a counter takes from=FIRST and until=LAST, but no `{key}`"
        ));
    }
    let given = |key| {
        let values = pairs.iter().filter(move |pair| pair.0 == key);
        let number = |(key, value): &Pair| {
            value
                .parse()
                .map_err(|_| format!("{key} must be a number, but is {}", quoted(value)))
        };
        values.map(number).collect::<Result<Vec<u64>, _>>()
    };
    let from = given("from")?.into_iter().max().unwrap_or(1);
    let until = given("until")?
        .into_iter()
        .min()
        .ok_or("a counter needs until=LAST")?;
    if until < from {
        return Err(format!("a counter from {from} until {until} has no number"));
    }
    Ok(Described {
        layout: None,
        set: IdSet::counter(from..=until),
    })
}

fn ids(layout: &IdMeta, pairs: &[Pair]) -> Result<Described, String> {
    let refused = |error: IdError| error.to_string();
    let mut set = IdSet::of(layout);
    let (mut from, mut until) = (layout.spec().epoch, UnixMillis(layout.end().0 - 1));
    for (key, value) in pairs {
        let at = || moment(value).map_err(|must| format!("{key} {must}"));
        match key.as_str() {
            // By default a set reaches to the ends of its layout; values beyond them are clipped.
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
                let range = range(value).ok_or_else(|| {
                    format!("{name} must be N or FIRST-LAST, but is {}", quoted(value))
                })?;
                set = set.with(field, range).map_err(refused)?;
            }
        }
    }
    if from > until {
        return Err("it ends before it begins".to_owned());
    }
    let set = set.between(from..=until).map_err(refused)?;
    Ok(Described {
        layout: Some(*layout),
        set,
    })
}

type Pair = (String, String);

/// The layout, and the pairs for its fields.
type Parts = Result<(Option<IdMeta>, Vec<Pair>), String>;

/// The layout of this name; none for a counter.
fn named(name: &str) -> Result<Option<IdMeta>, String> {
    (name != "counter").then(|| layout(name)).transpose()
}

fn from_words(text: &str) -> Parts {
    let mut words = text.split(',');
    let layout = named(words.next().unwrap_or_default().trim())?;
    let pair = |word: &str| {
        let pair = word
            .split_once('=')
            .map(|(key, value)| (key.trim().into(), value.trim().into()));
        pair.ok_or_else(|| format!("{} must be FIELD=FIRST-LAST", quoted(word)))
    };
    Ok((layout, words.map(pair).collect::<Result<_, _>>()?))
}

/// A file of `key = value` lines, with the name of a layout or a table [layout.custom].
fn from_file(path: &str) -> Parts {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    let layout = match table.remove("layout") {
        Some(toml::Value::String(name)) => named(&name)?,
        Some(toml::Value::Table(table)) => Some(layout_of(table)?),
        _ => {
            return Err(
                "it names no layout: layout = \"NAME\", or a table [layout.custom]".to_owned(),
            );
        }
    };
    let pair = |(key, value): (String, toml::Value)| match value {
        toml::Value::String(text) => Ok((key, text)),
        toml::Value::Integer(number) => Ok((key, number.to_string())),
        toml::Value::Datetime(moment) => Ok((key, moment.to_string())),
        other => Err(format!(
            "{key} must be text, a number or a date, but is {other}"
        )),
    };
    Ok((
        layout,
        table.into_iter().map(pair).collect::<Result<_, _>>()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small pseudo-random generator: the same sequence on every run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            (self.0 >> 33) % bound
        }
    }

    /// 20:00 in UTC, 04:00 of the next day in China.
    const EPOCH: u64 = 1_780_257_600_000;

    /// A second of the layout below, in one of the notations that users write.
    fn written(random: &mut Random, tick: u64) -> String {
        let hour = |zone: u64| (20 + zone) % 24;
        match random.below(5) {
            0 => format!("2026-05-31T{}:00:0{tick}Z", hour(0)),
            1 => format!("2026-06-01 0{}:00:0{tick}+08:00", hour(8)),
            2 => format!("20260601T0{}000{tick}+0800", hour(8)),
            3 => format!(
                "2026-06-01t0{}:00:0{tick}.000+08:00[Asia/Shanghai]",
                hour(8)
            ),
            _ => (EPOCH + tick * 1000).to_string(),
        }
    }

    /// A set as text, and its IDs: 3 bits of time, 2 of seq, 2 of the machine.
    fn described(random: &mut Random, folder: &Path) -> (Described, Vec<u64>) {
        let low = random.below(8);
        let high = low + 1 + random.below(8 - low);
        let (first, last) = (random.below(2), 2 + random.below(2));
        let keys = [
            ("machine", format!("{first}-{last}")),
            ("from", written(random, low)),
            ("until", written(random, high)),
        ];
        let lines = keys
            .iter()
            .map(|(key, value)| format!("{key} = \"{value}\"\n"));
        let table = "[layout.custom]\ntime_bits = 3\nseq_bits = 2\nmachine_bits = 2\n\
                     unit = \"second\"\nepoch = \"2026-06-01T04:00:00+08:00\"\n";
        let file = folder.join("set.toml");
        let text = if random.below(2) == 0 {
            std::fs::write(&file, lines.collect::<String>() + table).expect("a file");
            file.display().to_string()
        } else {
            std::fs::write(&file, table).expect("a file");
            let pairs = keys.iter().map(|(key, value)| format!(",{key}={value}"));
            format!("{}{}", file.display(), pairs.collect::<String>())
        };
        let is_in = |id: &u64| {
            let (time, machine) = (id >> 4, id & 3);
            (low..high).contains(&time) && (first..=last).contains(&machine)
        };
        (
            describe(&text).expect(&text),
            (0..128).filter(is_in).collect(),
        )
    }

    #[test]
    fn overlap_of_sets_as_text_agrees_with_brute_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut random, mut met) = (Random(1), 0);
        for _ in 0..2000 {
            let (old, olds) = described(&mut random, folder.path());
            let (new, news) = described(&mut random, folder.path());
            let common: Vec<_> = olds.iter().filter(|id| news.contains(id)).collect();
            match overlap(&old.set, &new.set) {
                Some(id) => assert!(common.contains(&&id), "{olds:?} {news:?} {id}"),
                None => assert!(common.is_empty(), "{olds:?} {news:?}"),
            }
            met += usize::from(!common.is_empty());
        }
        assert!((500..1900).contains(&met), "{met} pairs met");
    }
}

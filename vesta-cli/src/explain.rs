//! `explain`: decodes an ID by a known or guessed layout.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, Write as _};

use jiff::tz::TimeZone;
use serde_json::json;
use vesta_boot::answers::{self, Ends, Rounding, in_utc};
use vesta_boot::output::value;
use vesta_boot::{Error, TextFormat, read_opaque_key};
use vesta_explain::layouts;
use vesta_explain::{
    Form, Guess, Rounded, friendly, guess, in_javascript, is_friendly, parse_friendly, rounded,
};
use vesta_intf::{Field, GenMethod, Id, IdFormat, IdMeta, Shuffle, UnixMillis, UuidV7};

use crate::cli::ExplainArgs;
use crate::output::{Output, csv_line, has_colour, print, say, written};
use crate::values::{beside, day, id_and_form, in_zone, layout, moved, now, relative, zone};
use crate::{Answer, Done};

/// An ID with its layout.
struct Explained {
    raw: u64,
    layout: IdMeta,
    id: Id,
    made: UnixMillis,
}

impl Explained {
    fn new(raw: u64, layout: &IdMeta) -> Result<Self, Error> {
        let layout = layout.explaining(raw);
        let of_layout = |error| {
            let name = layout.name();
            Error::setting(format!("{raw} is not a valid {name} ID: {error}"))
        };
        let id = layout.unpack(raw).map_err(of_layout)?;
        Ok(Self {
            raw,
            layout,
            id,
            made: layout.moment_of(id.time).map_err(Error::setting)?,
        })
    }

    /// The start of its tick.
    fn moment(&self) -> String {
        in_utc(self.made, &self.layout)
    }

    /// All about it, with its friendly form.
    fn answer(&self, zone: &TimeZone) -> Result<answers::Explained, Error> {
        let decimal = TextFormat::Plain(IdFormat::Decimal);
        let answer = answers::Explained::new(self.raw, &self.layout, &decimal);
        let mut answer = answer.map_err(Error::setting)?;
        let friendly = self.friendly(zone).map(|text| ("friendly", text));
        answer.forms.extend(friendly);
        Ok(answer)
    }

    /// The friendly form of CosId's IDs.
    fn friendly(&self, zone: &TimeZone) -> Option<String> {
        let is_cosids = layouts::COSID_LAYOUTS.contains(&self.layout);
        let local = |moment| moved(moment, zone, &TimeZone::UTC);
        is_cosids
            .then(|| friendly(&self.layout, self.raw, local).ok())
            .flatten()
    }
}

/// How IDs are written, beyond their layout.
struct Reading<'a> {
    /// Zone of the friendly form.
    zone: &'a TimeZone,
    /// Key of opaque IDs.
    key: Option<&'a Shuffle>,
}

/// Parses an ID in any of its forms, or in the friendly one or the UUID of this layout; with a key, an opaque one.
fn raw_of(text: &str, layout: &IdMeta, reading: &Reading<'_>) -> Result<u64, Error> {
    let Reading { zone, key } = reading;
    if let Some(key) = key {
        let opaque = TextFormat::Opaque(key, *layout);
        return opaque.parse(text, now()).map_err(Error::setting);
    }
    if let Ok(id) = UuidV7::new(layout).and_then(|uuids| uuids.parse(text)) {
        return Ok(id);
    }
    if !is_friendly(text) {
        return match id_and_form(text)? {
            (_, Form::UuidV7(other)) => {
                let (name, other) = (layout.name(), other.name());
                Error::refuse(format!(
                    "{text} is the UUID of an ID of the layout {other}, not of {name}; pass --layout {other}"
                ))
            }
            (id, _) => Ok(id),
        };
    }
    parse_friendly(layout, text, |local| moved(local, &TimeZone::UTC, zone)).map_err(Error::setting)
}

pub(crate) fn explain(args: &ExplainArgs, output: Output) -> Done {
    let guessed = args.layout == "guess";
    if args.made.is_some() && !guessed {
        return Error::refuse("--made is for a guess: add --layout guess");
    }
    let layout = (!guessed).then(|| layout(&args.layout)).transpose();
    let layout = layout.map_err(Error::setting)?;
    let zone = args
        .zone
        .as_deref()
        .map_or(Ok(TimeZone::UTC), zone)
        .map_err(Error::setting)?;
    if args.key.is_some() && guessed {
        return Error::refuse("--key reads IDs of one layout; choose it with --layout");
    }
    let key = args.key.as_deref().map(read_opaque_key).transpose()?;
    let reading = Reading {
        zone: &zone,
        key: key.as_ref(),
    };
    if output == Output::Csv && layout.is_some() {
        print(CSV_HEAD)?;
    }
    let mut outcome = Answer::Yes;
    for text in &args.ids {
        let (raw, layout) = match (text.as_str(), &layout) {
            ("-", Some(layout)) => {
                from_stdin(layout, output, &reading)?;
                continue;
            }
            ("-", None) => {
                return Error::refuse("a guess takes one ID; choose a layout for a list");
            }
            (text, Some(layout)) => (raw_of(text, layout, &reading)?, *layout),
            (text, None) if is_friendly(text) => {
                return Error::refuse(format!(
                    "{text} does not contain its layout; choose one with --layout"
                ));
            }
            (text, None) => match id_and_form(text)? {
                (raw, Form::Tid) => (raw, layouts::BLUESKY),
                (raw, Form::UuidV7(layout)) => (raw, layout),
                (raw, _) => {
                    outcome = guessing(raw, args, output)?;
                    continue;
                }
            },
        };
        let explained = Explained::new(raw, &layout)?;
        print(&match output {
            Output::Text => in_full(&explained, args.zone.as_deref(), &zone)?,
            _ => in_short(&explained, output, &zone)?,
        })?;
    }
    Ok(outcome)
}

/// Prints a line for each ID of standard input; reports lines without one, and continues.
fn from_stdin(layout: &IdMeta, output: Output, reading: &Reading<'_>) -> Result<(), Error> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let (mut lines, mut bad) = (0u64, 0u64);
    for line in io::stdin().lock().lines() {
        lines += 1;
        let line = line.map_err(|error| Error::setting(format!("line {lines}: {error}")))?;
        let text = line.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        // Most of them are plain numbers.
        let plain = text.parse().ok().filter(|_| reading.key.is_none());
        let id = plain.map_or_else(|| raw_of(text, layout, reading), Ok);
        let explained = id.and_then(|id| Explained::new(id, layout));
        match explained.and_then(|it| in_short(&it, output, reading.zone)) {
            Err(error) => {
                bad += 1;
                say(&format!("line {lines}: {error}"));
            }
            Ok(line) => {
                let done = out.write_all(line.as_bytes());
                if done.is_err() {
                    return written(done);
                }
            }
        }
    }
    written(out.flush())?;
    match bad {
        0 => Ok(()),
        _ => Error::refuse(format!("{bad} of {lines} lines hold no ID of this layout")),
    }
}

/// One ID on one line.
fn in_short(it: &Explained, output: Output, zone: &TimeZone) -> Result<String, Error> {
    let Explained {
        raw, layout, id, ..
    } = it;
    Ok(match output {
        Output::Text => {
            let mut line = format!("{raw}  {}  {}", layout.name(), it.moment());
            for (name, value) in beside(layout, id) {
                let _ = write!(line, "  {name} {value}");
            }
            line + "\n"
        }
        Output::Json => format!("{}\n", value(&it.answer(zone)?)),
        Output::Csv => as_csv(it),
    })
}

const CSV_HEAD: &str = "id,layout,moment,version,type,genMethod,time,seq,machine\n";

fn as_csv(it: &Explained) -> String {
    let Id {
        version,
        id_type,
        gen_method,
        time,
        seq,
        machine,
    } = it.id;
    let numbers = [version, id_type, gen_method, time, seq, machine].map(|it| it.to_string());
    let head = [it.raw.to_string(), it.layout.name().to_owned(), it.moment()];
    csv_line(&[&head[..], &numbers[..]].concat())
}

fn may_be(it: &Rounded) -> String {
    let Rounded { by, from, until } = it;
    format!("may be rounded by {by}: the ID lies between {from} and {until}")
}

/// Everything about one ID, as a drawing.
fn in_full(it: &Explained, beside: Option<&str>, zone: &TimeZone) -> Result<String, Error> {
    let Explained {
        raw,
        layout,
        id,
        made,
    } = it;
    let mut text = format!("{raw}  {}\n{}", layout.name(), drawing(id, layout));
    let local = in_zone(*made, beside).map_err(Error::setting)?;
    let local = local.map_or(String::new(), |local| format!("   ({local})"));
    let (at, age) = (it.moment(), relative(*made, now()));
    let _ = writeln!(text, "  made     {at}   {age}{local}");
    let [hex, base62, crockford] = [IdFormat::Hex, IdFormat::Base62, IdFormat::Crockford]
        .map(|form| format!("{} {}", form.name(), form.format(*raw)));
    let js = in_javascript(*raw);
    let note = if js == raw.to_string() {
        ""
    } else {
        " (not exact)"
    };
    let _ = writeln!(
        text,
        "  forms    {hex}  {base62}  {crockford}  js {js}{note}"
    );
    if let Some(friendly) = it.friendly(zone) {
        let _ = writeln!(
            text,
            "  friendly {friendly}   ({})",
            zone.iana_name().unwrap_or("UTC")
        );
    }
    if let Some(Ends { lower, upper }) = it.answer(zone)?.tick {
        let _ = writeln!(text, "  tick     {lower} .. {upper}");
    }
    if let Some(rounded) = rounded(*raw) {
        let _ = writeln!(text, "  rounded  {}", may_be(&rounded));
    }
    Ok(text)
}

/// Colours of the fields on a terminal, from the top.
const COLOURS: [u8; 6] = [90, 35, 33, 34, 31, 36];

/// Wider than any drawing.
const WIDE: usize = 200;

/// The bits by field, and under each field its name and value: those that fit on the first line, the
/// others below, from right to left.
fn drawing(id: &Id, layout: &IdMeta) -> String {
    let colour = has_colour();
    // The labels from the right, each with its column.
    let (mut text, mut column, mut labels) = (String::from(" "), 2, Vec::new());
    for (field, colour_of) in layout.fields().into_iter().zip(COLOURS) {
        let width = usize::from(layout.bits(field));
        if width == 0 {
            continue;
        }
        let digits = format!("{:0width$b}", id.get(field));
        text += &match colour {
            true => format!(" \u{1b}[{colour_of}m{digits}\u{1b}[0m"),
            false => format!(" {digits}"),
        };
        let method = GenMethod::from_value(id.gen_method).filter(|_| field == Field::GenMethod);
        let note = method.map_or(String::new(), |it| format!(" ({})", it.name()));
        labels.insert(
            0,
            (
                column,
                format!("└ {} {}{note}", field.name(), id.get(field)),
            ),
        );
        column += width + 1;
    }
    while !labels.is_empty() {
        // A label that would run into the next one gets its own line.
        let (mut line, mut end) = (String::new(), WIDE);
        labels.retain(|(column, label)| {
            let waits = column + label.chars().count() >= end;
            let drawn = if waits { "│" } else { label };
            line = format!("{drawn:<0$}{line}", end - column);
            end = *column;
            waits
        });
        text += &format!("\n{:end$}{}", "", line.trim_end());
    }
    text + "\n"
}

/// Maximum candidates shown.
const MOST: usize = 5;

/// Name for the share of systems without a known layout.
const OTHER: &str = "another system";

fn guessing(raw: u64, args: &ExplainArgs, output: Output) -> Done {
    let mut found = guess(raw, now(), args.made.clone());
    let likeliest = found.likeliest().cloned();
    found.candidates.truncate(MOST);
    found.candidates.retain(|it| percent(it.probability) >= 1.0);
    let made = |it: &Guess| in_utc(it.moment, &it.layout);
    print(&match (output, &likeliest) {
        (Output::Json, _) => {
            let one = |it: &Guess| {
                let (made, share) = (made(it), share(it.probability));
                json!({
                    "layout": it.layout.name(), "moment": made, "probability": share,
                    "machine": it.id.machine, "seq": it.id.seq
                })
            };
            let guesses: Vec<_> = found.candidates.iter().map(one).collect();
            let mut json =
                json!({ "id": raw.to_string(), "guesses": guesses, "other": share(found.other) });
            if let Some(rounding) = Rounding::of(raw) {
                json["rounded"] = value(&rounding);
            }
            format!("{json}\n")
        }
        (Output::Csv, _) => {
            let mut csv = String::from("id,layout,probability,moment\n");
            for it in &found.candidates {
                csv += &format!(
                    "{raw},{},{},{}\n",
                    it.layout.name(),
                    share(it.probability),
                    made(it)
                );
            }
            csv + &format!("{raw},{OTHER},{},\n", share(found.other))
        }
        (Output::Text, None) => {
            "unknown: no known layout is likely to have made this ID\n".to_owned()
        }
        (Output::Text, Some(first)) if percent(first.probability) >= 100.0 => {
            let mut line = format!("{} 100 %  {}", first.layout.name(), made(first));
            let is_above = |(name, _): &(&str, u64)| *name == Field::GenMethod.name();
            for (name, value) in beside(&first.layout, &first.id).skip_while(is_above) {
                line += &format!("  {name} {value}");
            }
            line + "\n"
        }
        (Output::Text, Some(_)) => {
            let one = |it: &Guess| {
                let (name, day) = (it.layout.name(), day(it.moment));
                format!("{name} {} % {day}", percent(it.probability))
            };
            let last = format!("{OTHER} {} %\n", percent(found.other));
            found
                .candidates
                .iter()
                .map(one)
                .chain([last])
                .collect::<Vec<_>>()
                .join(" · ")
        }
    })?;
    if let Some(rounded) = rounded(raw).filter(|_| output == Output::Text) {
        say(&may_be(&rounded));
    }
    // Never the month of a candidate: that would confirm itself.
    if output == Output::Text && args.made.is_none() {
        say(
            "the bits alone are not certain: if you know from elsewhere about when it was made, add --made YYYY-MM",
        );
    }
    Ok(if likeliest.is_some() {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn percent(probability: f64) -> f64 {
    (probability * 100.0).round()
}

/// Four digits: no guess is more precise.
fn share(probability: f64) -> f64 {
    (probability * 10_000.0).round() / 10_000.0
}

//! `explain`: decodes an ID by a known or guessed layout.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, Write as _};

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use vesta_boot::{Error, TextFormat, read_opaque_key};
use vesta_explain::layouts;
use vesta_explain::{
    Form, Guess, Rounded, friendly, guess, in_javascript, is_friendly, parse_friendly, rounded,
};
use vesta_intf::{Field, GenMethod, Id, IdFormat, IdMeta, Shuffle, UnixMillis, UuidV7};

use crate::cli::ExplainArgs;
use crate::output::{Output, csv_line, has_colour, print, say, written};
use crate::values::{beside, day, exact, id_and_form, in_zone, layout, moved, now, relative, zone};
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
        let id = layout.unpack(raw).map_err(|error| {
            Error::setting(format!(
                "{raw} is not a valid {} ID: {error}",
                layout.name()
            ))
        })?;
        let made = layout.moment_of(id.time).map_err(Error::setting)?;
        Ok(Self {
            raw,
            layout,
            id,
            made,
        })
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
            _ => in_short(&explained, output, &zone),
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
        match id.and_then(|id| Explained::new(id, layout)) {
            Err(error) => {
                bad += 1;
                say(&format!("line {lines}: {error}"));
            }
            Ok(explained) => {
                let done = out.write_all(in_short(&explained, output, reading.zone).as_bytes());
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
fn in_short(it: &Explained, output: Output, zone: &TimeZone) -> String {
    let Explained {
        raw,
        layout,
        id,
        made,
    } = it;
    match output {
        Output::Text => {
            let mut line = format!("{raw}  {}  {}", layout.name(), exact(*made, layout));
            for (name, value) in beside(layout, id) {
                let _ = write!(line, "  {name} {value}");
            }
            line + "\n"
        }
        Output::Json => format!("{}\n", as_json(it, zone)),
        Output::Csv => as_csv(it),
    }
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
    let head = [
        it.raw.to_string(),
        it.layout.name().to_owned(),
        exact(it.made, &it.layout),
    ];
    csv_line(&[&head[..], &numbers[..]].concat())
}

fn as_json(it: &Explained, zone: &TimeZone) -> Value {
    let Explained {
        raw,
        layout,
        id,
        made,
    } = it;
    let mut json = json!({ "id": raw.to_string(), "layout": layout.name() });
    for field in layout
        .fields()
        .into_iter()
        .filter(|field| layout.bits(*field) > 0)
    {
        json[field.name()] = id.get(field).into();
    }
    json["moment"] = exact(*made, layout).into();
    let forms = [IdFormat::Hex, IdFormat::Base62, IdFormat::Crockford];
    let forms = forms
        .into_iter()
        .map(|form| (form.name(), form.encode(*raw)));
    json["forms"] = forms
        .chain(it.friendly(zone).map(|text| ("friendly", text)))
        .collect();
    if let Some((lower, upper)) = tick(it) {
        json["tick"] = json!([lower.to_string(), upper.to_string()]);
    }
    with_rounded(json, *raw)
}

fn may_be(it: &Rounded) -> String {
    let Rounded { by, from, until } = it;
    format!("may be rounded by {by}: the ID lies between {from} and {until}")
}

/// Adds to an object the range of IDs that round to this one.
fn with_rounded(mut json: Value, raw: u64) -> Value {
    if let Some(Rounded { by, from, until }) = rounded(raw) {
        json["rounded"] = json!({ "by": by, "from": from.to_string(), "until": until.to_string() });
    }
    json
}

/// The smallest and largest ID of its tick, if the layout sorts by time.
fn tick(it: &Explained) -> Option<(u64, u64)> {
    let bound = |seq, machine| {
        it.layout
            .pack(&Id {
                seq,
                machine,
                ..it.id
            })
            .ok()
    };
    let sorts = it.layout.spec().order.sorts_by_time();
    let last = bound(it.layout.max(Field::Seq), it.layout.max(Field::Machine));
    bound(0, 0).zip(last).filter(|_| sorts)
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
    let (at, age) = (exact(*made, layout), relative(*made, now()));
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
    if let Some((lower, upper)) = tick(it) {
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
        let note = match (field, GenMethod::from_value(id.gen_method)) {
            (Field::GenMethod, Some(GenMethod::Embed)) => " (embedded)",
            (Field::GenMethod, Some(GenMethod::Central)) => " (gRPC)",
            (Field::GenMethod, Some(GenMethod::Rest)) => " (REST)",
            _ => "",
        };
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
    found.candidates.truncate(MOST);
    found.candidates.retain(|it| percent(it.probability) >= 1.0);
    let Some(first) = found.candidates.first() else {
        say("no known layout is likely to have made this ID");
        return Ok(Answer::No);
    };
    let made = |it: &Guess| exact(it.moment, &it.layout);
    let is_certain = percent(first.probability) >= 100.0;
    print(&match output {
        Output::Json => {
            let one = |it: &Guess| {
                let (made, share) = (made(it), share(it.probability));
                json!({
                    "layout": it.layout.name(), "moment": made, "probability": share,
                    "machine": it.id.machine, "seq": it.id.seq
                })
            };
            let guesses: Vec<_> = found.candidates.iter().map(one).collect();
            let json =
                json!({ "id": raw.to_string(), "guesses": guesses, "other": share(found.other) });
            format!("{}\n", with_rounded(json, raw))
        }
        Output::Csv => {
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
        Output::Text if is_certain => {
            let mut line = format!("{} 100 %  {}", first.layout.name(), made(first));
            let is_above = |(name, _): &(&str, u64)| *name == Field::GenMethod.name();
            for (name, value) in beside(&first.layout, &first.id).skip_while(is_above) {
                line += &format!("  {name} {value}");
            }
            line + "\n"
        }
        Output::Text => {
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
    if args.made.is_none() && output == Output::Text {
        let example = day(first.moment);
        say(&format!(
            "not certain: the bits fit several layouts. About when was it made? --made {example:.7}"
        ));
    }
    Ok(Answer::Yes)
}

fn percent(probability: f64) -> f64 {
    (probability * 100.0).round()
}

/// Four digits: no guess is more precise.
fn share(probability: f64) -> f64 {
    (probability * 10_000.0).round() / 10_000.0
}

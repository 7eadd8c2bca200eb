//! `explain`: decodes an ID by a known or guessed layout.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, Write as _};

use jiff::tz::TimeZone;
use serde_json::json;
use vesta_boot::answers::{self, Ends, in_utc};
use vesta_boot::output::value;
use vesta_boot::{Error, TextFormat, read_opaque_key};
use vesta_explain::layouts;
use vesta_explain::{Tally, friendly, guess, in_javascript, rounded};
use vesta_intf::{Field, GenMethod, Id, IdFormat, IdMeta, UnixMillis};

use crate::cli::ExplainArgs;
use crate::guessing::{guessing, may_be};
use crate::output::{Output, csv_line, has_colour, print, say, written};
use crate::reading::{Read, Reader, note_of};
use crate::values::{beside, in_zone, layout, moved, now, relative, zone};
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
    fn answer(&self, to: &TextFormat<'_>, zone: &TimeZone) -> Result<answers::Explained, Error> {
        let answer = answers::Explained::new(self.raw, &self.layout, to);
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

pub(crate) fn explain(args: &ExplainArgs, output: Output) -> Done {
    let guessed = args.layout == "guess";
    if args.made.is_some() && !guessed {
        return Error::refuse("--made is for a guess: add --layout guess");
    }
    let layout = (!guessed).then(|| layout(&args.layout)).transpose();
    let zone = args
        .zone
        .as_deref()
        .map_or(Ok(TimeZone::UTC), zone)
        .map_err(Error::setting)?;
    if args.key.is_some() && guessed {
        return Error::refuse("--key reads IDs of one layout; choose it with --layout");
    }
    let key = args.key.as_deref().map(read_opaque_key).transpose()?;
    let is_opaque = key.is_some() && args.to.is_none();
    let reader = Reader {
        layout: layout.map_err(Error::setting)?,
        format: (args.format.as_deref()).or_else(|| is_opaque.then_some(TextFormat::OPAQUE)),
        key: key.as_ref(),
        zone: &zone,
    };
    let to = args.to.as_deref().unwrap_or(IdFormat::Decimal.name());
    let to = reader.format(to)?;
    let writer = Writer {
        output,
        to: &to,
        is_text_alone: args.to.is_some() && output == Output::Text,
        zone: &zone,
    };
    if output == Output::Csv && !guessed {
        print(CSV_HEAD)?;
    }
    let mut outcome = Answer::Yes;
    for text in &args.ids {
        if text == "-" {
            if reader.layout.is_none() {
                return Error::refuse("a guess takes one ID; choose a layout for a list");
            }
            from_stdin(&reader, &writer)?;
            continue;
        }
        // One line for each ID.
        let is_list = args.to.is_some() || output == Output::Csv;
        let all = match is_list {
            true => vec![reader.one(text)?],
            false => reader.all(text)?,
        };
        if all[0].layout.is_none() && !writer.is_text_alone {
            for it in &all {
                let form = (all.len() > 1).then_some(it.form);
                outcome = guessing(it.raw, form, args, output)?;
            }
            continue;
        }
        if output == Output::Csv && guessed {
            print(CSV_HEAD)?;
        }
        print(&writer.answer(&all, args.zone.as_deref())?)?;
    }
    Ok(outcome)
}

/// How IDs are shown.
struct Writer<'a> {
    output: Output,
    /// Format of the IDs.
    to: &'a TextFormat<'a>,
    /// Nothing but the ID is printed.
    is_text_alone: bool,
    zone: &'a TimeZone,
}

impl Writer<'_> {
    /// A text with all its readings.
    fn answer(&self, all: &[Read], beside: Option<&str>) -> Result<String, Error> {
        let guessed = |raw| {
            guess(raw, now(), None)
                .candidates
                .first()
                .map(|it| it.layout)
        };
        let explained = |it: &Read| {
            let layout = it.layout.or_else(|| guessed(it.raw));
            Explained::new(it.raw, &layout.unwrap_or(IdMeta::MAX_PEAK))
        };
        let (first, rest) = all.split_first().expect("at least one reading");
        if self.is_text_alone {
            return Ok(format!(
                "{}\n",
                self.to.text(first.raw).map_err(Error::setting)?
            ));
        }
        match self.output {
            Output::Text => {
                let mut text = in_full(&explained(first)?, beside, self.zone)?;
                for it in &first.around {
                    let _ = writeln!(text, "  written  {}: {}", it.name, it.remedy);
                }
                if rest.is_empty() {
                    return Ok(text);
                }
                let _ = writeln!(
                    text,
                    "  read as  {}; --format {0} reads no other",
                    first.form
                );
                for it in rest {
                    let made =
                        explained(it).map_or_else(|error| error.to_string(), |of| of.moment());
                    let _ = writeln!(text, "  or as    {} {}  {made}", it.form, it.raw);
                }
                Ok(text)
            }
            Output::Json => {
                let mut json = value(&explained(first)?.answer(self.to, self.zone)?);
                if !first.around.is_empty() {
                    json["written"] = first.around.iter().map(|it| it.name).collect();
                }
                if !rest.is_empty() {
                    let other = |it: &Read| {
                        let mut other = json!({ "format": it.form, "id": it.raw.to_string() });
                        if let Ok(it) = explained(it) {
                            other["moment"] = it.moment().into();
                        }
                        other
                    };
                    json["format"] = first.form.into();
                    json["otherReadings"] = rest.iter().map(other).collect();
                }
                Ok(format!("{json}\n"))
            }
            Output::Csv => self.row(&explained(first)?, first.form),
        }
    }

    /// One ID on one line.
    fn row(&self, it: &Explained, form: &str) -> Result<String, Error> {
        let Explained {
            raw, layout, id, ..
        } = it;
        Ok(match self.output {
            _ if self.is_text_alone => format!("{}\n", self.to.text(*raw).map_err(Error::setting)?),
            Output::Text => {
                let mut line = format!("{raw}  {}  {}", layout.name(), it.moment());
                for (name, value) in beside(layout, id) {
                    let _ = write!(line, "  {name} {value}");
                }
                line + "\n"
            }
            Output::Json => format!("{}\n", value(&it.answer(self.to, self.zone)?)),
            Output::Csv => {
                let text = self.to.text(*raw).map_err(Error::setting)?.to_string();
                as_csv(it, text, form)
            }
        })
    }
}

/// Prints a line for each ID of standard input; reports lines without one, and continues.
fn from_stdin(reader: &Reader<'_>, writer: &Writer<'_>) -> Result<(), Error> {
    let layout = reader.layout.as_ref().expect("no list is guessed");
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let (mut lines, mut bad) = (0u64, 0u64);
    let mut tally = Tally::default();
    let decimal = IdFormat::Decimal.name();
    let is_decimal = reader.format.is_none_or(|format| format == decimal);
    for line in io::stdin().lock().lines() {
        lines += 1;
        let line = line.map_err(|error| Error::setting(format!("line {lines}: {error}")))?;
        let text = line.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        // Most of them are plain numbers.
        let plain = text.parse().ok().filter(|_| is_decimal);
        let it = match plain {
            Some(raw) => Ok((raw, decimal)),
            None => reader.one(text).map(|it| (it.raw, it.form)),
        };
        let explained = it.and_then(|(raw, form)| Ok((Explained::new(raw, layout)?, form)));
        match explained.and_then(|(it, form)| Ok((writer.row(&it, form)?, it.raw))) {
            Err(error) => {
                bad += 1;
                say(&format!("line {lines}: {error}"));
            }
            Ok((line, raw)) => {
                tally.check(raw);
                let done = out.write_all(line.as_bytes());
                if done.is_err() {
                    return written(done);
                }
            }
        }
    }
    written(out.flush())?;
    if let Some(format) = tally.checked().filter(|_| reader.format.is_none()) {
        say(&note_of(format));
    }
    match bad {
        0 => Ok(()),
        _ => Error::refuse(format!("{bad} of {lines} lines hold no ID of this layout")),
    }
}

const CSV_HEAD: &str = "id,layout,moment,version,type,genMethod,time,seq,machine,format\n";

fn as_csv(it: &Explained, text: String, form: &str) -> String {
    let Id {
        version,
        id_type,
        gen_method,
        time,
        seq,
        machine,
    } = it.id;
    let numbers = [version, id_type, gen_method, time, seq, machine].map(|it| it.to_string());
    let head = [text, it.layout.name().to_owned(), it.moment()];
    csv_line(&[&head[..], &numbers[..], &[form.to_owned()]].concat())
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
    if let Some(Ends { lower, upper }) = Ends::of_tick(id, layout) {
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

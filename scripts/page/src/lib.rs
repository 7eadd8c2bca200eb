//! Answers the questions of the page by vesta-intf: page, program and servers share one rule.
//!
//! A question is text, one line per argument; the answer is JSON in which 64-bit numbers are strings,
//! because JavaScript would round them. An error in the question is in the field `error`.

use vesta_explain::layouts;
use vesta_explain::{Form, Guess, Reading, Rounded, Written, guess, read, rounded};
use vesta_intf::{
    Field, FieldOrder, Id, IdError, IdFormat, IdMeta, LayoutSpec, TimeUnit, UnixMillis, UuidV7,
};

#[cfg(target_arch = "wasm32")]
mod memory;

/// Answers a question:
///
/// - `explain`, text, layout (empty for a guess), now, and the first and last time at which it may have
///   been made (or empty; milliseconds since 1970),
/// - `layouts`,
/// - `layout`, bits of time, seq and machine, microseconds of a tick, epoch,
/// - `design`, years, machines, IDs per second, epoch.
pub fn answer(question: &str) -> String {
    let lines: Vec<_> = question.split('\n').collect();
    let answer = match lines[..] {
        ["explain", text, layout, now, from, until] => explain(text, layout, now, from, until),
        ["layouts"] => Ok(layouts()),
        ["layout", time, seq, machine, micros, epoch] => {
            layout([time, seq, machine, micros, epoch])
        }
        ["design", years, machines, per_second, epoch] => {
            design([years, machines, per_second, epoch])
        }
        _ => Err(IdError::invalid("question", "unknown question")),
    };
    answer.unwrap_or_else(|error| object([("error", text(&error.to_string()))]))
}

fn explain(
    written: &str,
    layout: &str,
    now: &str,
    from: &str,
    until: &str,
) -> Result<String, IdError> {
    let now = UnixMillis(number("now", now)?);
    let mut ids = match read(written)? {
        Written::Long { kind, bits, moment } => {
            let moment = moment.map_or("null".to_owned(), |moment| moment.0.to_string());
            let (kind, bits) = (text(&kind), bits.to_string());
            return Ok(object([("kind", kind), ("bits", bits), ("moment", moment)]));
        }
        written => written.ids()?,
    };
    if let Ok(layout) = layouts::named(layout) {
        Reading::likely_first(&mut ids, &layout, now);
    }
    let (raw, form) = (ids[0].id, ids[0].form);
    let around = ids[0].around.iter();
    let around = around.map(|it| list([text(it.name), text(it.remedy)]));
    let readings = ids
        .iter()
        .map(|it| list([text(it.form.name()), text(&it.id.to_string())]));
    let made = match (from, until) {
        ("", _) | (_, "") => None,
        _ => Some(UnixMillis(number("made", from)?)..=UnixMillis(number("made", until)?)),
    };
    let found = guess(raw, now, made);
    let layout = match (layout, form, found.candidates.first()) {
        ("", Form::Tid, _) => layouts::BLUESKY,
        ("", Form::UuidV7(layout), _) => layout,
        ("", _, Some(first)) => first.layout,
        ("", _, None) => IdMeta::MAX_PEAK,
        (name, _, _) => layouts::named(name)?,
    };
    let layout = layout.explaining(raw);
    let id = layout.unpack(raw)?;
    let ids = |seq, machine| layout.pack(&Id { seq, machine, ..id });
    let sorts = layout.spec().order.sorts_by_time();
    let tick = match sorts {
        true => {
            let last = ids(layout.max(Field::Seq), layout.max(Field::Machine))?;
            list([ids(0, 0)?, last].map(|id| text(&id.to_string())))
        }
        false => "null".to_owned(),
    };
    let fields = layout
        .fields()
        .into_iter()
        .filter(|field| layout.bits(*field) > 0);
    let fields = fields.map(|field| {
        object([
            ("name", text(field.name())),
            ("at", layout.shift(field).to_string()),
            ("bits", layout.bits(field).to_string()),
            ("value", text(&id.get(field).to_string())),
            ("max", text(&layout.max(field).to_string())),
        ])
    });
    let uuid_v7 = UuidV7::new(&layout)
        .and_then(|uuids| uuids.format(raw))
        .ok();
    let uuid_v7 = uuid_v7.map(|uuid| (UuidV7::NAME, uuid.to_string()));
    let forms = IdFormat::ALL.map(|form| (form.name(), form.encode(raw)));
    let forms = forms.into_iter().chain(uuid_v7);
    let forms = forms.map(|(name, form)| list([text(name), text(&form)]));
    Ok(object([
        ("id", text(&raw.to_string())),
        ("signed", text(&raw.cast_signed().to_string())),
        ("readings", list(readings)),
        ("around", list(around)),
        ("layout", text(layout.name())),
        ("moment", layout.moment_of(id.time)?.0.to_string()),
        ("ends", layout.end().0.to_string()),
        ("micros", layout.spec().unit.micros().to_string()),
        ("tick", tick),
        ("fields", list(fields)),
        ("forms", list(forms)),
        (
            "rounded",
            rounded(raw).map_or("null".to_owned(), |it| bounds(&it)),
        ),
        ("guesses", list(found.candidates.iter().map(candidate))),
        ("unknown", found.likeliest().is_none().to_string()),
        ("other", format!("{:.4}", found.other)),
    ]))
}

fn bounds(it: &Rounded) -> String {
    let [from, until] = [it.from, it.until].map(|id| text(&id.to_string()));
    object([("by", text(it.by)), ("from", from), ("until", until)])
}

fn candidate(it: &Guess) -> String {
    let of = |field, value: u64| match it.layout.bits(field) {
        0 => "null".to_owned(),
        _ => text(&value.to_string()),
    };
    object([
        ("layout", text(it.layout.name())),
        ("about", text(layouts::about(&it.layout))),
        ("probability", format!("{:.4}", it.probability)),
        ("moment", it.moment.0.to_string()),
        ("machine", of(Field::Machine, it.id.machine)),
        ("seq", of(Field::Seq, it.id.seq)),
    ])
}

fn layouts() -> String {
    list(layouts::all().map(|layout| list([text(layout.name()), text(layouts::about(&layout))])))
}

fn layout(values: [&str; 5]) -> Result<String, IdError> {
    let [time, seq, machine, micros, epoch] = values;
    let unit = match micros {
        "1000" => TimeUnit::Millisecond,
        "10000" => TimeUnit::TenMillis,
        "1000000" => TimeUnit::Second,
        _ => {
            return Err(IdError::invalid(
                "unit",
                "it must be 1000, 10000 or 1000000",
            ));
        }
    };
    let bits = |name, text| number(name, text).map(|bits| u8::try_from(bits).unwrap_or(u8::MAX));
    let spec = LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: bits("time", time)?,
        seq_bits: bits("seq", seq)?,
        machine_bits: bits("machine", machine)?,
        order: FieldOrder::TimeSeqMachine,
        unit,
        epoch: UnixMillis(number("epoch", epoch)?),
    };
    described(&IdMeta::new(spec)?)
}

fn design(values: [&str; 4]) -> Result<String, IdError> {
    let [years, machines, per_second, epoch] = values;
    let (years, machines) = (number("years", years)?, number("machines", machines)?);
    let per_second = number("per second", per_second)?;
    let epoch = UnixMillis(number("epoch", epoch)?);
    described(&IdMeta::new(vesta_explain::design(
        years, machines, per_second, epoch,
    )?)?)
}

fn described(layout: &IdMeta) -> Result<String, IdError> {
    let spec = layout.spec();
    Ok(object([
        ("time", spec.time_bits.to_string()),
        ("seq", spec.seq_bits.to_string()),
        ("machine", spec.machine_bits.to_string()),
        ("micros", spec.unit.micros().to_string()),
        ("epoch", spec.epoch.0.to_string()),
        ("ends", layout.end().0.to_string()),
        ("total", layout.total_bits().to_string()),
        (
            "machines",
            text(&(layout.max(Field::Machine) + 1).to_string()),
        ),
        ("perSecond", text(&layout.capacity_per_second().to_string())),
        ("epochText", text(&spec.epoch.to_string())),
    ]))
}

fn number(name: &'static str, text: &str) -> Result<u64, IdError> {
    text.parse()
        .map_err(|_| IdError::invalid(name, "it must be a whole number"))
}

fn object<const N: usize>(fields: [(&str, String); N]) -> String {
    let fields = fields.map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", fields.join(","))
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// Text as a JSON string.
fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_apart() {
        let said = answer("explain\n2407837855670862845\n\n1795305600000\n\n");
        for part in [
            r#""id":"2407837855670862845""#,
            r#""layout":"max-peak""#,
            r#""moment":1515031703000"#,
            r#"{"name":"machine","at":0,"bits":10,"value":"1021","max":"1023"}"#,
            r#"["base62","2rrvDihMXHR"]"#,
            r#""tick":["2407837855670861824","2407837856744603647"]"#,
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }

    #[test]
    fn a_rounded_id_comes_with_its_bounds() {
        let said = answer("explain\n1785223470585921500\n\n1795305600000\n\n");
        let bounds = r#""from":"1785223470585921408","until":"1785223470585921664""#;
        assert!(
            said.contains(&format!(r#""rounded":{{"by":"JavaScript",{bounds}}}"#)),
            "{said}"
        );
        let said = answer("explain\n1785223470585921538\n\n1795305600000\n\n");
        assert!(said.contains(r#""rounded":null"#), "{said}");
    }

    #[test]
    fn a_text_that_fits_several_formats_has_all_readings() {
        let said = answer("explain\n| 0IAKJA8DRATQ5 |\n\n1795305600000\n\n");
        for part in [
            r#""id":"2407837855670862845""#,
            r#""readings":[["base36","2407837855670862845"],["crockford","47976443015424741"]]"#,
            r#""around":[["table border","#,
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        let said = answer("explain\n1.7852234705859215e+18\n\n1795305600000\n\n");
        assert!(
            said.contains("between 1785223470585921408 and 1785223470585921664"),
            "{said}"
        );
    }

    #[test]
    fn the_month_decides() {
        let month = "1459468800000\n1462060799999";
        let said = answer(&format!(
            "explain\n175928847299117063\n\n1795305600000\n{month}"
        ));
        assert!(said.contains(r#""layout":"discord","about"#), "{said}");
        assert!(said.contains(r#""probability":0.9"#), "{said}");
        assert!(said.contains(r#","moment":1462015105796"#) && said.contains(r#""other":0.0"#));
    }

    #[test]
    fn longer_ids_are_reported_with_width_and_time() {
        let said = answer("explain\n507c7f79bcf86cd7994f6c0e\n\n0\n\n");
        assert_eq!(
            said,
            r#"{"kind":"ObjectId","bits":96,"moment":1350336377000}"#
        );
        let said = answer("explain\n919108f7-52d1-4320-9bac-f847db4148a8\n\n0\n\n");
        assert_eq!(
            said,
            r#"{"kind":"UUID of version 4","bits":128,"moment":null}"#
        );
    }

    #[test]
    fn a_tid_is_explained_as_blueskys() {
        let said = answer("explain\n3k4duaz5vfs2b\n\n1795305600000\n\n");
        assert!(
            said.contains(r#""layout":"bluesky","moment":1691386272411"#)
                && said.contains(r#""readings":[["tid","1731979542948864007"],["base36","16863608498488516307"]]"#),
            "{said}"
        );
    }

    #[test]
    fn errors_are_reported_as_json() {
        assert!(answer("explain\n\"\\\nx\n0\n\n").starts_with(r#"{"error":"#));
        assert!(answer("").starts_with(r#"{"error":"#));
        assert!(answer("layout\n41\n12\n10\n7\n0").contains("it must be 1000"));
        assert!(answer("layout\n60\n12\n10\n1000\n0").contains("error"));
        let reason = answer("explain\nhello\u{1}\n\n0\n\n");
        assert!(reason.contains("base62"), "{reason}");
        assert_eq!(text("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }

    #[test]
    fn a_layout_is_designed() {
        let said = answer("design\n60\n4096\n50000\n1767225600000");
        assert!(said.contains(r#""machines":"4096""#), "{said}");
        let other = answer("layout\n41\n10\n12\n1000\n1767225600000");
        assert!(
            other.contains(r#""total":63"#) && other.contains(r#""perSecond":"1024000""#),
            "{other}"
        );
        assert!(answer("layouts").starts_with(r#"[["max-peak","#));
    }
}

//! Strict parameter parsing: each is known, given at most once, and a whole number in range.
//! Anything else is refused with an error that names the parameter and its range. On the paths of
//! Vesta, Leaf and uid-generator, unknown parameters are ignored, as in those systems.

use std::ops::RangeInclusive;

use actix_web::web::Query;
use vesta_boot::TextFormat;
use vesta_explain::layouts;
use vesta_intf::{Field, Id, IdFormat, IdMeta, MakeId, UnixMillis};

use crate::described::params::Param;
use crate::problem::{Problem, quoted};
use crate::values::{number, period};

/// The parameters of a query string.
#[derive(Debug)]
pub(crate) struct Params {
    given: Vec<(String, String)>,
}

impl Params {
    /// Parses a query string that has only `known` parameters, each at most once. If `known` is `None`, the query is
    /// ignored.
    pub(crate) fn read(query: &str, known: Option<&[Param]>) -> Result<Self, Problem> {
        let Some(known) = known.filter(|_| !query.is_empty()) else {
            return Ok(Self { given: Vec::new() });
        };
        let given = pairs(query)?;
        if let Some((name, _)) = given.iter().find(|(name, _)| !is_known(known, name)) {
            let names = known
                .iter()
                .filter(|param| param.in_query())
                .map(|param| param.name);
            let names = names.collect::<Vec<_>>().join(", ");
            let takes = if names.is_empty() { "none" } else { &names };
            let why = format!(
                "unknown parameter {}; this endpoint takes {takes}",
                quoted(name)
            );
            return Err(Problem::invalid(name, why));
        }
        Self::unrepeated(given)
    }

    /// Parses a query string and a form, and ignores parameters that are not known.
    pub(crate) fn lenient(query: &str, form: &[u8], known: &[Param]) -> Result<Self, Problem> {
        let form = std::str::from_utf8(form)
            .map_err(|_| Problem::bad_body("the form is not valid UTF-8"))?;
        let mut given = pairs(query)?;
        given.extend(pairs(form)?);
        given.retain(|(name, _)| is_known(known, name));
        Self::unrepeated(given)
    }

    fn unrepeated(given: Vec<(String, String)>) -> Result<Self, Problem> {
        let again = |(i, (name, _)): &(usize, &(String, String))| {
            given[..*i].iter().any(|(earlier, _)| earlier == name)
        };
        match given.iter().enumerate().find(again) {
            Some((_, (name, _))) => Err(Problem::invalid(
                name,
                format!("{name} must be given only once"),
            )),
            None => Ok(Self { given }),
        }
    }

    /// The text of a parameter, if present.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// A required whole number.
    pub(crate) fn number(&self, name: &str, min: u64, max: u64) -> Result<u64, Problem> {
        self.optional(name, min, max)?
            .ok_or_else(|| missing(name, min, max))
    }

    /// An optional whole number.
    pub(crate) fn optional(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, Problem> {
        self.text(name)
            .map(|text| number(name, text, min, max))
            .transpose()
    }

    /// The parameter `once`, which the answer repeats.
    pub(crate) fn once(&self) -> Result<Option<String>, Problem> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        match self.text("once") {
            None => Ok(None),
            Some(text) if matches!(text.len(), 1..=64) && text.chars().all(is_plain) => {
                Ok(Some(text.to_owned()))
            }
            Some(text) => {
                let is = quoted(text);
                let why = format!("once must be 1 to 64 letters, digits or -._~, but is {is}");
                Err(Problem::invalid("once", why))
            }
        }
    }

    /// The name of the format of IDs in request and response; decimal unless `format` names another.
    pub(crate) fn format(&self) -> Result<&str, Problem> {
        self.format_of("format")
            .map(|name| name.unwrap_or(IdFormat::Decimal.name()))
    }

    /// The name of the format in a parameter, if present.
    pub(crate) fn format_of(&self, parameter: &str) -> Result<Option<&str>, Problem> {
        let Some(name) = self.text(parameter) else {
            return Ok(None);
        };
        let names: Vec<_> = TextFormat::names().collect();
        if names.contains(&name) {
            Ok(Some(name))
        } else {
            Err(none_of(parameter, &names, name))
        }
    }

    /// The layout for explaining this ID: the one named by `layout`, else the server's.
    pub(crate) fn layout(&self, own: &IdMeta, raw: u64) -> Result<IdMeta, Problem> {
        let Some(name) = self.text("layout") else {
            return Ok(own.explaining(raw));
        };
        let known = layouts(own);
        let Some(meta) = known.iter().find(|meta| meta.name() == name) else {
            let names: Vec<_> = known.iter().map(IdMeta::name).collect();
            return Err(none_of("layout", &names, name));
        };
        let by_type = meta.explaining(raw);
        if by_type.spec() != meta.spec() {
            let (right, raw) = (by_type.name(), IdFormat::Decimal.format(raw));
            let why = format!("layout must be {right} for {raw}, by its type bit, but is `{name}`");
            return Err(Problem::invalid("layout", why));
        }
        Ok(*meta)
    }

    /// The parameter `time` as a moment, or a day, month or year.
    pub(crate) fn period(&self) -> Result<RangeInclusive<UnixMillis>, Problem> {
        match self.text("time") {
            Some(text) => period("time", text),
            None => {
                let forms = vesta_boot::moment::FORMS;
                Err(Problem::invalid(
                    "time",
                    format!("time is missing; it must be {forms}"),
                ))
            }
        }
    }

    /// The layout of the IDs whose bounds are requested, and their fields above the time. Values
    /// not given are the server's own.
    pub(crate) fn above_time(&self, meta: &IdMeta, own: &Id) -> Result<(IdMeta, Id), Problem> {
        let id_type = self
            .optional("type", 0, meta.max(Field::Type))?
            .unwrap_or(own.id_type);
        let meta = meta.of_type_value(id_type)?;
        let field = |name, field, own| {
            self.optional(name, 0, meta.max(field))
                .map(|given| given.unwrap_or(own))
        };
        let gen_method = field("genMethod", Field::GenMethod, own.gen_method)?;
        let version = field("version", Field::Version, own.version)?;
        Ok((
            meta,
            Id {
                id_type,
                gen_method,
                version,
                ..Id::default()
            },
        ))
    }
}

/// The names and values of a query string.
fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    Query::from_query(query)
        .map(Query::into_inner)
        .map_err(|error| Problem::bad_body(format!("the query cannot be read: {error}")))
}

fn is_known(known: &[Param], name: &str) -> bool {
    known
        .iter()
        .any(|param| param.in_query() && param.name == name)
}

/// Layouts for explaining IDs: the named ones, preceded by the server's own if it has no name.
pub(crate) fn layouts(own: &IdMeta) -> Vec<IdMeta> {
    let unnamed = layouts::named(own.name()).is_err().then_some(*own);
    unnamed.into_iter().chain(layouts::all()).collect()
}

/// Problem of an unknown name.
fn none_of(parameter: &str, names: &[&str], given: &str) -> Problem {
    let names = names.join(", ");
    Problem::invalid(
        parameter,
        format!(
            "{parameter} must be one of {names}, but is {}",
            quoted(given)
        ),
    )
}

/// Problem of a missing number.
pub(crate) fn missing(name: &str, min: u64, max: u64) -> Problem {
    Problem::invalid(
        name,
        format!("{name} is missing; it must be a whole number {min} to {max}"),
    )
}

/// Collects the parts of an ID to assemble. `read` returns the number of a part, at most the maximum, or nothing. It
/// reads the type first: between Vesta's two layouts, the type decides the widths of time and seq.
pub(crate) fn parts(
    own: &IdMeta,
    mut read: impl FnMut(&'static str, u64) -> Result<Option<u64>, Problem>,
) -> Result<MakeId, Problem> {
    let id_type = read("type", own.max(Field::Type))?;
    let meta = match id_type {
        Some(id_type) => own.of_type_value(id_type)?,
        None => *own,
    };
    let mut field = |name, field| read(name, meta.max(field));
    let must = |name, at, value: Option<u64>| value.ok_or_else(|| missing(name, 0, meta.max(at)));
    Ok(MakeId {
        time: must("time", Field::Time, field("time", Field::Time)?)?,
        seq: must("seq", Field::Seq, field("seq", Field::Seq)?)?,
        machine: field("machine", Field::Machine)?,
        gen_method: field("genMethod", Field::GenMethod)?,
        id_type,
        version: field("version", Field::Version)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::described::params::{PATH_ID, SEQ, TICKS};

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        let known = Some(&[TICKS, SEQ, PATH_ID][..]);
        let params = Params::read("time=5&seq=%36", known).unwrap();
        assert_eq!(params.number("time", 0, 9).unwrap(), 5);
        assert_eq!(params.number("seq", 0, 9).unwrap(), 6);
        let says = |query, known| Params::read(query, known).unwrap_err().to_string();
        assert_eq!(
            says("tim=5", known),
            "unknown parameter `tim`; this endpoint takes time, seq"
        );
        assert_eq!(
            says("a", Some(&[])),
            "unknown parameter `a`; this endpoint takes none"
        );
        assert_eq!(says("time=5&time=5", known), "time must be given only once");

        let params =
            Params::lenient("_=1769904000000&time=5", b"seq=6&x=%20", &[TICKS, SEQ]).unwrap();
        assert_eq!(
            (
                params.number("time", 0, 9).unwrap(),
                params.number("seq", 0, 9).unwrap()
            ),
            (5, 6)
        );
        let says = |query, form| {
            Params::lenient(query, form, &[TICKS])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(says("time=5", b"time=5"), "time must be given only once");
        assert_eq!(says("", b"\xff"), "the form is not valid UTF-8");
    }
}

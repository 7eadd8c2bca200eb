//! Texts of `explain` as IDs: in one format, or in each that they fit.

use jiff::tz::TimeZone;
use vesta_boot::{Error, TextFormat};
use vesta_explain::layouts;
use vesta_explain::{Around, Form, Reading, Written, is_friendly, parse_friendly, read, read_as};
use vesta_intf::{IdFormat, IdMeta, Shuffle, UuidV7};

use crate::values::{moved, now};

/// How IDs are written.
pub(crate) struct Reader<'a> {
    /// Their layout, unless it is to be guessed.
    pub(crate) layout: Option<IdMeta>,
    /// Their format, unless each is tried.
    pub(crate) format: Option<&'a str>,
    /// Key of opaque IDs.
    pub(crate) key: Option<&'a Shuffle>,
    /// Zone of the friendly form.
    pub(crate) zone: &'a TimeZone,
}

/// A text read in one form.
pub(crate) struct Read {
    pub(crate) raw: u64,
    /// Name of the form.
    pub(crate) form: &'static str,
    /// The layout that the form implies, or the chosen one.
    pub(crate) layout: Option<IdMeta>,
    /// Writing around it.
    pub(crate) around: Vec<&'static Around>,
}

impl Reader<'_> {
    /// A format by its name, for IDs of the layout.
    pub(crate) fn format(&self, name: &str) -> Result<TextFormat<'_>, Error> {
        let plain = name.parse().map(TextFormat::Plain);
        match (self.layout, plain) {
            (None, Err(_)) => Error::refuse(format!(
                "{name} is for IDs of one layout; choose it with --layout"
            )),
            (None, Ok(plain)) => Ok(plain),
            (Some(_), _) if name == TextFormat::OPAQUE && self.key.is_none() => {
                Error::refuse("opaque needs a key: --key FILE, which `vesta key new FILE` makes")
            }
            (Some(layout), _) => TextFormat::find(name, &layout, self.key).map_err(Error::setting),
        }
    }

    /// All readings of a text, the likely ones first.
    pub(crate) fn all(&self, text: &str) -> Result<Vec<Read>, Error> {
        if let Some(it) = self.chosen(text)? {
            return Ok(vec![it]);
        }
        let mut ids = read(text).and_then(Written::ids).map_err(Error::setting)?;
        if let Some(layout) = &self.layout {
            Reading::likely_first(&mut ids, layout, now());
        }
        ids.into_iter().map(|it| self.of_layout(text, it)).collect()
    }

    /// The one reading of a text in a list: digits alone are decimal, all other texts must fit one format.
    pub(crate) fn one(&self, text: &str) -> Result<Read, Error> {
        if let Some(it) = self.chosen(text)? {
            return Ok(it);
        }
        let it = read(text).and_then(|written| written.one("--format"));
        self.of_layout(text, it.map_err(Error::setting)?)
    }

    /// The reading in the chosen format, or in a form that only the chosen layout has.
    fn chosen(&self, text: &str) -> Result<Option<Read>, Error> {
        let one = |form, raw| {
            Some(Read {
                raw,
                form,
                layout: self.layout,
                around: Vec::new(),
            })
        };
        if let Some(name) = self.format {
            let name = TextFormat::names()
                .find(|it| *it == name)
                .unwrap_or_default();
            return self.exactly(text, name).map(|raw| one(name, raw));
        }
        let Some(layout) = &self.layout else {
            return match is_friendly(text) {
                true => Error::refuse(format!(
                    "{text} does not contain its layout; choose one with --layout"
                )),
                false => Ok(None),
            };
        };
        if let Ok(raw) = UuidV7::new(layout).and_then(|uuids| uuids.parse(text)) {
            return Ok(one(UuidV7::NAME, raw));
        }
        if !is_friendly(text) {
            return Ok(None);
        }
        let moment = |local| moved(local, &TimeZone::UTC, self.zone);
        let raw = parse_friendly(layout, text, moment).map_err(Error::setting)?;
        Ok(one("friendly", raw))
    }

    fn exactly(&self, text: &str, name: &str) -> Result<u64, Error> {
        match self.format(name)? {
            TextFormat::Plain(format) => read_as(text, format),
            format => format.parse(text, now()),
        }
        .map_err(Error::setting)
    }

    fn of_layout(&self, text: &str, it: Reading) -> Result<Read, Error> {
        let layout = match (self.layout, it.form) {
            (Some(layout), Form::UuidV7(other)) => {
                let (name, other) = (layout.name(), other.name());
                return Error::refuse(format!(
                    "{text} is the UUID of an ID of the layout {other}, not of {name}; pass --layout {other}"
                ));
            }
            (None, Form::UuidV7(layout)) => Some(layout),
            (None, Form::Tid) => Some(layouts::BLUESKY),
            (layout, _) => layout,
        };
        Ok(Read {
            raw: it.id,
            form: it.form.name(),
            layout,
            around: it.around,
        })
    }
}

/// Note on a list whose numbers all fit a format with check digits.
pub(crate) fn note_of(format: IdFormat) -> String {
    format!(
        "every line also fits {format}: pass --format {format} if its last digits are check digits"
    )
}

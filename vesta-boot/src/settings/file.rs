//! The TOML file: values keyed by setting name, `[layout.custom]` and `[[auth.tokens]]`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use clap::Command;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use vesta_intf::{FieldOrder, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

use super::declared::toml_type;
use super::parse::did_you_mean;
use crate::error::Error;
use crate::settings::moment::instant;
use vesta_net::Token;

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct File {
    /// Text and line number of each setting.
    pub(super) values: BTreeMap<String, (String, usize)>,
    pub(super) custom: Option<LayoutSpec>,
    pub(super) tokens: Vec<Token>,
}

/// Settings that are lists: comma-separated text or an array.
pub(super) const LISTS: [&str; 3] = ["hosts", "cors.origins", "pool_server.namespaces"];

/// `[layout.custom]`: the fields of [`LayoutSpec`], and their defaults.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LayoutSpec", deny_unknown_fields)]
struct CustomLayout {
    #[serde(default)]
    version_bits: u8,
    #[serde(default)]
    type_bits: u8,
    #[serde(default)]
    gen_method_bits: u8,
    time_bits: u8,
    seq_bits: u8,
    machine_bits: u8,
    #[serde(default)]
    order: FieldOrder,
    unit: TimeUnit,
    #[serde(deserialize_with = "epoch")]
    epoch: UnixMillis,
}

/// A whole number, a TOML date and time, or text.
fn epoch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UnixMillis, D::Error> {
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::Integer(millis) => millis.to_string(),
        toml::Value::Datetime(moment) => moment.to_string(),
        toml::Value::String(text) => text,
        other => {
            return Err(D::Error::custom(format!(
                "epoch must be text, but is {}",
                other.type_str()
            )));
        }
    };
    instant(&text).map_err(|must| D::Error::custom(format!("epoch {must}")))
}

/// `[layout]`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layout {
    #[serde(with = "CustomLayout")]
    pub(super) custom: LayoutSpec,
}

/// `[auth]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthTable {
    #[serde(default)]
    tokens: Vec<Token>,
}

/// Reads the layout that a settings file describes in `[layout.custom]`.
///
/// # Errors
/// [`Error::Setting`] if the file cannot be read or does not describe a valid layout.
pub fn read_layout(path: &Path) -> Result<IdMeta, Error> {
    let found = read(path, super::settings())?.custom;
    let spec = found.ok_or_else(|| {
        Error::setting(format!("{} has no table [layout.custom]", path.display()))
    })?;
    IdMeta::foreign(spec).map_err(|error| Error::setting(format!("{}: {error}", path.display())))
}

/// The layout of a `[layout]` table that has a `custom` table.
///
/// # Errors
/// The validation error.
pub fn layout_of(table: toml::Table) -> Result<IdMeta, String> {
    let layout = Layout::deserialize(table).map_err(|error| error.message().to_owned())?;
    IdMeta::foreign(layout.custom).map_err(|error| error.to_string())
}

/// Reads a settings file.
pub(super) fn read(path: &Path, settings: &Command) -> Result<File, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::setting(format!(
            "cannot read the configuration {}: {error}",
            path.display()
        ))
    })?;
    parse(&text, settings).map_err(|fault| Error::setting(format!("{} {fault}", path.display())))
}

fn parse(text: &str, settings: &Command) -> Result<File, String> {
    let table = DeTable::parse(text).map_err(|error| fault(text, &error))?;
    let mut reader = Reader {
        text,
        settings,
        file: File::default(),
    };
    reader.table("", table.into_inner())?;
    Ok(reader.file)
}

struct Reader<'a> {
    text: &'a str,
    settings: &'a Command,
    file: File,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: DeTable<'_>) -> Result<(), String> {
        for (key, value) in table {
            let name = format!("{prefix}{}", key.get_ref());
            let (at, kind) = (line(self.text, &key.span()), value.get_ref().type_str());
            let names = || {
                self.settings
                    .get_arguments()
                    .map(|arg| arg.get_id().as_str())
            };
            let setting = self
                .settings
                .get_arguments()
                .find(|arg| arg.get_id() == name.as_str());
            let expected = match (name.as_str(), setting.map(toml_type)) {
                ("auth", _) => {
                    self.file.tokens = self.read::<AuthTable>(value)?.tokens;
                    continue;
                }
                ("layout", _) if kind == "table" => {
                    self.file.custom = Some(self.read::<Layout>(value)?.custom);
                    self.file.values.insert(name, ("custom".to_owned(), at));
                    continue;
                }
                (name_of_any, Some(expected))
                    if expected == kind || name_of_any == "machine.id" && kind == "string" =>
                {
                    let text = match self.read(value)? {
                        toml::Value::String(text) => text,
                        other => other.to_string(),
                    };
                    self.file.values.insert(name, (text, at));
                    continue;
                }
                (name_of_list, Some(_)) if kind == "array" && LISTS.contains(&name_of_list) => {
                    let texts: Vec<String> = self.read(value)?;
                    self.file.values.insert(name, (texts.join(","), at));
                    continue;
                }
                ("layout", _) => "the name of a layout, or a table [layout.custom]",
                (_, Some(expected)) => expected,
                (_, None) if names().any(|it| it.starts_with(&format!("{name}."))) => {
                    if let DeValue::Table(table) = value.into_inner() {
                        self.table(&format!("{name}."), table)?;
                        continue;
                    }
                    "table"
                }
                (typed, None) => {
                    let hint = did_you_mean(typed, names());
                    return Err(format!("line {at}: unknown setting `{typed}`{hint}"));
                }
            };
            return Err(format!(
                "line {at}: invalid type: {kind}, expected {expected} for {name}"
            ));
        }
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, value: Spanned<DeValue<'_>>) -> Result<T, String> {
        T::deserialize(ValueDeserializer::from(value)).map_err(|error| fault(self.text, &error))
    }
}

fn line(text: &str, span: &Range<usize>) -> usize {
    text[..span.start.min(text.len())].matches('\n').count() + 1
}

/// One line of an error. toml's own rendering quotes the line, which may hold a password.
fn fault(text: &str, error: &toml::de::Error) -> String {
    let message = without_text(&error.message().replace('\n', ", "));
    match error.span() {
        Some(span) => format!("line {}: {message}", line(text, &span)),
        None => format!("cannot be read: {message}"),
    }
}

/// Removes quoted text: text in the wrong place may be a token or a password.
fn without_text(message: &str) -> String {
    match message.split_once("string \"") {
        Some((before, after)) => match after.rsplit_once('"') {
            Some((_, after)) => format!("{before}string{after}"),
            None => format!("{before}string"),
        },
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::settings;

    #[test]
    fn an_error_names_its_line_and_never_shows_a_password() {
        for (text, expected) in [
            (
                "layout = \"a\"\nmachine.ids = 3\n",
                "line 2: unknown setting `machine.ids`; did you mean machine.id?",
            ),
            (
                "listen = 1\n",
                "line 1: unknown setting `listen`; did you mean http.listen or grpc.listen or admin.listen?",
            ),
            (
                "layou = 1\n",
                "line 1: unknown setting `layou`; did you mean layout?",
            ),
            ("[segmnt]\nstore = 1\n", "line 1: unknown setting `segmnt`"),
            (
                "[machine]\nqwertyuiop = 1\n",
                "line 2: unknown setting `machine.qwertyuiop`",
            ),
            (
                "[machine]\nid = 1.5\n",
                "line 2: invalid type: float, expected integer for machine.id",
            ),
            (
                "[machine]\ncount = \"mysql://u:s3cret@h/d\"\n",
                "line 2: invalid type: string",
            ),
            ("[machine]\nid = 99999999999999999999\n", "line 2:"),
            ("[machine]\nstore = mysql://u:s3cret@h/d\n", "line 2:"),
            (
                "machine = \"s3cret\"\n",
                "line 1: invalid type: string, expected table for machine",
            ),
            (
                "[hosts]\nat = \"s3cret\"\n",
                "line 1: invalid type: table, expected string",
            ),
            (
                "pacing = \"s3cret\"\n",
                "invalid type: string, expected boolean for pacing",
            ),
            (
                "layout = 5\n",
                "the name of a layout, or a table [layout.custom]",
            ),
            (
                "[layout.custom]\ntime_bits = 300\n",
                "line 2: invalid value: integer `300`",
            ),
            ("[layout.own]\n", "unknown field `own`"),
            (
                "[layout.custom]\ntime_bits = 31\nseq_bits = 22\nmachine_bits = 10\n\
                 unit = \"second\"\nepoch = \"s3cret\"\n",
                "epoch must be a moment such as 2026-01-31T12:00:00Z",
            ),
            (
                "[auth]\ntokens = \"s3cret\"\n",
                "line 2: invalid type: string, expected a sequence",
            ),
            (
                "[[auth.tokens]]\ntoken = \"s3cret\"\n",
                "line 2: unknown field `token`, expected",
            ),
            (
                "[[auth.tokens]]\nname = 5\nsha256 = \"s3cret\"\n",
                "line 2: invalid type: integer",
            ),
            ("[tls]\nkey = [\"s3cret\"]\n", "line 2: invalid type: array"),
        ] {
            let fault = parse(text, settings()).expect_err(text);
            let fault = Error::setting(fault).to_string();
            assert!(fault.contains(expected), "{text:?}: {fault}");
            assert!(!fault.contains("s3cret"), "{fault}");
            assert!(!fault.contains('\n'), "{fault}");
        }
    }

    #[test]
    fn values_are_keyed_by_setting_name() {
        let text = "pacing = true\nmax_wait_ms = 0x5\n[machine]\nid = 7\n[layout.custom]\n\
            time_bits = 31\nseq_bits = 22\nmachine_bits = 10\nunit = \"second\"\nepoch = 0\n";
        let file = parse(text, settings()).expect("a right file");
        let values = file
            .values
            .iter()
            .map(|(name, (text, line))| format!("{name}={text}@{line}"));
        let values: Vec<_> = values.collect();
        let expected = [
            "layout=custom@5",
            "machine.id=7@4",
            "max_wait_ms=5@2",
            "pacing=true@1",
        ];
        assert_eq!(values, expected);
        assert_eq!(
            file.custom.map(|c| (c.time_bits, c.epoch)),
            Some((31, UnixMillis(0)))
        );
    }
}

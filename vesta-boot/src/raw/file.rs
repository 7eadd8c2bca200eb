//! The TOML file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize};
use vesta_intf::{FieldOrder, TimeUnit};

use crate::ConfigError;

/// What a file says, under the names of `KEYS`.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) values: BTreeMap<String, String>,
    pub(super) custom: Option<CustomLayout>,
    pub(super) tokens: Vec<TokenTable>,
}

/// `[layout.custom]`: the numbers of a layout of one's own.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of vesta_intf::LayoutSpec")]
pub struct CustomLayout {
    #[serde(default)]
    pub version_bits: u8,
    #[serde(default)]
    pub type_bits: u8,
    #[serde(default)]
    pub gen_method_bits: u8,
    pub time_bits: u8,
    pub seq_bits: u8,
    pub machine_bits: u8,
    #[serde(default)]
    pub order: FieldOrder,
    pub unit: TimeUnit,
    pub epoch: Epoch,
}

/// The moment at which the time field is 0: milliseconds since 1970, or text as in RFC 3339.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Epoch {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    Millis(u64),
    /// `2026-01-01T00:00:00Z`.
    Text(String),
}

/// The shape of the file. The types are checked here; the values are then taken from the same text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read through the names of KEYS")]
struct File {
    listen: Option<String>,
    layout: Option<Layout>,
    populator: Option<String>,
    gen_method: Option<u64>,
    version: Option<u64>,
    sequence_start: Option<String>,
    namespace: Option<String>,
    state_dir: Option<String>,
    stateless: Option<bool>,
    auto_init: Option<bool>,
    wait_for_store: Option<bool>,
    allow_plaintext: Option<bool>,
    max_wait_ms: Option<u64>,
    request_timeout_ms: Option<u64>,
    drain_limit_ms: Option<u64>,
    max_connections: Option<u64>,
    workers: Option<u64>,
    tls: Option<Tls>,
    admin: Option<Admin>,
    auth: Option<Auth>,
    machine: Option<Machine>,
    segment: Option<Segment>,
    log: Option<Log>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "see File")]
struct Admin {
    listen: Option<String>,
    tls: Option<Tls>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "see File")]
struct Tls {
    cert: Option<String>,
    key: Option<String>,
    client_ca: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Auth {
    #[serde(default)]
    tokens: Vec<TokenTable>,
}

/// `[[auth.tokens]]`: a token that callers may show. `Debug` hides its digest, in whose place somebody
/// may have written the token itself.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct TokenTable {
    /// What logs and errors call it.
    pub name: String,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// What it may be used for.
    pub scopes: Vec<String>,
}

impl fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, scopes, .. } = self;
        f.debug_struct("TokenTable")
            .field("name", name)
            .field("scopes", scopes)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "see File")]
struct Machine {
    id: Option<u64>,
    ips: Option<String>,
    ordinal: Option<bool>,
    store: Option<String>,
    range: Option<String>,
    count: Option<u64>,
    strategy: Option<String>,
    claim_order: Option<String>,
    window_ms: Option<u64>,
    renew_every_ms: Option<u64>,
    request_timeout_ms: Option<u64>,
    takeover_grace_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "see File")]
struct Segment {
    store: Option<String>,
    mode: Option<String>,
    max_step: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "see File")]
struct Log {
    format: Option<String>,
    level: Option<String>,
}

/// `layout = "snowflake"`, or the table `[layout.custom]`.
enum Layout {
    Named,
    Custom(CustomLayout),
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            custom: CustomLayout,
        }

        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Layout;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a layout, or a table [layout.custom]")
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Layout, E> {
                Ok(Layout::Named)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Layout, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Layout::Custom(table.custom))
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

pub(super) fn read(path: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        ConfigError::refused(format!("cannot read the configuration {}: {error}", path.display()))
    })?;
    parse(&text).map_err(|flaw| ConfigError::refused(format!("{} {flaw}", path.display())))
}

fn parse(text: &str) -> Result<Settings, String> {
    // toml's own rendering quotes the line, which may hold a password.
    let flaw = |error: toml::de::Error| {
        let message = without_text(&error.message().replace('\n', ", "));
        match error.span() {
            Some(span) => {
                let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
                format!("line {line}: {message}")
            }
            None => format!("is not right: {message}"),
        }
    };
    let file: File = toml::from_str(text).map_err(flaw)?;
    let table: toml::Table = toml::from_str(text).map_err(flaw)?;

    let mut settings = Settings::default();
    flatten("", table, &mut settings.values);
    settings.values.retain(|name, _| !name.starts_with("layout.") && !name.starts_with("auth."));
    settings.tokens = file.auth.map(|auth| auth.tokens).unwrap_or_default();
    if let Some(Layout::Custom(custom)) = file.layout {
        settings.values.insert("layout".to_owned(), "custom".to_owned());
        settings.custom = Some(custom);
    }
    Ok(settings)
}

/// A text in the wrong place may be a token or a password.
fn without_text(message: &str) -> String {
    match message.split_once("string \"") {
        Some((before, after)) => match after.rsplit_once('"') {
            Some((_, after)) => format!("{before}string{after}"),
            None => format!("{before}string"),
        },
        None => message.to_owned(),
    }
}

fn flatten(prefix: &str, table: toml::Table, values: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let name = format!("{prefix}{name}");
        match value {
            toml::Value::Table(table) => flatten(&format!("{name}."), table, values),
            toml::Value::String(text) => drop(values.insert(name, text)),
            other => drop(values.insert(name, other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_names_its_line_and_never_shows_a_password() {
        for (text, expected) in [
            ("listen = \"a\"\nmachine.ids = 3\n", "line 2: unknown field `ids`"),
            ("liste = 1\n", "line 1: unknown field `liste`"),
            ("[machine]\nid = -1\n", "line 2: invalid value: integer `-1`, expected u64"),
            ("[machine]\nid = \"mysql://u:s3cret@h/d\"\n", "line 2: invalid type: string"),
            ("[machine]\nstore = mysql://u:s3cret@h/d\n", "line 2:"),
            ("layout = 5\n", "the name of a layout, or a table [layout.custom]"),
            ("[layout.custom]\ntime_bits = 300\n", "line 2: invalid value: integer `300`"),
            ("[layout.own]\n", "unknown field `own`"),
            ("[auth]\ntokens = \"s3cret\"\n", "line 2: invalid type: string, expected a sequence"),
            ("[[auth.tokens]]\ntoken = \"s3cret\"\n", "line 2: unknown field `token`, expected"),
            ("[[auth.tokens]]\nname = 5\nsha256 = \"s3cret\"\n", "line 2: invalid type: integer"),
            ("[tls]\nkey = [\"s3cret\"]\n", "line 2: invalid type: sequence"),
        ] {
            let flaw = parse(text).expect_err(text);
            let flaw = ConfigError::refused(flaw).to_string();
            assert!(flaw.contains(expected), "{text:?}: {flaw}");
            assert!(!flaw.contains("s3cret"), "{flaw}");
            assert!(!flaw.contains('\n'), "{flaw}");
        }
    }

    #[test]
    fn values_come_out_under_the_names_of_the_settings() {
        let text = "stateless = true\nmax_wait_ms = 5\n[machine]\nid = 7\n[layout.custom]\n\
            time_bits = 31\nseq_bits = 22\nmachine_bits = 10\nunit = \"second\"\nepoch = 0\n";
        let settings = parse(text).expect("a right file");
        let values: Vec<_> = settings.values.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(values, ["layout=custom", "machine.id=7", "max_wait_ms=5", "stateless=true"]);
        assert_eq!(settings.custom.map(|c| (c.time_bits, c.epoch)), Some((31, Epoch::Millis(0))));
    }
}

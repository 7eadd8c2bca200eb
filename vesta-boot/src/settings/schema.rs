//! JSON Schema of the settings file, by which editors complete and check it: docs/vesta.schema.json.

use serde_json::{Map, Value, json};
use vesta_intf::{FieldOrder, TimeUnit};
use vesta_net::Scopes;

use super::declared::{Sections, toml_type};
use super::file::LISTS;
use super::section::Valid;

/// Where the schema of this version is.
pub const SCHEMA: &str = concat!(
    env!("CARGO_PKG_REPOSITORY"),
    "/raw/v",
    env!("CARGO_PKG_VERSION"),
    "/docs/vesta.schema.json"
);

/// The schema, a line for each setting. It accepts each file that the program accepts; rules between settings are left
/// to the program.
pub fn schema() -> String {
    let mut tables = table();
    for (arg, valid) in Sections::declared() {
        let name = arg.get_id().as_str();
        let (mut at, mut key) = (&mut tables, name);
        while let Some((first, rest)) = key.split_once('.') {
            at = &mut at["properties"][first];
            if at.is_null() {
                *at = table();
            }
            key = rest;
        }
        at["properties"][key] = setting(&arg, name, valid);
    }
    let tokens = json!({ "description": "Tokens of callers. Without them, callers need none.", "type": "array", "items": token() });
    tables["properties"]["auth"] = table();
    tables["properties"]["auth"]["properties"]["tokens"] = tokens;
    let mut root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA,
        "title": "Settings of vesta serve",
    });
    let (root, tables) = (root.as_object_mut(), tables.as_object_mut());
    let root = root.expect("an object");
    root.append(tables.expect("an object"));
    lines(root, 0) + "\n"
}

/// A table that takes no other keys.
fn table() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": {} })
}

fn setting(arg: &clap::Arg, name: &str, valid: Valid) -> Value {
    let typed = |text: &str| match toml_type(arg) {
        "string" => json!(text),
        _ => text.parse().unwrap_or(json!(text)),
    };
    let help = arg.get_long_help().unwrap_or_default().to_string();
    let (help, example) = match help.split_once("\n\nExample: ") {
        Some((help, example)) => (help, Some(example)),
        None => (&*help, None),
    };
    let mut of = Map::new();
    of.insert("description".to_owned(), json!(help.replace("\n\n", ". ")));
    let kind = match name {
        "machine.id" => json!(["integer", "string"]),
        _ => json!(toml_type(arg)),
    };
    match (name, valid) {
        ("layout", _) => of.insert(
            "anyOf".to_owned(),
            json!([{ "type": kind }, custom_layout()]),
        ),
        (name, _) if LISTS.contains(&name) => {
            let list = json!({ "type": "array", "items": { "type": "string" } });
            of.insert("anyOf".to_owned(), json!([{ "type": kind }, list]))
        }
        (_, Valid::Names(names)) if kind == "string" => of.insert("enum".to_owned(), json!(names)),
        (_, Valid::Numbers(within)) => {
            of.insert("minimum".to_owned(), json!(within.start()));
            of.insert("maximum".to_owned(), json!(within.end()));
            of.insert("type".to_owned(), kind)
        }
        _ => of.insert("type".to_owned(), kind),
    };
    if let Some(default) = arg.get_default_values().first() {
        of.insert("default".to_owned(), typed(&default.to_string_lossy()));
    }
    if let Some(example) = example {
        of.insert("examples".to_owned(), json!([typed(example)]));
    }
    Value::Object(of)
}

/// `[layout.custom]`.
fn custom_layout() -> Value {
    let bits = json!({ "type": "integer", "minimum": 0, "maximum": 64 });
    let mut custom = table();
    custom["required"] = json!(["time_bits", "seq_bits", "machine_bits", "unit", "epoch"]);
    custom["properties"] = json!({
        "version_bits": bits, "type_bits": bits, "gen_method_bits": bits, "time_bits": bits, "seq_bits": bits,
        "machine_bits": bits,
        "order": { "enum": [FieldOrder::TimeSeqMachine, FieldOrder::TimeMachineSeq, FieldOrder::MachineTimeSeq] },
        "unit": { "enum": [TimeUnit::Second, TimeUnit::TenMillis, TimeUnit::Millisecond, TimeUnit::TenMicros, TimeUnit::Microsecond] },
        "epoch": { "type": ["string", "integer"] },
    });
    let mut layout = table();
    layout["properties"]["custom"] = custom;
    layout["required"] = json!(["custom"]);
    layout
}

/// An entry of `[[auth.tokens]]`.
fn token() -> Value {
    let mut token = table();
    token["required"] = json!(["name", "sha256", "scopes"]);
    token["properties"] = json!({
        "name": { "type": "string" },
        "sha256": { "type": "string", "pattern": "^[0-9a-fA-F]{64}$" },
        "scopes": { "type": "array", "minItems": 1, "items": { "enum": Vec::from_iter(Scopes::ANY.names()) } },
        "namespaces": { "type": "array", "minItems": 1, "items": { "type": "string" } },
    });
    token
}

/// Tables with a line for each key; the rest in one.
fn lines(of: &Map<String, Value>, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let entry = |(key, value): (&String, &Value)| match value {
        Value::Object(inner) if key == "properties" || inner.contains_key("properties") => {
            format!("{indent}{}: {}", json!(key), lines(inner, depth + 1))
        }
        value => format!("{indent}{}: {value}", json!(key)),
    };
    let entries: Vec<_> = of.iter().map(entry).collect();
    format!("{{\n{}\n{}}}", entries.join(",\n"), "  ".repeat(depth))
}

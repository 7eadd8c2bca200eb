//! `--print-config`.

use vesta_intf::LayoutSpec;

use super::declared::{settings, toml_type};
use super::file::Layout;
use super::store::{DURATIONS, TAKEOVER_GRACE};
use super::values::shown;
use super::{Config, Machine, Values};
use vesta_net::Auth;

/// The settings as TOML, each with its origin.
pub(super) fn print(config: &Config, values: &Values) -> String {
    let settings = settings();
    let mut settings: Vec<_> = settings.get_arguments().collect();
    settings.sort_by(|a, b| table(a.get_id().as_str()).cmp(table(b.get_id().as_str())));
    // Each line with its origin; headings have none.
    let mut lines: Vec<(String, Option<String>)> = Vec::new();
    let mut current = "";
    for arg in settings {
        let name = arg.get_id().as_str();
        let Some((value, origin)) = value(config, values, name) else {
            continue;
        };
        if table(name) != current {
            current = table(name);
            lines.push((format!("\n[{current}]"), None));
        }
        let key = name
            .strip_prefix(current)
            .map_or(name, |key| key.trim_start_matches('.'));
        let value = match (toml_type(arg), value.trim().parse::<u64>()) {
            ("boolean", _) => value,
            ("integer", Ok(number)) => number.to_string(),
            (..) => toml::Value::from(value).to_string(),
        };
        // A duration of the store is not a setting: another store would have another duration.
        let mark = if origin.starts_with("default of") {
            "#"
        } else {
            ""
        };
        lines.push((format!("{mark}{key} = {value}"), Some(origin)));
    }

    let widths = lines
        .iter()
        .filter(|line| line.1.is_some())
        .map(|line| line.0.chars().count());
    let width = widths.max().unwrap_or(0);
    let mut out = String::new();
    for (text, origin) in lines {
        out += &match origin {
            Some(origin) => format!("{text:width$}  # {origin}\n"),
            None => format!("{text}\n"),
        };
    }
    if let (Some(custom), "custom") = (values.custom, config.ids.layout.name()) {
        out += &format!("\n{}", layout_table(custom));
    }
    for token in config.auth.iter().flat_map(Auth::tokens) {
        let (name, scopes) = (
            &token.name,
            token.scopes.to_string().replace(", ", "\", \""),
        );
        out += &format!("\n[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"***\"\n");
        out += &format!("scopes = [\"{scopes}\"]\n");
    }
    out
}

/// The table of a settings file that describes a layout.
pub fn layout_table(custom: LayoutSpec) -> String {
    let table = toml::to_string(&Layout { custom }).expect("plain numbers and names are TOML");
    table.replacen("[custom]", "[layout.custom]", 1)
}

/// TOML table of a setting; `""` for the top level.
fn table(name: &str) -> &str {
    name.split_once('.').map_or("", |(table, _)| table)
}

/// The value of a setting, and its origin.
fn value(config: &Config, values: &Values, name: &str) -> Option<(String, String)> {
    let store = config.machine.store();
    match (name, values.get(name)) {
        // The table [layout.custom] shows it.
        ("layout", _) if config.ids.layout.name() == "custom" => None,
        // 0 by default in a layout without these bits.
        ("gen_method", Some(value)) => Some((
            config.ids.gen_method.value().to_string(),
            value.origin.clone(),
        )),
        ("machine.store", None) => Some((store?.to_string(), "default".to_owned())),
        (_, Some(value)) => Some((shown(name, &value.text), value.origin.clone())),
        (TAKEOVER_GRACE, None) if !matches!(config.machine, Machine::Pool { .. }) => None,
        (_, None) => {
            let (_, of) = DURATIONS.iter().find(|duration| duration.0 == name)?;
            let keeper = if store.is_some() {
                "store"
            } else {
                "state file"
            };
            let own = of(&config.lease?).as_millis().to_string();
            Some((own, format!("default of the {keeper}")))
        }
    }
}

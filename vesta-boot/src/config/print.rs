//! `--print-config`.

use super::store::{DURATIONS, TAKEOVER_GRACE};
use super::{Config, Machine};
use crate::net::Auth;
use crate::raw::{KEYS, Raw};

pub(super) fn print(config: &Config, raw: &Raw) -> String {
    // Each line with its origin; headings have none.
    let mut lines: Vec<(String, Option<String>)> = Vec::new();
    let mut table = "";
    for key in KEYS {
        let own = own_duration(config, raw, key.name);
        let Some(value) = own.clone().or_else(|| value(config, raw, key.name)) else { continue };
        let (of, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if of != table {
            lines.push((format!("\n[{of}]"), None));
            table = of;
        }
        let value = if key.is_text { toml::Value::from(value).to_string() } else { value };
        lines.push(match own {
            // Not a setting: with another store it would be another.
            Some(_) => (format!("#{name} = {value}"), Some(keeper(config).to_owned())),
            None => (format!("{name} = {value}"), Some(raw.origin_of(key))),
        });
    }

    let settings = lines.iter().filter(|line| line.1.is_some());
    let width = settings.map(|line| line.0.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (text, origin) in lines {
        match origin {
            Some(origin) => out += &format!("{text:width$}  # {origin}\n"),
            None => out += &format!("{text}\n"),
        }
    }
    if let (Some(custom), "custom") = (&raw.custom, config.layout.name()) {
        let table = toml::to_string(custom).expect("plain numbers and names are TOML");
        out += &format!("\n[layout.custom]\n{table}");
    }
    for token in config.auth.iter().flat_map(Auth::tokens) {
        let (name, scopes) = (token.name(), token.scopes().to_string().replace(", ", "\", \""));
        out += &format!("\n[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"***\"\n");
        out += &format!("scopes = [\"{scopes}\"]\n");
    }
    out
}

/// The value of a setting, as it was checked; `None` if it has none.
fn value(config: &Config, raw: &Raw, name: &str) -> Option<String> {
    match name {
        "listen" => Some(config.listen.to_string()),
        "admin.listen" => Some(match config.admin_listen {
            Some(address) => address.to_string(),
            None => "off".to_owned(),
        }),
        // The table [layout.custom] says it.
        "layout" if config.layout.name() == "custom" => None,
        "gen_method" => Some(config.gen_method.value().to_string()),
        "workers" => Some(config.workers.to_string()),
        "machine.store" => config.machine.store().map(ToString::to_string),
        "segment.store" => config.segments.as_ref().map(|segments| segments.store.to_string()),
        _ => raw.get(name).map(|given| given.value.clone()),
    }
}

/// Whose default a duration is.
fn keeper(config: &Config) -> &'static str {
    if config.machine.store().is_some() {
        "default of the store"
    } else {
        "default of the state file"
    }
}

/// A duration of the lease that nobody chose.
fn own_duration(config: &Config, raw: &Raw, name: &str) -> Option<String> {
    let (_, of) = DURATIONS.iter().find(|duration| duration.0 == name)?;
    let is_pool = matches!(config.machine, Machine::Pool { .. });
    let lease = config.lease.filter(|_| raw.get(name).is_none())?;
    if name == TAKEOVER_GRACE && !is_pool {
        return None;
    }
    Some(of(&lease.own).as_millis().to_string())
}

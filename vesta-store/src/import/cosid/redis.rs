//! CosId in Redis.
//!
//! ```text
//! cosid:{NAMESPACE}:itc_idx        hash     machine IDs in use
//! cosid:{NAMESPACE}:revert         hash     machine IDs given back
//! cosid:{NAMESPACE}:adder          string   the counter
//! cosid:{NAMESPACE.NAME}.adder     string   a segment
//! ```

use std::collections::BTreeSet;

use redis::Cmd;
use vesta_service::lease::StoreError;

use super::{Entry, Machines, Source, is_within};
pub(super) use crate::backends::redis::Store;

impl Source for Store {
    fn machines(&self, namespace: &str) -> Result<Machines, StoreError> {
        let key = |name: &str| format!("cosid:{{{namespace}}}:{name}");
        let (given_back, in_use) = (hash(self, &key("revert"))?, hash(self, &key("itc_idx"))?);
        let counter = string(self, &key("adder"), "")?;
        Ok(Machines {
            in_use,
            given_back,
            counter,
        })
    }

    fn segments(&self, namespace: &str) -> Result<Vec<Entry>, StoreError> {
        let pattern = format!("cosid:{{{}.*}}.adder", literally(namespace));
        let (mut keys, mut cursor) = (BTreeSet::new(), 0);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(1000);
            let page: Vec<Vec<u8>>;
            (cursor, page) = self.question::<(u64, _)>(&pattern, scan)?;
            keys.extend(page.into_iter().map(lossy)); // SCAN may return a key twice
            if cursor == 0 {
                break;
            }
        }
        let mut segments = Vec::new();
        for key in &keys {
            let name = key
                .strip_prefix("cosid:{")
                .and_then(|key| key.strip_suffix("}.adder"));
            if let Some(name) = name.filter(|name| is_within(namespace, name)) {
                segments.extend(string(self, key, name)?);
            }
        }
        Ok(segments)
    }
}

fn hash(store: &Store, place: &str) -> Result<Vec<Entry>, StoreError> {
    let fields: Vec<(Vec<u8>, Vec<u8>)> = store.question(place, command("HGETALL", place))?;
    let entry = |(key, value)| {
        let key = lossy(key);
        Entry {
            place: format!("{key} of {place}"),
            key,
            value: lossy(value),
        }
    };
    Ok(fields.into_iter().map(entry).collect())
}

fn string(store: &Store, place: &str, key: &str) -> Result<Option<Entry>, StoreError> {
    let value: Option<Vec<u8>> = store.question(place, command("GET", place))?;
    let entry = |value| Entry {
        place: place.into(),
        key: key.into(),
        value: lossy(value),
    };
    Ok(value.map(entry))
}

fn command(name: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    command
}

/// Decodes bytes as text; invalid UTF-8 is refused in numbers and shown in instance names.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Escapes a text as a pattern that matches only that text.
fn literally(text: &str) -> String {
    let escaped = text
        .chars()
        .flat_map(|c| r"\*?[]".contains(c).then_some('\\').into_iter().chain([c]));
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_not_treated_as_a_pattern() {
        assert_eq!(literally("shop.eu"), "shop.eu");
        assert_eq!(literally(r"a*b?[c]\"), r"a\*b\?\[c\]\\");
    }
}

//! Machine IDs and segments that CosId has handed out.
//!
//! | | key | value |
//! |---|---|---|
//! | a machine ID in use | its instance, `10.0.0.5:8080` | `5\|1769832000123`: the machine ID, and its last report in ms |
//! | one given back | the machine ID | the last report, alone or as above |
//! | the counter | | the highest machine ID handed out, -1 if none was |
//! | a segment | `NAMESPACE.NAME` | the last number handed out |
#![allow(dead_code, reason = "some builds have no backend")]

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::collections::BTreeSet;

use vesta_numbers::segment::NewSegmentTag;
use vesta_service::IdError;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::StoreError;

use super::legacy::Legacy;
use super::{ForeignOwner, merged};
use crate::{OpenError, StoreUrl};

/// Segment from which CosId hands out numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignSegment {
    /// Its full name, `NAMESPACE.NAME`.
    pub key: String,
    /// The last number that was handed out; 0 if none was.
    pub last: u64,
}

impl ForeignSegment {
    /// The tag of the same name that continues above the last number.
    ///
    /// # Errors
    /// As [`NewSegmentTag`] if the name, step or first number is invalid for a tag.
    pub fn tag(&self, step: u64) -> Result<NewSegmentTag, IdError> {
        NewSegmentTag::new(&self.key, step)?.starting_at(self.last.saturating_add(1))
    }
}

/// Reads the segments of a CosId namespace, by name, with their last numbers. Changes nothing.
///
/// # Errors
/// As [`machine_ids`](super::machine_ids).
pub fn cosid_segments(url: &StoreUrl, namespace: &str) -> Result<Vec<ForeignSegment>, OpenError> {
    ask(url, |source| {
        segments(source.segments(namespace)?, namespace)
    })
}

pub(super) fn machine_ids(
    url: &StoreUrl,
    namespace: &str,
    max_machine: u64,
) -> Result<Vec<ForeignOwner>, OpenError> {
    ask(url, |source| {
        owners(&source.machines(namespace)?, namespace, max_machine)
    })
}

/// A store used by CosId.
trait Source {
    /// Everything about machine IDs. Returned ones are read first, because they may be in use a
    /// moment later. The counter is read last: it covers every move in between.
    fn machines(&self, namespace: &str) -> Result<Machines, StoreError>;

    /// The segments of a namespace.
    fn segments(&self, namespace: &str) -> Result<Vec<Entry>, StoreError>;
}

/// An entry as found in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// Display location in the store.
    place: String,
    key: String,
    value: String,
}

/// Everything that a store holds about machine IDs.
#[derive(Debug, Default)]
struct Machines {
    in_use: Vec<Entry>,
    given_back: Vec<Entry>,
    counter: Option<Entry>,
}

fn ask<T>(
    url: &StoreUrl,
    question: impl FnOnce(&dyn Source) -> Result<T, StoreError>,
) -> Result<T, OpenError> {
    let _ = &question; // for builds without these backends
    match url.kind() {
        #[cfg(feature = "mysql")]
        crate::Kind::Mysql => super::legacy::ask(url, |store: &mysql::Store| question(store)),
        #[cfg(feature = "redis")]
        crate::Kind::Redis => super::legacy::ask(url, |store: &redis::Store| question(store)),
        #[cfg(feature = "zookeeper")]
        crate::Kind::Zookeeper => super::legacy::ask(url, |store| {
            question(&zookeeper::Tree::new(store, &url.path))
        }),
        _ => Err(Legacy::CosId {
            namespace: "",
            max_machine: 0,
        }
        .not_in(url)),
    }
}

/// The owners of all machine IDs handed out.
fn owners(
    found: &Machines,
    namespace: &str,
    max_machine: u64,
) -> Result<Vec<ForeignOwner>, StoreError> {
    let Machines {
        in_use,
        given_back,
        counter,
    } = found;
    if in_use.is_empty() && given_back.is_empty() && counter.is_none() {
        return Err(nothing("machine IDs", namespace));
    }
    let mut odd = Vec::new();
    let mut owners = all(in_use, instance, &mut odd);
    owners.extend(all(given_back, returned, &mut odd));
    let counted = all(counter.as_slice(), highest, &mut odd)
        .into_iter()
        .flatten();
    refuse(&odd)?;

    let known: BTreeSet<_> = owners.iter().map(|owner| owner.machine).collect();
    let highest = counted.chain(known.last().copied()).max();
    let counted = highest
        .into_iter()
        .flat_map(|highest| 0..=highest.min(max_machine));
    let unknown = counted.filter(|machine| !known.contains(machine));
    owners.extend(unknown.map(|machine| ForeignOwner {
        machine,
        host: "an unknown instance".into(),
        last_used: None,
    }));
    Ok(merged(&owners).into_values().collect())
}

/// The segments, by name.
fn segments(found: Vec<Entry>, namespace: &str) -> Result<Vec<ForeignSegment>, StoreError> {
    if found.is_empty() {
        return Err(nothing("segments", namespace));
    }
    let mut odd = Vec::new();
    let segment = |it: &Entry| {
        Some(ForeignSegment {
            key: it.key.clone(),
            last: number(&it.value)?,
        })
    };
    let mut segments = all(&found, segment, &mut odd);
    refuse(&odd)?;
    segments.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Ok(segments)
}

/// True if the segment with this full name belongs to the namespace.
fn is_within(namespace: &str, name: &str) -> bool {
    let name = name
        .strip_prefix(namespace)
        .and_then(|name| name.strip_prefix('.'));
    name.is_some_and(|name| !name.is_empty())
}

/// Parses entries; unparsable ones are added to `odd`.
fn all<T>(entries: &[Entry], parse: impl Fn(&Entry) -> Option<T>, odd: &mut Vec<Entry>) -> Vec<T> {
    let parsed = entries.iter().filter_map(|entry| {
        let parsed = parse(entry);
        if parsed.is_none() {
            odd.push(entry.clone());
        }
        parsed
    });
    parsed.collect()
}

fn instance(entry: &Entry) -> Option<ForeignOwner> {
    let (machine, stamp) = entry.value.split_once('|')?;
    let (machine, last_used) = (number(machine)?, last_used(stamp)?);
    Some(ForeignOwner {
        machine,
        host: entry.key.clone(),
        last_used,
    })
}

fn returned(entry: &Entry) -> Option<ForeignOwner> {
    let own = format!("{}|", entry.key);
    let last_used = last_used(entry.value.strip_prefix(&own).unwrap_or(&entry.value))?;
    Some(ForeignOwner {
        machine: number(&entry.key)?,
        host: "an instance that gave it back".into(),
        last_used,
    })
}

fn highest(entry: &Entry) -> Option<Option<u64>> {
    or_none(&entry.value)
}

/// An instance that has not reported for this long has lost its machine ID, unless this default of CosId
/// was changed; until then it may make IDs.
const GUARD_MS: u64 = 300_000;

fn last_used(stamp: &str) -> Option<Option<UnixMillis>> {
    Some(or_none(stamp)?.map(|millis| UnixMillis(millis.saturating_add(GUARD_MS))))
}

/// A number, or CosId's -1 for none.
fn or_none(text: &str) -> Option<Option<u64>> {
    if text == "-1" {
        Some(None)
    } else {
        number(text).map(Some)
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Maximum entries named in an error; a value may have any length.
const SHOWN: usize = 10;
const SHOWN_CHARS: usize = 60;

fn refuse(odd: &[Entry]) -> Result<(), StoreError> {
    let shown = odd.iter().take(SHOWN).map(|Entry { place, value, .. }| {
        let value: String = value.chars().take(SHOWN_CHARS).collect();
        format!("{place} = {value:?}")
    });
    let shown: Vec<_> = shown.collect();
    let more = odd.len() - shown.len();
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    match shown[..] {
        [] => Ok(()),
        _ => Err(StoreError::permanent(format!(
            "unexpected entries (not written by CosId): {}{more}; correct or remove them",
            shown.join(", ")
        ))),
    }
}

fn nothing(what: &str, namespace: &str) -> StoreError {
    StoreError::permanent(format!(
        "no {what} found in CosId's namespace `{namespace}`; check `cosid.namespace` of its \
         applications (cosid if it is not set) and the database or path of the URL"
    ))
}

#[cfg(test)]
mod tests;

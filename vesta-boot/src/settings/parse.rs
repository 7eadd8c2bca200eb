//! Value parsers of single settings. An error states the valid values.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::section::{Parser, Valid};
use super::values::may_be_url;
use vesta_store::{OpenError, StoreUrl};

/// A value, or a description of the valid values.
pub(super) type Parsed<T> = Result<T, String>;

/// See [`choice`].
pub(super) struct Choice<T, const N: usize>([(&'static str, T); N]);

impl<T: Copy, const N: usize> Parser for Choice<T, N> {
    type Value = T;

    fn parse(&self, text: &str) -> Parsed<T> {
        let found = self.0.iter().find(|choice| choice.0 == text);
        let names = || self.0.iter().map(|choice| choice.0);
        found
            .map(|choice| choice.1)
            .ok_or_else(|| format!("must be {}", either(names())))
    }

    fn valid(&self) -> Valid {
        Valid::Names(self.0.iter().map(|choice| choice.0).collect())
    }
}

/// A whole number within bounds, as a value of another type.
pub(super) struct Whole<T> {
    within: RangeInclusive<u64>,
    of: fn(u64) -> T,
}

impl<T> Parser for Whole<T> {
    type Value = T;

    fn parse(&self, text: &str) -> Parsed<T> {
        whole(text, *self.within.start(), *self.within.end()).map(self.of)
    }

    fn valid(&self) -> Valid {
        Valid::Numbers(self.within.clone())
    }
}

/// Maximum wait, in milliseconds: ten minutes.
pub(super) const LONGEST_WAIT: u64 = 600_000;

/// A whole number within these inclusive bounds.
pub(super) fn whole(text: &str, min: u64, max: u64) -> Parsed<u64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| {
            if min == max {
                format!("must be {min}")
            } else {
                format!("must be {min} to {max}")
            }
        })
}

pub(super) const fn number(within: RangeInclusive<u64>) -> Whole<u64> {
    Whole {
        within,
        of: u64::from,
    }
}

/// A duration in milliseconds.
pub(super) const fn millis(within: RangeInclusive<u64>) -> Whole<Duration> {
    let of = Duration::from_millis;
    Whole { within, of }
}

/// A count from 1 to `max`.
pub(super) fn count(max: u64) -> Whole<usize> {
    Whole {
        within: 1..=max,
        of: |count| usize::try_from(count).unwrap_or(usize::MAX),
    }
}

/// One of several names.
pub(super) const fn choice<T: Copy, const N: usize>(
    choices: [(&'static str, T); N],
) -> Choice<T, N> {
    Choice(choices)
}

pub(super) const fn truth() -> Choice<bool, 2> {
    choice([("true", true), ("false", false)])
}

/// A path. A URL is refused: its password would show wherever the path does.
pub(super) fn path(text: &str) -> Parsed<PathBuf> {
    match text.contains("://") {
        true => Err("must be the path of a PEM file".to_owned()),
        false => Ok(text.into()),
    }
}

/// The path of a key file. Text that may be a URL is refused, as in [`path`].
pub(super) fn key_file(text: &str) -> Parsed<PathBuf> {
    match may_be_url(text) {
        true => Err("must be the path of a key file, without @".to_owned()),
        false => Ok(text.into()),
    }
}

/// The path of a folder. A URL is refused, as in [`path`].
pub(super) fn folder(text: &str) -> Parsed<PathBuf> {
    match text.contains("://") {
        true => Err("must be the path of a folder".to_owned()),
        false => Ok(text.into()),
    }
}

pub(super) fn store_url(text: &str) -> Parsed<StoreUrl> {
    text.parse().map_err(|error| match error {
        OpenError::NotAUrl { .. } => "must be a URL such as sqlite:vesta-data/vesta.db".to_owned(),
        error => format!("must be the URL of a store: {error}"),
    })
}

/// `a, b or c`.
pub(super) fn either(names: impl IntoIterator<Item = impl Display>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| name.to_string()).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// `; did you mean X?` with the known names that end in this one, as `http.listen` in `listen`, or with the closest
/// one, if one is close enough.
pub(super) fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    let word = typed.trim_start_matches("VESTA_");
    let is_before = |text: &str| text.ends_with(['.', '_']);
    let ends = |name: &&&str| name.strip_suffix(word).is_some_and(is_before);
    let mut meant: Vec<_> = known.iter().filter(ends).copied().collect();
    if meant.is_empty() {
        let closest = known
            .into_iter()
            .min_by_key(|name| strsim::osa_distance(typed, name));
        meant.extend(closest.filter(|name| is_close(typed, name)));
    }
    match meant[..] {
        [] => String::new(),
        _ => format!("; did you mean {}?", meant.join(" or ")),
    }
}

/// True if a name can be meant by what was typed.
pub(crate) fn is_close(typed: &str, name: &str) -> bool {
    strsim::osa_distance(typed, name) <= 1 + typed.len() / 4
}

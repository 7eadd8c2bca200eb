//! Segment tags that several databases share: each has every so many-th number, and none knows of the
//! others.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vesta_service::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, StoreError, Stride};

/// A table of segment tags that knows strides.
pub(crate) trait Line: SegmentStore {
    /// As [`next_range`](SegmentStore::next_range), while the tag has this stride.
    fn take(&self, key: &str, step: u64, stride: Stride) -> Result<NextRange, StoreError>;

    /// As [`create`](SegmentStore::create), with this stride.
    fn add(&self, tag: &NewSegmentTag, stride: Stride) -> Result<bool, StoreError>;

    /// The tokens of callers, each with a tag that it is good for.
    fn tokens(&self) -> Result<Vec<(String, String)>, StoreError>;
}

/// The database, of several, that a range is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// The one that gave the last range of the tag; if it fails, the next.
    #[default]
    Kept,
    /// Any of them, as in Tinyid.
    Random,
}

/// Tags in one database or several, each of which has a row of the tag with the same delta and a remainder
/// of its own. Numbers of a process increase whichever of them it takes ranges from: one that lags behind
/// skips what lies below.
#[derive(Debug)]
pub struct SegmentLines {
    lines: Vec<Box<dyn Line>>,
    spread: Spread,
    tags: Mutex<BTreeMap<String, Tag>>,
}

/// A tag, as far as it is known in each of the databases.
#[derive(Debug, Clone)]
struct Tag {
    rows: Vec<Option<Row>>,
    /// The database that gave the last range.
    current: usize,
}

#[derive(Debug, Clone)]
struct Row {
    stride: Stride,
    /// The last range that this process took there. Nothing below its end may come again.
    last: Range<u64>,
}

impl SegmentLines {
    pub(crate) fn new(lines: Vec<Box<dyn Line>>, spread: Spread) -> Self {
        Self { lines, spread, tags: Mutex::default() }
    }

    /// Sees whether the rows of each tag fit together.
    ///
    /// # Errors
    /// [`StoreError`], permanent and with both rows, if two have other deltas or the same remainder, or of a
    /// database that will never answer. One that only does not answer now is seen to later.
    pub fn check(&self) -> Result<(), StoreError> {
        let answers = self.ask_all(|line| line.tags());
        let never = answers.iter().filter_map(|it| it.as_ref().err()).find(|it| it.is_permanent());
        match never.cloned().map_or_else(|| self.rows(answers).map(drop), Err) {
            Err(error) if !error.is_permanent() => Ok(()),
            checked => checked,
        }
    }

    /// The tokens of callers and a tag that each is good for, from the first database that answers.
    ///
    /// # Errors
    /// [`StoreError`] if none answers, or has no such table.
    pub fn tokens(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut failed = None;
        for line in &self.lines {
            match line.tokens() {
                Ok(tokens) => return Ok(tokens),
                Err(error) => _ = failed.get_or_insert(error),
            }
        }
        Err(failed.expect("there is a database"))
    }

    fn several(&self) -> bool {
        self.lines.len() > 1
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Tag>> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask_all<T>(
        &self,
        ask: impl Fn(&dyn Line) -> Result<T, StoreError>,
    ) -> Vec<Result<T, StoreError>> {
        self.lines.iter().map(|line| ask(&**line)).collect()
    }

    /// The rows of each tag, by database, if they fit together.
    fn rows(
        &self,
        answers: Vec<Result<Vec<SegmentTag>, StoreError>>,
    ) -> Result<BTreeMap<String, Vec<Option<SegmentTag>>>, StoreError> {
        if answers.iter().all(Result::is_err) {
            return Err(answers.into_iter().find_map(Result::err).expect("there is a database"));
        }
        let mut rows: BTreeMap<String, Vec<Option<SegmentTag>>> = BTreeMap::new();
        for (at, answer) in answers.into_iter().enumerate() {
            let store = self.lines[at].describe();
            let found = answer.unwrap_or_else(|error| {
                tracing::warn!(store, %error, "one of the databases of segment tags does not answer");
                Vec::new()
            });
            for row in found {
                let places = rows.entry(row.key.clone());
                places.or_insert_with(|| vec![None; self.lines.len()])[at] = Some(row);
            }
        }
        let known = self.known();
        for (key, places) in &rows {
            // One that is away counts as it was seen last.
            let seen = |at: usize| known.get(key)?.rows[at].as_ref().map(|row| row.stride);
            let stride = |at: usize| places[at].as_ref().map(|row| row.stride).or_else(|| seen(at));
            let strides = (0..places.len()).filter_map(|at| Some((at, stride(at)?)));
            self.fit(key, &strides.collect::<Vec<_>>())?;
        }
        drop(known);
        Ok(rows)
    }

    /// Refuses strides of a tag, by database, of which two have a number in common.
    fn fit(&self, key: &str, strides: &[(usize, Stride)]) -> Result<(), StoreError> {
        let shown = |(at, Stride { delta, remainder }): (usize, Stride)| {
            format!("delta {delta} and remainder {remainder} in {}", self.lines[at].describe())
        };
        for (count, one) in strides.iter().enumerate() {
            let meets = |other: &&(usize, Stride)| {
                one.1.delta != other.1.delta || one.1.remainder == other.1.remainder
            };
            if let Some(other) = strides[..count].iter().find(meets) {
                return Err(StoreError::permanent(format!(
                    "two databases could hand out the same numbers of tag `{key}`: {}, {}; give both one \
                     delta, which is at least the number of databases, and each a remainder of its own",
                    shown(*other),
                    shown(*one),
                )));
            }
        }
        Ok(())
    }

    /// Takes a range from one database, the part of it that is not below `above`.
    fn take(
        &self,
        at: usize,
        key: &str,
        row: &Row,
        step: u64,
        above: u64,
    ) -> Result<NextRange, StoreError> {
        let (line, stride) = (&self.lines[at], row.stride);
        // So much has a number in any case.
        let mut size = step.max(stride.delta);
        loop {
            let numbers = match line.take(key, size, stride)? {
                NextRange::Numbers(numbers) | NextRange::Strided(numbers, _) => numbers,
                other => return Ok(other),
            };
            if self.several() && numbers.start < row.last.end {
                let (store, end) = (line.describe(), row.last.end);
                let went_back = format!(
                    "{store} went back: set max_id of tag `{key}` above {end}, and above everything \
                     that any server gave out"
                );
                tracing::error!("{went_back}"); // another may answer, and nobody see it
                return Err(StoreError::permanent(went_back));
            }
            let rest = numbers.start.max(above).min(numbers.end)..numbers.end;
            self.note(at, key, &rest);
            if !stride.within(rest.clone()).is_empty() {
                return Ok(NextRange::of(rest, stride));
            }
            size = above.saturating_sub(numbers.end).saturating_add(step.max(stride.delta));
        }
    }

    /// Remembers a range. Of two that were asked for at once, the answers may come in any order.
    fn note(&self, at: usize, key: &str, numbers: &Range<u64>) {
        let mut known = self.known();
        let Some(tag) = known.get_mut(key) else { return };
        tag.current = at;
        if let Some(row) = tag.rows[at].as_mut().filter(|row| row.last.end < numbers.end) {
            row.last = numbers.clone();
        }
    }

    /// The databases that have a tag, in the order to ask them.
    fn order(&self, tag: &Tag) -> Vec<(usize, Row)> {
        let count = self.lines.len();
        let first = match self.spread {
            Spread::Kept => tag.current,
            Spread::Random => {
                let random = RandomState::new().hash_one(count);
                usize::try_from(random % count as u64).unwrap_or_default()
            }
        };
        let order = (0..count).map(|it| (first + it) % count);
        order.filter_map(|at| Some((at, tag.rows[at].clone()?))).collect()
    }
}

impl SegmentStore for SegmentLines {
    fn describe(&self) -> String {
        self.lines.iter().map(|line| line.describe()).collect::<Vec<_>>().join(" and ")
    }

    /// With the most that any of the databases has handed out.
    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let rows = self.rows(self.ask_all(|line| line.tags()))?;
        let mut known = self.known();
        let shown = |(key, places): (String, Vec<Option<SegmentTag>>)| {
            let tag = known
                .entry(key)
                .or_insert_with(|| Tag { rows: vec![None; places.len()], current: 0 });
            for (known, row) in tag.rows.iter_mut().zip(&places) {
                let Some(SegmentTag { stride, .. }) = row else { continue };
                known.get_or_insert(Row { stride: *stride, last: 0..0 }).stride = *stride;
            }
            // A row that makes no sense is the one to show.
            places.into_iter().flatten().max_by_key(|row| {
                let sound = row.max_id >= 0 && row.step > 0 && row.stride.is_valid();
                (!sound, row.max_id)
            })
        };
        Ok(rows.into_iter().filter_map(shown).collect())
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.next_range_above(key, step, 0)
    }

    fn next_range_above(&self, key: &str, step: u64, above: u64) -> Result<NextRange, StoreError> {
        let known = || self.known().get(key).cloned();
        let tag = match known() {
            None => self.tags().map(|_| known())?,
            known => known,
        };
        let Some(tag) = tag else { return Ok(NextRange::NoTag) };
        // One database that stands lower has forgotten something.
        let above = if self.several() { above } else { 0 };
        let mut outcome = Ok(NextRange::NoTag);
        for (at, row) in self.order(&tag) {
            match self.take(at, key, &row, step, above) {
                Ok(found @ (NextRange::Numbers(_) | NextRange::Strided(..))) => {
                    if at != tag.current && self.spread == Spread::Kept {
                        let (store, tag) = (self.lines[at].describe(), key);
                        tracing::warn!(store, tag, "numbers now come from this database");
                    }
                    return Ok(found);
                }
                Err(error) => outcome = outcome.and(Err(error)),
                Ok(other) if matches!(outcome, Ok(NextRange::NoTag)) => outcome = Ok(other),
                Ok(_) => {}
            }
        }
        outcome
    }

    fn has_several_lines(&self) -> bool {
        self.several()
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        let known = self.known().get(key).cloned();
        let rows = known.into_iter().flat_map(|tag| tag.rows).enumerate();
        let mut giver = rows.filter_map(|(at, row)| Some((at, row?.last)));
        let Some((at, last)) = giver.find(|(_, last)| last.end == numbers.end) else {
            return Ok(false);
        };
        // What lies below came from another, or was others' here.
        let numbers = numbers.start.max(last.start)..numbers.end;
        let given = self.lines[at].give_back(key, numbers.clone());
        // Where it is not known whether they went back, they may have.
        if !matches!(given, Ok(false))
            && let Some(Some(row)) = self.known().get_mut(key).map(|tag| &mut tag.rows[at])
        {
            row.last = numbers.start..numbers.start;
        }
        given
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        let doubts = self.ask_all(|line| {
            Ok(line.doubt()?.map(|doubt| match self.several() {
                true => format!("{}: {doubt}", line.describe()),
                false => doubt,
            }))
        });
        let doubts: Vec<_> = doubts.into_iter().collect::<Result<_, _>>()?;
        let doubts: Vec<String> = doubts.into_iter().flatten().collect();
        Ok((!doubts.is_empty()).then(|| doubts.join("; ")))
    }

    /// In each of the databases in which it is missing.
    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let delta = self.lines.len() as u64;
        let stride = |at: usize| Stride { delta, remainder: at as u64 };
        if self.several() {
            let rows = self.rows(self.ask_all(|line| line.tags()))?;
            let places = rows.get(&tag.key).into_iter().flatten().enumerate();
            let found = places.filter_map(|(at, row)| Some((at, row.as_ref()?.stride)));
            if let Some((at, found)) = found.into_iter().find(|(at, found)| *found != stride(*at)) {
                let (store, Stride { delta, remainder }) = (self.lines[at].describe(), found);
                return Err(StoreError::permanent(format!(
                    "tag `{}` is in {store} already, with delta {delta} and remainder {remainder}; add the \
                     rows that are missing by hand",
                    tag.key
                )));
            }
        }
        let added = self.lines.iter().enumerate().map(|(at, line)| line.add(tag, stride(at)));
        let added: Vec<bool> = added.collect::<Result<_, _>>()?;
        Ok(added.contains(&true))
    }
}

#[cfg(test)]
mod tests;

//! The definition of a serial tag, which never changes, and the current range of its numbers.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use vesta_intf::{IdError, Shuffle, ShuffleKey, UnixMillis, is_control, plain};
use vesta_service::inside::{Entry, Fields, SCHEMA};

use super::template::Shape;
use super::zone::Zone;
use super::{CivilHour, Pattern, Period, Reset};
use crate::segment::NewSegmentTag;

/// A serial tag as it was created.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(super) tag: String,
    pub(super) pattern: Pattern,
    /// Name and rules of its time zone; none where no date matters.
    pub(super) zone: Option<(String, Zone)>,
    /// Fingerprint of the key, where the pattern shuffles.
    pub(super) key: Option<String>,
    /// Maximum number of tags made from it, if it is a template.
    pub(super) max_tags: Option<u64>,
    /// The template that it was made from, and its place there, which no other tag has.
    pub(super) origin: Option<(String, u64)>,
    /// The permutation of that key, once it has been needed.
    shuffle: OnceLock<Arc<Shuffle>>,
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        let zone = |it: &Self| it.zone.as_ref().map(|(name, _)| name.clone());
        (&self.tag, &self.pattern, &self.key) == (&other.tag, &other.pattern, &other.key)
            && (self.max_tags, &self.origin) == (other.max_tags, &other.origin)
            && zone(self) == zone(other)
    }
}

/// The current hour in a tag's time zone, and its period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    hour: CivilHour,
    pub(super) period: Period,
}

impl Definition {
    /// Name of the tag.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    fn new(
        tag: String,
        pattern: Pattern,
        zone: Option<&str>,
        key: Option<String>,
    ) -> Result<Self, IdError> {
        if zone.is_none() && pattern.has_date() {
            let reason = "the pattern has a date: name its time zone, such as Asia/Shanghai";
            return Err(IdError::invalid("zone", reason));
        }
        if zone.is_some() && !pattern.has_date() {
            return Err(IdError::invalid(
                "zone",
                "the pattern has no date, so it needs no time zone",
            ));
        }
        let zone = zone.map(|name| Ok::<_, IdError>((name.to_owned(), Zone::new(name)?)));
        Ok(Self {
            tag,
            pattern,
            zone: zone.transpose()?,
            key,
            max_tags: None,
            origin: None,
            shuffle: OnceLock::new(),
        })
    }

    /// The mismatch between the given key and the one that the pattern needs, if any.
    pub(super) fn key_trouble(&self, given: Option<&ShuffleKey>) -> Option<String> {
        let (wanted, tag) = (self.key.as_ref()?, plain(&self.tag));
        let given = match given.map(ShuffleKey::fingerprint) {
            Some(given) if given == *wanted => return None,
            Some(given) => format!("was given {given}"),
            None => "no key was given".to_owned(),
        };
        Some(format!(
            "serial tag `{tag}` needs the key with fingerprint {wanted}, but {given}"
        ))
    }

    /// The permutation of a key, if the pattern shuffles; or the defect of the key.
    pub(super) fn shuffle(&self, key: Option<&ShuffleKey>) -> Result<Option<Arc<Shuffle>>, String> {
        if let Some(trouble) = self.key_trouble(key) {
            return Err(trouble);
        }
        let Some(key) = key.filter(|_| self.key.is_some()) else {
            return Ok(None);
        };
        if let Some(known) = self.shuffle.get() {
            return Ok(Some(known.clone()));
        }
        let new = self
            .pattern
            .shuffle(key.clone())
            .map_err(|error| error.to_string())?;
        Ok(new.map(|new| self.shuffle.get_or_init(|| new.into()).clone()))
    }

    pub(super) const fn reset(&self) -> Reset {
        self.pattern.reset()
    }

    /// The present at a moment, in the tag's time zone.
    #[inline]
    pub(super) fn present(&self, now: UnixMillis) -> Present {
        self.present_in(match &self.zone {
            Some((_, zone)) => zone.hour(now),
            None => CivilHour::at(UnixMillis(0), 0),
        })
    }

    #[inline]
    fn present_in(&self, hour: CivilHour) -> Present {
        let period = self.reset().period(&hour);
        Present { hour, period }
    }

    /// The first position of the present period.
    #[inline]
    pub(super) fn start(&self, now: &Present) -> u64 {
        match self.reset() {
            Reset::Never => 0,
            reset => reset.position(now.period, 1),
        }
    }

    /// The counter of a position, and the date to write: the present one, or, if the position is of a later
    /// period, the first hour of that period.
    #[inline]
    pub(super) fn split(&self, position: u64, now: &Present) -> (u64, CivilHour) {
        let reset = self.reset();
        let (period, n) = reset.split(position);
        let date = if period == now.period {
            now.hour
        } else {
            reset.first_hour(period)
        };
        (n, date)
    }

    /// The next `step` positions, or as many as the period has left. `next` is the first position that was
    /// never handed out and `start` the first of the present period. `None` if the period has none left.
    pub(super) fn range(&self, next: u64, start: u64, step: u64) -> Option<Range<u64>> {
        let start = next.max(start);
        let (_, n) = self.reset().split(start);
        let left = self
            .pattern
            .end_of_counters()
            .checked_sub(n)
            .filter(|left| *left > 0)?;
        Some(start..start + step.min(left))
    }
}

impl Entry for Definition {
    fn encode(&self) -> String {
        let Self {
            tag,
            pattern,
            zone,
            key,
            ..
        } = self;
        let (tag, text) = (Value::from(tag.as_str()), Value::from(pattern.as_str()));
        let (reset, key) = (pattern.reset(), Value::from(key.as_deref()));
        let zone = Value::from(zone.as_ref().map(|(name, _)| name.as_str()));
        let most = self.max_tags.map(|most| format!(r#","max_tags":"{most}""#));
        let origin = self.origin.as_ref().map(|(template, place)| {
            format!(
                r#","template":{},"place":"{place}""#,
                Value::from(template.as_str())
            )
        });
        let (most, origin) = (most.unwrap_or_default(), origin.unwrap_or_default());
        format!(
            r#"{{"schema":{SCHEMA},"tag":{tag},"pattern":{text},"reset":"{reset}","zone":{zone},"key":{key}{most}{origin}}}"#
        )
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let explain = |error: IdError| error.to_string();
        let reset = fields.text("reset")?.parse().map_err(explain)?;
        let pattern = Pattern::new(fields.text("pattern")?, reset).map_err(explain)?;
        let zone = fields.optional("zone", Value::as_str)?;
        let key = fields.optional("key", |key| Some(key.as_str()?.to_owned()))?;
        let new = Self::new(fields.text("tag")?.to_owned(), pattern, zone, key);
        let template = fields.if_present("template")?;
        let place = fields.if_present("place")?;
        Ok(Self {
            max_tags: fields.if_present("max_tags")?,
            origin: template.zip(place),
            ..new.map_err(explain)?
        })
    }
}

/// A serial tag to be created, validated so that its serials can be read back and none repeats.
#[derive(Debug)]
pub struct NewSerialTag {
    pub(super) definition: Definition,
    pub(super) first: u64,
    pub(super) step: u64,
    pub(super) description: Option<String>,
}

impl NewSerialTag {
    /// The default step; [`step`](Self::step) overrides it.
    pub const STEP: u64 = 100;
    /// The default maximum of tags of a template; [`max_tags`](Self::max_tags) overrides it.
    pub const TAGS: u64 = 1000;
    /// The largest maximum of tags of a template: each process reads all tags every minute.
    pub const MOST_TAGS: u64 = 10_000;

    /// A tag whose serials have this pattern, and whose days begin at midnight in a time zone of the IANA
    /// database. The zone is required if the pattern has a date, and refused otherwise. Counters start at 1.
    ///
    /// A name with a placeholder, such as `orders-{tenant}`, is a template: it issues no serials itself, but
    /// [`tag_or_made`](super::SerialService::tag_or_made) makes tags such as `orders-acme` from it.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `key` as in [`NewSegmentTag::new`], for `tag` if its braces are not one
    /// placeholder beside other text, for `zone`, or for `pattern` if it has bidirectional controls, with which
    /// its serials would read backwards, or if a template's shuffles.
    pub fn new(
        tag: impl Into<String>,
        pattern: Pattern,
        zone: Option<&str>,
    ) -> Result<Self, IdError> {
        let tag = tag.into();
        NewSegmentTag::new(&*tag, 1)?;
        if pattern.as_str().contains(is_control) {
            let reason = "it must not have characters that change the direction of writing";
            return Err(IdError::invalid("pattern", reason));
        }
        let is_template = Shape::of(&tag)?.is_some();
        if is_template && pattern.is_shuffled() {
            let reason =
                "a template's cannot shuffle: each of its tags would need a key of its own";
            return Err(IdError::invalid("pattern", reason));
        }
        let step = Self::STEP.min(pattern.end_of_counters() / 100).max(1);
        let mut definition = Definition::new(tag, pattern, zone, None)?;
        definition.max_tags = is_template.then_some(Self::TAGS);
        Ok(Self {
            definition,
            first: 1,
            step,
            description: None,
        })
    }

    /// The key of a shuffling pattern; the tag stores its fingerprint.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `key` if the pattern does not shuffle.
    pub fn shuffled_with(mut self, key: &ShuffleKey) -> Result<Self, IdError> {
        if !self.definition.pattern.is_shuffled() {
            return Err(IdError::invalid(
                "key",
                "the pattern has no {shuffle:…}, so it needs no key",
            ));
        }
        self.definition.key = Some(key.fingerprint());
        Ok(self)
    }

    /// The minimum counters that a process fetches at a time; those it holds when it is killed are a gap.
    /// Default: 100, or a hundredth of the counter's range.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if it is 0, or exceeds the counter's range.
    pub fn step(mut self, step: u64) -> Result<Self, IdError> {
        let most = self.definition.pattern.end_of_counters() - 1;
        IdError::check("step", step, 1, most.min(NewSegmentTag::MAX_STEP))?;
        self.step = step;
        Ok(self)
    }

    /// Maximum number of tags that are made from a template, 1 to [`MOST_TAGS`](Self::MOST_TAGS); default
    /// [`TAGS`](Self::TAGS).
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], or [`IdError::Invalid`] for `maxTags` if the tag is no template.
    pub fn max_tags(mut self, most: u64) -> Result<Self, IdError> {
        if !self.is_template() {
            let reason =
                "only a template has one: a tag with a placeholder, such as orders-{tenant}";
            return Err(IdError::invalid("maxTags", reason));
        }
        IdError::check("maxTags", most, 1, Self::MOST_TAGS)?;
        self.definition.max_tags = Some(most);
        Ok(self)
    }

    /// True if tags are made from it.
    pub const fn is_template(&self) -> bool {
        self.definition.max_tags.is_some()
    }

    /// The first counter of the present period, instead of 1: to continue serials of another system.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if it does not fit the pattern; [`IdError::Invalid`] for `first` if it is not 1 for
    /// a template.
    pub fn starting_at(mut self, first: u64) -> Result<Self, IdError> {
        if self.is_template() && first != 1 {
            let reason = "the counters of a template's tags start at 1";
            return Err(IdError::invalid("first", reason));
        }
        IdError::check(
            "first",
            first,
            0,
            self.definition.pattern.end_of_counters() - 1,
        )?;
        self.first = first;
        Ok(self)
    }

    /// The purpose of the tag.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if it has more than 256 characters.
    pub fn described_as(mut self, description: impl Into<String>) -> Result<Self, IdError> {
        let description = description.into();
        NewSegmentTag::new(&*self.definition.tag, 1)?.described_as(&*description)?;
        self.description = Some(description);
        Ok(self)
    }

    /// The tag's name.
    pub fn tag(&self) -> &str {
        &self.definition.tag
    }

    /// The tag of this name, to be made from a template of this definition and step.
    pub(super) fn made_from(template: &Definition, step: u64, name: &str) -> Result<Self, IdError> {
        let zone = template.zone.as_ref().map(|(zone, _)| zone.as_str());
        let new = Self::new(name, template.pattern.clone(), zone)?.step(step)?;
        new.described_as(format!("made from {}", template.tag))
    }

    /// Its counter: a segment tag of positions that start at `now`; of a template, of the places of its tags.
    pub(super) fn counter(&self, now: UnixMillis) -> Result<NewSegmentTag, IdError> {
        let reset = self.definition.reset();
        let period = self.definition.present(now).period;
        let tag = NewSegmentTag::new(&*self.definition.tag, self.step)?;
        let tag = match self.definition.max_tags {
            Some(most) => tag.ending_at(most)?,
            None => tag.starting_at(reset.position(period, self.first))?,
        };
        match &self.description {
            Some(description) => tag.described_as(&**description),
            None => Ok(tag),
        }
    }

    /// # Errors
    /// [`IdError::Invalid`] for `key` if the pattern shuffles and no key was given.
    pub(super) fn check(&self) -> Result<(), IdError> {
        if self.definition.pattern.is_shuffled() && self.definition.key.is_none() {
            return Err(IdError::invalid(
                "key",
                "the pattern shuffles: a key is needed",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: CivilHour = CivilHour {
        year: 2026,
        month: 11,
        day: 22,
        hour: 12,
    };

    fn days(pattern: &str) -> Definition {
        let pattern = Pattern::new(pattern, Reset::Day).expect("a pattern");
        Definition::new("days".to_owned(), pattern, Some("UTC"), None).expect("a definition")
    }

    #[test]
    fn a_range_never_leaves_its_period_and_skips_no_counter() {
        for pattern in [
            "{date:yyMMdd}{n:1}",
            "{date:yyMMdd}{n:1+}",
            "{date:yyMMdd}{n:18}",
        ] {
            let days = days(pattern);
            let noon = days.present_in(NOON);
            let (start, end) = (days.start(&noon), days.pattern.end_of_counters());
            let period = Reset::Day.period(&NOON);
            let last = Reset::Day.position(period, end);
            for (next, step) in [
                (0, 1),
                (0, u64::MAX),
                (start + 3, 4),
                (last - 5, 5),
                (last - 5, 100),
            ] {
                let range = days.range(next, start, step).expect("some are left");
                assert_eq!(range.start, next.max(start));
                assert_eq!(
                    range.end,
                    range.start.saturating_add(step).min(last),
                    "{pattern}"
                );
                for position in [range.start, range.end - 1, range.end] {
                    assert_eq!(Reset::Day.split(position).0, period, "{pattern}");
                }
            }
            assert_eq!(days.range(last, start, 1), None, "{pattern}: used up");
            // Another process has begun the next day.
            let tomorrow = CivilHour { day: 23, ..NOON };
            let next = days.start(&days.present_in(tomorrow));
            assert_eq!(days.range(next, start, 2), Some(next..next + 2));
            assert_eq!(
                days.split(next, &noon).1,
                CivilHour {
                    hour: 0,
                    ..tomorrow
                }
            );
        }
    }
}

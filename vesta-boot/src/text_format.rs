//! Text formats of IDs by name, including those that need a layout or a key.

use vesta_explain::layouts;
use vesta_intf::{IdError, IdFormat, IdMeta, IdText, Shuffle, UnixMillis, UuidV7};

/// A text format of the IDs of one layout.
#[derive(Debug, Clone)]
pub enum TextFormat<'a> {
    /// One that needs nothing else.
    Plain(IdFormat),
    /// UUIDs that show the time.
    UuidV7(UuidV7),
    /// IDs permuted by a key, in [`IdFormat::Crockford`].
    Opaque(&'a Shuffle, IdMeta),
}

impl<'a> TextFormat<'a> {
    /// Name of the format that hides the ID.
    pub const OPAQUE: &'static str = "opaque";

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let plain = IdFormat::ALL.into_iter().map(IdFormat::name);
        plain.chain([UuidV7::NAME, Self::OPAQUE])
    }

    /// The format with this name, for IDs of this layout.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `format`: the name is unknown, the layout has no such UUIDs, or there is no key.
    pub fn find(name: &str, layout: &IdMeta, key: Option<&'a Shuffle>) -> Result<Self, IdError> {
        match (name, key) {
            (UuidV7::NAME, _) => UuidV7::new(layout).map(Self::UuidV7),
            (Self::OPAQUE, Some(key)) => Ok(Self::Opaque(key, *layout)),
            (Self::OPAQUE, None) => {
                let reason = "opaque needs a key: make one with `vesta key new FILE`, and set opaque.key_file \
                              (--opaque-key-file)";
                Err(IdError::invalid("format", reason))
            }
            _ => name.parse().map(Self::Plain),
        }
    }

    /// The text of an ID.
    ///
    /// # Errors
    /// [`IdError`] for `id` if `uuid-v7` has no text for it: see [`UuidV7::format`].
    pub fn text(&self, id: u64) -> Result<IdText, IdError> {
        match self {
            Self::Plain(format) => Ok(format.format(id)),
            Self::UuidV7(uuids) => uuids.format(id),
            Self::Opaque(key, _) => Ok(IdFormat::Crockford.format(key.shuffle(id))),
        }
    }

    /// The ID of a text. An opaque one must be an ID of the layout, made at most a day after `now`; of those made with
    /// another key, some pass.
    ///
    /// # Errors
    /// [`IdError`] for `id`, with the reason.
    pub fn parse(&self, text: &str, now: UnixMillis) -> Result<u64, IdError> {
        match self {
            Self::Plain(format) => format.parse(text),
            Self::UuidV7(uuids) => uuids.parse(text),
            Self::Opaque(key, layout) => {
                let id = key.restore(IdFormat::Crockford.parse(text)?);
                let may_exist = layouts::may_exist(layout, id, now);
                may_exist.then_some(id).ok_or_else(|| {
                    let name = layout.explaining(id).name();
                    let reason = format!(
                        "with this key the text is not an ID that the layout {name} can have by now; was it made \
                         with another key?"
                    );
                    IdError::invalid("id", reason)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use vesta_intf::ShuffleKey;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_795_651_200_000); // 2026-11-26

    fn key(byte: u8) -> Shuffle {
        Shuffle::of_all(ShuffleKey::new(&[byte; 32]))
    }

    #[test]
    fn every_named_format_reads_what_it_wrote() {
        let (key, layout) = (key(1), IdMeta::SNOWFLAKE);
        for name in TextFormat::names() {
            let format = TextFormat::find(name, &layout, Some(&key)).expect(name);
            for id in [0, 1, 1_785_223_470_585_921_538] {
                let text = format.text(id).expect(name);
                assert_eq!(format.parse(text.as_str(), NOW).expect(name), id, "{text}");
            }
        }
        let said = |name, layout| {
            TextFormat::find(name, layout, None)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        assert!(said("opaque", &layout).contains("set opaque.key_file"));
        assert!(said("uuid-v7", &IdMeta::MAX_PEAK).contains("max-peak"));
        assert!(said("base63", &layout).contains("is not one of"));
    }

    #[test]
    fn most_ids_of_another_key_are_refused() {
        let (one, other) = (key(1), key(2));
        for (layout, most) in [
            (IdMeta::JS_SAFE, 1),
            (IdMeta::SNOWFLAKE, 300),
            (IdMeta::MAX_PEAK, 500),
        ] {
            let [one, other] = [&one, &other].map(|key| TextFormat::Opaque(key, layout));
            let first = layout.lower_bound(NOW, &layout.blank()).expect("a bound");
            let passing = (first..first + 1000).filter(|id| {
                let text = one.text(*id).expect("a text");
                let read = other.parse(text.as_str(), NOW);
                read.is_ok_and(|read| read != *id)
            });
            let passing = passing.count();
            assert!(passing <= most, "{passing} of 1000, {layout}");
        }
        let text = TextFormat::Opaque(&one, IdMeta::JS_SAFE)
            .text(5)
            .expect("a text");
        let said = TextFormat::Opaque(&other, IdMeta::JS_SAFE).parse(text.as_str(), NOW);
        assert!(said.unwrap_err().to_string().contains("with another key?"));
    }

    #[test]
    fn a_plausible_id_is_at_most_a_day_ahead() {
        let (key, layout) = (key(3), IdMeta::SNOWFLAKE);
        let format = TextFormat::Opaque(&key, layout);
        for (millis, is_read) in [(86_400_000, true), (86_400_001, false)] {
            let id = layout
                .lower_bound(UnixMillis(NOW.0 + millis), &layout.blank())
                .expect("a bound");
            let text = format.text(id).expect("a text");
            assert_eq!(
                format.parse(text.as_str(), NOW).is_ok(),
                is_read,
                "{millis}"
            );
        }
    }
}

//! Segment tags on a [`KvStore`], implemented once for all stores without a table of their own for them.
//!
//! ```text
//!  segment/tags    orders    name, first number that was never handed out, step, description
//! ```

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use vesta_intf::UnixMillis;

use super::{NewSegmentTag, NextRange, SegmentStore, SegmentTag};
use vesta_service::inside::AnyClock;
use vesta_service::inside::random;
use vesta_service::inside::sync::Mutex;
use vesta_service::inside::{Area, Entry, Fields, SCHEMA};
use vesta_service::lease::StoreError;
use vesta_service::lease::{Cas, KvStore, Secret};

pub(crate) const AREA: &str = "segment/tags";

/// Segment tags stored as entries.
#[derive(Debug, Clone)]
pub struct KvSegments {
    area: Area,
    /// Secrets of this process's last change of each entry, which prove to a pool server that it may give numbers back.
    proofs: Arc<Mutex<BTreeMap<String, Secret>>>,
    clock: AnyClock,
}

/// A tag as an entry: no two requests write the same text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    pub(crate) tag: SegmentTag,
    /// Hash of a secret of the writer.
    pub(crate) attempt: u64,
    /// First number of the range that was taken last: its taker may give numbers from there on back.
    pub(crate) from: Option<u64>,
}

impl KvSegments {
    /// The tags in a store; nothing is read or written yet. Changes are dated by the system's clock.
    pub fn new(store: Arc<dyn KvStore>) -> Self {
        Self::in_area(store, AREA, AnyClock::default())
    }

    /// The tags in a separate area, whose changes are dated by this clock.
    pub(crate) fn in_area(store: Arc<dyn KvStore>, area: &str, clock: AnyClock) -> Self {
        Self {
            area: Area {
                store,
                name: area.into(),
            },
            proofs: Arc::default(),
            clock,
        }
    }

    /// Replaces the entry that was read by a tag; returns `false` if it has changed since.
    pub(crate) fn put(
        &self,
        old: Option<&Written>,
        tag: SegmentTag,
        from: Option<u64>,
    ) -> Result<bool, StoreError> {
        let update_time = Some(self.clock.wall());
        self.put_as_is(old, SegmentTag { update_time, ..tag }, from)
    }

    /// [`put`](Self::put) with the time of the tag.
    pub(crate) fn put_as_is(
        &self,
        old: Option<&Written>,
        tag: SegmentTag,
        from: Option<u64>,
    ) -> Result<bool, StoreError> {
        let place = entry_key(&tag.key);
        let secret = Secret::new(random::u128());
        let new = Written {
            tag,
            attempt: secret.attempt(),
            from,
        };
        let last = self.proofs.lock().get(&place).copied();
        let done = self
            .area
            .put_with(&place, old, &new, last.unwrap_or_default())?
            == Cas::Done;
        if done {
            self.proofs.lock().insert(place, secret);
        }
        Ok(done)
    }

    /// Hands out the numbers returned by `next`, which start at or above the first one left; `None`
    /// if there are no more.
    pub(crate) fn take(
        &self,
        key: &str,
        next: impl Fn(u64) -> Result<Option<Range<u64>>, StoreError>,
    ) -> Result<NextRange, StoreError> {
        let deadline = self.clock.monotonic() + self.area.store.timing().request_timeout;
        let place = entry_key(key);
        loop {
            let Some(old) = self.area.get(&place)? else {
                return Ok(NextRange::NoTag);
            };
            let old = self.check(&place, old)?;
            let start = u64::try_from(old.tag.max_id).map_err(|_| {
                StoreError::permanent(format!("max_id of tag `{key}` is negative; correct it"))
            })?;
            let Some(numbers) = next(start)? else {
                return Ok(NextRange::UsedUp);
            };
            let Some(numbers) = old.tag.up_to_last(numbers) else {
                return Ok(NextRange::UsedUp);
            };
            let Ok(max_id) = i64::try_from(numbers.end) else {
                return Ok(NextRange::UsedUp);
            };
            if self.put(
                Some(&old),
                SegmentTag {
                    max_id,
                    ..old.tag.clone()
                },
                Some(numbers.start),
            )? {
                return Ok(NextRange::Numbers(numbers));
            }
            if self.clock.monotonic() >= deadline {
                let contended = io::Error::other("the same tag changed at every attempt");
                return Err(StoreError::unavailable(
                    "other processes were in the way",
                    contended,
                ));
            }
        }
    }

    fn check(&self, place: &str, written: Written) -> Result<Written, StoreError> {
        let key = &written.tag.key;
        if entry_key(key) == place {
            return Ok(written);
        }
        Err(self
            .area
            .damaged(place, &format!("it is the entry of another tag, `{key}`")))
    }
}

impl SegmentStore for KvSegments {
    fn describe(&self) -> String {
        self.area.store.describe()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let entries = self.area.list()?;
        let read = |(place, text): &(String, String)| {
            Ok(self.check(place, self.area.read(place, text)?)?.tag)
        };
        let mut tags = entries.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        tags.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(tags)
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.take(key, |start| {
            Ok(start.checked_add(step).map(|end| start..end))
        })
    }

    /// A single attempt: after a conflict it is unknown whether an earlier attempt had an effect.
    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        let (max_id, end) = (i64::try_from(numbers.start), i64::try_from(numbers.end));
        let (Ok(max_id), Ok(end)) = (max_id, end) else {
            return Ok(false);
        };
        let place = entry_key(key);
        let Some(old) = self.area.get(&place)? else {
            return Ok(false);
        };
        let old = self.check(&place, old)?;
        Ok(old.tag.max_id == end
            && self.put(
                Some(&old),
                SegmentTag {
                    max_id,
                    ..old.tag.clone()
                },
                old.from,
            )?)
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(self.area.store.doubt()?.map(|doubt| doubt.why))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.put(None, SegmentTag::clone(tag), None)
    }
}

/// The key of a tag's entry: its name, in which every byte other than letters, digits, `_` and `-` is
/// written as `%` and two digits.
pub(crate) fn entry_key(tag: &str) -> String {
    tag.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

impl Entry for Written {
    fn encode(&self) -> String {
        let Self { tag, attempt, from } = self;
        let SegmentTag {
            key,
            max_id,
            step,
            last,
            description,
            update_time,
            ..
        } = tag;
        let last = last.map_or(String::new(), |last| format!(r#","last":"{last}""#));
        let from = from.map_or(String::new(), |from| format!(r#","from":"{from}""#));
        let (key, description) = (
            Value::from(key.as_str()),
            Value::from(description.as_deref()),
        );
        let time = Value::from(update_time.map(|time| time.0.to_string()));
        format!(
            r#"{{"schema":{SCHEMA},"key":{key},"max_id":"{max_id}","step":"{step}"{last}{from},"description":{description},"attempt":"{attempt:016x}","time":{time}}}"#
        )
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let [max_id, step] = [fields.number("max_id")?, fields.number("step")?];
        let tag = SegmentTag {
            last: fields.if_present("last")?,
            description: fields.optional("description", |it| Some(it.as_str()?.to_owned()))?,
            update_time: fields.optional("time", |it| it.as_str()?.parse().ok().map(UnixMillis))?,
            ..SegmentTag::new(fields.text("key")?, max_id, step)
        };
        Ok(Self {
            tag,
            attempt: fields.hex_64("attempt")?,
            from: fields.if_present("from")?,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use proptest::prelude::*;

    use super::*;
    use vesta_service::lease::Timing;
    use vesta_service::testing::{Answer, Intercept, MemoryStore, Request};

    fn orders() -> SegmentTag {
        SegmentTag {
            description: Some("the \"orders\"".into()),
            update_time: Some(UnixMillis(1_700_000_000_000)),
            ..SegmentTag::new("orders", 11, 1000)
        }
    }

    fn written(tag: SegmentTag) -> Written {
        Written {
            tag,
            attempt: 42,
            from: None,
        }
    }

    #[test]
    fn the_text_of_a_tag_is_stable() {
        let text = r#"{"schema":1,"key":"orders","max_id":"11","step":"1000","description":"the \"orders\"","attempt":"000000000000002a","time":"1700000000000"}"#;
        assert_eq!(written(orders()).encode(), text);
        assert_eq!(Written::decode(text), Ok(written(orders())));
        let ending = SegmentTag {
            last: Some(2_147_483_647),
            ..orders()
        };
        let text = written(ending.clone()).encode();
        assert!(text.contains(r#""step":"1000","last":"2147483647","description""#));
        assert_eq!(Written::decode(&text), Ok(written(ending)));
        let bare = SegmentTag {
            description: None,
            update_time: None,
            ..orders()
        };
        assert!(written(bare).encode().ends_with(
            r#""step":"1000","description":null,"attempt":"000000000000002a","time":null}"#
        ));
    }

    #[test]
    fn the_key_of_an_entry_has_only_characters_that_stores_accept() {
        for (key, expected) in [
            ("Orders_a-1", "Orders_a-1"),
            ("..", "%2E%2E"),
            ("a/b:c%", "a%2Fb%3Ac%25"),
            ("é\u{1F980}", "%C3%A9%F0%9F%A6%80"),
        ] {
            assert_eq!(entry_key(key), expected);
        }
    }

    proptest! {
        #[test]
        fn every_tag_round_trips(
            (key, max_id, step, attempt) in any::<(String, i64, i64, u64)>(),
            (description, time, last, from) in any::<(Option<String>, Option<u64>, Option<u64>, Option<u64>)>(),
        ) {
            let update_time = time.map(UnixMillis);
            let tag = SegmentTag { description, update_time, last, ..SegmentTag::new(key, max_id, step) };
            let written = Written { tag, attempt, from };
            prop_assert_eq!(Written::decode(&written.encode()), Ok(written));
        }
    }

    #[test]
    fn an_entry_not_written_by_vesta_is_refused() {
        let text = written(orders()).encode();
        for (at, damaged, why) in [
            ("orders", text.replace(':', ": "), "it should be written as"),
            (
                "orders",
                text.replace("\"11\"", "\"011\""),
                "it should be written as",
            ),
            (
                "orders",
                text.replace("\"11\"", "\"1e2\""),
                "its `max_id` is missing or malformed",
            ),
            (
                "orders",
                text.replace("\"11\"", "11"),
                "its `max_id` is missing or malformed",
            ),
            (
                "orders",
                text.replace("\"1700000000000\"", "7"),
                "its `time` is missing or malformed",
            ),
            (
                "orders",
                text.replace("\"schema\":1", "\"schema\":2"),
                "its schema is 2",
            ),
            ("users", text.clone(), "another tag, `orders`"),
        ] {
            let store = Arc::new(MemoryStore::new());
            assert!(store.put_if(AREA, at, None, &damaged).unwrap());
            let tags = KvSegments::new(store);
            let refusal = tags.next_range(at, 1).unwrap_err();
            assert_eq!(tags.tags().unwrap_err().to_string(), refusal.to_string());
            assert!(
                refusal.is_permanent() && refusal.to_string().contains(why),
                "{refusal}"
            );
        }
    }

    #[test]
    fn nothing_is_handed_out_above_the_last_number() {
        let tags = KvSegments::new(Arc::new(MemoryStore::new()));
        let tag = NewSegmentTag::new("orders", 10).and_then(|tag| tag.ending_at(25));
        assert!(tags.create(&tag.unwrap()).unwrap());
        let next = |step| tags.next_range("orders", step).unwrap();
        assert_eq!(next(10), NextRange::Numbers(1..11));
        assert_eq!(next(20), NextRange::Numbers(11..26));
        for step in [1, 10] {
            assert_eq!(next(step), NextRange::UsedUp);
        }
        assert!(tags.give_back("orders", 24..26).unwrap());
        assert_eq!(
            tags.next_range("orders", 10).unwrap(),
            NextRange::Numbers(24..26)
        );
        let tag = NewSegmentTag::new("few", 1).and_then(|tag| tag.starting_at(5)?.ending_at(4));
        assert_eq!(
            tag.unwrap_err().to_string(),
            "last must be 5 to 9223372036854775806, but is 4"
        );
    }

    const GOOD: u8 = 0;
    /// It changes the entry but reports failure, as a client does that repeats a request.
    const REPEATS: u8 = 1;
    /// It changes the entry and does not answer.
    const LOSES_REPLIES: u8 = 2;
    /// Another process was always faster.
    const CONTENDED: u8 = 3;

    /// A store that answers changes as the test demands.
    fn odd(way: Arc<AtomicU8>) -> Intercept {
        let timing = Timing {
            request_timeout: std::time::Duration::ZERO,
            ..Timing::ONE_HOST
        };
        let store = Arc::new(MemoryStore::new());
        let odd = Intercept::new(store, move |request, store| match request {
            Request::Put { .. } => match way.load(Ordering::Relaxed) {
                CONTENDED => Ok(Answer::Done(vec![false])),
                REPEATS => request.send(store).map(|_| Answer::Done(vec![false])),
                LOSES_REPLIES => request.send(store).and_then(|_| {
                    let cause = io::Error::from(io::ErrorKind::TimedOut);
                    Err(StoreError::unavailable("it did not answer", cause))
                }),
                _ => request.send(store),
            },
            _ => request.send(store),
        });
        odd.timing(timing)
    }

    #[test]
    fn an_applied_change_is_recognised_and_an_unanswered_one_is_lost() {
        let way = Arc::new(AtomicU8::new(GOOD));
        let tags = KvSegments::new(Arc::new(odd(way.clone())));
        let goes = |as_told| way.store(as_told, Ordering::Relaxed);
        let orders = NewSegmentTag::new("orders", 10).unwrap();
        goes(REPEATS);
        assert!(tags.create(&orders).unwrap());
        assert!(!tags.create(&orders).unwrap());
        assert_eq!(
            tags.next_range("orders", 10).unwrap(),
            NextRange::Numbers(1..11)
        );
        goes(LOSES_REPLIES);
        assert!(!tags.next_range("orders", 10).unwrap_err().is_permanent());
        goes(CONTENDED);
        let error = tags.next_range("orders", 10).unwrap_err();
        assert!(!error.is_permanent(), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("other processes were in the way"),
            "{error}"
        );
        goes(GOOD);
        assert_eq!(
            tags.next_range("orders", 10).unwrap(),
            NextRange::Numbers(21..31)
        );
    }

    #[test]
    fn a_negative_number_is_refused() {
        let tags = KvSegments::new(Arc::new(MemoryStore::new()));
        assert!(
            tags.put(
                None,
                SegmentTag {
                    max_id: -5,
                    ..orders()
                },
                None
            )
            .unwrap()
        );
        let error = tags.next_range("orders", 10).unwrap_err();
        assert!(
            error.is_permanent() && error.to_string().contains("negative"),
            "{error}"
        );
        assert_eq!(tags.tags().unwrap()[0].max_id, -5);
    }
}

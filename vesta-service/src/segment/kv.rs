//! Segment tags over a [`KvStore`], written once for all stores that have no table of their own for
//! them.
//!
//! ```text
//!  segment/tags    orders    name, first number that was never handed out, step, description
//! ```

use std::sync::Arc;

use serde_json::Value;
use vesta_intf::UnixMillis;

use super::{NewSegmentTag, NextRange, SegmentStore, SegmentTag};
use crate::lease::{Entry, SCHEMA, canonical};
use crate::{Clock as _, KvStore, StoreError, SystemClock, random};

pub(crate) const AREA: &str = "segment/tags";

/// Segment tags as the entries of a store.
#[derive(Debug, Clone)]
pub struct KvSegments {
    store: Arc<dyn KvStore>,
    /// The clock of the times of changes; `None` keeps them as they are.
    clock: Option<SystemClock>,
}

/// The same entry was changed by others for as long as a request may take.
#[derive(Debug)]
struct Contended;

impl std::fmt::Display for Contended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("they changed the same tag again and again")
    }
}

impl std::error::Error for Contended {}

impl KvSegments {
    /// The tags in a store; nothing is asked or written yet.
    pub const fn new(store: Arc<dyn KvStore>) -> Self {
        Self { store, clock: Some(SystemClock::new()) }
    }

    /// The same, for tests that show times.
    pub(crate) const fn without_clock(store: Arc<dyn KvStore>) -> Self {
        Self { store, clock: None }
    }

    /// Adds a tag as it is; `false` if there is one of this name.
    pub(crate) fn add(&self, tag: &SegmentTag) -> Result<bool, StoreError> {
        self.change(&entry_key(&tag.key), None, tag)
    }

    fn change(&self, place: &str, old: Option<&str>, new: &SegmentTag) -> Result<bool, StoreError> {
        let new = encode(new, random::u63());
        // An earlier copy of this very request may have been the one that took effect.
        Ok(self.store.put_if(AREA, place, old, &new)?
            || self.store.get(AREA, place)?.as_deref() == Some(&new))
    }

    /// Takes numbers from a tag that was read; `None` if it has changed since.
    fn take(&self, place: &str, text: &str, step: u64) -> Result<Option<NextRange>, StoreError> {
        let tag = read(place, text)?;
        let start = u64::try_from(tag.max_id).map_err(|_| {
            let key = &tag.key;
            StoreError::permanent(format!("max_id of tag `{key}` is negative; correct it"))
        })?;
        let Some(max_id) = i64::try_from(step).ok().and_then(|step| tag.max_id.checked_add(step))
        else {
            return Ok(Some(NextRange::UsedUp));
        };
        let update_time = self.clock.map(|clock| clock.wall()).or(tag.update_time);
        let new = SegmentTag { max_id, update_time, ..tag };
        let taken = self.change(place, Some(text), &new)?;
        Ok(taken.then(|| NextRange::Numbers(start..start + step)))
    }
}

impl SegmentStore for KvSegments {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let entries = self.store.list(AREA)?;
        let tags = entries.iter().map(|(place, text)| read(place, text));
        let mut tags = tags.collect::<Result<Vec<_>, _>>()?;
        tags.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(tags)
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        let clock = SystemClock::new();
        let deadline = clock.monotonic() + self.store.timing().request_timeout;
        let place = entry_key(key);
        loop {
            let Some(text) = self.store.get(AREA, &place)? else { return Ok(NextRange::NoTag) };
            if let Some(range) = self.take(&place, &text, step)? {
                return Ok(range);
            }
            if clock.monotonic() >= deadline {
                return Err(StoreError::unavailable("other processes were in the way", Contended));
            }
        }
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX); // checked when it was made
        let new = SegmentTag {
            key: tag.key().into(),
            max_id: signed(tag.first()),
            step: signed(tag.step()),
            description: tag.description().map(Into::into),
            update_time: self.clock.map(|clock| clock.wall()),
        };
        self.add(&new)
    }
}

/// The key of a tag's entry: its name, in which all but letters, digits, `_` and `-` are written as `%`
/// and two digits for each byte.
pub(crate) fn entry_key(tag: &str) -> String {
    tag.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn read(place: &str, text: &str) -> Result<SegmentTag, StoreError> {
    decode(place, text).map_err(|why| {
        StoreError::permanent(format!("entry `{place}` of {AREA} is damaged: {why}"))
    })
}

/// The text of a tag. No two requests write the same one.
fn encode(tag: &SegmentTag, attempt: u64) -> String {
    let SegmentTag { key, max_id, step, description, update_time } = tag;
    let (key, description) = (Value::from(key.as_str()), Value::from(description.as_deref()));
    let time = Value::from(update_time.map(|time| time.0.to_string()));
    format!(
        r#"{{"schema":{SCHEMA},"key":{key},"max_id":"{max_id}","step":"{step}","description":{description},"attempt":"{attempt:016x}","time":{time}}}"#
    )
}

/// The tag of a text.
///
/// # Errors
/// A sentence about what is wrong with it.
fn decode(at: &str, text: &str) -> Result<SegmentTag, String> {
    let entry = Entry::parse(text)?;
    let tag = SegmentTag {
        key: entry.text("key")?.to_owned(),
        max_id: entry.number("max_id")?,
        step: entry.number("step")?,
        description: entry.optional("description")?.map(str::to_owned),
        update_time: match entry.optional("time")? {
            None => None,
            Some(_) => Some(UnixMillis(entry.number("time")?)),
        },
    };
    if entry_key(&tag.key) != at {
        return Err(format!("it is the entry of another tag, `{}`", tag.key));
    }
    canonical(text, &encode(&tag, entry.hex_64("attempt")?)).map(|()| tag)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU8, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::{MemoryStore, Timing};

    fn orders() -> SegmentTag {
        SegmentTag {
            key: "orders".into(),
            max_id: 11,
            step: 1000,
            description: Some("the \"orders\"".into()),
            update_time: Some(UnixMillis(1_700_000_000_000)),
        }
    }

    #[test]
    fn a_tag_reads_like_this() {
        let text = r#"{"schema":1,"key":"orders","max_id":"11","step":"1000","description":"the \"orders\"","attempt":"000000000000002a","time":"1700000000000"}"#;
        assert_eq!(encode(&orders(), 42), text);
        assert_eq!(decode("orders", text), Ok(orders()));
        let bare = SegmentTag { description: None, update_time: None, ..orders() };
        assert!(encode(&bare, 42).ends_with(
            r#""step":"1000","description":null,"attempt":"000000000000002a","time":null}"#
        ));
    }

    #[test]
    fn the_key_of_an_entry_has_no_other_characters_than_a_store_takes() {
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
        fn every_tag_comes_back(
            (key, max_id, step, attempt) in any::<(String, i64, i64, u64)>(),
            (description, time) in any::<(Option<String>, Option<u64>)>(),
        ) {
            let update_time = time.map(UnixMillis);
            let tag = SegmentTag { key, max_id, step, description, update_time };
            prop_assert_eq!(decode(&entry_key(&tag.key), &encode(&tag, attempt)), Ok(tag));
        }
    }

    #[test]
    fn an_entry_that_no_vesta_wrote_so_is_refused() {
        let text = encode(&orders(), 42);
        for (at, damaged, why) in [
            ("orders", text.replace(':', ": "), "it should be written as"),
            ("orders", text.replace("\"11\"", "\"011\""), "it should be written as"),
            ("orders", text.replace("\"11\"", "\"1e2\""), "its `max_id` makes no sense"),
            ("orders", text.replace("\"11\"", "11"), "its `max_id` makes no sense"),
            ("orders", text.replace("\"1700000000000\"", "7"), "its `time` makes no sense"),
            ("orders", text.replace("\"schema\":1", "\"schema\":2"), "its schema is 2"),
            ("users", text.clone(), "another tag, `orders`"),
        ] {
            let refusal = read(at, &damaged).unwrap_err();
            assert!(refusal.is_permanent() && refusal.to_string().contains(why), "{refusal}");
        }
    }

    /// A store that answers changes in a way of its own.
    #[derive(Debug, Default)]
    struct Odd {
        entries: MemoryStore,
        way: AtomicU8,
    }

    const GOOD: u8 = 0;
    /// It changes the entry and says that it did not, as a client does that repeats a request.
    const REPEATS: u8 = 1;
    /// It changes the entry and does not answer.
    const LOSES_REPLIES: u8 = 2;
    /// Somebody else was always faster.
    const CONTENDED: u8 = 3;

    impl KvStore for Odd {
        fn describe(&self) -> String {
            "odd".into()
        }

        fn timing(&self) -> Timing {
            Timing { request_timeout: std::time::Duration::ZERO, ..Timing::ONE_HOST }
        }

        fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
            self.entries.list(area)
        }

        fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
            self.entries.get(area, key)
        }

        fn put_if(
            &self,
            area: &str,
            key: &str,
            old: Option<&str>,
            new: &str,
        ) -> Result<bool, StoreError> {
            let way = self.way.load(Ordering::Relaxed);
            let done = way != CONTENDED && self.entries.put_if(area, key, old, new)?;
            match way {
                GOOD => Ok(done),
                LOSES_REPLIES => {
                    let cause = io::Error::from(io::ErrorKind::TimedOut);
                    Err(StoreError::unavailable("it did not answer", cause))
                }
                _ => Ok(false),
            }
        }
    }

    #[test]
    fn a_change_that_took_effect_is_known_by_its_text_and_one_without_an_answer_is_lost() {
        let store = Arc::new(Odd::default());
        let tags = KvSegments::new(store.clone());
        let goes = |way| store.way.store(way, Ordering::Relaxed);
        let orders = NewSegmentTag::new("orders", 10).unwrap();
        goes(REPEATS);
        assert!(tags.create(&orders).unwrap());
        assert!(!tags.create(&orders).unwrap());
        assert_eq!(tags.next_range("orders", 10).unwrap(), NextRange::Numbers(1..11));
        goes(LOSES_REPLIES);
        assert!(!tags.next_range("orders", 10).unwrap_err().is_permanent());
        goes(CONTENDED);
        let error = tags.next_range("orders", 10).unwrap_err();
        assert!(!error.is_permanent(), "{error}");
        assert!(error.to_string().starts_with("other processes were in the way"), "{error}");
        goes(GOOD);
        assert_eq!(tags.next_range("orders", 10).unwrap(), NextRange::Numbers(21..31));
    }

    #[test]
    fn a_negative_number_is_somebodys_mistake() {
        let tags = KvSegments::new(Arc::new(MemoryStore::new()));
        assert!(tags.add(&SegmentTag { max_id: -5, ..orders() }).unwrap());
        let error = tags.next_range("orders", 10).unwrap_err();
        assert!(error.is_permanent() && error.to_string().contains("negative"), "{error}");
        assert_eq!(tags.tags().unwrap()[0].max_id, -5);
    }
}

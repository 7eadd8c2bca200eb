//! Serial tags in a store, presented as a segment store whose numbers are positions.
//!
//! ```text
//!  serial/tags      orders    the definition; never changes
//!  serial/counters  orders    the first position that was never handed out, as a segment tag
//! ```
//!
//! A template is stored in the same way, but its counter hands out the places of the tags made from it. A place
//! is taken before its tag is written, and given back only if the tag turns out to be written with another
//! place. So a template never has more tags than places.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::UnixMillis;

use super::definition::{Definition, NewSerialTag};
use super::template;
use crate::Created;
use crate::segment::kv::entry_key;
use crate::segment::{KvSegments, NewSegmentTag, NextRange, SegmentStore, SegmentTag};
use vesta_service::inside::AnyClock;
use vesta_service::inside::Area;
use vesta_service::inside::sync::Mutex;
use vesta_service::lease::StoreError;
use vesta_service::lease::{Cas, KvStore};

const TAGS: &str = "serial/tags";
const COUNTERS: &str = "serial/counters";

/// A period begins by this host's clock, but no earlier than this before it begins by the store's: a
/// period that has begun cannot be undone.
const MAX_LEAD: Duration = Duration::from_secs(60);

/// Serial tags in a store.
#[derive(Debug)]
pub(crate) struct SerialStore {
    tags: Area,
    counters: KvSegments,
    clock: AnyClock,
    known: Mutex<BTreeMap<String, Known>>,
}

/// A tag as it was when the tags were read.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(super) definition: Arc<Definition>,
    /// The first position that the store had not handed out.
    pub(super) next: u64,
    /// Minimum counters per fetch.
    pub(super) step: u64,
}

impl SerialStore {
    pub(super) fn new(store: Arc<dyn KvStore>, clock: AnyClock) -> Self {
        let counters = KvSegments::in_area(store.clone(), COUNTERS, clock.clone());
        let tags = Area {
            store,
            name: TAGS.into(),
        };
        Self {
            tags,
            counters,
            clock,
            known: Mutex::default(),
        }
    }

    /// A tag that was present when the tags were read.
    pub(super) fn known(&self, tag: &str) -> Option<Known> {
        self.known.lock().get(tag).cloned()
    }

    /// Adds a tag, unless one of its name exists.
    pub(super) fn add(&self, new: &NewSerialTag) -> Result<Created, StoreError> {
        let (now, definition) = (self.clock.wall(), &new.definition);
        let counter = new.counter(now);
        let counter = counter.map_err(|error| StoreError::permanent(error.to_string()))?;
        self.check_lead(definition, definition.start(&definition.present(now)), now)?;
        let place = entry_key(&new.definition.tag);
        match self.tags.put(&place, None, &new.definition)? {
            // An equal entry is a tag whose creation was not completed.
            Cas::Conflict(Some(other)) if other != new.definition => Ok(Created::Another),
            _ => Ok(match self.counters.create(&counter)? {
                true => Created::New,
                false => Created::Same,
            }),
        }
    }

    /// The template that a tag of this name is made from.
    pub(super) fn template_of(&self, tag: &str) -> Option<Known> {
        let known = self.known.lock();
        let templates = known
            .iter()
            .filter(|(_, it)| it.definition.max_tags.is_some());
        let best = template::best(templates.map(|(name, _)| &**name), tag)?;
        known.get(best).cloned()
    }

    /// Makes a tag from a template, unless it exists. Returns `false` if the template has its maximum of tags.
    pub(super) fn make(&self, mut new: NewSerialTag, template: &str) -> Result<bool, StoreError> {
        let now = self.clock.wall();
        self.check_lead(
            &new.definition,
            new.definition.start(&new.definition.present(now)),
            now,
        )?;
        let key = entry_key(new.tag());
        new.definition = match self.tags.get(&key)? {
            Some(found) => found,
            None => {
                let next = |place| Ok(Some(place..place + 1));
                let place = match self.counters.take(template, next)? {
                    NextRange::Numbers(place) => place,
                    NextRange::NoTag => {
                        let why = format!("template `{template}` is incomplete: create it again");
                        return Err(StoreError::permanent(why));
                    }
                    _ => return Ok(false),
                };
                new.definition.origin = Some((template.to_owned(), place.start));
                match self.tags.put(&key, None, &new.definition)? {
                    Cas::Conflict(Some(other)) => {
                        self.counters.give_back(template, place)?;
                        other
                    }
                    _ => new.definition,
                }
            }
        };
        // Also completes a tag whose maker stopped here. The counter of any other tag is its creator's.
        if new.definition.origin.is_some() {
            let counter = new.counter(now);
            let counter = counter.map_err(|error| StoreError::permanent(error.to_string()))?;
            self.counters.create(&counter)?;
        }
        Ok(true)
    }

    /// Refuses to begin a period by a clock that is far ahead of the store's.
    fn check_lead(
        &self,
        definition: &Definition,
        start: u64,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let Some(theirs) = self.tags.store.now()? else {
            return Ok(());
        };
        let lead = u64::try_from(MAX_LEAD.as_millis()).unwrap_or(u64::MAX);
        let latest = UnixMillis(theirs.0.saturating_add(lead));
        if definition.start(&definition.present(latest)) >= start {
            return Ok(());
        }
        let why = format!("this host's clock shows {now}, but the store's shows {theirs}");
        let what = "no period begins while the clock is ahead; correct it";
        Err(StoreError::unavailable(what, io::Error::other(why)))
    }
}

impl SegmentStore for SerialStore {
    fn describe(&self) -> String {
        // Differs from the segment tags in the same store: the host's local record depends on it.
        format!("{}, serials", self.tags.store.describe())
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        for (place, text) in self.tags.list()? {
            let definition: Definition = self.tags.read(&place, &text)?;
            if entry_key(&definition.tag) != place {
                let other = format!("it is the entry of another tag, `{}`", definition.tag);
                return Err(self.tags.damaged(&place, &other));
            }
            let mut known = self.known.lock();
            match known.get(&definition.tag) {
                // Kept: it holds state that was looked up.
                Some(known) if *known.definition == definition => {}
                _ => {
                    let (tag, next, step) = (definition.tag.clone(), 0, 1);
                    known.insert(
                        tag,
                        Known {
                            definition: definition.into(),
                            next,
                            step,
                        },
                    );
                }
            }
        }
        let mut counters = self.counters.tags()?;
        let mut known = self.known.lock();
        counters.retain(|counter| match known.get_mut(&counter.key) {
            Some(known) => {
                known.next = u64::try_from(counter.max_id).unwrap_or(0);
                known.step = u64::try_from(counter.step).unwrap_or(1);
                true
            }
            None => false,
        });
        Ok(counters)
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        let Some(Known { definition, .. }) = self.known(key) else {
            return Ok(NextRange::NoTag);
        };
        let now = self.clock.wall();
        let start = definition.start(&definition.present(now));
        self.counters.take(key, |next| {
            if next < start {
                self.check_lead(&definition, start, now)?;
            }
            Ok(definition.range(next, start, step))
        })
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        self.counters.give_back(key, numbers)
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        self.counters.doubt()
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let why = format!("`{}` has no pattern: a serial tag needs one", tag.key);
        Err(StoreError::permanent(why))
    }
}

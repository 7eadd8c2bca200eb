//! The embedded serial service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, ShuffleKey, plain};

use super::definition::NewSerialTag;
use super::store::{Known, SerialStore};
use super::tag::SerialTag;
use crate::Created;
use crate::segment::Segment;
use crate::segment::{SegmentBuilder, SegmentService, SegmentStatus};
use vesta_service::BuildError;
use vesta_service::inside::AnyClock;
use vesta_service::inside::ask_store;
use vesta_service::inside::fork::{self, Process};
use vesta_service::inside::sync::Mutex;
use vesta_service::lease::KvStore;
use vesta_service::lease::StoreError;

/// Issues serials: numbers of a tag formatted by its pattern, whose counter restarts each day, week,
/// month, quarter or year. One per process is enough; share it behind an [`Arc`].
///
/// ```
/// use std::sync::Arc;
/// use vesta_numbers::serial::{NewSerialTag, Pattern, Reset, SerialService};
/// use vesta_service::testing::MemoryStore;
///
/// let store = Arc::new(MemoryStore::new()); // or a database of vesta-store
/// let serials = SerialService::builder(store).build()?;
/// let pattern = Pattern::new("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day)?;
/// serials.create(&NewSerialTag::new("invoices", pattern, Some("Asia/Shanghai"))?)?;
///
/// let invoices = serials.tag("invoices")?; // looked up once: keep it
/// let first = invoices.next()?;
/// assert_eq!(first.counter, 1);
/// assert!(first.text.starts_with("INV-") && first.text.ends_with("-0000013"));
/// assert_eq!(invoices.parse(&first.text)?.counter, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The guarantee
/// No serial of a tag is issued twice, by this process or by any other on the same store. Date and counter of
/// a serial belong to one period. No period is continued after this or another process has begun a later one,
/// whatever the clocks show. If a clock was set back, serials carry the date on which the later period began.
/// Within a process the counters of a period increase by 1, except for those given to other processes.
///
/// A period begins with the first serial requested in it, by the clock of the requesting process. If
/// that clock is more than a minute ahead of the store's clock, where the store has one, no period
/// begins and calls fail until the clock is right.
///
/// Ranges of counters are fetched ahead like those of a [`SegmentService`]. The counters that a process
/// holds when it is killed, or at the end of a period, are a gap.
#[derive(Debug)]
pub struct SerialService {
    segments: SegmentService,
    store: Arc<SerialStore>,
    keys: BTreeMap<String, ShuffleKey>,
    clock: AnyClock,
    process: Process,
    /// Held while a tag is made from a template: concurrent first calls for it take one place.
    making: Mutex<()>,
}

/// Builds a [`SerialService`]. Everything except the store has a default.
#[derive(Debug, Clone)]
pub struct SerialBuilder {
    store: Arc<dyn KvStore>,
    keys: BTreeMap<String, ShuffleKey>,
    segments: SegmentBuilder,
}

/// Status of one serial tag in this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SerialStatus {
    /// The pattern.
    pub pattern: String,
    /// When the counter restarts, as in `vesta serial create --reset`.
    pub reset: String,
    /// The time zone, if the pattern has a date.
    pub zone: Option<String>,
    /// Fingerprint of the key, if the pattern shuffles.
    pub key: Option<String>,
    /// The period of `next`, such as `2026-11-22`; `None` if the counter never restarts.
    pub period: Option<String>,
    /// The counter of the next serial, unless a new period has begun: of this process, or, if this process has issued
    /// none, of the store when its tags were read. Of a template, the place of its next tag.
    pub next: u64,
    /// The last counter that fits the pattern; of a template, the maximum of its tags.
    pub last: u64,
    /// The reason why no serials can be issued despite available counters: the key is missing, or
    /// another one.
    pub key_trouble: Option<String>,
    /// The ranges of its counters, as positions.
    pub segment: SegmentStatus,
}

impl SerialBuilder {
    /// The key of a tag whose pattern shuffles.
    pub fn key(mut self, tag: impl Into<String>, key: ShuffleKey) -> Self {
        self.keys.insert(tag.into(), key);
        self
    }

    /// Changes how ranges of counters are fetched: all options of [`SegmentBuilder`], except the order,
    /// which is always strict.
    pub fn segments(self, change: impl FnOnce(SegmentBuilder) -> SegmentBuilder) -> Self {
        Self {
            segments: change(self.segments),
            ..self
        }
    }

    /// Builds the service without waiting for the store: calls wait until it has answered, and fail if
    /// it does not.
    ///
    /// # Errors
    /// As [`SegmentBuilder::build`].
    pub fn build(self) -> Result<SerialService, BuildError> {
        let Self {
            store,
            keys,
            mut segments,
        } = self;
        let clock = segments.clock.clone();
        let store = Arc::new(SerialStore::new(store, clock.clone()));
        segments.store = store.clone();
        let segments = segments.build()?;
        Ok(SerialService {
            segments,
            store,
            keys,
            clock,
            process: Process::this(),
            making: Mutex::default(),
        })
    }
}

impl SerialService {
    /// Builder of a service on this store.
    pub fn builder(store: Arc<dyn KvStore>) -> SerialBuilder {
        let tags = SerialStore::new(store.clone(), AnyClock::default());
        let segments = SegmentService::builder(Arc::new(tags));
        SerialBuilder {
            store,
            keys: BTreeMap::new(),
            segments,
        }
    }

    /// A tag, from which any number of serials can be taken. An unknown tag is looked up in the store, as
    /// by [`SegmentService::segment`].
    ///
    /// # Errors
    /// As [`SegmentService::segment`]; [`IdError::Unsupported`] if the tag needs a key and has another one, or none.
    pub fn tag(&self, name: &str) -> Result<SerialTag, IdError> {
        self.found(self.segments.segment(name))
    }

    /// [`tag`](Self::tag) without waiting.
    ///
    /// # Errors
    /// The same.
    pub fn try_tag(&self, name: &str) -> Result<SerialTag, IdError> {
        self.found(self.segments.try_segment(name))
    }

    /// [`tag`](Self::tag) without blocking the thread.
    ///
    /// # Errors
    /// The same.
    #[cfg(feature = "async")]
    pub async fn tag_async(&self, name: &str) -> Result<SerialTag, IdError> {
        self.found(self.segments.segment_async(name).await)
    }

    /// [`tag`](Self::tag); a missing tag is made from the [template](NewSerialTag::new) that its name matches. If
    /// several do, the one with the longest fixed text counts. Blocks as long as the store does.
    ///
    /// # Errors
    /// As [`tag`](Self::tag); [`IdError::Unsupported`] if the template has its maximum of tags;
    /// [`IdError::Unavailable`] if the store fails.
    pub fn tag_or_made(&self, name: &str) -> Result<SerialTag, IdError> {
        let missing = match self.tag(name) {
            Err(error @ IdError::NotFound { .. }) => error,
            found => return found,
        };
        let Some(Known {
            definition, step, ..
        }) = self.store.template_of(name)
        else {
            return Err(missing);
        };
        let new = NewSerialTag::made_from(&definition, step, name)?;
        let _making = self.making.lock();
        if let Ok(made) = self.try_tag(name) {
            return Ok(made); // by the call that held the lock
        }
        let made = ask_store(|| self.store.make(new, &definition.tag));
        match made.and_then(|made| self.refresh().map(|()| made)) {
            Ok(true) => self.tag(name),
            Ok(false) => Err(IdError::Unsupported {
                what: format!(
                    "template `{}` has its {} tags; create `{name}` with `vesta serial create`",
                    plain(&definition.tag),
                    definition.max_tags.unwrap_or(0)
                )
                .into(),
            }),
            Err(error) => Err(IdError::Unavailable {
                reason: format!("the store failed while tag `{name}` was made").into(),
                retry_after: (!error.is_permanent()).then_some(Duration::from_secs(1)),
                source: Some(Arc::new(error)),
            }),
        }
    }

    /// True if [`tag_or_made`](Self::tag_or_made) would make a missing tag of this name, by the tags as last read.
    pub fn has_template(&self, name: &str) -> bool {
        !self.process.is_another() && self.store.template_of(name).is_some()
    }

    fn found(&self, segment: Result<&Segment, IdError>) -> Result<SerialTag, IdError> {
        if self.process.is_another() {
            return Err(fork::refusal()); // before any lock
        }
        let segment = segment.map_err(|error| match error {
            IdError::NotFound { what } => IdError::NotFound {
                what: what.replace("segment tag", "serial tag").into(),
            },
            other => other,
        })?;
        let known = self.store.known(segment.key());
        let definition = known
            .map(|known| known.definition)
            .ok_or_else(|| IdError::Internal {
                reason: format!("serial tag `{}` has a counter only", segment.key()).into(),
                source: None,
            })?;
        if definition.max_tags.is_some() {
            let reason =
                "it is a template: ask for one of its tags, with a value for the placeholder";
            return Err(IdError::invalid("tag", reason));
        }
        let shuffle = definition.shuffle(self.keys.get(&definition.tag));
        // Not `Unavailable`: a retry is useless, and the rest of this process works.
        let shuffle = shuffle.map_err(|what| IdError::Unsupported { what: what.into() })?;
        Ok(SerialTag {
            segment: segment.clone(),
            definition,
            shuffle,
            clock: self.clock.clone(),
        })
    }

    /// Status of each tag in the store in this process, by name.
    pub fn status(&self) -> Vec<SerialStatus> {
        let status = |segment: SegmentStatus| {
            let Known {
                definition, next, ..
            } = self.store.known(&segment.key)?;
            let reset = definition.reset();
            let begun = segment.current.is_some() || segment.taken_total > 0;
            let (period, n) = reset.split(if begun { segment.position } else { next });
            let (period, n, last) = match definition.max_tags {
                Some(most) => (String::new(), next, most),
                None => (
                    reset.show(period),
                    n,
                    definition.pattern.end_of_counters() - 1,
                ),
            };
            let period = Some(period).filter(|shown| !shown.is_empty());
            Some(SerialStatus {
                pattern: definition.pattern.as_str().to_owned(),
                reset: reset.to_string(),
                zone: definition.zone.as_ref().map(|(name, _)| name.clone()),
                key: definition.key.clone(),
                period,
                next: n,
                last,
                key_trouble: definition.key_trouble(self.keys.get(&definition.tag)),
                segment,
            })
        };
        self.segments
            .status()
            .into_iter()
            .filter_map(status)
            .collect()
    }

    /// Adds a tag to the store, and to this service at once, unless one of its name exists. Blocks as long as the
    /// store does.
    ///
    /// # Errors
    /// [`BuildError::Setting`] if the pattern shuffles and no key was given; [`BuildError::Store`] if the
    /// store does not answer: it is then unknown whether the tag was added.
    pub fn create(&self, tag: &NewSerialTag) -> Result<Created, BuildError> {
        tag.check()?;
        let created = ask_store(|| self.store.add(tag));
        let created = created.and_then(|created| self.segments.refresh().map(|()| created));
        created.map_err(|source| BuildError::Store {
            store: self.describe(),
            source,
        })
    }

    /// Reads the tags now, which otherwise happens every minute. Blocks as long as the store does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer: the service then continues with the known tags.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.segments.refresh()
    }

    /// Time since the tags were read; `None` if they never were.
    pub fn last_refresh_age(&self) -> Option<Duration> {
        self.segments.last_refresh_age()
    }

    /// As [`SegmentService::not_ready_because`].
    pub fn not_ready_because(&self) -> Option<String> {
        self.segments.not_ready_because()
    }

    /// As [`SegmentService::doubt`].
    pub fn doubt(&self) -> Option<String> {
        self.segments.doubt()
    }

    /// Display name of the store, without secrets.
    pub fn describe(&self) -> String {
        self.segments.describe()
    }

    /// As [`SegmentService::maintain`].
    pub fn maintain(&self) -> Option<Duration> {
        self.segments.maintain()
    }

    /// As [`SegmentService::close`].
    pub fn close(&self) {
        self.segments.close();
    }
}

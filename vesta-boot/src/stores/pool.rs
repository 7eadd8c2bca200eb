//! Usage of a machine ID pool, read from the store for metrics and status only.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use vesta_intf::IdMeta;
use vesta_service::clock::{Clock, SystemClock};
use vesta_service::lease::{KvStore as _, Leases};

use crate::answers;
use crate::error::Error;
use crate::stores::metered::Metered;
use crate::stores::state::State;

/// Minimum pause between two reads of the pool.
const PAUSE: Duration = Duration::from_secs(30);

/// Minimum pause per record: many processes that read many records must not load the store.
const PAUSE_FOR_EACH: Duration = Duration::from_millis(300);

/// Maximum age of the pool state shown to people.
const FRESH: Duration = Duration::from_secs(2);

/// Time for which a scrape waits for the store; the read then continues in the background, for the next
/// scrape.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Pool usage: the number of machine IDs in each [`State`], and of those never claimed.
pub(crate) type Usage = BTreeMap<&'static str, u64>;

fn usage(states: &BTreeMap<u64, State>, range: &RangeInclusive<u64>) -> Usage {
    let mut usage = Usage::from(State::NAMES.map(|name| (name, 0)));
    usage.insert("free", range.end() - range.start() + 1);
    for (_, state) in states.range(range.clone()) {
        *usage.entry(state.name()).or_default() += 1;
        *usage.entry("free").or_default() -= 1;
    }
    usage
}

/// Describes the namespace of a pool.
type Show = fn(Leases, IdMeta, Arc<dyn Clock>) -> Result<answers::Pool, Error>;

/// Observer of a pool of machine IDs.
#[derive(Debug)]
pub(crate) struct Pool {
    store: Arc<Metered>,
    leases: Leases,
    range: RangeInclusive<u64>,
    layout: IdMeta,
    show: Show,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
    /// The last result and its time by the monotonic clock; one caller reads at a time.
    shown: tokio::sync::Mutex<Option<(Duration, answers::Pool)>>,
}

#[derive(Debug, Default)]
struct Seen {
    usage: Option<Usage>,
    /// Time of the next read, on the monotonic clock.
    next_look: Duration,
}

impl Pool {
    pub(crate) fn new(
        store: Arc<Metered>,
        namespace: &str,
        range: RangeInclusive<u64>,
        layout: IdMeta,
        show: Show,
    ) -> Self {
        let leases = Leases::new(Arc::clone(&store) as _, namespace);
        let clock = Arc::new(SystemClock::new());
        let (seen, shown) = (Mutex::default(), tokio::sync::Mutex::default());
        Self {
            store,
            leases,
            range,
            layout,
            show,
            clock,
            seen,
            shown,
        }
    }

    /// Usage at the last read; `None` before the first read and after a failed one.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.seen().usage.clone()
    }

    /// The whole pool with its range, as in `store show --json`; read at most every [`FRESH`].
    ///
    /// # Errors
    /// One sentence, if the store does not answer in time or its data is damaged.
    pub(crate) async fn shown(self: Arc<Self>) -> Result<answers::Pool, String> {
        let mut last = self.shown.lock().await;
        let now = self.clock.monotonic();
        if let Some((at, shown)) = &*last
            && now.saturating_sub(*at) < FRESH
        {
            return Ok(shown.clone());
        }
        let this = Arc::clone(&self);
        let read = move || (this.show)(this.leases.clone(), this.layout, this.clock.clone());
        let read = timeout(FRESH, spawn_blocking(read)).await;
        let read = read.map_err(|_| "the store does not answer".to_owned())?;
        let mut shown = read
            .map_err(|panic| panic.to_string())?
            .map_err(|error| error.to_string())?;
        shown.first_machine = Some(*self.range.start());
        shown.last_machine = Some(*self.range.end());
        *last = Some((now, shown.clone()));
        Ok(shown)
    }

    /// Reads the pool again on a blocking thread, if due.
    pub(crate) async fn refresh(self: Arc<Self>) {
        if !self.is_due() {
            return;
        }
        let look = spawn_blocking(move || self.look());
        let _ = timeout(TIMEOUT, look).await;
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner) // plain numbers
    }

    fn is_due(&self) -> bool {
        let mut seen = self.seen();
        let due = self.clock.monotonic() >= seen.next_look;
        if due {
            seen.next_look = Duration::MAX; // until this read has ended
        }
        due
    }

    fn look(&self) {
        let _ = self.store.now(); // compares the clocks
        let found = self.leases.snapshot();
        let found = found
            .inspect_err(|error| tracing::debug!(%error, "could not read the pool"))
            .ok();
        let records = found.as_ref().map_or(0, |found| found.records.len());
        let each = PAUSE_FOR_EACH.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        let now = self.layout.position_at(self.clock.wall()).ok();
        let usage = found
            .zip(now)
            .map(|(found, now)| usage(&State::all(&found, now), &self.range));
        let mut seen = self.seen();
        seen.usage = usage;
        seen.next_look = self.clock.monotonic() + each.max(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use vesta_intf::UnixMillis;
    use vesta_service::lease::Record;
    use vesta_service::testing::{ManualClock, MemoryStore};

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

    fn at(seconds: i64) -> u64 {
        let moment = NOW
            .0
            .checked_add_signed(seconds * 1000)
            .expect("after 1970");
        IdMeta::MAX_PEAK
            .position_at(UnixMillis(moment))
            .expect("inside the layout")
    }

    /// Counts in this order: free, held, expired, released, foreign, lost.
    fn by_state(counts: [u64; 6]) -> Usage {
        ["free"]
            .into_iter()
            .chain(State::NAMES)
            .zip(counts)
            .collect()
    }

    fn record(owner: u128, bound: u64) -> Record {
        Record {
            epoch: 1,
            owner,
            bound,
            ..Record::default()
        }
    }

    fn empty_pool() -> Pool {
        let store = Metered::new(Arc::new(MemoryStore::new()), None);
        let show = |_, _, _| Err(Error::setting("not asked for"));
        Pool::new(store, "default", 1..=9, IdMeta::MAX_PEAK, show)
    }

    fn pool(clock: &ManualClock) -> Arc<Pool> {
        let pool = empty_pool();
        let leases = pool.leases.clone();
        let namespace = leases
            .open(&IdMeta::MAX_PEAK.fingerprint())
            .expect("memory")
            .uuid;
        for (machine, record) in [
            (1, record(5, at(3))),
            (2, record(5, at(1))),
            (3, record(5, at(0))),
            (4, record(0, at(9))),
            (5, record(Record::FOREIGN, at(-99))),
            (99, record(5, at(3))),
        ] {
            leases
                .change(
                    machine,
                    None,
                    &Record {
                        namespace,
                        ..record
                    },
                )
                .expect("memory");
        }
        leases.change(8, None, &record(5, at(3))).expect("memory"); // without a namespace: replaced
        Arc::new(Pool {
            clock: Arc::new(clock.clone()),
            ..pool
        })
    }

    #[tokio::test]
    async fn the_pool_counts_its_range_and_reads_again_only_after_the_pause() {
        let clock = ManualClock::at(NOW);
        let pool = pool(&clock);
        assert_eq!(pool.usage(), None);
        Arc::clone(&pool).refresh().await;
        let usage = by_state([3, 2, 1, 1, 1, 1]);
        assert_eq!(pool.usage(), Some(usage.clone()));

        let namespace = pool
            .leases
            .find()
            .expect("memory")
            .expect("it was opened")
            .uuid;
        let sixth = Record {
            namespace,
            ..record(5, at(300))
        };
        pool.leases.change(6, None, &sixth).expect("memory");
        clock.advance(PAUSE - Duration::from_millis(1));
        Arc::clone(&pool).refresh().await;
        assert_eq!(pool.usage(), Some(usage), "it is not read again before");
        clock.advance(Duration::from_millis(1));
        Arc::clone(&pool).refresh().await;
        let usage = by_state([2, 1, 3, 1, 1, 1]);
        assert_eq!(
            pool.usage(),
            Some(usage),
            "1 and 2 have expired by now, 6 is held"
        );
    }

    #[tokio::test]
    async fn unknown_usage_is_not_reported() {
        let clock = ManualClock::at(NOW);
        let pool = Arc::new(Pool {
            clock: Arc::new(clock),
            ..empty_pool()
        });
        Arc::clone(&pool).refresh().await;
        assert_eq!(pool.usage(), None);
        assert!(
            !pool.is_due(),
            "a store that does not answer is not asked all the time"
        );
    }
}

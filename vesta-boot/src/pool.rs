//! Usage of a pool of machine IDs, read from the store for metrics and status only.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use vesta_intf::UnixMillis;
use vesta_service::{Clock, Leases, Record, Snapshot, StoreError, SystemClock};

use crate::ticks::{TickConverter, millis};

/// The pool is read at most this often.
const PAUSE: Duration = Duration::from_secs(30);

/// For each record the pause is at least so long: many processes that look at many records must not
/// become the store's work.
const PAUSE_FOR_EACH: Duration = Duration::from_millis(300);

/// A scrape waits this long for the store; the read then goes on without it, for the next one.
const TIMEOUT: Duration = Duration::from_secs(1);

/// State of a machine ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Somebody has it, and its window is open.
    Held,
    /// Somebody has it, but let the window pass; last heard of then.
    Silent { since: UnixMillis },
    /// Nobody has it any more.
    Released,
    /// A process of another system has it.
    ForeignOwner,
}

impl State {
    /// The state of a record when the clock stands at a position.
    pub(crate) fn of(record: &Record, now: u64) -> Self {
        match record.owner {
            0 => State::Released,
            Record::FOREIGN => State::ForeignOwner,
            _ if record.bound > now => State::Held,
            _ => State::Silent { since: record.info_time },
        }
    }
}

/// Pool usage: the number of machine IDs in each state.
///
/// `free` were never claimed, `released` given back. `held` are in use, or their owner has not been
/// silent for long enough; `expired` may be taken over. `foreign` are in use by another system.
pub(crate) type Usage = BTreeMap<&'static str, u64>;

fn usage(
    records: &BTreeMap<u64, Record>,
    range: &RangeInclusive<u64>,
    now: u64,
    overdue: u64,
) -> Usage {
    let names = ["free", "released", "held", "expired", "foreign"];
    let mut usage = Usage::from(names.map(|name| (name, 0)));
    usage.insert("free", range.end() - range.start() + 1);
    for (_, record) in records.range(range.clone()) {
        let state = match State::of(record, now) {
            State::Released => "released",
            State::ForeignOwner => "foreign",
            State::Silent { .. } if record.bound <= overdue => "expired",
            State::Held | State::Silent { .. } => "held",
        };
        *usage.entry(state).or_default() += 1;
        *usage.entry("free").or_default() -= 1;
    }
    usage
}

/// Observer of a pool of machine IDs.
#[derive(Debug)]
pub struct Pool {
    leases: Leases,
    range: RangeInclusive<u64>,
    ticks: TickConverter,
    grace: Duration,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    usage: Option<Usage>,
    /// By the monotonic clock.
    next_look: Duration,
}

impl Pool {
    pub(crate) fn new(
        leases: Leases,
        range: RangeInclusive<u64>,
        ticks: TickConverter,
        grace: Duration,
    ) -> Self {
        let clock = Arc::new(SystemClock::new());
        Self { leases, range, ticks, grace, clock, seen: Mutex::default() }
    }

    /// Usage when the pool was last read; `None` before the first read and after one that failed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.seen().usage.clone()
    }

    /// Reads the pool again if that is due, on a blocking thread.
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
            seen.next_look = Duration::MAX; // until this look has ended
        }
        due
    }

    fn look(&self) {
        let found = self.leases.snapshot();
        let records = found.as_ref().map_or(0, |found| found.records.len());
        let each = PAUSE_FOR_EACH.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        let usage = self.counted(found);
        let mut seen = self.seen();
        seen.usage = usage;
        seen.next_look = self.clock.monotonic() + each.max(PAUSE);
    }

    fn counted(&self, found: Result<Snapshot, StoreError>) -> Option<Usage> {
        let found = found
            .inspect_err(|error| tracing::debug!(%error, "the pool could not be looked at"))
            .ok()?;
        let wall = self.clock.wall();
        let overdue = UnixMillis(wall.0.saturating_sub(millis(self.grace)));
        let now = self.ticks.position_at(wall).ok()?;
        // Before the epoch nothing was issued that could be overdue.
        let overdue = self.ticks.position_at(overdue).unwrap_or(0);
        Some(usage(&found.records, &self.range, now, overdue))
    }
}

#[cfg(test)]
mod tests {
    use vesta_intf::IdMeta;
    use vesta_service::{ManualClock, MemoryStore};

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

    fn ticks() -> TickConverter {
        TickConverter::new(IdMeta::MAX_PEAK)
    }

    fn at(seconds: i64) -> u64 {
        let moment = NOW.0.checked_add_signed(seconds * 1000).expect("after 1970");
        ticks().position_at(UnixMillis(moment)).expect("inside the layout")
    }

    fn by_state(counts: [u64; 5]) -> Usage {
        ["free", "released", "held", "expired", "foreign"].into_iter().zip(counts).collect()
    }

    fn record(owner: u128, bound: u64) -> Record {
        Record { epoch: 1, owner, bound, info_time: UnixMillis(7), ..Record::default() }
    }

    #[test]
    fn every_state_is_told_from_the_record() {
        for (record, state) in [
            (record(5, at(1)), State::Held),
            (record(5, at(0)), State::Silent { since: UnixMillis(7) }),
            (record(0, at(9)), State::Released),
            (record(Record::FOREIGN, at(-99)), State::ForeignOwner),
        ] {
            assert_eq!(State::of(&record, at(0)), state);
        }
    }

    fn pool(clock: &ManualClock) -> Arc<Pool> {
        let leases = Leases::new(Arc::new(MemoryStore::new()), "default");
        leases.open(&IdMeta::MAX_PEAK.fingerprint()).expect("memory");
        for (machine, record) in [
            (1, record(5, at(3))),
            (2, record(5, at(-59))),
            (3, record(5, at(-60))),
            (4, record(0, at(0))),
            (5, record(Record::FOREIGN, at(0))),
            (99, record(5, at(3))),
        ] {
            leases.change(machine, None, &record).expect("memory");
        }
        let pool = Pool::new(leases, 1..=9, ticks(), Duration::from_secs(60));
        Arc::new(Pool { clock: Arc::new(clock.clone()), ..pool })
    }

    #[tokio::test]
    async fn it_counts_its_own_range_and_looks_again_only_after_the_pause() {
        let clock = ManualClock::at(NOW);
        let pool = pool(&clock);
        assert_eq!(pool.usage(), None);
        Arc::clone(&pool).refresh().await;
        let usage = by_state([4, 1, 2, 1, 1]);
        assert_eq!(pool.usage(), Some(usage.clone()));

        pool.leases.change(6, None, &record(5, at(300))).expect("memory");
        clock.advance(PAUSE - Duration::from_millis(1));
        Arc::clone(&pool).refresh().await;
        assert_eq!(pool.usage(), Some(usage), "it is not asked again before");
        clock.advance(Duration::from_millis(1));
        Arc::clone(&pool).refresh().await;
        let usage = by_state([3, 1, 2, 2, 1]);
        assert_eq!(pool.usage(), Some(usage), "2 is overdue by now, 6 is held");
    }

    #[tokio::test]
    async fn what_is_not_known_is_not_shown() {
        let clock = ManualClock::at(NOW);
        let leases = Leases::new(Arc::new(MemoryStore::new()), "nobody-opened-it");
        let pool = Arc::new(Pool {
            clock: Arc::new(clock),
            ..Pool::new(leases, 1..=9, ticks(), Duration::from_secs(60))
        });
        Arc::clone(&pool).refresh().await;
        assert_eq!(pool.usage(), None);
        assert!(!pool.is_due(), "a store that does not answer is not asked all the time");
    }
}

//! Serials of three servers with eight threads each, over one store, while the days, months and years of
//! a manual clock end. Each period has each counter once, and no gap except for counters that a server
//! still has at the end.

mod planted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vesta_intf::UnixMillis;
use vesta_numbers::Created;
use vesta_numbers::serial::{NewSerialTag, Serial, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_service::clock::{Clock, SystemClock};
use vesta_service::lease::KvStore;
use vesta_store::conformance::{Backend, Fixture};

const SERVERS: usize = 3;
const THREADS: usize = 8;
/// Serials of all servers.
pub(crate) const TOTAL: u64 = 6000;
/// Maximum numbers per fetch of a server.
const STEP: u64 = 20;
/// Maximum numbers that the servers have fetched together; the amount follows their pace.
const AT_HAND: u64 = TOTAL / 10;

/// The end of a period.
pub(crate) struct Case {
    pub(crate) zone: &'static str,
    pub(crate) reset: Reset,
    pub(crate) pattern: &'static str,
    /// The moment in the middle, in seconds since 1970.
    pub(crate) middle: u64,
    /// The first moment of the last period, in seconds since 1970.
    pub(crate) begins: u64,
    /// The periods that occur.
    pub(crate) periods: &'static [&'static str],
}

/// Step of the clock per serial, in milliseconds: two minutes in total.
const TICK: u64 = 120_000 / TOTAL;
/// How far the clock is set back for a while after the middle.
const SET_BACK: u64 = 60_000;

/// A wall clock controlled by the test. Waits use the system's clock.
#[derive(Debug, Clone)]
struct Scripted {
    issued: Arc<AtomicU64>,
    middle: UnixMillis,
    /// Error of this server's clock, in milliseconds.
    ahead: i64,
    system: SystemClock,
}

/// Maximum difference of two clocks, in milliseconds.
const APART: u64 = 1600;

impl Scripted {
    /// The time, and the time as if the clock had not been set back.
    fn times(&self) -> (UnixMillis, UnixMillis) {
        let issued = self.issued.load(Ordering::SeqCst);
        let start = self.middle.0 - TOTAL * TICK / 2;
        let time = (start + issued * TICK).saturating_add_signed(self.ahead);
        let back = if (TOTAL * 6 / 10..TOTAL * 8 / 10).contains(&issued) {
            SET_BACK
        } else {
            0
        };
        (UnixMillis(time - back), UnixMillis(time))
    }
}

impl Clock for Scripted {
    fn wall(&self) -> UnixMillis {
        self.times().0
    }

    fn until(&self, moment: UnixMillis) -> Duration {
        Duration::from_millis(moment.0.saturating_sub(self.wall().0))
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn park(&self, duration: Duration) {
        self.system.park(duration);
    }
}

/// A serial, and the clock readings of its server.
pub(crate) struct Got {
    pub(crate) serial: Serial,
    /// Time before or after the call, whichever is earlier.
    pub(crate) earliest: UnixMillis,
    /// Time after the call, as if the clock had not been set back.
    pub(crate) latest: UnixMillis,
}

fn server(store: Arc<dyn KvStore>, clock: &Scripted) -> SerialService {
    let built = SerialService::builder(store)
        .segments(|segments| {
            let patient = segments.max_wait(Duration::from_secs(60));
            patient.clock(Arc::new(clock.clone())).step_cap(STEP)
        })
        .build();
    built.expect("a service")
}

/// The serials of a thread, until all threads have enough together; every call returns one.
fn thread(service: &SerialService, clock: &Scripted) -> Vec<Got> {
    let tag = service.tag("orders").expect("the tag");
    let next = || {
        let before = clock.wall();
        let serial = tag.next().expect("a serial, also in the last second");
        let (after, latest) = clock.times();
        let got = Got {
            serial,
            earliest: before.min(after),
            latest,
        };
        clock.issued.fetch_add(1, Ordering::SeqCst);
        got
    };
    std::iter::from_fn(|| (clock.issued.load(Ordering::SeqCst) < TOTAL).then(next)).collect()
}

fn run(fixture: &dyn Fixture, case: &Case) {
    let name = format!("{} in {}, {}", case.pattern, case.zone, case.middle);
    let pattern = Pattern::new(case.pattern, case.reset).expect("a pattern");
    let (issued, middle) = (Arc::default(), UnixMillis(case.middle * 1000));
    let clock = |ahead| Scripted {
        issued: Arc::clone(&issued),
        middle,
        ahead,
        system: SystemClock::new(),
    };
    let clocks = [-700, 0, 900].map(clock);
    let services: Vec<_> = clocks
        .iter()
        .map(|it| server(fixture.connect(), it))
        .collect();
    let tag = NewSerialTag::new("orders", pattern.clone(), Some(case.zone)).expect("a tag");
    let tag = tag.step(STEP / 2).expect("a step");
    assert_eq!(
        services[0].create(&tag).expect("the store answers"),
        Created::New
    );

    let all: Vec<Vec<Vec<Got>>> = std::thread::scope(|scope| {
        let servers = services.iter().zip(&clocks);
        let servers = servers.map(|(service, clock)| {
            (0..THREADS)
                .map(|_| scope.spawn(move || thread(service, clock)))
                .collect::<Vec<_>>()
        });
        let servers: Vec<_> = servers.collect();
        let joined = servers.into_iter().map(|threads| {
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        joined.collect()
    });

    let highest = check(case, &pattern, &all);

    // The servers are killed and another one starts: it continues above, and the numbers that the
    // old ones still had are a gap.
    services.into_iter().for_each(std::mem::forget);
    let next = server(fixture.connect(), &clocks[1]);
    let serial = next
        .tag("orders")
        .expect("the tag")
        .next()
        .expect("a serial");
    let gap = serial.counter - highest;
    assert!(
        (1..=AT_HAND + 1).contains(&gap),
        "{name}: {gap} after {highest}"
    );
}

/// Checks that each period has each counter once, and that the date of a serial is in its period.
/// Returns the highest counter of the last period.
pub(crate) fn check(case: &Case, pattern: &Pattern, all: &[Vec<Vec<Got>>]) -> u64 {
    let name = format!("{} in {}, {}", case.pattern, case.zone, case.middle);
    let mut periods: BTreeMap<String, BTreeMap<u64, usize>> = BTreeMap::new();
    let mut texts = BTreeSet::new();
    for (server, threads) in all.iter().enumerate() {
        for got in threads {
            let mut last = None;
            for Got {
                serial,
                earliest,
                latest,
            } in got
            {
                assert!(texts.insert(&serial.text), "{name}: {} twice", serial.text);
                let parsed = pattern.parse(&serial.text).expect("it can be read back");
                assert_eq!(parsed.counter, serial.counter);
                let period = parsed.period.expect("the counter restarts");
                let date = parsed.date.expect("the pattern has a date");
                assert!(date.starts_with(&period), "{name}: {date} in {period}");
                let place = Some((period.clone(), serial.counter));
                assert!(last < place, "{name}: {place:?} after {last:?}");
                last = place;
                let twin = periods
                    .entry(period.clone())
                    .or_default()
                    .insert(serial.counter, server);
                assert_eq!(twin, None, "{name}: {} of {period} twice", serial.counter);
                let (is_last, begins) = (case.periods.ends_with(&[&period]), case.begins * 1000);
                let said = format!("{name}: {} at {earliest} to {latest}", serial.text);
                assert!(is_last || earliest.0 < begins, "{said}: of a past period");
                assert!(
                    !is_last || latest.0 + APART >= begins,
                    "{said}: of a future period"
                );
            }
        }
    }
    let seen: Vec<_> = periods.keys().map(String::as_str).collect();
    assert_eq!(seen, case.periods, "{name}");

    // The only gaps are numbers that servers still had at the end of a period, or at the end.
    for (period, counters) in &periods {
        let ends = (0..SERVERS).map(|server| {
            counters
                .iter()
                .filter(|it| *it.1 == server)
                .map(|it| *it.0)
                .max()
                .unwrap_or(0)
        });
        let first_end = ends.min().expect("three servers");
        let last = *counters.keys().last().expect("a counter");
        let missing: Vec<_> = (1..last).filter(|n| !counters.contains_key(n)).collect();
        assert!(
            missing.iter().all(|n| *n > first_end),
            "{name}, {period}: without {missing:?}"
        );
        assert!(
            missing.len() as u64 <= AT_HAND,
            "{name}, {period}: {} lost",
            missing.len()
        );
    }
    let issued: usize = periods.values().map(BTreeMap::len).sum();
    assert!(issued as u64 >= TOTAL);

    let highest = periods
        .values()
        .next_back()
        .and_then(|it| it.keys().last())
        .copied();
    highest.expect("a counter")
}

/// Ends of days, weeks, months, quarters and years, a leap day, and clock changes in three zones.
pub(crate) const CASES: [Case; 11] = [
    Case {
        zone: "Asia/Shanghai",
        reset: Reset::Day,
        pattern: "INV-{date:yyMMdd}-{n:6}{check:damm}",
        middle: 1_709_136_000, // 2024-02-29T00:00 there, a leap day
        begins: 1_709_136_000,
        periods: &["2024-02-28", "2024-02-29"],
    },
    Case {
        zone: "Asia/Shanghai",
        reset: Reset::Day,
        pattern: "{date:yyyyDDD}{n:5:crockford}{check:crockford:all}",
        middle: 1_709_222_400, // 2024-03-01T00:00
        begins: 1_709_222_400,
        periods: &["2024-02-29", "2024-03-01"],
    },
    Case {
        zone: "Asia/Shanghai",
        reset: Reset::Month,
        pattern: "{date:yyyy-MM}/{n:6}",
        middle: 1_709_222_400,
        begins: 1_709_222_400,
        periods: &["2024-02", "2024-03"],
    },
    Case {
        zone: "Asia/Shanghai",
        reset: Reset::Quarter,
        pattern: "{date:yy}Q{q}-{n:6}",
        middle: 1_711_900_800, // 2024-04-01T00:00
        begins: 1_711_900_800,
        periods: &["2024-Q1", "2024-Q2"],
    },
    Case {
        zone: "Europe/Berlin",
        reset: Reset::Week,
        pattern: "{date:YYYY}W{ww}-{n:6}",
        middle: 1_735_513_200, // 2024-12-30T00:00, a Monday in the first week of 2025
        begins: 1_735_513_200,
        periods: &["2024-W52", "2025-W01"],
    },
    Case {
        zone: "UTC",
        reset: Reset::Year,
        pattern: "{date:yyMMdd}{n:8}{check:mod97}",
        middle: 1_735_689_600, // 2025-01-01T00:00:00Z
        begins: 1_735_689_600,
        periods: &["2024", "2025"],
    },
    Case {
        zone: "Europe/Berlin",
        reset: Reset::Day,
        pattern: "{date:yyMMddHH}-{n:6}",
        middle: 1_743_296_400, // 2025-03-30T02:00 becomes 03:00
        begins: 1_743_289_200,
        periods: &["2025-03-30"],
    },
    Case {
        zone: "Europe/Berlin",
        reset: Reset::Day,
        pattern: "{date:yyMMddHH}-{n:6}",
        middle: 1_761_440_400, // 2025-10-26T03:00 becomes 02:00
        begins: 1_761_429_600,
        periods: &["2025-10-26"],
    },
    Case {
        zone: "America/Sao_Paulo",
        reset: Reset::Day,
        pattern: "{date:yyMMdd}{n:6}",
        middle: 1_541_300_400, // 2018-11-04T00:00 becomes 01:00
        begins: 1_541_300_400,
        periods: &["2018-11-03", "2018-11-04"],
    },
    Case {
        zone: "America/St_Johns",
        reset: Reset::Day,
        pattern: "{date:yyMMdd}{n:6}",
        middle: 1_289_097_030, // 30 s later 2010-11-07T00:01 becomes 2010-11-06T23:01
        begins: 1_289_097_000,
        periods: &["2010-11-06", "2010-11-07"],
    },
    Case {
        zone: "Africa/Cairo",
        reset: Reset::Month,
        pattern: "{date:yyyyMM}{n:6}",
        middle: 1_746_046_800, // 2025-05-01T00:00, a week after the clocks were set
        begins: 1_746_046_800,
        periods: &["2025-04", "2025-05"],
    },
];

/// Every case, each in a fresh store.
pub(crate) fn run_all(backend: &impl Backend) {
    for case in &CASES {
        run(&*backend.fresh(), case);
    }
}

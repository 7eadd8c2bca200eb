//! Serials of one process on a scripted clock: dates, counters, and refusals.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{ErrorKind, IdError, ShuffleKey, UnixMillis};
use vesta_numbers::Created;
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_service::BuildError;
use vesta_service::lease::KvStore;
use vesta_service::options::Drive;
use vesta_service::testing::{Answer, Intercept, ManualClock, MemoryStore, Request};

/// 2026-11-22T12:00 in Shanghai.
const NOON: UnixMillis = UnixMillis(1_795_320_000_000);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

struct World {
    clock: ManualClock,
    serials: SerialService,
}

fn at_noon(store: Arc<dyn KvStore>) -> World {
    with_key(store, None)
}

fn with_key(store: Arc<dyn KvStore>, key: Option<[u8; 32]>) -> World {
    let clock = ManualClock::at(NOON);
    let mut builder = SerialService::builder(store);
    if let Some(key) = key {
        builder = builder.key("coupons", ShuffleKey::new(&key));
    }
    let serials = builder
        .segments(|it| it.clock(Arc::new(clock.clone())).drive(Drive::ByHand))
        .build()
        .expect("a service");
    World { clock, serials }
}

impl World {
    fn create(&self, tag: &str, pattern: &str, reset: Reset) -> bool {
        self.created(tag, pattern, reset) == Created::New
    }

    fn created(&self, tag: &str, pattern: &str, reset: Reset) -> Created {
        let pattern = Pattern::new(pattern, reset).expect("a pattern");
        let zone = pattern.has_date().then_some("Asia/Shanghai");
        let tag = NewSerialTag::new(tag, pattern, zone).expect("a tag");
        self.serials.create(&tag).expect("the store answers")
    }

    fn next(&self, tag: &str) -> String {
        self.serials
            .tag(tag)
            .expect("the tag")
            .next()
            .expect("a serial")
            .text
    }

    fn refused(&self, tag: &str) -> IdError {
        self.serials
            .tag(tag)
            .and_then(|tag| tag.next())
            .expect_err("refused")
    }
}

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new())
}

#[test]
fn a_counter_restarts_daily_monthly_yearly_or_never() {
    let world = at_noon(store());
    for (tag, pattern, reset) in [
        ("days", "{date:yyMMdd}-{n:4}", Reset::Day),
        ("months", "{date:yyMM}-{n:4}", Reset::Month),
        ("years", "{date:yy}-{n:4}", Reset::Year),
        ("all", "{date:yyMMdd}-{n:4}", Reset::Never),
    ] {
        assert!(world.create(tag, pattern, reset));
    }
    let all = || ["days", "months", "years", "all"].map(|tag| world.next(tag));
    assert_eq!(
        all(),
        ["261122-0001", "2611-0001", "26-0001", "261122-0001"]
    );
    assert_eq!(
        all(),
        ["261122-0002", "2611-0002", "26-0002", "261122-0002"]
    );
    world.clock.advance(12 * HOUR); // midnight
    assert_eq!(
        all(),
        ["261123-0001", "2611-0003", "26-0003", "261123-0003"]
    );
    world.clock.advance(8 * DAY); // 2026-12-01
    assert_eq!(
        all(),
        ["261201-0001", "2612-0001", "26-0004", "261201-0004"]
    );
    world.clock.advance(31 * DAY); // 2027-01-01
    assert_eq!(
        all(),
        ["270101-0001", "2701-0001", "27-0001", "270101-0005"]
    );
}

#[test]
fn a_counter_restarts_weekly_quarterly_or_with_the_fiscal_year() {
    let world = at_noon(store()); // a Sunday
    let fiscal = "year:12-01".parse().expect("a fiscal year");
    for (tag, pattern, reset) in [
        ("weeks", "{date:YY}W{ww}-{n:2}", Reset::Week),
        ("quarters", "{date:yy}Q{q}-{n:2}", Reset::Quarter),
        ("fiscal", "{fy:yy-yy}-{n:2}", fiscal),
    ] {
        assert!(world.create(tag, pattern, reset));
    }
    let all = || ["weeks", "quarters", "fiscal"].map(|tag| world.next(tag));
    assert_eq!(all(), ["26W47-01", "26Q4-01", "25-26-01"]);
    world.clock.advance(12 * HOUR); // Monday
    assert_eq!(all(), ["26W48-01", "26Q4-02", "25-26-02"]);
    world.clock.advance(8 * DAY); // 2026-12-01
    assert_eq!(all(), ["26W49-01", "26Q4-03", "26-27-01"]);
    world.clock.advance(31 * DAY); // 2027-01-01, in the last week of 2026
    assert_eq!(all(), ["26W53-01", "27Q1-01", "26-27-02"]);
}

#[test]
fn an_ended_period_is_not_continued_when_the_clock_goes_back() {
    let store = store();
    let world = at_noon(store.clone());
    world.create("days", "{date:yyMMdd}-{n:4}", Reset::Day);
    assert_eq!(world.next("days"), "261122-0001");
    world.clock.advance(12 * HOUR);
    assert_eq!(world.next("days"), "261123-0001");
    world.clock.set_wall(NOON);
    assert_eq!(world.next("days"), "261123-0002");
    // Another process does not continue it either, whether its clock is behind or it only starts now.
    let other = at_noon(store);
    let serial = other.next("days");
    assert!(serial.starts_with("261123-"), "{serial}");
    world.clock.set_wall(UnixMillis(NOON.0 + 36 * 3_600_000));
    assert_eq!(world.next("days"), "261124-0001");
}

#[test]
fn batches_are_ordered_and_each_serial_belongs_to_one_day() {
    let world = at_noon(store());
    world.create("days", "{date:yyMMdd}-{n:4}", Reset::Day);
    let tag = world.serials.tag("days").expect("the tag");
    assert_eq!(tag.next_many(0).expect("none").len(), 0);
    let serials = tag.next_many(250).expect("serials");
    let expected = (1..=250).map(|n| format!("261122-{n:04}"));
    assert!(serials.iter().map(|it| it.text.clone()).eq(expected));
    assert_eq!(tag.parse("261122-0250").expect("a serial").counter, 250);
}

#[test]
fn a_used_up_counter_names_the_next_period() {
    let store = store();
    let world = at_noon(store.clone());
    world.create("few", "{date:yyMMdd}{n:1}", Reset::Day);
    let nine: Vec<_> = (0..9).map(|_| world.next("few")).collect();
    assert_eq!(nine.last().map(String::as_str), Some("2611229"));
    let said = "tag `few` has no more serials until the next day: its counter reached 9, the \
                maximum of {date:yyMMdd}{n:1}";
    for _ in 0..2 {
        let error = world.refused("few");
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ErrorKind::Unavailable, None)
        );
        assert_eq!(error.to_string(), said);
    }
    // So does a process that never had a counter.
    let other = at_noon(store);
    assert_eq!(other.refused("few").to_string(), said);
    for world in [&world, &other] {
        world.clock.advance(12 * HOUR);
        assert!(world.next("few").starts_with("261123"));
    }
    world.create("grows", "{date:yyMMdd}{n:1+}", Reset::Day);
    let ten: Vec<_> = (0..10).map(|_| world.next("grows")).collect();
    assert_eq!(ten.last().map(String::as_str), Some("26112310"));
}

#[test]
fn coupons_need_their_key() {
    let store = store();
    let pattern = Pattern::new("C{shuffle:8}", Reset::Never).expect("a pattern");
    let tag = NewSerialTag::new("coupons", pattern, None).expect("a tag");
    let mut key = [0; 32];
    key.iter_mut()
        .zip(0..)
        .for_each(|(byte, value)| *byte = value);
    let world = with_key(store.clone(), Some(key));
    let BuildError::Setting(error) = world.serials.create(&tag).expect_err("no key") else {
        panic!("expected a setting error");
    };
    assert_eq!(
        error.to_string(),
        "key: the pattern shuffles: a key is needed"
    );
    let tag = tag
        .shuffled_with(&ShuffleKey::new(&key))
        .expect("it shuffles");
    assert_eq!(world.serials.create(&tag).expect("created"), Created::New);
    let coupons = world.serials.tag("coupons").expect("the tag");
    let serials = coupons.next_many(3).expect("coupons");
    let texts: Vec<_> = serials
        .iter()
        .map(|it| (it.text.as_str(), it.counter))
        .collect();
    assert_eq!(
        texts,
        [("C48066486", 1), ("C32683105", 2), ("C29330371", 3)]
    );
    assert_eq!(coupons.parse("C29330371").expect("a coupon").counter, 3);

    let (wanted, given) = (
        ShuffleKey::new(&key).fingerprint(),
        ShuffleKey::new(&[7; 32]).fingerprint(),
    );
    for (key, but) in [
        (None, "no key was given".to_owned()),
        (Some([7; 32]), format!("was given {given}")),
    ] {
        let other = with_key(store.clone(), key);
        let error = other.refused("coupons");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let said =
            format!("serial tag `coupons` needs the key with fingerprint {wanted}, but {but}");
        assert_eq!(error.to_string(), said);
        assert_eq!(
            other.serials.status()[0].key_trouble.as_deref(),
            Some(said.as_str())
        );
    }
}

#[test]
fn a_tag_is_created_once_and_stays_as_it_is() {
    let store = store();
    let world = at_noon(store.clone());
    for (pattern, outcome) in [
        ("{date:yyMMdd}-{n:4}", Created::New),
        ("{date:yyMMdd}-{n:4}", Created::Same),
        ("X{date:yyMMdd}-{n:4}", Created::Another),
    ] {
        assert_eq!(
            world.created("days", pattern, Reset::Day),
            outcome,
            "{pattern}"
        );
    }
    assert_eq!(world.next("days"), "261122-0001");
    // A tag that was not completed is completed by the same definition.
    store.delete("serial/counters", "days");
    assert!(world.create("days", "{date:yyMMdd}-{n:4}", Reset::Day));
    let error = world.refused("nights");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::NotFound,
            "serial tag `nights` does not exist".to_owned()
        )
    );
}

#[test]
fn invalid_tags_are_refused_before_anything_is_stored() {
    let pattern = |text| Pattern::new(text, Reset::Never).expect("a pattern");
    for (tag, text, zone, said) in [
        ("", "{n:6}", None, "tag"),
        (
            "a",
            "{date:yy}{n:6}",
            None,
            "zone: the pattern has a date: name its time zone, such as Asia/Shanghai",
        ),
        (
            "a\u{202e}",
            "{n:6}",
            None,
            "tag: it must not begin or end with white space or have control",
        ),
        (
            "a",
            "A-\u{202e}{n:6}",
            None,
            "pattern: it must not have characters that change the direction",
        ),
        (
            "a",
            "\u{2067}{n:6}\u{2069}",
            None,
            "pattern: it must not have characters that change",
        ),
        (
            "a",
            "{n:6}",
            Some("UTC"),
            "zone: the pattern has no date, so it needs no time zone",
        ),
        (
            "a",
            "{date:yy}{n:6}",
            Some("Mars/Base"),
            "zone: `Mars/Base` is not a time zone",
        ),
    ] {
        let error = NewSerialTag::new(tag, pattern(text), zone)
            .expect_err(said)
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    let tag = || NewSerialTag::new("a", pattern("{n:2}"), None).expect("a tag");
    assert!(tag().step(0).is_err() && tag().step(100).is_err() && tag().step(99).is_ok());
    assert!(tag().starting_at(100).is_err() && tag().starting_at(99).is_ok());
    assert!(tag().described_as("x".repeat(257)).is_err());
    assert!(tag().shuffled_with(&ShuffleKey::new(&[0; 32])).is_err());
}

#[test]
fn a_tag_continues_where_another_system_stopped() {
    let world = at_noon(store());
    let pattern = Pattern::new("{date:yyMMdd}-{n:4}", Reset::Day).expect("a pattern");
    let tag = NewSerialTag::new("days", pattern, Some("Asia/Shanghai")).expect("a tag");
    let tag = tag
        .starting_at(428)
        .and_then(|tag| tag.described_as("the invoices"))
        .expect("a tag");
    assert_eq!(
        world.serials.create(&tag).expect("the store answers"),
        Created::New
    );
    assert_eq!(world.next("days"), "261122-0428");
    let status = &world.serials.status()[0];
    assert_eq!(
        (status.period.as_deref(), status.next, status.last),
        (Some("2026-11-22"), 429, 9999)
    );
    assert_eq!(
        (status.reset.as_str(), status.zone.as_deref()),
        ("day", Some("Asia/Shanghai"))
    );
    assert_eq!(status.segment.description.as_deref(), Some("the invoices"));
    world.clock.advance(12 * HOUR);
    assert_eq!(world.next("days"), "261123-0001");
}

#[test]
fn no_period_begins_while_the_clock_is_far_ahead_of_the_stores() {
    let store = Intercept::new(store(), |request, store| match request {
        Request::Now => Ok(Answer::Now(Some(NOON))),
        _ => request.send(store),
    });
    let world = at_noon(Arc::new(store));
    world.create("hours", "{date:yyMMddHH}-{n:4}", Reset::Day);
    assert_eq!(world.next("hours"), "26112212-0001");
    world.clock.set_wall(UnixMillis(NOON.0 + 365 * 86_400_000));
    let IdError::Unavailable {
        source: Some(error),
        ..
    } = world.refused("hours")
    else {
        panic!("expected a store error");
    };
    let error = error.to_string();
    let said =
        "no period begins while the clock is ahead; correct it: this host's clock shows 2027-11-22";
    assert!(error.starts_with(said), "{error}");
    // A new tag is refused too.
    let pattern = Pattern::new("{date:yyyy}{n:4}", Reset::Year).expect("a pattern");
    let tag = NewSerialTag::new("years", pattern, Some("Asia/Shanghai")).expect("a tag");
    let refused = world.serials.create(&tag).expect_err("a year ahead");
    assert!(
        std::error::Error::source(&refused).is_some_and(|why| why.to_string().starts_with(said))
    );
    world.clock.set_wall(UnixMillis(NOON.0 + 2 * 3_600_000));
    world.clock.advance(Duration::from_secs(5)); // a pause after the failure
    let serial = world.next("hours");
    assert!(
        serial.starts_with("26112214-"),
        "the day has begun already: {serial}"
    );
}

//! Quality of guesses, measured on IDs published together with the time at which they were made.

use std::ops::RangeInclusive;

use proptest::prelude::*;
use vesta_explain::layouts;
use vesta_explain::{Form, Guesses, Written, guess, read};
use vesta_intf::{IdMeta, UnixMillis};

/// 2026-11-22T00:00:00Z.
const NOW: UnixMillis = UnixMillis(1_795_305_600_000);
const DOCUMENT: &str = include_str!("../../../docs/use/other-layouts.md");
const DAY: u64 = 86_400_000;
const MONTH: u64 = 2_629_746_000;

/// Layout, published ID, published time.
const PUBLISHED: [(&str, &str, &str); 42] = [
    // The Java Vesta's documentation of its REST interface.
    ("max-peak", "2407837855670862845", "2018-01-04T02:08:23"),
    // Twitter: posts with their `created_at`; Wikipedia, "Snowflake ID"; examples of twitter-snowflake-to-date
    // (npm), Twitter::ID (CPAN) and snowflake-id (RubyGems).
    (
        "snowflake",
        "1098230906194546688",
        "2019-02-20T14:40:26.837",
    ),
    (
        "snowflake",
        "1541815603606036480",
        "2022-06-28T16:07:40.105",
    ),
    (
        "snowflake",
        "1233161576649121792",
        "2020-02-27T22:46:45.564",
    ),
    ("snowflake", "1445078208190291973", "2021-10-04T17:27:47"),
    ("snowflake", "474971393852182528", "2014-06-06T17:49:39.493"),
    ("snowflake", "321239371296694272", "2013-04-08T12:33:29.113"),
    ("snowflake", "653425648577286144", "2015-10-12T04:23:09"),
    ("snowflake", "242613977966850048", "2012-09-03T13:24:14"),
    // Discord: its API reference, messages with their `timestamp`, twilight-util, discordance (Go).
    ("discord", "175928847299117063", "2016-04-30T11:18:25.796"),
    ("discord", "756403198394237027", "2020-09-18T06:36:15.789"),
    ("discord", "105484726235607040", "2015-10-19T01:58:38"),
    ("discord", "943865945699532811", "2022-02-17T13:46:17"),
    ("discord", "949105538602528798", "2022-03-04T00:46:33.931"),
    // Instagram: media with their `taken_at` or `date`; Stack Overflow, question 63684126.
    (
        "instagram",
        "3870172288071432645",
        "2026-04-07T16:48:30.621",
    ),
    ("instagram", "2384288897814875714", "2020-08-26T13:43:27"),
    ("instagram", "2383568809444681765", "2020-08-25T13:52:46"),
    ("instagram", "1661696503407488208", "2017-12-03T14:01:21"),
    // LinkedIn: unfurl's example; posts with their `datePublished`, a few milliseconds before.
    ("linkedin", "6685980502161199104", "2020-07-06T18:59:31.226"),
    ("linkedin", "7075043149462556672", "2023-06-15T09:35:34"),
    ("linkedin", "7074702026084884480", "2023-06-14T11:00:04"),
    // ClickHouse's documentation of generateSnowflakeID, CockroachDB's of unique_rowid.
    ("clickhouse", "7199081390080409600", "2024-05-22T16:19:15"),
    ("cockroach", "0x7e39c56700c0001", "2020-06-30T21:47:17"),
    // TSID Creator's README; TikTok: unfurl's example.
    ("tsid", "38352658567418867", "2020-04-15T19:59:46"),
    ("tiktok", "6854717870488702213", "2020-07-29T02:06:13"),
    // Weibo: posts with their `created_at`.
    ("weibo", "4091509081366576", "2017-03-31T15:47:24"),
    ("weibo", "4199674862603248", "2018-01-24T03:19:36"),
    ("weibo", "4607741009594608", "2021-02-23T04:28:47"),
    ("weibo", "5232630992732508", "2025-11-13T13:18:29"),
    // Bluesky: @atcute/tid; posts of its documentation, of bskyr and of an article about bskyrb.
    ("bluesky", "3l25zusnsfctk", "2024-08-20T16:31:35.793"),
    ("bluesky", "3k4duaz5vfs2b", "2023-08-07T05:31:12"),
    ("bluesky", "3kf2577exva2x", "2023-11-25T21:31:22"),
    ("bluesky", "3jyy7fmciva2w", "2023-06-25T10:03:06"),
    // From foreign.rs, which names their sources.
    ("sonyflake", "257532141091473317", "2019-07-13T15:11:57.880"),
    ("sonyflake", "133591991580950539", "2017-03-10T14:37:12.030"),
    ("mastodon", "103270115826048975", "2019-12-08T03:48:33"),
    ("tso", "395181938313123110", "2017-10-08T21:50:59.507"),
    ("uid-boot", "450795408770", "2019-02-20T06:55:39"),
    // Well-known tweets that were not used when the priors were set: "Four more years", the selfie of the
    // Oscars, the chicken nuggets, "the bird is freed".
    ("snowflake", "266031293945503744", "2012-11-07"),
    ("snowflake", "440322224407314432", "2014-03-03"),
    ("snowflake", "849813577770778624", "2017-04-06"),
    ("snowflake", "1585841080431321088", "2022-10-28"),
];

/// IDs and other numbers of systems whose layout is not listed here.
const UNLISTED: [(&str, u64); 22] = [
    (
        "uid-generator, README: widths of its own",
        180_363_646_902_239_241,
    ),
    (
        "snowflake-id (npm), README: an epoch of its own",
        285_124_269_753_503_744,
    ),
    (
        "snowflakeid-producer (npm), README: an epoch of its own",
        7_775_828_467_560_448,
    ),
    (
        "photowey/snowflake, README: an epoch of its own",
        122_066_891_375_251_465,
    ),
    ("Steam: an account", 76_561_197_960_287_930),
    ("Meta's Graph API: a hashtag", 17_841_562_294_087_503),
    ("Twitter: a post of before snowflakes", 20),
    ("an auto-increment", 12_345),
    ("an auto-increment", 4_294_967_296),
    ("Unix seconds", 1_700_000_000),
    ("Unix milliseconds", 1_700_000_000_000),
    ("Unix microseconds", 1_700_000_000_000_000),
    ("Unix nanoseconds", 1_700_000_000_000_000_000),
    ("System.nanoTime", 35_267_190_573_400),
    ("a day and a time", 20_240_522_161_915_859),
    ("Stripe's test card", 4_242_424_242_424_242),
    ("an IMEI", 490_154_203_237_518),
    ("an EAN", 4_006_381_333_931),
    // SplitMix64 with seed 0, and `new Random(42).nextLong()` of Java without its sign.
    ("random", 16_294_208_416_658_607_535),
    ("random", 7_960_286_522_194_355_700),
    ("random", 487_617_019_471_545_679),
    ("random", 4_197_809_178_879_625_975),
];

fn number(text: &str) -> u64 {
    match read(text) {
        Ok(Written::Ids(ids)) => ids[0].id,
        other => panic!("{text}: {other:?}"),
    }
}

/// True if this layout comes first, or one with the same bits and the same fields.
fn is_first(found: &Guesses, name: &str) -> bool {
    let right = layouts::named(name).unwrap();
    found
        .candidates
        .first()
        .is_some_and(|first| first.layout.spec() == right.spec())
}

fn around(moment: UnixMillis, length: u64) -> RangeInclusive<UnixMillis> {
    UnixMillis(moment.0 - length / 2)..=UnixMillis(moment.0 + length / 2)
}

#[test]
fn published_ids_have_the_time_that_was_published() {
    for (name, text, time) in PUBLISHED {
        let layout = layouts::named(name).unwrap();
        let moment = layout
            .moment_of(layout.unpack(number(text)).unwrap().time)
            .unwrap();
        assert!(
            moment.to_string().starts_with(time),
            "{name} {text}: {moment}"
        );
    }
}

#[test]
fn the_right_layout_mostly_ranks_first_and_with_the_month_nearly_always() {
    let (mut alone, mut with_month) = (0, 0);
    for (name, text, _) in PUBLISHED {
        let id = number(text);
        let found = guess(id, NOW, None);
        let place = found
            .candidates
            .iter()
            .position(|it| it.layout.name() == name);
        let right = &found.candidates[place.unwrap_or_else(|| panic!("{name} {text} is missing"))];
        let month = guess(id, NOW, Some(around(right.moment, MONTH)));
        let said = |found: &Guesses| {
            let shown = found.candidates.iter().take(3);
            let shown = shown.map(|it| format!("{} {:.2}", it.layout.name(), it.probability));
            format!(
                "{} other {:.2}",
                shown.collect::<Vec<_>>().join(" "),
                found.other
            )
        };
        println!("{name} {text}: {} | {}", said(&found), said(&month));
        alone += usize::from(is_first(&found, name));
        with_month += usize::from(is_first(&month, name));
    }
    let percent = |count: usize| 100 * count / PUBLISHED.len();
    println!(
        "first {} %, with the month {} %",
        percent(alone),
        percent(with_month)
    );
    assert!(
        percent(alone) >= 60 && percent(with_month) >= 95,
        "{alone} {with_month}"
    );
    let says = format!("Of {} IDs of 15 systems", PUBLISHED.len());
    assert!(DOCUMENT.contains(&says) && DOCUMENT.contains(&format!("came first for {alone}, and")));
}

#[test]
fn tweets_are_not_called_discord_or_cosid() {
    for (_, text, _) in PUBLISHED.iter().filter(|it| it.0 == "snowflake") {
        let found = guess(number(text), NOW, None);
        let first = found.candidates[0].layout;
        assert!(
            ![layouts::DISCORD, layouts::COSID].contains(&first),
            "{text}: {first}"
        );
    }
}

#[test]
fn an_id_of_an_unlisted_system_matches_no_listed_one() {
    for (system, id) in UNLISTED {
        let found = guess(id, NOW, None);
        let first = found
            .candidates
            .first()
            .map(|it| (it.layout.name(), it.probability));
        println!("{system} {id}: {first:?}, other {:.2}", found.other);
        assert!(
            first.is_none_or(|(_, probability)| probability <= 0.6),
            "{system} {id}"
        );
    }
}

#[test]
fn a_layout_below_5_percent_is_unknown() {
    let likeliest = |raw| guess(raw, NOW, None).likeliest().map(|it| it.layout);
    // The first candidate has 3.6 %, 0.7 % and 5.3 %.
    assert_eq!(likeliest(12_345_678_901_234_567_890), None);
    assert_eq!(likeliest(7_960_286_522_194_355_700), None);
    assert_eq!(
        likeliest(7_199_081_390_080_409_600),
        Some(layouts::CLICKHOUSE)
    );
}

#[test]
fn only_an_agreeing_time_makes_a_guess_nearly_certain() {
    let id = 175_928_847_299_117_063;
    let moment = UnixMillis(1_462_015_105_796);
    let shares = [None, Some(12 * MONTH), Some(MONTH), Some(DAY)].map(|length| {
        let found = guess(id, NOW, length.map(|length| around(moment, length)));
        assert_eq!(found.candidates[0].layout, layouts::DISCORD, "{length:?}");
        found.candidates[0].probability
    });
    assert!(
        shares.is_sorted() && shares[0] < 0.6 && shares[2] > 0.9,
        "{shares:?}"
    );
    assert!(shares[2] < 0.995 && shares[3] >= 0.995, "{shares:?}");

    let found = guess(id, NOW, Some(around(moment, DAY)));
    let first = &found.candidates[0];
    assert_eq!(first.moment.to_string(), "2016-04-30T11:18:25.796Z");
    assert_eq!((first.id.machine, first.id.seq), (32, 7));
}

#[test]
fn the_documented_example_matches_the_guess() {
    let found = guess(175_928_847_299_117_063, NOW, None);
    let percent = |probability: f64| (probability * 100.0).round();
    let shown = found
        .candidates
        .iter()
        .take(5)
        .filter(|it| percent(it.probability) >= 1.0)
        .map(|it| {
            let day: String = it.moment.to_string().chars().take(10).collect();
            format!("{} {} % {day}", it.layout.name(), percent(it.probability))
        });
    let other = format!("another system {} %\n", percent(found.other));
    let line = shown.chain([other]).collect::<Vec<_>>().join(" · ");
    assert!(DOCUMENT.contains(&line), "{line}");
}

#[test]
fn machine_and_sequence_affect_the_guess() {
    let share = |machine: u64, seq: u64| {
        let found = guess(367_597_485_448 << 22 | machine << 12 | seq, NOW, None);
        let snowflake = found
            .candidates
            .iter()
            .find(|it| it.layout == IdMeta::SNOWFLAKE)
            .unwrap();
        snowflake.probability
    };
    assert!(
        share(378, 0) > 2.0 * share(378, 2_345),
        "{} {}",
        share(378, 0),
        share(378, 2_345)
    );
}

#[test]
fn a_tid_is_read_as_text_and_guessed_as_bluesky() {
    let Ok(Written::Ids(ids)) = read("3kf2577exva2x") else {
        panic!("it is an ID")
    };
    let tid = ids.iter().find(|it| it.form == Form::Tid);
    let id = tid.expect("one of its readings").id;
    assert_eq!(guess(id, NOW, None).candidates[0].layout, layouts::BLUESKY);
}

proptest! {
    #[test]
    fn no_layout_is_likelier_than_three_in_five_by_the_bits_alone(raw: u64, bits in 0u32..64) {
        let found = guess(raw >> bits, NOW, None);
        prop_assert!(found.candidates.iter().all(|it| it.probability <= 0.6 && it.moment.0 <= NOW.0 + DAY));
        let sorted = found.candidates.is_sorted_by(|a, b| a.probability >= b.probability);
        prop_assert!(sorted);
    }

    #[test]
    fn shares_add_up_to_1(raw: u64, from in 0..2 * NOW.0, length in 0..12 * MONTH, any: bool) {
        let made = UnixMillis(from)..=UnixMillis(from + length);
        let found = guess(raw, NOW, (!any).then(|| made.clone()));
        let sum: f64 = found.candidates.iter().map(|it| it.probability).sum();
        prop_assert!((sum + found.other - 1.0).abs() < 1e-9, "{sum} {}", found.other);
        prop_assert!(any || found.candidates.iter().all(|it| made.contains(&it.moment)));
    }
}

//! Quality of guesses: IDs as the systems make them, of ages and machines as people meet them.

use vesta_intf::{Field, Id, IdMeta, UnixMillis, guess};

/// 2026-11-22T00:00:00Z.
const NOW: UnixMillis = UnixMillis(1_795_305_600_000);
const MONTH: u64 = 2_629_746_000;

#[test]
fn the_documented_example_is_ranked_as_documented() {
    let found = guess(175_928_847_299_117_063, NOW, None);
    let percent = |probability: f64| (probability * 100.0).round();
    let shown = found.iter().filter(|it| percent(it.probability) >= 2.0).map(|it| {
        let day: String = it.moment.to_string().chars().take(10).collect();
        format!("{} {} % {day}", it.layout.name(), percent(it.probability))
    });
    // Not uid-boot: its IDs have 54 bits, the upper ones are 0.
    assert_eq!(
        shown.collect::<Vec<_>>().join(" · "),
        "sonyflake 91 % 2017-12-27 · max-peak 3 % 2020-03-11 · cosid 2 % 2021-04-23 · \
         discord 2 % 2016-04-30"
    );
    let sum: f64 = found.iter().map(|it| it.probability).sum();
    assert!((sum - 1.0).abs() < 1e-9);

    let april = UnixMillis(1_459_468_800_000)..=UnixMillis(1_462_060_799_999);
    let found = guess(175_928_847_299_117_063, NOW, Some(april));
    assert_eq!((found[0].layout, found.len()), (IdMeta::DISCORD, 1));
    assert_eq!(found[0].moment.to_string(), "2016-04-30T11:18:25.796Z");
    assert_eq!((found[0].id.machine, found[0].id.seq), (32, 7));
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 11
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// 0 to 1.
    fn part(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1u64 << 40) as f64
    }

    /// Small values as often as large ones, by order of magnitude.
    fn small(&mut self, max: u64) -> u64 {
        (((max as f64 + 1.0).ln() * self.part()).exp() as u64).clamp(1, max + 1) - 1
    }
}

/// An ID of a layout: rather young, from a machine that is small or any, with a sequence number that is
/// nearly always small.
fn made(random: &mut Random, layout: &IdMeta) -> Option<(u64, UnixMillis)> {
    let age = (-random.part().max(1e-9).ln() * 4.0 * 12.0 * MONTH as f64) as u64;
    let moment = UnixMillis(NOW.0.checked_sub(age)?);
    let machine = layout.max(Field::Machine);
    let machine =
        if random.below(2) == 0 { random.small(machine) } else { random.below(machine + 1) };
    let seq = layout.max(Field::Seq);
    let seq = match (layout.name(), random.below(10)) {
        ("mastodon", _) | (_, 0 | 1) => random.below(seq + 1),
        _ => random.small(seq),
    };
    let gen_method = random.below(layout.max(Field::GenMethod).min(2) + 1);
    let time = layout.tick_at(moment).ok()?;
    let id = Id { time, machine, seq, gen_method, ..layout.blank() };
    Some((layout.pack(&id).ok()?, moment))
}

/// Of how many in a hundred the right layout is first, and among the first three.
fn quality(with_month: bool) -> (f64, f64) {
    // As common as the guess takes them to be, by year of their first use.
    let systems = [
        (IdMeta::MAX_PEAK, 12, 2015),
        (IdMeta::MIN_GRANULARITY, 12, 2015),
        (IdMeta::SNOWFLAKE, 6, 2010),
        (IdMeta::DISCORD, 6, 2015),
        (IdMeta::INSTAGRAM, 2, 2011),
        (IdMeta::MASTODON, 4, 2016),
        (IdMeta::SONYFLAKE, 2, 2014),
        (IdMeta::UID, 2, 2016),
        (IdMeta::UID_BOOT, 1, 2019),
        (IdMeta::COSID, 2, 2019),
        (IdMeta::COSID_SECOND, 1, 2019),
        (IdMeta::COSID_JS, 1, 2019),
        (IdMeta::YITTER, 2, 2020),
        (IdMeta::COCKROACH, 1, 2015),
        (IdMeta::SONYFLAKE_2, 2, 2025),
    ];
    let bag: Vec<_> = systems
        .iter()
        .flat_map(|system| vec![system; usize::try_from(system.1).unwrap()])
        .collect();
    let mut random = Random(42);
    let (mut all, mut first, mut three) = (0u32, 0u32, 0u32);
    while all < 20_000 {
        let (layout, _, year) = bag[usize::try_from(random.below(bag.len() as u64)).unwrap()];
        let Some((id, moment)) = made(&mut random, layout) else { continue };
        if moment.to_string()[..4].parse::<i32>().unwrap() < *year {
            continue;
        }
        let month = UnixMillis(moment.0 - MONTH / 2)..=UnixMillis(moment.0 + MONTH / 2);
        let found = guess(id, NOW, with_month.then_some(month));
        let place = found.iter().position(|it| it.layout == *layout).expect("it is among them");
        all += 1;
        first += u32::from(place == 0);
        three += u32::from(place < 3);
    }
    let percent = |count: u32| 100.0 * f64::from(count) / f64::from(all);
    (percent(first), percent(three))
}

#[test]
fn from_the_bits_alone_the_right_layout_is_often_first_and_with_its_month_nearly_always() {
    let (first, three) = quality(false);
    println!("from the bits alone: first {first:.1} %, among three {three:.1} %");
    let (with_month, _) = quality(true);
    println!("with the month: first {with_month:.1} %");
    assert!(first >= 65.0 && three >= 90.0 && with_month >= 98.0, "{first} {three} {with_month}");
}

#[test]
fn what_fits_nothing_has_no_guess() {
    assert!(guess(u64::MAX, NOW, None).iter().all(|it| it.moment <= NOW));
    let past = UnixMillis(1)..=UnixMillis(2);
    assert!(guess(2_407_837_855_670_862_845, NOW, Some(past)).is_empty());
}

//! The prover compared with brute force, and known overlaps.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use vesta_explain::layouts;
use vesta_explain::{IdSet, overlap};
use vesta_intf::{Field, FieldOrder, Id, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

/// A small pseudo-random number generator: the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const FIELDS: [Field; 4] = [Field::GenMethod, Field::Time, Field::Seq, Field::Machine];

/// A set of IDs of a layout of at most eight bits, and the IDs themselves.
fn small(random: &mut Random) -> (IdSet, BTreeSet<u64>) {
    let mut widths = [0u8; 4];
    for _ in 0..8 {
        let index = usize::try_from(random.below(4)).expect("0 to 3");
        widths[index] += 1;
    }
    widths[1] = widths[1].max(1); // every layout has a time
    let orders = [
        FieldOrder::TimeSeqMachine,
        FieldOrder::TimeMachineSeq,
        FieldOrder::MachineTimeSeq,
    ];
    let layout = IdMeta::foreign(LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: widths[0],
        time_bits: widths[1],
        seq_bits: widths[2],
        machine_bits: widths[3],
        order: orders[usize::try_from(random.below(3)).expect("0 to 2")],
        unit: TimeUnit::Second,
        epoch: UnixMillis(0),
    })
    .expect("eight or nine bits");
    let mut set = IdSet::of(&layout);
    let mut ranges = Vec::new();
    for field in FIELDS {
        let low = random.below(layout.max(field) + 1);
        let high = low + random.below(layout.max(field) - low + 1);
        // Given as two ranges whose intersection it is.
        let (before, after) = (random.below(low + 1), layout.max(field) - high);
        set = set.with(field, before..=high).expect("inside the field");
        set = set
            .with(field, low..=high + random.below(after + 1))
            .expect("they meet");
        ranges.push(low..=high);
    }
    let mut ids = BTreeSet::new();
    for gen_method in ranges[0].clone() {
        for time in ranges[1].clone() {
            for seq in ranges[2].clone() {
                for machine in ranges[3].clone() {
                    let id = Id {
                        gen_method,
                        time,
                        seq,
                        machine,
                        ..Id::default()
                    };
                    ids.insert(layout.pack(&id).expect("inside"));
                }
            }
        }
    }
    (set, ids)
}

/// Number of pairs, of ten thousand, on which a prover is wrong.
fn mistakes(prove: impl Fn(&IdSet, &IdSet) -> Option<u64>) -> (usize, usize) {
    let mut random = Random(1);
    let (mut wrong, mut met) = (0, 0);
    for _ in 0..10_000 {
        let ((a, ids_a), (b, ids_b)) = (small(&mut random), small(&mut random));
        let first = ids_a.intersection(&ids_b).next().copied();
        wrong += usize::from(prove(&a, &b) != first);
        met += usize::from(first.is_some());
    }
    (wrong, met)
}

#[test]
fn the_prover_agrees_with_brute_force_on_ten_thousand_pairs() {
    let (wrong, met) = mistakes(overlap);
    assert_eq!(wrong, 0);
    assert!(
        (1000..9000).contains(&met),
        "both answers are common: {met}"
    );
}

/// A prover that compares only the smallest and the largest ID.
#[test]
fn a_prover_that_compares_only_the_ends_is_detected() {
    let by_ends = |a: &IdSet, b: &IdSet| {
        let ends = |set: &IdSet| {
            let mut ids = (0..512).filter(|id| set.contains(*id));
            let first = ids.next();
            first
                .zip(ids.next_back().or(first))
                .expect("no set is empty")
        };
        let ((a, b), (c, d)) = (ends(a), ends(b));
        (a <= d && c <= b).then_some(a.max(c))
    };
    assert!(mistakes(by_ends).0 > 1000);
}

#[test]
fn a_set_contains_the_ids_it_is_built_from() {
    let mut random = Random(7);
    for _ in 0..200 {
        let (set, ids) = small(&mut random);
        assert!((0..512).all(|id| set.contains(id) == ids.contains(&id)));
    }
}

fn at(text: &str) -> UnixMillis {
    // Days since 1970 of the years used in the cases.
    let days = match text {
        "2018-01-01" => 17_532,
        "2020-01-01" => 18_262,
        "2020-06-01" => 18_414,
        "2026-11-22" => 20_779,
        "2027-01-01" => 20_819,
        "2030-01-01" => 21_915,
        "2049-01-09" => 28_863,
        other => panic!("{other}"),
    };
    let moment = UnixMillis(days * 86_400_000);
    assert!(moment.to_string().starts_with(text), "{moment}");
    moment
}

fn ids(layout: IdMeta, from: &str, until: &str, methods: RangeInclusive<u64>) -> IdSet {
    let until = if until.is_empty() {
        layout.end()
    } else {
        at(until)
    };
    let set = IdSet::of(&layout)
        .between(at(from)..=UnixMillis(until.0 - 1))
        .expect("inside");
    if layout.bits(Field::GenMethod) == 0 {
        set
    } else {
        set.with(Field::GenMethod, methods).expect("2 bits")
    }
}

/// The IDs that a central server makes with max-peak today equal numbers that Leaf made in 2022.
#[test]
fn max_peak_and_leaf_overlap_where_expected() {
    const KNOWN: u64 = 1_555_858_156_448_382_976;
    let (leaf, vesta) = (IdMeta::SNOWFLAKE, IdMeta::MAX_PEAK);
    let as_leaf = leaf.unpack(KNOWN).unwrap();
    assert_eq!(
        leaf.moment_of(as_leaf.time).unwrap().to_string(),
        "2022-08-06T10:07:45.601Z"
    );
    let as_vesta = vesta.unpack(KNOWN).unwrap();
    assert_eq!(
        vesta.moment_of(as_vesta.time).unwrap().to_string(),
        "2026-11-22T00:00:00.000Z"
    );
    assert_eq!((as_leaf.machine, as_leaf.seq), (0, 0));
    assert_eq!(
        (as_vesta.gen_method, as_vesta.machine, as_vesta.seq),
        (1, 0, 0)
    );

    let old = ids(leaf, "2018-01-01", "2027-01-01", 0..=0);
    let new = ids(vesta, "2026-11-22", "2049-01-09", 1..=1);
    assert_eq!(overlap(&old, &new), Some(KNOWN), "the first of them");
    assert_eq!(old.reading(KNOWN), Some(as_leaf));
    assert_eq!(new.reading(KNOWN), Some(as_vesta));

    // genMethod 2 meets Leaf's numbers from April 2031 on, and none that exist yet.
    let rest = ids(vesta, "2026-11-22", "2049-01-09", 2..=2);
    assert_eq!(overlap(&old, &rest), None);
    let later = IdSet::of(&leaf)
        .between(at("2018-01-01")..=UnixMillis(leaf.end().0 - 1))
        .unwrap();
    let met = leaf.unpack(overlap(&later, &rest).unwrap()).unwrap();
    assert!(
        leaf.moment_of(met.time)
            .unwrap()
            .to_string()
            .starts_with("2031-04-")
    );

    // genMethod 0 stays below Leaf's numbers until 2030.
    let embedded = ids(vesta, "2026-11-22", "2030-01-01", 0..=0);
    assert_eq!(overlap(&old, &embedded), None);
}

#[test]
fn other_migrations_overlap_or_not_as_expected() {
    let machines = |range| {
        IdSet::of(&IdMeta::SNOWFLAKE)
            .with(Field::Machine, range)
            .unwrap()
    };
    assert_eq!(overlap(&machines(0..=39), &machines(40..=1023)), None);
    let before = ids(IdMeta::SNOWFLAKE, "2018-01-01", "2026-11-22", 0..=0);
    let after = ids(IdMeta::SNOWFLAKE, "2026-11-22", "", 0..=0);
    assert_eq!(overlap(&before, &after), None);

    let later = IdMeta::new(LayoutSpec {
        epoch: UnixMillis(1_704_038_400_000), // 2024-01-01T00:00:00+08:00
        ..*IdMeta::UID.spec()
    })
    .unwrap();
    let uid = |layout: &IdMeta, workers| IdSet::of(layout).with(Field::Machine, workers).unwrap();
    let new = uid(&later, 5001..=4_194_303);
    assert_eq!(overlap(&uid(&IdMeta::UID, 1..=5000), &new), None);
    assert!(overlap(&uid(&IdMeta::UID, 1..=5001), &new).is_some());

    let vesta = ids(IdMeta::MAX_PEAK, "2026-11-22", "2049-01-09", 0..=2);
    assert_eq!(
        overlap(&IdSet::counter(1..=1_000_000_000_000), &vesta),
        None
    );
    assert!(overlap(&IdSet::counter(1..=u64::MAX), &vesta).is_some());

    let cosid = ids(layouts::COSID, "2020-01-01", "2027-01-01", 0..=0);
    let fine = ids(IdMeta::MIN_GRANULARITY, "2026-11-22", "", 0..=2);
    assert_eq!(overlap(&cosid, &fine), None);
}

#[test]
fn two_regions_never_overlap_and_one_overlaps_itself() {
    for layout in [
        IdMeta::MAX_PEAK,
        IdMeta::MIN_GRANULARITY,
        IdMeta::SNOWFLAKE,
        IdMeta::JS_SAFE,
    ] {
        let region = |number| IdSet::of(&layout).region(3, number).unwrap();
        for one in 0..8 {
            for other in 0..8 {
                assert_eq!(
                    overlap(&region(one), &region(other)).is_some(),
                    one == other
                );
                // A service's layout includes its region.
                let own = IdSet::of(&layout.in_region(3, one).unwrap());
                assert_eq!(overlap(&own, &region(other)).is_some(), one == other);
                assert_eq!(own.region(3, other).is_ok(), one == other);
            }
        }
    }
}

#[test]
fn the_regions_of_a_layout_partition_its_machine_ids() {
    for layout in layouts::all() {
        for bits in 0..=layout.bits(Field::Machine).min(6) {
            let regions = (0..1 << bits).map(|it| layout.in_region(bits, it).unwrap().machines());
            let next = regions.fold(0, |next, machines| {
                assert_eq!(*machines.start(), next, "{layout}, {bits} bits");
                machines.end() + 1
            });
            assert_eq!(
                next,
                layout.max(Field::Machine) + 1,
                "{layout}, {bits} bits"
            );
            assert!(layout.in_region(bits, 1 << bits).is_err());
        }
        assert!(
            layout
                .in_region(layout.bits(Field::Machine) + 1, 0)
                .is_err()
        );
    }
    let region = IdMeta::MAX_PEAK.in_region(3, 2).unwrap();
    assert_eq!(region.machines(), 256..=383);
    assert_eq!(
        region.fingerprint(),
        "1/1/2/30/20/10 tsm 1000ms @1420041600000 region 2 of 8"
    );
    assert!(
        region.to_string().ends_with("second, region 2 of 8)"),
        "{region}"
    );
    assert_eq!(IdMeta::MAX_PEAK.in_region(0, 0).unwrap(), IdMeta::MAX_PEAK);
    assert_eq!(
        IdMeta::MAX_PEAK.in_region(10, 1023).unwrap().machines(),
        1023..=1023
    );
}

#[test]
fn ranges_of_one_field_narrow_each_other() {
    let set = || IdSet::of(&IdMeta::MAX_PEAK);
    let machines = |range| set().with(Field::Machine, range).unwrap();
    let common = machines(0..=39).with(Field::Machine, 20..=1023);
    assert_eq!(common.ok(), Some(machines(20..=39)));
    // Region 2 of 8 is 256 to 383.
    assert_eq!(
        machines(300..=1023).region(3, 2).ok(),
        Some(machines(300..=383))
    );
    let error = machines(0..=255)
        .region(3, 2)
        .expect_err("nothing is left")
        .to_string();
    assert_eq!(error, "machine: the given ranges have no value in common");

    // The version is 0 until it is given explicitly.
    let version = |range| set().with(Field::Version, range).unwrap();
    assert!(version(1..=1).contains(1 << 63) && !set().contains(1 << 63));
    assert!(version(0..=0).with(Field::Version, 1..=1).is_err());
    assert!(
        set().with(Field::Type, 1..=1).is_err(),
        "that is the other layout"
    );
}

#[test]
fn an_inconsistent_set_is_refused() {
    let set = || IdSet::of(&IdMeta::MAX_PEAK);
    #[allow(clippy::reversed_empty_ranges, reason = "that is the fault")]
    let backwards = set().with(Field::Machine, 5..=4);
    assert!(backwards.is_err());
    assert!(set().with(Field::Machine, 0..=1024).is_err());
    assert!(
        set().between(UnixMillis(0)..=UnixMillis(1)).is_err(),
        "before the layout begins"
    );
    assert!(IdSet::counter(1..=9).with(Field::Machine, 0..=0).is_err());
    assert!(IdSet::counter(1..=9).region(1, 0).is_err());
    assert_eq!(
        IdSet::counter(5..=9).reading(7),
        None,
        "a plain number has no fields"
    );
    assert!(IdSet::counter(5..=9).contains(9) && !IdSet::counter(5..=9).contains(10));
}

//! The plan of one history, drawn from its seed: nodes, settings, and fault rates.

use std::time::Duration;

use vesta_explain::layouts;
use vesta_intf::{Field, FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::IdMeta;
use vesta_service::clock::ClockKind;
use vesta_service::contract::{SequenceStart, UnixMillis};
use vesta_service::lease::{ClaimOrder, Timing};
use vesta_service::options::{MAX_BORROW_MILLIS, PopulatorKind};
use vesta_testkit::Rng;

use super::planted::Planted;
use super::time::{DAY, HOUR, MILLI, RENEW_EVERY, SECOND};

/// 2023-11-14, inside every layout.
const START: u64 = 1_700_000_000_000;

pub(crate) const NAMESPACES: [&str; 2] = ["default", "eu-1"];

/// The guarantees of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// It keeps acknowledged writes.
    Durable,
    /// It loses the latest changes and reports that it may. Clocks are then right to a second at a start.
    MayForget,
    /// It is wiped, once or more; every host keeps its folder.
    Wiped,
}

/// The source of a node's machine ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A pool from 0 to this number.
    Pool(u64),
    Reserved(u64),
    Fixed(u64),
    Stateless(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) space: usize,
    /// Its state directory; two nodes may share one.
    pub(crate) host: usize,
    pub(crate) source: Source,
    /// The host has a folder for its local record of machine IDs.
    pub(crate) remembers: bool,
    pub(crate) count: usize,
    pub(crate) order: ClaimOrder,
    pub(crate) populator: PopulatorKind,
    pub(crate) start: SequenceStart,
    pub(crate) clock: ClockKind,
    pub(crate) pacing: bool,
    /// Number of future ticks that may be borrowed.
    pub(crate) borrow: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) layout: IdMeta,
    pub(crate) class: Class,
    pub(crate) planted: Option<Planted>,
    pub(crate) start: UnixMillis,
    /// The layout ends within hours.
    pub(crate) ends_soon: bool,
    /// The time between two runs of a keeper, in nanoseconds.
    pub(crate) renew: u64,
    pub(crate) timing: Timing,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) steps: u64,
    /// Faults per hundred steps.
    pub(crate) trouble: u64,
}

/// A layout with so few numbers per tick that they are used up all the time.
fn tiny(unit: TimeUnit, time_bits: u8, seq_bits: u8, epoch: u64, rng: &mut Rng) -> IdMeta {
    use FieldOrder::{TimeMachineSeq, TimeSeqMachine};
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 2,
        time_bits,
        seq_bits,
        machine_bits: 8,
        order: rng.pick(&[TimeMachineSeq, TimeSeqMachine]),
        unit,
        epoch: UnixMillis(epoch),
    })
    .expect("it adds up")
}

/// A tiny layout, and whether it ends soon after the start.
fn tiny_layout(start: UnixMillis, rng: &mut Rng) -> (IdMeta, bool) {
    use TimeUnit::{Millisecond, Second, TenMillis};
    // Most epochs are inside a second.
    let epoch = start.0 - 10_000_000_000 - rng.below(1_000);
    let bits = |rng: &mut Rng, most| u8::try_from(rng.below(most)).expect("few");
    let seq = bits(rng, 5);
    let (unit, time, epoch, ends_soon) = match rng.below(5) {
        0 => (Millisecond, 41, epoch, false),
        1 => (TenMillis, 38, epoch, false),
        2 | 3 => (Second, 30, epoch, false),
        _ => (Second, 8 + bits(rng, 6), start.0 - 1_000, true),
    };
    (tiny(unit, time, seq, epoch, rng), ends_soon)
}

impl Plan {
    pub(crate) fn new(planted: Option<Planted>, rng: &mut Rng) -> Self {
        let start = UnixMillis(START + rng.below(100 * DAY / MILLI));
        let tiny = tiny_layout(start, rng);
        let (layout, ends_soon) = rng.weighed(&[
            (40, (IdMeta::MAX_PEAK, false)),
            (20, (IdMeta::MIN_GRANULARITY, false)),
            (20, (IdMeta::SNOWFLAKE, false)),
            (15, (IdMeta::UID, false)),
            (5, (IdMeta::JS_SAFE, false)),
            (5, (layouts::SONYFLAKE, false)),
            (15, tiny),
        ]);
        let mut class = rng.weighed(&[
            (70, Class::Durable),
            (15, Class::MayForget),
            (15, Class::Wiped),
        ]);
        if let Some(planted) = planted {
            let doubted = planted == Planted::CountsByItsOwnClock;
            class = if doubted {
                Class::MayForget
            } else {
                Class::Durable
            };
        }
        let window = SECOND * rng.pick(&[3, 10, 20, 60]);
        // Longer than a claim may take: the others stand still meanwhile and cannot renew.
        let grace = rng
            .weighed(&[(80, 100 * SECOND), (20, 600 * SECOND)])
            .max(3 * window);
        let timing = Timing {
            window: Duration::from_nanos(window),
            renew_every: RENEW_EVERY,
            request_timeout: RENEW_EVERY,
            takeover_grace: Duration::from_nanos(grace),
        };
        Self {
            layout,
            class,
            planted,
            start,
            ends_soon,
            renew: window / 3,
            timing,
            nodes: nodes(&layout, class, planted, rng),
            steps: rng.within(60..=140),
            trouble: rng.pick(&[10, 30, 50]),
        }
    }

    /// Nodes of the first namespace with the same set-up, each on its own host; nothing is random.
    pub(crate) fn simple(layout: IdMeta, sources: &[Source], remembers: bool) -> Self {
        let window = 10 * SECOND;
        let node = |(host, source): (usize, &Source)| NodePlan {
            space: 0,
            host,
            source: *source,
            remembers,
            count: 1,
            order: ClaimOrder::Stable,
            populator: PopulatorKind::Atomic,
            start: SequenceStart::Zero,
            clock: ClockKind::Precise,
            pacing: false,
            borrow: 0,
        };
        Self {
            layout,
            class: Class::Durable,
            planted: None,
            start: UnixMillis(START),
            ends_soon: false,
            renew: window / 4,
            timing: Timing {
                window: Duration::from_nanos(window),
                renew_every: RENEW_EVERY,
                request_timeout: RENEW_EVERY,
                takeover_grace: Duration::from_secs(60),
            },
            nodes: sources.iter().enumerate().map(node).collect(),
            steps: 0,
            trouble: 0,
        }
    }

    /// True unless a planted fault must show by repeated IDs alone.
    pub(crate) fn is_checked(&self) -> bool {
        self.planted
            .is_none_or(|planted| !planted.shows_by_repetition_alone())
    }

    /// The tick of a moment, even of one outside the layout.
    pub(crate) fn tick(&self, moment: UnixMillis) -> u64 {
        let spec = self.layout.spec();
        moment.0.saturating_sub(spec.epoch.0) / spec.unit.millis()
    }

    /// Slices per tick.
    fn slices(&self, node: &NodePlan) -> u64 {
        let (unit, per_tick) = (
            self.layout.spec().unit.millis(),
            1 << self.layout.spec().seq_bits,
        );
        let slices = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].into_iter();
        let mut slices = slices.filter(|slices| *slices <= per_tick);
        match node.pacing {
            true => slices
                .find(|slices| unit / slices <= 4 || *slices == per_tick)
                .expect("few"),
            false => 1,
        }
    }

    /// Positions below the cap that no batch may take.
    pub(crate) fn left_to_single_ids(&self, node: &NodePlan) -> u128 {
        (u128::from(1_u64 << self.layout.spec().seq_bits) / u128::from(self.slices(node))) / 16
    }

    /// Exclusive upper bound of the positions that a node may issue at a moment of its clock.
    pub(crate) fn cap(&self, node: &NodePlan, moment: UnixMillis) -> u128 {
        let spec = self.layout.spec();
        let (since, unit) = (moment.0.saturating_sub(spec.epoch.0), spec.unit.millis());
        let (per_tick, slices) = (1 << spec.seq_bits, self.slices(node));
        let borrowed = u128::from(node.borrow * per_tick);
        let begun = u128::from(since) * u128::from(slices) / u128::from(unit) + 1;
        begun * u128::from(per_tick / slices) + borrowed
    }

    /// The last tick of the layout.
    pub(crate) fn last_tick(&self) -> u64 {
        self.layout.max(Field::Time)
    }

    /// The duration of a window, in nanoseconds.
    pub(crate) fn window(&self) -> u64 {
        u64::try_from(self.timing.window.as_nanos()).expect("a minute at most")
    }

    /// The time after its bound until an expired owner's record may be taken, in nanoseconds.
    pub(crate) fn grace(&self) -> u64 {
        u64::try_from(self.timing.takeover_grace.as_nanos()).expect("minutes")
    }

    /// Maximum error of a clock at a start, in nanoseconds.
    pub(crate) fn largest_clock_error(&self) -> i128 {
        i128::from(match self.class {
            Class::Durable => u64::MAX,
            Class::MayForget => SECOND * 9 / 10,
            Class::Wiped => HOUR,
        })
    }

    /// The same while its node runs: under a doubt, time is the store's.
    pub(crate) fn largest_clock_error_while_running(&self) -> i128 {
        match self.class {
            Class::MayForget => i128::from(2 * HOUR),
            _ => self.largest_clock_error(),
        }
    }
}

fn nodes(layout: &IdMeta, class: Class, planted: Option<Planted>, rng: &mut Rng) -> Vec<NodePlan> {
    let how_many = rng.within(3..=8);
    let mix = rng.weighed(&[(65, 0), (15, 1), (8, 2), (12, 3)]);
    let several = rng.percent(20);
    let size = rng.within(1..=how_many + 4) * if several { 2 } else { 1 };
    let remember = class == Class::Wiped || rng.percent(30);
    let random = layout.name() != "custom" && rng.percent(25);
    let order = rng.pick(&[ClaimOrder::Stable, ClaimOrder::Lowest]);
    let spaces = if rng.percent(20) { 2 } else { 1 };
    let borrows = planted.is_none() && layout.spec().unit.millis() * 3 <= MAX_BORROW_MILLIS;
    (0..how_many)
        .map(|number| {
            let source = match (planted, mix) {
                (Some(Planted::Stateless), _) => Source::Stateless(number),
                (Some(Planted::StaleState), _) => Source::Fixed(number),
                // All nodes want the machine ID that the store forgot.
                (Some(Planted::CountsByItsOwnClock), _) => Source::Reserved(0),
                (Some(_), _) => Source::Pool(size),
                (None, 0) => Source::Pool(size),
                (None, 1) => Source::Reserved(rng.below(how_many)),
                (None, 2) => Source::Fixed(100 + number),
                _ => match rng.below(3) {
                    0 => Source::Pool(size),
                    1 => Source::Reserved(rng.below(size + 3)),
                    _ => Source::Fixed(100 + number),
                },
            };
            let alone = class == Class::Wiped || rng.percent(85);
            NodePlan {
                space: rng.index(spaces),
                host: usize::try_from(if alone { number } else { number / 2 }).expect("small"),
                source,
                remembers: remember || matches!(source, Source::Fixed(_)),
                count: match source {
                    Source::Pool(_) if several => rng.pick(&[2, 4]),
                    _ => 1,
                },
                order: if rng.percent(80) {
                    order
                } else {
                    rng.pick(&[ClaimOrder::Stable, ClaimOrder::Lowest])
                },
                populator: rng.pick(&PopulatorKind::ALL),
                start: match random {
                    true => SequenceStart::Random(rng.pick(&[2, 50, 100])),
                    false => SequenceStart::Zero,
                },
                clock: rng.pick(&ClockKind::ALL),
                // A slice must contain the start of a tick.
                pacing: rng.percent(30) && !random,
                borrow: if rng.percent(20) && borrows {
                    rng.within(1..=3)
                } else {
                    0
                },
            }
        })
        .collect()
}

//! What a seed stands for: who is there, and how it is set up.

use std::time::Duration;

use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::{ClaimOrder, IdMeta, PopulatorKind, SequenceStart, Timing, UnixMillis};

use super::dice::Dice;
use super::store::Plant;
use super::time::{DAY, HOUR, MILLI, RENEW_EVERY, SECOND};

/// 2023-11-14, inside every layout.
const START: u64 = 1_700_000_000_000;

pub(crate) const NAMESPACES: [&str; 2] = ["default", "eu-1"];

/// What the store is allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// It keeps what it acknowledged.
    Durable,
    /// It loses the latest changes and says that it may. Clocks are then right to a second.
    MayForget,
    /// It is wiped, once or more; every host keeps its folder.
    Wiped,
}

/// Where a node has its machine ID from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From 0 to this number.
    Pool(u64),
    Reserved(u64),
    Fixed(u64),
    Stateless(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) space: usize,
    /// Its state folder; two nodes may share one.
    pub(crate) host: usize,
    pub(crate) source: Source,
    /// Whether the host has a folder to remember machine IDs in.
    pub(crate) remembers: bool,
    pub(crate) count: usize,
    pub(crate) order: ClaimOrder,
    pub(crate) populator: PopulatorKind,
    pub(crate) start: SequenceStart,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) layout: IdMeta,
    pub(crate) class: Class,
    pub(crate) plant: Option<Plant>,
    pub(crate) start: UnixMillis,
    /// How often a keeper runs, in nanoseconds.
    pub(crate) renew: u64,
    pub(crate) timing: Timing,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) steps: u64,
    /// How bad it gets: of a hundred steps so many are faults.
    pub(crate) trouble: u64,
}

/// A layout with so few numbers in a tick that they are used up all the time.
fn tiny() -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: 41,
        seq_bits: 4,
        machine_bits: 8,
        order: FieldOrder::TimeMachineSeq,
        unit: TimeUnit::Millisecond,
        epoch: UnixMillis(1_600_000_000_000),
    })
    .expect("it adds up")
}

impl Plan {
    pub(crate) fn new(plant: Option<Plant>, dice: &mut Dice) -> Self {
        let layout = dice.weighed(&[
            (30, IdMeta::MAX_PEAK),
            (20, IdMeta::MIN_GRANULARITY),
            (20, IdMeta::SNOWFLAKE),
            (15, IdMeta::UID),
            (5, IdMeta::JS_SAFE),
            (5, IdMeta::SONYFLAKE),
            (5, tiny()),
        ]);
        let mut class =
            dice.weighed(&[(70, Class::Durable), (15, Class::MayForget), (15, Class::Wiped)]);
        if plant.is_some() {
            class = Class::Durable;
        }
        let window = SECOND * dice.pick(&[3, 10, 20, 60]);
        // Longer than a claim may take: the others stand still meanwhile and cannot renew.
        let grace = dice.weighed(&[(80, 100 * SECOND), (20, 600 * SECOND)]).max(3 * window);
        let timing = Timing {
            window: Duration::from_nanos(window),
            renew_every: RENEW_EVERY,
            request_timeout: RENEW_EVERY,
            takeover_grace: Duration::from_nanos(grace),
        };
        let start = UnixMillis(START + dice.below(100 * DAY / MILLI));
        Self {
            layout,
            class,
            plant,
            start,
            renew: window / 3,
            timing,
            nodes: nodes(&layout, class, plant, dice),
            steps: dice.within(60..=140),
            trouble: dice.pick(&[10, 30, 50]),
        }
    }

    /// Nodes of the first namespace that are all set up alike, each on a host of its own; nothing is
    /// decided by chance.
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
        };
        Self {
            layout,
            class: Class::Durable,
            plant: None,
            start: UnixMillis(START),
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

    /// The length of a window, in nanoseconds.
    pub(crate) fn window(&self) -> u64 {
        u64::try_from(self.timing.window.as_nanos()).expect("a minute at most")
    }

    /// How long after its bound a silent owner's record may be taken, in nanoseconds.
    pub(crate) fn grace(&self) -> u64 {
        u64::try_from(self.timing.takeover_grace.as_nanos()).expect("minutes")
    }

    /// How far a clock may be wrong, in nanoseconds.
    pub(crate) fn largest_clock_error(&self) -> i128 {
        i128::from(match self.class {
            Class::Durable => u64::MAX,
            Class::MayForget => SECOND * 9 / 10,
            Class::Wiped => HOUR,
        })
    }
}

fn nodes(layout: &IdMeta, class: Class, plant: Option<Plant>, dice: &mut Dice) -> Vec<NodePlan> {
    let how_many = dice.within(3..=8);
    let mix = dice.weighed(&[(65, 0), (15, 1), (8, 2), (12, 3)]);
    let several = dice.percent(20);
    let size = dice.within(1..=how_many + 4) * if several { 2 } else { 1 };
    let remember = class == Class::Wiped || dice.percent(30);
    let random = layout.name() != "custom" && dice.percent(25);
    let order = dice.pick(&ClaimOrder::ALL);
    let spaces = if dice.percent(20) { 2 } else { 1 };
    (0..how_many)
        .map(|number| {
            let source = match (plant, mix) {
                (Some(Plant::Stateless), _) => Source::Stateless(number),
                (Some(Plant::StaleState), _) => Source::Fixed(number),
                (Some(_), _) => Source::Pool(size),
                (None, 0) => Source::Pool(size),
                (None, 1) => Source::Reserved(dice.below(how_many)),
                (None, 2) => Source::Fixed(100 + number),
                _ => match dice.below(3) {
                    0 => Source::Pool(size),
                    1 => Source::Reserved(dice.below(size + 3)),
                    _ => Source::Fixed(100 + number),
                },
            };
            let alone = class == Class::Wiped || dice.percent(85);
            NodePlan {
                space: dice.index(spaces),
                host: usize::try_from(if alone { number } else { number / 2 }).expect("small"),
                source,
                remembers: remember || matches!(source, Source::Fixed(_)),
                count: match source {
                    Source::Pool(_) if several => dice.pick(&[2, 4]),
                    _ => 1,
                },
                order: if dice.percent(80) { order } else { dice.pick(&ClaimOrder::ALL) },
                populator: dice.pick(&PopulatorKind::ALL),
                start: match random {
                    true => SequenceStart::Random(dice.pick(&[2, 50, 100])),
                    false => SequenceStart::Zero,
                },
            }
        })
        .collect()
}

//! What a test consists of: a setting, and operations.

use std::time::Duration;

use proptest::prelude::*;
use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::{IdMeta, PopulatorKind, SequenceStart, Timing, UnixMillis};

use crate::store::Fate as Outcome;

/// The moment at which every test begins.
pub(crate) const START: UnixMillis = UnixMillis(1_700_000_000_000);

/// How many hosts there are.
pub(crate) const HOSTS: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) layout: IdMeta,
    pub(crate) populator: PopulatorKind,
    pub(crate) start: SequenceStart,
    /// The pool is 0 up to this.
    pub(crate) last_machine: u64,
    pub(crate) may_forget: bool,
    /// Whether hosts remember on disk what they held. Slow, so only now and then.
    pub(crate) on_disk: bool,
}

impl Setting {
    /// From a store that may forget lines begin a window ahead, and windows count from the wall clock:
    /// one that is shorter than the longest lead would be of no use.
    pub(crate) fn timing(&self) -> Timing {
        let shortest = Timing {
            window: Duration::from_secs(3),
            renew_every: Duration::from_secs(1),
            request_timeout: Duration::from_secs(1),
            takeover_grace: Duration::from_secs(9),
        };
        if self.may_forget { Timing::IN_MEMORY } else { shortest }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Pool,
    /// Two machine IDs at once.
    TwoOfThePool,
    Reserved(u64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    TryOne(usize),
    TryMany(usize, u8),
    TryRun(usize, u8),
    /// May wait.
    One(usize),
    Many(usize, u8),
    /// One, and if there is none, whether the error was right about the time to come back.
    Retry(usize),
    Maintain(usize),
    /// Time passes, for everybody.
    Pass(Duration),
    /// Time passes on one host, with the keeper at work.
    Run(usize, Duration),
    /// Time passes on one host only: it drifts, or the others were suspended.
    Drift(usize, Duration),
    /// Somebody sets the wall clock, by so many milliseconds.
    Step(usize, i64),
    Fate(usize, Outcome),
    /// The host can no longer reach the store, or can again.
    Cut(usize, bool),
    Deliver(usize),
    Stop(usize),
    Crash(usize),
    /// Starts a service where there is none, perhaps after the host has lost its memory.
    Start(usize, Source, bool),
    RaiseFloor(u8),
}

pub(crate) fn custom(
    unit: TimeUnit,
    time_bits: u8,
    seq_bits: u8,
    order: FieldOrder,
    before: u64,
) -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 2,
        time_bits,
        seq_bits,
        machine_bits: 2,
        order,
        unit,
        epoch: UnixMillis(START.0 - before),
    })
    .unwrap()
}

fn layout() -> impl Strategy<Value = IdMeta> {
    use FieldOrder::{TimeMachineSeq, TimeSeqMachine};
    use TimeUnit::{Millisecond, Second, TenMillis};
    let endless = 10_000_000_000;
    prop_oneof![
        3 => (0..4u8).prop_map(move |seq| custom(Second, 30, seq, TimeSeqMachine, endless)),
        3 => (0..3u8).prop_map(move |seq| custom(Millisecond, 40, seq, TimeMachineSeq, endless)),
        1 => (0..3u8).prop_map(move |seq| custom(TenMillis, 38, seq, TimeSeqMachine, endless + 7)),
        // With an epoch inside a second, and an end that is near.
        1 => Just(custom(Second, 30, 2, TimeMachineSeq, endless + 123)),
        1 => (1..3u8).prop_map(|seq| custom(Second, 6, seq, TimeSeqMachine, 1_000)),
        1 => (1..3u8).prop_map(|seq| custom(Millisecond, 15, seq, TimeSeqMachine, 1_000)),
        1 => Just(IdMeta::MAX_PEAK),
        1 => Just(IdMeta::MIN_GRANULARITY),
    ]
}

pub(crate) fn setting() -> impl Strategy<Value = Setting> {
    let populator = prop::sample::select(PopulatorKind::ALL.to_vec());
    let below = prop_oneof![2 => Just(None), 1 => (1..8u32).prop_map(Some)];
    let on_disk = prop::bool::weighted(if crate::full() { 0.05 } else { 0.01 });
    (layout(), populator, below, 0..=3u64, prop::bool::weighted(0.1), on_disk).prop_map(
        |(layout, populator, below, last_machine, may_forget, on_disk)| {
            let start = below.map_or(SequenceStart::Zero, SequenceStart::Random);
            let start = if start.check(&layout).is_ok() { start } else { SequenceStart::Zero };
            Setting { layout, populator, start, last_machine, may_forget, on_disk }
        },
    )
}

/// Milliseconds, with a liking for those around which something changes.
fn millis() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![
            0, 1, 2, 9, 10, 11, 100, 500, 900, 999, 1_000, 1_001, 1_100, 1_500, 2_000, 3_000,
            4_999, 5_000, 5_001, 6_000, 8_000, 9_000, 12_000,
        ]),
        0..1_500u64,
    ]
}

fn passing() -> impl Strategy<Value = Duration> {
    prop_oneof![
        8 => millis().prop_map(Duration::from_millis),
        2 => (0..2_000_000u64).prop_map(Duration::from_nanos),
        1 => (10..90u64).prop_map(Duration::from_secs),
    ]
}

fn step() -> impl Strategy<Value = i64> {
    let far = vec![30_000, 60_000, 3_540_000, 3_600_000, 3_660_000, 86_400_000, 400_000_000_000];
    let size = prop_oneof![10 => millis(), 1 => prop::sample::select(far)];
    (size, any::<bool>()).prop_map(|(size, back)| {
        let size = i64::try_from(size).unwrap();
        if back { -size } else { size }
    })
}

/// What a test is mostly about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    pub(crate) clock: u32,
    pub(crate) store: u32,
    pub(crate) restart: u32,
}

pub(crate) fn operation(weights: Weights) -> impl Strategy<Value = Operation> {
    use Operation::*;
    let Weights { clock, store, restart } = weights;
    let host = || prop_oneof![3 => Just(0), 1 => 1..HOSTS];
    let source = prop_oneof![
        6 => Just(Source::Pool),
        1 => Just(Source::TwoOfThePool),
        2 => (0..4u64).prop_map(Source::Reserved),
    ];
    let fate = prop_oneof![
        10 => Just(Outcome::Lost),
        10 => Just(Outcome::ReplyLost),
        10 => Just(Outcome::Late),
        10 => prop::sample::select(vec![1u16, 10, 400, 1_000, 4_000]).prop_map(Outcome::Slow),
        1 => Just(Outcome::Permanent),
    ];
    prop_oneof![
        60 => host().prop_map(TryOne),
        30 => (host(), 1..24u8).prop_map(|(host, n)| TryMany(host, n)),
        30 => (host(), 1..24u8).prop_map(|(host, n)| TryRun(host, n)),
        20 => host().prop_map(One),
        10 => (host(), 1..24u8).prop_map(|(host, n)| Many(host, n)),
        40 => host().prop_map(Retry),
        40 => host().prop_map(Maintain),
        20 => passing().prop_map(Pass),
        80 => (host(), passing()).prop_map(|(host, time)| Run(host, time)),
        10 * clock => (host(), passing()).prop_map(|(host, time)| Drift(host, time)),
        20 * clock => (host(), step()).prop_map(|(host, by)| Step(host, by)),
        30 * store => (host(), fate).prop_map(|(host, fate)| Fate(host, fate)),
        8 * store => (host(), prop::bool::weighted(0.3)).prop_map(|(host, cut)| Cut(host, cut)),
        15 * store => (0..4usize).prop_map(Deliver),
        6 * restart => host().prop_map(Stop),
        6 * restart => host().prop_map(Crash),
        40 * restart => (host(), source, prop::bool::weighted(0.2))
            .prop_map(|(host, source, forgets)| Start(host, source, forgets)),
        store => (0..4u8).prop_map(RaiseFloor),
    ]
}

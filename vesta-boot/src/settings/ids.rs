//! The fields of an ID: layout, populator, and what is the same in every ID of a service.

use std::time::Duration;

use vesta_intf::{Field, GenMethod, IdMeta, SequenceStart, TimeUnit};
use vesta_service::clock::ClockKind;
use vesta_service::options::{MAX_BORROW_MILLIS, PopulatorKind};

use super::parse::{Parsed, choice, either, millis, number, truth, whole};
use super::values::Values;
use crate::net::checked_name;
use crate::start::error::Error;

section! {
    /// IDs: layout, populator, and the fields that are the same in all of them.
    #[non_exhaustive]
    "IDs" pub struct Ids |values, layout| {
        /// Layout: the bits of an ID
        ///
        /// `max-peak`, `min-granularity`, `snowflake`, `uid` or `js-safe`; one of another system, such as
        /// `discord` or `cosid`; or `custom`, which `[layout.custom]` in the file describes. All generators of a
        /// namespace need the same one.
        pub layout: IdMeta = "layout" "NAME" or "max-peak" for commands, |_| Parsed::Ok(*layout);

        /// Settings of generation for a purpose: standard or throughput
        ///
        /// `throughput` makes the most IDs for the least processor time, at the price of their exact order: the default
        /// of `populator` is then `local`; in a layout of milliseconds, that of `clock` is `coarse` and that of
        /// `borrow_ahead_ms` 8.
        pub preset: Preset = "preset" "NAME" or "standard", choice(PRESETS);

        /// Position shared by threads: atomic, lock, sync or local
        ///
        /// `lock` and `sync` issue the same IDs as `atomic`, slower. With `local` each thread takes 64 at
        /// once: the fastest with many threads, but within a tick IDs ascend per thread only, and what a
        /// thread has left at its end is never issued.
        pub populator: PopulatorKind = "populator" "NAME" or "atomic",
            choice(PopulatorKind::ALL.map(|kind| (kind.name(), kind)));

        /// Clock of a layout in milliseconds: precise or coarse
        ///
        /// With `coarse` the time field may lag by a timer interrupt (1 to 10 ms) and never leads; an ID costs
        /// half as much. Layouts of seconds are always that fast.
        pub clock: ClockKind = "clock" "NAME" or "precise",
            choice(ClockKind::ALL.map(|kind| (kind.name(), kind)));

        /// Give a tick out in slices of at most 4 ms
        ///
        /// At full capacity a call then waits for the next slice, not for the rest of the second, and waiting calls are
        /// served first come, first served. The first slice of a tick has an eighth of it for bursts. The capacity
        /// stays the same. With `false` all of a tick can be had at its beginning.
        pub pacing: bool = "pacing" "BOOL" or "true", truth();

        /// Time that IDs may be made ahead of the clock
        ///
        /// In milliseconds, 0 to 10000, rounded down to whole ticks. A burst beyond the capacity is then served
        /// at once, and its IDs show a time so much later at most. The window grows by as much.
        pub borrow_ahead: Duration = "borrow_ahead_ms" "MS" or "0", millis(0..=MAX_BORROW_MILLIS);

        /// genMethod bits
        ///
        /// 0 embedded, 1 gRPC server alone, 2 REST server and `vesta serve`, 3 reserved; 0 in layouts without them. They
        /// stand above the time: only IDs that agree in them are ordered by time.
        pub gen_method: GenMethod = "gen_method" "0-3" or "1", gen_method(layout, values.is_explicit("gen_method"));

        /// genMethod bits of the gRPC listener beside the public one
        ///
        /// Of `vesta serve`, whose listeners share `gen_method` by default, so that all its IDs are ordered by time.
        /// With 1, the IDs of gRPC sort below those of HTTP. Other programs do not use it.
        ///
        /// Example: 1
        pub grpc_gen_method: Option<GenMethod> = "grpc.gen_method" "0-3", gen_method(layout, true);

        /// Version bit
        ///
        /// 1 makes IDs negative as signed 64-bit numbers.
        pub version: u64 = "version" "0|1" or "0" as "id-version", number(0..=layout.max(Field::Version));

        /// Sequence number at which a tick begins
        ///
        /// `zero`, or `random:N` for a random one below N; N is 1 to what the layout's sequence holds. In a layout
        /// with the sequence lowest, such as `snowflake`, it spreads rare IDs over the shards of `id % n`. Leaf has
        /// `random:100`.
        pub sequence_start: SequenceStart = "sequence_start" "START" or "zero", sequence_start(layout);

        /// Namespace, shared by IDs that may meet
        ///
        /// 1 to 64 letters, digits, `.`, `_` or `-`. IDs that may meet in one table need the same one.
        pub namespace: String = "namespace" "NAME" or "default" for commands, checked_name;
    }
}

/// Settings of generation for a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// IDs in the order of time, as exact as the layout.
    Standard,
    /// As many IDs as possible for as little processor time.
    Throughput,
}

const PRESETS: [(&str, Preset); 2] = [
    ("standard", Preset::Standard),
    ("throughput", Preset::Throughput),
];

/// The defaults that the preset changes: those of [`Builder::throughput`](vesta_service::Builder::throughput).
pub(super) fn defaults_of_preset(values: &Values) -> Vec<(&'static str, &'static str)> {
    if values.text("preset") != "throughput" {
        return Vec::new();
    }
    let mut defaults = vec![("populator", PopulatorKind::Local.name())];
    // A wrong layout is refused later.
    if layout(values).is_ok_and(|layout| layout.spec().unit == TimeUnit::Millisecond) {
        defaults.push(("clock", ClockKind::Coarse.name()));
        // Nothing would remember what a stateless machine ID borrowed.
        if values.text("machine.strategy") != "stateless" {
            defaults.push(("borrow_ahead_ms", "8"));
        }
    }
    defaults
}

/// The layout that the settings choose.
pub(super) fn layout(values: &Values) -> Result<IdMeta, Error> {
    let name = values.text("layout");
    match (name, &values.custom) {
        ("custom", Some(custom)) => IdMeta::new(*custom)
            .map_err(|error| Error::setting(format!("[layout.custom] does not add up: {error}"))),
        ("custom", None) => Err(values.refuse(
            "layout",
            "must be the name of a preset, or be described by [layout.custom] in the file that \
             --config names",
        )),
        _ => preset(name).map_err(|must| {
            let refusal = values.refuse("layout", must);
            match IdMeta::known(name) {
                Ok(_) => Error::setting(format!("{refusal}, which is for explaining IDs only")),
                Err(_) => refusal,
            }
        }),
    }
}

fn preset(name: &str) -> Parsed<IdMeta> {
    let makes_ids = |meta: &IdMeta| meta.check_generates().is_ok();
    IdMeta::known(name).ok().filter(makes_ids).ok_or_else(|| {
        let able = IdMeta::all_known().filter(makes_ids);
        format!(
            "must be {}",
            either(able.map(|meta| meta.name()).chain(["custom"]))
        )
    })
}

/// A layout without genMethod bits refuses only an explicit value.
fn gen_method(layout: &IdMeta, is_explicit: bool) -> impl Fn(&str) -> Parsed<GenMethod> {
    let max = layout
        .max(Field::GenMethod)
        .min(GenMethod::Reserved.value());
    move |text| match max {
        0 if !is_explicit => Ok(GenMethod::Embed),
        max => {
            GenMethod::from_value(whole(text, 0, max)?).ok_or_else(|| "must be 0 to 3".to_owned())
        }
    }
}

fn sequence_start(layout: &IdMeta) -> impl Fn(&str) -> Parsed<SequenceStart> {
    move |text| {
        let start = text.parse().ok();
        start
            .filter(|start: &SequenceStart| start.check(layout).is_ok())
            .ok_or_else(|| {
                let most = layout
                    .max(Field::Seq)
                    .saturating_add(1)
                    .min(u32::MAX.into());
                format!("must be zero or random:N with N from 1 to {most} in this layout")
            })
    }
}

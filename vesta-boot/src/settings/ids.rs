//! Fields of an ID: layout, populator, and the fields that are the same in every ID of a service.

use std::path::PathBuf;
use std::time::Duration;

use vesta_explain::layouts;
use vesta_intf::{Field, GenMethod, IdMeta, SequenceStart};
use vesta_service::clock::ClockKind;
use vesta_service::options::{MAX_BORROW_MILLIS, PopulatorKind};

use super::parse::{Parsed, choice, either, key_file, millis, truth, whole};
use super::values::Values;
use crate::error::Error;
use vesta_net::checked_name;

section! {
    /// IDs: layout, populator, and the fields that are the same in every ID.
    #[non_exhaustive]
    "IDs" pub struct Ids |values, layout| {
        /// Layout: the bits of an ID
        ///
        /// `max-peak`, `min-granularity`, `snowflake`, `uid` or `js-safe`; the layout of another system, such as
        /// `discord` or `cosid`; or `custom`, which `[layout.custom]` in the file describes. All generators of a
        /// namespace need the same layout.
        pub layout: IdMeta = "layout" "NAME" or "max-peak" for commands, |_: &str| Parsed::Ok(*layout);

        /// Position shared by threads: atomic, lock or sync
        ///
        /// `lock` and `sync` issue the same IDs as `atomic`, more slowly.
        pub populator: PopulatorKind = "populator" "NAME" or "atomic",
            choice(PopulatorKind::ALL.map(|kind| (kind.name(), kind)));

        /// Clock of a layout in milliseconds: precise or coarse
        ///
        /// With `coarse` the time field may lag by a timer interrupt (1 to 10 ms) and never leads; an ID costs
        /// less. Layouts of seconds are always that fast.
        pub clock: ClockKind = "clock" "NAME" or "precise",
            choice(ClockKind::ALL.map(|kind| (kind.name(), kind)));

        /// Split ticks into slices of at most 4 ms
        ///
        /// At full capacity a call then waits for the next slice instead of the rest of the second. The first slice of
        /// a tick has an eighth of its capacity for bursts. The total capacity stays the same. With `false` the whole
        /// tick is available when it begins.
        pub pacing: bool = "pacing" "BOOL" or "true", truth();

        /// How far ahead of the clock IDs may be made
        ///
        /// In milliseconds, 0 to 10000, rounded down to whole ticks. A burst beyond the capacity is then served
        /// at once; the time in its IDs is ahead by at most this much. The window grows by the same amount.
        pub borrow_ahead: Duration = "borrow_ahead_ms" "MS" or "0", millis(0..=MAX_BORROW_MILLIS);

        /// genMethod bits
        ///
        /// 0 embedded, 1 server of gRPC alone, 2 server of REST, 3 database; 0 in layouts without these bits. They are
        /// above the time bits, so only IDs with equal genMethod are ordered by time. Default: 2, or 1 if only gRPC is
        /// served.
        ///
        /// Example: 2
        pub gen_method: GenMethod = "gen_method" "0-3" given "2, or 1 for gRPC alone", gen_method(layout, values.is_explicit("gen_method"));

        /// Version bit
        ///
        /// 1 makes IDs negative as signed 64-bit numbers.
        pub version: u64 = "version" "0|1" or "0" as "id-version", version(layout);

        /// First sequence number of each tick
        ///
        /// `zero`, or `random:N` for a random number below N; N is 1 to the capacity of the layout's sequence. In a
        /// layout whose lowest field is the sequence, such as `snowflake`, it spreads IDs made at a low rate over
        /// the shards of `id % n`. Leaf uses `random:100`.
        pub sequence_start: SequenceStart = "sequence_start" "START" or "zero", sequence_start(layout);

        /// Key file of opaque IDs
        ///
        /// Enables `format=opaque`, which hides the ID: without the key, neither its time nor the next ID can be
        /// derived. `vesta key new FILE` makes a key. All servers need the same one. Keep a copy.
        ///
        /// Example: /etc/vesta/opaque.key
        pub opaque_key: Option<PathBuf> = "opaque.key_file" "FILE", key_file;

        /// Namespace of IDs that must not collide
        ///
        /// 1 to 64 letters, digits, `.`, `_` or `-`. Generators whose IDs may end up in one table need
        /// the same namespace.
        pub namespace: String = "namespace" "NAME" or "default" for commands, checked_name;
    }
}

/// The layout selected by the settings.
pub(super) fn layout(values: &Values) -> Result<IdMeta, Error> {
    let name = values.text("layout");
    match (name, &values.custom) {
        ("custom", Some(custom)) => IdMeta::new(*custom).map_err(|error| {
            Error::setting(format!("[layout.custom] is not a valid layout: {error}"))
        }),
        ("custom", None) => Err(values.refuse(
            "layout",
            "must be the name of a preset, or be described by [layout.custom] in the file that \
             --config names",
        )),
        _ => preset(name).map_err(|must| {
            let refusal = values.refuse("layout", must);
            match layouts::named(name) {
                Ok(_) => Error::setting(format!("{refusal}, which is for explaining IDs only")),
                Err(_) => refusal,
            }
        }),
    }
}

fn preset(name: &str) -> Parsed<IdMeta> {
    let makes_ids = |meta: &IdMeta| meta.check_generates().is_ok();
    layouts::named(name).ok().filter(makes_ids).ok_or_else(|| {
        let able = layouts::all().filter(makes_ids);
        format!(
            "must be {}",
            either(able.map(|meta| meta.name()).chain(["custom"]))
        )
    })
}

fn version(layout: &IdMeta) -> impl Fn(&str) -> Parsed<u64> {
    move |text| whole(text, 0, layout.max(Field::Version))
}

/// In a layout without genMethod bits only an explicit value is refused.
fn gen_method(layout: &IdMeta, is_explicit: bool) -> impl Fn(&str) -> Parsed<GenMethod> {
    let max = layout
        .max(Field::GenMethod)
        .min(GenMethod::Database.value());
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

//! The fields of an ID: layout, populator, and what is the same in every ID of a service.

use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, Args};
use vesta_intf::{Field, GenMethod, IdMeta, SequenceStart};
use vesta_service::clock::ClockKind;
use vesta_service::options::{MAX_BORROW_MILLIS, PopulatorKind};

use super::parse::{Parsed, choice, either, millis, number, truth, whole};
use super::values::Values;
use crate::net::checked_name;
use crate::start::error::Error;

/// IDs: layout, populator, and the fields that are the same in all of them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "IDs")]
#[non_exhaustive]
pub struct Ids {
    /// Layout: the bits of an ID
    ///
    /// `max-peak`, `min-granularity`, `snowflake`, `uid` or `js-safe`; one of another system, such as
    /// `discord` or `cosid`; or `custom`, which `[layout.custom]` in the file describes. All generators of a
    /// namespace need the same one.
    #[arg(id = "layout", value_name = "NAME", default_value = "max-peak", global = true)]
    #[arg(value_parser = preset)]
    pub layout: IdMeta,

    /// Position shared by threads: atomic, lock, sync or local
    ///
    /// `lock` and `sync` issue the same IDs as `atomic`, slower. With `local` each thread takes 64 at
    /// once: the fastest with many threads, but within a tick IDs ascend per thread only, and what a
    /// thread has left at its end is never issued.
    #[arg(id = "populator", value_name = "NAME", default_value = "atomic")]
    #[arg(value_parser = choice(PopulatorKind::ALL.map(|kind| (kind.name(), kind))))]
    pub populator: PopulatorKind,

    /// Clock of a layout in milliseconds: precise or coarse
    ///
    /// With `coarse` the time field may lag by a timer interrupt (1 to 10 ms) and never leads; an ID costs
    /// half as much. Layouts of seconds are always that fast.
    #[arg(id = "clock", value_name = "NAME", default_value = "precise")]
    #[arg(value_parser = choice(ClockKind::ALL.map(|kind| (kind.name(), kind))))]
    pub clock: ClockKind,

    /// Give a tick out in slices of at most 4 ms
    ///
    /// At the capacity nobody then waits for the rest of a second, and who waits is served in the order of
    /// coming. The capacity stays the same.
    #[arg(id = "pacing", value_name = "BOOL", default_value = "false")]
    #[arg(value_parser = truth())]
    pub pacing: bool,

    /// Time that IDs may be made ahead of the clock
    ///
    /// In milliseconds, 0 to 10000, rounded down to whole ticks. A burst beyond the capacity is then served
    /// at once, and its IDs show a time so much later at most. The window grows by as much.
    #[arg(id = "borrow_ahead_ms", value_name = "MS", default_value = "0")]
    #[arg(value_parser = millis(0, MAX_BORROW_MILLIS))]
    pub borrow_ahead: Duration,

    /// genMethod bits
    ///
    /// 0 embedded, 1 gRPC server alone, 2 REST server and `vesta serve`, 3 reserved; 0 in layouts without them. They
    /// stand above the time: only IDs that agree in them are ordered by time.
    #[arg(id = "gen_method", value_name = "0-3", default_value = "1")]
    #[arg(value_parser = gen_method(u64::MAX))]
    pub gen_method: GenMethod,

    /// genMethod bits of the gRPC listener beside the public one
    ///
    /// Of `vesta serve`, whose listeners share `gen_method` by default, so that all its IDs are ordered by time.
    /// With 1, the IDs of gRPC sort below those of HTTP. Other programs do not use it.
    ///
    /// Example: 1
    #[arg(id = "grpc.gen_method", value_name = "0-3", value_parser = gen_method(u64::MAX))]
    pub grpc_gen_method: Option<GenMethod>,

    /// Version bit
    ///
    /// 1 makes IDs negative as signed 64-bit numbers.
    #[arg(id = "version", long = "id-version", value_name = "0|1", default_value = "0")]
    #[arg(value_parser = number(0, u64::MAX))]
    pub version: u64,

    /// Sequence number at which a tick begins
    ///
    /// `zero`, or `random:N` for a random one below N; N is 1 to what the layout's sequence holds. In a layout
    /// with the sequence lowest, such as `snowflake`, it spreads rare IDs over the shards of `id % n`. Leaf has
    /// `random:100`.
    #[arg(id = "sequence_start", value_name = "START", default_value = "zero")]
    #[arg(value_parser = sequence_start(IdMeta::MAX_PEAK))]
    pub sequence_start: SequenceStart,

    /// Namespace, shared by IDs that may meet
    ///
    /// 1 to 64 letters, digits, `.`, `_` or `-`. IDs that may meet in one table need the same one.
    #[arg(id = "namespace", value_name = "NAME", default_value = "default", global = true)]
    #[arg(value_parser = checked_name)]
    pub namespace: String,
}

/// Narrows the parser of a setting to what the layout can hold.
pub(super) fn bounded(arg: Arg, layout: IdMeta, values: &Values) -> Arg {
    let parser = match arg.get_id().as_str() {
        "layout" => ValueParser::new(move |_: &str| Parsed::Ok(layout)),
        // A layout without genMethod bits refuses only an explicit value.
        "gen_method" if layout.max(Field::GenMethod) == 0 && !values.is_explicit("gen_method") => {
            ValueParser::new(|_: &str| Parsed::Ok(GenMethod::Embed))
        }
        "gen_method" | "grpc.gen_method" => gen_method(layout.max(Field::GenMethod)),
        "version" => number(0, layout.max(Field::Version)),
        "sequence_start" => sequence_start(layout),
        _ => return arg,
    };
    arg.value_parser(parser)
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
        format!("must be {}", either(able.map(|meta| meta.name()).chain(["custom"])))
    })
}

fn gen_method(max: u64) -> ValueParser {
    let max = max.min(GenMethod::Reserved.value());
    ValueParser::new(move |text: &str| {
        let value = whole(text, 0, max)?;
        GenMethod::from_value(value).ok_or_else(|| "must be 0 to 3".to_owned())
    })
}

fn sequence_start(layout: IdMeta) -> ValueParser {
    ValueParser::new(move |text: &str| {
        let start = text.parse().ok();
        start.filter(|start: &SequenceStart| start.check(&layout).is_ok()).ok_or_else(|| {
            let most = layout.max(Field::Seq).saturating_add(1).min(u32::MAX.into());
            format!("must be zero or random:N with N from 1 to {most} in this layout")
        })
    })
}

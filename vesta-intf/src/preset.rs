//! Named layouts.

use crate::{FieldOrder, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

/// 2015-01-01T00:00:00+08:00, as in the Java Vesta (`IdConverterImpl`/`TimeUtils.EPOCH`).
const VESTA_EPOCH: UnixMillis = UnixMillis(1_420_041_600_000);

const fn vesta(name: &'static str, id_type: u64, time: u8, seq: u8, unit: TimeUnit) -> IdMeta {
    preset(
        name,
        id_type,
        LayoutSpec {
            version_bits: 1,
            type_bits: 1,
            gen_method_bits: 2,
            time_bits: time,
            seq_bits: seq,
            machine_bits: 10,
            order: FieldOrder::TimeSeqMachine,
            unit,
            epoch: VESTA_EPOCH,
        },
    )
}

/// Checks a preset at compile time.
const fn preset(name: &'static str, id_type: u64, spec: LayoutSpec) -> IdMeta {
    assert!(IdMeta::validation_error(&spec).is_none() && IdMeta::blocker(&spec).is_none());
    IdMeta::unchecked(name, id_type, spec)
}

impl IdMeta {
    /// `max-peak`, Vesta's type 0: 30 bits of seconds, 2^20 IDs per second, 1,024 machines, until 2049-01-09.
    pub const MAX_PEAK: IdMeta = vesta("max-peak", 0, 30, 20, TimeUnit::Second);

    /// `min-granularity`, Vesta's type 1: 40 bits of milliseconds, 2^10 IDs per millisecond, 1,024
    /// machines, until 2049-11-03.
    pub const MIN_GRANULARITY: IdMeta = vesta("min-granularity", 1, 40, 10, TimeUnit::Millisecond);

    /// `snowflake`: Twitter's and Leaf's 1 + 41 + 10 + 12, milliseconds since
    /// 2010-11-04T01:42:54.657Z (twitter-archive/snowflake, `IdWorker.twepoch`).
    pub const SNOWFLAKE: IdMeta = preset(
        "snowflake",
        0,
        LayoutSpec {
            version_bits: 1,
            type_bits: 0,
            gen_method_bits: 0,
            time_bits: 41,
            seq_bits: 12,
            machine_bits: 10,
            order: FieldOrder::TimeMachineSeq,
            unit: TimeUnit::Millisecond,
            epoch: UnixMillis(1_288_834_974_657),
        },
    );

    /// `uid`: Baidu uid-generator's default, sign 1, delta seconds 28, worker 22, sequence 13, since
    /// 2016-05-20T00:00:00+08:00. Its time ended on 2024-11-20; new deployments need a custom epoch.
    pub const UID: IdMeta = preset(
        "uid",
        0,
        LayoutSpec {
            version_bits: 1,
            type_bits: 0,
            gen_method_bits: 0,
            time_bits: 28,
            seq_bits: 13,
            machine_bits: 22,
            order: FieldOrder::TimeMachineSeq,
            unit: TimeUnit::Second,
            epoch: UnixMillis(1_463_673_600_000),
        },
    );

    /// `js-safe`: 53 bits, so that JavaScript numbers represent it exactly; 31 bits of seconds,
    /// 2^14 IDs per second, 256 machines, until 2083-01-18.
    pub const JS_SAFE: IdMeta = preset(
        "js-safe",
        0,
        LayoutSpec {
            version_bits: 0,
            type_bits: 0,
            gen_method_bits: 0,
            time_bits: 31,
            seq_bits: 14,
            machine_bits: 8,
            order: FieldOrder::TimeSeqMachine,
            unit: TimeUnit::Second,
            epoch: VESTA_EPOCH,
        },
    );

    /// The layouts in which Vesta generates IDs.
    pub const PRESETS: [IdMeta; 5] = [
        Self::MAX_PEAK,
        Self::MIN_GRANULARITY,
        Self::SNOWFLAKE,
        Self::UID,
        Self::JS_SAFE,
    ];

    /// The layout with this name among [`PRESETS`](Self::PRESETS).
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS.into_iter().find(|meta| meta.name() == name)
    }
}

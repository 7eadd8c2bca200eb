//! Layouts of others, to explain the IDs that they made.

use crate::{FieldOrder, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

/// No version, type or genMethod. Checked like everything else, except that a generator need not
/// be able to use it.
const fn foreign(name: &'static str, spec: LayoutSpec) -> IdMeta {
    assert!(IdMeta::validation_error(&spec).is_none());
    IdMeta::unchecked(name, 0, spec)
}

/// Time, machine and sequence alone, in milliseconds.
const fn plain(time: u8, machine: u8, seq: u8, epoch: u64) -> LayoutSpec {
    LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: time,
        seq_bits: seq,
        machine_bits: machine,
        order: FieldOrder::TimeMachineSeq,
        unit: TimeUnit::Millisecond,
        epoch: UnixMillis(epoch),
    }
}

pub(super) fn about(name: &str) -> &'static str {
    match name {
        "discord" => "Discord: machine is worker * 32 + process, seq the increment",
        "instagram" => "Instagram: machine is the logical shard, seq its counter modulo 1024",
        "mastodon" => "Mastodon: seq is the 16 bits of hashed sequence data; explains only",
        "sonyflake" => "Sonyflake with its default start time, in steps of 10 ms",
        "vesta-old" => "Vesta's older documented layout, machine above time; explains only",
        _ => "a layout of one's own",
    }
}

impl IdMeta {
    /// `discord`: 42 bits of milliseconds since 2015-01-01T00:00:00Z, worker 5, process 5,
    /// increment 12 (Discord's API reference, "Snowflakes"). `machine` is `worker << 5 | process`.
    /// The time takes the highest bit too: negative as signed numbers from 2084-09-06 on.
    pub const DISCORD: IdMeta = foreign("discord", plain(42, 10, 12, 1_420_070_400_000));

    /// `instagram`: 41 bits of milliseconds since 2011-08-24T21:07:01.721Z, logical shard 13,
    /// counter modulo 1024 10 ("Sharding & IDs at Instagram"). The time takes the highest bit too:
    /// negative as signed numbers from 2046-06-27 on.
    pub const INSTAGRAM: IdMeta = foreign("instagram", plain(41, 13, 10, 1_314_220_021_721));

    /// `mastodon`: 48 bits of milliseconds since 1970, and 16 bits of "sequence data", a keyed hash
    /// plus a counter of the table (`lib/mastodon/snowflake.rb`), here `seq`. Explains only.
    pub const MASTODON: IdMeta = foreign("mastodon", plain(48, 0, 16, 0));

    /// `sonyflake`: 39 bits of 10 ms since 2014-09-01T00:00:00Z, sequence 8, machine 16
    /// (`sony/sonyflake` v1 with its default start time; v2 starts at 2025-01-01).
    pub const SONYFLAKE: IdMeta = foreign(
        "sonyflake",
        LayoutSpec {
            order: FieldOrder::TimeSeqMachine,
            unit: TimeUnit::TenMillis,
            ..plain(39, 16, 8, 1_409_529_600_000)
        },
    );

    /// `vesta-old`: the layout of Vesta's older documents, version 1, type 1, genMethod 2,
    /// machine 10, seconds 30, sequence 20. It sorts by machine before time; explains only.
    pub const VESTA_OLD: IdMeta = foreign(
        "vesta-old",
        LayoutSpec { order: FieldOrder::MachineTimeSeq, ..*IdMeta::MAX_PEAK.spec() },
    );

    /// The layouts of others, for explaining their IDs.
    pub const FOREIGN: [IdMeta; 5] =
        [Self::DISCORD, Self::INSTAGRAM, Self::MASTODON, Self::SONYFLAKE, Self::VESTA_OLD];
}

//! Named layouts, also of other systems, for explaining their IDs.

pub(crate) mod known;

use FieldOrder::{MachineTimeSeq, TimeMachineSeq, TimeSeqMachine};
use vesta_intf::TimeUnit::{Microsecond, Millisecond, Second, TenMicros, TenMillis};
use vesta_intf::{FieldOrder, IdError, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

/// Widths of version, time, machine and sequence. Checked like every layout, except that a generator
/// need not be able to use it.
const fn foreign(
    name: &'static str,
    order: FieldOrder,
    [version_bits, time_bits, machine_bits, seq_bits]: [u8; 4],
    unit: TimeUnit,
    epoch: u64,
) -> IdMeta {
    let epoch = UnixMillis(epoch);
    let (type_bits, gen_method_bits) = (0, 0);
    IdMeta::named(
        name,
        LayoutSpec {
            version_bits,
            type_bits,
            gen_method_bits,
            time_bits,
            seq_bits,
            machine_bits,
            order,
            unit,
            epoch,
        },
    )
}

/// Milliseconds by which the clock of a generator may be ahead: a day.
const AHEAD: u64 = 86_400_000;

/// True if an ID of this layout may exist by now.
pub fn may_exist(layout: &IdMeta, raw: u64, now: UnixMillis) -> bool {
    let layout = layout.explaining(raw);
    let made = layout.unpack(raw).and_then(|id| layout.moment_of(id.time));
    made.is_ok_and(|made| made.0 <= now.0.saturating_add(AHEAD))
}

/// `discord`: 42 bits of milliseconds since 2015-01-01T00:00:00Z, worker 5, process 5,
/// increment 12 (Discord's API reference, "Snowflakes"). `machine` is `worker << 5 | process`.
/// The time includes the highest bit: negative as signed numbers from 2084-09-06 on.
pub const DISCORD: IdMeta = foreign(
    "discord",
    TimeMachineSeq,
    [0, 42, 10, 12],
    Millisecond,
    1_420_070_400_000,
);

/// `instagram`: 41 bits of milliseconds since 2011-08-24T21:07:01.721Z, logical shard 13,
/// counter modulo 1024 10 ("Sharding & IDs at Instagram"). The time includes the highest bit:
/// negative as signed numbers from 2046-06-27 on.
pub const INSTAGRAM: IdMeta = foreign(
    "instagram",
    TimeMachineSeq,
    [0, 41, 13, 10],
    Millisecond,
    1_314_220_021_721,
);

/// `mastodon`: 48 bits of milliseconds since 1970, and 16 bits of "sequence data", a keyed hash
/// plus a counter of the table (`lib/mastodon/snowflake.rb`), here `seq`. For explaining only.
pub const MASTODON: IdMeta = foreign("mastodon", TimeMachineSeq, [0, 48, 0, 16], Millisecond, 0);

/// `sonyflake`: 39 bits of 10 ms since 2014-09-01T00:00:00Z, sequence 8, machine 16
/// (`sony/sonyflake` v1 with its default start time).
pub const SONYFLAKE: IdMeta = foreign(
    "sonyflake",
    TimeSeqMachine,
    [0, 39, 16, 8],
    TenMillis,
    1_409_529_600_000,
);

/// `sonyflake-2`: the same from 2025-01-01T00:00:00Z on (`sony/sonyflake` v2).
pub const SONYFLAKE_2: IdMeta = foreign(
    "sonyflake-2",
    TimeSeqMachine,
    [0, 39, 16, 8],
    TenMillis,
    1_735_689_600_000,
);

/// `uid-boot`: the defaults of uid-generator's Spring Boot starter, delta seconds 30, worker 16,
/// sequence 7, since 2019-02-20T00:00:00+08:00.
pub const UID_BOOT: IdMeta = foreign(
    "uid-boot",
    TimeMachineSeq,
    [1, 30, 16, 7],
    Second,
    1_550_592_000_000,
);

/// `cosid`: CosId's `MillisecondSnowflakeId`, timestamp 41, machine 10, sequence 12, since
/// 2019-12-24T16:00:00Z (`CosId.COSID_EPOCH`).
pub const COSID: IdMeta = foreign(
    "cosid",
    TimeMachineSeq,
    [1, 41, 10, 12],
    Millisecond,
    1_577_203_200_000,
);

/// `cosid-second`: CosId's `SecondSnowflakeId`, timestamp 31, machine 10, sequence 22.
pub const COSID_SECOND: IdMeta = foreign(
    "cosid-second",
    TimeMachineSeq,
    [1, 31, 10, 22],
    Second,
    1_577_203_200_000,
);

/// `cosid-js`: CosId's `SafeJavaScriptSnowflakeId`, timestamp 41, machine 3, sequence 9: 53 bits.
pub const COSID_JS: IdMeta = foreign(
    "cosid-js",
    TimeMachineSeq,
    [0, 41, 3, 9],
    Millisecond,
    1_577_203_200_000,
);

/// `yitter`: Yitter IdGenerator's defaults, worker 6, sequence 6, since 2020-02-19T18:20:02Z.
/// The time takes the remaining bits: 41 of them keep the IDs exact in JavaScript.
pub const YITTER: IdMeta = foreign(
    "yitter",
    TimeMachineSeq,
    [0, 41, 6, 6],
    Millisecond,
    1_582_136_402_000,
);

/// `seata`: Seata's `IdWorker`, worker 10 above timestamp 41 and sequence 12, since
/// 2020-05-02T16:00:00Z. Sorts by machine before time; for explaining only.
pub const SEATA: IdMeta = foreign(
    "seata",
    MachineTimeSeq,
    [1, 41, 10, 12],
    Millisecond,
    1_588_435_200_000,
);

/// `cockroach`: CockroachDB's `unique_rowid()`, 48 bits of 10 µs since 2015-01-01T00:00:00Z, node 15.
/// For explaining only.
pub const COCKROACH: IdMeta = foreign(
    "cockroach",
    TimeMachineSeq,
    [0, 48, 15, 0],
    TenMicros,
    1_420_070_400_000,
);

/// `tso`: a timestamp of TiDB, 46 bits of milliseconds since 1970, logical counter 18.
pub const TSO: IdMeta = foreign("tso", TimeMachineSeq, [0, 46, 0, 18], Millisecond, 0);

/// `tsid`: TSID Creator's and Hypersistence TSID's 42 bits of milliseconds since
/// 2020-01-01T00:00:00Z, node 10 and counter 12, both of which begin at random.
pub const TSID: IdMeta = foreign(
    "tsid",
    TimeMachineSeq,
    [0, 42, 10, 12],
    Millisecond,
    1_577_836_800_000,
);

/// `linkedin`: LinkedIn's activities and shares, milliseconds since 1970 above 22 undocumented
/// bits: the upper ten are small, the lower twelve nearly always 0.
pub const LINKEDIN: IdMeta = foreign("linkedin", TimeMachineSeq, [1, 41, 10, 12], Millisecond, 0);

/// `clickhouse`: `generateSnowflakeID()` of ClickHouse, milliseconds since 1970, machine 10,
/// counter 12.
pub const CLICKHOUSE: IdMeta = foreign(
    "clickhouse",
    TimeMachineSeq,
    [1, 41, 10, 12],
    Millisecond,
    0,
);

/// `tiktok`: TikTok and Douyin, 32 bits of seconds since 1970. Of the lower 32 bits the upper ten are
/// milliseconds. For explaining only.
pub const TIKTOK: IdMeta = foreign("tiktok", TimeMachineSeq, [0, 32, 0, 32], Second, 0);

/// `weibo`: posts of Weibo, seconds since 1986-05-03T05:51:03Z above 22 bits. For explaining only.
pub const WEIBO: IdMeta = foreign(
    "weibo",
    TimeMachineSeq,
    [1, 41, 0, 22],
    Second,
    515_483_463_000,
);

/// `bluesky`: the TID of the AT Protocol, 53 bits of microseconds since 1970, clock 10. For
/// explaining only.
pub const BLUESKY: IdMeta = foreign("bluesky", TimeMachineSeq, [1, 53, 10, 0], Microsecond, 0);

/// `shardingsphere`: Apache ShardingSphere's `SNOWFLAKE`, worker 10, sequence 12, since midnight of
/// 2016-11-01 in the time zone of its process: here that of China, 2016-10-31T16:00:00Z.
pub const SHARDINGSPHERE: IdMeta = foreign(
    "shardingsphere",
    TimeMachineSeq,
    [1, 41, 10, 12],
    Millisecond,
    1_477_929_600_000,
);

/// `vesta-old`: the layout of Vesta's older documents, version 1, type 1, genMethod 2, machine
/// 10, seconds 30, sequence 20. It sorts by machine before time; for explaining only.
pub const VESTA_OLD: IdMeta = IdMeta::named(
    "vesta-old",
    LayoutSpec {
        order: MachineTimeSeq,
        ..*IdMeta::MAX_PEAK.spec()
    },
);

/// CosId's own layouts.
pub const COSID_LAYOUTS: [IdMeta; 3] = [COSID, COSID_SECOND, COSID_JS];

/// Layouts of other systems, for explaining their IDs.
pub const FOREIGN: [IdMeta; 21] = [
    DISCORD,
    INSTAGRAM,
    MASTODON,
    SONYFLAKE,
    SONYFLAKE_2,
    UID_BOOT,
    COSID,
    COSID_SECOND,
    COSID_JS,
    YITTER,
    SEATA,
    COCKROACH,
    TSO,
    TSID,
    LINKEDIN,
    CLICKHOUSE,
    TIKTOK,
    WEIBO,
    BLUESKY,
    SHARDINGSPHERE,
    VESTA_OLD,
];

/// Every named layout: [`IdMeta::PRESETS`], then [`FOREIGN`].
pub fn all() -> impl Iterator<Item = IdMeta> {
    IdMeta::PRESETS.into_iter().chain(FOREIGN)
}

/// The layout with this name among all named ones, for explaining an ID. Some of them cannot
/// generate IDs: see [`check_generates`](IdMeta::check_generates).
///
/// # Errors
/// [`IdError::Invalid`] for `layout`, with the known names.
pub fn named(name: &str) -> Result<IdMeta, IdError> {
    all().find(|meta| meta.name() == name).ok_or_else(|| {
        let names: Vec<_> = all().map(|meta| meta.name()).collect();
        let reason = format!("`{name}` is not one of {}", names.join(", "));
        IdError::invalid("layout", reason)
    })
}

/// One-line description of a layout.
pub fn about(layout: &IdMeta) -> &'static str {
    known::known(layout).map_or("a custom layout", |it| it.4)
}

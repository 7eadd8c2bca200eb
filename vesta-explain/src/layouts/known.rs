//! Facts about each named layout: its description, and the priors of a guess.

use Spread::{Any, Few, Log};

use vesta_intf::IdMeta;

/// How the values of a field are distributed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spread {
    /// Nearly always one of the smallest: a sequence that starts at 0 in each tick.
    Few,
    /// Small by order of magnitude: a machine number, a running counter.
    Log,
    /// Uniform: hashed or random.
    Any,
}

/// Facts about a layout: its name, the first year in which a system made such IDs, its prior relative to
/// others, the spreads of machine and sequence, a description.
pub(crate) type Known = (&'static str, u64, f64, [Spread; 2], &'static str);

/// Facts about a layout; `None` for a custom one.
pub(crate) fn known(layout: &IdMeta) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.0 == layout.name())
}

static KNOWN: [Known; 26] = [
    (
        "max-peak",
        2015,
        6.0,
        [Log, Log],
        "Vesta's type 0: seconds, for the highest peaks",
    ),
    (
        "min-granularity",
        2015,
        6.0,
        [Log, Log],
        "Vesta's type 1: milliseconds, fine order",
    ),
    (
        "snowflake",
        2010,
        8.0,
        [Any, Few],
        "Twitter's snowflake and Leaf",
    ),
    (
        "uid",
        2016,
        1.0,
        [Log, Few],
        "the default of Baidu's uid-generator, ended in 2024",
    ),
    (
        "js-safe",
        2026,
        1.0,
        [Log, Log],
        "53 bits, exact as a JavaScript number",
    ),
    (
        "discord",
        2015,
        4.0,
        [Log, Log],
        "Discord: machine is worker * 32 + process",
    ),
    (
        "instagram",
        2011,
        1.0,
        [Any, Any],
        "Instagram: machine is the logical shard",
    ),
    (
        "mastodon",
        2016,
        1.0,
        [Any, Any],
        "Mastodon: seq is hashed; explains only",
    ),
    (
        "sonyflake",
        2014,
        1.0,
        [Any, Few],
        "Sonyflake 1 with its default start time",
    ),
    (
        "sonyflake-2",
        2025,
        1.0,
        [Any, Few],
        "Sonyflake 2 with its default start time",
    ),
    (
        "uid-boot",
        2019,
        0.5,
        [Log, Few],
        "the defaults of uid-generator's Spring Boot starter",
    ),
    ("cosid", 2019, 0.5, [Log, Log], "CosId in milliseconds"),
    ("cosid-second", 2019, 0.5, [Log, Log], "CosId in seconds"),
    (
        "cosid-js",
        2019,
        0.5,
        [Log, Log],
        "CosId in 53 bits, exact as a JavaScript number",
    ),
    (
        "yitter",
        2020,
        1.0,
        [Log, Few],
        "Yitter IdGenerator with 6 bits of workers",
    ),
    (
        "seata",
        2020,
        0.3,
        [Log, Log],
        "Seata, the worker above the time; explains only",
    ),
    (
        "cockroach",
        2015,
        0.5,
        [Few, Few],
        "CockroachDB's unique_rowid(); explains only",
    ),
    (
        "tso",
        2016,
        0.3,
        [Any, Log],
        "a timestamp of TiDB; explains only",
    ),
    (
        "tsid",
        2020,
        1.0,
        [Any, Any],
        "TSID Creator and Hypersistence TSID",
    ),
    (
        "linkedin",
        2012,
        1.0,
        [Log, Few],
        "LinkedIn's activities and shares",
    ),
    (
        "clickhouse",
        2024,
        0.5,
        [Any, Few],
        "ClickHouse's generateSnowflakeID()",
    ),
    (
        "tiktok",
        2016,
        1.0,
        [Any, Any],
        "TikTok and Douyin; explains only",
    ),
    (
        "weibo",
        2010,
        1.0,
        [Any, Any],
        "posts of Weibo; explains only",
    ),
    (
        "bluesky",
        2022,
        1.0,
        [Log, Any],
        "the TID of Bluesky; explains only",
    ),
    (
        "shardingsphere",
        2016,
        0.5,
        [Few, Few],
        "ShardingSphere's SNOWFLAKE, begun in China",
    ),
    (
        "vesta-old",
        2014,
        0.5,
        [Log, Log],
        "Vesta's older documented layout; explains only",
    ),
];

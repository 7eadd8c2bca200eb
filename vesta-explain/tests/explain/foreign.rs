//! Published IDs of other systems, explained. Where a source states only when an ID was made, the
//! other fields are checked by arithmetic on its bits.

use vesta_explain::layouts;
use vesta_intf::{Field, FieldOrder, Id, IdMeta, LayoutSpec, UnixMillis};

#[track_caller]
fn explains(meta: IdMeta, raw: u64, moment: &str, machine: u64, seq: u64) -> Id {
    let id = meta.unpack(raw).unwrap();
    assert_eq!(
        meta.moment_of(id.time).unwrap().to_string(),
        moment,
        "{meta}"
    );
    assert_eq!((id.machine, id.seq), (machine, seq), "{meta}");
    assert_eq!(meta.pack(&id).unwrap(), raw);
    id
}

/// Discord, API reference, "Snowflakes": 175928847299117063 is worker 1, process 0, increment 7,
/// 41944705796 ms after the epoch, 2016-04-30 11:18:25.796 UTC. The second: the documentation of
/// twilight-util, `Snowflake::timestamp`.
#[test]
fn discord() {
    let meta = layouts::DISCORD;
    let id = explains(
        meta,
        175928847299117063,
        "2016-04-30T11:18:25.796Z",
        1 << 5,
        7,
    );
    assert_eq!(id.time, 41_944_705_796);
    assert_eq!(
        (id.machine >> 5, id.machine & 31),
        (1, 0),
        "worker and process"
    );

    let id = meta.unpack(105484726235607040).unwrap();
    assert_eq!(
        meta.moment_of(id.time).unwrap().to_string(),
        "2015-10-19T01:58:38.546Z"
    );
}

/// Wikipedia, "Snowflake ID": the tweet 1541815603606036480 is 367597485448 ms after the epoch,
/// 2022-06-28 16:07:40.105 UTC, machine 378, sequence 0.
#[test]
fn twitter() {
    let id = explains(
        IdMeta::SNOWFLAKE,
        1541815603606036480,
        "2022-06-28T16:07:40.105Z",
        378,
        0,
    );
    assert_eq!(id.time, 367_597_485_448);
}

/// Baidu's README gives 180363646902239241 as 2017-01-19 12:15:46 (in China), worker 4, sequence 9.
/// Its spring configuration beside it: timeBits 29, workerBits 21, seqBits 13, epochStr 2016-09-20.
#[test]
fn uid_generator() {
    let spec = LayoutSpec {
        time_bits: 29,
        machine_bits: 21,
        seq_bits: 13,
        epoch: UnixMillis(1_474_300_800_000), // 2016-09-20T00:00:00+08:00
        ..*IdMeta::UID.spec()
    };
    let meta = IdMeta::new(spec).unwrap();
    explains(meta, 180363646902239241, "2017-01-19T04:15:46.000Z", 4, 9);

    // The default widths, by arithmetic: 3,600 s after 2016-05-20T00:00:00+08:00, worker 4, sequence 9.
    let raw = 3600 << 35 | 4 << 13 | 9;
    explains(IdMeta::UID, raw, "2016-05-19T17:00:00.000Z", 4, 9);
}

/// "Sharding & IDs at Instagram": 1387263000 ms after the epoch, user 31341 of 2000 shards (shard
/// 1341), counter 5001 (modulo 1024), put together there as `<< 23`, `<< 10`. The two media IDs with
/// their moments: Stack Overflow, question 63684126, "Instagram media ID to timestamp conversion".
#[test]
fn instagram() {
    let meta = layouts::INSTAGRAM;
    let id = Id {
        time: 1_387_263_000,
        machine: 31341 % 2000,
        seq: 5001 % 1024,
        ..Id::default()
    };
    assert_eq!(
        meta.pack(&id).unwrap(),
        1_387_263_000 << 23 | 1341 << 10 | 905
    );
    for (raw, second) in [
        (2384288897814875714, "2020-08-26T13:43:27"),
        (2383568809444681765, "2020-08-25T13:52:46"),
    ] {
        let time = meta.unpack(raw).unwrap().time;
        let moment = meta.moment_of(time).unwrap().to_string();
        assert!(moment.starts_with(second), "{moment}");
    }
}

/// docs.joinmastodon.org, "Status": 103270115826048975, created at 2019-12-08T03:48:33.901Z. The
/// database makes the ID at a slightly different moment than the program's own time.
#[test]
fn mastodon() {
    let meta = layouts::MASTODON;
    let id = explains(
        meta,
        103270115826048975,
        "2019-12-08T03:48:33.849Z",
        0,
        40911,
    );
    let created = 1_575_776_913_901;
    assert!(id.time.abs_diff(created) < 100);
    assert!(
        meta.check_generates()
            .unwrap_err()
            .to_string()
            .contains("only explains")
    );
}

/// Printed by `sonyflake.Decompose` of sony/sonyflake, in public programs that use it:
/// `{"id":257532141091473317,"machine-id":51109,"msb":0,"sequence":0,"time":15350111788}` and
/// `{"id":133591991580950539,"machine-id":11,"msb":0,"sequence":5,"time":7962703203}`.
/// 15350111788 * 10 ms after 2014-09-01 is 2019-07-13T15:11:57.88Z.
#[test]
fn sonyflake() {
    let meta = layouts::SONYFLAKE;
    let id = explains(
        meta,
        257532141091473317,
        "2019-07-13T15:11:57.880Z",
        51109,
        0,
    );
    assert_eq!(id.time, 15_350_111_788);
    let id = meta.unpack(133591991580950539).unwrap();
    assert_eq!((id.time, id.seq, id.machine), (7_962_703_203, 5, 11));
    assert!(meta.unpack(1 << 63).is_err(), "63 bits");
}

/// `(centiseconds since 2025-01-01) << 24 | seq << 16 | machine`, computed independently.
#[test]
fn sonyflake_2() {
    let raw = 57_281_442_159_919_111;
    explains(layouts::SONYFLAKE_2, raw, "2026-01-31T04:00:00.120Z", 7, 42);
}

/// The README of wujun234/uid-generator-spring-boot-starter prints
/// `{"UID":"450795408770","timestamp":"2019-02-20 14:55:39","workerId":"27","sequence":"2"}`.
#[test]
fn uid_boot() {
    explains(
        layouts::UID_BOOT,
        450_795_408_770,
        "2019-02-20T06:55:39.000Z",
        27,
        2,
    );
    assert!(
        layouts::UID_BOOT.unpack(1 << 54).is_err(),
        "its IDs end at 54 bits"
    );
}

/// Printed by CosId's own classes for 2026-01-31T12:00:00.123+08:00, machine 7, sequence 42. The last
/// one by arithmetic: `(milliseconds since the epoch) << 12 | machine << 9 | seq`.
#[test]
fn cosid() {
    let (moment, second) = ("2026-01-31T04:00:00.123Z", "2026-01-31T04:00:00.000Z");
    explains(layouts::COSID, 807_943_746_871_128_106, moment, 7, 42);
    explains(
        layouts::COSID_SECOND,
        827_334_396_297_084_970,
        second,
        7,
        42,
    );
    explains(layouts::COSID_JS, 789_007_565_307_434, moment, 7, 42);
    assert!(
        layouts::COSID_JS.unpack(1 << 53).is_err(),
        "its IDs end at 53 bits"
    );
}

/// Printed by Yitter's own generator at that time for worker 1, sequence 5.
#[test]
fn yitter() {
    explains(
        layouts::YITTER,
        768_801_169_911_877,
        "2026-01-31T04:00:00.123Z",
        1,
        5,
    );
}

/// Printed by Seata's own `IdWorker` at that time for worker 7, sequence 42.
#[test]
fn seata() {
    let meta = layouts::SEATA;
    explains(
        meta,
        63_793_396_076_490_794,
        "2026-01-31T04:00:00.123Z",
        7,
        42,
    );
    assert!(
        meta.check_generates()
            .unwrap_err()
            .to_string()
            .contains("sorts by machine")
    );
}

/// Each field of 2026-01-31T12:00:00.123+08:00 shifted into place by hand: packed and explained.
#[test]
fn golden_ids_by_shifts() {
    const MILLI: u64 = 1_769_832_000_123;
    const SECOND: u64 = 1_769_832_000;
    for (meta, time, machine, seq, shifted, golden) in [
        (
            layouts::COSID,
            MILLI - 1_577_203_200_000,
            7,
            42,
            (MILLI - 1_577_203_200_000) << 22 | 7 << 12 | 42,
            807_943_746_871_128_106,
        ),
        (
            layouts::COSID_SECOND,
            SECOND - 1_577_203_200,
            7,
            42,
            (SECOND - 1_577_203_200) << 32 | 7 << 22 | 42,
            827_334_396_297_084_970,
        ),
        (
            layouts::COSID_JS,
            MILLI - 1_577_203_200_000,
            7,
            42,
            (MILLI - 1_577_203_200_000) << 12 | 7 << 9 | 42,
            789_007_565_307_434,
        ),
        (
            layouts::YITTER,
            MILLI - 1_582_136_402_000,
            1,
            5,
            (MILLI - 1_582_136_402_000) << 12 | 1 << 6 | 5,
            768_801_169_911_877,
        ),
        (
            layouts::SEATA,
            MILLI - 1_588_435_200_000,
            7,
            42,
            7 << 53 | (MILLI - 1_588_435_200_000) << 12 | 42,
            63_793_396_076_490_794,
        ),
        (
            layouts::UID_BOOT,
            SECOND - 1_550_592_000,
            7,
            42,
            (SECOND - 1_550_592_000) << 23 | 7 << 7 | 42,
            1_839_118_417_920_938,
        ),
        (
            layouts::SONYFLAKE_2,
            (MILLI - 1_735_689_600_000) / 10,
            7,
            42,
            ((MILLI - 1_735_689_600_000) / 10) << 24 | 42 << 16 | 7,
            57_281_442_159_919_111,
        ),
        (
            layouts::COCKROACH,
            (MILLI - 1_420_070_400_000) * 100 + 45,
            7,
            0,
            ((MILLI - 1_420_070_400_000) * 100 + 45) << 15 | 7,
            1_146_098_811_284_520_967,
        ),
        (
            layouts::TSO,
            MILLI,
            0,
            42,
            MILLI << 18 | 42,
            463_950_839_840_243_754,
        ),
    ] {
        assert_eq!(shifted, golden, "{meta}");
        let id = Id {
            time,
            machine,
            seq,
            ..Id::default()
        };
        assert_eq!(meta.pack(&id).unwrap(), golden, "{meta} is made");
        assert_eq!(meta.unpack(golden).unwrap(), id, "{meta} is explained");
    }
}

/// `unique_rowid()`: `(10 µs since 2015-01-01) << 15 | node`. Its time is finer than a moment here.
#[test]
fn cockroach() {
    let meta = layouts::COCKROACH;
    let raw = 1_146_098_811_284_520_967;
    let id = explains(meta, raw, "2026-01-31T04:00:00.123Z", 7, 0);
    assert_eq!(id.time % 100, 45, "450 µs after it");
    let moment = UnixMillis(1_769_832_000_123);
    let [lower, upper] = [
        meta.lower_bound(moment, &meta.blank()).unwrap(),
        meta.upper_bound(moment, &meta.blank()).unwrap(),
    ];
    assert_eq!(
        (lower, upper),
        (raw - (45 << 15) - 7, raw + (54 << 15) + (1 << 15) - 1 - 7)
    );
    assert!(
        meta.check_generates()
            .unwrap_err()
            .to_string()
            .contains("shorter than a millisecond")
    );
    assert_eq!(meta.fingerprint(), "0/0/0/48/0/15 tms 10us @1420070400000");
}

/// `pd-ctl tso 395181938313123110` prints `system: 2017-10-09 05:50:59 +0800 CST` and
/// `logic: 120102` (PD Control User Guide).
#[test]
fn tso() {
    explains(
        layouts::TSO,
        395_181_938_313_123_110,
        "2017-10-08T21:50:59.507Z",
        0,
        120_102,
    );
}

/// The README of TSID Creator and its ports: 38352658567418867 is 01226N0640J7K, of 2020-04-15.
#[test]
fn tsid() {
    explains(
        layouts::TSID,
        38_352_658_567_418_867,
        "2020-04-15T19:59:46.360Z",
        421,
        1011,
    );
}

/// The example of obsidianforensics/unfurl, 2020-07-06 18:59:31.226; a post whose schema.org metadata states
/// 2023-06-15T09:35:34.752Z.
#[test]
fn linkedin() {
    let meta = layouts::LINKEDIN;
    explains(
        meta,
        6_685_980_502_161_199_104,
        "2020-07-06T18:59:31.226Z",
        25,
        0,
    );
    explains(
        meta,
        7_075_043_149_462_556_672,
        "2023-06-15T09:35:34.777Z",
        109,
        0,
    );
}

/// ClickHouse's documentation of `snowflakeIDToDateTime64`: 2024-05-22.
#[test]
fn clickhouse() {
    let raw = 7_199_081_390_080_409_600;
    explains(layouts::CLICKHOUSE, raw, "2024-05-22T16:19:15.859Z", 484, 0);
}

/// The example of obsidianforensics/unfurl: 2020-07-29 02:06:13. Its upper ten bits below the time are 872 ms.
#[test]
fn tiktok() {
    let raw = 6_854_717_870_488_702_213;
    let id = explains(
        layouts::TIKTOK,
        raw,
        "2020-07-29T02:06:13.000Z",
        0,
        3_657_452_805,
    );
    assert_eq!(id.seq >> 22, 872);
}

/// Posts with their `created_at`: Fri Mar 31 23:47:24 +0800 2017, Thu Nov 13 21:18:29 +0800 2025.
#[test]
fn weibo() {
    let meta = layouts::WEIBO;
    explains(
        meta,
        4_091_509_081_366_576,
        "2017-03-31T15:47:24.000Z",
        0,
        2_351_152,
    );
    explains(
        meta,
        5_232_630_992_732_508,
        "2025-11-13T13:18:29.000Z",
        0,
        1_048_924,
    );
}

/// The README of @atcute/tid: 3l25zusnsfctk is 1724171495793000 µs, clock 816. Its time is finer than a moment.
#[test]
fn bluesky() {
    let meta = layouts::BLUESKY;
    let raw = 1_724_171_495_793_000 << 10 | 816;
    explains(meta, raw, "2024-08-20T16:31:35.793Z", 816, 0);
    let upper = meta
        .upper_bound(UnixMillis(1_724_171_495_793), &meta.blank())
        .unwrap();
    assert_eq!(upper, 1_724_171_495_793_999 << 10 | 1023);
    assert!(
        meta.check_generates()
            .unwrap_err()
            .to_string()
            .contains("shorter than a millisecond")
    );
}

/// Apache ShardingSphere's `SnowflakeKeyGenerateAlgorithmTest` makes 12582913 three milliseconds after its epoch,
/// midnight of 2016-11-01 in the zone of the process.
#[test]
fn shardingsphere() {
    explains(
        layouts::SHARDINGSPHERE,
        12_582_913,
        "2016-10-31T16:00:00.003Z",
        0,
        1,
    );
}

/// The widths of the older documents, by arithmetic: 1420041600 + 94990103 is 1515031703.
#[test]
fn vesta_old() {
    let meta = layouts::VESTA_OLD;
    let raw = 2 << 60 | 1021 << 50 | 94_990_103 << 20 | 42;
    let id = explains(meta, raw, "2018-01-04T02:08:23.000Z", 1021, 42);
    assert_eq!((id.version, id.id_type, id.gen_method), (0, 0, 2));
    assert_eq!(meta.explaining(raw), meta, "never taken for today's layout");
    assert!(!meta.is_vesta());
    let error = meta.check_generates().unwrap_err().to_string();
    assert!(
        error.contains("vesta-old sorts by machine before time"),
        "{error}"
    );
}

#[test]
fn every_named_layout_is_found_and_described() {
    let mut names = Vec::new();
    for meta in layouts::all() {
        assert_eq!(layouts::named(meta.name()).unwrap(), meta);
        assert_ne!(layouts::about(&meta), "a custom layout", "{meta}");
        assert!(!layouts::about(&meta).contains('\n') && layouts::about(&meta).len() < 80);
        names.push(meta.name());
    }
    assert_eq!(names.len(), 26);
    names.dedup();
    assert_eq!(names.len(), 26);
    let error = layouts::named("Discord").unwrap_err().to_string();
    assert!(
        error.contains("max-peak") && error.contains("sonyflake"),
        "{error}"
    );
    let custom = IdMeta::new(*IdMeta::SNOWFLAKE.spec()).unwrap();
    assert_eq!(layouts::about(&custom), "a custom layout");
}

#[test]
fn layouts_that_generate_are_known() {
    for meta in IdMeta::PRESETS {
        meta.check_generates().unwrap();
        assert_eq!(IdMeta::preset(meta.name()), Some(meta));
    }
    let able: Vec<_> = layouts::FOREIGN
        .into_iter()
        .filter(|meta| meta.check_generates().is_ok())
        .map(|meta| meta.name())
        .collect();
    let names = [
        "discord",
        "instagram",
        "sonyflake",
        "sonyflake-2",
        "uid-boot",
        "cosid",
    ];
    let more = [
        "cosid-second",
        "cosid-js",
        "yitter",
        "tsid",
        "linkedin",
        "clickhouse",
    ];
    assert_eq!(able, [&names[..], &more, &["shardingsphere"]].concat());
    assert_eq!(IdMeta::preset("discord"), None, "not one of Vesta's own");
}

/// The order machine, time, sequence is supported for any layout, not only for `vesta-old`.
#[test]
fn a_custom_layout_with_the_machine_above_the_time_only_explains() {
    let spec = LayoutSpec {
        order: FieldOrder::MachineTimeSeq,
        ..*IdMeta::SNOWFLAKE.spec()
    };
    let error = IdMeta::new(spec).unwrap_err().to_string();
    assert!(error.contains("time above the machine"), "{error}");
    let meta = IdMeta::foreign(spec).unwrap();
    assert_eq!(
        meta.to_string(),
        "custom (version 1 + machine 10 + time 41 + seq 12 bits, millisecond)"
    );
    assert_ne!(meta.fingerprint(), IdMeta::SNOWFLAKE.fingerprint());
    let raw = 378 << 53 | 367_597_485_448 << 12 | 5;
    explains(meta, raw, "2022-06-28T16:07:40.105Z", 378, 5);

    for (bits, generates) in [(50, true), (51, false)] {
        let wide = LayoutSpec {
            time_bits: bits,
            seq_bits: 12,
            machine_bits: 0,
            ..spec
        };
        let wide = LayoutSpec {
            order: FieldOrder::TimeMachineSeq,
            ..wide
        };
        assert_eq!(IdMeta::new(wide).is_ok(), generates);
        assert_eq!(
            IdMeta::foreign(wide).unwrap().max(Field::Time),
            (1 << bits) - 1
        );
    }
}

/// Widths at which naive arithmetic overflows.
#[test]
fn extreme_widths_are_refused_or_work() {
    let none = LayoutSpec {
        version_bits: 0,
        machine_bits: 0,
        ..*IdMeta::SNOWFLAKE.spec()
    };
    for time_bits in 0..=64u8 {
        for seq_bits in [0, 64 - time_bits] {
            let Ok(meta) = IdMeta::foreign(LayoutSpec {
                time_bits,
                seq_bits,
                ..none
            }) else {
                assert!(time_bits == 0 || time_bits > 61, "{time_bits}");
                continue;
            };
            let full = Id {
                time: meta.max(Field::Time),
                seq: meta.max(Field::Seq),
                ..Id::default()
            };
            let raw = meta.pack(&full).unwrap();
            assert_eq!(meta.unpack(raw).unwrap(), full);
            assert!(meta.capacity_per_second() >= 1000);
            let last = UnixMillis(meta.end().0 - 1);
            assert_eq!(meta.upper_bound(last, &meta.blank()).unwrap(), raw);
        }
    }
}

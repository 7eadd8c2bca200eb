//! Refused settings, each with one sentence that states the remedy.

use super::*;

/// Arguments, and part of the resulting error.
const REFUSED: &str = r#"
# Single settings.
--http-listen here => http.listen must be an IP address and a port, such as 127.0.0.1:50051, or unix:/PATH, but is `here` (flag --http-listen)
--grpc-listen 127.0.0.1:70000 => grpc.listen must be an IP address and a port
--admin-listen on => admin.listen must be an IP address and a port
--layout twitter => layout must be max-peak, min-granularity, snowflake, uid, js-safe, discord, instagram, sonyflake, sonyflake-2, uid-boot, cosid, cosid-second, cosid-js, yitter, tsid, linkedin, clickhouse, shardingsphere or custom, but is `twitter`
--layout mastodon => but is `mastodon` (flag --layout), which is for explaining IDs only
--layout vesta-old => but is `vesta-old` (flag --layout), which is for explaining IDs only
--layout custom => be described by [layout.custom] in the file
--populator spin => populator must be lock, sync or atomic, but is `spin`
--gen-method 4 => gen_method must be 0 to 3, but is `4` (flag --gen-method)
--gen-method 1 --layout snowflake => gen_method must be 0, but is `1`
--id-version 2 => version must be 0 to 1, but is `2` (flag --id-version)
--id-version 1 --layout js-safe => version must be 0, but is `1`
--sequence-start random => sequence_start must be zero or random:N with N from 1 to 1048576 in this layout, but is `random` (flag --sequence-start)
--sequence-start random:0 => sequence_start must be zero or random:N
--sequence-start random:4097 --layout snowflake => N from 1 to 4096 in this layout, but is `random:4097`
--machine-id 1024 => machine.id must be 0 to 1023, but is `1024`
--machine-id 256 --layout js-safe => machine.id must be 0 to 255
--machine-id -1 => machine.id must be 0 to 1023, but is `-1`
--machine-id seven => machine.id must be 0 to 1023, a list such as 10.0.0.1=1,10.0.0.2=2, or ordinal, but is `seven`
--machine-id 10.0.0.1 => machine.id must be 0 to 1023, a list such as 10.0.0.1=1,10.0.0.2=2, or ordinal
--machine-id 10.0.0.1=1,10.0.0.1=2 => machine.id
--machine-id 127.0.0.1=1 => 127.0.0.1 does not name one host
--machine-id 10.0.0.1=1024 => machine.id must hold machine IDs of 0 to 1023
--machine-id=ordinal: => machine.id must be ordinal:NAME
--machine-store vesta.db => machine.store must be a URL such as sqlite:
--machine-range 5 => machine.range must be FROM-TO within 0-1023
--machine-range 9-3 => machine.range must be FROM-TO within 0-1023
--machine-range 0-1024 => machine.range must be FROM-TO within 0-1023
--machine-region 2 => machine.region must be REGION/BITS, such as 2/3
--machine-region 8/3 => machine.region: region
--machine-region two/3 => machine.region must be REGION/BITS
--machine-region 0/11 => with 1 to 10 bits, but is `0/11`
--machine-region 0/1000 => with 1 to 10 bits
--machine-region 0/0 => with 1 to 10 bits
--machine-region 2/3 --machine-id 255 => machine.id must be 256 to 383, but is `255`
--machine-region 2/3 --machine-range 256-384 => machine.range must be FROM-TO within 256-383
--machine-region 2/3 --machine-id 10.0.0.1=1 => machine.id must hold machine IDs of 256 to 383
--machine-region 2/9 --machine-count 3 => machine.count must be at most the 2 of the pool
--namespace ../x/y => namespace must be 1 to 64 letters
--max-wait-ms 600001 => max_wait_ms must be 0 to 600000
--request-timeout-ms 0 => request_timeout_ms must be 1 to 600000
--drain-limit-ms 1s => drain_limit_ms must be 0 to 600000, but is `1s`
--max-connections 0 => max_connections must be 1 to 1000000
--workers 0 => workers must be 1 to 512
--log-format xml => log.format must be human or json, but is `xml`
--log-level loud => log.level must be error, warn, info, debug, trace or off
--log-level h2=loud => log.level must be
--allow-plaintext=1 => allow_plaintext must be true or false
--state-allow-network-fs=maybe => state.allow_network_fs must be true or false
# A fixed machine ID and settings of pools.
--machine-id 1 --machine-range 0-5 => machine.range is for a pool, but machine.id fixes the machine ID
--machine-id ordinal --machine-count 2 => machine.count is for a pool, but machine.id fixes the machine ID
--machine-id 10.0.0.1=1 --machine-strategy lowest => machine.strategy = "lowest" is for a pool, but machine.id fixes the machine ID
# Pools.
--machine-count 0 => machine.count must be 1 to 1024, but is `0`
--machine-count 1025 => machine.count must be 1 to 1024, but is `1025`
--machine-count 4 --machine-range 7-9 => machine.count must be at most the 3 of the pool, but is `4` (flag --machine-count)
--machine-strategy once => machine.strategy must be lease, lowest, disposable or stateless
--machine-strategy disposable --machine-store redis://:s3cret@h => machine.store must be an SQL store (sqlite, mysql or postgres) with machine.strategy = "disposable", but is `redis://:***@h`
--machine-strategy disposable --machine-id 3 => uses up a new machine ID at each start, but machine.id is set; remove one of them
--machine-strategy disposable --machine-id 10.0.0.1=1 => but machine.id is set
--machine-strategy disposable --machine-id=ordinal => but machine.id is set
--machine-strategy disposable --machine-count 2 => but machine.count is set
--machine-strategy disposable --machine-range 0-9 => but machine.range is set
# Standing by.
--machine-standby=true => machine.standby = true is for servers that share one machine ID, but machine.id is not one number
--machine-standby=true --machine-id 7 => but machine.store is not set; set it to a store that all of them reach
--machine-standby=true --machine-id ordinal --machine-store sqlite:x => but machine.id is not one number
--machine-standby=true --machine-store sqlite:x --machine-count 2 => but machine.id is not one number
--machine-standby=true --machine-store sqlite:x --machine-strategy disposable => but machine.id is not one number
--machine-standby=true --machine-id 7 --machine-store sqlite:x --machine-count 2 => machine.count is for a pool, but machine.id fixes the machine ID
--machine-standby=true --machine-id 7 --machine-store sqlite:x --machine-strategy stateless => machine.strategy = "stateless" is for
--machine-standby=true --machine-id 7 --machine-store sqlite:x --machine-window-ms 1500 => renew_every must be at most a third of window, but it is machine.window_ms = 1500, machine.renew_every_ms = 600, machine.request_timeout_ms = 500
# Leases.
--auto-init=1 => auto_init must be true or false, but is `1`
--wait-for-store=1 => wait_for_store must be true or false, but is `1`
--machine-window-ms 0 => machine.window_ms must be 1 to 600000, but is `0`
--machine-renew-every-ms x => machine.renew_every_ms must be 1 to 600000
--machine-takeover-grace-ms 86400001 => machine.takeover_grace_ms must be 1 to 86400000
--machine-doubtful-window-ms 9999 => machine.doubtful_window_ms must be 10000 to 60000
--machine-doubtful-window-ms 60001 => machine.doubtful_window_ms must be 10000 to 60000
--machine-window-ms 30000 => takeover_grace must be at least three times window, but it is machine.window_ms = 30000, machine.renew_every_ms = 1500, machine.request_timeout_ms = 1000, machine.takeover_grace_ms = 60000; set all that must change
--machine-renew-every-ms 2000 => renew_every must be at most a third of window
--machine-request-timeout-ms 1600 => request_timeout must be at most renew_every
--machine-id 1 --machine-takeover-grace-ms 60000 => machine.takeover_grace_ms is for a pool, but the machine ID is fixed
--machine-id 1 --machine-strategy=stateless --machine-window-ms 5000 => machine.window_ms applies only to renewed machine IDs, and machine.strategy = "stateless" does not renew
--machine-id 1 --machine-strategy=stateless --machine-request-timeout-ms 5000 => machine.request_timeout_ms applies only
--machine-strategy disposable --machine-takeover-grace-ms 60000 => and machine.strategy = "disposable" does not renew
--machine-strategy=stateless => machine.strategy = "stateless" is for a number in machine.id without machine.store
--machine-strategy=stateless --machine-id 1 --machine-store sqlite:x => machine.strategy = "stateless" is for
# Segments.
--segment-store leaf => segment.store must be a URL such as sqlite:vesta-data/vesta.db, but is `leaf` (flag --segment-store)
--segment-store sqlite:a --segment-max-step 1000001 => segment.max_step must be 1 to 1000000, but is `1000001`
--segment-table leaf => segment.table is for segment mode, which is off; set segment.store too
--segment-max-step 9 => segment.max_step is for segment mode, which is off
--compat leaf => compat must be none or tinyid, but is `leaf`
--compat=tinyid --segment-store=mysql://a/d => compat = tinyid is for REST; serve REST with it
# Unsafe or clashing listeners.
--grpc-listen 0.0.0.0:5 => choose one of machine.id, machine.store
--grpc-listen [::]:5 => choose one of machine.id, machine.store
--grpc-listen 10.0.0.1:5 --allow-plaintext => choose one of machine.id, machine.store
--grpc-listen 0.0.0.0:5 --machine-id 1 => grpc.listen (0.0.0.0:5) is reachable from other hosts and not encrypted; set tls.cert and tls.key, or set allow_plaintext = true
--admin-listen 0.0.0.0:5 => admin.listen (0.0.0.0:5) is reachable from other hosts and not encrypted
--grpc-listen 127.0.0.1:5 --admin-listen 127.0.0.1:5 => cannot share a port
--grpc-listen 0.0.0.0:5 --admin-listen 127.0.0.1:5 => cannot share a port
# The file.
--config /no/such/file => cannot read the configuration /no/such/file
"#;

/// Arguments that contain spaces.
const WITH_BLANKS: [(&[&str], &str); 5] = [
    (&["--namespace", "a b"], "namespace must be 1 to 64 letters"),
    (&["--namespace", ""], "namespace must be 1 to 64 letters"),
    (
        &["--state-dir", ""],
        "state_dir must be the path of a folder",
    ),
    (
        &["--machine-id", "ordinal:a b"],
        "machine.id must be ordinal:NAME, where NAME must be 1 to 64",
    ),
    (
        &[
            "--segment-table=leaf:a b",
            "--segment-store",
            "mysql://u:s3cret@a/d",
        ],
        "segment.table must be leaf, leaf:TABLE, leaf:TABLE:COLUMN (names of ASCII letters, digits and _), ",
    ),
];

#[test]
fn a_wrong_setting_is_refused_with_one_sentence_that_says_what_to_do() {
    let lines = REFUSED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    let lines = lines.map(|line| line.split_once(" => ").expect("arguments and a part"));
    let lines = lines.map(|(args, expected)| (args.split(' ').collect::<Vec<_>>(), expected));
    let with_blanks = WITH_BLANKS.map(|(args, expected)| (args.to_vec(), expected));
    for (args, expected) in lines.chain(with_blanks) {
        let sentence = config(&args).map(drop).expect_err(&args.join(" "));
        assert!(sentence.contains(expected), "{args:?}: {sentence}");
        assert!(!sentence.contains('\n'), "{args:?}: {sentence}");
    }
}

#[test]
fn safe_settings_are_accepted() {
    for args in [
        &[
            "--grpc-listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ][..],
        &["--grpc-listen", "[::1]:5"],
        &["--grpc-listen", "[::ffff:127.0.0.1]:5"],
        &["--grpc-listen", "127.9.9.9:5"],
        &["--grpc-listen", "localhost:5"],
        &["--admin-listen", "off"],
        &[
            "--grpc-listen",
            "127.0.0.1:5",
            "--admin-listen",
            "127.0.0.2:5",
        ],
        &[
            "--grpc-listen",
            "0.0.0.0:5",
            "--machine-id",
            "1",
            "--allow-plaintext",
        ],
        &[
            "--grpc-listen",
            "0.0.0.0:5",
            "--machine-range",
            "0-9",
            "--allow-plaintext=true",
        ],
        &["--max-wait-ms", "0"],
        &["--log-level", "warn,vesta_service=trace"],
        &["--gen-method", "3", "--id-version", "1"],
    ] {
        assert_eq!(config(args).map(drop), Ok(()), "{args:?}");
    }
}

#[test]
fn a_command_line_that_clap_refuses_is_a_usage_error() {
    for args in [&["--bogus"][..], &["stray"], &["--machine-id"]] {
        assert!(
            matches!(raw(&[Api::Rest], args), Err(Error::Usage(_))),
            "{args:?}"
        );
    }
}

//! Configurations that are accepted, those that are refused, and in which words.

use std::fs;
use std::time::Duration;

use vesta_boot::commands::{Command, LegacySystem, SegmentCommand, StoreCommand};
use vesta_boot::settings::{LogFormat, Machine, Number, Values, settings};
use vesta_boot::{Config, Error, Invocation, Role};
use vesta_intf::{GenMethod, IdMeta, SequenceStart, UnixMillis};
use vesta_service::{ClaimOrder, SegmentMode, Timing};

fn raw(role: Role, args: &[&str]) -> Result<Values, Error> {
    match Invocation::read(role, args)? {
        Invocation::Run(raw) | Invocation::PrintConfig(raw) | Invocation::Command(raw, _) => {
            Ok(raw)
        }
        Invocation::Token(_) | Invocation::Help(_) => unreachable!("they have no settings"),
    }
}

fn config(args: &[&str]) -> Result<Config, String> {
    let raw = raw(Role::Server, args).map_err(|error| error.to_string())?;
    Config::check(&raw).map_err(|error| error.to_string())
}

/// A file with this text, and the flags that name it.
fn with_file(text: &str, args: &[&str]) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vesta.toml");
    fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("a plain path");
    config(&[&["--config", path], args].concat())
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    for (role, listen, admin, method) in [
        (Role::Server, "127.0.0.1:50051", "127.0.0.1:50052", GenMethod::Central),
        (Role::Rest, "127.0.0.1:8088", "127.0.0.1:8089", GenMethod::Rest),
    ] {
        let config = Config::defaults(role);
        assert_eq!(config.listen.to_string(), listen);
        assert_eq!(config.admin_listen.map(|a| a.to_string()).as_deref(), Some(admin));
        assert_eq!(config.ids.gen_method, method);
        assert_eq!(config.ids.layout, IdMeta::MAX_PEAK);
        assert_eq!(config.ids.populator.name(), "lock");
        assert_eq!((config.ids.version, config.ids.namespace.as_str()), (0, "default"));
        assert_eq!(config.ids.sequence_start, SequenceStart::Zero);
        assert_eq!(config.state_dir.to_str(), Some("vesta-data"));
        assert_eq!(config.limits.max_wait, Duration::from_secs(2));
        assert_eq!(config.limits.request_timeout, Duration::from_secs(2));
        assert_eq!(config.limits.drain_limit, Duration::from_secs(10));
        assert_eq!(config.limits.max_connections, 4096);
        assert!(config.limits.workers >= 1 && !config.allow_plaintext);
        assert_eq!((config.log.format, config.log.level.as_str()), (LogFormat::Human, "info"));
        assert!(config.store.auto_init && !config.store.wait_for_store);
        assert_eq!(config.store.request_timeout, None);
        assert_eq!(config.lease, Some(Timing::ONE_HOST));
        match config.machine {
            Machine::Pool { store, range: None, count: 1, order: ClaimOrder::Stable } => {
                assert_eq!(store.expose(), "sqlite:vesta-data/vesta.db");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let file = "layout = \"snowflake\"\nmax_wait_ms = 7\ngen_method = 0\n[machine]\nid = 3\n";
    let config = with_file(file, &["--max-wait-ms", "9"]).expect("right settings");
    assert_eq!(config.ids.layout, IdMeta::SNOWFLAKE);
    assert_eq!(config.limits.max_wait, Duration::from_millis(9));
    assert!(matches!(config.machine, Machine::Fixed(Number::Id(3))));
    assert_eq!(config.limits.request_timeout, Duration::from_secs(2));
}

#[test]
fn the_layouts_of_others_that_make_ids_can_be_chosen() {
    for meta in IdMeta::FOREIGN.into_iter().filter(|meta| meta.check_generates().is_ok()) {
        let config = config(&["--layout", meta.name()]).expect("right settings");
        assert_eq!((config.ids.layout, config.ids.gen_method), (meta, GenMethod::Embed));
    }
    let file = "layout = \"sonyflake\"\n[machine]\nid = 65535\n";
    assert_eq!(with_file(file, &[]).expect("right settings").ids.layout, IdMeta::SONYFLAKE);
}

#[test]
fn a_tick_can_begin_at_a_random_number() {
    let file = "layout = \"snowflake\"\nsequence_start = \"random:100\"\n";
    let config = with_file(file, &[]).expect("right settings");
    assert_eq!(config.ids.sequence_start, SequenceStart::Random(100));
    let config = with_file(file, &["--sequence-start", "random:4096"]).expect("right settings");
    assert_eq!(config.ids.sequence_start, SequenceStart::Random(4096));
    let config = with_file(file, &["--sequence-start=zero"]).expect("right settings");
    assert_eq!(config.ids.sequence_start, SequenceStart::Zero);
    let raw = raw(Role::Server, &["--sequence-start", "random:7"]).expect("right settings");
    let printed = Config::check(&raw).expect("right settings").print(&raw);
    assert!(printed.contains("\nsequence_start = \"random:7\""), "{printed}");
}

#[test]
fn each_way_to_a_machine_id_is_understood() {
    let machine = |args: &[&str]| format!("{:?}", config(args).expect("right settings").machine);
    assert_eq!(machine(&["--machine-id", "1023"]), "Fixed(Id(1023))");
    assert_eq!(machine(&["--machine-ordinal"]), "Fixed(HostOrdinal)");
    assert_eq!(machine(&["--machine-ordinal=true"]), "Fixed(HostOrdinal)");
    assert_eq!(machine(&["--machine-id", "5", "--stateless"]), "Stateless(5)");
    let map = machine(&["--machine-ips", "10.0.0.1=1,fd00::1=7"]);
    assert!(map.starts_with("Fixed(IpMap") && map.contains("10.0.0.1: 1"), "{map}");
    assert_eq!(
        machine(&["--machine-range", "924-1023", "--state-dir", "/var/lib/vesta/"]),
        "Pool { store: \"sqlite:/var/lib/vesta/vesta.db\", range: Some(924..=1023), count: 1, \
         order: Stable }"
    );
    assert_eq!(
        machine(&["--machine-count", "64", "--machine-claim-order", "lowest"]),
        "Pool { store: \"sqlite:vesta-data/vesta.db\", range: None, count: 64, order: Lowest }"
    );
    // What is the default may be said.
    let said = ["--machine-count", "1", "--machine-strategy", "lease", "--machine-id", "7"];
    assert_eq!(machine(&said), "Fixed(Id(7))");
}

#[test]
fn a_number_of_ones_own_can_be_reserved_in_a_store() {
    for (number, expected) in [
        (&["--machine-id", "5"][..], "Id(5)"),
        (&["--machine-ips", "10.0.0.1=1"], "IpMap("),
        (&["--machine-ordinal"], "HostOrdinal"),
    ] {
        let args = [number, &["--machine-store", "mysql://u:pw@h/d"]].concat();
        let config = config(&args).expect("right settings");
        match &config.machine {
            Machine::Reserved { store, number } => {
                assert_eq!(store.expose(), "mysql://u:pw@h/d");
                assert!(format!("{number:?}").starts_with(expected), "{number:?}");
            }
            other => panic!("{other:?}"),
        }
        // Who names a machine ID wants it back soon.
        assert_eq!(config.lease, Some(Timing::ONE_HOST));
    }
}

#[test]
fn a_machine_id_can_be_used_once() {
    for url in ["sqlite:v.db", "mysql://h/d", "mariadb://h/d", "postgresql://h/d"] {
        let args = ["--machine-strategy", "disposable", "--machine-store", url];
        let config = config(&args).expect("right settings");
        assert!(matches!(&config.machine, Machine::Disposable { store } if store.expose() == url));
        assert!(config.lease.is_none(), "it is not renewed");
    }
    let args = ["--machine-strategy", "disposable", "--machine-request-timeout-ms", "700"];
    let config = config(&args).expect("right settings");
    assert_eq!(config.store.request_timeout, Some(Duration::from_millis(700)));
}

#[test]
fn durations_are_the_stores_own_unless_they_are_chosen() {
    let lease = |args: &[&str]| config(args).expect("right settings").lease.expect("a lease");
    for (args, own) in [
        (&[][..], Timing::ONE_HOST),
        (&["--machine-id", "7"], Timing::FILE),
        (&["--machine-store", "mysql://h/d"], Timing::NETWORK),
        (&["--machine-store", "etcds://h"], Timing::NETWORK),
        (&["--machine-store", "redis://h"], Timing::IN_MEMORY),
    ] {
        assert_eq!(lease(args), own, "{args:?}");
    }
    let store = ["--machine-store", "mysql://h/d", "--machine-request-timeout-ms", "500"];
    let config = config(&[&store[..], &["--machine-window-ms", "90000"]].concat());
    let config = config.expect("right settings");
    let timing = Timing {
        window: Duration::from_secs(90),
        request_timeout: Duration::from_millis(500),
        ..Timing::NETWORK
    };
    assert_eq!(config.lease, Some(timing));
    assert_eq!(config.store.request_timeout, Some(Duration::from_millis(500)));
}

#[test]
fn a_command_for_the_store_takes_the_settings_on_either_side() {
    let before = ["--machine-store", "etcd://h", "--namespace", "orders", "store", "free", "7"];
    let after = ["store", "free", "7", "--machine-store", "etcd://h", "--namespace", "orders"];
    for args in [before, after] {
        let Ok(Invocation::Command(raw, Command::Store { command, .. })) =
            Invocation::read(Role::Server, args)
        else {
            panic!("{args:?}")
        };
        assert_eq!(command, StoreCommand::Free { machine: 7 });
        let config = Config::check(&raw).expect("right settings");
        assert_eq!(config.ids.namespace, "orders");
        assert_eq!(config.machine.store().map(|store| store.expose()), Some("etcd://h"));
    }
    let command = |args: &[&str]| match Invocation::read(Role::Rest, args) {
        Ok(Invocation::Command(_, Command::Store { command, .. })) => command,
        other => panic!("{args:?}: {other:?}"),
    };
    assert_eq!(command(&["store", "init"]), StoreCommand::Init);
    assert_eq!(command(&["store", "show", "--json"]), StoreCommand::Show { json: true });
    assert_eq!(
        command(&["store", "raise-floor", "--to", "2026-01-01T00:00:00Z", "--yes"]),
        StoreCommand::RaiseFloor { to: Some(UnixMillis(1_767_225_600_000)) }
    );
    match command(&["store", "import", "leaf", "--from", "zookeeper://u:s3cret@h/x"]) {
        StoreCommand::Import { system: LegacySystem::Leaf, from } => {
            assert_eq!(from.expose(), "zookeeper://u:s3cret@h/x");
            assert!(!format!("{from:?}").contains("s3cret"));
        }
        other => panic!("{other:?}"),
    }
    for args in [&["store"][..], &["store", "free"], &["store", "free", "x"], &["store", "import"]]
    {
        assert!(matches!(raw(Role::Rest, args), Err(Error::Usage(_))), "{args:?}");
    }
}

#[test]
fn a_layout_of_ones_own_is_described_in_the_file() {
    let table = "[layout.custom]\ntime_bits = 32\nseq_bits = 16\nmachine_bits = 8\n\
        unit = \"second\"\nepoch = \"2026-01-01T00:00:00Z\"\n";
    let config = with_file(table, &["--machine-id", "255"]).expect("right settings");
    assert_eq!(config.ids.layout.name(), "custom");
    assert_eq!(config.ids.layout.total_bits(), 56);
    assert_eq!(config.ids.layout.spec().epoch.to_string(), "2026-01-01T00:00:00.000Z");
    // It has no genMethod bits, so that the server's default has nowhere to go.
    assert_eq!(config.ids.gen_method, GenMethod::Embed);

    let config = with_file(table, &["--layout", "js-safe"]).expect("a flag wins");
    assert_eq!(config.ids.layout, IdMeta::JS_SAFE);
    let config = with_file(table, &["--layout", "custom"]).expect("the same as the file");
    assert_eq!(config.ids.layout.name(), "custom");
}

#[test]
fn what_is_wrong_is_refused_with_one_sentence_that_says_what_to_do() {
    let open = ["--listen", "0.0.0.0:5", "--machine-id", "1"];
    for (args, expected) in [
        // Single settings.
        (
            &["--listen", "here"][..],
            "listen must be an IP address and a port, such as 127.0.0.1:50051, but is `here` (flag --listen)",
        ),
        (&["--listen", "127.0.0.1:70000"], "listen must be an IP address and a port"),
        (&["--admin-listen", "on"], "admin.listen must be an IP address and a port"),
        (
            &["--layout", "twitter"],
            "layout must be max-peak, min-granularity, snowflake, uid, js-safe, discord, instagram, \
             sonyflake or custom, but is `twitter`",
        ),
        (
            &["--layout", "mastodon"],
            "but is `mastodon` (flag --layout), which is for explaining IDs only",
        ),
        (
            &["--layout", "vesta-old"],
            "but is `vesta-old` (flag --layout), which is for explaining IDs only",
        ),
        (&["--layout", "custom"], "be described by [layout.custom] in the file"),
        (&["--populator", "spin"], "populator must be lock, sync or atomic, but is `spin`"),
        (&["--gen-method", "4"], "gen_method must be 0 to 3, but is `4` (flag --gen-method)"),
        (&["--gen-method", "1", "--layout", "snowflake"], "gen_method must be 0, but is `1`"),
        (&["--id-version", "2"], "version must be 0 to 1, but is `2` (flag --id-version)"),
        (&["--id-version", "1", "--layout", "js-safe"], "version must be 0, but is `1`"),
        (
            &["--sequence-start", "random"],
            "sequence_start must be zero or random:N with N from 1 to 1048576 in this layout, but \
             is `random` (flag --sequence-start)",
        ),
        (&["--sequence-start", "random:0"], "sequence_start must be zero or random:N"),
        (
            &["--sequence-start", "random:4097", "--layout", "snowflake"],
            "N from 1 to 4096 in this layout, but is `random:4097`",
        ),
        (&["--machine-id", "1024"], "machine.id must be 0 to 1023, but is `1024`"),
        (&["--machine-id", "256", "--layout", "js-safe"], "machine.id must be 0 to 255"),
        (&["--machine-id", "-1"], "machine.id must be 0 to 1023, but is `-1`"),
        (&["--machine-id", "seven"], "machine.id must be 0 to 1023, but is `seven`"),
        (
            &["--machine-ips", "10.0.0.1"],
            "machine.ips must be a list such as 10.0.0.1=1,10.0.0.2=2",
        ),
        (&["--machine-ips", "10.0.0.1=1,10.0.0.1=2"], "machine.ips"),
        (&["--machine-ips", "127.0.0.1=1"], "127.0.0.1 does not name one host"),
        (&["--machine-ips", "10.0.0.1=1024"], "machine.ips must hold machine IDs of 0 to 1023"),
        (&["--machine-ordinal=yes"], "machine.ordinal must be true or false, but is `yes`"),
        (&["--machine-store", "vesta.db"], "machine.store must be a URL such as sqlite:"),
        (&["--machine-range", "5"], "machine.range must be FROM-TO within 0-1023"),
        (&["--machine-range", "9-3"], "machine.range must be FROM-TO within 0-1023"),
        (&["--machine-range", "0-1024"], "machine.range must be FROM-TO within 0-1023"),
        (&["--namespace", "a b"], "namespace must be 1 to 64 letters"),
        (&["--namespace", ""], "namespace must be 1 to 64 letters"),
        (&["--namespace", "../x/y"], "namespace must be 1 to 64 letters"),
        (&["--state-dir", ""], "state_dir must be the path of a folder"),
        (&["--max-wait-ms", "600001"], "max_wait_ms must be 0 to 600000"),
        (&["--request-timeout-ms", "0"], "request_timeout_ms must be 1 to 600000"),
        (&["--drain-limit-ms", "1s"], "drain_limit_ms must be 0 to 600000, but is `1s`"),
        (&["--max-connections", "0"], "max_connections must be 1 to 1000000"),
        (&["--workers", "0"], "workers must be 1 to 512"),
        (&["--log-format", "xml"], "log.format must be human or json, but is `xml`"),
        (&["--log-level", "loud"], "log.level must be error, warn, info, debug, trace or off"),
        (&["--log-level", "h2=loud"], "log.level must be"),
        (&["--allow-plaintext=1"], "allow_plaintext must be true or false"),
        // More than one choice of a machine ID.
        (
            &["--machine-id", "1", "--machine-ordinal"],
            "machine.id and machine.ordinal are both set; keep one",
        ),
        (
            &["--machine-id", "1", "--machine-ips", "10.0.0.1=1"],
            "machine.id and machine.ips are both set",
        ),
        (
            &["--machine-ordinal", "--machine-ips", "10.0.0.1=1"],
            "machine.ips and machine.ordinal are both set",
        ),
        (
            &["--machine-id", "1", "--machine-range", "0-5"],
            "machine.range is for a pool, but machine.id fixes the machine ID",
        ),
        (
            &["--machine-ordinal", "--machine-count", "2"],
            "machine.count is for a pool, but machine.ordinal fixes the machine ID",
        ),
        (
            &["--machine-ips", "10.0.0.1=1", "--machine-claim-order", "lowest"],
            "machine.claim_order is for a pool, but machine.ips fixes the machine ID",
        ),
        // Pools.
        (&["--machine-count", "0"], "machine.count must be 1 to 64, but is `0`"),
        (&["--machine-count", "65"], "machine.count must be 1 to 64, but is `65`"),
        (
            &["--machine-count", "4", "--machine-range", "7-9"],
            "machine.count must be at most the 3 of the pool, but is `4` (flag --machine-count)",
        ),
        (&["--machine-claim-order", "first"], "machine.claim_order must be stable or lowest"),
        (&["--machine-strategy", "once"], "machine.strategy must be lease or disposable"),
        (
            &["--machine-strategy", "disposable", "--machine-store", "redis://:s3cret@h"],
            "machine.store must be an SQL store (sqlite, mysql or postgres) with machine.strategy = \
             \"disposable\", but is `redis://:***@h`",
        ),
        (
            &["--machine-strategy", "disposable", "--machine-id", "3"],
            "uses up a new machine ID at each start, but machine.id is set; remove one of them",
        ),
        (
            &["--machine-strategy", "disposable", "--machine-ips", "10.0.0.1=1"],
            "but machine.ips is set",
        ),
        (&["--machine-strategy", "disposable", "--machine-ordinal"], "but machine.ordinal is set"),
        (&["--machine-strategy", "disposable", "--machine-count", "2"], "but machine.count is set"),
        (
            &["--machine-strategy", "disposable", "--machine-range", "0-9"],
            "but machine.range is set",
        ),
        (
            &["--machine-strategy", "disposable", "--machine-claim-order", "lowest"],
            "but machine.claim_order is set",
        ),
        (&["--machine-strategy", "disposable", "--stateless"], "but stateless is set"),
        // Leases.
        (&["--auto-init=1"], "auto_init must be true or false, but is `1`"),
        (&["--wait-for-store=1"], "wait_for_store must be true or false, but is `1`"),
        (&["--machine-window-ms", "0"], "machine.window_ms must be 1 to 600000, but is `0`"),
        (&["--machine-renew-every-ms", "x"], "machine.renew_every_ms must be 1 to 600000"),
        (
            &["--machine-takeover-grace-ms", "86400001"],
            "machine.takeover_grace_ms must be 1 to 86400000",
        ),
        (
            &["--machine-window-ms", "30000"],
            "takeover_grace must be at least three times window, but it is machine.window_ms = 30000, \
             machine.renew_every_ms = 1500, machine.request_timeout_ms = 1000, \
             machine.takeover_grace_ms = 60000; set all that must change",
        ),
        (&["--machine-renew-every-ms", "2000"], "renew_every must be at most a third of window"),
        (&["--machine-request-timeout-ms", "1600"], "request_timeout must be at most renew_every"),
        (
            &["--machine-id", "1", "--machine-takeover-grace-ms", "60000"],
            "machine.takeover_grace_ms is for a pool, but the machine ID is fixed",
        ),
        (
            &["--machine-id", "1", "--stateless", "--machine-window-ms", "5000"],
            "machine.window_ms is about a machine ID that is kept by renewing it, which stateless = \
             true does not do",
        ),
        (
            &["--machine-id", "1", "--stateless", "--machine-request-timeout-ms", "5000"],
            "machine.request_timeout_ms is about",
        ),
        (
            &["--machine-strategy", "disposable", "--machine-takeover-grace-ms", "60000"],
            "which machine.strategy = \"disposable\" does not do",
        ),
        (&["--stateless"], "stateless = true is for machine.id without machine.store"),
        (
            &["--stateless", "--machine-id", "1", "--machine-store", "sqlite:x"],
            "stateless = true is for",
        ),
        // Segments.
        (
            &["--segment-store", "leaf"],
            "segment.store must be a URL such as sqlite:vesta-data/vesta.db, but is `leaf` (flag \
             --segment-store)",
        ),
        (&["--segment-store", "sqlite:a", "--segment-mode", "loose"], "must be strict or relaxed"),
        (
            &["--segment-store", "sqlite:a", "--segment-max-step", "1000001"],
            "segment.max_step must be 1 to 1000000, but is `1000001`",
        ),
        (
            &["--segment-mode", "relaxed"],
            "segment.mode is for segment mode, which is off; set segment.store too",
        ),
        (&["--segment-max-step", "9"], "segment.max_step is for segment mode, which is off"),
        // Unsafe or clashing listeners.
        (&["--listen", "0.0.0.0:5"], "choose one of machine.id, machine.ips"),
        (&["--listen", "[::]:5"], "choose one of machine.id, machine.ips"),
        (&["--listen", "10.0.0.1:5", "--allow-plaintext"], "choose one of machine.id, machine.ips"),
        (
            &open,
            "listen (0.0.0.0:5) is reachable from other hosts and not encrypted; set tls.cert and \
             tls.key, or set allow_plaintext = true",
        ),
        (
            &["--admin-listen", "0.0.0.0:5"],
            "admin.listen (0.0.0.0:5) is reachable from other hosts and not encrypted",
        ),
        (&["--listen", "127.0.0.1:5", "--admin-listen", "127.0.0.1:5"], "cannot share a port"),
        (&["--listen", "0.0.0.0:5", "--admin-listen", "127.0.0.1:5"], "cannot share a port"),
        // The file.
        (&["--config", "/no/such/file"], "cannot read the configuration /no/such/file"),
    ] {
        let sentence = config(args).map(|config| config.role).expect_err(&args.join(" "));
        assert!(sentence.contains(expected), "{args:?}: {sentence}");
        assert!(!sentence.contains('\n'), "{args:?}: {sentence}");
    }
}

#[test]
fn what_is_safe_is_accepted() {
    for args in [
        &["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"][..],
        &["--listen", "[::1]:5"],
        &["--listen", "[::ffff:127.0.0.1]:5"],
        &["--listen", "127.9.9.9:5"],
        &["--listen", "localhost:5"],
        &["--admin-listen", "off"],
        &["--listen", "127.0.0.1:5", "--admin-listen", "127.0.0.2:5"],
        &["--listen", "0.0.0.0:5", "--machine-id", "1", "--allow-plaintext"],
        &["--listen", "0.0.0.0:5", "--machine-range", "0-9", "--allow-plaintext=true"],
        &["--max-wait-ms", "0"],
        &["--log-level", "warn,vesta_service=trace"],
        &["--gen-method", "3", "--id-version", "1"],
    ] {
        assert_eq!(config(args).map(|config| config.role), Ok(Role::Server), "{args:?}");
    }
}

#[test]
fn a_command_line_that_clap_refuses_is_a_usage_error() {
    for args in [&["--bogus"][..], &["stray"], &["--machine-id"]] {
        assert!(matches!(raw(Role::Rest, args), Err(Error::Usage(_))), "{args:?}");
    }
}

#[test]
fn segment_mode_is_off_unless_its_store_is_named() {
    assert!(config(&[]).expect("right settings").segments.store.is_none());
    let file = "[segment]\nstore = \"mysql://u:s3cret@h/d\"\n";
    let segments = with_file(file, &[]).expect("right settings").segments;
    assert_eq!(segments.store.as_ref().expect("it is on").expose(), "mysql://u:s3cret@h/d");
    assert_eq!((segments.mode, segments.max_step), (SegmentMode::Strict, 1_000_000));
    let flags = ["--segment-mode", "relaxed", "--segment-max-step", "5000"];
    let segments = with_file(file, &flags).expect("right settings").segments;
    assert_eq!((segments.mode, segments.max_step), (SegmentMode::Relaxed, 5000));
    assert!(!format!("{segments:?}").contains("s3cret"));

    let raw = raw(Role::Rest, &["--segment-store", "redis://:s3cret@h"]).expect("right settings");
    let printed = Config::check(&raw).expect("right settings").print(&raw);
    assert!(printed.contains("\n[segment]\nstore = \"redis://:***@h\""), "{printed}");
    assert!(!format!("{raw:?}").contains("s3cret"));
}

#[test]
fn a_command_for_segments_takes_its_store_on_either_side() {
    let command = |args: &[&str]| match Invocation::read(Role::Server, args) {
        Ok(Invocation::Command(raw, Command::Segment(command))) => {
            let config = Config::check(&raw).expect("right settings");
            let store = config.segments.store.expect("it is on");
            assert_eq!(store.expose(), "sqlite:a.db");
            command
        }
        other => panic!("{args:?}: {other:?}"),
    };
    assert_eq!(
        command(&["--segment-store", "sqlite:a.db", "segment", "list", "--json"]),
        SegmentCommand::List { json: true }
    );
    let create = ["segment", "create", "orders", "--step", "1000", "--segment-store=sqlite:a.db"];
    assert_eq!(
        command(&create),
        SegmentCommand::Create { key: "orders".into(), step: 1000, first: 1, description: None }
    );
    assert_eq!(
        command(&[&create[..], &["--first", "7", "--description", "the orders"]].concat()),
        SegmentCommand::Create {
            key: "orders".into(),
            step: 1000,
            first: 7,
            description: Some("the orders".into()),
        }
    );
    for args in [&["segment"][..], &["segment", "create", "orders"], &["segment", "drop"]] {
        assert!(matches!(raw(Role::Rest, args), Err(Error::Usage(_))), "{args:?}");
    }
}

#[test]
fn what_is_printed_can_be_read_again_and_tells_where_it_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vesta.toml");
    let file = "max_wait_ms = 7\n[layout.custom]\ntime_bits = 32\nseq_bits = 16\n\
        machine_bits = 8\nunit = \"second\"\nepoch = 1767225600000\n";
    fs::write(&path, file).expect("a file");
    let args = ["--config", path.to_str().expect("a plain path"), "--listen", "127.0.0.1:9"];
    let first = raw(Role::Rest, &args).expect("right settings");
    let checked = Config::check(&first).expect("right settings");
    let printed = checked.print(&first);

    for (line, origin) in [
        ("#window_ms = 5000", "# default of the store".to_owned()),
        ("#takeover_grace_ms = 60000", "# default of the store".to_owned()),
        ("count = 1", "# default".to_owned()),
        ("listen = \"127.0.0.1:9\"", "# flag --listen".to_owned()),
        ("max_wait_ms = 7", format!("# file {} line 1", path.display())),
        ("populator = \"lock\"", "# default".to_owned()),
    ] {
        let found = printed.lines().find(|it| it.starts_with(line));
        assert!(found.is_some_and(|it| it.ends_with(&origin)), "{line} in\n{printed}");
    }

    fs::write(&path, &printed).expect("a file");
    let again = raw(Role::Rest, &args[..2]).expect("what was printed is a file");
    let again = Config::check(&again).expect("the same settings");
    assert_eq!(format!("{again:?}"), format!("{checked:?}"));
}

#[test]
fn durations_that_were_chosen_are_printed_as_settings() {
    let args = ["--machine-id", "7", "--machine-window-ms", "4000"];
    let raw = raw(Role::Server, &args).expect("right settings");
    let printed = Config::check(&raw).expect("right settings").print(&raw);
    for (line, origin) in [
        ("window_ms = 4000 ", "# flag --machine-window-ms"),
        ("#renew_every_ms = 1000 ", "# default of the state file"),
        ("#request_timeout_ms = 1000 ", "# default of the state file"),
    ] {
        let found = printed.lines().find(|it| it.starts_with(line));
        assert!(found.is_some_and(|it| it.ends_with(origin)), "{line} in\n{printed}");
    }
    assert!(!printed.contains("takeover_grace_ms"), "nobody takes a fixed one over\n{printed}");
}

/// A URL of every scheme with a password in it, also malformed ones.
const PLANTED: &[&str] = &[
    "mysql://vesta:pl4nted-s3cret@db:3306/ids?ssl=on",
    "mariadb://vesta@db/ids?password=pl4nted-s3cret",
    "postgres://vesta:pl4nted-s3cret@db:5432/ids",
    "postgresql://vesta@db/ids?sslpassword=pl4nted-s3cret",
    "redis://:pl4nted-s3cret@cache:6379/0",
    "rediss://vesta:pl4nted-s3cret@cache",
    "zookeeper://vesta:pl4nted-s3cret@a:2181,b:2181/vesta",
    "etcd://vesta:pl4nted-s3cret@a:2379,b:2379",
    "etcds://vesta:pl4nted-s3cret@a",
    "sqlite://vesta:pl4nted-s3cret@h/d",
    "mongodb://vesta:pl4nted-s3cret@db",
    "mysql:vesta:pl4nted-s3cret@db",
    "vesta:pl4nted-s3cret@db",
    ":pl4nted-s3cret@db",
    "//vesta:pl4nted-s3cret@db",
];

#[test]
fn a_planted_password_is_never_shown() {
    for url in PLANTED {
        let raw = raw(Role::Server, &["--machine-store", url]).expect("a command line");
        let mut shown = vec![format!("{raw:?}")];
        match Config::check(&raw) {
            Ok(config) => {
                shown.push(format!("{config:#?}"));
                shown.push(config.print(&raw));
                assert_eq!(config.machine.store().map(|store| store.expose()), Some(*url));
            }
            Err(error) => shown.push(error.to_string()),
        }
        let segments = self::raw(Role::Server, &["--segment-store", url]).expect("a command line");
        shown.push(format!("{segments:?}"));
        match Config::check(&segments) {
            Ok(config) => shown.extend([format!("{config:#?}"), config.print(&segments)]),
            Err(error) => shown.push(error.to_string()),
        }
        // In the wrong place it must not come back in the error either.
        let flags = ["--machine-id", "--layout", "--listen", "--machine-ips", "--segment-mode"];
        for flag in flags.into_iter().filter(|_| url.contains("://")) {
            let error = self::config(&[flag, url]).map(|config| config.role).expect_err(flag);
            shown.push(error);
        }
        let import = Invocation::read(Role::Server, ["store", "import", "leaf", "--from", url]);
        shown.push(format!("{import:?}"));
        for text in shown {
            assert!(!text.contains("s3cret"), "{url}: {text}");
        }
    }
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/vesta.example.toml");

#[test]
fn the_example_file_changes_nothing_as_it_is() {
    for role in [Role::Server, Role::Rest] {
        let raw = raw(role, &["--config", EXAMPLE]).expect("a right file");
        for arg in settings(role).get_arguments() {
            let value = raw.get(arg.get_id().as_str());
            assert!(value.is_none_or(|value| value.origin == "default"), "{arg}: {value:?}");
        }
    }
}

#[test]
fn the_example_file_shows_every_setting_with_its_default() {
    let text = fs::read_to_string(EXAMPLE).expect("the example");
    // `#key = value` and `#[table]` are settings; `# text` is text.
    let is_setting =
        |rest: &str| rest.starts_with('[') || rest.starts_with(|c: char| c.is_ascii_lowercase());
    let active: String = text
        .lines()
        .filter_map(|line| line.strip_prefix('#').filter(|rest| is_setting(rest)))
        .map(|line| format!("{line}\n"))
        .collect();
    // A custom layout and a named one exclude each other in TOML.
    let (named, custom) = active.split_once("[layout.custom]").expect("a custom layout");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vesta.toml");
    let args = ["--config", path.to_str().expect("a plain path")];

    fs::write(&path, named).expect("a file");
    let raw_settings = raw(Role::Server, &args).expect("every setting has its type");
    for arg in settings(Role::Server).get_arguments() {
        let value = raw_settings.get(arg.get_id().as_str());
        let value = value.unwrap_or_else(|| panic!("{arg} is missing"));
        assert!(value.origin.starts_with("file "), "{arg} is missing");
        if let Some(default) = arg.get_default_values().first() {
            assert_eq!(default.to_str(), Some(&*value.text), "{arg}");
        }
    }

    fs::write(&path, format!("[layout.custom]{custom}")).expect("a file");
    let layout = Config::check(&raw(Role::Server, &args).expect("a right table"));
    assert_eq!(layout.expect("a layout that adds up").ids.layout.name(), "custom");
}

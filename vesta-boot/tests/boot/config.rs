//! Accepted configurations; refused ones, and their errors.

mod refused;
mod shown;

use std::fs;
use std::time::Duration;

use vesta_boot::commands::{Command, LegacySystem, StoreCommand, StoreImport};
use vesta_boot::segments::{NewSegment, SegmentCommand};
use vesta_boot::settings::{LogFormat, Machine, Number, Values, settings};
use vesta_boot::{Api, Config, Error, Invocation};
use vesta_explain::layouts;
use vesta_intf::{GenMethod, IdMeta, SequenceStart, UnixMillis};
use vesta_service::lease::{ClaimOrder, Timing};
use vesta_store::SegmentTable;

fn raw(apis: &[Api], args: &[&str]) -> Result<Values, Error> {
    match Invocation::read("vesta", apis, args)? {
        Invocation::Run(raw) | Invocation::PrintConfig(raw) | Invocation::Command(raw, _) => {
            Ok(raw)
        }
        Invocation::Token(..) | Invocation::Key(..) | Invocation::Help(_) => {
            unreachable!("they have no settings")
        }
    }
}

fn config(args: &[&str]) -> Result<Config, String> {
    let raw = raw(&[Api::Grpc], args).map_err(|error| error.to_string())?;
    Config::check(&raw).map_err(|error| error.to_string())
}

/// Configuration from a file with this text, and more flags.
fn with_file(text: &str, args: &[&str]) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vesta.toml");
    fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("a plain path");
    config(&[&["--config", path], args].concat())
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    for (apis, method) in [
        (&[Api::Grpc][..], GenMethod::Central),
        (&[Api::Rest], GenMethod::Rest),
        (&Api::ALL, GenMethod::Rest),
    ] {
        let config = Config::defaults(apis);
        assert_eq!(config.http_listen.to_string(), "127.0.0.1:8088");
        assert_eq!(config.grpc_listen.to_string(), "127.0.0.1:50051");
        assert_eq!(
            config.admin_listen.map(|a| a.to_string()).as_deref(),
            Some("127.0.0.1:8089")
        );
        assert_eq!(config.limits.idle_timeout, Duration::from_secs(75));
        assert_eq!(config.ids.gen_method, method);
        assert_eq!(config.ids.layout, IdMeta::MAX_PEAK);
        assert_eq!(config.ids.populator.name(), "atomic");
        assert_eq!(
            (config.ids.version, config.ids.namespace.as_str()),
            (0, "default")
        );
        assert_eq!(config.ids.sequence_start, SequenceStart::Zero);
        assert_eq!(
            config.state_dir,
            vesta_service::options::default_state_dir()
        );
        assert_eq!(config.limits.max_wait, Duration::from_secs(2));
        assert_eq!(config.limits.request_timeout, Duration::from_secs(2));
        assert_eq!(config.limits.drain_limit, Duration::from_secs(10));
        assert_eq!(config.limits.max_connections, 4096);
        assert!(config.limits.workers >= 1 && !config.allow_plaintext);
        assert_eq!(
            (config.log.format, config.log.level.as_str()),
            (LogFormat::Human, "info")
        );
        assert!(config.store.auto_init && !config.store.wait_for_store);
        assert_eq!(config.store.request_timeout, None);
        assert_eq!(config.lease, Some(Timing::ONE_HOST));
        match config.machine {
            Machine::Pool {
                store,
                range: None,
                count: 1,
                order: ClaimOrder::Stable,
            } => {
                let folder = vesta_service::options::default_state_dir();
                assert_eq!(
                    store.expose(),
                    format!("sqlite:{}/vesta.db", folder.display())
                );
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
fn layouts_of_other_systems_can_be_chosen() {
    for meta in layouts::FOREIGN
        .into_iter()
        .filter(|meta| meta.check_generates().is_ok())
    {
        let config = config(&["--layout", meta.name()]).expect("right settings");
        assert_eq!(
            (config.ids.layout, config.ids.gen_method),
            (meta, GenMethod::Embed)
        );
    }
    let file = "layout = \"sonyflake\"\n[machine]\nid = 65535\n";
    assert_eq!(
        with_file(file, &[]).expect("right settings").ids.layout,
        layouts::SONYFLAKE
    );
}

#[test]
fn the_sequence_can_start_at_a_random_number() {
    let file = "layout = \"snowflake\"\nsequence_start = \"random:100\"\n";
    let config = with_file(file, &[]).expect("right settings");
    assert_eq!(config.ids.sequence_start, SequenceStart::Random(100));
    let config = with_file(file, &["--sequence-start", "random:4096"]).expect("right settings");
    assert_eq!(config.ids.sequence_start, SequenceStart::Random(4096));
    let config = with_file(file, &["--sequence-start=zero"]).expect("right settings");
    assert_eq!(config.ids.sequence_start, SequenceStart::Zero);
    let raw = raw(&[Api::Grpc], &["--sequence-start", "random:7"]).expect("right settings");
    let printed = Config::check(&raw).expect("right settings").print(&raw);
    assert!(
        printed.contains("\nsequence_start = \"random:7\""),
        "{printed}"
    );
}

#[test]
fn each_source_of_machine_ids_can_be_chosen() {
    let machine = |args: &[&str]| format!("{:?}", config(args).expect("right settings").machine);
    assert_eq!(machine(&["--machine-id", "1023"]), "Fixed(Id(1023))");
    assert_eq!(machine(&["--machine-id", "ordinal"]), "Fixed(HostOrdinal)");
    assert_eq!(
        machine(&["--machine-id=ordinal:vesta"]),
        "Fixed(HostOrdinalOf(\"vesta\"))"
    );
    assert_eq!(
        machine(&["--machine-id", "5", "--machine-strategy", "stateless"]),
        "Stateless(5)"
    );
    let map = machine(&["--machine-id", "10.0.0.1=1,fd00::1=7"]);
    assert!(
        map.starts_with("Fixed(IpMap") && map.contains("10.0.0.1: 1"),
        "{map}"
    );
    assert_eq!(
        machine(&[
            "--machine-range",
            "924-1023",
            "--state-dir",
            "/var/lib/vesta/"
        ]),
        "Pool { store: \"sqlite:/var/lib/vesta/vesta.db\", range: Some(924..=1023), count: 1, \
         order: Stable }"
    );
    assert_eq!(
        machine(&[
            "--state-dir=vesta-data",
            "--machine-count=1024",
            "--machine-strategy=lowest"
        ]),
        "Pool { store: \"sqlite:vesta-data/vesta.db\", range: None, count: 1024, order: Lowest }"
    );
    // A setting may repeat its default.
    let said = [
        "--machine-count",
        "1",
        "--machine-strategy",
        "lease",
        "--machine-id",
        "7",
    ];
    assert_eq!(machine(&said), "Fixed(Id(7))");
}

#[test]
fn a_region_is_part_of_the_layout() {
    let args = ["--machine-region", "2/3", "--machine-id", "383"];
    let config = config(&args).expect("right settings");
    assert_eq!(config.ids.layout.machines(), 256..=383);
    let file = "[machine]\nregion = \"7/3\"\n";
    let config = with_file(file, &["--layout", "snowflake"]).expect("right settings");
    assert_eq!(
        config.ids.layout,
        IdMeta::SNOWFLAKE.in_region(3, 7).expect("a region")
    );
}

#[test]
fn a_fixed_machine_id_can_be_reserved_in_a_store() {
    for (number, expected) in [
        (&["--machine-id", "5"][..], "Id(5)"),
        (&["--machine-id", "10.0.0.1=1"], "IpMap("),
        (&["--machine-id", "ordinal"], "HostOrdinal"),
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
        // A fixed machine ID must be available again soon after a crash.
        assert_eq!(config.lease, Some(Timing::ONE_HOST));
    }
}

#[test]
fn a_machine_id_can_be_used_once() {
    for url in [
        "sqlite:v.db",
        "mysql://h/d",
        "mariadb://h/d",
        "postgresql://h/d",
    ] {
        let args = ["--machine-strategy", "disposable", "--machine-store", url];
        let config = config(&args).expect("right settings");
        assert!(matches!(&config.machine, Machine::Disposable { store } if store.expose() == url));
        assert!(config.lease.is_none(), "it is not renewed");
    }
    let args = [
        "--machine-strategy",
        "disposable",
        "--machine-request-timeout-ms",
        "700",
    ];
    let config = config(&args).expect("right settings");
    assert_eq!(
        config.store.request_timeout,
        Some(Duration::from_millis(700))
    );
}

#[test]
fn durations_default_to_those_of_the_store() {
    let lease = |args: &[&str]| {
        config(args)
            .expect("right settings")
            .lease
            .expect("a lease")
    };
    for (args, own) in [
        (&[][..], Timing::ONE_HOST),
        (&["--machine-id", "7"], Timing::FILE),
        (&["--machine-store", "mysql://h/d"], Timing::NETWORK),
        (&["--machine-store", "etcds://h"], Timing::NETWORK),
        (&["--machine-store", "redis://h"], Timing::IN_MEMORY),
    ] {
        assert_eq!(lease(args), own, "{args:?}");
    }
    let store = [
        "--machine-store",
        "mysql://h/d",
        "--machine-request-timeout-ms",
        "500",
    ];
    let config = config(&[&store[..], &["--machine-window-ms", "90000"]].concat());
    let config = config.expect("right settings");
    let timing = Timing {
        window: Duration::from_secs(90),
        request_timeout: Duration::from_millis(500),
        ..Timing::NETWORK
    };
    assert_eq!(config.lease, Some(timing));
    assert_eq!(
        config.store.request_timeout,
        Some(Duration::from_millis(500))
    );
}

#[test]
fn a_command_for_the_store_takes_the_settings_on_either_side() {
    let before = [
        "--machine-store",
        "etcd://h",
        "--namespace",
        "orders",
        "store",
        "free",
        "7",
    ];
    let after = [
        "store",
        "free",
        "7",
        "--machine-store",
        "etcd://h",
        "--namespace",
        "orders",
    ];
    for args in [before, after] {
        let Ok(Invocation::Command(raw, Command::Store { command, .. })) =
            Invocation::read("vesta", &[Api::Grpc], args)
        else {
            panic!("{args:?}")
        };
        assert_eq!(command, StoreCommand::Free { machine: 7 });
        let config = Config::check(&raw).expect("right settings");
        assert_eq!(config.ids.namespace, "orders");
        assert_eq!(
            config.machine.store().map(|store| store.expose()),
            Some("etcd://h")
        );
    }
    let command = |args: &[&str]| match Invocation::read("vesta", &[Api::Rest], args) {
        Ok(Invocation::Command(_, Command::Store { command, .. })) => command,
        other => panic!("{args:?}: {other:?}"),
    };
    assert_eq!(command(&["store", "init"]), StoreCommand::Init);
    assert_eq!(
        command(&["store", "show", "-o", "json"]),
        StoreCommand::Show
    );
    assert_eq!(
        command(&[
            "store",
            "raise-floor",
            "--to",
            "2026-01-01T00:00:00Z",
            "--yes"
        ]),
        StoreCommand::RaiseFloor {
            to: Some(UnixMillis(1_767_225_600_000))
        }
    );
    match command(&[
        "store",
        "import",
        "leaf",
        "--from",
        "zookeeper://u:s3cret@h/x",
    ]) {
        StoreCommand::Import(import) => {
            assert_eq!(
                (import.system, &import.cosid_namespace),
                (LegacySystem::Leaf, &None)
            );
            assert_eq!(import.from.expose(), "zookeeper://u:s3cret@h/x");
            assert!(!format!("{import:?}").contains("s3cret"));
        }
        other => panic!("{other:?}"),
    }
    for args in [
        &["store"][..],
        &["store", "free"],
        &["store", "free", "x"],
        &["store", "import"],
    ] {
        assert!(
            matches!(raw(&[Api::Rest], args), Err(Error::Usage(_))),
            "{args:?}"
        );
    }
}

#[test]
fn an_import_from_cosid_names_its_namespace() {
    let from = ["--from", "redis://:s3cret@h"];
    let read = |words: &[&str]| Invocation::read("vesta", &[Api::Grpc], [words, &from].concat());
    match read(&["store", "import", "cosid", "--cosid-namespace", "shop"]) {
        Ok(Invocation::Command(_, Command::Store { command, .. })) => {
            let from = "redis://:s3cret@h".parse().expect("a URL");
            let (system, cosid_namespace) = (LegacySystem::CosId, Some("shop".to_owned()));
            let import = StoreImport {
                system,
                from,
                cosid_namespace,
            };
            assert_eq!(command, StoreCommand::Import(Box::new(import)));
        }
        other => panic!("{other:?}"),
    }
    let words = ["segment", "import", "cosid", "--cosid-namespace", "shop"];
    let steps = [None, Some("7")].map(|step| {
        let more = step.map_or(vec![], |step| vec!["--step", step]);
        match read(&[&words[..], &more].concat()) {
            Ok(Invocation::Command(
                _,
                Command::Segment {
                    command: SegmentCommand::Import(import),
                    ..
                },
            )) => import.step,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(steps, [100, 7]);
    for words in [
        &["store", "import", "cosid"][..],
        &["segment", "import", "cosid"],
        &["segment", "import", "leaf", "--cosid-namespace", "shop"],
        &[
            "segment",
            "import",
            "cosid",
            "--cosid-namespace",
            "shop",
            "--step",
            "0",
        ],
    ] {
        assert!(matches!(read(words), Err(Error::Usage(_))), "{words:?}");
    }
}

#[test]
fn a_custom_layout_is_described_in_the_file() {
    let table = "[layout.custom]\ntime_bits = 32\nseq_bits = 16\nmachine_bits = 8\n\
        unit = \"second\"\nepoch = \"2026-01-01T00:00:00Z\"\n";
    let config = with_file(table, &["--machine-id", "255"]).expect("right settings");
    assert_eq!(config.ids.layout.name(), "custom");
    assert_eq!(config.ids.layout.total_bits(), 56);
    assert_eq!(
        config.ids.layout.spec().epoch.to_string(),
        "2026-01-01T00:00:00.000Z"
    );
    // The layout has no genMethod bits, so the server's default does not apply.
    assert_eq!(config.ids.gen_method, GenMethod::Embed);

    let config = with_file(table, &["--layout", "js-safe"]).expect("a flag wins");
    assert_eq!(config.ids.layout, IdMeta::JS_SAFE);
    let config = with_file(table, &["--layout", "custom"]).expect("the same as the file");
    assert_eq!(config.ids.layout.name(), "custom");
}

#[test]
fn compat_tinyid_defaults_to_tinyids_address_and_table() {
    let flags = ["--compat=tinyid", "--segment-store=mysql://h/d"];
    let raw_of = |flags: &[&str]| raw(&[Api::Rest], flags).expect("right settings");
    let config = Config::check(&raw_of(&flags)).expect("right settings");
    assert_eq!(config.http_listen.to_string(), "127.0.0.1:9999");
    assert_eq!(config.segments.table, Some(SegmentTable::Tinyid));
    let flags = [&flags[..], &["--http-listen=127.0.0.1:5"]].concat();
    let config = Config::check(&raw_of(&flags)).expect("right settings");
    assert_eq!(config.http_listen.to_string(), "127.0.0.1:5");
}

#[test]
fn segment_mode_is_off_without_a_store() {
    assert!(
        config(&[])
            .expect("right settings")
            .segments
            .store
            .is_none()
    );
    let file = "[segment]\nstore = \"mysql://u:s3cret@h/d\"\n";
    let segments = with_file(file, &[]).expect("right settings").segments;
    assert_eq!(
        segments.store.as_ref().expect("it is on").expose(),
        "mysql://u:s3cret@h/d"
    );
    assert_eq!(segments.max_step, 1_000_000);
    let flags = ["--segment-max-step", "5000"];
    let segments = with_file(file, &flags).expect("right settings").segments;
    assert_eq!(segments.max_step, 5000);
    assert!(!format!("{segments:?}").contains("s3cret"));

    let raw = raw(&[Api::Rest], &["--segment-store", "redis://:s3cret@h"]).expect("right settings");
    let printed = Config::check(&raw).expect("right settings").print(&raw);
    assert!(
        printed.contains("\n[segment]\nstore = \"redis://:***@h\""),
        "{printed}"
    );
    assert!(!format!("{raw:?}").contains("s3cret"));
}

#[test]
fn a_command_for_segments_takes_its_store_on_either_side() {
    let command = |args: &[&str]| match Invocation::read("vesta", &[Api::Grpc], args) {
        Ok(Invocation::Command(raw, Command::Segment { command, .. })) => {
            let config = Config::check(&raw).expect("right settings");
            let store = config.segments.store.expect("it is on");
            assert_eq!(store.expose(), "sqlite:a.db");
            command
        }
        other => panic!("{args:?}: {other:?}"),
    };
    assert_eq!(
        command(&["--segment-store", "sqlite:a.db", "segment", "list"]),
        SegmentCommand::List
    );
    let create = [
        "segment",
        "create",
        "orders",
        "--step",
        "1000",
        "--segment-store=sqlite:a.db",
    ];
    assert_eq!(
        command(&create),
        SegmentCommand::Create(NewSegment {
            tag: "orders".into(),
            step: 1000,
            first: 1,
            last: None,
            description: None
        })
    );
    assert_eq!(
        command(
            &[
                &create[..],
                &[
                    "--first",
                    "7",
                    "--last",
                    "99",
                    "--description",
                    "the orders"
                ]
            ]
            .concat()
        ),
        SegmentCommand::Create(NewSegment {
            tag: "orders".into(),
            step: 1000,
            first: 7,
            last: Some(99),
            description: Some("the orders".into()),
        })
    );
    for args in [
        &["segment"][..],
        &["segment", "create", "orders"],
        &["segment", "drop"],
    ] {
        assert!(
            matches!(raw(&[Api::Rest], args), Err(Error::Usage(_))),
            "{args:?}"
        );
    }
}

#[test]
fn examples_in_the_help_are_accepted_by_their_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("vesta.toml");
    fs::write(&file, "layout = \"js-safe\"\n").expect("a file");
    for apis in [&[Api::Rest][..], &[Api::Grpc], &Api::ALL] {
        let help = vesta_boot::command("vesta", apis)
            .render_long_help()
            .to_string();
        let examples: Vec<_> = help
            .lines()
            .filter_map(|line| line.strip_prefix("  vesta"))
            .collect();
        assert!(examples.len() >= 8, "{examples:?}");
        for example in examples {
            let words = example.split_whitespace().map(|word| match word {
                "/etc/vesta.toml" => file.to_str().expect("a plain path"),
                word => word,
            });
            let read = Invocation::read("vesta", apis, words.collect::<Vec<_>>());
            let checked = read.and_then(|it| match it {
                Invocation::Run(raw) | Invocation::PrintConfig(raw) => {
                    Config::check(&raw).map(drop)
                }
                _ => Ok(()),
            });
            assert!(checked.is_ok(), "{example}: {checked:?}");
        }
    }
}

#[test]
fn the_output_format_is_accepted_before_or_after_a_command_only() {
    for args in [
        ["-o", "json", "store", "show"],
        ["store", "-o", "json", "show"],
    ] {
        match Invocation::read("vesta", &[Api::Rest], args) {
            Ok(Invocation::Command(_, Command::Store { format, .. })) => {
                assert_eq!(format.output, vesta_boot::output::Output::Json);
            }
            other => panic!("{other:?}"),
        }
    }
    let refused = Invocation::read("vesta", &[Api::Rest], ["-o", "json"]).expect_err("it serves");
    assert_eq!(
        refused.to_string(),
        "--output is for commands; leave it out to serve"
    );
}

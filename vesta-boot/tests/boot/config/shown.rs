//! Settings as printed, and as shown in the example file.

use vesta_testkit::shape_in;

use super::*;

#[test]
fn printed_settings_can_be_read_again_and_name_their_origins() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vesta.toml");
    let file = "max_wait_ms = 7\n[layout.custom]\ntime_bits = 32\nseq_bits = 16\n\
        machine_bits = 8\nunit = \"second\"\nepoch = 1767225600000\n";
    fs::write(&path, file).expect("a file");
    let args = [
        "--config",
        path.to_str().expect("a plain path"),
        "--http-listen",
        "127.0.0.1:9",
    ];
    let first = raw(&[Api::Rest], &args).expect("right settings");
    let checked = Config::check(&first).expect("right settings");
    let printed = checked.print(&first);

    for (line, origin) in [
        ("#window_ms = 5000", "# default of the store".to_owned()),
        (
            "#takeover_grace_ms = 60000",
            "# default of the store".to_owned(),
        ),
        ("count = 1", "# default".to_owned()),
        (
            "listen = \"127.0.0.1:9\"",
            "# flag --http-listen".to_owned(),
        ),
        (
            "max_wait_ms = 7",
            format!("# file {} line 1", path.display()),
        ),
        ("populator = \"atomic\"", "# default".to_owned()),
    ] {
        let found = printed.lines().find(|it| it.starts_with(line));
        assert!(
            found.is_some_and(|it| it.ends_with(&origin)),
            "{line} in\n{printed}"
        );
    }

    fs::write(&path, &printed).expect("a file");
    let again = raw(&[Api::Rest], &args[..2]).expect("what was printed is a file");
    let again = Config::check(&again).expect("the same settings");
    // The printed settings name the pool.
    let named = format!("{checked:?}").replace("unnamed_pool: true", "unnamed_pool: false");
    assert_eq!(format!("{again:?}"), named);
}

#[test]
fn explicit_durations_are_printed_as_settings() {
    let args = ["--machine-id", "7", "--machine-window-ms", "4000"];
    let raw = raw(&[Api::Grpc], &args).expect("right settings");
    let printed = Config::check(&raw).expect("right settings").print(&raw);
    for (line, origin) in [
        ("window_ms = 4000 ", "# flag --machine-window-ms"),
        ("#renew_every_ms = 1000 ", "# default of the state file"),
        ("#request_timeout_ms = 1000 ", "# default of the state file"),
    ] {
        let found = printed.lines().find(|it| it.starts_with(line));
        assert!(
            found.is_some_and(|it| it.ends_with(origin)),
            "{line} in\n{printed}"
        );
    }
    assert!(
        !printed.contains("takeover_grace_ms"),
        "a fixed machine ID has no takeover\n{printed}"
    );
}

/// A URL of every scheme with a password in it, including malformed ones.
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
        let raw = raw(&[Api::Grpc], &["--machine-store", url]).expect("a command line");
        let mut shown = vec![format!("{raw:?}")];
        match Config::check(&raw) {
            Ok(config) => {
                shown.push(format!("{config:#?}"));
                shown.push(config.print(&raw));
                assert_eq!(
                    config.machine.store().map(|store| store.expose()),
                    Some(*url)
                );
            }
            Err(error) => shown.push(error.to_string()),
        }
        let segments = self::raw(&[Api::Grpc], &["--segment-store", url]).expect("a command line");
        shown.push(format!("{segments:?}"));
        match Config::check(&segments) {
            Ok(config) => shown.extend([format!("{config:#?}"), config.print(&segments)]),
            Err(error) => shown.push(error.to_string()),
        }
        // In the wrong place it must not be quoted in the error either.
        let flags = [
            "--machine-id",
            "--layout",
            "--grpc-listen",
            "--machine-region",
            "--segment-mode",
        ];
        for flag in flags.into_iter().filter(|_| url.contains("://")) {
            let error = self::config(&[flag, url]).map(drop).expect_err(flag);
            shown.push(error);
        }
        let import = Invocation::read(
            "vesta",
            &[Api::Grpc],
            ["store", "import", "leaf", "--from", url],
        );
        shown.push(format!("{import:?}"));
        for text in shown {
            for secret in ["pl4nted-s3cret", "s3cret"] {
                assert_eq!(shape_in(secret, &text), None, "{url}: {text}");
            }
        }
    }
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/vesta.example.toml");

#[test]
fn the_example_file_changes_nothing_as_it_is() {
    for apis in [&[Api::Grpc][..], &[Api::Rest], &Api::ALL] {
        let raw = raw(apis, &["--config", EXAMPLE]).expect("a right file");
        for arg in settings().get_arguments() {
            let value = raw.get(arg.get_id().as_str());
            assert!(
                value.is_none_or(|value| value.origin == "default"),
                "{arg}: {value:?}"
            );
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
    let (named, custom) = active
        .split_once("[layout.custom]")
        .expect("a custom layout");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vesta.toml");
    let args = ["--config", path.to_str().expect("a plain path")];

    fs::write(&path, named).expect("a file");
    let raw_settings = raw(&[Api::Grpc], &args).expect("every setting has its type");
    for arg in settings().get_arguments() {
        let value = raw_settings.get(arg.get_id().as_str());
        let value = value.unwrap_or_else(|| panic!("{arg} is missing"));
        assert!(value.origin.starts_with("file "), "{arg} is missing");
        if let Some(default) = arg.get_default_values().first() {
            assert_eq!(default.to_str(), Some(&*value.text), "{arg}");
        }
    }

    fs::write(&path, format!("[layout.custom]{custom}")).expect("a file");
    let layout = Config::check(&raw(&[Api::Grpc], &args).expect("a right table"));
    assert_eq!(
        layout.expect("a layout that adds up").ids.layout.name(),
        "custom"
    );
}

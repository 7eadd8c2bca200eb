//! Settings, and the messages about wrong ones.

use std::net::TcpListener;

use vesta_testkit::shape_in;

use crate::support::{FREE_PORTS, Program, folder, program, run, text};

#[test]
fn help_and_version_exit_with_0() {
    let folder = folder();
    let help = run(
        folder.path(),
        &["--help"],
        &[("VESTA_MACHINE_STORE", "mysql://u:s3cret@h/d")],
    );
    assert_eq!(help.status.code(), Some(0));
    let help = text(&help.stdout);
    for part in [
        "--machine-id",
        "VESTA_GRPC_LISTEN",
        "[default: 127.0.0.1:50051]",
        "Examples:",
    ] {
        assert!(help.contains(part), "{part}");
    }
    assert!(!help.contains("s3cret"));
    let version = run(folder.path(), &["--version"], &[]);
    let note = if cfg!(debug_assertions) {
        " (debug build: slower than a release)"
    } else {
        ""
    };
    assert_eq!(
        text(&version.stdout),
        format!("vesta-server {}{note}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_wrong_server_setting_exits_with_64_and_one_sentence() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("its address").to_string();
    std::fs::write(
        folder.path().join("bad.toml"),
        "[machine]\ncount = \"one\"\n",
    )
    .expect("a file");
    std::fs::write(folder.path().join("file"), "").expect("a file");
    for (args, env, expected) in [
        (
            &["--machine-id", "1024"][..],
            &[][..],
            "machine.id must be 0 to 1023, but is `1024`",
        ),
        (
            &[],
            &[("VESTA_MACHINE_ID", "1024")],
            "`1024` (env VESTA_MACHINE_ID)",
        ),
        (&[], &[("VESTA_LAYOUT", "nope")], "layout must be max-peak"),
        (
            &["--layout", "uid", "--machine-id", "1"],
            &[],
            "layout uid ran out on 2024-11-2",
        ),
        (
            &["--config", "bad.toml"],
            &[],
            "bad.toml line 2: invalid type: string",
        ),
        (
            &[],
            &[("VESTA_CONFIG", "none.toml")],
            "cannot read the configuration none.toml",
        ),
        (
            &["--machine-id", "1"],
            &[("VESTA_MACHINE_COUNT", "2")],
            "machine.count is for a pool, but machine.id fixes the machine ID",
        ),
        (
            &[],
            &[
                ("VESTA_SEGMENT_STORE", "zookeeper://u:s3cret@h/d"),
                ("VESTA_SEGMENT_TABLE", "leaf"),
            ],
            "the zookeeper backend has no table leaf_alloc; segment.table = leaf needs mysql or postgres",
        ),
        (
            &["--grpc-listen", "0.0.0.0:0"],
            &[],
            "choose one of machine.id",
        ),
        (
            &["--grpc-listen", "0.0.0.0:0", "--machine-id", "1"],
            &[],
            "set allow_plaintext = true",
        ),
        (
            &["--grpc-listen", &taken],
            &[],
            "is already in use; stop the process that uses it, or choose another port",
        ),
        (&["--admin-listen", &taken], &[], "admin.listen: 127.0.0.1:"),
        (
            &[
                "--grpc-listen",
                "192.0.2.1:1",
                "--machine-id",
                "1",
                "--allow-plaintext",
            ],
            &[],
            "is not an address of this host",
        ),
        (
            &["--machine-store", "mongodb://u:s3cret@h/d"],
            &[],
            "unknown scheme `mongodb`",
        ),
        (
            &["--machine-store", "carrier-pigeon:coop"],
            &[],
            "unknown scheme `carrier-pigeon`",
        ),
        (
            &["--machine-store", "sqlite:file/vesta.db"],
            &[],
            "machine.store: ",
        ),
        (
            &["--machine-id", "192.0.2.1=1"],
            &[],
            "none of this host's addresses",
        ),
        (
            &["--machine-id", "127.0.0.1=1"],
            &[],
            "127.0.0.1 does not name one host",
        ),
    ] {
        let free: &[&str] = if args.contains(&"--grpc-listen") || args.contains(&"--admin-listen") {
            &[]
        } else {
            &FREE_PORTS
        };
        let output = run(folder.path(), &[args, free].concat(), env);
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{args:?} {env:?}: {said}");
        assert_eq!(output.status.code(), Some(64), "{args:?} {env:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("vesta-server: "), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_unusable_state_folder_exits_with_69() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let args = ["--machine-id", "1", "--state-dir", "file/inside"];
    let output = run(folder.path(), &[&args, &FREE_PORTS[..]].concat(), &[]);
    assert_eq!(output.status.code(), Some(69));
    assert!(text(&output.stderr).contains("file/inside"));
}

#[test]
fn an_unknown_flag_exits_with_64() {
    let folder = folder();
    let output = run(folder.path(), &["--machine-idd", "1"], &[]);
    assert_eq!(output.status.code(), Some(64));
    let said = text(&output.stderr);
    assert!(
        said.contains("--machine-idd") && said.contains("--machine-id"),
        "{said}"
    );
    for typed in ["mysql://u:s3cret@h/d", "mysql://u:it's a s3cret@h/d"] {
        let output = run(folder.path(), &[typed], &[]);
        assert_eq!(output.status.code(), Some(64));
        assert!(!text(&output.stderr).contains("s3cret"));
    }
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let folder = folder();
    let file = "max_wait_ms = 1\nrequest_timeout_ms = 1\ndrain_limit_ms = 1\nworkers = 1\n";
    std::fs::write(folder.path().join("vesta.toml"), file).expect("a file");
    let env = [
        ("VESTA_CONFIG", "vesta.toml"),
        ("VESTA_MAX_WAIT_MS", "2"),
        ("VESTA_REQUEST_TIMEOUT_MS", "2"),
        ("VESTA_WORKERS", ""),
        ("VESTA_MACHINE_ID", "ordinal"),
    ];
    let output = run(
        folder.path(),
        &["--print-config", "--max-wait-ms", "3"],
        &env,
    );
    let printed = text(&output.stdout);
    let has = |start: &str, end: &str| {
        let found = printed
            .lines()
            .any(|line| line.starts_with(start) && line.ends_with(end));
        assert!(found, "{start} … {end} in\n{printed}");
    };
    has("max_wait_ms = 3 ", "# flag --max-wait-ms");
    has("request_timeout_ms = 2 ", "# env VESTA_REQUEST_TIMEOUT_MS");
    has("drain_limit_ms = 1 ", "# file vesta.toml line 3");
    has("workers = 1 ", "# file vesta.toml line 4"); // an empty variable counts as unset
    has("id = \"ordinal\" ", "# env VESTA_MACHINE_ID");
    has("max_connections = 4096 ", "# default");
}

#[test]
fn a_planted_secret_is_never_printed() {
    let folder = folder();
    let url = "mysqlx://vesta:pl4nted-s3cret@db/ids?password=pl4nted-s3cret";
    let env = [("VESTA_MACHINE_STORE", url)];
    for args in [
        &["--print-config"][..],
        &["--log-level", "trace"],
        &["--log-format", "json"],
    ] {
        let output = run(folder.path(), &[args, &FREE_PORTS].concat(), &env);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("mysql"), "{said}");
        for secret in ["pl4nted-s3cret", "s3cret"] {
            assert_eq!(shape_in(secret, &said), None, "{said}");
        }
    }
}

#[test]
fn a_misspelt_variable_is_reported() {
    let folder = folder();
    let mut command = program(folder.path());
    command
        .args(FREE_PORTS)
        .env("VESTA_MACHINEID", "7")
        .env("VESTA_SERVICE_HOST", "10.0.0.1");
    let mut started = Program::start(&mut command);
    let warning = started.logs("unknown setting");
    assert!(warning.contains("VESTA_MACHINEID"), "{warning}");
}

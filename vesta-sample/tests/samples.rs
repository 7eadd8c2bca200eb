//! The samples run against the real servers and print what they promise.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use vesta_testkit::programs::{FREE_PORTS, Program};

/// A server of this workspace, stopped when it is dropped.
struct Server {
    program: Program,
    _folder: TempDir,
}

impl Server {
    /// Starts `vesta-server` or `vesta-rest` on free ports.
    fn start(name: &str) -> Self {
        Self::with(name, &[], |_| ())
    }

    /// As [`start`](Self::start), with further flags, in a folder that is prepared first.
    fn with(name: &str, flags: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let mut command = Command::new(program(name));
        command
            .args(FREE_PORTS)
            .args(flags)
            .current_dir(folder.path());
        command.env("VESTA_STATE_DIR", "vesta-data"); // not the state of the user who runs the tests
        let program = Program::serve(&mut command).unwrap_or_else(|ended| panic!("{ended:?}"));
        Self {
            program,
            _folder: folder,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.program.address())
    }
}

/// A program of another crate of this workspace; Cargo puts it next to this one's.
fn program(name: &str) -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_embed")).with_file_name(name);
    assert!(beside.exists(), "build it first: cargo build -p {name}");
    beside
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn first_number(text: &str) -> u64 {
    text.split(|c: char| !c.is_ascii_digit())
        .find_map(|word| word.parse().ok())
        .unwrap()
}

#[test]
fn embed_prints_ids_and_never_repeats_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = || output(Command::new(env!("CARGO_BIN_EXE_embed")).arg(folder.path()));
    let (first, second) = (run(), run());
    assert!(first.contains("machine 7 seq"), "{first}");
    assert!(first.contains("1000 more, from"), "{first}");
    let last_of_first = first
        .rsplit(' ')
        .next()
        .unwrap()
        .trim()
        .parse::<u64>()
        .unwrap();
    assert!(first_number(&second) > last_of_first, "{first}{second}");
}

#[test]
fn client_prints_ids_of_a_server() {
    let server = Server::start("vesta-server");
    let endpoint = server.url();
    let text = output(Command::new(env!("CARGO_BIN_EXE_client")).arg(&endpoint));
    assert!(text.contains("gen_method: 1"), "{text}");
    assert!(text.contains("three at once: ["), "{text}");
    assert!(
        text.contains("put together by hand: 2407837855670862845"),
        "{text}"
    );
}

#[test]
fn batch_takes_ids_from_memory() {
    let server = Server::start("vesta-server");
    let endpoint = server.url();
    let text = output(Command::new(env!("CARGO_BIN_EXE_batch")).arg(&endpoint));
    assert!(text.contains("10000 at once"), "{text}");
    assert!(text.contains("came from memory"), "{text}");
}

#[test]
fn member_prints_ids_with_a_machine_id_of_the_pool_server() {
    let pool_server = Server::with(
        "vesta-server",
        &["--pool-server-namespaces", "orders"],
        |_| (),
    );
    let url = format!("vesta://{}", pool_server.program.address());
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        output(
            Command::new(env!("CARGO_BIN_EXE_member"))
                .arg(&url)
                .arg(folder.path()),
        )
    };
    let (first, second) = (run(), run());
    assert_eq!(first.matches("machine").count(), 3, "{first}");
    assert!(
        first_number(&second) > first_number(&first),
        "{first}{second}"
    );
}

#[test]
fn segment_prints_numbers_of_a_key() {
    let server = Server::with(
        "vesta-server",
        &["--segment-store", "sqlite:tags.db"],
        |folder| {
            let create = ["segment", "create", "orders", "--step", "1000"];
            let store = ["--segment-store", "sqlite:tags.db"];
            let mut command = Command::new(program("vesta-server"));
            command.args(create).args(store).current_dir(folder);
            output(command.env("VESTA_STATE_DIR", "vesta-data"));
        },
    );
    let endpoint = server.url();
    let text = output(Command::new(env!("CARGO_BIN_EXE_segment")).args([&endpoint, "orders"]));
    assert!(text.starts_with("order 1\norder 2\norder 3\n"), "{text}");
    assert!(text.contains("100 at once, from 4 to 103"), "{text}");
    assert!(text.contains("103 numbers came from memory"), "{text}");
}

#[test]
fn serial_prints_invoices_and_coupons_and_never_repeats_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = || output(Command::new(env!("CARGO_BIN_EXE_serial")).arg(folder.path()));
    let (first, second) = (run(), run());
    assert!(first.starts_with("invoice INV-"), "{first}");
    assert!(first.contains("-0000013 with coupon "), "{first}");
    assert!(first.ends_with(" is number 4\n"), "{first}");
    let texts = [first, second].concat();
    let different = |is: fn(&&str) -> bool| {
        texts
            .split_whitespace()
            .filter(is)
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!(different(|word| word.starts_with("INV-")), 6, "{texts}");
    assert_eq!(
        different(|word| word.len() == 9 && word.parse::<u32>().is_ok()),
        8,
        "{texts}"
    );
}

#[test]
fn rest_prints_ids_by_curl() {
    let server = Server::start("vesta-rest");
    let url = server.url();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rest.sh");
    let text = output(Command::new(script).arg(&url));
    assert!(text.contains(r#""genMethod":2"#), "{text}");
    assert!(
        text.contains("put together:     2407837855670862845"),
        "{text}"
    );
}

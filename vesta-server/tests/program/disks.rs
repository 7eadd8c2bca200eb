//! Full disks. The program runs in its own mount namespace, where its state directory is a file system
//! of half a mebibyte.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use vesta_intf::IdMeta;
use vesta_testkit::fleet::Ledger;

use crate::ledger::Caller;
use crate::support::{FREE_PORTS, Program, folder, serve, text};

const SMALL: &str = "mount -t tmpfs -o size=512k tmpfs vesta-data && $before exec \"$0\" \"$@\"";
/// The shortest window of a layout by the second.
const SHORT: [&str; 6] = [
    "--machine-window-ms",
    "2000",
    "--machine-renew-every-ms",
    "600",
    "--machine-request-timeout-ms",
    "600",
];

/// The program with a small disk, after `before` has run on it.
fn on_a_small_disk(folder: &Path, before: &str) -> Command {
    fs::create_dir(folder.join("vesta-data")).expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg(SMALL.replace("$before", before));
    command
        .arg(env!("CARGO_BIN_EXE_vesta-server"))
        .args(FREE_PORTS);
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
        .env("VESTA_STATE_DIR", "vesta-data")
        .stdin(Stdio::null());
    command
}

/// Fills the disk of a running program to the last byte. Returns the file to remove afterwards.
fn fill(running: &Program, folder: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", running.id()));
    let folder = folder.strip_prefix("/").expect("an absolute path");
    let filler = root.join(folder).join("vesta-data/filler");
    let mut file = File::create(&filler).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
    filler
}

/// SQLite may still find room in its files; if not, IDs end with the window.
#[tokio::test]
async fn a_pool_on_a_full_disk_repeats_nothing_and_recovers() {
    if vesta_testkit::lacks("namespaces") {
        return;
    }
    let folder = folder();
    let mut command = on_a_small_disk(folder.path(), "");
    command
        .args(SHORT)
        .args(["--machine-takeover-grace-ms", "6000"]);
    let mut running = serve(&mut command);
    let mut caller = Caller::new(Ledger::new(IdMeta::MAX_PEAK), &running);
    caller.undisturbed("room").await;
    let filler = fill(&running, folder.path());
    // In parallel with the connection, which has to answer the server's pings in the meantime.
    let reading = tokio::task::spawn_blocking(move || {
        running.logs("the disk is full; free some space");
        running.ignore_log();
        running
    });
    let running = reading.await.expect("it reads");
    let start = caller.ledger.latest();
    while caller.ledger.latest() < start + 5 {
        caller.in_the_end("a full disk").await;
    }
    fs::remove_file(filler).expect("it is there");
    caller.in_the_end("room again").await;
    assert_eq!(caller.ledger.machines(), 1, "it kept its machine ID");
    assert_eq!(running.stop().0, Some(0));
}

#[tokio::test]
async fn an_existing_state_file_needs_no_free_space() {
    if vesta_testkit::lacks("namespaces") {
        return;
    }
    let folder = folder();
    let mut command = on_a_small_disk(folder.path(), "");
    let running = serve(command.args(SHORT).args(["--machine-id", "7"]));
    let mut caller = Caller::new(Ledger::new(IdMeta::MAX_PEAK), &running);
    fill(&running, folder.path());
    let start = caller.ledger.latest();
    while caller.ledger.latest() < start + 3 {
        caller.undisturbed("a full disk").await;
    }
}

#[test]
fn nothing_starts_on_a_full_disk() {
    if vesta_testkit::lacks("namespaces") {
        return;
    }
    for args in [&["--machine-id", "7"][..], &[]] {
        let folder = folder();
        let before = "! head -c 1048576 /dev/zero 2>/dev/null >vesta-data/filler;";
        let output = on_a_small_disk(folder.path(), before)
            .args(args)
            .output()
            .expect("it runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(69), "{said}");
        assert!(
            output.stdout.is_empty() && said.contains("vesta-data"),
            "{said}"
        );
        assert!(
            said.contains("full") || said.contains("No space left"),
            "{said}"
        );
    }
}

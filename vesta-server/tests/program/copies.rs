//! The file of a pool server, copied and served as a second one.

use std::fs;
use std::path::Path;

use crate::support::{FREE_PORTS, folder, program, run, serve, start, text};

const OFFERED: [&str; 2] = ["--pool-server-namespaces", "*"];

/// Copies a file as an operator would, with what belongs to it.
fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let [from, to] = [from, to].map(|it| format!("{}{suffix}", it.display()));
        if Path::new(&from).exists() {
            fs::copy(&from, &to).expect("a copy");
        }
    }
}

#[test]
fn a_copied_file_is_served_as_a_pool_server_only_after_it_is_adopted() {
    let folder = folder();
    let pool_server = start(folder.path(), &OFFERED);
    let url = pool_server.fact("members").to_owned();
    let (_, id) = url.split_once("?id=").expect("with its identity");
    assert_eq!(id.len(), 16, "{url}");
    let port = pool_server.address().port();
    assert!(
        url.starts_with("vesta://") && url.contains(&format!(":{port}?")),
        "{url}"
    );
    let served = folder.path().join("vesta-data/vesta.db");
    let copied = folder.path().join("copy.db");
    copy(&served, &copied);
    let others = ["--machine-store", "sqlite:copy.db", "--state-dir", "other"];
    let second = [&FREE_PORTS[..], &OFFERED, &others].concat();
    let refused = run(folder.path(), &second, &[]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{said}");
    for part in [
        "SQLite copy.db: the file was moved or copied",
        "vesta-server store adopt",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let members = format!("vesta://{}?id={id}", pool_server.address());
    let running = serve(program(folder.path()).args(FREE_PORTS).args([
        "--machine-store",
        &members,
        "--state-dir",
        "member",
    ]));
    assert_ne!(running.machine(), pool_server.machine());
    assert_eq!(running.stop().0, Some(0));
    assert_eq!(pool_server.stop().0, Some(0));

    let adopt = [&["store", "adopt", "--yes"][..], &others].concat();
    let adopted = run(folder.path(), &adopt, &[]);
    let said = text(&adopted.stdout);
    assert_eq!(
        adopted.status.code(),
        Some(0),
        "{said}{}",
        text(&adopted.stderr)
    );
    let new = said.trim_end().rsplit_once("?id=").expect("its identity").1;
    let new = new.trim_end_matches('.');
    assert_ne!(new, id);
    // Until its floor nothing is claimed; the second time, there is nothing to refuse.
    let shown = run(
        folder.path(),
        &[&["store", "show"][..], &others].concat(),
        &[],
    );
    assert!(
        text(&shown.stdout).contains("floor"),
        "{}",
        text(&shown.stdout)
    );
    let again = run(
        folder.path(),
        &[&["store", "adopt"][..], &others].concat(),
        &[],
    );
    let said = text(&again.stdout) + &text(&again.stderr);
    assert!(said.contains("nothing speaks against serving it"), "{said}");
}

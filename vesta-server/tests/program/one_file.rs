//! One state per host: files reached by two names, and default folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{FREE_PORTS, folder, namespace_of, program, serve, start, text};

/// Two containers: the same host file under two names.
const MOUNTED: &str = "touch two/vesta.db && mount --bind vesta-data/vesta.db two/vesta.db && \
                       exec \"$0\" \"$@\"";

#[test]
fn a_pool_file_with_a_second_name_is_refused() {
    if vesta_testkit::lacks("namespaces") {
        return;
    }
    let folder = folder();
    let running = start(folder.path(), &[]);
    let database = folder.path().join("vesta-data/vesta.db");
    let two = folder.path().join("two");
    fs::create_dir(&two).expect("a folder");

    let mut mounted = Command::new("unshare");
    mounted.args(["--user", "--map-root-user", "--mount", "sh", "-c", MOUNTED]);
    mounted
        .arg(env!("CARGO_BIN_EXE_vesta-server"))
        .args(FREE_PORTS)
        .args(["--state-dir", "two"]);
    mounted
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null());
    mounted.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = mounted.output().expect("it runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("is its own mount point"), "{said}");

    fs::remove_file(two.join("vesta.db")).expect("it was made for the mount");
    fs::hard_link(&database, two.join("vesta.db")).expect("a link");
    let output = program(folder.path())
        .args(FREE_PORTS)
        .args(["--state-dir", "two"])
        .output()
        .expect("ran");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("has another hard link"), "{said}");
    // The owner is not harmed: a hard link may be someone's backup.
    assert_eq!(running.stop().0, Some(0));
}

#[test]
fn a_state_file_with_a_second_name_is_in_use() {
    let folder = folder();
    let args = ["--machine-id", "7"];
    let running = start(folder.path(), &args);
    fs::create_dir(folder.path().join("two")).expect("a folder");
    let name = format!("{}-7.state", namespace_of(folder.path()));
    let [one, two] = ["vesta-data", "two"].map(|dir| folder.path().join(dir).join(&name));
    fs::hard_link(one, two).expect("a link");
    let mut second = program(folder.path());
    let output = second
        .args(FREE_PORTS)
        .args(args)
        .args(["--state-dir", "two"])
        .output();
    let said = text(&output.expect("it runs").stderr);
    assert!(said.contains("is in use by another process"), "{said}");
    assert_eq!(running.stop().0, Some(0));
}

#[test]
fn two_working_folders_of_one_user_share_a_pool() {
    let (home, [one, two]) = (folder(), [folder(), folder()]);
    let [one, two] = [&one, &two].map(|folder| {
        let mut command = program(folder.path());
        command
            .env_remove("VESTA_STATE_DIR")
            .env("HOME", home.path())
            .args(FREE_PORTS);
        command.env("VESTA_NAMESPACE", namespace_of(home.path()));
        serve(&mut command)
    });
    let state = home.path().join(".local/state/vesta");
    assert_eq!(Path::new(one.fact("state")), state);
    assert_eq!(one.fact("state"), two.fact("state"));
    assert_ne!(one.machine(), two.machine());
}

/// Any user who can open a file can lock it.
#[test]
fn state_is_private_to_its_user() {
    let folder = folder();
    let pool = start(folder.path(), &[]);
    let fixed = start(
        folder.path(),
        &["--machine-id", "7", "--namespace", "fixed"],
    );
    let state = folder.path().join("vesta-data");
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&state), 0o700);
    let files: Vec<_> = fs::read_dir(&state).expect("a folder").flatten().collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    drop((pool, fixed));
}

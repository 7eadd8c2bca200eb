//! One host: its users, its state directorys, and folders on other hosts.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use vesta_testkit::{FuseMount, lacks};

use crate::support::{FREE_PORTS, Program, folder, program, run, serve, start, text};

const ON_FUSE: &str = "is on a network file system (FUSE), whose locks may not keep two hosts apart; use a \
                       folder on a local disk (--state-dir)";

/// Two mounts of one folder act as two hosts that reach it.
#[test]
fn state_on_a_network_file_system_is_refused_unless_forced() {
    if lacks("bindfs") {
        return;
    }
    let folder = folder();
    let mount = |name: &str| {
        FuseMount::new(
            &folder.path().join("shared"),
            &folder.path().join(name),
            "attr_timeout=1",
        )
    };
    fs::create_dir(folder.path().join("shared")).expect("a folder");
    let _mounts = ["one", "two"].map(mount);
    let refused = |args: &[&str]| {
        let output = run(folder.path(), &[&FREE_PORTS[..], args].concat(), &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {said}");
        assert!(said.contains(ON_FUSE), "{args:?}: {said}");
    };
    for host in ["one", "two"] {
        let at = |file: &str| format!("sqlite:{host}/{file}");
        refused(&["--state-dir", host]);
        refused(&["--state-dir", &format!("{host}/not/yet")]);
        refused(&["--state-dir", host, "--machine-id", "7"]);
        refused(&["--machine-store", &at("pool.db")]);
        refused(&["--segment-store", &at("tags.db"), "--segment-table", "kv"]);
        refused(&["--serial-store", &at("serials.db")]);
    }
    assert_eq!(
        fs::read_dir(folder.path().join("shared"))
            .expect("a folder")
            .count(),
        0
    );

    let insist = ["--state-dir", "one", "--state-allow-network-fs"];
    let running = start(folder.path(), &insist);
    let (code, log) = running.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains(ON_FUSE), "{log}");
}

/// For a minute after one of the new database's two links is gone, the file system still shows
/// both.
#[test]
fn a_first_start_tolerates_stale_file_attributes() {
    if lacks("bindfs") {
        return;
    }
    let folder = folder();
    let (shared, seen) = (folder.path().join("shared"), folder.path().join("seen"));
    fs::create_dir(&shared).expect("a folder");
    let _mount = FuseMount::new(&shared, &seen, "attr_timeout=60,entry_timeout=60");
    let running = start(
        folder.path(),
        &["--state-dir", "seen", "--state-allow-network-fs"],
    );
    assert_eq!(running.stop().0, Some(0));
}

/// The program as a user of this host starts it without any setting.
fn as_user(folder: &Path, user: u32) -> Command {
    // The build folder may be closed to other users.
    let (copy, home) = (folder.join("vesta-server"), folder.join(user.to_string()));
    if !copy.exists() {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("a folder of ours");
        fs::copy(env!("CARGO_BIN_EXE_vesta-server"), &copy).expect("a copy");
    }
    if !home.exists() {
        fs::create_dir(&home).expect("a home");
        chown(&home, Some(user), Some(user)).expect("root may");
    }
    let mut command = Command::new(copy);
    command
        .env_clear()
        .env("HOME", &home)
        .current_dir(&home)
        .uid(user)
        .gid(user)
        .args(FREE_PORTS);
    command
}

#[test]
fn two_users_of_a_host_get_different_machine_ids_without_any_setting() {
    if lacks("root") {
        return;
    }
    let folder = folder();
    let running = [65533, 65534].map(|user| serve(&mut as_user(folder.path(), user)));
    let [one, two] = running
        .each_ref()
        .map(|program| program.fact("state").to_owned());
    assert!(one.ends_with("65533/.local/state/vesta") && two.ends_with("65534/.local/state/vesta"));
    assert_ne!(running[0].machine(), running[1].machine());
}

/// Both would prefer the same machine ID.
#[test]
fn two_users_of_a_host_share_a_small_range_of_machine_ids() {
    if lacks("root") {
        return;
    }
    let folder = folder();
    let start = |user| {
        let mut command = as_user(folder.path(), user);
        command.args(["--namespace", &crate::support::namespace_of(folder.path())]);
        Program::serve(command.args(["--machine-range", "5-6"]))
    };
    let [one, two] = [65533, 65534].map(|user| start(user).expect("it starts"));
    assert_eq!(one.machine() + two.machine(), 5 + 6);
    let third = start(65532).expect_err("all are taken");
    let said = text(&third.stderr);
    assert_eq!(third.status.code(), Some(69), "{said}");
    assert!(
        said.contains("another process on this host holds this machine ID"),
        "{said}"
    );
    let (code, log) = one.stop();
    assert_eq!(code, Some(0), "{log}");
    start(65532).expect("one is free again");
}

#[test]
fn a_fixed_machine_id_in_use_on_the_host_is_refused() {
    let folder = folder();
    let running = start(folder.path(), &["--machine-id", "7"]);
    let again = |state: &str| {
        let mut second = program(folder.path());
        second
            .args(FREE_PORTS)
            .args(["--machine-id", "7", "--state-dir", state]);
        second.output().expect("it runs")
    };
    let refused = |state: &str| {
        let output = again(state);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        let expected =
            "is in use on this host by another process (another user or state directory: user ";
        assert!(
            said.contains("machine ID 7 of namespace") && said.contains(expected),
            "{said}"
        );
    };
    refused("elsewhere");
    fs::rename(
        folder.path().join("vesta-data"),
        folder.path().join("moved"),
    )
    .expect("moved");
    refused("vesta-data");
    drop(running.kill());
    let moved = ["--machine-id", "7", "--state-dir", "moved"];
    assert_eq!(start(folder.path(), &moved).machine(), 7);
}

/// Two hosts whose names are IP addresses, both ending in 17.
#[test]
fn an_ordinal_comes_only_from_a_name_with_one_number() {
    if lacks("namespaces") {
        return;
    }
    const NAMED: &str = "hostname \"$1\" && shift && exec \"$@\"";
    let folder = folder();
    let namespace = crate::support::namespace_of(folder.path());
    let on_host = |name: &str, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--uts",
            "sh",
            "-c",
            NAMED,
            "sh",
            name,
        ]);
        command
            .arg(env!("CARGO_BIN_EXE_vesta-server"))
            .args(FREE_PORTS)
            .current_dir(folder.path());
        command.args(["--state-dir", "state", "--namespace", &namespace]);
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    };
    for name in ["ip-10-0-3-17", "ip-10-0-4-17", "10-0-3-17.ec2.internal"] {
        for store in [&[][..], &["--machine-store", "sqlite:pool.db"]] {
            let args = &[&["--machine-id", "ordinal"], store].concat();
            let output = on_host(name, args).output().expect("it runs");
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(64), "{said}");
            assert!(
                said.contains(&format!("host name `{name}` has several numbers")),
                "{said}"
            );
        }
    }
    let output = on_host("other-3", &["--machine-id", "ordinal:vesta"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("the ordinal is of vesta-N"));

    let running = serve(&mut on_host("vesta-3", &["--machine-id", "ordinal:vesta"]));
    assert_eq!(running.machine(), 3);
    let (_, log) = running.stop();
    assert!(
        log.contains("no other StatefulSet may use this namespace"),
        "{log}"
    );
}

/// A stranger needs no permission to take the names of a namespace.
#[test]
fn names_that_a_stranger_holds_are_one_sentence_with_its_user() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let folder = folder();
    let namespace = crate::support::namespace_of(folder.path());
    let name = |number| format!("vesta/lease/{namespace}/{number}");
    let take = |number| {
        SocketAddr::from_abstract_name(name(number)).and_then(|at| UnixListener::bind_addr(&at))
    };
    let _names: Vec<_> = (0..200).map(|number| take(number).expect("free")).collect();
    let pool = [&FREE_PORTS[..], &["--machine-range", "0-199"]].concat();
    let refused = run(folder.path(), &pool, &[]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(69), "{said}");
    let user = fs::metadata("/proc/self").map(|it| std::os::unix::fs::MetadataExt::uid(&it));
    let user = format!("user {}", user.expect("it is there"));
    let expected = format!("each that was tried belongs to {user} on this host; end that process");
    assert!(
        said.contains(&expected) && said.contains("set machine.store"),
        "{said}"
    );
    let lines = said.lines().filter(|line| line.contains(&user)).count();
    assert_eq!(lines, 2, "a warning and the refusal: {said}");
    assert!(said.lines().count() < 8, "{said}");
    let fixed = [&FREE_PORTS[..], &["--machine-id", "7"]].concat();
    let refused = run(folder.path(), &fixed, &[]);
    assert!(text(&refused.stderr).contains(&format!("state directory: {user})")));
}

//! Containers: processes of one image, each with a separate name, network and mounts.

use std::path::Path;
use std::process::Command;

use vesta_testkit::lacks;

use crate::support::{FREE_PORTS, folder, serve, text};

/// Names a host, mounts an empty state directory, which is lost at the end, and runs a program there.
const INSIDE: &str =
    "hostname \"$1\" && ip link set lo up && mount -t tmpfs none \"$2\" && shift 2 && exec \"$@\"";

fn in_container(state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "--uts"]);
    command.args(["sh", "-c", INSIDE, "sh", "web"]).arg(state);
    command.arg(env!("CARGO_BIN_EXE_vesta-server")).args(args);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    command.env("VESTA_STATE_DIR", state);
    command
}

#[test]
fn containers_of_one_name_are_refused_or_draw_their_numbers_and_say_what_is_lost() {
    if lacks("namespaces") {
        return;
    }
    let folder = folder();
    let open = [
        "--grpc-listen",
        "0.0.0.0:0",
        "--admin-listen",
        "off",
        "--allow-plaintext",
    ];
    let starts = (0..60).map(|_| {
        let mut command = in_container(folder.path(), &open);
        std::thread::spawn(move || command.output().expect("it runs"))
    });
    for start in starts.collect::<Vec<_>>() {
        let refused = start.join().expect("it ends");
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(64), "{said}");
        assert!(
            said.contains("choose one of machine.id, machine.store"),
            "{said}"
        );
    }

    let running = [(); 3].map(|()| serve(&mut in_container(folder.path(), &FREE_PORTS)));
    let [one, two, three] = running.each_ref().map(|it| it.machine());
    assert!(one != two || two != three, "all three are {one}");
    for program in running {
        let (code, log) = program.stop();
        assert_eq!(code, Some(0), "{log}");
        let lines = log
            .lines()
            .filter(|line| line.contains("is lost with this container"));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), 1, "{log}");
        assert!(lines[0].contains("set machine.store"), "{log}");
    }
    // A number of its own needs no pool.
    let fixed = [&FREE_PORTS[..], &["--machine-id", "7"]].concat();
    let (_, log) = serve(&mut in_container(folder.path(), &fixed)).stop();
    assert!(
        log.contains("the state of this machine ID is lost with this container"),
        "{log}"
    );
}

//! Members of a registry that are killed: their records belong to them until the bounds have passed.

use std::fs;

use tokio::time::Instant;

use crate::support::{folder, program, start};
use vesta_testkit::programs::{FREE_PORTS, Program};

/// Its state directory has the secret. A start elsewhere waits for the bound, and says so.
#[test]
fn a_killed_members_record_is_replaced_at_once_only_on_its_own_host() {
    let [of_registry, of_member, elsewhere] = [(); 3].map(|()| folder());
    let file = format!(
        "sqlite:{}",
        of_registry.path().join("registry.db").display()
    );
    let registry = start(
        of_registry.path(),
        &["--machine-store", &file, "--registry-namespaces", "orders"],
    );
    let url = format!("vesta://{}", registry.address());
    let args = [
        "--namespace",
        "orders",
        "--machine-id",
        "7",
        "--machine-store",
        &url,
        // As short as the rules allow.
        "--machine-window-ms",
        "9000",
        "--machine-renew-every-ms",
        "3000",
    ];
    let first = start(of_member.path(), &args);
    let before = first.first_id();
    first.kill();
    let began = Instant::now();
    let second = start(of_member.path(), &args);
    assert!(
        began.elapsed().as_secs() < 5,
        "at once: {:?}",
        began.elapsed()
    );
    assert!(second.first_id() > before);
    second.kill();
    fs::create_dir_all(elsewhere.path()).expect("it is there");
    let began = Instant::now();
    let mut command = program(elsewhere.path());
    let mut third = Program::start(command.args(FREE_PORTS).args(args));
    third.logs("has no secret of it: waiting until");
    while !third.is_ready() {
        assert!(began.elapsed().as_secs() < 60, "{}", third.said());
    }
    assert!(began.elapsed().as_secs() >= 5, "its bound was 9 s ahead");
    third.kill();
    let _ = registry.stop();
}

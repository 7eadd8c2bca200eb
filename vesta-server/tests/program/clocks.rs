//! The shipped program with wrong clocks.

use std::path::Path;

use tonic::Code;
use vesta_intf::IdMeta;
use vesta_testkit::WallClock;

use vesta_testkit::fleet::Ledger;

use crate::ledger::Caller;
use crate::support::{FREE_PORTS, Program, folder, program, serve};

const HOUR: u64 = 3600;

fn start(clock: &WallClock, folder: &Path, args: &[&str]) -> Program {
    let mut command = program(folder);
    serve(clock.under(command.args(FREE_PORTS).args(args)))
}

#[tokio::test]
async fn a_pool_member_survives_every_clock_step() {
    if vesta_testkit::lacks("faketime") {
        return;
    }
    let folder = folder();
    let clock = WallClock::new(folder.path());
    let running = start(&clock, folder.path(), &[]);
    let start = IdMeta::MAX_PEAK
        .unpack(running.first_id())
        .expect("its parts")
        .time;
    let mut caller = Caller::new(Ledger::new(IdMeta::MAX_PEAK), &running);
    caller.undisturbed("none").await;
    for step in [
        "-1s", "+0", "-3s", "-5s", "-4s", "-1s", "+0", "+2s", "-2s", "+0",
    ] {
        clock.step(step);
        caller.undisturbed(step).await;
    }
    for step in [
        "-6s", "+0", "-1h", "+0", "+30m", "+0", "-30d", "+0", "-365d", "-1d", "+0",
    ] {
        clock.step(step);
        caller.in_the_end(step).await;
    }
    // A jump far ahead is ignored: no bound is made durable for that time.
    for step in ["+1d", "+365d", "+20y", "+0"] {
        clock.step(step);
        caller.in_the_end(step).await;
    }
    let ahead = caller.ledger.latest() - start;
    assert!(ahead < 2 * HOUR, "{ahead} s ahead of the start");
    assert!(caller.ledger.machines() > 2, "it changed its machine ID");
    println!(
        "{} IDs of {} machine IDs",
        caller.ledger.ids,
        caller.ledger.machines()
    );
}

#[tokio::test]
async fn a_fixed_machine_id_waits_for_the_right_time() {
    if vesta_testkit::lacks("faketime") {
        return;
    }
    let folder = folder();
    let clock = WallClock::new(folder.path());
    let running = start(&clock, folder.path(), &["--machine-id", "7"]);
    let mut caller = Caller::new(Ledger::new(IdMeta::MAX_PEAK), &running);
    caller.undisturbed("none").await;
    clock.step("-4s");
    caller.undisturbed("-4s").await;
    for step in ["-1h", "-365d"] {
        clock.step(step);
        let status = caller.refused().await;
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("clock is behind"), "{status:?}");
        clock.step("+0");
        caller.in_the_end("+0").await;
    }
    assert_eq!(caller.ledger.machines(), 1);
}

#[tokio::test]
async fn after_a_clock_step_back_and_a_restart_the_bound_decides() {
    if vesta_testkit::lacks("faketime") {
        return;
    }
    for args in [&["--machine-id", "7"][..], &["--machine-range", "5-5"]] {
        let folder = folder();
        let clock = WallClock::new(folder.path());
        let mut ledger = Ledger::new(IdMeta::MAX_PEAK);
        for step in ["+0", "-1s", "-3s", "-2s"] {
            clock.step(step);
            let running = start(&clock, folder.path(), args);
            let mut caller = Caller::new(ledger, &running);
            caller.in_the_end(step).await;
            ledger = caller.ledger;
            running.kill();
        }
        println!("{} IDs", ledger.ids);
    }
}

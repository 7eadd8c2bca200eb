//! `vesta chaos` on the program as it is: nothing repeats. `scripts/chaos.sh` has a planted fault.

use std::process::Command;

/// The run that the documentation shows; a shorter one unless all the time is there.
#[test]
fn nothing_repeats_while_servers_are_killed_paused_and_their_clocks_stepped() {
    let minutes = if std::env::var_os("VESTA_TEST_FULL").is_some() { "1" } else { "0.25" };
    let args = ["chaos", "--minutes", minutes, "--processes", "6", "--seed", "7", "-o", "csv"];
    let done = Command::new(env!("CARGO_BIN_EXE_vesta")).args(args).output().expect("it runs");
    let (said, words) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{said}{words}");
    let (names, counts) = said.trim().split_once('\n').expect("names and numbers");
    assert_eq!(names, "repeated,ids,kills,pauses,clockSteps,seed");
    let counts: Vec<u64> = counts.split(',').map(|it| it.parse().expect("a number")).collect();
    assert_eq!((counts[0], counts[5]), (0, 7));
    assert!(counts[1] > 10_000 && counts[2..5].iter().all(|count| *count > 0), "{said}");
}

#[test]
fn what_it_cannot_start_is_an_error_with_the_reason() {
    let args = ["chaos", "--minutes", "0.1", "--store", "mysql://nobody"];
    let done = Command::new(env!("CARGO_BIN_EXE_vesta")).args(args).output().expect("it runs");
    let words = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(64), "{words}");
    assert!(words.contains("machine.store"), "{words}");
}

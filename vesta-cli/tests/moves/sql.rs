//! SQL that the program prints and the documents show, on real databases with their default settings.

mod conditions;
pub(crate) mod databases;
mod documents;
mod functions;
mod guides;
mod sharding;

/// What the program prints.
fn vesta(args: &[&str]) -> String {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"));
    let done = program.args(args).output().expect("it starts");
    assert!(
        done.status.success(),
        "{args:?} {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("text")
}

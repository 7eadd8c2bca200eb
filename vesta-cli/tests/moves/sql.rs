//! The SQL printed by the program and shown in the documents, on real databases with their default
//! settings.

mod conditions;
pub(crate) mod databases;
mod documents;
mod functions;
mod generate;
mod guides;
mod sharding;

/// The output of the program.
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

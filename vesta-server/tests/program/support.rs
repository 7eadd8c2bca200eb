//! The program as a child process.

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) use vesta_testkit::programs::{FREE_PORTS, Program};
pub(crate) use vesta_testkit::{folder, namespace_of};

/// The program in this folder, with its own state and namespace, and no other environment variables.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta-server"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("VESTA_STATE_DIR", "vesta-data");
    command.env("VESTA_NAMESPACE", namespace_of(folder));
    command
}

pub(crate) fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    program(folder)
        .args(args)
        .envs(env.iter().copied())
        .output()
        .expect("the program runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Starts the program on free ports and waits until it is ready.
pub(crate) fn start(folder: &Path, args: &[&str]) -> Program {
    serve(program(folder).args(FREE_PORTS).args(args))
}

/// Starts a command and waits until it is ready.
pub(crate) fn serve(command: &mut Command) -> Program {
    Program::serve(command).unwrap_or_else(|ended| panic!("it ended early: {ended:?}"))
}

/// Starts the program, which may wait for its store, and reads its log up to the addresses of its listeners.
pub(crate) fn start_waiting(folder: &Path, args: &[&str]) -> Program {
    let mut command = program(folder);
    let mut program = Program::start(command.args(FREE_PORTS).arg("--wait-for-store").args(args));
    program.logs("admin_listen=");
    program
}

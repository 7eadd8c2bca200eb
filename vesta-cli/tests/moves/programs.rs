//! The programs of the workspace, started like a user's.

use std::path::Path;
use std::process::Command;

use vesta_testkit::programs::{FREE_PORTS, Program};

/// A program with these flags, in its own folder, without any setting from outside.
pub(crate) fn command(program: &str, folder: &Path, args: &[&str]) -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_vesta")).with_file_name(program);
    assert!(
        built.exists(),
        "{} is not built; cargo build -p {program}",
        built.display()
    );
    let mut command = Command::new(built);
    command.current_dir(folder).args(args);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("VESTA_")) {
            command.env_remove(name);
        }
    }
    command.env("VESTA_STATE_DIR", folder.join("state"));
    command
}

/// Starts a server.
pub(crate) fn serve(program: &str, folder: &Path, args: &[&str]) -> Program {
    let args = [args, &FREE_PORTS].concat();
    Program::serve(&mut command(program, folder, &args))
        .unwrap_or_else(|it| panic!("ended: {it:?}"))
}

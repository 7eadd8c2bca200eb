//! The program as a child process.

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) use vesta_testkit::namespace_of;
use vesta_testkit::programs;
pub(crate) use vesta_testkit::programs::{FREE_PORTS, Program};

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

/// A program that waits for its store.
pub(crate) struct Waiting {
    pub(crate) program: Program,
    admin: String,
    /// Address of the public listener.
    pub(crate) public: String,
}

impl Waiting {
    /// Starts the program and reads its log up to the address of its admin listener.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = program(folder);
        let mut program =
            Program::start(command.args(FREE_PORTS).arg("--wait-for-store").args(args));
        let line = program.logs("admin_listen=");
        let after = |name: &str| {
            let value = line.split(name).nth(1).expect("it is there");
            value
                .split_whitespace()
                .next()
                .expect("an address")
                .trim_matches('"')
                .to_owned()
        };
        let (public, admin) = (after(" listen="), after("admin_listen="));
        Self {
            program,
            admin,
            public,
        }
    }

    /// Reads the log up to a line that contains `part`.
    pub(crate) fn until(&mut self, part: &str) {
        self.program.logs(part);
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        programs::get(&self.admin, path)
    }

    /// Stops the program; returns its exit code and all its output.
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        self.program.signal("-TERM");
        let ended = self.program.end();
        (
            ended.status.code(),
            text(&ended.stderr) + &text(&ended.stdout),
        )
    }
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

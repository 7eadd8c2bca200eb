//! Programs that are run, and files that only their owner reads.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The path of a program. Debian keeps servers in folders that a user's `PATH` may lack.
pub(super) fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let mut paths = folders.map(|folder| folder.join(program));
    paths.find(|path| {
        path.metadata()
            .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    })
}

/// A command of these words.
pub(super) fn command<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut words = words.into_iter();
    let program = words.next().expect("a program");
    let program = program.as_ref();
    let mut command = Command::new(path_of(program).unwrap_or_else(|| program.into()));
    command.args(words.map(|it| it.as_ref().to_owned()));
    command
}

/// The output of a command that reads this text, without the last line's end.
///
/// # Errors
/// The output of a failed command.
pub(super) fn output(command: &mut Command, input: &str) -> Result<String, String> {
    let done = done(command.stdout(Stdio::piped()).stderr(Stdio::piped()), input)?;
    let text = |bytes| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if done.status.success() {
        Ok(text(&done.stdout))
    } else {
        Err(text(&[done.stdout, done.stderr].concat()))
    }
}

/// Runs a command that reads this text and writes to a log.
///
/// # Errors
/// If it fails.
pub(super) fn log(command: &mut Command, input: &str, log: &File) -> Result<(), String> {
    let done = done(into_log(command, log)?, input)?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{:?}: {}", command.get_program(), done.status)),
    }
}

pub(super) fn into_log<'a>(
    command: &'a mut Command,
    log: &File,
) -> Result<&'a mut Command, String> {
    let copy = || log.try_clone().map_err(|error| error.to_string());
    Ok(command.stdout(copy()?).stderr(copy()?))
}

fn done(command: &mut Command, input: &str) -> Result<Output, String> {
    let mut child = match command.stdin(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Err(format!("{:?}: {error}", command.get_program())),
    };
    let mut stdin = child.stdin.take().expect("it is piped");
    let _ = stdin.write_all(input.as_bytes()); // a program that has failed reads nothing
    drop(stdin);
    child.wait_with_output().map_err(|error| error.to_string())
}

/// The answer of a local port to a text, as far as it came within 2 s; empty without one.
pub(super) fn ask(port: u16, text: &str) -> String {
    let mut answer = Vec::new();
    let _ = TcpStream::connect(("127.0.0.1", port)).and_then(|mut socket| {
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        socket.write_all(text.as_bytes())?;
        socket.read_to_end(&mut answer)
    });
    String::from_utf8_lossy(&answer).into_owned()
}

/// Creates a folder, and those above it, unless they exist.
pub(super) fn create_folder(path: &Path) -> Result<(), String> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|error| format!("{}: {error}", path.display()))
}

/// Replaces a file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    let written = file
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The content of a file, without the last line's end.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

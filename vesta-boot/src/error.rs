//! Failures of a program or a command: one sentence and the exit code.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use vesta_intf::plain_lines;

/// One sentence: the fault and the remedy. Contains no password: [`StoreUrl`](vesta_store::StoreUrl) and
/// values of settings hide theirs when displayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Negative result of a check: exit code 1.
    #[error("{0}")]
    No(String),
    /// A command line that cannot be parsed, explained in several lines: exit code 64.
    #[error("{0}")]
    Usage(String),
    /// A setting or an argument is invalid, in use or unsafe: exit code 64.
    #[error("{0}")]
    Setting(String),
    /// A required resource is unreachable now: exit code 69.
    #[error("{0}")]
    Unavailable(String),
    /// Another failure: exit code 70.
    #[error("{0}")]
    Software(String),
}

impl From<vesta_net::Error> for Error {
    fn from(error: vesta_net::Error) -> Self {
        Self::setting(error)
    }
}

impl Error {
    /// An invalid setting or argument.
    pub fn setting(sentence: impl Display) -> Self {
        Error::Setting(plain_lines(&sentence.to_string()))
    }

    /// Like [`setting`](Self::setting), wrapped in `Err`.
    ///
    /// # Errors
    /// Always.
    pub fn refuse<T>(sentence: impl Display) -> Result<T, Self> {
        Err(Self::setting(sentence))
    }

    /// An error of the settings if permanent; otherwise a retry may help.
    pub fn lasting(is_permanent: bool, sentence: impl Display) -> Self {
        let sentence = plain_lines(&sentence.to_string());
        if is_permanent {
            Error::Setting(sentence)
        } else {
            Error::Unavailable(sentence)
        }
    }

    /// A failure of the program or its system: what failed, and why.
    pub fn software(what: &str, error: impl Display) -> Self {
        Error::Software(format!("{what}: {error}"))
    }

    /// Prints the error on standard error and returns the exit code.
    pub fn report(&self, program: &str) -> ExitCode {
        let _ = match self {
            Error::Usage(explained) => write!(io::stderr(), "{explained}"),
            error => {
                let sentence = as_called(&error.to_string(), program);
                writeln!(io::stderr(), "{program}: {sentence}")
            }
        };
        ExitCode::from(self.exit_code())
    }

    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Error::No(_) => 1,
            Error::Usage(_) | Error::Setting(_) => 64,
            Error::Unavailable(_) => 69,
            Error::Software(_) => 70,
        }
    }
}

/// The sentence with the commands of the called program: libraries name those of `vesta`, which each server has, too.
fn as_called(sentence: &str, program: &str) -> String {
    sentence.replace("`vesta ", &format!("`{program} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_called_program() {
        let said = "vesta: create it with `vesta store init`";
        assert_eq!(as_called(said, "vesta"), said);
        let called = "vesta: create it with `vesta-rest store init`";
        assert_eq!(as_called(said, "vesta-rest"), called);
    }
}

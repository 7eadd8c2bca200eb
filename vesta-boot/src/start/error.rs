//! Failures of a program or a command: one sentence each, and the exit code.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use vesta_intf::plain_lines;

/// One sentence: the fault, and the remedy. It holds no password: [`StoreUrl`](vesta_store::StoreUrl) and
/// the values of settings hide theirs when they are shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The answer is no: exit code 1.
    #[error("{0}")]
    No(String),
    /// A command line that does not parse, explained in several lines: exit code 64.
    #[error("{0}")]
    Usage(String),
    /// A setting or an argument is wrong, taken or unsafe: exit code 64.
    #[error("{0}")]
    Setting(String),
    /// Something that is needed cannot be reached now: exit code 69.
    #[error("{0}")]
    Unavailable(String),
    /// Another failure: exit code 70.
    #[error("{0}")]
    Software(String),
}

impl Error {
    /// A wrong setting or argument.
    pub fn setting(sentence: impl Display) -> Self {
        Error::Setting(plain_lines(&sentence.to_string()))
    }

    /// As [`setting`](Self::setting), as a result.
    ///
    /// # Errors
    /// Always.
    pub fn refuse<T>(sentence: impl Display) -> Result<T, Self> {
        Err(Self::setting(sentence))
    }

    /// A fault of the settings if it is permanent; else, trying again may help.
    pub fn lasting(is_permanent: bool, sentence: impl Display) -> Self {
        let sentence = plain_lines(&sentence.to_string());
        if is_permanent {
            Error::Setting(sentence)
        } else {
            Error::Unavailable(sentence)
        }
    }

    /// A failure of the program or its system, and what failed.
    pub fn software(what: &str, error: impl Display) -> Self {
        Error::Software(format!("{what}: {error}"))
    }

    /// Says what happened on standard error, and gives the exit code.
    pub fn report(&self, program: &str) -> ExitCode {
        let _ = match self {
            Error::Usage(explained) => write!(io::stderr(), "{explained}"),
            error => writeln!(io::stderr(), "{program}: {error}"),
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

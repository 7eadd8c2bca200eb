//! The programs that are measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::CpuSet;
use tempfile::TempDir;

use crate::child::Server;
use crate::cli::Settings;
use crate::load::Protocol;
use crate::{Failure, peer};

/// Where the programs are, and a folder for what they write.
pub(crate) struct Programs {
    server: PathBuf,
    rest: PathBuf,
    peer: PathBuf,
    folder: TempDir,
}

impl Programs {
    pub(crate) fn find(settings: &Settings) -> Result<Self, Failure> {
        let this = std::env::current_exe()?;
        let beside = |name| this.with_file_name(name);
        let needs = |file: PathBuf| -> Result<PathBuf, Failure> {
            file.canonicalize().map_err(|error| {
                let file = file.display();
                format!("{file}: {error}; build it, or say where it is: see vesta-load run --help")
                    .into()
            })
        };
        let vesta = |given: &Option<PathBuf>, name| match given {
            // A calibration needs no Vesta.
            None if settings.calibrate => Ok(beside(name)),
            given => needs(given.clone().unwrap_or_else(|| beside(name))),
        };
        Ok(Self {
            server: vesta(&settings.server, "vesta-server")?,
            rest: vesta(&settings.rest, "vesta-rest")?,
            peer: needs(settings.peer.clone().unwrap_or_else(|| this.clone()))?,
            folder: TempDir::with_prefix("vesta-load-")?,
        })
    }

    /// The server that does nothing.
    pub(crate) fn bare(
        &self,
        protocol: Protocol,
        cores: Option<&CpuSet>,
    ) -> Result<Server, Failure> {
        let (name, subcommand) = match protocol {
            Protocol::Grpc => ("bare tonic", "echo-grpc"),
            Protocol::Rest => ("bare actix-web", "hello-rest"),
        };
        Server::start(name, peer::LABEL, self.command(&self.peer).arg(subcommand), cores)
    }

    /// Vesta's server, in its default layout.
    pub(crate) fn vesta(
        &self,
        protocol: Protocol,
        cores: Option<&CpuSet>,
    ) -> Result<Server, Failure> {
        match protocol {
            Protocol::Grpc => self.server("max-peak", cores),
            Protocol::Rest => {
                let mut command = self.command(&self.rest);
                Server::start("vesta-rest", "HTTP", command.args(VESTA), cores)
            }
        }
    }

    /// `vesta-server` in this layout.
    pub(crate) fn server(&self, layout: &str, cores: Option<&CpuSet>) -> Result<Server, Failure> {
        let mut command = self.command(&self.server);
        // A namespace has one layout.
        let command = command.args(VESTA).args(["--layout", layout, "--namespace", layout]);
        Server::start("vesta-server", "gRPC", command, cores)
    }

    /// Every server starts with its defaults, but for its state: no setting comes from this program's
    /// environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("VESTA_") {
                command.env_remove(name);
            }
        }
        command.env("VESTA_STATE_DIR", "state"); // not that of who runs this
        command
    }
}

/// Free ports, and quiet. The admin listener stays on, as it is where Vesta runs.
const VESTA: [&str; 6] =
    ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "warn"];

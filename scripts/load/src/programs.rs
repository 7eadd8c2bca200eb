//! The measured programs.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::CpuSet;
use tempfile::TempDir;

use crate::child::Server;
use crate::cli::Settings;
use crate::load::Protocol;
use crate::{Failure, peer};

/// Paths of the programs, and a folder for their files.
pub(crate) struct Programs {
    server: PathBuf,
    rest: PathBuf,
    /// Needed by only one part, so it is looked up when that part starts.
    vesta: PathBuf,
    peer: PathBuf,
    ferroid: Option<PathBuf>,
    /// Further flags of Vesta's servers.
    flags: Vec<String>,
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
            // A calibration does not need Vesta.
            None if settings.calibrate => Ok(beside(name)),
            given => needs(given.clone().unwrap_or_else(|| beside(name))),
        };
        Ok(Self {
            server: vesta(&settings.server, "vesta-server")?,
            rest: vesta(&settings.rest, "vesta-rest")?,
            vesta: settings.vesta.clone().unwrap_or_else(|| beside("vesta")),
            peer: needs(settings.peer.clone().unwrap_or_else(|| this.clone()))?,
            ferroid: settings.ferroid.clone().map(needs).transpose()?,
            flags: settings
                .server_flags
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            folder: TempDir::with_prefix("vesta-load-")?,
        })
    }

    /// A file in the folder in which the programs run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bare server.
    pub(crate) fn bare(
        &self,
        protocol: Protocol,
        cores: Option<&CpuSet>,
    ) -> Result<Server, Failure> {
        let (name, subcommand) = match protocol {
            Protocol::Grpc | Protocol::Programs => ("bare tonic", "echo-grpc"),
            Protocol::Rest | Protocol::Json | Protocol::Traces => ("bare actix-web", "hello-rest"),
        };
        Server::start(
            name,
            peer::LABEL,
            self.command(&self.peer).arg(subcommand),
            cores,
        )
    }

    /// Vesta's server, in its default layout.
    pub(crate) fn vesta(
        &self,
        protocol: Protocol,
        cores: Option<&CpuSet>,
    ) -> Result<Server, Failure> {
        match protocol {
            Protocol::Grpc | Protocol::Programs => {
                self.server("max-peak", &["--namespace", "max-peak"], cores)
            }
            Protocol::Rest | Protocol::Json | Protocol::Traces => self.rest(&[] as &[&str], cores),
        }
    }

    /// `vesta-rest` with these flags.
    pub(crate) fn rest(
        &self,
        flags: &[impl AsRef<OsStr>],
        cores: Option<&CpuSet>,
    ) -> Result<Server, Failure> {
        let mut command = self.command(&self.rest);
        // A namespace has one layout, and flags may choose another.
        let namespace = format!("--namespace=rest-{}", flags.len());
        let command = command
            .args(VESTA)
            .arg(namespace)
            .args(flags)
            .args(&self.flags);
        Server::start("vesta-rest", "HTTP", command, cores)
    }

    /// `vesta-rest` that traces requests of traced callers, for a collector that does not exist.
    pub(crate) fn tracing(&self, cores: Option<&CpuSet>) -> Result<Server, Failure> {
        let mut command = self.command(&self.rest);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
        let command = command
            .args(VESTA)
            .arg("--namespace=tracing")
            .args(&self.flags);
        Server::start("vesta-rest", "HTTP", command, cores)
    }

    /// `vesta-server` in this layout, with these flags. A namespace has one layout.
    pub(crate) fn server(
        &self,
        layout: &str,
        flags: &[&str],
        cores: Option<&CpuSet>,
    ) -> Result<Server, Failure> {
        let mut command = self.command(&self.server);
        let command = command.args(VESTA).args(["--layout", layout]);
        Server::start(
            "vesta-server",
            "gRPC",
            command.args(flags).args(&self.flags),
            cores,
        )
    }

    /// `vesta serve`, in its default layout.
    pub(crate) fn vesta_serve(&self, cores: Option<&CpuSet>) -> Result<Server, Failure> {
        self.serve(&["--namespace", "serve"], cores)
    }

    /// `vesta serve` as the pool server of every namespace.
    pub(crate) fn pool_server(&self) -> Result<Server, Failure> {
        self.serve(&["--namespace=pool", "--pool-server-namespaces=*"], None)
    }

    fn serve(&self, flags: &[&str], cores: Option<&CpuSet>) -> Result<Server, Failure> {
        let mut command = self.program("serve")?;
        let command = command.args(VESTA).args(flags).args(&self.flags);
        Server::start("vesta serve", "gRPC", command, cores)
    }

    /// `vesta gen`, for one ID of this namespace.
    pub(crate) fn vesta_gen(&self, namespace: &str, flags: &[&str]) -> Result<Command, Failure> {
        let mut command = self.program("gen")?;
        command.args(["--namespace", namespace]).args(flags);
        Ok(command)
    }

    fn program(&self, subcommand: &str) -> Result<Command, Failure> {
        let program = self.vesta.canonicalize().map_err(|error| {
            let file = self.vesta.display();
            format!("{file}: {error}; build it (cargo build --release -p vesta-cli), or name it with --vesta")
        })?;
        let mut command = self.command(&program);
        command.arg(subcommand);
        Ok(command)
    }

    /// The folder of the programs' files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `vesta-server` in a layout whose capacity is never reached here.
    pub(crate) fn roomy(&self) -> Result<Server, Failure> {
        let file = self.folder.path().join("roomy.toml");
        std::fs::write(&file, ROOMY)?;
        let mut command = self.command(&self.server);
        let command = command
            .args(VESTA)
            .args(["--namespace", "roomy", "--config"])
            .arg(file);
        Server::start("vesta-server", "gRPC", command.args(&self.flags), None)
    }

    /// The peer's server, if it was given.
    pub(crate) fn ferroid(&self) -> Result<Option<Server>, Failure> {
        let Some(program) = &self.ferroid else {
            return Ok(None);
        };
        // It does not print its port.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = self.command(program);
        let command = command.args(["--num-workers=128", "--server-addr", &address.to_string()]);
        Ok(Some(Server::start_at(
            "ferroid-tonic-server",
            address,
            command,
        )?))
    }

    /// Every server starts with its defaults, except for its state: no setting comes from this
    /// program's environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("VESTA_") {
                command.env_remove(name);
            }
        }
        command.env("VESTA_STATE_DIR", "state"); // not the state of the user
        command
    }
}

/// Free ports, and no log. The admin listener stays on, as in production.
const VESTA: [&str; 8] = [
    "--http-listen",
    "127.0.0.1:0",
    "--grpc-listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
    "--log-level",
    "warn",
];

const ROOMY: &str = r#"
[layout.custom]
version_bits = 1
type_bits = 0
gen_method_bits = 0
time_bits = 31
seq_bits = 31
machine_bits = 1
unit = "second"
epoch = "2026-01-01T00:00:00Z"
"#;

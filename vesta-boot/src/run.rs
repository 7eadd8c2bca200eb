//! One program from its command line to its exit code.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use socket2::{Domain, Protocol, Socket, Type};
use tokio_util::sync::CancellationToken;
use vesta_service::LocalIdService;

use crate::admin::AdminState;
use crate::raw::{refuse_not_offered, unknown_variables};
use crate::shutdown::Control;
use crate::{
    Asked, Config, Facts, LogFormat, Metrics, Raw, Role, StartError, assemble, secret, telemetry,
};

/// Why settings were not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// One sentence that says what is wrong and what to do.
    #[error("{0}")]
    Refused(String),
    /// A command line that does not parse, `--help` or `--version`.
    #[error(transparent)]
    Usage(clap::Error),
}

impl ConfigError {
    /// A password that was typed into the wrong setting must not come back in the sentence.
    pub(crate) fn refused(sentence: impl AsRef<str>) -> Self {
        ConfigError::Refused(secret::hide(sentence.as_ref()))
    }
}

/// A program that has started, ready to serve.
#[derive(Debug)]
pub struct Running {
    /// The settings.
    pub config: Config,
    /// The service.
    pub service: Arc<LocalIdService>,
    /// The public listener, bound and non-blocking.
    pub listener: TcpListener,
    /// What to count.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the program should stop.
    pub shutdown: CancellationToken,
}

/// How a program ended.
enum End {
    Done,
    Usage(clap::Error),
    Failed(u8, String),
}

const EX_USAGE: u8 = 64;
const EX_UNAVAILABLE: u8 = 69;
const EX_SOFTWARE: u8 = 70;

impl From<ConfigError> for End {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Refused(sentence) => End::Failed(EX_USAGE, sentence),
            ConfigError::Usage(error) => End::Usage(error),
        }
    }
}

impl From<StartError> for End {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Setting(sentence) => End::Failed(EX_USAGE, sentence),
            StartError::Unavailable(sentence) => End::Failed(EX_UNAVAILABLE, sentence),
        }
    }
}

/// Runs a program: reads its settings, starts the service and the admin listener, says so, calls
/// `serve` on this thread, and closes the service when that returns.
///
/// `serve` serves until [`Running::shutdown`] is cancelled and then drains for at most
/// `drain_limit`. `methods` are the names of its methods in the metrics.
///
/// The exit code is 0 after a stop that was asked for, 64 for a setting that is wrong, taken or
/// unsafe, 69 if something needed cannot be reached, and 70 for another failure.
pub fn main(
    role: Role,
    methods: &'static [&'static str],
    serve: impl FnOnce(Running) -> io::Result<()>,
) -> ExitCode {
    let end = match run(role, methods, std::env::args_os().skip(1), serve) {
        Ok(()) => End::Done,
        Err(end) => end,
    };
    match end {
        End::Done => ExitCode::SUCCESS,
        End::Usage(error) if !error.use_stderr() => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        End::Usage(error) => {
            let _ = write!(io::stderr(), "{}", secret::hide(&error.render().to_string()));
            ExitCode::from(EX_USAGE)
        }
        End::Failed(code, sentence) => {
            let _ = writeln!(io::stderr(), "{}: {sentence}", role.name());
            ExitCode::from(code)
        }
    }
}

fn run(
    role: Role,
    methods: &'static [&'static str],
    args: impl Iterator<Item = OsString>,
    serve: impl FnOnce(Running) -> io::Result<()>,
) -> Result<(), End> {
    let variables = || std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let asked = Raw::read(role, args)?;
    refuse_not_offered(variables())?;
    let raw = match asked {
        Asked::Run(raw) => raw,
        Asked::PrintConfig(raw) => {
            let config = Config::check(&raw)?;
            let _ = write!(io::stdout(), "{}", config.print(&raw));
            return Ok(());
        }
    };
    let config = Config::check(&raw)?;
    telemetry::init(&config.log);
    for name in unknown_variables(variables()) {
        tracing::warn!("{name} is no setting and has no effect; see {} --help", role.name());
    }

    ask_for_descriptors(config.max_connections);

    let (listener, listen) = bind("listen", config.listen)?;
    let admin = config.admin_listen.map(|address| bind("admin.listen", address)).transpose()?;
    let (admin, admin_address) = admin.unzip();

    let service = Arc::new(assemble(&config)?);
    let metrics = Arc::new(Metrics::new(role, methods));
    let shutdown = CancellationToken::new();
    let facts = Facts::gather(role, &service, listen, admin_address);
    let state = AdminState::new(role, Arc::clone(&service), Arc::clone(&metrics), shutdown.clone());
    let failed =
        |what: &str, error: io::Error| End::Failed(EX_SOFTWARE, format!("{what}: {error}"));
    let control = Control::start(admin, state, shutdown.clone())
        .map_err(|error| failed("cannot listen to signals", error))?;

    announce(role, &config, &facts);
    notify(&[NotifyState::Ready]);
    let drain_limit = config.drain_limit;
    let served = serve(Running {
        config,
        service: Arc::clone(&service),
        listener,
        metrics,
        shutdown: shutdown.clone(),
    });
    shutdown.cancel();
    notify(&[NotifyState::Stopping]);
    close(service, control.left_of(drain_limit));
    served.map_err(|error| failed("cannot serve", error))
}

fn announce(role: Role, config: &Config, facts: &Facts) {
    match config.log.format {
        LogFormat::Json => facts.log(),
        LogFormat::Human => {
            let version = env!("CARGO_PKG_VERSION");
            let mut out = io::stdout().lock();
            // Nobody may be reading; the server works all the same.
            let _ = write!(out, "{} {version}\n{facts}", role.name()).and_then(|()| out.flush());
        }
    }
    facts.warn();
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell systemd about the state of this process");
    }
}

/// Descriptors that are not connections: listeners, runtimes, log, state.
const OTHER_DESCRIPTORS: u64 = 64;

/// Many systems give a process 1,024 file descriptors and let it have more for the asking.
fn ask_for_descriptors(connections: usize) {
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(OTHER_DESCRIPTORS);
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if enough(limit.current) {
        return;
    }
    let maximum = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    let more = Rlimit { current: Some(maximum), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, more).is_err() || !enough(limit.maximum) {
        tracing::warn!(
            "max_connections = {connections} needs {wanted} file descriptors, but the limit is {}; \
             raise it (ulimit -n, LimitNOFILE) or lower max_connections",
            getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        );
    }
}

/// Connections that the kernel holds for us while we are busy.
const BACKLOG: i32 = 1024;

fn bind(setting: &str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), End> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from(socket);
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    open().map_err(|error: io::Error| {
        let what = match error.kind() {
            io::ErrorKind::AddrInUse => "is taken; stop who uses it, or choose another".to_owned(),
            io::ErrorKind::AddrNotAvailable => {
                "is no address of this host; choose one that is".to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "needs rights that this process does not have; choose a port above 1023".to_owned()
            }
            _ => format!("cannot be listened on: {error}"),
        };
        End::Failed(EX_USAGE, format!("{setting}: {address} {what}"))
    })
}

/// Closes the service: saves the bound and releases the machine ID. A store that does not answer
/// must not hold up the end of the process; then the bound stays where it is.
fn close(service: Arc<LocalIdService>, limit: Duration) {
    let (done, wait) = mpsc::channel();
    let closing = std::thread::Builder::new().name("vesta-close".to_owned()).spawn(move || {
        service.close();
        let _ = done.send(());
    });
    // Even after a drain that used up its limit the store gets a moment.
    let limit = limit.max(Duration::from_millis(200));
    match closing {
        Ok(_) if wait.recv_timeout(limit).is_ok() => tracing::info!("stopped"),
        _ => tracing::warn!(
            "stopped, but the store did not confirm it in time; the machine ID is free again \
             after its grace"
        ),
    }
}

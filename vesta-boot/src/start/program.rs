//! A program from its command line to its exit code.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use vesta_service::clock::{Clock, SystemClock};

use super::shutdown;
use crate::admin::AdminState;
use crate::api::Api;
use crate::assemble::{Assembled, assemble};
use crate::commands;
use crate::console::print;
use crate::container::lost_state;
use crate::error::Error;
use crate::metrics::Metrics;
use crate::running::{Running, Waiting};
use crate::security::Security;
use crate::settings::{Config, Machine, Values, unknown_variables};
use crate::start::invocation::Invocation;
use crate::start::summary::StartupSummary;
use crate::start::traces::Traces;
use vesta_net::{Bound, Listening};

/// A public listener of a program, and its server.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// Its API.
    pub api: Api,
    /// Names of its methods in metrics.
    pub methods: &'static [&'static str],
    /// Serves the bound, non-blocking listener until [`Running::shutdown`] is cancelled, then drains for
    /// at most `drain_limit`.
    pub serve: fn(Listening, Arc<Running>) -> io::Result<()>,
    /// Answers on the listener that the program is not ready, until [`Waiting::done`] is cancelled.
    pub wait: fn(Listening, Arc<Waiting>) -> io::Result<()>,
}

/// Runs the program of this name: reads its settings from `args`, without the program's name, starts the service and the
/// admin listener, prints the start-up summary, serves the fronts, and closes the service when they have
/// ended. All fronts share one service.
///
/// The exit code is 0 after a requested stop, 64 for a setting that is invalid, in use or unsafe,
/// 69 if a required resource is unreachable, and 70 for another failure.
pub fn main(
    name: &'static str,
    fronts: &[Front],
    args: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    let apis: Vec<_> = fronts.iter().map(|front| front.api).collect();
    let done = Invocation::read(name, &apis, args).and_then(|it| start(None, name, fronts, it));
    done.map_or_else(|error| error.report(name), |()| ExitCode::SUCCESS)
}

/// Runs a command line like [`main`]; another clock than the system's can be injected, to test the effects
/// of a wrong one.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub fn start(
    clock: Option<Arc<dyn Clock>>,
    name: &'static str,
    fronts: &[Front],
    invocation: Invocation,
) -> Result<(), Error> {
    vesta_net::install_provider();
    match invocation {
        Invocation::Run(values) => serve(clock, name, fronts, &values),
        Invocation::Token(command, output) => commands::make_token(&command, output),
        Invocation::Key(command, output) => {
            commands::make_key(&command, output).map(|said| print(&said))
        }
        Invocation::Command(values, command) => {
            let config = Config {
                clock,
                ..Config::check(&values)?
            };
            config.log.start();
            commands::run(&config, &command)
        }
        Invocation::PrintConfig(values) => {
            let _ = write!(io::stdout(), "{}", Config::check(&values)?.print(&values));
            Ok(())
        }
        Invocation::Help(help) => {
            let _ = help.print();
            Ok(())
        }
    }
}

fn serve(
    clock: Option<Arc<dyn Clock>>,
    name: &'static str,
    fronts: &[Front],
    values: &Values,
) -> Result<(), Error> {
    let config = Config {
        clock,
        ..Config::check(values)?
    };
    config.log.start();
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in unknown_variables(variables) {
        tracing::warn!("unknown setting {name}");
    }
    let security = config.security()?;
    let traces = Traces::start(name, &config)?;
    ask_for_descriptors(
        config.limits.max_connections * fronts.len(),
        &config.machine,
    );

    let bind = |front: &Front| Bound::new(front.api.setting(), config.listen(front.api));
    let mut bound = fronts.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
    let mut public = Vec::new();
    let admin = config.admin_listen.as_ref();
    let admin = admin
        .map(|at| Bound::new("admin.listen", at)?.listen())
        .transpose()?;
    let admin_address = admin.as_ref().map(|admin| admin.address().clone());

    let stop = CancellationToken::new();
    let (leaving, metrics) = (stop.child_token(), counters(fronts, &security));
    let waiting_for = config
        .machine
        .store()
        .map_or("its state file".to_owned(), |store| store.to_string());
    let state = AdminState::new(
        name,
        &waiting_for,
        Arc::clone(&metrics),
        leaving.clone(),
        &security,
    );
    let delay = config.limits.shutdown_delay;
    let stop_began = shutdown::start(admin, state.clone(), stop.clone(), delay, config.standby)
        .map_err(|error| Error::software("cannot listen for signals", error))?;
    if config.store.wait_for_store {
        public = listen(&mut bound)?;
        let addresses: Vec<_> = public.iter().map(|it| it.address().to_string()).collect();
        let admin_listen = admin_address.as_ref().map(tracing::field::display);
        tracing::info!(
            listen = addresses.join(","),
            admin_listen,
            "starting; waiting for {waiting_for}; /readyz reports when the start is complete"
        );
        notify(&[NotifyState::Ready]); // running, though not ready yet
    }
    let waiting = fronts.iter().zip(&public).zip(&*metrics);
    let waiting = waiting.map(|((front, listener), metrics)| {
        let waiting = Waiting {
            config: config.clone(),
            security: security.clone(),
            metrics: Arc::clone(metrics),
            why: state.not_ready_because().unwrap_or_default(),
            done: CancellationToken::new(),
        };
        Anteroom::open(*front, listener, waiting)
    });
    let waiting = waiting.collect::<Result<Vec<_>, _>>()?;
    let assembled = assemble_unless_stopped(&config, &stop)?;
    drop(waiting);
    let Some(assembled) = assembled else {
        tracing::info!("stopped before a machine ID was claimed");
        return Ok(());
    };

    public.append(&mut listen(&mut bound)?);
    state.started(&assembled);
    let listen = fronts
        .iter()
        .zip(&public)
        .map(|(front, it)| (front.api, it.address().clone()))
        .collect();
    StartupSummary::gather(name, &config, &assembled, &security, listen, admin_address).announce();
    if let Some(said) = lost_state(&config) {
        tracing::warn!("{said}");
    }
    config.warn();
    security
        .listeners()
        .for_each(|(_, tls)| tls.warn(SystemClock::new().wall()));
    notify(&[NotifyState::Ready]);

    let each = fronts.iter().zip(public).zip(&*metrics);
    let served = each
        .map(|((front, listener), metrics)| {
            let running = Running {
                service: Arc::clone(&assembled.service),
                segments: assembled.segments.clone(),
                tinyid: assembled.tinyid.clone(),
                serials: assembled.serials.clone(),
                pool_server: assembled.pool_server(&config.pool_server),
                config: config.clone(),
                security: security.clone(),
                metrics: Arc::clone(metrics),
                leaving: leaving.clone(),
                shutdown: stop.clone(),
            };
            (front.serve, listener, running)
        })
        .collect();
    let served = serve_all(served);
    stop.cancel();
    notify(&[NotifyState::Stopping]);
    let draining = stop_began.get().map_or(Duration::ZERO, Instant::elapsed);
    close(
        assembled,
        config.limits.drain_limit.saturating_sub(draining),
    );
    traces.stop();
    served
}

fn listen(bound: &mut Vec<Bound<'_>>) -> Result<Vec<Listening>, Error> {
    bound.drain(..).map(|it| Ok(it.listen()?)).collect()
}

/// A front that answers that the program is not ready, until this is dropped.
struct Anteroom {
    done: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Anteroom {
    fn open(front: Front, listener: &Listening, waiting: Waiting) -> Result<Self, Error> {
        let done = waiting.done.clone();
        let again = listener.again();
        let spawned = again.and_then(|listener| {
            let wait = move || {
                if let Err(error) = (front.wait)(listener, Arc::new(waiting)) {
                    tracing::error!(%error, "a listener cannot answer before the start is complete");
                }
            };
            let name = "vesta-waiting".to_owned();
            std::thread::Builder::new().name(name).spawn(wait)
        });
        let thread = spawned.map_err(|error| Error::software("cannot serve", error))?;
        Ok(Self {
            done,
            thread: Some(thread),
        })
    }
}

impl Drop for Anteroom {
    fn drop(&mut self) {
        self.done.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic has been logged
        }
    }
}

fn counters(fronts: &[Front], security: &Security) -> Arc<[Arc<Metrics>]> {
    let tokens = security.auth.as_ref().map_or(0, |auth| auth.tokens().len());
    fronts
        .iter()
        .map(|front| Arc::new(Metrics::new(front.methods).of_tokens(tokens)))
        .collect()
}

type Serve = fn(Listening, Arc<Running>) -> io::Result<()>;

/// Serves on all listeners, one of them on this thread. When one ends, the others are stopped.
fn serve_all(mut fronts: Vec<(Serve, Listening, Running)>) -> Result<(), Error> {
    let serve = |(serve, listener, running): (Serve, Listening, Running)| {
        let _ends_the_others = running.shutdown.clone().drop_guard();
        serve(listener, Arc::new(running))
    };
    let served = std::thread::scope(|scope| {
        let here = fronts.pop();
        let others: Vec<_> = fronts
            .into_iter()
            .map(|front| scope.spawn(move || serve(front)))
            .collect();
        let here = here.map_or(Ok(()), serve);
        others.into_iter().fold(here, |served, other| {
            let panicked = |_| Err(io::Error::other("a listener panicked"));
            served.and(other.join().unwrap_or_else(panicked))
        })
    });
    served.map_err(|error| Error::software("cannot serve", error))
}

/// Claims machine IDs, which may block for as long as the store is unreachable; `None` if a stop
/// was requested meanwhile. A machine ID that a claim in flight still gets is free after its grace.
fn assemble_unless_stopped(
    config: &Config,
    shutdown: &CancellationToken,
) -> Result<Option<Assembled>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_name("vesta-start")
        .build()
        .map_err(|error| Error::software("cannot make a runtime", error))?;
    let settings = config.clone();
    let assembling = runtime.spawn_blocking(move || assemble(&settings));
    let assembled = runtime.block_on(async {
        tokio::select! {
            assembled = assembling => Some(assembled),
            () = shutdown.cancelled() => None,
        }
    });
    runtime.shutdown_background(); // does not wait for the claim
    let assembled = assembled.transpose();
    assembled
        .map_err(|panic| Error::software("the start failed", panic))?
        .transpose()
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify systemd of the state of this process");
    }
}

/// File descriptors other than connections and machine ID locks: listeners, runtimes, log.
const OTHER_DESCRIPTORS: usize = 64;

/// Raises the limit of file descriptors, which many systems set to 1,024 and let a process raise.
fn ask_for_descriptors(connections: usize, machine: &Machine) {
    let machine_ids = match machine {
        Machine::Pool { count, .. } => *count,
        _ => 1,
    };
    let wanted = connections
        .saturating_add(machine_ids)
        .saturating_add(OTHER_DESCRIPTORS);
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|limit| limit >= wanted) {
        return;
    }
    let possible = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(possible),
            maximum,
        },
    );
    if raised.is_err() || possible < wanted {
        tracing::warn!(
            "max_connections = {connections} and {machine_ids} machine IDs need {wanted} file \
             descriptors, but the limit is {}; raise it (ulimit -n, LimitNOFILE) or lower \
             max_connections",
            getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        );
    }
}

/// Closes the service: saves the bound and releases the machine ID. An unreachable store must not
/// delay the exit of the process; the bound then stays as it is.
fn close(
    Assembled {
        service,
        segments,
        serials,
        ..
    }: Assembled,
    limit: Duration,
) {
    if let Some(segments) = &segments {
        segments.close(); // does not block
    }
    if let Some(serials) = &serials {
        serials.close();
    }
    let (done, wait) = mpsc::channel();
    let closing = std::thread::Builder::new()
        .name("vesta-close".to_owned())
        .spawn(move || {
            service.close();
            let _ = done.send(());
        });
    // Even after a drain that used up its limit, the store gets a moment.
    let limit = limit.max(Duration::from_millis(200));
    match closing {
        Ok(_) if wait.recv_timeout(limit).is_ok() => tracing::info!("stopped"),
        _ => tracing::warn!(
            "stopped, but the store did not confirm the release in time; the machine ID is free again \
             after its grace"
        ),
    }
}

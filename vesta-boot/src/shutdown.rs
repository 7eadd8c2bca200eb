//! Signals and graceful stop.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, AdminState};
use crate::error::Error;
use crate::net::{self, Listening};

/// Starts the control thread, which waits for signals, serves the admin listener and reloads
/// certificates, whatever the request path is doing. On return its signal handlers are installed.
/// Returns a cell for the moment at which the stop begins.
pub(crate) fn start(
    admin: Option<Listening>,
    state: AdminState,
) -> io::Result<Arc<OnceLock<Instant>>> {
    let stop_began = Arc::new(OnceLock::new());
    let noted = Arc::clone(&stop_began);
    let (runtime, terminate, interrupt) = listen()?;
    let run = async move {
        let shutdown = state.shutdown.clone();
        let note = async {
            shutdown.cancelled().await;
            let _ = noted.set(Instant::now());
        };
        let certificates = net::watch(state.security.clone());
        let admin = async {
            let Some(listener) = admin else { return };
            if let Err(error) = admin::serve(listener, state).await {
                tracing::error!(%error, "the admin listener has stopped");
            }
        };
        tokio::join!(signals_to(&shutdown, terminate, interrupt), note, admin, certificates);
    };
    std::thread::Builder::new()
        .name("vesta-control".to_owned())
        .spawn(move || runtime.block_on(run))?;
    Ok(stop_began)
}

/// Asks for a stop by the token, from now on, where SIGTERM or SIGINT would end the process: for a command
/// that has to tidy up. A second signal ends it all the same.
///
/// # Errors
/// [`Error::Software`] if the system does not let it listen to signals.
pub fn on_signal() -> Result<CancellationToken, Error> {
    let (stop, failed) =
        (CancellationToken::new(), |error| Error::software("cannot listen to signals", error));
    let (runtime, terminate, interrupt) = listen().map_err(failed)?;
    let asked = stop.clone();
    let run = move || runtime.block_on(signals_to(&asked, terminate, interrupt));
    std::thread::Builder::new().name("vesta-signals".to_owned()).spawn(run).map_err(failed)?;
    Ok(stop)
}

/// On return the signal handlers are installed.
fn listen() -> io::Result<(Runtime, Signal, Signal)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let context = runtime.enter();
    let (terminate, interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    drop(context);
    Ok((runtime, terminate, interrupt))
}

/// Signals so soon after the first are the same request: `timeout` sends one to the process and one
/// to its group, an orchestrator and a terminal may both send theirs.
const ECHO: Duration = Duration::from_secs(1);

/// The first signal asks for a graceful stop, a second one after [`ECHO`] ends the process at once.
/// That is safe at any moment: uniqueness never depends on a clean end.
async fn signals_to(shutdown: &CancellationToken, mut terminate: Signal, mut interrupt: Signal) {
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => ("SIGTERM", 15),
            _ = interrupt.recv() => ("SIGINT", 2),
        }
    };
    let (name, _) = next().await;
    tracing::info!("{name}: stopping; another signal, a second later, ends the process at once");
    shutdown.cancel();
    let began = Instant::now();
    let mut signal = next().await;
    if began.elapsed() < ECHO {
        tracing::info!("{} within a second of the first: the stop goes on", signal.0);
    }
    while began.elapsed() < ECHO {
        signal = next().await;
    }
    let (name, number) = signal;
    tracing::warn!("{name} again: ending at once, the lease stays until its grace has passed");
    std::process::exit(128 + number);
}

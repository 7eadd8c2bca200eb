//! Signals and graceful shutdown.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use vesta_service::LocalIdService;

use crate::admin::{self, AdminState};
use crate::error::Error;
use vesta_net as net;
use vesta_net::Listening;
use vesta_service::clock::{Clock as _, SystemClock};

/// Starts the control thread, which waits for signals, serves the admin listener and reloads
/// certificates, independent of the request path. On return its signal handlers are installed.
/// Returns a cell for the moment at which the stop begins. With `hands_over` the machine ID is released at that
/// moment, because another server stands by for it: calls in flight do not delay it.
pub(crate) fn start(
    admin: Option<Listening>,
    state: AdminState,
    shutdown: CancellationToken,
    delay: Duration,
    hands_over: bool,
) -> io::Result<Arc<OnceLock<Instant>>> {
    let stop_began = Arc::new(OnceLock::new());
    let noted = Arc::clone(&stop_began);
    let (runtime, signals) = listen()?;
    let run = async move {
        let note = async {
            shutdown.cancelled().await;
            let _ = noted.set(Instant::now());
            if hands_over {
                hand_over(state.clone());
            }
        };
        let certificates = net::watch(
            state
                .security
                .listeners()
                .map(|(_, tls)| tls.clone())
                .collect(),
            || SystemClock::new().wall(),
        );
        let serving = state.clone();
        let admin = async {
            let Some(listener) = admin else { return };
            if let Err(error) = admin::serve(listener, serving).await {
                tracing::error!(%error, "the admin listener has stopped");
            }
        };
        let delay = || state.service().map_or(Duration::ZERO, |_| delay);
        let signals = signals_to(&state.leaving, &shutdown, delay, signals);
        tokio::join!(signals, note, admin, certificates);
    };
    std::thread::Builder::new()
        .name("vesta-control".to_owned())
        .spawn(move || runtime.block_on(run))?;
    Ok(stop_began)
}

/// Releases the machine ID, in a thread of its own because that blocks.
fn hand_over(state: AdminState) {
    let close = move || state.service().into_iter().for_each(LocalIdService::close);
    let name = "vesta-hand-over".to_owned();
    if let Err(error) = std::thread::Builder::new().name(name).spawn(close) {
        tracing::warn!(%error, "the machine ID is released after the last call");
    }
}

/// Cancels the returned token on SIGTERM or SIGINT instead of ending the process, for a command that has
/// to clean up. A second signal ends the process.
///
/// # Errors
/// [`Error::Software`] if the system does not let it listen for signals.
pub fn on_signal() -> Result<CancellationToken, Error> {
    let (stop, failed) = (CancellationToken::new(), |error| {
        Error::software("cannot listen for signals", error)
    });
    let (runtime, signals) = listen().map_err(failed)?;
    let asked = stop.clone();
    let run = move || runtime.block_on(signals_to(&asked, &asked, || Duration::ZERO, signals));
    std::thread::Builder::new()
        .name("vesta-signals".to_owned())
        .spawn(run)
        .map_err(failed)?;
    Ok(stop)
}

/// On return the signal handlers are installed.
fn listen() -> io::Result<(Runtime, Signals)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let context = runtime.enter();
    let (terminate, interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    drop(context);
    Ok((
        runtime,
        Signals {
            terminate,
            interrupt,
        },
    ))
}

/// Signals this soon after the first are the same request: `timeout` signals both the process and
/// its group, and an orchestrator and a terminal may both send one.
const ECHO: Duration = Duration::from_secs(1);

/// The first signal starts a graceful stop, which begins after the delay. Another one, at least [`ECHO`]
/// after the previous, ends the delay; a further one ends the process at once. That is safe at any moment:
/// uniqueness never depends on a clean exit.
async fn signals_to(
    leaving: &CancellationToken,
    shutdown: &CancellationToken,
    delay: impl Fn() -> Duration,
    mut signals: Signals,
) {
    let (mut name, _) = signals.next().await;
    let mut began = Instant::now();
    let delay = delay();
    if !delay.is_zero() {
        tracing::info!(
            "{name}: not ready from now on, stopping in {} ms; another signal, a second later, stops at once",
            delay.as_millis()
        );
        leaving.cancel();
        tokio::select! {
            signal = signals.another(began) => (name, began) = (signal.0, Instant::now()),
            () = shutdown.cancelled() => {}
            () = sleep(delay) => {}
        }
    }
    tracing::info!("{name}: stopping; another signal, a second later, ends the process at once");
    shutdown.cancel();
    let (name, number) = signals.another(began).await;
    tracing::warn!("{name} again: exiting at once; the lease stays until its grace has passed");
    std::process::exit(128 + number);
}

/// Signals that request a stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) -> (&'static str, i32) {
        tokio::select! {
            _ = self.terminate.recv() => ("SIGTERM", 15),
            _ = self.interrupt.recv() => ("SIGINT", 2),
        }
    }

    /// The next signal that is not an echo of the one at `began`. Only the first echo is logged: a flood
    /// would fill the pipe of the log, and the stop would block on its reader.
    async fn another(&mut self, began: Instant) -> (&'static str, i32) {
        let mut logged = false;
        loop {
            let signal = self.next().await;
            if began.elapsed() >= ECHO {
                return signal;
            }
            if !std::mem::replace(&mut logged, true) {
                tracing::info!(
                    "{} within a second of the first: the stop goes on",
                    signal.0
                );
            }
        }
    }
}

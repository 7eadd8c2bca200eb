//! Signals and graceful stop.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use vesta_service::{Clock as _, SystemClock};

use crate::admin::{self, AdminState};
use crate::net::{self, Tls};

/// Handle of the control thread, which waits for signals, serves the admin listener and reloads
/// certificates, whatever the request path is doing.
#[derive(Debug)]
pub(crate) struct Control {
    clock: SystemClock,
    stop_began: Arc<OnceLock<Duration>>,
}

impl Control {
    /// Starts the thread; on return its signal handlers are installed.
    pub(crate) fn start(
        admin: Option<TcpListener>,
        state: AdminState,
        listeners: Vec<Tls>,
        shutdown: CancellationToken,
    ) -> io::Result<Self> {
        let clock = SystemClock::new();
        let stop_began = Arc::new(OnceLock::new());
        let control = Self { clock, stop_began: Arc::clone(&stop_began) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ready, started) = mpsc::sync_channel(1);
        let run = async move {
            let signals = SignalKind::terminate();
            let pair = signal(signals).and_then(|t| Ok((t, signal(SignalKind::interrupt())?)));
            let (terminate, interrupt) = match pair {
                Ok(pair) => pair,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok(()));
            let note = async {
                shutdown.cancelled().await;
                let _ = stop_began.set(clock.monotonic());
            };
            let certificates = net::watch(listeners);
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
        started.recv().map_err(|_| io::Error::other("the control thread ended"))??;
        Ok(control)
    }

    /// The rest of a time limit that began with the stop.
    pub(crate) fn left_of(&self, limit: Duration) -> Duration {
        let began = self.stop_began.get().copied();
        let spent = began.map_or(Duration::ZERO, |began| self.clock.monotonic() - began);
        limit.saturating_sub(spent)
    }
}

/// The first signal asks for a graceful stop, a second one ends the process at once. That is safe
/// at any moment: uniqueness never depends on a clean end.
async fn signals_to(shutdown: &CancellationToken, mut terminate: Signal, mut interrupt: Signal) {
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => ("SIGTERM", 15),
            _ = interrupt.recv() => ("SIGINT", 2),
        }
    };
    let (name, _) = next().await;
    tracing::info!("{name}: stopping; a second signal ends the process at once");
    shutdown.cancel();
    let (name, number) = next().await;
    tracing::warn!("{name} again: ending at once, the lease stays until its grace has passed");
    std::process::exit(128 + number);
}

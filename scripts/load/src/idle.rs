//! A server that nobody asks.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::child::Server;
use crate::proc::{cpu_seconds, voluntary_switches};

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Window {
    /// Of one core, in percent.
    pub(crate) cpu: f64,
    /// Voluntary context switches: how often a thread of the process was woken.
    pub(crate) switches_per_second: f64,
}

pub(crate) async fn windows(
    server: &Server,
    rounds: usize,
    length: Duration,
) -> Result<Vec<Window>, Failure> {
    let pid = server.pid();
    let mut windows = Vec::new();
    for _ in 0..rounds {
        let (cpu, switches) = (cpu_seconds(pid)?, voluntary_switches(pid)?);
        let began = Instant::now();
        sleep(length).await;
        let seconds = began.elapsed().as_secs_f64();
        let switches = voluntary_switches(pid)?.saturating_sub(switches);
        windows.push(Window {
            cpu: (cpu_seconds(pid)? - cpu) / seconds * 100.0,
            switches_per_second: switches as f64 / seconds,
        });
    }
    Ok(windows)
}

//! Limits of calls, connections and threads.

use std::time::Duration;

use clap::Args;

use super::parse::{LONGEST_WAIT, Parsed, count, millis, whole};

/// Limits of calls, connections and threads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
#[non_exhaustive]
pub struct Limits {
    /// Longest wait of one call for an ID
    ///
    /// In milliseconds, 0 to 600000.
    #[arg(id = "max_wait_ms", value_name = "MS", default_value = "2000")]
    #[arg(value_parser = millis(0, LONGEST_WAIT))]
    pub max_wait: Duration,

    /// Longest time for one request
    ///
    /// In milliseconds, 1 to 600000. A caller's own deadline may be shorter.
    #[arg(id = "request_timeout_ms", value_name = "MS", default_value = "2000")]
    #[arg(value_parser = millis(1, LONGEST_WAIT))]
    pub request_timeout: Duration,

    /// Time between a signal to stop and the stop
    ///
    /// In milliseconds, 0 to 600000. Readiness and gRPC's health report the stop at once; the listeners
    /// serve on, new connections too, until a load balancer has noticed. A second signal, at least a second
    /// later, ends the delay.
    ///
    /// Example: 5000
    #[arg(id = "shutdown_delay_ms", value_name = "MS", default_value = "0")]
    #[arg(value_parser = millis(0, LONGEST_WAIT))]
    pub shutdown_delay: Duration,

    /// Longest time for a graceful stop
    ///
    /// In milliseconds, 0 to 600000. It begins after `shutdown_delay_ms`.
    #[arg(id = "drain_limit_ms", value_name = "MS", default_value = "10000")]
    #[arg(value_parser = millis(0, LONGEST_WAIT))]
    pub drain_limit: Duration,

    /// Connections at a time
    ///
    /// 1 to 1000000. Further ones are closed at once.
    #[arg(id = "max_connections", value_name = "N", default_value = "4096")]
    #[arg(value_parser = count(1_000_000))]
    pub max_connections: usize,

    /// Connections of one address at a time
    ///
    /// 1 to 1000000. Further ones are closed at once. An IPv6 host counts by its /64. Raise it where one
    /// proxy opens all connections. Default: half of `max_connections`.
    ///
    /// Example: 2048
    #[arg(id = "max_connections_per_address", value_name = "N", value_parser = count(1_000_000))]
    pub max_connections_per_address: Option<usize>,

    /// End of a connection without requests
    ///
    /// In milliseconds, 1 to 86400000, or 0 for never. vesta-server ends it after one to two times as
    /// long: pings are no requests, and a stream is one for as long as the caller reads it.
    #[arg(id = "idle_timeout_ms", value_name = "MS", default_value = "300000")]
    #[arg(value_parser = idle_timeout)]
    pub idle_timeout: Duration,

    /// Threads that serve requests
    ///
    /// 1 to 512. Default: one for each CPU.
    ///
    /// Example: 2
    #[arg(id = "workers", value_name = "N", value_parser = count(512))]
    pub workers: usize,
}

impl Limits {
    /// Connections of one address at a time.
    pub fn per_address(&self) -> usize {
        self.max_connections_per_address.unwrap_or(self.max_connections.div_ceil(2))
    }
}

/// 0 is never: `Duration::MAX`.
fn idle_timeout(text: &str) -> Parsed<Duration> {
    Ok(match whole(text, 0, 86_400_000)? {
        0 => Duration::MAX,
        millis => Duration::from_millis(millis),
    })
}

//! Limits of calls, connections and threads.

use std::time::Duration;

use super::parse::{LONGEST_WAIT, Parsed, count, millis, whole};

section! {
    /// Limits of calls, connections and threads.
    #[non_exhaustive]
    "Limits" pub struct Limits |values, _layout| {
        /// Longest wait of one call for an ID
        ///
        /// In milliseconds, 0 to 600000. Waiting calls are served in order of arrival; one that would wait longer
        /// fails at once.
        pub max_wait: Duration = "max_wait_ms" "MS" or "2000", millis(0..=LONGEST_WAIT);

        /// Longest time for one request
        ///
        /// In milliseconds, 1 to 600000. A caller's own deadline may be shorter.
        pub request_timeout: Duration = "request_timeout_ms" "MS" or "2000", millis(1..=LONGEST_WAIT);

        /// Delay between a stop signal and the stop
        ///
        /// In milliseconds, 0 to 600000. Readiness and gRPC health report the stop at once. The listeners keep
        /// serving, including new connections, so that a load balancer has time to notice. A second signal, at
        /// least a second later, ends the delay.
        ///
        /// Example: 5000
        pub shutdown_delay: Duration = "shutdown_delay_ms" "MS" or "0", millis(0..=LONGEST_WAIT);

        /// Longest time for a graceful stop
        ///
        /// In milliseconds, 0 to 600000. It begins after `shutdown_delay_ms`.
        pub drain_limit: Duration = "drain_limit_ms" "MS" or "10000", millis(0..=LONGEST_WAIT);

        /// Maximum open connections
        ///
        /// 1 to 1000000. Connections above the limit are closed at once.
        pub max_connections: usize = "max_connections" "N" or "4096", count(1_000_000);

        /// Maximum open connections per address
        ///
        /// 1 to 1000000. Connections above the limit are closed at once. An IPv6 host counts by its /64.
        /// Raise the limit if one proxy opens all connections. Default: half of `max_connections`.
        ///
        /// Example: 2048
        pub max_connections_per_address: Option<usize> = "max_connections_per_address" "N", count(1_000_000);

        /// Timeout of an idle connection
        ///
        /// In milliseconds, 1 to 86400000, or 0 for never. A gRPC connection is closed after one to two times as
        /// long. Pings do not count as requests; a stream counts for as long as the caller reads it. The default is
        /// longer than the 60 s after which common proxies close their side, so that they send no request into a
        /// connection that is being closed.
        pub idle_timeout: Duration = "idle_timeout_ms" "MS" or "75000", idle_timeout;

        /// Longest age of a connection
        ///
        /// In milliseconds, 1000 to 86400000, or 0 for no limit; a tenth more or less at random. An older connection is
        /// closed after its present requests: HTTP/1 by `connection: close`, gRPC by GOAWAY. So long-lived clients
        /// connect again, and reach servers that were added later.
        ///
        /// Example: 300000
        pub max_connection_age: Duration = "max_connection_age_ms" "MS" or "0", connection_age;

        /// Time for the requests of a gRPC connection that is too old
        ///
        /// In milliseconds, 0 to 600000. Streams that last longer are ended. For `max_connection_age_ms`.
        pub max_connection_age_grace: Duration = "max_connection_age_grace_ms" "MS" or "10000", millis(0..=LONGEST_WAIT);

        /// Threads that serve requests
        ///
        /// 1 to 512. Default: one per CPU that this process may use, by its affinity and the quota of its container,
        /// because a worker is one thread. With half as many, callers that keep the same CPUs busy see shorter tails.
        ///
        /// Example: 2
        pub workers: usize = "workers" "N" given "one per CPU", count(MOST_WORKERS);
    }
}

const MOST_WORKERS: u64 = 512;

/// The default of `workers` for a process that may use this many CPUs: fewer could not use them all, and more would
/// wake each other on the same ones.
pub(super) fn workers_on(cpus: usize) -> u64 {
    u64::try_from(cpus).map_or(MOST_WORKERS, |cpus| cpus.clamp(1, MOST_WORKERS))
}

impl Limits {
    /// Maximum open connections per address.
    pub fn per_address(&self) -> usize {
        self.max_connections_per_address
            .unwrap_or(self.max_connections.div_ceil(2))
    }
}

/// 0 is never: `Duration::MAX`.
fn connection_age(text: &str) -> Parsed<Duration> {
    let age = idle_timeout(text).ok();
    let age = age.filter(|age| *age >= Duration::from_secs(1));
    age.ok_or_else(|| "must be 1000 to 86400000, or 0 for no limit".to_owned())
}

/// 0 is never: `Duration::MAX`.
fn idle_timeout(text: &str) -> Parsed<Duration> {
    Ok(match whole(text, 0, 86_400_000)? {
        0 => Duration::MAX,
        millis => Duration::from_millis(millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_worker_up_to_the_most() {
        for (cpus, workers) in [(0, 1), (1, 1), (2, 2), (64, 64), (512, 512), (4096, 512)] {
            assert_eq!(workers_on(cpus), workers, "{cpus} CPUs");
        }
    }
}

//! Store of machine IDs: lease durations and start behavior.

use std::time::Duration;

use vesta_intf::IdError;
use vesta_service::lease::Timing;

use super::machine::Machine;
use super::parse::{LONGEST_WAIT, millis, truth};
use super::values::Values;
use crate::error::Error;
use vesta_store::Kind;

/// Maximum grace, in milliseconds: a day.
const LONGEST_GRACE: u64 = 86_400_000;

section! {
    /// Store: `auto_init`, `wait_for_store`, and the durations of `[machine]`.
    #[non_exhaustive]
    "Store" pub struct Store |values, _layout| {
        /// Create what is missing in the store
        ///
        /// Tables, keys and the namespace. If `false`, only `store init` creates them.
        pub auto_init: bool = "auto_init" "BOOL" or "true" for commands, truth();

        /// Stay up if the store is unreachable at start
        ///
        /// The program is not ready until the store answers. If `false`, it exits after 30 s.
        pub wait_for_store: bool = "wait_for_store" "BOOL" or "false", truth();

        /// Reservation: longest time without the store
        ///
        /// In milliseconds, 1 to 600000. IDs flow for that long while the store is unreachable; after a crash the
        /// rest is skipped. A window that exceeds the store's own by more than 10 s is announced in the namespace,
        /// and used ten minutes later. Default of this and the next three: the store's own.
        ///
        /// Example: 5000
        window: Option<Duration> = WINDOW "MS" for commands, millis(1..=LONGEST_WAIT);

        /// Interval of renewals
        ///
        /// In milliseconds (± 10 %); at most a third of the window.
        ///
        /// Example: 1500
        renew_every: Option<Duration> = RENEW_EVERY "MS", millis(1..=LONGEST_WAIT);

        /// Timeout of one request to the store
        ///
        /// In milliseconds; at most `machine.renew_every_ms`.
        ///
        /// Example: 1000
        pub request_timeout: Option<Duration> = REQUEST_TIMEOUT "MS" for commands, millis(1..=LONGEST_WAIT);

        /// Delay of a takeover after the window
        ///
        /// In milliseconds; three windows to a day. After the delay, the machine ID of an expired owner
        /// may be taken over.
        ///
        /// Example: 60000
        takeover_grace: Option<Duration> = TAKEOVER_GRACE "MS", millis(1..=LONGEST_GRACE);

        /// Window while the store may forget
        ///
        /// In milliseconds, 10000 to 60000. If such a store fails, a process makes IDs for this long after its last
        /// renewal. The first ID after a start is delayed by the same time, less 3 s. A value above 10000 takes
        /// effect ten minutes after the namespace shows it.
        pub doubtful_window: Duration = "machine.doubtful_window_ms" "MS" or "10000", millis(10_000..=60_000);
    }
}

/// Default durations, as the stores themselves have them; `None` without a lease.
fn own(machine: &Machine, standby: bool) -> Option<Timing> {
    match machine {
        _ if standby => Some(Timing::STANDBY),
        Machine::Pool { store, .. } => Some(match store.kind() {
            Kind::Sqlite => Timing::ONE_HOST,
            Kind::Redis => Timing::IN_MEMORY,
            Kind::Mysql | Kind::Postgres | Kind::Zookeeper | Kind::Etcd | Kind::PoolServer => {
                Timing::NETWORK
            }
        }),
        // A fixed machine ID should be available again soon after a crash.
        Machine::Reserved { .. } => Some(Timing::ONE_HOST),
        Machine::Fixed(_) => Some(Timing::FILE),
        Machine::Disposable { .. } | Machine::Stateless(_) => None,
    }
}

const WINDOW: &str = "machine.window_ms";
const RENEW_EVERY: &str = "machine.renew_every_ms";
const REQUEST_TIMEOUT: &str = "machine.request_timeout_ms";
pub(super) const TAKEOVER_GRACE: &str = "machine.takeover_grace_ms";

type Of = fn(&Timing) -> Duration;

/// Duration settings, each with its field of a timing. The last one is for pools only.
pub(super) const DURATIONS: [(&str, Of); 4] = [
    (WINDOW, |timing| timing.window),
    (RENEW_EVERY, |timing| timing.renew_every),
    (REQUEST_TIMEOUT, |timing| timing.request_timeout),
    (TAKEOVER_GRACE, |timing| timing.takeover_grace),
];

impl Store {
    /// Checks the durations against each other; `None` without a lease.
    pub(super) fn lease(
        &self,
        values: &Values,
        machine: &Machine,
        standby: bool,
    ) -> Result<Option<Timing>, Error> {
        let Some(own) = own(machine, standby) else {
            let idle = |name: &str| name != REQUEST_TIMEOUT || machine.store().is_none();
            let clash = DURATIONS
                .iter()
                .find(|it| values.is_explicit(it.0) && idle(it.0));
            return match clash {
                Some((name, _)) => Error::refuse(format!(
                    "{name} applies only to renewed machine IDs, and {} does not renew; \
                     remove one of them",
                    match machine {
                        Machine::Stateless(_) => "machine.strategy = \"stateless\"",
                        _ => "machine.strategy = \"disposable\"",
                    }
                )),
                None => Ok(None),
            };
        };
        let is_pool = matches!(machine, Machine::Pool { .. });
        let window = self.window.unwrap_or(own.window);
        if self.takeover_grace.is_some() && !is_pool {
            return Error::refuse(format!(
                "{TAKEOVER_GRACE} is for a pool, but the machine ID is fixed; remove one of them"
            ));
        }
        // A fixed machine ID needs no grace.
        let least_grace = if is_pool { Duration::ZERO } else { window * 3 };
        let timing = Timing {
            window,
            renew_every: self.renew_every.unwrap_or(own.renew_every),
            request_timeout: self.request_timeout.unwrap_or(own.request_timeout),
            takeover_grace: self
                .takeover_grace
                .unwrap_or(own.takeover_grace.max(least_grace)),
        };
        timing.check().map_err(|error| {
            let fault = match &error {
                IdError::Invalid { reason, .. } => reason.to_string(),
                other => other.to_string(),
            };
            let all = DURATIONS.map(|(name, of)| format!("{name} = {}", of(&timing).as_millis()));
            Error::setting(format!(
                "{fault}, but it is {}; set all that must change",
                all.join(", ")
            ))
        })?;
        Ok(Some(timing))
    }
}
#[cfg(test)]
mod tests {
    use vesta_service::lease::ClaimOrder;

    use vesta_store::StoreUrl;

    use super::*;

    #[test]
    fn default_durations_equal_those_of_the_stores() {
        let folder = tempfile::tempdir().expect("a folder");
        let sqlite = format!("sqlite:{}/vesta.db", folder.path().display());
        for url in [
            sqlite.as_str(),
            "mysql://127.0.0.1:1/d",
            "mariadb://127.0.0.1:1/d",
            "postgres://127.0.0.1:1/d",
            "postgresql://127.0.0.1:1/d",
            "redis://127.0.0.1:1/0",
            "rediss://127.0.0.1:1/0",
            "zookeeper://127.0.0.1:1/vesta",
            "etcd://127.0.0.1:1",
            "etcds://127.0.0.1:1",
            "vesta://127.0.0.1:1",
        ] {
            let store: StoreUrl = url.parse().expect("a right URL");
            let opened = vesta_store::open(&store);
            let pool = Machine::Pool {
                store,
                range: None,
                count: 1,
                order: ClaimOrder::Stable,
            };
            match opened {
                Ok(store) => assert_eq!(Some(store.timing()), own(&pool, false), "{url}"),
                Err(vesta_store::OpenError::FeatureOff { .. }) => {}
                Err(error) => panic!("{url}: {error}"),
            }
        }
    }
}

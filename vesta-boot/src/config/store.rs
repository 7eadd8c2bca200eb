//! What is known of a store before anybody talks to it, and the durations of its leases.

use std::time::Duration;

use vesta_intf::IdError;
use vesta_service::Timing;

use super::{Machine, Number};
use crate::ConfigError;
use crate::raw::Raw;
use crate::secret::StoreUrl;

/// A family of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
    Sql,
    InMemory,
    Quorum,
}

/// The family that a URL's scheme belongs to; `None` if vesta-store has none of that name, which it
/// says itself.
pub(super) fn kind(url: &StoreUrl) -> Option<Kind> {
    let (scheme, _) = url.expose().split_once(':')?;
    match scheme.to_ascii_lowercase().as_str() {
        "sqlite" => Some(Kind::Sqlite),
        "mysql" | "mariadb" | "postgres" | "postgresql" => Some(Kind::Sql),
        "redis" | "rediss" => Some(Kind::InMemory),
        "zookeeper" | "etcd" | "etcds" => Some(Kind::Quorum),
        _ => None,
    }
}

impl Kind {
    pub(super) const fn is_sql(self) -> bool {
        matches!(self, Kind::Sqlite | Kind::Sql)
    }

    const fn timing(self) -> Timing {
        match self {
            Kind::Sqlite => Timing::ONE_HOST,
            Kind::InMemory => Timing::IN_MEMORY,
            Kind::Sql | Kind::Quorum => Timing::NETWORK,
        }
    }
}

/// How a machine ID is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The durations that hold if nobody says otherwise.
    pub own: Timing,
    /// The durations, if somebody did.
    pub chosen: Option<Timing>,
}

impl Lease {
    /// The durations that hold.
    pub fn timing(&self) -> Timing {
        self.chosen.unwrap_or(self.own)
    }
}

/// The durations that nobody has to choose; `None` without a lease.
fn own(machine: &Machine) -> Option<Timing> {
    let of = |store| kind(store).map_or(Timing::NETWORK, Kind::timing);
    match machine {
        Machine::Pool { store, .. } => Some(of(store)),
        // Who names a machine ID wants it back soon after a crash.
        Machine::Reserved { store, .. } if of(store).window > Timing::ONE_HOST.window => {
            Some(Timing::ONE_HOST)
        }
        Machine::Reserved { store, .. } => Some(of(store)),
        Machine::Fixed(Number::Id(_) | Number::IpMap(_) | Number::HostOrdinal) => {
            Some(Timing::FILE)
        }
        Machine::Disposable { .. } | Machine::Stateless(_) => None,
    }
}

const WINDOW: &str = "machine.window_ms";
const RENEW_EVERY: &str = "machine.renew_every_ms";
const REQUEST_TIMEOUT: &str = "machine.request_timeout_ms";
pub(super) const TAKEOVER_GRACE: &str = "machine.takeover_grace_ms";

type Of = fn(&Timing) -> Duration;

/// The names of the durations, with what each is in a timing. The last one is for pools.
pub(super) const DURATIONS: [(&str, Of); 4] = [
    (WINDOW, |timing| timing.window),
    (RENEW_EVERY, |timing| timing.renew_every),
    (REQUEST_TIMEOUT, |timing| timing.request_timeout),
    (TAKEOVER_GRACE, |timing| timing.takeover_grace),
];

/// The longest grace, in milliseconds: a day. The others are at most ten minutes.
const LONGEST_GRACE: u64 = 86_400_000;

pub(super) fn lease(raw: &Raw, machine: &Machine) -> Result<Option<Lease>, ConfigError> {
    let set = |name: &str| raw.get(name).is_some();
    let Some(own) = own(machine) else {
        let clash = [WINDOW, RENEW_EVERY, TAKEOVER_GRACE].into_iter().find(|name| set(name));
        let clash = clash.or_else(|| {
            (set(REQUEST_TIMEOUT) && machine.store().is_none()).then_some(REQUEST_TIMEOUT)
        });
        return match clash {
            Some(name) => Err(ConfigError::refused(format!(
                "{name} is about a machine ID that is kept by renewing it, which {} does not do; \
                 remove one of them",
                match machine {
                    Machine::Stateless(_) => "stateless = true",
                    _ => "machine.strategy = \"disposable\"",
                }
            ))),
            None => Ok(None),
        };
    };
    let read = |name: &str, own: Duration| match raw.get(name) {
        Some(_) => raw.millis(name, 1),
        None => Ok(own),
    };
    let window = read(WINDOW, own.window)?;
    let takeover_grace = match (machine, raw.get(TAKEOVER_GRACE)) {
        (Machine::Pool { .. }, None) => own.takeover_grace,
        (Machine::Pool { .. }, Some(_)) => {
            Duration::from_millis(raw.number(TAKEOVER_GRACE, 1, LONGEST_GRACE)?)
        }
        (_, None) => own.takeover_grace.max(window * 3), // it is not looked at
        (_, Some(_)) => {
            return Err(ConfigError::refused(format!(
                "{TAKEOVER_GRACE} is for a pool, but the machine ID is fixed; remove one of them"
            )));
        }
    };
    let timing = Timing {
        window,
        renew_every: read(RENEW_EVERY, own.renew_every)?,
        request_timeout: read(REQUEST_TIMEOUT, own.request_timeout)?,
        takeover_grace,
    };
    timing.check().map_err(|error| {
        let flaw = match &error {
            IdError::Invalid { reason, .. } => reason.to_string(),
            other => other.to_string(),
        };
        let all = DURATIONS.map(|(name, of)| format!("{name} = {}", of(&timing).as_millis()));
        ConfigError::refused(format!(
            "{flaw}, but it is {}; set all that must change",
            all.join(", ")
        ))
    })?;
    let chosen = DURATIONS.iter().any(|(name, _)| set(name)).then_some(timing);
    Ok(Some(Lease { own, chosen }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_durations_are_those_that_the_stores_have_themselves() {
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
        ] {
            let own = kind(&StoreUrl::new(url)).expect("a known scheme").timing();
            match vesta_store::open(url) {
                Ok(store) => assert_eq!(store.timing(), own, "{url}"),
                Err(vesta_store::OpenError::FeatureOff { .. }) => {}
                Err(error) => panic!("{url}: {error}"),
            }
        }
    }
}

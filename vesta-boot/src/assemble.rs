//! From settings to a running service, and what the start-up lines say about it.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdMeta, IdService as _};
use vesta_service::{Clock as _, LeaseStore, LocalIdService, MachineSource, SystemClock};

use crate::{Config, Machine, Role, StoreUrl, secret};

/// Why a program could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is wrong, taken or unsafe: exit code 64.
    #[error("{0}")]
    Setting(String),
    /// Something that is needed cannot be reached now: exit code 69.
    #[error("{0}")]
    Unavailable(String),
}

/// Makes the service that the settings describe. Blocks while a machine ID is claimed.
///
/// # Errors
/// [`StartError`] with one sentence that says what to do.
pub fn assemble(config: &Config) -> Result<LocalIdService, StartError> {
    let layout = &config.layout;
    let now = SystemClock::new().wall();
    if now >= layout.end() {
        return Err(StartError::Setting(format!(
            "layout {} ran out on {}, and the clock shows {now}; choose another layout, or describe \
             one with a later epoch in [layout.custom]",
            layout.name(),
            layout.end(),
        )));
    }
    let machine = match &config.machine {
        Machine::Pool { store, range } => {
            MachineSource::Pool { store: open(store)?, range: range.clone() }
        }
        Machine::Reserved { store, id } => MachineSource::Reserved { store: open(store)?, id: *id },
        Machine::Fixed(id) => MachineSource::Fixed(*id),
        Machine::Stateless(id) => MachineSource::Stateless(*id),
        Machine::IpMap(map) => MachineSource::IpMap(map.clone()),
        Machine::HostOrdinal => MachineSource::HostOrdinal,
    };
    let built = LocalIdService::builder()
        .layout(*layout)
        .populator(config.populator)
        .gen_method(config.gen_method)
        .version(config.version)
        .max_wait(config.max_wait)
        .namespace(config.namespace.as_str())
        .state_dir(&config.state_dir)
        .machine(machine)
        .build();
    built.map_err(|error| {
        let sentence = secret::hide(&error.to_string());
        if error.is_configuration() {
            StartError::Setting(sentence)
        } else {
            StartError::Unavailable(sentence)
        }
    })
}

fn open(store: &StoreUrl) -> Result<Arc<dyn LeaseStore>, StartError> {
    vesta_store::open(store.expose()).map_err(|error| {
        StartError::Setting(format!("machine.store: {}", secret::hide(&error.to_string())))
    })
}

/// What the start-up lines say.
#[derive(Debug, Clone)]
pub struct Facts {
    role: Role,
    layout: IdMeta,
    layout_ends: String,
    layout_left: Duration,
    machine: u64,
    machine_source: String,
    namespace: String,
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    first_id: Result<u64, String>,
}

impl Facts {
    /// Takes the first ID, so that whoever starts the program sees that it works.
    pub fn gather(
        role: Role,
        service: &LocalIdService,
        listen: SocketAddr,
        admin: Option<SocketAddr>,
    ) -> Self {
        let first_id = service.gen_id().map_err(|error| error.to_string());
        let status = service.status();
        Self {
            role,
            layout: *service.meta(),
            layout_ends: status.layout_ends.to_string(),
            layout_left: status.layout_left,
            machine: status.machine,
            machine_source: status.machine_source,
            namespace: status.namespace,
            listen,
            admin,
            first_id,
        }
    }

    /// The same as one event, for logs that machines read.
    pub(crate) fn log(&self) {
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(
            program = self.role.name(),
            version,
            layout = self.layout.name(),
            bits = %self.layout,
            layout_ends = %self.layout_ends,
            ids_per_second = self.layout.capacity_per_second(),
            machine_id = self.machine,
            machine_source = %self.machine_source,
            namespace = %self.namespace,
            listen = %self.listen,
            admin_listen = self.admin.map(tracing::field::display),
            // Text: JSON readers round large numbers.
            first_id = %self.first(),
            "started"
        );
    }

    /// Warns of what will need a hand before long.
    pub(crate) fn warn(&self) {
        if self.layout_left < TWO_YEARS {
            tracing::warn!(
                ends = %self.layout_ends,
                "the layout {} runs out {}; plan a new layout or epoch",
                self.layout.name(),
                from_now(self.layout_left)
            );
        }
    }

    fn first(&self) -> String {
        match &self.first_id {
            Ok(id) => id.to_string(),
            Err(reason) => format!("not yet: {reason}"),
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);
const TWO_YEARS: Duration = Duration::from_secs(2 * 365 * 86_400);

fn from_now(left: Duration) -> String {
    match left.as_secs() / DAY.as_secs() {
        days @ 0..1000 => format!("in {days} days"),
        days => format!("in {} years", days / 365),
    }
}

/// `1,048,576`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Where a caller on this host reaches a listener.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl Display for Facts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut line = |label: &str, text: &dyn Display| writeln!(f, "  {label:<11} {text}");
        let date = self.layout_ends.get(..10).unwrap_or(&self.layout_ends);
        let plan = if self.layout_left < TWO_YEARS { "; plan a new layout" } else { "" };
        line("layout", &self.layout)?;
        line("runs out", &format_args!("{date} ({}{plan})", from_now(self.layout_left)))?;
        let capacity = grouped(self.layout.capacity_per_second());
        line("capacity", &format_args!("{capacity} IDs/s"))?;
        line("machine ID", &format_args!("{} ({})", self.machine, self.machine_source))?;
        line("namespace", &self.namespace)?;
        line(self.role.protocol(), &self.listen)?;
        match self.admin {
            Some(admin) => line("admin", &format_args!("http://{admin}/"))?,
            None => line("admin", &"off")?,
        }
        line("first ID", &self.first())?;
        line("try", &self.role.first_call(reachable(self.listen)))?;
        match self.admin {
            Some(admin) => line("", &format_args!("curl http://{}/status", reachable(admin))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_in_threes() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_048_576, "1,048,576")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        for (bound, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(reachable(bound.parse().expect("an address")).to_string(), reached);
        }
    }
}

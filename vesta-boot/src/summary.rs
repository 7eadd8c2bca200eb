//! The start-up summary: lines on stdout, or one log event.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::time::Duration;

use vesta_intf::{IdMeta, IdService as _, SequenceStart};

use crate::role::ClientNeeds;
use crate::{Assembled, Role, Security, Tls, Token};

/// The start-up summary.
#[derive(Debug, Clone)]
pub struct StartupSummary {
    role: Role,
    layout: IdMeta,
    layout_ends: String,
    layout_left: Duration,
    machines: Vec<u64>,
    machine_source: String,
    may_forget: bool,
    sequence_start: SequenceStart,
    namespace: String,
    segments: Option<String>,
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    security: Security,
    first_id: Result<u64, String>,
}

impl StartupSummary {
    /// Gathers the summary and takes the first ID, as proof that the program works.
    pub fn gather(
        role: Role,
        assembled: &Assembled,
        security: &Security,
        listen: SocketAddr,
        admin: Option<SocketAddr>,
    ) -> Self {
        let service = &assembled.service;
        let first_id = service.gen_id().map_err(|error| error.to_string());
        let status = service.status();
        Self {
            role,
            layout: *service.meta(),
            layout_ends: status.layout_ends.to_string(),
            layout_left: status.layout_left,
            machines: status.machines,
            machine_source: status.machine_source,
            may_forget: assembled.may_forget,
            sequence_start: assembled.sequence_start,
            namespace: status.namespace,
            segments: assembled.segments.as_ref().map(|segments| segments.describe()),
            listen,
            admin,
            security: security.clone(),
            first_id,
        }
    }

    /// Logs the summary as one event.
    pub(crate) fn log(&self) {
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(
            program = self.role.name(),
            version,
            layout = self.layout.name(),
            bits = %self.layout,
            layout_ends = %self.layout_ends,
            ids_per_second = self.capacity(),
            machine_id = self.machines.first(),
            machine_ids = %list(&self.machines),
            machine_source = %self.machine_source,
            may_forget = self.may_forget,
            sequence_start = %self.sequence_start,
            namespace = %self.namespace,
            segments = self.segments,
            listen = %self.listen,
            admin_listen = self.admin.map(tracing::field::display),
            tls = self.security.tls.is_some(),
            admin_tls = self.security.admin_tls.is_some(),
            client_certificates = self.needs().client_certificate,
            tokens = self.tokens().as_deref(),
            // Text: JSON readers round large numbers.
            first_id = %self.first(),
            "started"
        );
    }

    /// Warns of a layout that runs out soon.
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

    fn capacity(&self) -> u64 {
        let count = u64::try_from(self.machines.len()).unwrap_or(1);
        self.layout.capacity_per_second().saturating_mul(count)
    }

    fn admin_needs(&self) -> ClientNeeds {
        needs(&self.security, self.security.admin_tls.as_ref())
    }

    /// Requirements for clients of the public listener.
    fn needs(&self) -> ClientNeeds {
        needs(&self.security, self.security.tls.as_ref())
    }

    /// `ci, web`.
    fn tokens(&self) -> Option<String> {
        let auth = self.security.auth.as_ref()?;
        Some(auth.tokens().iter().map(Token::name).collect::<Vec<_>>().join(", "))
    }

    fn first(&self) -> String {
        match &self.first_id {
            Ok(id) => id.to_string(),
            Err(reason) => format!("not yet: {reason}"),
        }
    }
}

/// Requirements for clients of a listener with this TLS.
fn needs(security: &Security, tls: Option<&Tls>) -> ClientNeeds {
    ClientNeeds {
        tls: tls.is_some(),
        client_certificate: tls.is_some_and(Tls::needs_client_certificates),
        token: security.auth.is_some(),
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

/// `3, 7, 12`.
fn list(machines: &[u64]) -> String {
    machines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
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

/// The address at which clients on this host reach a listener.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl Display for StartupSummary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut line = |label: &str, text: &dyn Display| writeln!(f, "  {label:<11} {text}");
        let date = self.layout_ends.get(..10).unwrap_or(&self.layout_ends);
        let plan = if self.layout_left < TWO_YEARS { "; plan a new layout" } else { "" };
        line("layout", &self.layout)?;
        line("runs out", &format_args!("{date} ({}{plan})", from_now(self.layout_left)))?;
        let capacity = grouped(self.capacity());
        match self.machines.len() {
            0 | 1 => line("capacity", &format_args!("{capacity} IDs/s"))?,
            many => line("capacity", &format_args!("{capacity} IDs/s with {many} machine IDs"))?,
        }
        if let SequenceStart::Random(below) = self.sequence_start {
            line("sequence", &format_args!("each tick begins at a random number below {below}"))?;
        }
        let label = if self.machines.len() == 1 { "machine ID" } else { "machine IDs" };
        line(label, &format_args!("{} ({})", list(&self.machines), self.machine_source))?;
        if self.may_forget {
            line("durability", &"the store may lose acknowledged writes (see docs/SAFETY.md)")?;
        }
        line("namespace", &self.namespace)?;
        if let Some(segments) = &self.segments {
            line("segments", segments)?;
        }
        line(self.role.protocol(), &self.listen)?;
        match self.admin {
            Some(admin) => {
                line("admin", &format_args!("{}://{admin}/", self.admin_needs().scheme()))?
            }
            None => line("admin", &"off")?,
        }
        if let Some(tls) = &self.security.tls {
            let until = tls.valid_until().to_string();
            let until = until.get(..10).unwrap_or(&until);
            let clients =
                if tls.needs_client_certificates() { "; clients need one too" } else { "" };
            line("TLS", &format_args!("certificate until {until}{clients}"))?;
        }
        if let Some(tokens) = self.tokens() {
            line("tokens", &tokens)?;
        }
        line("first ID", &self.first())?;
        line("try", &self.role.first_call(reachable(self.listen), self.needs()))?;
        match self.admin {
            Some(admin) => {
                let needs = self.admin_needs();
                let (how, scheme) = (needs.curl(), needs.scheme());
                line("", &format_args!("curl {how}{scheme}://{}/status", reachable(admin)))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(machines: &[u64], may_forget: bool) -> StartupSummary {
        let listen = "10.0.0.1:5".parse().expect("an address");
        StartupSummary {
            role: Role::Server,
            layout: IdMeta::MAX_PEAK,
            layout_ends: "2049-01-09T00:00:00.000Z".to_owned(),
            layout_left: 3 * TWO_YEARS,
            machines: machines.to_vec(),
            machine_source: "pool 0 to 1023 of Redis cache:6379".to_owned(),
            may_forget,
            sequence_start: SequenceStart::Zero,
            namespace: "default".to_owned(),
            segments: None,
            listen,
            admin: None,
            security: Security::default(),
            first_id: Ok(5),
        }
    }

    #[test]
    fn several_machine_ids_are_listed_and_their_capacity_is_added_up() {
        let said = summary(&[3, 7, 12, 40], false).to_string();
        let machines = "  machine IDs 3, 7, 12, 40 (pool 0 to 1023 of Redis cache:6379)\n";
        assert!(said.contains(machines), "{said}");
        assert!(said.contains("  capacity    4,194,304 IDs/s with 4 machine IDs\n"), "{said}");
        let said = summary(&[3], false).to_string();
        assert!(said.contains("  machine ID  3 (pool"), "{said}");
        assert!(said.contains("  capacity    1,048,576 IDs/s\n"), "{said}");
    }

    #[test]
    fn a_store_that_may_forget_is_named_so() {
        let durability = "  durability  the store may lose acknowledged writes";
        assert!(summary(&[3], true).to_string().contains(durability));
        assert!(!summary(&[3], false).to_string().contains("durability"));
    }

    #[test]
    fn a_random_start_of_ticks_is_named() {
        let said =
            StartupSummary { sequence_start: SequenceStart::Random(100), ..summary(&[3], false) };
        let line = "  sequence    each tick begins at a random number below 100\n";
        assert!(said.to_string().contains(line), "{said}");
        assert!(!summary(&[3], false).to_string().contains("sequence"));
    }

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

//! The start-up summary: lines on stdout, or one log event.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write as _};
use std::time::Duration;

use vesta_intf::{IdMeta, SequenceStart, UnixMillis};
use vesta_service::lease::Doubt;
use vesta_service::options::Status;

use crate::api::Api;
use crate::assemble::Assembled;
use crate::security::Security;
use crate::settings::{Config, LogFormat};
use crate::stores::host_name;
use crate::version::VERSION;
use vesta_net::{Address, Tls};

/// The start-up summary.
#[derive(Debug, Clone)]
pub(crate) struct StartupSummary<'a> {
    program: &'static str,
    config: &'a Config,
    security: &'a Security,
    listen: Vec<(Api, Address)>,
    admin: Option<Address>,
    status: Status,
    segments: Option<String>,
    serials: Option<String>,
    /// URL for the members of a pool server, without their token.
    members: Option<String>,
    /// The first ID, or the reason why it is not available yet.
    first_id: String,
}

impl<'a> StartupSummary<'a> {
    /// Gathers the summary and makes the first ID, as proof that the program works.
    pub(crate) fn gather(
        program: &'static str,
        config: &'a Config,
        assembled: &Assembled,
        security: &'a Security,
        listen: Vec<(Api, Address)>,
        admin: Option<Address>,
    ) -> Self {
        let Assembled {
            service,
            segments,
            serials,
            ..
        } = assembled;
        let first_id = service.gen_id().map(|id| id.to_string());
        let first_id = first_id.unwrap_or_else(|error| format!("not yet: {error}"));
        let shown = |store: String, doubt: Option<String>, what: &str| match doubt {
            Some(why) => format!("{store}; its {what} could repeat: {why}"),
            None => store,
        };
        let segments = segments
            .as_ref()
            .map(|it| shown(it.describe(), it.doubt(), "numbers"));
        let serials = serials
            .as_ref()
            .map(|it| shown(it.describe(), it.doubt(), "serials"));
        let status = service.status();
        let members = assembled.pool_server(&config.pool_server);
        let members = members.and_then(|offered| {
            let seen = offered.seen().ok()?;
            url_for_members(&seen.identity.to_string(), &host_name(), &listen, security)
        });
        Self {
            program,
            config,
            security,
            listen,
            admin,
            status,
            segments,
            serials,
            members,
            first_id,
        }
    }

    /// Prints or logs the summary, and warns if the layout runs out soon.
    pub(crate) fn announce(&self) {
        match self.config.log.format {
            LogFormat::Json => self.log(),
            LogFormat::Human => {
                let program = self.program;
                let mut out = io::stdout().lock();
                // The reader may be gone; the server works regardless.
                let _ = write!(out, "{program} {VERSION}\n{self}").and_then(|()| out.flush());
            }
        }
        let Status {
            layout_ends,
            layout_left,
            ..
        } = self.status;
        if layout_left < TWO_YEARS {
            tracing::warn!(
                ends = %layout_ends,
                "the layout {} runs out {}; plan a new layout or epoch",
                self.layout().name(),
                from_now(layout_left)
            );
        }
    }

    /// Absolute, because the reader is in another working folder.
    fn state_dir(&self) -> String {
        let typed = &self.config.state_dir;
        std::path::absolute(typed)
            .as_ref()
            .unwrap_or(typed)
            .display()
            .to_string()
    }

    /// Logs the summary as one event.
    fn log(&self) {
        let Status {
            machines,
            machine_source,
            namespace,
            layout_ends,
            ..
        } = &self.status;
        let doubt = self.status.doubt.as_ref();
        let tls = self.security.tls();
        tracing::info!(
            program = self.program,
            version = env!("CARGO_PKG_VERSION"),
            debug_build = cfg!(debug_assertions).then_some(true), // much slower
            layout = self.layout().name(),
            bits = %self.layout(),
            layout_epoch = %self.layout().spec().epoch,
            %layout_ends,
            capacity_per_second = self.capacity(),
            machine_id = machines.first(),
            machine_ids = list(machines),
            machine_source,
            doubt = doubt.map(|doubt| doubt.why.as_str()),
            state_dir = %self.state_dir(),
            sequence_start = %self.config.ids.sequence_start,
            namespace,
            segments = self.segments,
            serials = self.serials,
            members = self.members,
            listen = list(self.listen.iter().map(|(_, address)| address)),
            admin_listen = self.admin.as_ref().map(tracing::field::display),
            tls = tls.is_some(),
            admin_tls = self.security.admin_tls.is_some(),
            client_certificates = tls.is_some_and(Tls::needs_client_certificates),
            tokens = self.tokens(),
            first_id = self.first_id, // text: JSON readers round large numbers
            "started"
        );
    }

    const fn layout(&self) -> &IdMeta {
        &self.config.ids.layout
    }

    fn capacity(&self) -> u64 {
        let count = u64::try_from(self.status.machines.len()).unwrap_or(1);
        self.layout().capacity_per_second().saturating_mul(count)
    }

    /// `ci, web`.
    fn tokens(&self) -> Option<String> {
        Some(list(
            self.security
                .auth
                .as_ref()?
                .tokens()
                .iter()
                .map(|token| &token.name),
        ))
    }

    /// Client options for a listener with this TLS: those of curl begin with `--`, those of grpcurl
    /// with `-`.
    fn options(&self, dashes: &str, tls: Option<&Tls>) -> String {
        let mut options = String::new();
        if let Some(tls) = tls {
            options += &format!("{dashes}cacert CA.pem ");
            if tls.needs_client_certificates() {
                options += &format!("{dashes}cert CLIENT.pem {dashes}key CLIENT.key ");
            }
        }
        if self.security.auth.is_some() {
            options += "-H 'authorization: Bearer TOKEN' ";
        }
        options
    }

    /// A curl command line.
    fn curl(&self, address: &Address, path: &str, tls: Option<&Tls>) -> String {
        let (options, scheme) = (self.options("--", tls), scheme(tls));
        match address.reachable() {
            Address::Tcp(at) => format!("curl {options}{scheme}://{at}{path}"),
            Address::Unix(socket) => {
                format!(
                    "curl {options}--unix-socket {} {scheme}://localhost{path}",
                    socket.display()
                )
            }
        }
    }

    /// Example of a first call to a listener.
    fn first_call(&self, (api, listen): &(Api, Address)) -> String {
        let tls = self.security.tls();
        match api {
            Api::Grpc => {
                let plain = if tls.is_none() { "-plaintext " } else { "" };
                let options = self.options("-", tls);
                let listen = match listen.reachable() {
                    Address::Tcp(at) => at.to_string(),
                    Address::Unix(socket) => format!("-unix {}", socket.display()),
                };
                format!("grpcurl {plain}{options}{listen} vesta.v1.IdService/GenId")
            }
            Api::Rest => {
                let path = format!("{}/genid", self.config.base_path);
                self.curl(listen, &path, tls)
            }
        }
    }
}

const fn scheme(tls: Option<&Tls>) -> &'static str {
    if tls.is_some() { "https" } else { "http" }
}

/// URL for members of a pool server: `vestas://:TOKEN@pool1:50051?id=…`.
fn url_for_members(
    id: &str,
    host: &str,
    listen: &[(Api, Address)],
    security: &Security,
) -> Option<String> {
    let grpc = listen.iter().find(|(api, _)| *api == Api::Grpc);
    let Address::Tcp(at) = &grpc?.1 else {
        return None;
    };
    let tls = if security.tls().is_some() { "s" } else { "" };
    let token = if security.auth.is_some() {
        ":TOKEN@"
    } else {
        ""
    };
    Some(format!("vesta{tls}://{token}{host}:{}?id={id}", at.port()))
}

const TWO_YEARS: Duration = Duration::from_secs(2 * 365 * 86_400);

fn from_now(left: Duration) -> String {
    match left.as_secs() / 86_400 {
        days @ 0..1000 => format!("in {days} days"),
        days => format!("in {} years", days / 365),
    }
}

/// `2014-12-31T16:00:00Z`: the offset of an epoch is easily an hour or eight off.
fn seconds(moment: UnixMillis) -> String {
    moment.to_string().replace(".000Z", "Z")
}

/// `2049-01-09`.
fn date(moment: UnixMillis) -> String {
    moment.to_string().chars().take(10).collect()
}

/// `3, 7, 12`.
fn list(items: impl IntoIterator<Item: ToString>) -> String {
    items
        .into_iter()
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// `1,048,576`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

impl Display for StartupSummary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Status {
            machines,
            machine_source,
            namespace,
            layout_ends,
            layout_left,
            ..
        } = &self.status;
        let (tls, admin_tls) = (self.security.tls(), &self.security.admin_tls);
        let plan = if *layout_left < TWO_YEARS {
            "; plan a new layout"
        } else {
            ""
        };
        let several = match machines.len() {
            0 | 1 => String::new(),
            many => format!(" with {many} machine IDs"),
        };
        let admin = self.admin.as_ref().map(|admin| match admin {
            Address::Tcp(at) => format!("{}://{at}/", scheme(admin_tls.as_ref())),
            Address::Unix(_) => admin.to_string(),
        });
        let forgets = |doubt: &Doubt| {
            let Doubt { since, why, .. } = doubt;
            format!("the store may forget: {why} (known since {since}; see docs/inside/safety.md)")
        };
        let sequence = match self.config.ids.sequence_start {
            SequenceStart::Random(below) => {
                Some(format!("each tick begins at a random number below {below}"))
            }
            SequenceStart::Zero => None,
        };
        let ends = format!("{} ({}{plan})", date(*layout_ends), from_now(*layout_left));
        let certificate = tls.map(|tls| {
            let mutual = tls.needs_client_certificates();
            let clients = if mutual { "; clients need one too" } else { "" };
            format!("certificate until {}{clients}", date(tls.valid_until()))
        });
        let machine = if machines.len() == 1 {
            "machine ID"
        } else {
            "machine IDs"
        };
        let lines = [
            ("layout", Some(self.layout().to_string())),
            ("epoch", Some(seconds(self.layout().spec().epoch))),
            ("runs out", Some(ends)),
            (
                "capacity",
                Some(format!("{} IDs/s{several}", grouped(self.capacity()))),
            ),
            ("sequence", sequence),
            (
                machine,
                Some(format!("{} ({machine_source})", list(machines))),
            ),
            ("durability", self.status.doubt.as_ref().map(forgets)),
            ("state", Some(self.state_dir())),
            ("namespace", Some(namespace.clone())),
            ("segments", self.segments.clone()),
            ("serials", self.serials.clone()),
            ("members", self.members.clone()),
        ];
        let public = self
            .listen
            .iter()
            .map(|(api, at)| (api.protocol(), Some(at.to_string())));
        let rest = [
            ("admin", Some(admin.unwrap_or("off".to_owned()))),
            ("TLS", certificate),
            ("tokens", self.tokens()),
            ("first ID", Some(self.first_id.clone())),
        ];
        let calls = self
            .listen
            .iter()
            .map(|listener| Some(self.first_call(listener)));
        let calls = calls.chain([self
            .admin
            .as_ref()
            .map(|at| self.curl(at, "/status", admin_tls.as_ref()))]);
        let calls = calls
            .enumerate()
            .map(|(at, call)| (if at == 0 { "try" } else { "" }, call));
        lines
            .into_iter()
            .chain(public)
            .chain(rest)
            .chain(calls)
            .filter_map(|(label, text)| Some((label, text?)))
            .try_for_each(|(label, text)| writeln!(f, "  {label:<11} {text}"))
    }
}

#[cfg(test)]
mod tests {
    use vesta_service::options::Drive;
    use vesta_service::{LocalIdService, MachineSource};

    use super::*;

    fn summary(machines: &[u64], why: Option<&str>, sequence_start: SequenceStart) -> String {
        let service = LocalIdService::builder()
            .machine(MachineSource::Stateless(5))
            .drive(Drive::ByHand)
            .build()
            .expect("a service");
        let mut status = service.status();
        status.machines = machines.to_vec();
        status.machine_source = "pool 0 to 1023 of Redis cache:6379".to_owned();
        let ([since, reach], window) = ([UnixMillis(0); 2], Duration::ZERO);
        status.all.doubt = why.map(|why| Doubt {
            since,
            reach,
            window,
            took_over: false,
            why: why.to_owned(),
        });
        let mut config = Config::defaults(&[Api::Grpc]);
        config.ids.sequence_start = sequence_start;
        config.base_path = "/ids".to_owned();
        let address = |text: &str| text.parse().expect("an address");
        let summary = StartupSummary {
            program: "vesta",
            config: &config,
            security: &Security::default(),
            listen: vec![
                (Api::Grpc, address("10.0.0.1:5")),
                (Api::Rest, address("10.0.0.1:6")),
            ],
            admin: None,
            status,
            segments: None,
            serials: None,
            members: None,
            first_id: "5".to_owned(),
        };
        summary.to_string()
    }

    #[test]
    fn several_machine_ids_are_listed_and_their_capacity_is_summed() {
        let said = summary(&[3, 7, 12, 40], None, SequenceStart::Zero);
        let machines = "  machine IDs 3, 7, 12, 40 (pool 0 to 1023 of Redis cache:6379)\n";
        assert!(said.contains(machines), "{said}");
        assert!(
            said.contains("  capacity    4,194,304 IDs/s with 4 machine IDs\n"),
            "{said}"
        );
        let said = summary(&[3], None, SequenceStart::Zero);
        assert!(said.contains("  machine ID  3 (pool"), "{said}");
        assert!(said.contains("  capacity    1,048,576 IDs/s\n"), "{said}");
    }

    #[test]
    fn members_of_a_pool_server_are_told_its_identity() {
        let address = |text: &str| text.parse().expect("an address");
        let listen = [
            (Api::Rest, address("0.0.0.0:8080")),
            (Api::Grpc, address("0.0.0.0:50051")),
        ];
        let url = url_for_members("0f", "reg1", &listen, &Security::default());
        assert_eq!(url.as_deref(), Some("vesta://reg1:50051?id=0f"));
    }

    #[test]
    fn a_store_that_may_forget_is_reported() {
        let durability = "  durability  the store may forget: a replica lags (known since 1970-";
        let said = summary(&[3], Some("a replica lags"), SequenceStart::Zero);
        assert!(said.contains(durability), "{said}");
        assert!(!summary(&[3], None, SequenceStart::Zero).contains("durability"));
    }

    #[test]
    fn the_first_call_is_below_the_base_path() {
        let said = summary(&[3], None, SequenceStart::Zero);
        assert!(
            said.contains("curl http://10.0.0.1:6/ids/genid\n"),
            "{said}"
        );
    }

    #[test]
    fn a_random_sequence_start_is_reported() {
        let said = summary(&[3], None, SequenceStart::Random(100));
        let line = "  sequence    each tick begins at a random number below 100\n";
        assert!(said.contains(line), "{said}");
        assert!(!summary(&[3], None, SequenceStart::Zero).contains("sequence"));
    }

    #[test]
    fn numbers_are_grouped_in_threes() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_048_576, "1,048,576"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}

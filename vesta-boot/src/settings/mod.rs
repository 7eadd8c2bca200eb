//! Settings: declared once, read from flags, environment and file, then checked.
//!
//! A `section!` is a struct; each field declares the name, type, default, help and parser of one setting.
//! Flag and environment variable follow from the name. `--help`, `--print-config`, docs/operate/settings.md,
//! docs/vesta.example.toml and docs/vesta.schema.json follow from the declaration.

#[macro_use]
mod section;

mod declared;
mod file;
#[cfg(test)]
mod fuzz;
mod ids;
mod limits;
mod listeners;
mod log;
mod machine;
pub mod moment;
mod parse;
mod pool_server;
mod print;
mod read;
mod schema;
mod segments;
mod serials;
mod store;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use vesta_intf::Shuffle;
use vesta_service::clock::Clock;
use vesta_service::lease::Timing;
use vesta_store::SegmentTable;

use crate::api::Api;
use crate::error::Error;
use crate::read_opaque_key;
use crate::security::Security;
use vesta_net::{Address, Auth, Protocol, Tls, TlsFiles, Token};

pub use declared::settings;
pub use file::{layout_of, read_layout};
pub use ids::Ids;
pub use limits::Limits;
pub use listeners::Compat;
pub use log::{Log, LogFormat};
use machine::Trust;
pub use machine::{Machine, Number};
pub(crate) use parse::is_close;
pub use pool_server::PoolServer;
pub use print::layout_table;
pub(crate) use read::unknown_variables;
pub use schema::{SCHEMA, schema};
pub use segments::{SEGMENTS_OFF, Segments};
pub use serials::{SERIALS_OFF, Serials};
pub use store::Store;
pub(crate) use values::shown;
pub use values::{Value, Values, quoted};

use declared::Sections;

/// Checked settings of a program. `Debug` hides passwords.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// APIs that the program serves.
    pub apis: Vec<Api>,
    /// The REST listener; port 0 takes a free one.
    pub http_listen: Address,
    /// The gRPC listener; port 0 takes a free one.
    pub grpc_listen: Address,
    /// The admin listener; `None` if it is off.
    pub admin_listen: Option<Address>,
    /// True allows unencrypted listeners beyond loopback.
    pub allow_plaintext: bool,
    /// Additional names of the listeners, for HTTP.
    pub hosts: Arc<[String]>,
    /// The legacy system whose clients the REST server answers.
    pub compat: Compat,
    /// Origins of web pages that may call the REST endpoints.
    pub cors_origins: Arc<[String]>,
    /// Prefix of every REST path; empty for none.
    pub base_path: String,
    /// Path of the readiness check on the REST listener, if it has one.
    pub readiness_path: Option<String>,
    /// TLS of the public listeners; `None` if they are not encrypted.
    pub tls: Option<TlsFiles>,
    /// TLS of the admin listener; `None` if it is not encrypted.
    pub admin_tls: Option<TlsFiles>,
    /// The tokens of callers; `None` if they need none.
    pub auth: Option<Auth>,
    /// Layout, populator, and the fixed fields of IDs.
    pub ids: Ids,
    /// Source of machine IDs.
    pub machine: Machine,
    /// True if nothing is said about machine IDs: the default pool hands them out.
    pub unnamed_pool: bool,
    /// Durations of its leases; `None` if leases are not renewed.
    pub lease: Option<Timing>,
    /// Store of machine IDs: start behavior and timeout.
    pub store: Store,
    /// True if the program stands by while another one holds its machine ID.
    pub standby: bool,
    /// Operator's statement whether the store may forget acknowledged writes.
    pub store_doubt: Option<bool>,
    /// Operator's statement that only one of two databases replicating from each other is written.
    pub one_writer: bool,
    /// The folder of the state files.
    pub state_dir: PathBuf,
    /// True allows state on a network file system.
    pub allow_network_fs: bool,
    /// Segment mode; off without a store.
    pub segments: Segments,
    /// Serials; off without a store.
    pub serials: Serials,
    /// The pool server; off without namespaces.
    pub pool_server: PoolServer,
    /// Limits of calls, connections and threads.
    pub limits: Limits,
    /// Log lines.
    pub log: Log,
    /// Clock that replaces the system's; not a setting.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Config {
    /// The defaults of a program that serves these APIs. Reads no file; of the environment it reads only
    /// the variables that determine the default state directory.
    pub fn defaults(apis: &[Api]) -> Self {
        Self::check(&Values::defaults(apis)).expect("a test checks the defaults")
    }

    /// Checks the settings, individually and against each other.
    ///
    /// # Errors
    /// [`Error::Setting`] with one sentence that states the remedy.
    pub fn check(values: &Values) -> Result<Self, Error> {
        let Sections {
            listeners,
            ids,
            machine,
            store,
            segments,
            serials,
            pool_server,
            limits,
            log,
        } = Sections::read(values)?;
        let (state_dir, trust) = (machine.state_dir(), machine.trust);
        let (allow_network_fs, standby) = (machine.allow_network_fs, machine.standby);
        let machine = machine.check(values, &ids.layout)?;
        let [tls, admin_tls] = listeners.tls()?;
        let config = Self {
            apis: values.apis.clone(),
            http_listen: listeners.http,
            grpc_listen: listeners.grpc,
            admin_listen: listeners.admin,
            hosts: listeners.hosts,
            compat: listeners.compat,
            cors_origins: listeners.cors_origins,
            base_path: listeners.base_path,
            readiness_path: listeners.readiness_path,
            allow_plaintext: listeners.allow_plaintext,
            tls,
            admin_tls,
            auth: auth(&values.tokens)?,
            lease: store.lease(values, &machine, standby)?,
            standby,
            store,
            store_doubt: match trust {
                Some(Trust::Durable) => Some(false),
                Some(Trust::Doubtful) => Some(true),
                Some(Trust::OneWriter) | None => None,
            },
            one_writer: trust == Some(Trust::OneWriter),
            ids,
            unnamed_pool: listeners::is_unnamed(values),
            machine,
            state_dir,
            allow_network_fs,
            segments,
            serials,
            pool_server,
            limits,
            log,
            clock: None,
        };
        config.check_compat()?;
        config.segments.check(&config.serials)?;
        config.serials.check()?;
        config.pool_server.check(&config.machine, &config.apis)?;
        listeners::check(&config)?;
        Ok(config)
    }

    /// Address of the listener of an API.
    pub const fn listen(&self, api: Api) -> &Address {
        match api {
            Api::Rest => &self.http_listen,
            Api::Grpc => &self.grpc_listen,
        }
    }

    /// Checks that a compatibility mode has what it needs.
    fn check_compat(&self) -> Result<(), Error> {
        match self.compat {
            Compat::None => Ok(()),
            Compat::Tinyid if !self.apis.contains(&Api::Rest) => {
                Error::refuse("compat = tinyid is for REST; serve REST with it")
            }
            Compat::Tinyid if self.segments.table != Some(SegmentTable::Tinyid) => Error::refuse(
                "compat = tinyid takes numbers from Tinyid's table; remove segment.table",
            ),
            Compat::Tinyid if self.segments.store.is_none() => {
                Error::refuse("compat = tinyid needs Tinyid's database; set segment.store")
            }
            Compat::Tinyid => Ok(()),
        }
    }

    /// The permutation of opaque IDs, if there is a key. Reads its file.
    ///
    /// # Errors
    /// [`Error::Setting`] with one sentence that names the file and the fault.
    pub fn opaque_key(&self) -> Result<Option<Shuffle>, Error> {
        let path = self.ids.opaque_key.as_deref();
        path.map(read_opaque_key).transpose()
    }

    /// Protection of the listeners. Reads the TLS files and the key of opaque IDs.
    ///
    /// # Errors
    /// [`Error::Setting`] with one sentence that names the file and the fault.
    pub fn security(&self) -> Result<Security, Error> {
        let load = |files: &Option<TlsFiles>, protocol| {
            files
                .as_ref()
                .map(|files| Tls::load(files, protocol))
                .transpose()
        };
        let public = |api, protocol| match self.apis.contains(&api) {
            true => load(&self.tls, protocol),
            false => Ok(None),
        };
        Ok(Security {
            http_tls: public(Api::Rest, Protocol::Http1)?,
            grpc_tls: public(Api::Grpc, Protocol::Http2)?,
            admin_tls: load(&self.admin_tls, Protocol::Http1)?,
            admin_hosts: self
                .hosts
                .iter()
                .filter(|name| *name != "*")
                .cloned()
                .collect(),
            auth: self.auth.clone(),
            opaque: self.opaque_key()?,
        })
    }

    /// Warns about unsafe settings that were explicitly allowed.
    pub(crate) fn warn(&self) {
        if self.auth.is_none() {
            return;
        }
        for (name, address, tls) in listeners::exposed(self) {
            tracing::warn!(
                "{name} ({address}) is not encrypted: tokens can be read in transit; set {tls}.cert \
                 and {tls}.key"
            );
        }
    }

    /// The settings as TOML, with the origin of each and passwords hidden. Once the hidden
    /// passwords are filled in, the file gives the same settings.
    pub fn print(&self, values: &Values) -> String {
        print::print(self, values)
    }
}

/// The tokens of callers, which must be distinct; `None` if callers need none.
fn auth(tokens: &[Token]) -> Result<Option<Auth>, Error> {
    for (index, token) in tokens.iter().enumerate() {
        let is_twin = |it: &&Token| it.name == token.name || it.digest == token.digest;
        if let Some(twin) = tokens[..index].iter().find(is_twin) {
            return Error::refuse(format!(
                "[[auth.tokens]]: `{}` and `{}` have the same name or sha256; remove one of them",
                twin.name, token.name
            ));
        }
    }
    Ok((!tokens.is_empty()).then(|| Auth::new(tokens.to_vec())))
}

#[cfg(test)]
mod tests {
    use vesta_intf::GenMethod::{self, Central, Embed, Rest};

    use super::values::Value;
    use super::*;

    /// genMethod of the IDs of a program with these settings.
    fn gen_method(apis: &[Api], given: &[(&str, &str)]) -> GenMethod {
        let mut values = Values::defaults(apis);
        for (name, text) in given {
            let value = Value {
                text: (*text).to_owned(),
                origin: "flag".to_owned(),
            };
            values.values.insert((*name).to_owned(), value);
        }
        Config::check(&values).unwrap().ids.gen_method
    }

    #[test]
    fn gen_method_is_1_by_default_if_only_grpc_is_served() {
        assert_eq!(gen_method(&[Api::Grpc], &[]), Central);
        for apis in [&Api::ALL[..], &[Api::Rest]] {
            assert_eq!(gen_method(apis, &[]), Rest);
            assert_eq!(gen_method(apis, &[("gen_method", "1")]), Central);
            assert_eq!(gen_method(apis, &[("layout", "snowflake")]), Embed);
        }
    }
}

//! Listeners: addresses, TLS, and rules between them.

use std::path::PathBuf;
use std::sync::Arc;

use super::Config;
use super::parse::{Parsed, choice, path, truth};
use super::values::Values;
use crate::error::Error;
use vesta_net::{Address, TlsFiles};

section! {
    /// Listeners: `[http]`, `[grpc]`, `[admin]` and `[tls]`.
    "Listeners" pub(super) struct Section |values, _layout| {
        /// REST listener
        ///
        /// IP address and port; port 0 takes a free one, which the start-up summary shows. Beyond loopback
        /// it needs a `machine.*` setting, and TLS or `allow_plaintext = true`. `unix:/PATH` is a Unix
        /// socket, protected by the permissions of its folder.
        pub(super) http: Address = "http.listen" "ADDRESS" or "127.0.0.1:8088", str::parse::<Address>;

        /// gRPC listener
        ///
        /// The rules of `http.listen` apply to it.
        pub(super) grpc: Address = "grpc.listen" "ADDRESS" or "127.0.0.1:50051", str::parse::<Address>;

        /// Admin listener, or off
        ///
        /// Serves the page with the console, `/metrics`, `/healthz`, `/readyz`, `/status`, `/pool`, `/events`,
        /// `/segments` and `/serials`; `off` disables it. Beyond loopback it needs TLS or
        /// `allow_plaintext = true`.
        pub(super) admin: Option<Address> = "admin.listen" "ADDRESS" or "127.0.0.1:8089", address_or_off;

        /// Additional host names of the listeners
        ///
        /// Comma-separated, without ports, or * for any name at the REST listener. On loopback, an HTTP request
        /// must name the listener by an address, by `localhost` or by one of these names; otherwise it gets 403. This
        /// keeps web sites from sending requests through a browser on this host (DNS rebinding). On any address, a
        /// request to the admin listener that changes something (a new tag) must do the same, and must not come from
        /// another page. Needed behind a proxy on the same host that passes on the host name of its clients. gRPC
        /// ignores it.
        ///
        /// Example: ids.example.com
        pub(super) hosts: Arc<[String]> = "hosts" "NAMES" or "", hosts_or_any;

        /// Emulate another system: none or tinyid
        ///
        /// `tinyid`: answers Tinyid's clients under /tinyid, with its tokens (`tiny_id_token`) and its errors.
        /// Defaults: the REST listener is 127.0.0.1:9999 and the segment table is Tinyid's.
        ///
        /// Example: tinyid
        pub(super) compat: Compat = "compat" "NAME" or "none",
            choice(Compat::ALL.map(|compat| (compat.name(), compat)));

        /// Origins of web pages that may call the REST endpoints
        ///
        /// Comma-separated, or * for all. Browsers then let scripts of these origins read the responses (CORS).
        /// A page needs a token like any other caller.
        ///
        /// Example: https://shop.example.com
        pub(super) cors_origins: Arc<[String]> = "cors.origins" "ORIGINS" or "", origins;

        /// Prefix of every REST path
        ///
        /// For a proxy that passes on one part of a site: `/ids` moves `/genid` to `/ids/genid`, and so on, with the page
        /// and the OpenAPI document. The admin listener stays as it is.
        ///
        /// Example: /ids
        pub(super) base_path: String = "base_path" "PATH" or "", base_path;

        /// Path of the readiness check on the REST listener
        ///
        /// For load balancers that can reach no other port: 200 while the server is ready, otherwise 503, without a
        /// token. `base_path` does not apply to it. Clients of gRPC have the health service. Default: only `/readyz` of
        /// the admin listener.
        ///
        /// Example: /readyz
        pub(super) readiness_path: Option<String> = "readiness.public_path" "PATH", absolute_path;

        /// Certificate chain (PEM); turns TLS on
        ///
        /// The server's certificate and its chain, for the REST and the gRPC listener. Replaced files are
        /// reloaded while the program runs.
        ///
        /// Example: /etc/vesta/cert.pem
        cert: Option<PathBuf> = "tls.cert" "FILE", path;

        /// Private key of the certificate (PEM)
        ///
        /// Unencrypted PEM. Only this program should be able to read it.
        ///
        /// Example: /etc/vesta/key.pem
        key: Option<PathBuf> = "tls.key" "FILE", path;

        /// CA certificates for client certificates (PEM)
        ///
        /// Clients then need a certificate issued by one of these CAs (mTLS).
        ///
        /// Example: /etc/vesta/clients.pem
        client_ca: Option<PathBuf> = "tls.client_ca" "FILE", path;

        /// Like tls.cert, for the admin listener
        ///
        /// The files may be the same.
        ///
        /// Example: /etc/vesta/cert.pem
        admin_cert: Option<PathBuf> = "admin.tls.cert" "FILE", path;

        /// Like tls.key, for the admin listener
        ///
        /// Example: /etc/vesta/key.pem
        admin_key: Option<PathBuf> = "admin.tls.key" "FILE", path;

        /// Like tls.client_ca, for the admin listener
        ///
        /// Health probes then need a certificate too.
        ///
        /// Example: /etc/vesta/clients.pem
        admin_client_ca: Option<PathBuf> = "admin.tls.client_ca" "FILE", path;

        /// Allow plaintext beyond loopback
        ///
        /// For trusted networks only.
        pub(super) allow_plaintext: bool = "allow_plaintext" "BOOL" or "false", truth();
    }
}

/// A prefix of paths, or nothing.
fn base_path(text: &str) -> Parsed<String> {
    if text.is_empty() {
        Ok(String::new())
    } else {
        absolute_path(text)
    }
}

/// A path that is written the same in every URL.
fn absolute_path(text: &str) -> Parsed<String> {
    let is_plain = |part: &str| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        !part.is_empty() && part.bytes().all(is_name) && part.bytes().any(|byte| byte != b'.')
    };
    let parts = text.strip_prefix('/');
    match parts.filter(|parts| parts.split('/').all(is_plain)) {
        Some(_) => Ok(text.to_owned()),
        None => {
            Err("must be a path of letters, digits, `-`, `_`, `.` and `~`, such as /ids".to_owned())
        }
    }
}

fn address_or_off(text: &str) -> Parsed<Option<Address>> {
    if text == "off" {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}

/// Host names, separated by commas, or `*`.
fn hosts_or_any(text: &str) -> Parsed<Arc<[String]>> {
    if text.trim() == "*" {
        Ok(["*".to_owned()].into())
    } else {
        hosts(text)
    }
}

/// Host names, separated by commas.
fn hosts(text: &str) -> Parsed<Arc<[String]>> {
    let names: Vec<_> = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match names.iter().all(|name| name.chars().all(is_part)) {
        true => Ok(names.into_iter().map(str::to_owned).collect()),
        false => Err("must be host names without ports, separated by commas".to_owned()),
    }
}

/// Origins as browsers send them, separated by commas, or `*`.
fn origins(text: &str) -> Parsed<Arc<[String]>> {
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let names: Arc<[String]> = names.map(str::to_ascii_lowercase).collect();
    let is_origin = |name: &String| {
        let host = name
            .strip_prefix("https://")
            .or(name.strip_prefix("http://"));
        let part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        host.is_some_and(|host| !host.is_empty() && host.chars().all(part))
    };
    match names.iter().all(is_origin) || *names == ["*".to_owned()] {
        true => Ok(names),
        false => Err(
            "must be origins such as https://shop.example.com, separated by commas, or *"
                .to_owned(),
        ),
    }
}

/// Legacy system whose clients the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// None.
    #[default]
    None,
    /// Tinyid.
    Tinyid,
}

impl Compat {
    const ALL: [Self; 2] = [Self::None, Self::Tinyid];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tinyid => "tinyid",
        }
    }
}

/// The PEM files of a listener: none, or at least certificate and key.
fn tls_files(
    setting: &'static str,
    files: [&Option<PathBuf>; 3],
) -> Result<Option<TlsFiles>, Error> {
    let named = |path: &PathBuf| !path.as_os_str().is_empty();
    let (has, needs) = match files.map(|file| file.clone().filter(named)) {
        [Some(cert), Some(key), client_ca] => {
            return Ok(Some(TlsFiles {
                setting,
                cert,
                key,
                client_ca,
            }));
        }
        [None, None, None] => return Ok(None),
        [None, None, Some(_)] => ("client_ca", format!("{setting}.cert and {setting}.key")),
        [None, Some(_), _] => ("key", format!("{setting}.cert")),
        [Some(_), None, _] => ("cert", format!("{setting}.key")),
    };
    Error::refuse(format!(
        "{setting}.{has} needs {needs} too; name the PEM files of the server"
    ))
}

impl Section {
    /// TLS files of the public listeners and of the admin listener.
    pub(super) fn tls(&self) -> Result<[Option<TlsFiles>; 2], Error> {
        Ok([
            tls_files("tls", [&self.cert, &self.key, &self.client_ca])?,
            tls_files(
                "admin.tls",
                [&self.admin_cert, &self.admin_key, &self.admin_client_ca],
            )?,
        ])
    }
}

/// True if no setting says which machine IDs this program may use.
pub(super) fn is_unnamed(values: &Values) -> bool {
    let mut machine = ["machine.id", "machine.store", "machine.range"].into_iter();
    !machine.any(|name| values.is_explicit(name))
}

/// Checks the rules between the listeners and other settings.
pub(super) fn check(config: &Config) -> Result<(), Error> {
    let all: Vec<_> = listeners(config).collect();
    for (index, (name, address, _)) in all.iter().enumerate() {
        if let Some((other, at, _)) = all[..index].iter().find(|other| address.meets(other.1)) {
            return Error::refuse(format!(
                "{other} ({at}) and {name} ({address}) cannot share a port or path; give one of them another"
            ));
        }
    }
    if config.admin_tls.is_some() && config.admin_listen.is_none() {
        return Error::refuse(
            "admin.tls is for the admin listener, which is off; remove admin.tls, or set admin.listen",
        );
    }
    // The embedded pool cannot see other hosts: two hosts would hand out the same machine IDs.
    let seen = public(config).find(|listener| listener.1.beyond_loopback());
    if let (Some((name, address)), true) = (seen, config.unnamed_pool) {
        return Error::refuse(format!(
            "{name} ({address}) is reachable from other hosts, and the default pool cannot see which \
             machine IDs they use; choose one of machine.id, machine.store or machine.range"
        ));
    }
    match exposed(config).next() {
        Some((name, address, tls)) if !config.allow_plaintext => {
            let tokens = match config.auth {
                Some(_) => ", so tokens could be read in transit",
                None => "",
            };
            Error::refuse(format!(
                "{name} ({address}) is reachable from other hosts and not encrypted{tokens}; set \
                 {tls}.cert and {tls}.key, or set allow_plaintext = true (--allow-plaintext) if the \
                 network is trusted, or listen on 127.0.0.1"
            ))
        }
        _ => Ok(()),
    }
}

/// The public listeners, keyed by setting.
fn public(config: &Config) -> impl Iterator<Item = (&'static str, &Address)> {
    config
        .apis
        .iter()
        .map(|api| (api.setting(), config.listen(*api)))
}

/// All enabled listeners: setting, address, and the settings table that would enable TLS (`None` if it
/// is enabled).
fn listeners(
    config: &Config,
) -> impl Iterator<Item = (&'static str, &Address, Option<&'static str>)> {
    let plain = config.tls.is_none().then_some("tls");
    let admin_plain = config.admin_tls.is_none().then_some("admin.tls");
    let admin = config
        .admin_listen
        .as_ref()
        .map(|at| ("admin.listen", at, admin_plain));
    public(config)
        .map(move |(name, at)| (name, at, plain))
        .chain(admin)
}

/// Listeners that are reachable from other hosts and not encrypted: setting, address, and the
/// settings table that would enable TLS.
pub(super) fn exposed(
    config: &Config,
) -> impl Iterator<Item = (&'static str, &Address, &'static str)> {
    listeners(config)
        .filter_map(|(name, at, tls)| Some((name, at, tls?)))
        .filter(|listener| listener.1.beyond_loopback())
}

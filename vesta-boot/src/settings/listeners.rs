//! Listeners: addresses, TLS, and rules between them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::Config;
use super::parse::{Parsed, address, path, truth};
use super::values::Values;
use crate::error::Error;
use crate::net::TlsFiles;

/// Listeners: `listen`, `[admin]` and `[tls]`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Listeners")]
#[group(skip)]
pub(super) struct Section {
    /// Public listener
    ///
    /// IP address and port; port 0 takes a free one, which the start-up summary shows. Beyond loopback
    /// it needs a `machine.*` setting, and TLS or `allow_plaintext = true`.
    #[arg(id = "listen", value_name = "IP:PORT", default_value = "127.0.0.1:50051")]
    #[arg(value_parser = address)]
    pub(super) listen: SocketAddr,

    /// Admin listener, or off
    ///
    /// Serves `/metrics`, `/healthz`, `/readyz`, `/status` and `/segments`; `off` disables it. Beyond
    /// loopback it needs TLS or `allow_plaintext = true`.
    #[arg(id = "admin.listen", value_name = "IP:PORT", default_value = "127.0.0.1:50052")]
    #[arg(value_parser = address_or_off)]
    pub(super) admin: std::option::Option<SocketAddr>,

    /// Further host names of the admin listener
    ///
    /// Comma-separated, without ports. A request that changes something (a new tag) must name the listener
    /// by its address, by `localhost` or by one of these, and come from no other page: so no web site can
    /// send it through a browser.
    ///
    /// Example: vesta.example.com
    #[arg(id = "admin.hosts", value_name = "NAMES", default_value = "", value_parser = hosts)]
    pub(super) admin_hosts: Arc<[String]>,

    /// Certificate chain (PEM); turns TLS on
    ///
    /// The server's certificate and its chain, for the public listener. Replaced files are read again
    /// while the program runs.
    ///
    /// Example: /etc/vesta/cert.pem
    #[arg(id = "tls.cert", value_name = "FILE", value_parser = path)]
    cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    ///
    /// Not encrypted. Only this program should be able to read it.
    ///
    /// Example: /etc/vesta/key.pem
    #[arg(id = "tls.key", value_name = "FILE", value_parser = path)]
    key: Option<PathBuf>,

    /// Authorities of client certificates (PEM)
    ///
    /// Clients then need a certificate from one of them (mTLS).
    ///
    /// Example: /etc/vesta/clients.pem
    #[arg(id = "tls.client_ca", value_name = "FILE", value_parser = path)]
    client_ca: Option<PathBuf>,

    /// As tls.cert, for the admin listener
    ///
    /// The files may be the same.
    ///
    /// Example: /etc/vesta/cert.pem
    #[arg(id = "admin.tls.cert", value_name = "FILE", value_parser = path)]
    admin_cert: Option<PathBuf>,

    /// As tls.key, for the admin listener
    ///
    /// Example: /etc/vesta/key.pem
    #[arg(id = "admin.tls.key", value_name = "FILE", value_parser = path)]
    admin_key: Option<PathBuf>,

    /// As tls.client_ca, for the admin listener
    ///
    /// Health probes then need a certificate too.
    ///
    /// Example: /etc/vesta/clients.pem
    #[arg(id = "admin.tls.client_ca", value_name = "FILE", value_parser = path)]
    admin_client_ca: Option<PathBuf>,

    /// Allow plaintext beyond loopback
    ///
    /// For networks that are trusted.
    #[arg(id = "allow_plaintext", value_name = "BOOL", default_value = "false")]
    #[arg(value_parser = truth())]
    pub(super) allow_plaintext: bool,
}

fn address_or_off(text: &str) -> Parsed<Option<SocketAddr>> {
    if text == "off" { Ok(None) } else { address(text).map(Some) }
}

/// Host names, separated by commas.
fn hosts(text: &str) -> Parsed<Arc<[String]>> {
    let names: Vec<_> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match names.iter().all(|name| name.chars().all(is_part)) {
        true => Ok(names.into_iter().map(str::to_owned).collect()),
        false => Err("must be host names without ports, separated by commas".to_owned()),
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
            return Ok(Some(TlsFiles { setting, cert, key, client_ca }));
        }
        [None, None, None] => return Ok(None),
        [None, None, Some(_)] => ("client_ca", format!("{setting}.cert and {setting}.key")),
        [None, Some(_), _] => ("key", format!("{setting}.cert")),
        [Some(_), None, _] => ("cert", format!("{setting}.key")),
    };
    Error::refuse(format!("{setting}.{has} needs {needs} too; name the PEM files of the server"))
}

impl Section {
    /// The files of the public and of the admin listener.
    pub(super) fn tls(&self) -> Result<[Option<TlsFiles>; 2], Error> {
        Ok([
            tls_files("tls", [&self.cert, &self.key, &self.client_ca])?,
            tls_files("admin.tls", [&self.admin_cert, &self.admin_key, &self.admin_client_ca])?,
        ])
    }
}

/// Checks the rules between the listeners and other settings.
pub(super) fn check(config: &Config, values: &Values) -> Result<(), Error> {
    if let Some(admin) = config.admin_listen {
        let (a, b) = (config.listen, admin);
        let meet = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
        if a.port() != 0 && a.port() == b.port() && meet {
            return Error::refuse(format!(
                "listen ({a}) and admin.listen ({b}) cannot share a port; give one of them another"
            ));
        }
    }
    if config.admin_tls.is_some() && config.admin_listen.is_none() {
        return Error::refuse(
            "admin.tls is for the admin listener, which is off; remove admin.tls, or set admin.listen",
        );
    }
    // The embedded pool cannot see other hosts: two of them would hand out the same machine IDs.
    let machine =
        ["machine.id", "machine.ips", "machine.ordinal", "machine.store", "machine.range"];
    if beyond_loopback(config.listen.ip()) && !machine.iter().any(|name| values.is_explicit(name)) {
        return Error::refuse(format!(
            "listen ({}) is reachable from other hosts, and the default pool cannot see which \
             machine IDs they use; choose one of machine.id, machine.ips, machine.ordinal, \
             machine.store or machine.range",
            config.listen
        ));
    }
    match exposed(config).next() {
        Some((name, address, tls)) if !config.allow_plaintext => {
            let tokens = match config.auth {
                Some(_) => ", so that tokens could be read on their way",
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

/// The listeners that other hosts reach and that are not encrypted: setting, address, and the table
/// of settings that would encrypt it.
pub(super) fn exposed(
    config: &Config,
) -> impl Iterator<Item = (&'static str, SocketAddr, &'static str)> {
    let public = (config.tls.is_none()).then_some(("listen", config.listen, "tls"));
    let admin = config.admin_listen.filter(|_| config.admin_tls.is_none());
    let admin = admin.map(|address| ("admin.listen", address, "admin.tls"));
    public.into_iter().chain(admin).filter(|listener| beyond_loopback(listener.1.ip()))
}

fn beyond_loopback(address: IpAddr) -> bool {
    !address.to_canonical().is_loopback()
}

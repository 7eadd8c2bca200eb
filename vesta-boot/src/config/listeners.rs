//! What must hold between the listeners and the rest.

use std::net::{IpAddr, SocketAddr};

use super::Config;
use crate::ConfigError;
use crate::raw::Raw;

pub(super) fn check(config: &Config, raw: &Raw) -> Result<(), ConfigError> {
    if let Some(admin) = config.admin_listen {
        let (a, b) = (config.listen, admin);
        let meet = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
        if a.port() != 0 && a.port() == b.port() && meet {
            return Err(ConfigError::refused(format!(
                "listen ({a}) and admin.listen ({b}) cannot share a port; give one of them another"
            )));
        }
    }
    // The embedded pool cannot see other hosts: two of them would hand out the same machine IDs.
    let machine =
        ["machine.id", "machine.ips", "machine.ordinal", "machine.store", "machine.range"];
    if beyond_loopback(config.listen.ip()) && !machine.iter().any(|name| raw.is_explicit(name)) {
        return Err(ConfigError::refused(format!(
            "listen ({}) is reachable from other hosts, and the default pool cannot see which \
             machine IDs they use; choose one of machine.id, machine.ips, machine.ordinal, \
             machine.store or machine.range",
            config.listen
        )));
    }
    match exposed(config).next() {
        Some((name, address, tls)) if !config.allow_plaintext => {
            let tokens = match config.auth {
                Some(_) => ", so that tokens could be read on their way",
                None => "",
            };
            Err(ConfigError::refused(format!(
                "{name} ({address}) is reachable from other hosts and not encrypted{tokens}; set \
                 {tls}.cert and {tls}.key, or set allow_plaintext = true (--allow-plaintext) if the \
                 network is trusted, or listen on 127.0.0.1"
            )))
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

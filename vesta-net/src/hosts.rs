//! Names of a listener. A web site can resolve one of its names to a listener on loopback, have the browser
//! of this host call it, and read the responses (DNS rebinding). Pure.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::address::{Address, Listening};

/// Host names that requests to a listener may use; by default any.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Option<Arc<[String]>>);

impl Hosts {
    /// Host names that requests to a listener may use: its own, and these.
    pub fn of(listener: &Listening, names: &Arc<[String]>) -> Self {
        Self::new(listener.address(), names)
    }

    /// For a listener on loopback: its address, `localhost` and these names; `*` allows any. Other
    /// listeners accept any name: reaching them takes no browser.
    fn new(listener: &Address, names: &Arc<[String]>) -> Self {
        let on_loopback = matches!(listener, Address::Tcp(_)) && !listener.beyond_loopback();
        let any = names.iter().any(|name| name == "*");
        Self((on_loopback && !any).then(|| Arc::clone(names)))
    }

    /// Returns whether a request with these `Host` headers may be answered. Browsers always send one, so a
    /// request without any is allowed.
    pub fn allow<'a>(&self, hosts: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let Some(names) = &self.0 else { return true };
        hosts
            .into_iter()
            .all(|it| str::from_utf8(it).is_ok_and(|host| names_this(host, names)))
    }
}

/// Returns whether a host is an address, `localhost` or one of `names`. Another site cannot have an
/// address as its name, and a name server cannot resolve one.
pub fn names_this(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let v6 = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    v6.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
        || name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(listener: &str, names: &[&str], hosts: &[&str]) -> bool {
        let names = names.iter().copied().map(str::to_owned).collect();
        let hosts = hosts.iter().map(|host| host.as_bytes());
        Hosts::new(&listener.parse().expect("an address"), &names).allow(hosts)
    }

    #[test]
    fn a_loopback_listener_accepts_only_its_own_names() {
        for listener in ["127.0.0.1:8088", "[::1]:8088", "127.9.9.9:8088"] {
            for own in ["127.0.0.1:8088", "localhost", "[::1]:1", "Ids.Example:443"] {
                assert!(allows(listener, &["ids.example"], &[own]), "{own}");
            }
            for foreign in [
                "evil.example",
                "evil.example:8088",
                "",
                "localhost.evil.example",
                "*",
            ] {
                assert!(!allows(listener, &["ids.example"], &[foreign]), "{foreign}");
                assert!(
                    !allows(listener, &["ids.example"], &["localhost", foreign]),
                    "{foreign}"
                );
                assert!(allows(listener, &["*"], &[foreign]), "any name is allowed");
            }
            assert!(
                allows(listener, &[], &[]),
                "HTTP/1.0 without a host comes from no browser"
            );
        }
    }

    #[test]
    fn other_listeners_accept_any_name() {
        for listener in [
            "0.0.0.0:8088",
            "10.0.0.1:8088",
            "[::]:8088",
            "unix:/run/vesta.sock",
        ] {
            assert!(allows(listener, &[], &["ids.example"]), "{listener}");
        }
    }
}

//! Detects requests that another site made a browser send: from a page of that site, or by a host
//! name of that site that resolves to this listener (DNS rebinding). Pure.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

use vesta_net::names_this;

/// Returns whether a request names this listener by an address, `localhost` or one of `names`, and
/// comes from its own page or none.
pub(super) fn is_own(headers: &HeaderMap, names: &[String]) -> bool {
    let mut hosts = headers
        .get_all(HOST)
        .into_iter()
        .map(|host| host.to_str().unwrap_or(""));
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let of_host = |origin: &str| match origin.split_once("://") {
        Some(("http" | "https", authority)) => authority.eq_ignore_ascii_case(host),
        _ => false,
    };
    names_this(host, names)
        && headers
            .get_all(ORIGIN)
            .iter()
            .all(|origin| origin.to_str().is_ok_and(of_host))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn may(hosts: &[&'static str], origins: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, values) in [(HOST, hosts), (ORIGIN, origins)] {
            for value in values {
                headers.append(&name, HeaderValue::from_static(value));
            }
        }
        is_own(&headers, &["vesta.example".to_owned()])
    }

    #[test]
    fn address_localhost_and_configured_names_are_accepted() {
        for host in [
            "127.0.0.1:50052",
            "10.1.2.3",
            "[::1]:50052",
            "[::1]",
            "localhost",
            "LocalHost:50052",
            "vesta.example",
            "Vesta.Example:443",
        ] {
            assert!(may(&[host], &[]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:50052",
            "vesta.example.evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "127.0.0.1:x",
            "127.1",
            "[::1",
            "::1",
            "[localhost]",
        ] {
            assert!(!may(&[host], &[]), "{host}");
        }
        assert!(!may(&[], &[]), "every browser sends a host");
        assert!(!may(&["localhost", "localhost"], &[]), "exactly one");
    }

    #[test]
    fn only_its_own_page_or_none_is_accepted() {
        for (host, origin) in [
            ("127.0.0.1:50052", "http://127.0.0.1:50052"),
            ("[::1]:50052", "http://[::1]:50052"),
            ("localhost:50052", "https://LOCALHOST:50052"),
            ("vesta.example", "https://vesta.example"),
        ] {
            assert!(may(&[host], &[origin]), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://127.0.0.1",
            "http://127.0.0.1:50053",
            "http://localhost:50052",
            "127.0.0.1:50052",
            "file://127.0.0.1:50052",
            "http://127.0.0.1:50052/",
        ] {
            assert!(!may(&["127.0.0.1:50052"], &[origin]), "{origin}");
        }
        let both = ["http://localhost", "http://evil.example"];
        assert!(!may(&["localhost"], &both), "all of them");
    }
}

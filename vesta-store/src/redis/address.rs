//! What the URL of a Redis says.

use std::fmt;

use redis::{ConnectionAddr, IntoConnectionInfo as _};

use crate::OpenError;

const EXAMPLE: &str =
    "redis://user:password@host:6379/0 or rediss://:password@host:6379/0?prefix=vesta";
const DEFAULT_PREFIX: &str = "vesta";

/// Where a Redis is and how to get in.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) server: ConnectionAddr,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u32,
    /// What every key begins with.
    pub(super) prefix: String,
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redis ")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match &self.server {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{open}{host}{close}:{port}/{}", self.database)?;
            }
            other => write!(f, "{other}")?,
        }
        if self.prefix != DEFAULT_PREFIX {
            write!(f, " (keys `{}:…`)", self.prefix)?;
        }
        Ok(())
    }
}

/// The same.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn malformed(reason: impl Into<String>) -> OpenError {
    OpenError::Malformed { reason: reason.into(), example: EXAMPLE }
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        let mut url = redis::parse_redis_url(url).ok_or_else(|| {
            malformed("the URL makes no sense (percent-encode what is special in a password)")
        })?;
        if url.fragment().is_some() {
            return Err(malformed("a URL of Redis has no part behind a `#`"));
        }
        let mut prefix = None;
        for (name, value) in url.query_pairs() {
            if name != "prefix" || prefix.is_some() {
                return Err(malformed("the only option behind `?` is one prefix="));
            }
            prefix = Some(value.into_owned());
        }
        let prefix = prefix.unwrap_or_else(|| DEFAULT_PREFIX.into());
        if !is_prefix(&prefix) {
            return Err(malformed(
                "the prefix must be 1 to 64 letters, digits, `.`, `_`, `-` or `:`",
            ));
        }
        let database = match url.path() {
            "" | "/" => 0,
            path => path[1..]
                .parse()
                .ok()
                .filter(|number: &u32| path[1..] == number.to_string())
                .ok_or_else(|| {
                malformed("the part behind the host must be the number of a database")
            })?,
        };
        match url.host_str() {
            None | Some("") => return Err(malformed("the URL names no host")),
            // Not shown: it may be a password.
            Some(host) if host.contains(',') => {
                return Err(malformed("the URL must name one server"));
            }
            Some(_) => {}
        }
        // What is left is read by the client: it knows addresses, and how text is encoded.
        url.set_query(None);
        url.set_path("");
        let info = url
            .into_connection_info()
            .map_err(|_| malformed("the URL names a host or a user that cannot be one"))?;
        let login = info.redis_settings();
        let password = login.password().filter(|password| !password.is_empty());
        if login.username().is_some() && password.is_none() {
            return Err(malformed(
                "the URL has a user but no password (a password alone stands behind a `:`)",
            ));
        }
        Ok(Self {
            server: info.addr().clone(),
            user: login.username().map(Into::into),
            password: password.map(Into::into),
            database,
            prefix,
        })
    }
}

/// Without braces, which have a meaning in a cluster.
fn is_prefix(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found() {
        for (url, shown, password) in [
            ("redis://cache", "Redis cache:6379/0", None),
            ("redis://cache/", "Redis cache:6379/0", None),
            ("redis://:hunter2@cache:7000/3", "Redis cache:7000/3", Some("hunter2")),
            ("REDISS://ids:hunt%40er2@cache/15", "Redis ids@cache:6379/15", Some("hunt@er2")),
            ("redis://[::1]:7000", "Redis [::1]:7000/0", None),
            ("redis://c?prefix=a.b:c-d_e", "Redis c:6379/0 (keys `a.b:c-d_e:…`)", None),
            ("redis://c?prefix=vesta", "Redis c:6379/0", None),
        ] {
            let address = Address::parse(url).expect(url);
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.password.as_deref(), password);
            assert!(!format!("{address:?}").contains("hunt"), "{address:?}");
            let tls = matches!(address.server, ConnectionAddr::TcpTls { insecure: false, .. });
            assert_eq!(tls, url.starts_with("REDISS"));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_showing_it() {
        for url in [
            "redis:",
            "redis://",
            "redis:cache",
            "redis:///0",
            "redis://:hunter2@",
            "redis://u:hunter2/@cache",
            "redis://hunter2@cache",
            "redis://hunter2:@cache",
            "redis://cache:hunter2",
            "redis://a,b",
            "redis://0.0.0.0",
            "redis://cache/hunter2",
            "redis://cache/-1",
            "redis://cache/+1",
            "redis://cache/01",
            "redis://cache/0/1",
            "redis://cache#insecure",
            "rediss://cache/0#insecure",
            "redis://cache?password=hunter2",
            "redis://cache?protocol=resp3",
            "redis://cache?prefix=a&prefix=b",
            "redis://cache?prefix=",
            "redis://cache?prefix={hunter2}",
            "redis://cache?prefix",
            "redis://u:%ff@cache",
        ] {
            let error = Address::parse(url).expect_err(url).to_string();
            assert!(error.contains("; write redis://user:password@host"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}

//! URL of a Redis server.

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, RedisResult,
};

use crate::{OpenError, StoreUrl};

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_PREFIX: &str = "vesta";

/// Address of a Redis server, and credentials.
pub(super) struct Config {
    /// Display form, without the password.
    pub(super) shown: String,
    server: ConnectionAddr,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u32,
    /// Prefix of every key.
    pub(super) prefix: String,
}

impl TryFrom<&StoreUrl> for Config {
    type Error = OpenError;

    fn try_from(url: &StoreUrl) -> Result<Self, OpenError> {
        let prefix = url.option("prefix").unwrap_or(DEFAULT_PREFIX);
        if !is_prefix(prefix) {
            let flaw = "the prefix must be 1 to 64 letters, digits, `.`, `_`, `-` or `:`";
            return Err(url.malformed(flaw));
        }
        let database = match url.path.as_str() {
            "" => Some(0),
            path => path
                .parse()
                .ok()
                .filter(|number: &u32| path == number.to_string()),
        };
        let database = database
            .ok_or_else(|| url.malformed("the part after the host must be a database number"))?;
        if url.user.as_deref().is_some() && url.password.as_deref().is_none() {
            return Err(url.malformed(
                "the URL has a user but no password (write a password alone after a `:`)",
            ));
        }
        let [host] = &url.hosts[..] else {
            return Err(url.malformed("the URL must name one server"));
        };
        let port = host.port.unwrap_or(DEFAULT_PORT);
        let host = host.name.trim_matches(['[', ']']).to_owned();
        let server = if url.has_scheme("rediss") {
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let mut shown = format!("{}/{database}", url.address("Redis", DEFAULT_PORT));
        if prefix != DEFAULT_PREFIX {
            shown += &format!(" (keys `{prefix}:…`)");
        }
        let (user, password) = (
            url.user.as_deref().map(Into::into),
            url.password.as_deref().map(Into::into),
        );
        Ok(Self {
            shown,
            server,
            user,
            password,
            database,
            prefix: prefix.into(),
        })
    }
}

impl Config {
    /// The server only: user, password and database are sent by our own login.
    pub(super) fn server(&self) -> RedisResult<ConnectionInfo> {
        if matches!(self.server, ConnectionAddr::TcpTls { .. }) {
            choose_cryptography();
        }
        let info = self.server.clone().into_connection_info()?;
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let bare = RedisConnectionInfo::default().set_skip_set_lib_name();
        Ok(info.set_tcp_settings(tcp).set_redis_settings(bare))
    }
}

/// Installs a cryptography provider: the client uses the process default, and panics without one.
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// True for a valid prefix. Braces are invalid: they are special in a cluster.
fn is_prefix(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Around, check_url};

    fn parse(url: &str) -> Result<Config, OpenError> {
        Config::try_from(&url.parse::<StoreUrl>()?)
    }

    #[test]
    fn every_part_is_found() {
        for (url, shown, password) in [
            ("redis://cache", "Redis cache:6379/0", None),
            ("redis://cache/", "Redis cache:6379/0", None),
            (
                "redis://:hunter2@cache:7000/3",
                "Redis cache:7000/3",
                Some("hunter2"),
            ),
            (
                "REDISS://ids:hunt%40er2@cache/15",
                "Redis ids@cache:6379/15",
                Some("hunt@er2"),
            ),
            ("redis://[::1]:7000", "Redis [::1]:7000/0", None),
            (
                "redis://c?prefix=a.b:c-d_e",
                "Redis c:6379/0 (keys `a.b:c-d_e:…`)",
                None,
            ),
            ("redis://c?prefix=vesta", "Redis c:6379/0", None),
        ] {
            let config = parse(url).expect(url);
            assert_eq!(config.shown, shown);
            assert_eq!(config.password.as_deref(), password);
            let tls = matches!(
                config.server,
                ConnectionAddr::TcpTls {
                    insecure: false,
                    ..
                }
            );
            assert_eq!(tls, url.starts_with("REDISS"));
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_quoting_it() {
        for url in [
            "redis://hunter2@cache",
            "redis://hunter2:@cache",
            "redis://a,b",
            "redis://cache/hunter2",
            "redis://cache/-1",
            "redis://cache/+1",
            "redis://cache/01",
            "redis://cache/0/1",
            "redis://cache#insecure",
            "rediss://cache/0#insecure",
            "redis://cache?protocol=resp3",
            "redis://cache?prefix=",
            "redis://cache?prefix={hunter2}",
            "redis://cache?prefix",
        ] {
            let error = parse(url).map(drop).expect_err(url).to_string();
            assert!(
                error.contains("; write redis://user:password@host"),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn urls_of_any_text() {
        bolero::check!()
            .with_iterations(20_000)
            .with_type()
            .for_each(|around: &Around| {
                check_url(|url| Ok(parse(url)?.shown), &["redis", "rediss"], around);
            });
    }
}

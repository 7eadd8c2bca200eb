//! URL of a ZooKeeper ensemble.

use crate::{OpenError, StoreUrl};

const DEFAULT_PORT: u16 = 2181;

/// Path of a URL without one.
pub(super) const DEFAULT_PATH: &str = "vesta";

/// Servers, root znode, and credentials.
pub(super) struct Config {
    /// Display form, without the password.
    pub(super) shown: String,
    /// Each with its port.
    pub(super) hosts: Vec<String>,
    /// Absolute, without a trailing slash.
    pub(super) path: String,
    /// `user:password` for ZooKeeper's scheme `digest`.
    pub(super) digest: Option<String>,
}

impl Config {
    /// Parses a URL; the default path has no leading slash.
    pub(super) fn new(url: &StoreUrl, default_path: &str) -> Result<Self, OpenError> {
        let digest = match (url.user.as_deref(), url.password.as_deref()) {
            (None, None) => None,
            (Some(user), Some(_)) if user.contains(':') => {
                let flaw = "a ZooKeeper user name must not contain a colon";
                return Err(url.malformed(flaw));
            }
            (Some(user), Some(password)) => Some(format!("{user}:{password}")),
            _ => return Err(url.malformed("the user or the password is empty")),
        };
        if url.path.contains(char::is_control) {
            return Err(url.malformed("the path has a character that ZooKeeper refuses"));
        }
        if url.path.split('/').next() == Some("zookeeper") {
            return Err(url.malformed("the znode /zookeeper belongs to ZooKeeper itself"));
        }
        let path = format!(
            "/{}",
            if url.path.is_empty() {
                default_path
            } else {
                &url.path
            }
        );
        let shown = url.address("ZooKeeper", DEFAULT_PORT) + &path;
        Ok(Self {
            shown,
            hosts: url.servers(DEFAULT_PORT),
            path,
            digest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Around, check_url};

    fn parse(url: &str) -> Result<Config, OpenError> {
        Config::new(&url.parse()?, DEFAULT_PATH)
    }

    #[test]
    fn a_url_has_servers_and_optionally_a_path_and_a_login() {
        for (url, shown, digest) in [
            ("zookeeper://zk1", "ZooKeeper zk1:2181/vesta", None),
            (
                "zookeeper://zk1:2182,10.0.0.2/a/b/",
                "ZooKeeper zk1:2182,10.0.0.2:2181/a/b",
                None,
            ),
            (
                "zookeeper://[::1]:2182,[fe80::1]/a",
                "ZooKeeper [::1]:2182,[fe80::1]:2181/a",
                None,
            ),
            (
                "ZOOKEEPER://ids:hunter2%40%2F%3A@zk1/%C3%A4%20b",
                "ZooKeeper ids@zk1:2181/ä b",
                Some("ids:hunter2@/:"),
            ),
        ] {
            let config = parse(url).expect(url);
            assert_eq!(config.shown, shown);
            assert_eq!(config.digest.as_deref(), digest);
        }
        let root = Config::new(&"zookeeper://zk1".parse().unwrap(), "").unwrap();
        assert_eq!(
            (root.shown.as_str(), root.path.as_str()),
            ("ZooKeeper zk1:2181/", "/")
        );
    }

    #[test]
    fn a_malformed_url_is_refused_without_quoting_it() {
        for (url, reason) in [
            ("zookeeper://:hunter2@zk1", "empty"),
            ("zookeeper://ids:@zk1", "empty"),
            ("zookeeper://i%3Ads:hunter2@zk1", "colon"),
            ("zookeeper://zk1/a%00", "ZooKeeper refuses"),
            ("zookeeper://zk1/zookeeper/config", "belongs to ZooKeeper"),
        ] {
            let said = parse(url).map(|_| ()).expect_err(url).to_string();
            assert!(said.contains(reason), "{url}: {said}");
            assert!(said.contains("; write zookeeper://"), "{url}: {said}");
            assert!(!said.contains("hunter2"), "{url}: {said}");
        }
    }

    #[test]
    fn urls_of_any_text() {
        bolero::check!()
            .with_iterations(20_000)
            .with_type()
            .for_each(|around: &Around| {
                check_url(|url| Ok(parse(url)?.shown), &["zookeeper"], around);
            });
    }
}

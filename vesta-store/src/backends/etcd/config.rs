//! The URL of an etcd.

use std::fmt;
use std::path::PathBuf;

use crate::{OpenError, StoreUrl};

const DEFAULT_PORT: u16 = 2379;
const DEFAULT_PREFIX: &str = "vesta";

/// The members of the cluster, the prefix of our keys, and the way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    /// Each with its port.
    pub(super) members: Vec<String>,
    /// Without a slash at its ends.
    pub(super) prefix: String,
    pub(super) login: Option<Login>,
    pub(super) tls: Option<Roots>,
}

/// A user of etcd.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// The authorities that a certificate of a member must come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those that browsers trust.
    Web,
    /// The certificates in this file.
    File(PathBuf),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("etcd ")?;
        if let Some(Login { user, .. }) = &self.login {
            write!(f, "{user}@")?;
        }
        write!(f, "{}/{}", self.members.join(","), self.prefix)
    }
}

impl TryFrom<&StoreUrl> for Config {
    type Error = OpenError;

    fn try_from(url: &StoreUrl) -> Result<Self, OpenError> {
        let login = match (url.user(), url.password()) {
            (None, None) => None,
            (Some(user), Some(password)) => {
                Some(Login { user: user.into(), password: password.into() })
            }
            _ => return Err(url.malformed("the user or the password is empty")),
        };
        let tls = match (url.has_scheme("etcds"), url.option("ca")) {
            (false, None) => None,
            (false, Some(_)) => {
                return Err(url.malformed("the option `ca` is for TLS; begin with etcds://"));
            }
            (true, None) => Some(Roots::Web),
            (true, Some("")) => return Err(url.malformed("the option `ca` names one file")),
            (true, Some(file)) => Some(Roots::File(file.into())),
        };
        let prefix = if url.path().is_empty() { DEFAULT_PREFIX } else { url.path() };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
        if !prefix.chars().all(allowed) {
            let flaw = "the prefix of the keys consists of letters, digits and -._, with single \
                        slashes between its parts";
            return Err(url.malformed(flaw));
        }
        let members = url.hosts().iter().map(|host| host.with_port(DEFAULT_PORT)).collect();
        Ok(Self { members, prefix: prefix.into(), login, tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Around, check_url};

    fn parse(url: &str) -> Result<Config, OpenError> {
        Config::try_from(&url.parse::<StoreUrl>()?)
    }

    fn parsed(url: &str) -> Config {
        parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let all = parsed("etcds://ann:s3cret@a:1,[::1]:2,c.d-f:65535/x/y.z?ca=/etc/ca.pem");
        assert_eq!(
            all,
            Config {
                members: vec!["a:1".into(), "[::1]:2".into(), "c.d-f:65535".into()],
                prefix: "x/y.z".into(),
                login: Some(Login { user: "ann".into(), password: "s3cret".into() }),
                tls: Some(Roots::File("/etc/ca.pem".into())),
            }
        );
        let least = Config {
            members: vec!["db:2379".into()],
            prefix: "vesta".into(),
            login: None,
            tls: None,
        };
        for url in ["etcd://db", "etcd://db/", "ETCD://db:2379/vesta", "etcd://db/vesta/"] {
            assert_eq!(parsed(url), least, "{url}");
        }
        assert_eq!(parsed("etcd://[::1],b").members, ["[::1]:2379", "b:2379"]);
        assert_eq!(parsed("ETCDS://db").tls, Some(Roots::Web));
    }

    #[test]
    fn it_shows_everything_but_the_password() {
        let config = parsed("etcd://ann:hunter2@a:1,b/x");
        assert_eq!(config.to_string(), "etcd ann@a:1,b:2379/x");
        assert_eq!(parsed("etcd://a").to_string(), "etcd a:2379/vesta");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_repeating_it() {
        for url in [
            "etcd://u:@h",
            "etcd://:hunter2@h",
            "etcd://h/a b",
            "etcd://h/a%20b",
            "etcd://h?ca=/etc/ca.pem",
            "etcds://h?ca=",
        ] {
            let error = parse(url).expect_err(url);
            assert!(matches!(error, OpenError::Malformed { .. }), "{url}: {error:?}");
            assert!(!error.to_string().contains("hunter2"), "{url}: {error}");
            assert!(error.to_string().contains("; write etcd://"), "{url}: {error}");
        }
    }

    #[test]
    fn urls_of_any_text() {
        bolero::check!().with_iterations(20_000).with_type().for_each(|around: &Around| {
            check_url(parse, &["etcd", "etcds"], around);
        });
    }
}

//! URL of an etcd cluster.

use super::pb::AuthenticateRequest;
use crate::backends::channel::Roots;
use crate::{OpenError, StoreUrl};

const DEFAULT_PORT: u16 = 2379;
const DEFAULT_PREFIX: &str = "vesta";

/// Members of the cluster, prefix of our keys, and credentials.
pub(super) struct Config {
    /// Display form, without the password.
    pub(super) shown: String,
    /// Each with its port.
    pub(super) members: Vec<String>,
    /// Prefix of the keys, without leading and trailing slashes.
    pub(super) prefix: String,
    pub(super) login: Option<AuthenticateRequest>,
    pub(super) tls: Option<Roots>,
}

impl TryFrom<&StoreUrl> for Config {
    type Error = OpenError;

    fn try_from(url: &StoreUrl) -> Result<Self, OpenError> {
        let login = match (url.user.as_deref(), url.password.as_deref()) {
            (None, None) => None,
            (Some(user), Some(password)) => Some(AuthenticateRequest {
                name: user.into(),
                password: password.into(),
            }),
            _ => return Err(url.malformed("the user or the password is empty")),
        };
        let tls = Roots::of(url, "etcds")?;
        let prefix = if url.path.is_empty() {
            DEFAULT_PREFIX
        } else {
            &url.path
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
        if !prefix.chars().all(allowed) {
            let flaw = "the prefix of the keys consists of letters, digits and -._, with single \
                        slashes between its parts";
            return Err(url.malformed(flaw));
        }
        let shown = format!("{}/{prefix}", url.address("etcd", DEFAULT_PORT));
        let members = url.servers(DEFAULT_PORT);
        Ok(Self {
            shown,
            members,
            prefix: prefix.into(),
            login,
            tls,
        })
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
    fn omitted_parts_have_defaults() {
        let all = parsed("etcds://ann:s3cret@a:1,[::1]:2,c.d-f:65535/x/y.z?ca=/etc/ca.pem");
        assert_eq!(all.members, ["a:1", "[::1]:2", "c.d-f:65535"]);
        assert_eq!(all.prefix, "x/y.z");
        let login = all.login.expect("a user");
        assert_eq!((&*login.name, &*login.password), ("ann", "s3cret"));
        assert_eq!(all.tls, Some(Roots::File("/etc/ca.pem".into())));
        for url in [
            "etcd://db",
            "etcd://db/",
            "ETCD://db:2379/vesta",
            "etcd://db/vesta/",
        ] {
            let least = parsed(url);
            assert_eq!(
                (least.members, &*least.prefix),
                (vec!["db:2379".into()], "vesta"),
                "{url}"
            );
            assert_eq!((least.login, least.tls), (None, None), "{url}");
        }
        assert_eq!(parsed("etcd://[::1],b").members, ["[::1]:2379", "b:2379"]);
        assert_eq!(parsed("ETCDS://db").tls, Some(Roots::Web));
    }

    #[test]
    fn the_display_form_hides_only_the_password() {
        assert_eq!(
            parsed("etcd://ann:hunter2@a:1,b/x").shown,
            "etcd ann@a:1,b:2379/x"
        );
        assert_eq!(parsed("etcd://a").shown, "etcd a:2379/vesta");
    }

    #[test]
    fn an_invalid_url_is_refused_without_quoting_it() {
        for url in [
            "etcd://u:@h",
            "etcd://:hunter2@h",
            "etcd://h/a b",
            "etcd://h/a%20b",
            "etcd://h?ca=/etc/ca.pem",
            "etcds://h?ca=",
        ] {
            let error = parse(url).map(drop).expect_err(url);
            assert!(
                matches!(error, OpenError::Malformed { .. }),
                "{url}: {error:?}"
            );
            assert!(!error.to_string().contains("hunter2"), "{url}: {error}");
            assert!(
                error.to_string().contains("; write etcd://"),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn urls_of_any_text() {
        bolero::check!()
            .with_iterations(20_000)
            .with_type()
            .for_each(|around: &Around| {
                check_url(|url| Ok(parse(url)?.shown), &["etcd", "etcds"], around);
            });
    }
}

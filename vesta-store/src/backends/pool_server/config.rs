//! URL of a pool server.

use tonic::metadata::{Ascii, MetadataValue};

use crate::backends::channel::Roots;
use crate::{OpenError, StoreUrl};

const DEFAULT_PORT: u16 = 50051;

/// Servers of a pool server, and the token for them.
pub(super) struct Config {
    /// Display form, without the token.
    pub(super) shown: String,
    /// Each with its port.
    pub(super) servers: Vec<String>,
    pub(super) token: Option<MetadataValue<Ascii>>,
    pub(super) tls: Option<Roots>,
    /// Number of the store that is meant.
    pub(super) id: Option<u64>,
}

impl TryFrom<&StoreUrl> for Config {
    type Error = OpenError;

    fn try_from(url: &StoreUrl) -> Result<Self, OpenError> {
        if url.user.is_some() {
            return Err(url.malformed("a pool server has no users; a token stands after a colon"));
        }
        if !url.path.is_empty() {
            return Err(url.malformed("the URL of a pool server has no path"));
        }
        let token = |token: &String| {
            let mut token: MetadataValue<Ascii> = format!("Bearer {token}")
                .parse()
                .map_err(|_| url.malformed("the token has characters that no header takes"))?;
            token.set_sensitive(true);
            Ok(token)
        };
        let id = |text: &str| {
            let number = u64::from_str_radix(text, 16).ok();
            number.filter(|_| text.len() == 16 && !text.starts_with('+')).ok_or_else(|| {
                url.malformed("the option `id` has 16 hexadecimal digits; copy it from the start-up lines of the pool server")
            })
        };
        Ok(Self {
            id: url.option("id").map(id).transpose()?,
            shown: url.address("pool server", DEFAULT_PORT),
            servers: url.servers(DEFAULT_PORT),
            token: url.password.as_ref().map(token).transpose()?,
            tls: Roots::of(url, "vestas")?,
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

    #[test]
    fn a_token_and_several_servers_are_read() {
        let config =
            parse("vestas://:s3cret@a,[::1]:2?ca=/etc/ca.pem&id=00000000000000ff").expect("a URL");
        assert_eq!(config.id, Some(255));
        assert_eq!(config.servers, ["a:50051", "[::1]:2"]);
        assert_eq!(config.token.expect("a token"), "Bearer s3cret");
        assert_eq!(config.tls, Some(Roots::File("/etc/ca.pem".into())));
        assert_eq!(config.shown, "pool server a:50051,[::1]:2");
        let config = parse("vesta://a").expect("a URL");
        assert!(config.token.is_none() && config.tls.is_none());
    }

    #[test]
    fn an_invalid_url_is_refused_without_quoting_it() {
        for url in [
            "vesta://ann:hunter2@h",
            "vesta://hunter2@h",
            "vesta://:hunter2@h/x",
            "vesta://:hunter2%0A@h",
            "vesta://:hunter2@h?ca=x",
            "vestas://:hunter2@h?ca=",
            "vesta://:hunter2@h?id=",
            "vesta://:hunter2@h?id=ff",
            "vesta://:hunter2@h?id=+00000000000000f",
        ] {
            let error = parse(url).map(drop).expect_err(url);
            assert!(
                matches!(error, OpenError::Malformed { .. }),
                "{url}: {error:?}"
            );
            let said = error.to_string();
            assert!(
                !said.contains("hunter2") && said.contains("; write vesta://"),
                "{said}"
            );
        }
    }

    #[test]
    fn urls_of_any_text() {
        bolero::check!()
            .with_iterations(20_000)
            .with_type()
            .for_each(|around: &Around| {
                check_url(|url| Ok(parse(url)?.shown), &["vesta", "vestas"], around);
            });
    }
}

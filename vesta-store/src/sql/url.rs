//! URLs of databases: checked more strictly than the drivers do, because what they take for
//! something else may be a part of a password, and would be shown.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::OpenError;

/// The driver's options for a URL that has none but the `known` options. A name that ends with `[`
/// stands for all that begin so.
pub(crate) fn options_of<O: FromStr<Err = sqlx::Error>>(
    url: &str,
    known: &[&str],
    example: &'static str,
) -> Result<O, OpenError> {
    let malformed = |reason: String| OpenError::Malformed { reason, example };
    if let Some(flaw) = flaw(url, known) {
        return Err(malformed(flaw));
    }
    url.parse().map_err(|error| match error {
        sqlx::Error::Configuration(source) => malformed(format!("the URL is not valid: {source}")),
        // None is known, so none is known to be without secrets.
        _ => malformed("the URL is not valid".into()),
    })
}

fn flaw(url: &str, known: &[&str]) -> Option<String> {
    // From the first colon: a later `://` may be a part of a password.
    let Some(rest) = url.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//")) else {
        return Some("the URL has no `//` after its scheme".into());
    };
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let path = place.split_once('/').map_or("", |(_, path)| path);
    if rest.contains('#') || path.contains(['@', '/']) {
        return Some(
            "in a user name, a password or the name of a database, `@`, `/`, `?`, `#` and `:` have \
             to be written as %40, %2F, %3F, %23 and %3A"
                .into(),
        );
    }
    let is_known = |option: &str| {
        let name = option.split('=').next().unwrap_or_default().replace("%5B", "[");
        known.iter().any(|known| match known.strip_suffix('[') {
            Some(_) => name.starts_with(known) && name.len() > known.len(),
            None => name == *known,
        })
    };
    if !options.split('&').all(|option| option.is_empty() || is_known(option)) {
        let known: Vec<_> = known.iter().map(|name| name.trim_end_matches('[')).collect();
        return Some(format!("the URL has an unknown option; known ones: {}", known.join(", ")));
    }
    None
}

/// `user@host:port/database`.
pub(crate) struct Shown<'a> {
    pub(crate) user: &'a str,
    pub(crate) socket: Option<&'a Path>,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: Option<&'a str>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.user)?;
        match self.socket {
            Some(path) => write!(f, "{}", path.display())?,
            None if self.host.contains(':') => write!(f, "[{}]:{}", self.host, self.port)?,
            None => write!(f, "{}:{}", self.host, self.port)?,
        }
        match self.database {
            Some(database) => write!(f, "/{database}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["ssl-mode", "password", "options["];

    #[test]
    fn what_may_be_a_part_of_a_password_is_refused() {
        for url in ["x:u:hunter2@h", "x://u:12/hunter2@h/d", "x://u:12#hunter2@h/d", "x://h/a/b"] {
            let flaw = flaw(url, &KNOWN).expect(url);
            assert!(!flaw.contains("hunter2"), "{flaw}");
        }
    }

    #[test]
    fn an_unknown_option_is_refused_and_not_shown() {
        for options in ["sslmod=x", "ssl-mode=x&hunter2", "hunter2=1", "options[=1", "a?b"] {
            let flaw = flaw(&format!("x://u:p@h/d?{options}"), &KNOWN).expect(options);
            assert!(flaw.ends_with("known ones: ssl-mode, password, options"), "{flaw}");
        }
        for options in
            ["", "ssl-mode=x", "password=a@b&ssl-mode=x", "options[a]=b", "options%5Ba%5D=b"]
        {
            assert_eq!(flaw(&format!("x://u:p@h/d?{options}"), &KNOWN), None, "{options}");
        }
    }

    #[test]
    fn a_database_is_shown_as_in_a_url() {
        let shown = Shown { user: "u", socket: None, host: "h", port: 1, database: Some("d") };
        assert_eq!(shown.to_string(), "u@h:1/d");
        assert_eq!(Shown { host: "::1", database: None, ..shown }.to_string(), "u@[::1]:1");
        let socket = Some(Path::new("/run/s"));
        let shown = Shown { user: "u", socket, host: "h", port: 1, database: Some("d") };
        assert_eq!(shown.to_string(), "u@/run/s/d");
    }
}

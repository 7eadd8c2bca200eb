//! The URL of a database on a server.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::{OpenError, StoreUrl};

/// The driver's options for a URL.
pub(crate) fn options_of<O: FromStr<Err = sqlx::Error>>(url: &StoreUrl) -> Result<O, OpenError> {
    if url.path().contains('/') {
        return Err(url.malformed("the name of a database contains no `/`"));
    }
    url.expose().parse().map_err(|error| match error {
        sqlx::Error::Configuration(source) => {
            url.malformed(format!("the URL is not valid: {source}"))
        }
        // None is known, so none is known to be without secrets.
        _ => url.malformed("the URL is not valid"),
    })
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

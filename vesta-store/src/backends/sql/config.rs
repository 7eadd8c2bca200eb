//! URL of a database on a server.

use std::path::Path;
use std::str::FromStr;

use crate::{OpenError, StoreUrl};

/// The driver's options for a URL.
pub(crate) fn options_of<O: FromStr<Err = sqlx::Error>>(url: &StoreUrl) -> Result<O, OpenError> {
    if url.path.contains('/') {
        return Err(url.malformed("the name of a database must not contain `/`"));
    }
    url.expose().parse().map_err(|error| match error {
        sqlx::Error::Configuration(source) => {
            url.malformed(format!("the URL is not valid: {source}"))
        }
        // No option is known, so none is known to be free of secrets.
        _ => url.malformed("the URL is not valid"),
    })
}

/// Display form of a database: `NAME user@host:port/database`.
pub(crate) fn described(
    name: &str,
    user: &str,
    socket: Option<&Path>,
    host: &str,
    port: u16,
    database: Option<&str>,
) -> String {
    let place = match socket {
        Some(path) => path.display().to_string(),
        None if host.contains(':') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    };
    let database = database
        .map(|database| format!("/{database}"))
        .unwrap_or_default();
    format!("{name} {user}@{place}{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_shown_as_in_a_url() {
        assert_eq!(
            described("SQL", "u", None, "h", 1, Some("d")),
            "SQL u@h:1/d"
        );
        assert_eq!(described("SQL", "u", None, "::1", 1, None), "SQL u@[::1]:1");
        let socket = Some(Path::new("/run/s"));
        assert_eq!(
            described("SQL", "u", socket, "h", 1, Some("d")),
            "SQL u@/run/s/d"
        );
    }
}

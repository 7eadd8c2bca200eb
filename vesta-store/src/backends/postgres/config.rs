//! URL of a PostgreSQL database.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use crate::backends::sql::{Dialect as _, described, options_of};
use crate::{OpenError, StoreUrl};

/// A database, such as `postgres://user:password@host:5432/database`; the options are `sslmode`,
/// `sslrootcert`, `sslcert`, `sslkey`, `host`, `hostaddr`, `port`, `dbname`, `user`,
/// `application_name`, `options` and `statement-cache-capacity`. Omitted parts come from the
/// environment and the password file, as in libpq.
pub(crate) struct Config {
    pub(super) options: PgConnectOptions,
    pub(super) shown: String,
    /// Timeout of lock waits.
    pub(super) limit: Duration,
}

impl TryFrom<(&StoreUrl, Duration)> for Config {
    type Error = OpenError;

    fn try_from((url, limit): (&StoreUrl, Duration)) -> Result<Self, OpenError> {
        let options: PgConnectOptions = options_of(url)?;
        let host = options.get_host().trim_matches(['[', ']']).to_owned();
        // A pooler refuses unknown start-up parameters.
        let options = options
            .host(&host)
            .disable_statement_logging()
            .extra_float_digits(None);
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("vesta"),
        };
        let shown = described(
            Self::NAME,
            options.get_username(),
            options.get_socket().map(|path| path.as_path()),
            options.get_host(),
            options.get_port(),
            options.get_database(),
        );
        Ok(Self {
            shown,
            options,
            limit,
        })
    }
}

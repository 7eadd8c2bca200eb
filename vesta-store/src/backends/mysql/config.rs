//! URL of a MySQL or MariaDB database.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::mysql::MySqlConnectOptions;

use super::replication::Looks;
use crate::backends::sql::{Dialect as _, described, options_of};
use crate::{OpenError, StoreUrl};

/// A database, such as `mysql://user:password@host:3306/database`; the options are `ssl-mode`,
/// `ssl-ca`, `ssl-cert`, `ssl-key`, `socket`, `charset`, `collation`, `timezone` and
/// `statement-cache-capacity`.
pub(crate) struct Config {
    pub(super) options: MySqlConnectOptions,
    pub(super) shown: String,
    /// Timeout of lock waits.
    pub(super) limit: Duration,
    pub(super) looks: Looks,
}

impl TryFrom<(&StoreUrl, Duration)> for Config {
    type Error = OpenError;

    fn try_from((url, limit): (&StoreUrl, Duration)) -> Result<Self, OpenError> {
        let options: MySqlConnectOptions = options_of(url)?;
        let host = options.get_host().trim_matches(['[', ']']).to_owned();
        let options = options.host(&host).disable_statement_logging();
        if options.get_database().is_none() {
            return Err(url.malformed("the URL names no database"));
        }
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
            looks: Looks::default(),
        })
    }
}

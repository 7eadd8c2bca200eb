//! Protection of the listeners: TLS and tokens.

use crate::auth::Auth;
use crate::tls::{Protocol, Tls};
use crate::{Config, ConfigError, Role};

/// Protection of the listeners. By default there is none.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// TLS of the public listener.
    pub tls: Option<Tls>,
    /// TLS of the admin listener.
    pub admin_tls: Option<Tls>,
    /// The tokens of callers, for both listeners; `None` if they need none.
    pub auth: Option<Auth>,
}

impl Security {
    /// Loads the protection that the settings configure. Reads the files of TLS.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] with one sentence that names the file and what is wrong with it.
    pub fn of(config: &Config) -> Result<Self, ConfigError> {
        let protocol = match config.role {
            Role::Server => Protocol::Http2,
            Role::Rest => Protocol::Http1,
        };
        let load = |files: &Option<_>, protocol| {
            files.as_ref().map(|files| Tls::load(files, protocol)).transpose()
        };
        Ok(Self {
            tls: load(&config.tls, protocol)?,
            admin_tls: load(&config.admin_tls, Protocol::Http1)?,
            auth: config.auth.clone(),
        })
    }

    /// Each listener with TLS, by its name.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = (&'static str, &Tls)> {
        [("public", &self.tls), ("admin", &self.admin_tls)]
            .into_iter()
            .filter_map(|(name, tls)| Some((name, tls.as_ref()?)))
    }
}

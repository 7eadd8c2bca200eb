//! The files of TLS. They are read when a listener starts, not here.

use std::path::PathBuf;

use super::check::chosen;
use crate::ConfigError;
use crate::raw::Raw;

/// The PEM files of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The table of the settings: `tls` or `admin.tls`.
    pub setting: &'static str,
    /// The server's certificate, and the chain up to its authority.
    pub cert: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// Authorities of the certificates that clients need; `None` if they need none.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// The files of a server that asks clients for no certificate.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { setting: "tls", cert: cert.into(), key: key.into(), client_ca: None }
    }

    /// Lets in only clients whose certificate comes from an authority in this file.
    #[must_use]
    pub fn client_ca(self, client_ca: impl Into<PathBuf>) -> Self {
        Self { client_ca: Some(client_ca.into()), ..self }
    }
}

/// The settings of a table: its name, and those of its keys.
type Names = (&'static str, [&'static str; 3]);

const PUBLIC: Names = ("tls", ["tls.cert", "tls.key", "tls.client_ca"]);
const ADMIN: Names = ("admin.tls", ["admin.tls.cert", "admin.tls.key", "admin.tls.client_ca"]);

pub(super) fn public(raw: &Raw) -> Result<Option<TlsFiles>, ConfigError> {
    files(raw, PUBLIC)
}

pub(super) fn admin(raw: &Raw, listens: bool) -> Result<Option<TlsFiles>, ConfigError> {
    let files = files(raw, ADMIN)?;
    if files.is_some() && !listens {
        return Err(ConfigError::refused(
            "admin.tls is for the admin listener, which is off; remove admin.tls, or set \
             admin.listen",
        ));
    }
    Ok(files)
}

fn files(raw: &Raw, (setting, names): Names) -> Result<Option<TlsFiles>, ConfigError> {
    // A URL belongs elsewhere, and its password would show wherever the file does.
    let is_url = |name: &&'static str| chosen(raw, name).is_some_and(|path| path.contains("://"));
    if let Some(name) = names.into_iter().find(is_url) {
        return Err(raw.refuse(name, "must be the path of a PEM file"));
    }
    let path = |name| chosen(raw, name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let [cert, key, client_ca] = names.map(path);
    match (cert, key, client_ca) {
        (Some(cert), Some(key), client_ca) => Ok(Some(TlsFiles { setting, cert, key, client_ca })),
        (None, None, None) => Ok(None),
        (cert, key, _) => {
            let [name_of_cert, name_of_key, name_of_ca] = names;
            let missing = match (cert, key) {
                (None, None) => format!("{name_of_ca} needs {name_of_cert} and {name_of_key}"),
                (None, _) => format!("{name_of_key} needs {name_of_cert}"),
                (_, _) => format!("{name_of_cert} needs {name_of_key}"),
            };
            Err(ConfigError::refused(format!("{missing} too; name the PEM files of the server")))
        }
    }
}

//! TLS, as it was asked for. Nothing is read or checked before `build`.

#[cfg(not(feature = "tls"))]
#[path = "tls/off.rs"]
mod connector;
#[cfg(feature = "tls")]
#[path = "tls/on.rs"]
mod connector;

use std::fmt;

use tonic::transport::Endpoint;
use vesta_intf::IdError;

/// How servers are checked, and what is shown to them. Text is PEM.
#[derive(Default)]
pub(crate) struct Tls {
    /// The authorities that servers may have their certificates from; `None`: those of the system.
    pub(crate) authorities: Option<Vec<u8>>,
    pub(crate) identity: Option<Identity>,
    /// The name that certificates must have; `None`: that of the address.
    pub(crate) server_name: Option<String>,
}

/// The client's own certificate.
pub(crate) struct Identity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl Tls {
    /// The first option that was set, by its name.
    pub(crate) fn option(&self) -> Option<&'static str> {
        [
            ("ca_certificate", self.authorities.is_some()),
            ("client_certificate", self.identity.is_some()),
            ("server_name", self.server_name.is_some()),
        ]
        .into_iter()
        .find_map(|(name, set)| set.then_some(name))
    }

    /// Encrypts the connections to an endpoint.
    pub(crate) fn over(&self, endpoint: Endpoint) -> Result<Endpoint, IdError> {
        connector::encrypt(self, endpoint)
    }
}

// By hand: the private key must not be in it.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca_certificate", &self.authorities.is_some())
            .field("client_certificate", &self.identity.as_ref().map(|_| "[redacted]"))
            .field("server_name", &self.server_name)
            .finish()
    }
}

//! TLS options. Nothing is read or checked before `build`.

#[cfg(not(feature = "tls"))]
#[path = "tls/off.rs"]
mod connector;
#[cfg(feature = "tls")]
#[path = "tls/on.rs"]
mod connector;

use std::fmt;

use tonic::transport::Endpoint;
use vesta_intf::IdError;

/// TLS options: trusted authorities, client certificate, expected server name. Text is PEM.
#[derive(Default)]
pub(crate) struct Tls {
    /// Trusted authorities; `None`: those of the system.
    pub(crate) authorities: Option<Vec<u8>>,
    pub(crate) identity: Option<Identity>,
    /// Expected name in server certificates; `None`: the host of the address.
    pub(crate) server_name: Option<String>,
}

/// The client's own certificate.
pub(crate) struct Identity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl Tls {
    /// Name of the first option that is set.
    pub(crate) fn option(&self) -> Option<&'static str> {
        [
            ("ca_certificate", self.authorities.is_some()),
            ("client_certificate", self.identity.is_some()),
            ("server_name", self.server_name.is_some()),
        ]
        .into_iter()
        .find_map(|(name, set)| set.then_some(name))
    }

    /// Enables TLS on an endpoint.
    pub(crate) fn over(&self, endpoint: Endpoint) -> Result<Endpoint, IdError> {
        connector::encrypt(self, endpoint)
    }
}

// Manual: omits the private key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca_certificate", &self.authorities.is_some())
            .field("client_certificate", &self.identity.as_ref().map(|_| "[redacted]"))
            .field("server_name", &self.server_name)
            .finish()
    }
}

//! TLS options. Nothing is read or checked before `build`.

#[cfg(not(feature = "tls"))]
#[path = "tls/off.rs"]
mod connector;
#[cfg(feature = "tls")]
#[path = "tls/on.rs"]
mod connector;

use tonic::transport::Endpoint;
use vesta_intf::IdError;

use crate::secret::Secret;

/// TLS options: trusted authorities, client certificate, expected server name. Text is PEM.
#[derive(Debug, Default)]
pub(crate) struct Tls {
    /// Trusted authorities; `None`: those of the system.
    pub(crate) ca_certificate: Option<Secret<Vec<u8>>>,
    /// The client's own certificate, and its private key.
    pub(crate) client_certificate: Option<Secret<[Vec<u8>; 2]>>,
    /// Expected name in server certificates; `None`: the host of the address.
    pub(crate) server_name: Option<String>,
}

impl Tls {
    /// Name of the first option that is set.
    pub(crate) fn option(&self) -> Option<&'static str> {
        [
            ("ca_certificate", self.ca_certificate.is_some()),
            ("client_certificate", self.client_certificate.is_some()),
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

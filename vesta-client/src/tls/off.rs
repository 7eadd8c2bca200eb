//! Stub for TLS disabled by its feature.

use tonic::transport::Endpoint;
use vesta_intf::IdError;

use super::Tls;

pub(super) fn encrypt(tls: &Tls, _: Endpoint) -> Result<Endpoint, IdError> {
    let Tls {
        ca_certificate: _,
        client_certificate: _,
        server_name: _,
    } = tls;
    Err(IdError::invalid(
        "endpoint",
        "https needs TLS, which is disabled in this build; enable the feature `tls` of vesta-client",
    ))
}

//! Stub for TLS disabled by its feature.

use tonic::transport::Endpoint;
use vesta_intf::IdError;

use super::Tls;

pub(super) fn encrypt(tls: &Tls, _: Endpoint) -> Result<Endpoint, IdError> {
    let Tls { authorities: _, identity, server_name: _ } = tls;
    let _ = identity.as_ref().map(|own| (&own.certificate, &own.key));
    Err(IdError::invalid(
        "endpoint",
        "https needs TLS, which is disabled in this build; enable the feature `tls` of vesta-client",
    ))
}

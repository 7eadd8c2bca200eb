//! TLS by rustls with ring. Errors name the option; none quotes its value.

use std::error::Error as _;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use vesta_intf::IdError;

use super::Tls;
use crate::secret::Secret;

pub(super) fn encrypt(tls: &Tls, endpoint: Endpoint) -> Result<Endpoint, IdError> {
    let mut config = ClientTlsConfig::new();
    config = match &tls.ca_certificate {
        Some(Secret(pem)) => {
            check_certificates("ca_certificate", pem)?;
            config.ca_certificate(Certificate::from_pem(pem))
        }
        None => config.with_native_roots(),
    };
    if let Some(Secret([certificate, key])) = &tls.client_certificate {
        check_certificates("client_certificate", certificate)?;
        check_key("client_certificate", key)?;
        config = config.identity(Identity::from_pem(certificate, key));
    }
    if let Some(name) = &tls.server_name {
        ServerName::try_from(name.as_str()).map_err(|_| {
            IdError::invalid(
                "server_name",
                format!("{name:?} is neither a DNS name nor an IP address"),
            )
        })?;
        config = config.domain_name(name);
    }
    endpoint.tls_config(config).map_err(|error| {
        let why = error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string);
        // The remaining causes after the checks above.
        let (option, what) = match &tls.client_certificate {
            Some(_) if tls.ca_certificate.is_some() => {
                ("client_certificate", "certificate and key do not match")
            }
            _ => (
                "ca_certificate",
                "the authorities of this system cannot be used; give one",
            ),
        };
        IdError::invalid(option, format!("{what} ({why})"))
    })
}

fn check_certificates(option: &'static str, pem: &[u8]) -> Result<(), IdError> {
    let sound = CertificateDer::pem_slice_iter(pem).try_fold(0, |n, it| it.map(|_| n + 1));
    let reason = match sound {
        Ok(1..) => return Ok(()),
        Ok(_) => {
            "it contains no certificate; it must be PEM, with the line -----BEGIN CERTIFICATE-----"
        }
        Err(_) => "it contains a damaged certificate",
    };
    Err(IdError::invalid(option, reason))
}

fn check_key(option: &'static str, pem: &[u8]) -> Result<(), IdError> {
    let encrypted = b"ENCRYPTED".as_slice();
    if pem.windows(encrypted.len()).any(|part| part == encrypted) {
        return Err(IdError::invalid(
            option,
            "the private key is encrypted; give it without a password",
        ));
    }
    PrivateKeyDer::from_pem_slice(pem).map(drop).map_err(|_| {
        IdError::invalid(
            option,
            "it contains no private key; it must be PEM, with the line -----BEGIN PRIVATE KEY-----",
        )
    })
}

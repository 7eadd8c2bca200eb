//! PEM files of a listener, with one sentence for each validation error. No sentence quotes from a
//! file.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ring::digest::{Context, SHA256};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig};
use vesta_intf::UnixMillis;

use crate::TlsFiles;

/// Contents of the files at one moment.
pub(super) struct Pems {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Digest of the contents, so that a change is noticed without keeping them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(read: &Result<Pems, String>) -> Self {
        let mut context = Context::new(&SHA256);
        let parts = match read {
            Ok(Pems { cert, key, client_ca }) => {
                [cert.as_slice(), key, client_ca.as_deref().unwrap_or_default()]
            }
            Err(flaw) => [flaw.as_bytes(), &[], &[]],
        };
        for part in parts {
            context.update(&part.len().to_le_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        Self(digest)
    }
}

/// Validity period of a certificate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    /// Given if it cannot be used yet.
    pub(super) from: Option<UnixMillis>,
    pub(super) until: UnixMillis,
}

impl Pems {
    pub(super) fn read(files: &TlsFiles) -> Result<Self, String> {
        let read = |setting: &str, path: &Path| {
            fs::read(path).map_err(|error| {
                format!("{}.{setting}: cannot read {}: {error}", files.setting, path.display())
            })
        };
        Ok(Self {
            cert: read("cert", &files.cert)?,
            key: read("key", &files.key)?,
            client_ca: match &files.client_ca {
                Some(path) => Some(read("client_ca", path)?),
                None => None,
            },
        })
    }

    pub(super) fn server_config(&self, files: &TlsFiles) -> Result<ServerConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(&self.cert, files, "cert", &files.cert)?;
        let key = self.key(files)?;
        let key = provider.key_provider.load_private_key(key).map_err(|_| {
            format!(
                "{}.key: the private key in {} is of a kind that is not supported; use ECDSA \
                 (P-256, P-384), Ed25519 or RSA of at least 2048 bits",
                files.setting,
                files.key.display()
            )
        })?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                "{0}.key: the private key in {1} does not belong to the certificate in {2}, whose \
                 first certificate must be the server's own",
                files.setting,
                files.key.display(),
                files.cert.display()
            ),
            _ => unreadable(files, "cert", &files.cert),
        })?;

        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("{}: {error}", files.setting))?;
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(pem), Some(path)) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(pem, files, "client_ca", path)? {
                    roots.add(authority).map_err(|_| unreadable(files, "client_ca", path))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .build()
                    .map_err(|error| format!("{}.client_ca: {error}", files.setting))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified))))
    }

    fn key(&self, files: &TlsFiles) -> Result<PrivateKeyDer<'static>, String> {
        if let Ok(key) = PrivateKeyDer::from_pem_slice(&self.key)
            && !is_encrypted(&self.key)
        {
            return Ok(key);
        }
        let (setting, file) = (files.setting, files.key.display());
        Err(if is_encrypted(&self.key) {
            format!(
                "{setting}.key: the private key in {file} is encrypted, and nobody is there to type \
                 its password; write it without one (openssl pkey -in … -out …) into a file that \
                 only this program may read"
            )
        } else {
            format!(
                "{setting}.key: there is no private key in {file}; it must hold one as PEM, with \
                 the line -----BEGIN PRIVATE KEY-----"
            )
        })
    }

    /// Validity period of the server's own certificate.
    pub(super) fn validity(&self, files: &TlsFiles, now: UnixMillis) -> Result<Validity, String> {
        let chain = certificates(&self.cert, files, "cert", &files.cert)?;
        let parsed = chain.first().and_then(|own| ParsedCertificate::try_from(own).ok());
        let own = parsed.ok_or_else(|| unreadable(files, "cert", &files.cert))?;
        // The check of a chain begins with the dates; nothing is trusted, so that it never succeeds.
        let at = |time: Duration| {
            let time = UnixTime::since_unix_epoch(time);
            let nothing = RootCertStore::empty();
            match verify_server_cert_signed_by_trust_anchor(&own, &nothing, &[], time, &[]) {
                Err(Error::InvalidCertificate(flaw)) => Some(flaw),
                _ => None,
            }
        };
        let millis = |time: UnixTime| UnixMillis(time.as_secs().saturating_mul(1000));
        let from = match at(Duration::from_millis(now.0)) {
            Some(CertificateError::NotValidYetContext { not_before, .. }) => {
                Some(millis(not_before))
            }
            _ => None,
        };
        match at(Duration::from_secs(u64::MAX)) {
            Some(CertificateError::ExpiredContext { not_after, .. }) => {
                Ok(Validity { from, until: millis(not_after) })
            }
            _ => Err(unreadable(files, "cert", &files.cert)),
        }
    }
}

fn certificates(
    pem: &[u8],
    files: &TlsFiles,
    name: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|_| unreadable(files, name, path))?;
    if all.is_empty() {
        return Err(format!(
            "{}.{name}: there is no certificate in {}; it must hold PEM, with the line \
             -----BEGIN CERTIFICATE-----",
            files.setting,
            path.display()
        ));
    }
    Ok(all)
}

fn unreadable(files: &TlsFiles, name: &str, path: &Path) -> String {
    format!(
        "{}.{name}: a certificate in {} is damaged or not of X.509; write the file anew",
        files.setting,
        path.display()
    )
}

/// PKCS#8 says it in its first line, the older forms in a header.
fn is_encrypted(pem: &[u8]) -> bool {
    let has = |text: &[u8]| pem.windows(text.len()).any(|part| part == text);
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
}

//! PEM files of a listener, with a one-sentence validation error for each fault. No sentence quotes
//! file contents.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use vesta_intf::UnixMillis;

/// PEM files of one listener, read when the listener starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Table of settings: `tls` or `admin.tls`.
    pub setting: &'static str,
    /// The server's certificate and its chain.
    pub cert: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// CAs of the client certificates; `None` if clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// The files of a server that needs no client certificates.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            setting: "tls",
            cert: cert.into(),
            key: key.into(),
            client_ca: None,
        }
    }

    /// Requires client certificates issued by a CA in this file.
    #[must_use]
    pub fn client_ca(self, client_ca: impl Into<PathBuf>) -> Self {
        Self {
            client_ca: Some(client_ca.into()),
            ..self
        }
    }
}

/// Contents of the files at one moment.
#[derive(PartialEq)]
pub(super) struct Pems {
    cert: Pem,
    key: Pem,
    client_ca: Option<Pem>,
}

#[derive(PartialEq)]
struct Pem {
    /// Name of the setting, such as `tls.cert`.
    setting: String,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Pem {
    fn read(files: &TlsFiles, name: &str, path: &Path) -> Result<Self, String> {
        let setting = format!("{}.{name}", files.setting);
        match fs::read(path) {
            Ok(bytes) => Ok(Self {
                setting,
                path: path.to_owned(),
                bytes,
            }),
            Err(error) => Err(format!(
                "{setting}: cannot read {}: {error}",
                path.display()
            )),
        }
    }

    fn flaw(&self, what: &str, is: &str) -> String {
        format!("{}: {what} in {}{is}", self.setting, self.path.display())
    }

    fn unreadable(&self) -> String {
        self.flaw(
            "a certificate",
            " is damaged or not an X.509 certificate; replace the file",
        )
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match all {
            Ok(all) if all.is_empty() => Err(self.flaw(
                "no certificate",
                "; expected PEM with the line -----BEGIN CERTIFICATE-----",
            )),
            all => all.map_err(|_| self.unreadable()),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, String> {
        // PKCS#8 declares encryption in its first line, older formats in a header.
        let has = |text: &[u8]| self.bytes.windows(text.len()).any(|part| part == text);
        if has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED") {
            return Err(self.flaw(
                "the private key",
                " is encrypted, and its password cannot be entered here; decrypt it \
                 (openssl pkey -in … -out …) into a file that only this program may read",
            ));
        }
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|_| {
            self.flaw(
                "no private key",
                "; expected PEM with the line -----BEGIN PRIVATE KEY-----",
            )
        })
    }
}

impl Pems {
    pub(super) fn read(files: &TlsFiles) -> Result<Self, String> {
        let client_ca = files.client_ca.as_ref();
        Ok(Self {
            cert: Pem::read(files, "cert", &files.cert)?,
            key: Pem::read(files, "key", &files.key)?,
            client_ca: client_ca
                .map(|path| Pem::read(files, "client_ca", path))
                .transpose()?,
        })
    }

    pub(super) fn server_config(&self) -> Result<ServerConfig, String> {
        let Self {
            cert,
            key,
            client_ca,
        } = self;
        let (chain, private) = (cert.certificates()?, key.key()?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("{}: {error}", cert.setting))?;
        let builder = match client_ca {
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for authority in pem.certificates()? {
                    roots.add(authority).map_err(|_| pem.unreadable())?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .build()
                    .map_err(|error| format!("{}: {error}", pem.setting))?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        builder.with_single_cert(chain, private).map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                let cert = cert.path.display();
                let is = format!(
                    " does not belong to the certificate in {cert}, whose first certificate must be \
                     the server's own"
                );
                key.flaw("the private key", &is)
            }
            Error::InvalidCertificate(_) => cert.unreadable(),
            _ => key.flaw(
                "the private key",
                " has an unsupported type; use ECDSA (P-256, P-384), Ed25519 or RSA of at \
                 least 2048 bits",
            ),
        })
    }

    /// Validity period of the server's own certificate.
    pub(super) fn validity(&self) -> Result<RangeInclusive<UnixMillis>, String> {
        let chain = self.cert.certificates()?;
        let parsed = chain
            .first()
            .and_then(|own| ParsedCertificate::try_from(own).ok());
        let own = parsed.ok_or_else(|| self.cert.unreadable())?;
        // Chain verification begins with the dates. With no trust anchor it never succeeds.
        let at = |time: Duration| {
            let (nothing, time) = (RootCertStore::empty(), UnixTime::since_unix_epoch(time));
            match verify_server_cert_signed_by_trust_anchor(&own, &nothing, &[], time, &[]) {
                Err(Error::InvalidCertificate(flaw)) => Some(flaw),
                _ => None,
            }
        };
        let millis = |time: UnixTime| UnixMillis(time.as_secs().saturating_mul(1000));
        let from = match at(Duration::ZERO) {
            Some(CertificateError::NotValidYetContext { not_before, .. }) => millis(not_before),
            _ => UnixMillis(0),
        };
        match at(Duration::from_secs(u64::MAX)) {
            Some(CertificateError::ExpiredContext { not_after, .. }) => {
                Ok(from..=millis(not_after))
            }
            _ => Err(self.cert.unreadable()),
        }
    }
}

//! Certificates that are made for one test. The servers' tests use this file too.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use vesta_boot::TlsFiles;

/// Somebody who signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// For a server on this host.
    pub(crate) fn server(&self) -> Own {
        self.server_named(&["127.0.0.1", "localhost"])
    }

    pub(crate) fn server_named(&self, names: &[&str]) -> Own {
        self.issue(names, ExtendedKeyUsagePurpose::ServerAuth, 4096)
    }

    /// One that cannot be used any more.
    pub(crate) fn expired(&self) -> Own {
        self.issue(&["127.0.0.1"], ExtendedKeyUsagePurpose::ServerAuth, 2020)
    }

    pub(crate) fn client(&self) -> Own {
        self.issue(&[], ExtendedKeyUsagePurpose::ClientAuth, 4096)
    }

    /// Valid until the first day of a year.
    pub(crate) fn issue(&self, names: &[&str], usage: ExtendedKeyUsagePurpose, until: i32) -> Own {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("right names");
        params.extended_key_usages = vec![usage];
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.0).expect("a certificate").pem();
        Own { cert, key: key.serialize_pem() }
    }
}

impl Own {
    /// Puts both into files of a folder, in place of those that were there.
    pub(crate) fn write(&self, folder: &Path) -> TlsFiles {
        let files = TlsFiles::new(folder.join("cert.pem"), folder.join("key.pem"));
        fs::write(&files.cert, &self.cert).expect("a file");
        fs::write(&files.key, &self.key).expect("a file");
        files
    }
}

/// Has servers ask clients for a certificate of this authority.
pub(crate) fn asking(files: TlsFiles, authority: &Authority, folder: &Path) -> TlsFiles {
    let path = folder.join("clients.pem");
    fs::write(&path, authority.pem()).expect("a file");
    files.client_ca(path)
}

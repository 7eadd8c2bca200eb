//! Certificates made for one test.

use std::fs;
use std::io::{ErrorKind, Read, Result};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use rcgen::ExtendedKeyUsagePurpose as Usage;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A connection with TLS.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A certificate authority.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// An authority with this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Its own certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes its own certificate into a file; returns the path.
    pub fn write(&self, path: PathBuf) -> PathBuf {
        fs::write(&path, self.pem()).expect("a file");
        path
    }

    /// Its own certificate and key, as a server shows them by mistake.
    #[must_use]
    pub fn itself(&self) -> Issued {
        Issued {
            cert: self.pem(),
            key: self.0.key().serialize_pem(),
        }
    }

    /// Opens a TLS connection to the server at this address, without any HTTP.
    ///
    /// # Errors
    /// If the server closes it during the handshake.
    ///
    /// # Panics
    /// If the server is unreachable.
    pub fn connect(&self, address: SocketAddr) -> Result<TlsStream> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.pem().as_bytes()).expect("PEM");
        roots.add(own).expect("an authority");
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_root_certificates(roots);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let mut stream = StreamOwned::new(session, socket(address));
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    /// A certificate for a server on this host.
    #[must_use]
    pub fn server(&self) -> Issued {
        self.server_named(&["127.0.0.1", "localhost"])
    }

    /// A certificate for a server with these names.
    #[must_use]
    pub fn server_named(&self, names: &[&str]) -> Issued {
        self.issue(names, Usage::ServerAuth, 4096)
    }

    /// An expired certificate for a server on this host.
    #[must_use]
    pub fn expired(&self) -> Issued {
        self.issue(&["127.0.0.1"], Usage::ServerAuth, 2020)
    }

    /// A certificate for a client.
    #[must_use]
    pub fn client(&self) -> Issued {
        self.issue(&[], Usage::ClientAuth, 4096)
    }

    /// A certificate valid until the first day of a year.
    #[must_use]
    pub fn issue(&self, names: &[&str], usage: Usage, until: i32) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("right names");
        params.extended_key_usages = vec![usage];
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let cert = params
            .signed_by(&key, &self.0)
            .expect("a certificate")
            .pem();
        Issued {
            cert,
            key: key.serialize_pem(),
        }
    }
}

impl Issued {
    /// Writes certificate and key into files of a folder, replacing existing ones, and passes their
    /// paths on: `issued.write(folder, TlsFiles::new)`.
    pub fn write<F>(&self, folder: &Path, files: impl FnOnce(PathBuf, PathBuf) -> F) -> F {
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        fs::write(&cert, &self.cert).expect("a file");
        fs::write(&key, &self.key).expect("a file");
        files(cert, key)
    }
}

/// A connection that fails a test instead of hanging.
///
/// # Panics
/// If the server is unreachable.
#[must_use]
pub fn socket(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("a connection");
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a time-out");
    socket
        .set_write_timeout(Some(Duration::from_secs(60)))
        .expect("a time-out");
    socket
}

/// Waits until the connection ends; returns everything received before.
///
/// # Panics
/// If it stays open.
pub fn until_closed(mut stream: impl Read) -> String {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
            ) => {}
        Err(error) => panic!("still open: {error}"),
    }
    String::from_utf8_lossy(&said).into_owned()
}

//! TLS of a listener: the current certificate, and its reload without a restart.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::FallibleAccept;
use vesta_intf::UnixMillis;

use super::address::Accepted;
use super::pem::{Pems, TlsFiles};
use crate::error::Error;

/// Interval of file reads.
const RELOAD_EVERY: Duration = Duration::from_secs(10);

/// Maximum remaining validity at which a loaded certificate is logged.
const SOON: Duration = Duration::from_secs(7 * 86_400);

/// Installs ring as the default cryptography provider of this process.
pub fn install_provider() {
    // An error means that a default exists already; listeners select ring explicitly.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Protocol that a listener offers via ALPN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/2, as needed by gRPC.
    Http2,
    /// HTTP/1.1.
    Http1,
}

/// TLS of one listener, with files that may be replaced while it runs. Clones share all state.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    files: TlsFiles,
    protocol: Protocol,
    current: RwLock<Current>,
    handshakes_failed: AtomicU64,
}

/// The current certificate.
struct Current {
    /// Configuration of new connections.
    config: Arc<ServerConfig>,
    validity: RangeInclusive<UnixMillis>,
    /// Result of the last read of the files, good or bad.
    seen: Result<Pems, String>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`Error`] with one sentence that names the file and the fault.
    pub fn load(files: &TlsFiles, protocol: Protocol) -> Result<Self, Error> {
        let seen = Pems::read(files);
        let (config, validity) = usable(&seen, protocol)?;
        Ok(Self(Arc::new(Shared {
            files: files.clone(),
            protocol,
            current: RwLock::new(Current {
                config,
                validity,
                seen,
            }),
            handshakes_failed: AtomicU64::new(0),
        })))
    }

    /// Reads the files again; if they changed, new connections use them. Returns whether they do.
    ///
    /// # Errors
    /// Validation error of the new files, once per change; the certificate is kept.
    pub fn reload(&self) -> Result<bool, Error> {
        let Shared {
            files,
            protocol,
            current,
            ..
        } = &*self.0;
        let read = Pems::read(files);
        if self.current().seen == read {
            return Ok(false);
        }
        let new = usable(&read, *protocol);
        let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
        current.seen = read;
        (current.config, current.validity) = new?;
        Ok(true)
    }

    /// End of the certificate's validity, to the second.
    pub fn valid_until(&self) -> UnixMillis {
        *self.current().validity.end()
    }

    /// Returns whether clients need a certificate (mTLS).
    pub fn needs_client_certificates(&self) -> bool {
        self.0.files.client_ca.is_some()
    }

    /// Connections closed before the TLS handshake completed.
    pub fn handshakes_failed(&self) -> u64 {
        self.0.handshakes_failed.load(Relaxed)
    }

    fn current(&self) -> RwLockReadGuard<'_, Current> {
        self.0
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn accept(&self, stream: Accepted) -> FallibleAccept<Accepted> {
        TlsAcceptor::from(Arc::clone(&self.current().config))
            .accept(stream)
            .into_fallible()
    }

    pub(super) fn handshake_failed(&self, error: &io::Error) {
        tracing::debug!(%error, "a client could not set up TLS");
        self.0.handshakes_failed.fetch_add(1, Relaxed); // an independent counter
    }

    /// Logs a certificate that is not valid yet, has expired or expires soon.
    pub fn warn(&self, now: UnixMillis) {
        let (from, until) = self.current().validity.clone().into_inner();
        let (setting, file) = (self.0.files.setting, self.0.files.cert.display());
        if from > now {
            tracing::warn!("{setting}.cert: the certificate in {file} is not valid before {from}");
        } else if until <= now {
            tracing::warn!("{setting}.cert: the certificate in {file} expired on {until}");
        } else if Duration::from_millis(until.0 - now.0) < SOON {
            tracing::warn!("{setting}.cert: the certificate in {file} expires on {until}");
        }
    }

    fn reload_and_log(&self, now: UnixMillis) {
        let setting = self.0.files.setting;
        match self.reload() {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(
                    "{setting}: reloaded, certificate until {}",
                    self.valid_until()
                );
                self.warn(now);
            }
            Err(error) => tracing::warn!("the previous certificate stays in use: {error}"),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.files).finish()
    }
}

/// Validates file contents: the configuration of connections, and the validity period.
fn usable(
    read: &Result<Pems, String>,
    protocol: Protocol,
) -> Result<(Arc<ServerConfig>, RangeInclusive<UnixMillis>), Error> {
    let pems = read.as_ref().map_err(|why| Error(why.clone()))?;
    let mut config = pems.server_config().map_err(Error)?;
    config.alpn_protocols = vec![match protocol {
        Protocol::Http2 => b"h2".to_vec(),
        Protocol::Http1 => b"http/1.1".to_vec(),
    }];
    Ok((Arc::new(config), pems.validity().map_err(Error)?))
}

/// Reloads the files of listeners periodically, for as long as the program runs. `now` reads the wall clock.
pub async fn watch(listeners: Vec<Tls>, now: fn() -> UnixMillis) {
    if listeners.is_empty() {
        return;
    }
    let mut ticks = interval_at(tokio::time::Instant::now() + RELOAD_EVERY, RELOAD_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let listeners = listeners.clone();
        // Reading may block: files may be on a network file system.
        let reload = move || listeners.iter().for_each(|tls| tls.reload_and_log(now()));
        let _ = spawn_blocking(reload).await;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn write(files: &TlsFiles, until: i32) {
        let mut params = CertificateParams::new(["a.test".to_owned()]).expect("a name");
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        fs::write(
            &files.cert,
            params.self_signed(&key).expect("a certificate").pem(),
        )
        .expect("a file");
        fs::write(&files.key, key.serialize_pem()).expect("a file");
    }

    #[tokio::test(start_paused = true)]
    async fn new_files_are_noticed_by_the_watch() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = TlsFiles::new(folder.path().join("c.pem"), folder.path().join("k.pem"));
        write(&files, 2030);
        let tls = Tls::load(&files, Protocol::Http1).expect("sound files");
        let watch = tokio::spawn(watch(vec![tls.clone()], || UnixMillis(0)));
        let before = tls.valid_until();
        tokio::time::sleep(RELOAD_EVERY * 3).await;
        assert_eq!(tls.valid_until(), before);

        write(&files, 2040);
        while tls.valid_until() == before {
            tokio::time::sleep(RELOAD_EVERY).await;
        }
        assert!(!watch.is_finished());
    }
}

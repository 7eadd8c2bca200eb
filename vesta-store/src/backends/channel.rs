//! gRPC channels to the servers of a store, and their TLS.

use std::error::Error;
use std::fs;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};
use vesta_service::lease::StoreError;

use crate::{OpenError, StoreUrl};

/// CAs that must have issued a server's certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Public web CAs.
    Web,
    /// The certificates in this file.
    File(String),
}

impl Roots {
    /// The CAs of a URL; `None` unless it has the scheme of TLS.
    pub(super) fn of(url: &StoreUrl, secure: &str) -> Result<Option<Self>, OpenError> {
        Ok(match (url.has_scheme(secure), url.option("ca")) {
            (false, None) => None,
            (false, Some(_)) => {
                let flaw = format!("the option `ca` is for TLS; begin with {secure}://");
                return Err(url.malformed(flaw));
            }
            (true, None) => Some(Self::Web),
            (true, Some("")) => return Err(url.malformed("the option `ca` names one file")),
            (true, Some(file)) => Some(Self::File(file.into())),
        })
    }

    fn tls(&self) -> Result<ClientTlsConfig, StoreError> {
        let file = match self {
            Self::Web => return Ok(ClientTlsConfig::new().with_webpki_roots()),
            Self::File(file) => file,
        };
        let refuse = |why: &dyn std::fmt::Display| {
            StoreError::permanent(format!("the certificates in {file} cannot be used: {why}"))
        };
        let text = fs::read_to_string(file).map_err(|error| refuse(&error))?;
        // A file without certificates would otherwise only show as a failed connection.
        if !text.contains("-----BEGIN CERTIFICATE-----") {
            return Err(refuse(&"it has no PEM block `CERTIFICATE`"));
        }
        Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(text)))
    }
}

/// Endpoints of servers, each with the server's name and port.
pub(super) fn endpoints(
    servers: &[String],
    roots: Option<&Roots>,
    limit: Duration,
) -> Result<Vec<(String, Endpoint)>, StoreError> {
    let tls = roots.map(Roots::tls).transpose()?;
    let endpoint = |server: &String| {
        let unusable = |error: tonic::transport::Error| {
            let begins = format!("{server} cannot be used");
            StoreError::permanent(whole_story(&begins, Some(&error)))
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{server}"));
        let endpoint = endpoint
            .map_err(unusable)?
            .tcp_nodelay(true)
            .connect_timeout(limit);
        let endpoint = match &tls {
            Some(tls) => endpoint.tls_config(tls.clone()).map_err(unusable)?,
            None => endpoint,
        };
        Ok((server.clone(), endpoint))
    };
    servers.iter().map(endpoint).collect()
}

/// Joins the chain of causes: the actual reason is often nested deeply.
pub(super) fn whole_story(begins: &str, mut source: Option<&dyn Error>) -> String {
    let mut story = begins.to_owned();
    while let Some(error) = source {
        let what = error.to_string();
        if what != "transport error" && !story.contains(&what) {
            story = format!("{story}: {what}");
        }
        source = error.source();
    }
    story
}

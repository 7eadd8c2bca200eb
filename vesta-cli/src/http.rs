//! Requests to REST and admin listeners.

use std::fmt::Display;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use vesta_boot::Error;
use vesta_intf::grpc::transport_hint;
use vesta_net::Address;

use crate::cli::Access;
use crate::values::ServerUrl;

/// A server, over connections that stay open.
#[derive(Debug)]
pub(crate) struct Http {
    agent: Agent,
    base: ServerUrl,
    authorization: Option<String>,
}

/// Maximum wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Access {
    /// The authority of the server's certificate.
    pub(crate) fn ca_pem(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some(path) = &self.ca else {
            return Ok(None);
        };
        let failed = |error| Error::setting(format!("cannot read {}: {error}", path.display()));
        std::fs::read(path).map(Some).map_err(failed)
    }
}

/// The status and text of a path of a listener on this host. Its certificate is not checked, because it
/// is for the names by which other hosts know it.
pub(crate) fn get_here(at: &Address, tls: bool, path: &str) -> Result<(u16, String), Error> {
    let failed =
        |error: &dyn Display| Error::lasting(false, format!("{at} does not answer ({error})"));
    match at {
        Address::Tcp(at) => {
            let scheme = if tls { "https" } else { "http" };
            let tls = TlsConfig::builder().disable_verification(true).build();
            let response = agent(tls).get(format!("{scheme}://{at}{path}")).call();
            let mut response = response.map_err(|error| failed(&error))?;
            let text = response
                .body_mut()
                .read_to_string()
                .map_err(|error| failed(&error))?;
            Ok((response.status().as_u16(), text))
        }
        Address::Unix(socket) => {
            let ask = || {
                let mut stream = UnixStream::connect(socket)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
                let mut said = String::new();
                stream.read_to_string(&mut said).map(|_| said)
            };
            let said = ask().map_err(|error: io::Error| failed(&error))?;
            let (head, text) = said.split_once("\r\n\r\n").unwrap_or_default();
            let status = head
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok());
            Ok((status.ok_or_else(|| failed(&"no HTTP"))?, text.to_owned()))
        }
    }
}

fn agent(tls: TlsConfig) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None) // as with gRPC: such a server is the user's own
        .timeout_global(Some(TIMEOUT))
        .tls_config(tls)
        .build()
        .new_agent()
}

impl Http {
    pub(crate) fn new(url: &ServerUrl, access: &Access) -> Result<Self, Error> {
        let mut tls = TlsConfig::builder();
        if let Some(pem) = access.ca_pem()? {
            let roots: Vec<Certificate<'static>> = parse_pem(&pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate.to_owned()),
                    _ => None,
                })
                .collect();
            tls = tls.root_certs(RootCerts::Specific(Arc::new(roots)));
        }
        let agent = agent(tls.build());
        let authorization = access.token.as_ref().map(|token| format!("Bearer {token}"));
        Ok(Self {
            agent,
            base: url.clone(),
            authorization,
        })
    }

    /// Host and port.
    pub(crate) fn name(&self) -> &str {
        self.base.host()
    }

    /// The text of a path, whatever the status.
    pub(crate) fn get(&self, path: &str) -> Result<(StatusCode, String), Error> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let failed = |error: ureq::Error| {
            let hint = transport_hint(&error.to_string());
            Error::lasting(
                false,
                format!("{} does not answer ({error}){hint}", self.base),
            )
        };
        let mut response = request.call().map_err(failed)?;
        let text = response.body_mut().read_to_string().map_err(failed)?;
        Ok((response.status(), text))
    }

    /// The JSON of a path.
    pub(crate) fn json(&self, path: &str) -> Result<Value, Error> {
        let (status, text) = self.get(path)?;
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() && !json.is_null() {
            return Ok(json);
        }
        let said = json.get("detail").and_then(Value::as_str);
        let said = said.map_or(status.to_string(), str::to_owned);
        Err(Error::lasting(
            status.is_client_error(),
            format!("{}{path}: {said}", self.base),
        ))
    }

    /// New IDs by REST.
    pub(crate) fn ids(&self, count: usize) -> Result<Vec<u64>, Error> {
        let json = self.json(&format!("/v1/ids?count={count}"))?;
        let numbers = |ids: &Vec<Value>| ids.iter().map(|id| id.as_str()?.parse().ok()).collect();
        let ids: Option<Vec<u64>> = json["ids"].as_array().and_then(numbers);
        let said = || format!("the answer of {} is not a list of IDs", self.base);
        ids.filter(|ids| ids.len() == count)
            .ok_or_else(|| Error::lasting(false, said()))
    }
}

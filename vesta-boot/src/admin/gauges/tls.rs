//! Certificates and handshakes.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::Encoder;
use crate::Security;

#[derive(Debug)]
pub(in crate::admin) struct TlsGauges(pub(in crate::admin) Security);

impl Collector for TlsGauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let listeners: Vec<_> = self.0.listeners().collect();
        if listeners.is_empty() {
            return Ok(());
        }
        let mut encoder = Encoder(encoder);
        encoder.numbers(
            "tls_certificate_expires",
            "When the certificate of a listener expires, in seconds since 1970",
            listeners.iter().map(|(name, tls)| ([("listener", *name)], tls.valid_until().0 / 1000)),
        )?;
        encoder.counters(
            "tls_handshakes_failed",
            "Connections that ended before TLS was set up",
            listeners.iter().map(|(name, tls)| ([("listener", *name)], tls.handshakes_failed())),
        )
    }
}

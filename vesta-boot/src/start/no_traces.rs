//! Stub of `traces` for programs without the feature `otel`: nothing is traced.

use vesta_intf::ErrorKind;

use crate::error::Error;
use crate::settings::Config;

pub(crate) struct Traces;

impl Traces {
    #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(crate) fn start(_: &'static str, _: &Config) -> Result<Self, Error> {
        for name in [
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ] {
            if std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
                tracing::warn!(
                    "{name} is set, but this program was built without the feature otel"
                );
            }
        }
        Ok(Self)
    }

    pub(crate) fn stop(self) {}
}

/// Stub of a request span; not recorded.
#[derive(Debug, Default)]
pub struct Span(());

/// False: without the feature no request is traced.
pub fn may_be_traced<'a>(_: impl Fn(&'static str) -> Option<&'a str>) -> bool {
    false
}

impl Span {
    /// Begins the span of a request.
    pub fn begin<'a>(
        _: impl Fn(&'static str) -> Option<&'a str>,
        _: impl FnOnce() -> (String, Vec<(&'static str, String)>),
    ) -> Self {
        Self(())
    }

    /// Adds the outcome of the request.
    pub fn answered(&mut self, _: &'static str, _: u16, _: Option<ErrorKind>) {}
}

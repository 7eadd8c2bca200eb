//! Request traces for an OpenTelemetry collector. A request is traced if its caller's trace is sampled. Vesta starts
//! no traces itself, so other requests pay only for one look at a header.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{
    Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, Span as SdkSpan};
use ureq::Agent;
use vesta_intf::ErrorKind;

use crate::error::Error;
use crate::settings::Config;

/// Set if traces are exported.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Headers that carry a caller's trace.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// OpenTelemetry variables that name the collector; if neither is set, nothing is traced.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Timeout of a response from the collector, and of sending the last spans at a stop.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Trace export, if enabled.
pub(crate) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Starts the export if a variable names a collector.
    pub(crate) fn start(program: &'static str, config: &Config) -> Result<Self, Error> {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let Some(named) = ENDPOINTS.into_iter().find(|name| set(name)) else {
            return Ok(Self(None));
        };
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        let collector = Collector {
            agent: agent.into(),
            is_away: AtomicBool::new(false),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .build();
        let exporter =
            exporter.map_err(|error| Error::setting(format!("{named} (environment): {error}")))?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)))
            .with_resource(resource(program, config))
            .build();
        let _ = TRACER.set(provider.tracer("vesta"));
        tracing::info!("exporting traces of requests whose caller is traced: {named} is set");
        Ok(Self(Some(provider)))
    }

    /// Sends remaining spans, within a short timeout.
    pub(crate) fn stop(self) {
        // Failures have been logged already.
        let _ = self
            .0
            .map(|provider| provider.shutdown_with_timeout(TIMEOUT));
    }
}

/// Attributes of the process, common to all spans. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`
/// add to them and take precedence.
fn resource(program: &'static str, config: &Config) -> Resource {
    let given = Resource::builder().build();
    let unnamed = |name: &opentelemetry::Value| name.as_str().starts_with("unknown_service");
    let name = given
        .get(&Key::new("service.name"))
        .filter(|name| !unnamed(name));
    let own = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("vesta.namespace", config.ids.namespace.clone()),
    ];
    let own = own.into_iter().filter(|own| given.get(&own.key).is_none());
    Resource::builder()
        .with_service_name(name.map_or_else(|| program.into(), |name| name.to_string()))
        .with_attributes(own.collect::<Vec<_>>())
        .build()
}

/// Sends spans by HTTP on the exporter's own thread.
#[derive(Debug)]
struct Collector {
    agent: Agent,
    is_away: AtomicBool,
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.agent.run(request.map(|body| body.to_vec()));
        let answered = sent.and_then(|response| {
            let (head, mut body) = response.into_parts();
            Ok(Response::from_parts(head, body.read_to_vec()?.into()))
        });
        let failure = match &answered {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        let was_away = self.is_away.swap(failure.is_some(), Relaxed);
        match failure {
            Some(error) if !was_away => {
                tracing::warn!(
                    error,
                    "the collector does not accept spans; they are dropped"
                );
            }
            None if was_away => tracing::info!("the collector accepts spans again"),
            _ => {}
        }
        Ok(answered?)
    }
}

/// Span of a traced request; not recorded for other requests. Ends on drop.
#[derive(Debug, Default)]
pub struct Span(Option<SdkSpan>);

/// True if a request with these headers may be traced. This is the only cost for other requests.
pub fn may_be_traced<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> bool {
    TRACER.get().is_some() && header(TRACEPARENT).is_some()
}

impl Span {
    /// Begins with a request that has these headers; `request` returns its name and the attributes known by then.
    pub fn begin<'a>(
        header: impl Fn(&'static str) -> Option<&'a str>,
        request: impl FnOnce() -> (String, Vec<(&'static str, String)>),
    ) -> Self {
        let Some(tracer) = TRACER.get() else {
            return Self(None);
        };
        let Some(parent) = header(TRACEPARENT) else {
            return Self(None);
        };
        let headers = Headers {
            parent,
            state: header(TRACESTATE),
        };
        let caller = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
        if !caller.span().span_context().is_sampled() {
            return Self(None);
        }
        let (name, attributes) = request();
        let attributes = attributes
            .into_iter()
            .map(|(key, value)| KeyValue::new(key, value));
        let span = tracer
            .span_builder(name)
            .with_kind(SpanKind::Server)
            .with_attributes(attributes);
        Self(Some(span.start_with_context(tracer, &caller)))
    }

    /// Adds the status code of the response, in the attribute of its protocol, and the kind of an error. The span has
    /// failed only if the error is the server's own, not the caller's.
    pub fn answered(&mut self, attribute: &'static str, code: u16, error: Option<ErrorKind>) {
        let Some(span) = &mut self.0 else { return };
        span.set_attribute(KeyValue::new(attribute, i64::from(code)));
        if let Some(kind) = error {
            span.set_attribute(KeyValue::new("error.type", kind.name()));
            if kind.http_status() >= 500 {
                span.set_status(Status::error(kind.name()));
            }
        }
    }
}

struct Headers<'a> {
    parent: &'a str,
    state: Option<&'a str>,
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACEPARENT => Some(self.parent),
            TRACESTATE => self.state,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT, TRACESTATE]
    }
}

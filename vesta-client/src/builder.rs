//! Client configuration. Everything is checked in `build`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint as Transport, Uri};
use vesta_intf::{IdError, IdService};

use crate::blocking;
use crate::client::Client;
use crate::endpoints::{Endpoint, Endpoints, MOST_ENDPOINTS, Order};
use crate::prefetch::Prefetch;
use crate::remote::{Counters, Remote, Token};
use crate::retry::{Budget, Retry, Rng};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trace::Trace;

/// Ping interval of a silent connection with calls in flight. An idle one is left to TCP.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(10);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(5);
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Upper limit of all time limits; a longer one is a mistake.
const LONGEST: Duration = Duration::from_secs(3600);

/// Longest attempt while a client follows the holder, unless another time is set.
const STRICT_ATTEMPT: Duration = Duration::from_secs(1);

/// Builder of a [`Client`] or a [`blocking::Client`]. Start with [`Client::builder`].
///
/// | option | default |
/// |---|---|
/// | [`endpoint`](Self::endpoint) | none; at least one, at most 64 |
/// | [`channels_per_endpoint`](Self::channels_per_endpoint) | 1 |
/// | [`deadline`](Self::deadline) | 3 s |
/// | [`attempt_timeout`](Self::attempt_timeout) | half of the deadline; with one endpoint all of it |
/// | [`connect_timeout`](Self::connect_timeout) | 1 s |
/// | [`order`](Self::order) | [`Order::Relaxed`] |
/// | [`retry`](Self::retry) | see [`Retry`] |
/// | [`prefetch`](Self::prefetch) | off |
/// | [`fallback`](Self::fallback) | none |
/// | [`bearer_token`](Self::bearer_token) | none |
/// | [`ca_certificate`](Self::ca_certificate) | the authorities of the system |
/// | [`client_certificate`](Self::client_certificate) | none |
/// | [`server_name`](Self::server_name) | the host of the address |
/// | [`allow_plaintext`](Self::allow_plaintext) | no |
/// | [`trace`](Self::trace) | none |
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    endpoints: Vec<Source>,
    channels_per_endpoint: usize,
    deadline: Duration,
    attempt_timeout: Option<Duration>,
    connect_timeout: Duration,
    order: Order,
    retry: Retry,
    prefetch: Option<Prefetch>,
    fallback: Option<Secret<Arc<dyn IdService>>>,
    bearer_token: Option<Secret<Box<str>>>,
    tls: Tls,
    allow_plaintext: bool,
    trace: Option<Trace>,
}

#[derive(Debug)]
enum Source {
    Address(String),
    /// An address with user or password, refused without being repeated.
    WithCredentials,
    Channel(String, Channel),
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            channels_per_endpoint: 1,
            // More than a server's default max_wait, so that its response names the cause.
            deadline: Duration::from_secs(3),
            attempt_timeout: None,
            connect_timeout: Duration::from_secs(1),
            order: Order::default(),
            retry: Retry::default(),
            prefetch: None,
            fallback: None,
            bearer_token: None,
            tls: Tls::default(),
            allow_plaintext: false,
            trace: None,
        }
    }
}

impl Client {
    /// Starts the configuration of a client.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Adds a server: `https://host:port`, or without encryption `http://host:port`.
    pub fn endpoint(mut self, address: impl Into<String>) -> Self {
        let address = address.into();
        let secret = address.contains('@');
        self.endpoints.push(if secret {
            Source::WithCredentials
        } else {
            Source::Address(address)
        });
        self
    }

    /// Adds several servers: see [`endpoint`](Self::endpoint).
    pub fn endpoints<A: Into<String>>(self, addresses: impl IntoIterator<Item = A>) -> Self {
        addresses.into_iter().fold(self, Self::endpoint)
    }

    /// Adds a server behind a custom channel, for what this builder does not offer: a Unix socket, a proxy, a pipe in a
    /// test. `name` appears in logs and errors. The options `channels_per_endpoint`, `connect_timeout` and those of TLS
    /// do not apply to it.
    pub fn channel(mut self, name: impl Into<String>, channel: Channel) -> Self {
        self.endpoints.push(Source::Channel(name.into(), channel));
        self
    }

    /// Connections to each server, used in turn: 1 to 64, default 1. Several give more throughput
    /// when many calls are in flight (50 % more was measured), and cost a socket each.
    pub fn channels_per_endpoint(self, channels: usize) -> Self {
        Self {
            channels_per_endpoint: channels,
            ..self
        }
    }

    /// Time limit of one call with all its attempts: 1 ms to 1 h, default 3 s. It is sent to the server
    /// (`grpc-timeout`) and enforced by the client.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Time limit of one attempt, after which another endpoint is tried: at least 1 ms, default half of
    /// the deadline, or all of it with a single endpoint.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        Self {
            attempt_timeout: Some(timeout),
            ..self
        }
    }

    /// Time limit of opening a connection: 1 ms to 1 h, default 1 s.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self {
            connect_timeout: timeout,
            ..self
        }
    }

    /// Order of the IDs, across servers. With [`Order::Strict`] each call goes to the server that answered last. If
    /// that one refuses or does not answer, the others are tried in turn until the call's deadline, with a pause of at
    /// most 0.1 s after each round; [`retry`](Self::retry) does not apply. An attempt takes at most 1 s unless
    /// [`attempt_timeout`](Self::attempt_timeout) says otherwise. Prefetch and fallback are refused: their IDs were made
    /// earlier, or elsewhere. Set a deadline longer than a fail-over: 6 s or more with the servers' defaults.
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// Retry policy of failed calls.
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Prefetches IDs, so that `gen_id` costs nanoseconds. Off by default.
    pub fn prefetch(self, prefetch: Prefetch) -> Self {
        Self {
            prefetch: Some(prefetch),
            ..self
        }
    }

    /// A local service that makes the IDs while no server can, such as
    /// `vesta_service::LocalIdService`; the client returns to the servers by itself.
    ///
    /// **It needs its own machine ID, in the namespace and with the layout of the servers**,
    /// or its IDs could repeat theirs. (Vesta's layouts also tell them apart by genMethod: a server
    /// writes 1, an embedded service 0.)
    ///
    /// It takes over when a call finally fails with an error of the kind "unavailable" or by its
    /// deadline. It then also explains IDs and translates times. `make_id` stays with the servers,
    /// because it fills in their machine ID. While the local service is in use, one caller every
    /// half a second triggers a probe of the servers. Only its `try_` calls are used.
    pub fn fallback(self, local: Arc<dyn IdService>) -> Self {
        Self {
            fallback: Some(Secret(local)),
            ..self
        }
    }

    /// A bearer token, sent with each call as `authorization: Bearer …`. It appears in no log, no
    /// error and no `Debug` text.
    ///
    /// Without TLS it is readable on the network: an `http://` endpoint that is not on this host is
    /// refused together with a token, unless [`allow_plaintext`](Self::allow_plaintext) is set.
    pub fn bearer_token(self, token: impl Into<Box<str>>) -> Self {
        Self {
            bearer_token: Some(Secret(token.into())),
            ..self
        }
    }

    /// Allows the bearer token without encryption, in a trusted network.
    pub fn allow_plaintext(self) -> Self {
        Self {
            allow_plaintext: true,
            ..self
        }
    }

    /// Continues the caller's trace at the servers: `inject` adds the headers of the trace that its caller works in, such
    /// as `traceparent`. It runs once for each call, in the task or thread that makes it; refills of the prefetch buffer
    /// belong to no caller. A map is an `Injector` of OpenTelemetry, in any of its versions. Without this option, and
    /// outside of a trace, nothing is sent: the client begins no traces.
    ///
    /// ```
    /// use opentelemetry::{Context, global};
    ///
    /// let builder = vesta_client::Client::builder().trace(|headers| {
    ///     let here = Context::current(); // with tracing-opentelemetry: tracing::Span::current().context()
    ///     global::get_text_map_propagator(|it| it.inject_context(&here, headers));
    /// });
    /// ```
    pub fn trace(
        self,
        inject: impl Fn(&mut HashMap<String, String>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            trace: Some(Trace::new(inject)),
            ..self
        }
    }

    /// Trusted authorities of `https://` servers, as PEM. Default: those of the system.
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.tls.ca_certificate = Some(Secret(pem.into()));
        self
    }

    /// A certificate with its chain and its private key, both as PEM, for `https://` servers that ask
    /// clients for one (mTLS). The key appears in no log, no error and no `Debug` text.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.tls.client_certificate = Some(Secret([certificate.into(), key.into()]));
        self
    }

    /// Expected name or address in the certificates of `https://` servers. Default: the host of the
    /// endpoint's address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.tls.server_name = Some(name.into());
        self
    }

    /// Builds the asynchronous client. Connections are opened when they are first needed.
    ///
    /// The client belongs to the Tokio runtime in which it was built and works for as long as that
    /// runs.
    ///
    /// # Errors
    /// [`IdError::Invalid`] or [`IdError::OutOfRange`] with the name of the invalid option; `Invalid` also if called
    /// outside a Tokio runtime.
    pub fn build(self) -> Result<Client, IdError> {
        let runtime = Handle::try_current().map_err(|_| {
            IdError::invalid(
                "runtime",
                "call build inside a tokio runtime, or use build_blocking",
            )
        })?;
        self.check()?;
        let token = self.bearer_token.clone().map(Token::new).transpose()?;
        let rng = Rng::default();
        let endpoint = |source: &Source| match source {
            Source::Channel(name, channel) => Ok(Endpoint::new(name.clone(), [channel.clone()])),
            Source::WithCredentials => Err(IdError::invalid(
                "endpoint",
                "must be https://host:port without user or password; use bearer_token",
            )),
            Source::Address(address) => {
                let transport = self.transport(address)?;
                let channels = (0..self.channels_per_endpoint).map(|_| transport.connect_lazy());
                Ok(Endpoint::new(address.clone(), channels))
            }
        };
        let list = self
            .endpoints
            .iter()
            .map(endpoint)
            .collect::<Result<Vec<_>, IdError>>()?;
        let share = if list.len() == 1 {
            self.deadline
        } else {
            self.deadline / 2
        };
        let share = match self.order {
            Order::Relaxed => share,
            Order::Strict => share.min(STRICT_ATTEMPT),
        };
        let attempt_timeout = self.attempt_timeout.unwrap_or(share).min(self.deadline);
        // Spreads clients that start together over the servers.
        let first = rng.next() as usize % list.len();
        let remote = Remote {
            endpoints: Endpoints::new(list, first, self.order, attempt_timeout),
            deadline: self.deadline,
            attempt_timeout,
            retry: self.retry,
            budget: Budget::new(&self.retry),
            token,
            trace: self.trace,
            counters: Counters::default(),
            rng,
            start: Instant::now(),
            process: crate::fork::watched_process(),
        };
        Ok(Client::new(remote, self.prefetch, self.fallback, runtime))
    }

    /// Builds the blocking client, with a background thread.
    ///
    /// # Errors
    /// As for [`build`](Self::build); [`IdError::Internal`] if the thread cannot be started.
    pub fn build_blocking(self) -> Result<blocking::Client, IdError> {
        blocking::Client::start(|| self.build())
    }

    fn check(&self) -> Result<(), IdError> {
        if self.endpoints.is_empty() {
            return Err(IdError::invalid(
                "endpoint",
                "give at least one, as https://host:port or http://host:port",
            ));
        }
        IdError::check(
            "endpoints",
            self.endpoints.len() as u64,
            1,
            MOST_ENDPOINTS as u64,
        )?;
        IdError::check(
            "channels_per_endpoint",
            self.channels_per_endpoint as u64,
            1,
            64,
        )?;
        let breaks_order = [
            ("prefetch", self.prefetch.is_some()),
            ("fallback", self.fallback.is_some()),
        ];
        if let (Order::Strict, Some((option, _))) =
            (self.order, breaks_order.into_iter().find(|it| it.1))
        {
            let reason = "breaks the strict order of IDs; remove it, or use Order::Relaxed";
            return Err(IdError::invalid(option, reason));
        }
        check_time("deadline", self.deadline)?;
        check_time("attempt_timeout", self.attempt_timeout.unwrap_or(LONGEST))?;
        check_time("connect_timeout", self.connect_timeout)?;
        let Retry {
            max_attempts,
            successes_per_retry,
            ..
        } = self.retry;
        IdError::check(
            "retry.max_attempts",
            max_attempts.into(),
            1,
            u32::MAX.into(),
        )?;
        IdError::check(
            "retry.successes_per_retry",
            successes_per_retry.into(),
            1,
            1_000_000,
        )?;
        self.prefetch.as_ref().map_or(Ok(()), Prefetch::check)
    }

    /// Connection settings of an address. Secrets are never sent without encryption by mistake.
    fn transport(&self, address: &str) -> Result<Transport, IdError> {
        let form = || {
            let reason =
                format!("must be http://host:port or https://host:port, but is {address:?}");
            IdError::invalid("endpoint", reason)
        };
        let uri: Uri = address.parse().map_err(|_| form())?;
        let encrypted = uri.scheme_str() == Some("https");
        let known = encrypted || uri.scheme_str() == Some("http");
        let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if !known || !bare || uri.port_u16().is_none() {
            return Err(form());
        }
        if let Some(option) = self.tls.option().filter(|_| !encrypted) {
            let reason = format!("is for https, but the endpoint is {address:?}");
            return Err(IdError::invalid(option, reason));
        }
        if self.bearer_token.is_some() && !encrypted && !self.allow_plaintext && !is_loopback(&uri)
        {
            let reason = format!(
                "could be read on its way to {address:?}; use https, or call allow_plaintext if \
                 the network is trusted"
            );
            return Err(IdError::invalid("bearer_token", reason));
        }
        let transport = Transport::from(uri)
            // With Nagle's algorithm a small call can wait for a delayed acknowledgement: 44 ms.
            .tcp_nodelay(true)
            .tcp_keepalive(Some(TCP_KEEPALIVE))
            .connect_timeout(self.connect_timeout)
            .http2_keep_alive_interval(HTTP2_PING_EVERY)
            .keep_alive_timeout(HTTP2_PING_TIMEOUT);
        if encrypted {
            self.tls.over(transport)
        } else {
            Ok(transport)
        }
    }
}

fn check_time(field: &'static str, time: Duration) -> Result<(), IdError> {
    if time < Duration::from_millis(1) || time > LONGEST {
        return Err(IdError::invalid(field, "must be 1 ms to 1 h"));
    }
    Ok(())
}

/// True if the URI is on this host.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

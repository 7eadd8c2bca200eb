//! Common part of `vesta-server` and `vesta-rest`: settings, log, stop, the admin listener, and the
//! wiring of a service. The only place where a configuration string meets a concrete type.
//!
//! Both programs are one call of [`main`]; what differs is [`Role`] and how requests are served.
//!
//! ```
//! use vesta_boot::{Config, Role};
//!
//! let config = Config::defaults(Role::Server);
//! assert_eq!(config.listen.to_string(), "127.0.0.1:50051");
//! assert_eq!(config.ids.layout.name(), "max-peak");
//! ```
#![forbid(unsafe_code)]

pub mod admin;
mod assemble;
pub mod commands;
mod error;
#[cfg(test)]
mod fuzz;
mod invocation;
mod keys;
mod metered;
mod metrics;
pub mod moment;
pub mod net;
pub mod output;
mod pool;
mod role;
mod run;
mod running;
pub mod settings;
mod shutdown;
mod summary;
mod ticks;
mod tinyid;
#[cfg(not(feature = "otel"))]
#[path = "no_traces.rs"]
mod traces;
#[cfg(feature = "otel")]
mod traces;

pub use tokio_util::sync::CancellationToken;

pub use assemble::{Assembled, ask_stores, assemble};
pub use error::Error;
pub use invocation::{Invocation, Parsed, arguments, command, parse, serving, values};
pub use metrics::{Call, Metrics, Outcome};
pub use moment::{moment, period};
pub use net::{Auth, Caller, Denied, Protocol, Scopes, Security, Tls, TlsFiles, Token};
pub use pool::Pool;
pub use role::Role;
pub use run::{Front, main, start};
pub use running::{Running, SEGMENTS_OFF, SERIALS_OFF, not_ready_because};
pub use settings::Config;
pub use shutdown::on_signal;
pub use tinyid::TinyidTokens;
pub use traces::{Span, may_be_traced};

// The examples of the documents compile. They stand here because this crate knows every other one.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/LAYOUT.md")]
struct Layouts;

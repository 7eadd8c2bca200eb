//! Shared part of the servers: settings, logging, shutdown, the admin listener,
//! and the wiring of a service. Only here does a configuration string select a concrete type.
//!
//! A program is one call of [`main`] with the [`Front`]s that it serves.
//!
//! ```
//! use vesta_boot::{Api, Config};
//!
//! let config = Config::defaults(&Api::ALL);
//! assert_eq!(config.grpc_listen.to_string(), "127.0.0.1:50051");
//! assert_eq!(config.ids.layout.name(), "max-peak");
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod admin;
pub mod answers;
mod api;
mod assemble;
pub mod commands;
mod console;
mod container;
mod error;
mod metrics;
mod offered;
mod opaque_key;
mod operations;
pub mod output;
mod report;
mod running;
mod security;
pub mod segments;
mod serial_keys;
pub mod serials;
pub mod settings;
mod start;
mod stores;
mod text_format;
mod ticks;
mod tinyid_tokens;
mod version;

pub use tokio_util::sync::CancellationToken;

pub use api::Api;
pub use assemble::{Assembled, assemble};
pub use container::lost_state;
pub use error::Error;
pub use metrics::{Call, Metrics, Outcome};
pub use offered::{Offered, Seen};
pub use opaque_key::read as read_opaque_key;
pub use running::{NOT_STARTED, Running, Waiting, not_ready_because};
pub use security::Security;
pub use settings::moment::{self, moment, period};
pub use settings::{Config, SEGMENTS_OFF, SERIALS_OFF};
pub use start::invocation::{Invocation, Parsed, arguments, command, parse, serving, values};
pub use start::program::{Front, main, start};
pub use start::shutdown::on_signal;
pub use start::traces::{Span, may_be_traced};
pub use stores::{ask_stores, host_name};
pub use text_format::TextFormat;
pub use tinyid_tokens::TinyidTokens;
pub use version::VERSION;
pub use vesta_net::{Auth, Caller, Denied, Protocol, Scopes, Tls, TlsFiles, Token};

// The examples of the documents compile. They are here because this crate depends on every other
// one.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/use/layouts.md")]
struct Layouts;

#[cfg(doctest)]
#[doc = include_str!("../../docs/use/other-layouts.md")]
struct OtherLayouts;

#[cfg(doctest)]
#[doc = include_str!("../../docs/use/formats.md")]
struct Formats;

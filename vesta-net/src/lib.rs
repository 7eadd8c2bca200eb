//! Listeners of servers: their threads, connections with limits, TLS whose files may be replaced, tokens and scopes.
//!
//! It knows no ID and no setting. The answers of a server are handed in.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod address;
mod auth;
mod caller;
mod connection;
mod connections;
mod error;
#[cfg(feature = "grpc")]
mod grpc;
mod hosts;
mod listener;
mod pem;
mod permit;
mod requests;
mod stream;
mod tls;
mod workers;

use std::time::Duration;

pub use address::{Accepted, Acceptor, Address, Bound, Listening};
pub use auth::{Auth, Denied, Scopes, Token, checked_name, checked_namespace, sha256};
pub use caller::Caller;
pub use connection::{Connection, Limits, Misdirected};
pub use connections::Connections;
pub use error::Error;
pub use hosts::{Hosts, names_this};
pub use listener::{Limiter, Listener};
pub use pem::TlsFiles;
pub use permit::Permit;
pub use requests::{InFlight, Requests};
pub use tls::{Protocol, Tls, install_provider, watch};
pub use workers::{Incoming, Threads, serve};

/// An age, up to a tenth more or less at random: connections opened together do not end together.
pub fn jittered(age: Duration) -> Duration {
    let mut random = [0];
    let share = getrandom::fill(&mut random).map_or(128, |()| random[0]);
    age.mul_f64(0.9 + f64::from(share) / 1275.0)
}

/// The largest age that [`jittered`] makes of an age.
pub fn oldest(age: Duration) -> Duration {
    age.mul_f64(1.1)
}

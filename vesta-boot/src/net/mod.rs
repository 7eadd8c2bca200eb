//! Listeners: workers, guarded connections, TLS, tokens.

mod address;
mod auth;
mod connection;
#[cfg(feature = "grpc")]
mod grpc;
mod hosts;
mod listener;
mod pem;
mod permit;
mod requests;
mod stream;
mod tinyid_tokens;
mod tls;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::Shuffle;

use crate::role::Role;

pub use crate::caller::Caller;
pub use address::{Accepted, Address, Listening};
pub use auth::{Auth, Denied, Scopes, Token};
pub use connection::{Connection, Limits};
pub use hosts::Hosts;
pub use listener::Limiter;
pub use pem::TlsFiles;
pub use permit::Permit;
pub use requests::{InFlight, Requests};
pub use tinyid_tokens::TinyidTokens;
pub use tls::{Protocol, Tls};
pub use workers::{Incoming, Threads, serve};

pub(crate) use address::{Acceptor, Bound};
pub(crate) use auth::{checked_name, checked_namespace, sha256};
pub(crate) use hosts::names_this;
pub(crate) use listener::Listener;
pub(crate) use tls::{install_provider, watch};

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

/// Protection of a program's listeners. The default is none.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// TLS of the public listener.
    pub tls: Option<Tls>,
    /// TLS of the gRPC listener beside it, if there is one.
    pub grpc_tls: Option<Tls>,
    /// TLS of the admin listener.
    pub admin_tls: Option<Tls>,
    /// Additional names of the admin listener.
    pub admin_hosts: Arc<[String]>,
    /// Tokens of callers, for all listeners; `None` if callers need none.
    pub auth: Option<Auth>,
    /// The permutation of opaque IDs; `None` if there is no key.
    pub opaque: Option<Shuffle>,
}

impl Security {
    /// Namespaces of the registry for which a caller's token is valid; all if there are none.
    pub fn namespaces(&self, caller: Caller) -> &[String] {
        let tokens = self.auth.as_ref().map_or(&[][..], Auth::tokens);
        let token = caller.0.and_then(|index| tokens.get(index));
        token.map_or(&[], |token| &token.namespaces)
    }

    /// Authorizes a call, as [`Auth::check`] does, if callers need tokens.
    ///
    /// # Errors
    /// As [`Auth::check`].
    pub fn check<'a>(
        &self,
        authorization: impl IntoIterator<Item = &'a [u8]>,
        needs: Scopes,
    ) -> Result<Caller, Denied> {
        self.auth.as_ref().map_or(Ok(Caller::default()), |auth| {
            auth.check(authorization, needs)
        })
    }

    /// The name of a caller's token; empty without a token.
    pub fn name(&self, caller: Caller) -> &str {
        let token = |at: usize| self.auth.as_ref()?.tokens().get(at);
        caller.0.and_then(token).map_or("", |token| &token.name)
    }

    /// The protection of one public listener of a program.
    pub(crate) fn of_front(&self, front: Role, program: Role) -> Self {
        match (front, program) {
            (Role::Server, Role::Vesta) => Self {
                tls: self.grpc_tls.clone(),
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// Each listener with TLS, with its name.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = (&'static str, &Tls)> {
        [
            ("public", &self.tls),
            ("grpc", &self.grpc_tls),
            ("admin", &self.admin_tls),
        ]
        .into_iter()
        .filter_map(|(name, tls)| Some((name, tls.as_ref()?)))
    }
}

//! Protection of a program's listeners.

use std::sync::Arc;

use vesta_intf::Shuffle;
use vesta_net::{Auth, Caller, Denied, Scopes, Tls};

/// Protection of a program's listeners. The default is none.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// TLS of the REST listener.
    pub http_tls: Option<Tls>,
    /// TLS of the gRPC listener.
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
    /// Namespaces of the pool server for which a caller's token is valid; all if there are none.
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

    /// TLS of the public listeners, which have the same files.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.http_tls.as_ref().or(self.grpc_tls.as_ref())
    }

    /// Each listener with TLS, with its name.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = (&'static str, &Tls)> {
        [
            ("http", &self.http_tls),
            ("grpc", &self.grpc_tls),
            ("admin", &self.admin_tls),
        ]
        .into_iter()
        .filter_map(|(name, tls)| Some((name, tls.as_ref()?)))
    }
}

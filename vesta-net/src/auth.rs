//! Authorization: bearer tokens and their scopes. A server stores only digests of tokens.

use std::fmt::{self, Debug, Display, Formatter};
use std::sync::Arc;

use crate::caller::Caller;
use bitflags::bitflags;
use ring::digest::{SHA256, digest};
use serde::de::{Deserialize, Deserializer, Error as _};
use subtle::ConstantTimeEq as _;
use vesta_intf::{IdError, check_name};

bitflags! {
    /// Scopes of a token, or the scopes of which a call needs at least one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Scopes: u8 {
        /// New IDs.
        const GENERATE = 1;
        /// Explaining IDs and layouts, and composing IDs.
        const READ = 1 << 1;
        /// Segment numbers, and the state of tags.
        const SEGMENTS = 1 << 2;
        /// Serials: making and parsing them.
        const SERIALS = 1 << 3;
        /// Read access to the admin listener.
        const METRICS = 1 << 4;
        /// Full access to the admin listener, including new tags.
        const ADMIN = 1 << 5;
        /// The pool server: claiming machine IDs, and fetching ranges of tags.
        const POOL = 1 << 6;
    }
}

impl Scopes {
    /// For a call that needs no token.
    pub const NONE: Self = Self::empty();
    /// For a call that accepts any token.
    pub const ANY: Self = Self::all();

    /// The scope with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ANY.iter().find(|scope| scope.to_string() == name)
    }

    /// The names of these scopes.
    pub fn names(self) -> impl Iterator<Item = String> {
        self.iter_names().map(|(name, _)| name.to_lowercase())
    }
}

/// `generate, read`.
impl Display for Scopes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

/// Token, identified by its digest. `Debug` hides the digest too: the token itself may have been
/// written in its place.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Its name, for people.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// SHA-256 of its text.
    #[serde(rename = "sha256", deserialize_with = "sha256_in_hex")]
    pub digest: [u8; 32],
    /// Its scopes.
    #[serde(deserialize_with = "scopes")]
    pub scopes: Scopes,
    /// Namespaces of the pool server for which the token is valid; empty: all of them.
    #[serde(default, deserialize_with = "namespaces")]
    pub namespaces: Vec<String>,
}

// No error quotes a value: it may be a token.

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let checked = checked_name(&String::deserialize(from)?);
    checked.map_err(|must| D::Error::custom(format!("name {must}")))
}

fn sha256_in_hex<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
    digest_from_hex(&String::deserialize(from)?).ok_or_else(|| {
        D::Error::custom(
            "sha256 must be the SHA-256 of the token as 64 hexadecimal digits; `token new` prints it",
        )
    })
}

fn scopes<'de, D: Deserializer<'de>>(from: D) -> Result<Scopes, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    let scopes: Option<Scopes> = names.iter().map(|name| Scopes::named(name)).collect();
    let scopes = scopes.filter(|scopes| !scopes.is_empty());
    scopes.ok_or_else(|| D::Error::custom(format!("scopes must be some of {}", Scopes::ANY)))
}

/// An empty list is refused: without the key, a token is valid for all namespaces.
fn namespaces<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    if names.is_empty() {
        return Err(D::Error::custom(
            "namespaces is empty; leave it out for a token that is valid for all of them",
        ));
    }
    let names: Result<_, _> = names.iter().map(|name| checked_namespace(name)).collect();
    names.map_err(|must| D::Error::custom(format!("each of namespaces {must}")))
}

impl Token {
    /// Creates a token from its plain text.
    pub fn of_text(name: &str, text: &str, scopes: Scopes) -> Self {
        Self {
            name: name.into(),
            digest: sha256(text.as_bytes()),
            scopes,
            namespaces: Vec::new(),
        }
    }

    /// Restricts the token to some namespaces of the pool server.
    #[must_use]
    pub fn of_namespaces(self, names: &[&str]) -> Self {
        let namespaces = names.iter().map(|&name| name.to_owned()).collect();
        Self { namespaces, ..self }
    }
}

impl Debug for Token {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.scopes)
    }
}

/// The tokens of a server. With an `Auth`, every call needs one of them.
#[derive(Debug, Clone)]
pub struct Auth {
    tokens: Arc<[Token]>,
}

impl Auth {
    /// Accepts the bearers of these tokens.
    pub fn new(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self {
            tokens: tokens.into_iter().collect(),
        }
    }

    /// The tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Authorizes a call by its header `authorization` and the scopes of which it needs at least one. A
    /// call that needs no scope has an anonymous caller.
    ///
    /// The time taken does not depend on how much of a token is right.
    ///
    /// # Errors
    /// [`Denied`], which never quotes the header.
    pub fn check<'a>(
        &self,
        authorization: impl IntoIterator<Item = &'a [u8]>,
        needs: Scopes,
    ) -> Result<Caller, Denied> {
        if needs == Scopes::NONE {
            return Ok(Caller::default());
        }
        let mut headers = authorization.into_iter();
        let header = headers.next().ok_or(Denied::NoToken)?;
        if headers.next().is_some() {
            return Err(Denied::Several);
        }
        let (scheme, token) = header
            .split_at_checked(BEARER.len())
            .ok_or(Denied::NotBearer)?;
        let token = token.trim_ascii();
        if !scheme.eq_ignore_ascii_case(BEARER) || token.is_empty() {
            return Err(Denied::NotBearer);
        }
        let digest = sha256(token);
        // Every token is compared, so that the time is constant.
        let found = self.tokens.iter().enumerate().fold(None, |found, token| {
            if bool::from(token.1.digest.ct_eq(&digest)) {
                Some(token)
            } else {
                found
            }
        });
        match found {
            None => Err(Denied::Unknown),
            Some((at, token)) if token.scopes.intersects(needs) => Ok(Caller(Some(at))),
            Some((_, token)) => Err(Denied::Lacks {
                token: token.name.as_str().into(),
                needs,
            }),
        }
    }
}

const BEARER: &[u8] = b"Bearer ";

/// Reason for refusing a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The call has no token.
    #[error("a token is needed; send the header authorization: Bearer TOKEN")]
    NoToken,
    /// The header is not that of a bearer token.
    #[error("the header authorization must be Bearer TOKEN")]
    NotBearer,
    /// The call has several headers; a proxy may have checked another one.
    #[error("the header authorization must be sent once")]
    Several,
    /// The token is unknown to the server.
    #[error("unknown token")]
    Unknown,
    /// The token lacks the scope.
    #[error(
        "the token `{token}` may not be used for this; it needs the scope {}",
        .needs.to_string().replace(", ", " or ")
    )]
    Lacks {
        /// Name of the token.
        token: Arc<str>,
        /// Scopes of which one is needed.
        needs: Scopes,
    },
}

impl Denied {
    /// Value of `WWW-Authenticate` (RFC 6750).
    pub const fn challenge(&self) -> &'static str {
        match self {
            Denied::NoToken => r#"Bearer realm="vesta""#,
            Denied::NotBearer | Denied::Several => {
                r#"Bearer realm="vesta", error="invalid_request""#
            }
            Denied::Unknown => r#"Bearer realm="vesta", error="invalid_token""#,
            Denied::Lacks { .. } => r#"Bearer realm="vesta", error="insufficient_scope""#,
        }
    }
}

impl From<Denied> for IdError {
    fn from(denied: Denied) -> Self {
        let reason = denied.to_string().into();
        match denied {
            Denied::NoToken | Denied::NotBearer | Denied::Unknown => {
                IdError::Unauthenticated { reason }
            }
            Denied::Several => IdError::Invalid {
                field: "authorization",
                reason,
            },
            Denied::Lacks { .. } => IdError::PermissionDenied { reason },
        }
    }
}

/// SHA-256 of a text.
pub fn sha256(token: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, token).as_ref());
    out
}

/// Returns the name of a token or a namespace, or a description of valid names.
pub fn checked_name(name: &str) -> Result<String, String> {
    check_name(name).map(|()| name.to_owned())
}

/// Returns the name of a namespace, or `*` for all of them.
pub fn checked_namespace(name: &str) -> Result<String, String> {
    match name {
        "*" => Ok(name.to_owned()),
        name => checked_name(name),
    }
}

fn digest_from_hex(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest)
        .ok()
        .map(|()| digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth() -> Auth {
        let token = |text: &str, scopes| Token::of_text(text, text, scopes);
        Auth::new([
            token("maker", Scopes::GENERATE | Scopes::READ),
            token("watcher", Scopes::METRICS),
        ])
    }

    fn check(header: &str, needs: Scopes) -> Result<(), Denied> {
        auth().check(Some(header.as_bytes()), needs).map(drop)
    }

    #[test]
    fn a_token_allows_only_what_its_scopes_name() {
        for needs in [Scopes::GENERATE, Scopes::READ, Scopes::ANY, Scopes::NONE] {
            assert_eq!(check("Bearer maker", needs), Ok(()), "{needs}");
        }
        for needs in [Scopes::SEGMENTS, Scopes::METRICS, Scopes::ADMIN] {
            let denied = Denied::Lacks {
                token: "maker".into(),
                needs,
            };
            assert_eq!(check("Bearer maker", needs), Err(denied), "{needs}");
        }
        let either = Scopes::METRICS | Scopes::ADMIN;
        assert_eq!(check("Bearer watcher", either), Ok(()));
        let denied = check("Bearer maker", either).expect_err("the wrong scopes");
        assert!(
            denied
                .to_string()
                .ends_with("it needs the scope metrics or admin"),
            "{denied}"
        );
    }

    #[test]
    fn missing_malformed_and_unknown_tokens_have_distinct_errors() {
        assert_eq!(auth().check(None, Scopes::READ), Err(Denied::NoToken));
        let twice = [&b"Bearer maker"[..]; 2];
        assert_eq!(auth().check(twice, Scopes::READ), Err(Denied::Several));
        for header in [
            "",
            "maker",
            "Bearer",
            "Bearer ",
            "Basic maker",
            "Bearermaker",
        ] {
            assert_eq!(
                check(header, Scopes::READ),
                Err(Denied::NotBearer),
                "{header:?}"
            );
        }
        for header in [
            "Bearer make",
            "Bearer makers",
            "Bearer MAKER",
            "Bearer maker maker",
        ] {
            assert_eq!(
                check(header, Scopes::READ),
                Err(Denied::Unknown),
                "{header:?}"
            );
        }
        for header in ["bearer maker", "BEARER  maker "] {
            assert_eq!(check(header, Scopes::READ), Ok(()), "{header:?}");
        }
        assert_eq!(auth().check(None, Scopes::NONE), Ok(Caller(None)));
    }

    #[test]
    fn token_is_known_only_if_every_byte_of_its_digest_is_right() {
        for at in 0..32 {
            let mut token = Token::of_text("maker", "maker", Scopes::GENERATE);
            token.digest[at] ^= 1;
            let checked = Auth::new([token]).check([&b"Bearer maker"[..]], Scopes::GENERATE);
            assert_eq!(checked, Err(Denied::Unknown), "byte {at}");
        }
    }

    #[test]
    fn a_digest_is_64_hexadecimal_digits() {
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest_from_hex(abc), Some(sha256(b"abc")));
        assert_eq!(digest_from_hex(&abc.to_uppercase()), Some(sha256(b"abc")));
        assert_eq!(hex::encode(sha256(b"abc")), abc);
        for wrong in [
            "",
            "ba78",
            &abc[1..],
            &format!("{}+5", &abc[2..]),
            &"é".repeat(32),
        ] {
            assert_eq!(digest_from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_lead_to_their_scopes() {
        let all = Scopes::ANY
            .names()
            .map(|name| Scopes::named(&name).expect("a scope"));
        assert_eq!(all.collect::<Scopes>(), Scopes::ANY);
        assert_eq!(
            Scopes::ANY.to_string(),
            "generate, read, segments, serials, metrics, admin, pool"
        );
        assert_eq!(Scopes::named("all"), None);
    }
}

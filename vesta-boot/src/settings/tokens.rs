//! `[[auth.tokens]]`: tokens of callers, which only the file can hold.

use std::fmt;

use serde::Deserialize;

use crate::error::Error;
use crate::net::{Auth, Scopes, Token, digest_from_hex, is_name};

/// `[auth]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    #[serde(default)]
    pub(super) tokens: Vec<TokenTable>,
}

/// A token that callers may show. `Debug` hides its digest, in whose place somebody may have written
/// the token itself.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct TokenTable {
    /// Its name in logs and errors.
    pub name: String,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// The names of its scopes.
    pub scopes: Vec<String>,
}

impl fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.scopes.join(", "))
    }
}

/// The tokens of these tables; `None` without any, so that callers need none.
pub(super) fn check(tables: &[TokenTable]) -> Result<Option<Auth>, Error> {
    let mut tokens: Vec<Token> = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let refuse = |fault: String| {
            Error::setting(format!("[[auth.tokens]] number {}: {fault}", index + 1))
        };
        let token = token(table).map_err(refuse)?;
        if let Some(twin) = tokens.iter().find(|it| it.name == token.name) {
            return Err(refuse(format!("there is another one of the name `{}`", twin.name)));
        }
        if let Some(twin) = tokens.iter().find(|it| it.digest == token.digest) {
            return Err(refuse(format!("it is the same token as `{}`", twin.name)));
        }
        tokens.push(token);
    }
    Ok((!tokens.is_empty()).then(|| Auth::new(tokens)))
}

/// One table's token. Its text may be a token itself, so an error does not repeat it.
fn token(TokenTable { name, sha256, scopes }: &TokenTable) -> Result<Token, String> {
    if !is_name(name) {
        return Err("name must be 1 to 64 letters, digits, `.`, `_` or `-`".to_owned());
    }
    let digest = digest_from_hex(sha256).ok_or_else(|| {
        format!(
            "sha256 of `{name}` must be the SHA-256 of the token as 64 hexadecimal digits; `token \
             new` prints it"
        )
    })?;
    let scopes = scopes.iter().try_fold(Scopes::NONE, |all, scope| {
        Scopes::named(scope)
            .map(|scope| all | scope)
            .ok_or_else(|| format!("scopes of `{name}` must be some of {}", Scopes::ANY))
    })?;
    if scopes == Scopes::NONE {
        return Err(format!("scopes of `{name}` must be at least one of {}", Scopes::ANY));
    }
    Ok(Token { name: name.as_str().into(), digest, scopes })
}

//! The tokens that callers may have.

use crate::ConfigError;
use crate::net::{Auth, Scopes, Token, digest_from_hex, is_name};
use crate::raw::{Raw, TokenTable};

/// The tokens of `[[auth.tokens]]`; `None` if there are none, and nobody needs one.
pub(super) fn check(raw: &Raw) -> Result<Option<Auth>, ConfigError> {
    let mut tokens: Vec<Token> = Vec::new();
    for (index, table) in raw.tokens.iter().enumerate() {
        let refuse = |what: String| {
            ConfigError::refused(format!("[[auth.tokens]] number {}: {what}", index + 1))
        };
        let token = token(table).map_err(refuse)?;
        if let Some(twin) = tokens.iter().find(|it| it.name() == token.name()) {
            return Err(refuse(format!("there is another one of the name `{}`", twin.name())));
        }
        if let Some(twin) = tokens.iter().find(|it| it.has_digest_of(&token)) {
            return Err(refuse(format!("it is the same token as `{}`", twin.name())));
        }
        tokens.push(token);
    }
    Ok((!tokens.is_empty()).then(|| Auth::new(tokens)))
}

/// What was typed may be a token itself, so it is not repeated.
fn token(table: &TokenTable) -> Result<Token, String> {
    let TokenTable { name, sha256, scopes } = table;
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
    Ok(Token::new(name, digest, scopes))
}

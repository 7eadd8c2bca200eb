//! Numbers and texts as they are kept, and what can be wrong with a key.

use std::str::FromStr;

use vesta_service::StoreError;

pub(super) fn decimal(number: u64) -> Result<String, StoreError> {
    match i64::try_from(number) {
        Ok(number) => Ok(number.to_string()),
        Err(_) => Err(StoreError::permanent(format!("{number} has more than 63 bits"))),
    }
}

/// As [`decimal`] writes it, and no other way: it is compared as text.
pub(super) fn number<T: FromStr + ToString + Copy>(value: &[u8]) -> Option<T>
where
    u64: TryFrom<T>,
{
    let number = exact(value)?;
    u64::try_from(number).ok().filter(|number| *number <= i64::MAX.unsigned_abs())?;
    Some(number)
}

/// A number without leading zeros, blanks or a `+`; it may have a `-`.
pub(super) fn exact<T: FromStr + ToString>(value: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(value).ok()?;
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

pub(super) fn string(value: &[u8]) -> Option<String> {
    String::from_utf8(value.to_vec()).ok()
}

/// What the reply of a script says about a key that Vesta did not leave so.
pub(super) fn flaw_of_key(words: &[&str]) -> String {
    match words {
        ["type", key, kind] => format!(
            "key `{key}` is a {kind}, which no Vesta wrote; use another prefix= or remove it"
        ),
        ["expires", key] => format!(
            "key `{key}` would expire, and IDs could repeat; run `PERSIST {key}`, and do not set \
             times to live here"
        ),
        ["schema", key, schema] => format!(
            "key `{key}` has schema `{schema}`, this Vesta knows schema 1; use the version that \
             made it"
        ),
        _ => format!("a script gave an answer that makes no sense: {words:?}"),
    }
}

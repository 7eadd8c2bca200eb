//! Names that people give: of tags, namespaces and tokens. Every door checks them here.

use crate::IdError;

/// Longest name of a tag, in characters.
pub const MAX_TAG: usize = 128;

/// Longest name of a namespace or a token, in characters.
const MAX_NAME: usize = 64;

/// Checks the name of a tag: 1 to [`MAX_TAG`] characters.
///
/// # Errors
/// [`IdError::Invalid`] for `tag`.
pub fn check_tag(tag: &str) -> Result<(), IdError> {
    match tag.chars().take(MAX_TAG + 1).count() {
        1..=MAX_TAG => Ok(()),
        _ => Err(IdError::invalid(
            "tag",
            format!("it must have 1 to {MAX_TAG} characters"),
        )),
    }
}

/// Finds a value by its name.
pub(crate) fn named<T: Copy, const N: usize>(
    all: [T; N],
    name_of: fn(T) -> &'static str,
    field: &'static str,
    name: &str,
) -> Result<T, IdError> {
    let found = all.into_iter().find(|it| name_of(*it) == name);
    found.ok_or_else(|| {
        let names = all.map(name_of).join(", ");
        IdError::invalid(field, format!("`{name}` is not one of {names}"))
    })
}

/// Checks the name of a namespace or a token, which becomes part of file names.
///
/// # Errors
/// A description of valid names, which does not repeat the given one.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.starts_with('.')
    {
        true => Ok(()),
        false => Err(format!(
            "must be 1 to {MAX_NAME} letters, digits, `.`, `_` or `-`, and not begin with `.`"
        )),
    }
}

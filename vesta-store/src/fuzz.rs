//! Shared by the backends' fuzz targets: records with arbitrary numbers, and URLs with a password
//! that must not show.

use std::fmt::{Debug, Display};

use crate::{OpenError, redact};

#[path = "../../scripts/check/fuzz/texts.rs"]
mod texts;
#[path = "../../scripts/check/fuzz/urls.rs"]
mod urls;

pub(crate) use texts::{Changes, damaged};
pub(crate) use urls::{Around, PIECES, SECRET, with_secret};

/// Checks that neither the displayed URL nor a backend's view of it shows the password.
pub(crate) fn check_url<T: Display + Debug>(
    parse: impl Fn(&str) -> Result<T, OpenError>,
    schemes: &[&str],
    around: &Around,
) {
    let url = with_secret(schemes, around);
    if !schemes
        .iter()
        .any(|scheme| url.split(':').next() == Some(scheme))
    {
        return; // reaches no backend
    }
    let said = match parse(&url) {
        Ok(target) => format!("{target} {target:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!said.contains(SECRET), "{url:?} says {said}");
}

#[test]
fn urls_never_show_their_password() {
    let schemes = [
        "mysql",
        "postgresql",
        "redis",
        "etcds",
        "zookeeper",
        "sqlite",
        "my sql",
        "ftp",
    ];
    bolero::check!()
        .with_iterations(50_000)
        .with_type()
        .for_each(|around: &Around| {
            let url = with_secret(&schemes, around);
            let shown = redact(&url);
            assert!(!shown.contains(SECRET), "{url:?} shows as {shown:?}");
        });
}

/// Arbitrary text: the unredacted parts must be parts of it.
#[test]
fn arbitrary_text_is_redacted_without_changes() {
    bolero::check!()
        .with_iterations(20_000)
        .with_type()
        .for_each(|(pieces, text): &(Vec<u8>, String)| {
            let pieces: String = pieces
                .iter()
                .map(|i| PIECES[usize::from(*i) % PIECES.len()])
                .collect();
            for url in [pieces.clone() + text, text.clone() + &pieces] {
                let shown = redact(&url);
                let mut rest = url.as_str();
                for part in shown.split("***").filter(|part| !part.is_empty()) {
                    let at = rest
                        .find(part)
                        .unwrap_or_else(|| panic!("{url:?}: {shown:?}"));
                    rest = &rest[at + part.len()..];
                }
            }
        });
}

/// Hides the text between the first colon and the first `@`.
fn planted(url: &str) -> String {
    match url
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once(':')?.1.split_once('@'))
    {
        Some((password, _)) => url.replace(password, "***"),
        None => url.into(),
    }
}

#[test]
#[should_panic(expected = "test failed")]
fn showing_a_password_with_an_at_sign_is_detected() {
    bolero::check!()
        .with_iterations(50_000)
        .with_shrink_time(std::time::Duration::ZERO)
        .with_type()
        .for_each(|(_, which, noise): &Around| {
            let url = with_secret(&["mysql"], &(0, *which, noise.clone()));
            assert!(!planted(&url).contains(SECRET));
        });
}

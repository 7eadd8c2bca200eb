//! URLs with a planted password, for the fuzz targets of several crates; included by `#[path]`.

/// The password that must not show.
pub(crate) const SECRET: &str = "hunter2";

/// The alphabet of the text around it: everything that has a meaning in some URL.
pub(crate) const PIECES: [&str; 40] = [
    "",
    "a",
    "h",
    "u",
    "1",
    "6379",
    "vesta",
    "é",
    "\u{1F980}",
    ":",
    "@",
    "/",
    "//",
    "://",
    "?",
    "&",
    "=",
    ";",
    "#",
    "%",
    "%40",
    "%3A",
    "%00",
    "%ff",
    "[",
    "]",
    "[::1]",
    ",",
    ".",
    "..",
    " ",
    "\t",
    "\n",
    "\0",
    "\\",
    "'",
    "\"",
    "`",
    "ca=",
    "prefix=",
];

const SECRET_OPTIONS: [&str; 7] = [
    "password",
    "PASSWD",
    "pwd",
    "auth_token",
    "sslkey",
    "secret",
    "pass%77ord",
];

/// The form of a URL, and the text around its password.
pub(crate) type Around = (u8, u8, [Vec<u8>; 4]);

/// A URL, or text mistaken for one, that contains a password.
pub(crate) fn with_secret(schemes: &[&str], (form, which, noise): &Around) -> String {
    let text = |pieces: &Vec<u8>| -> String {
        pieces
            .iter()
            .take(6)
            .map(|i| PIECES[usize::from(*i) % PIECES.len()])
            .collect()
    };
    let plain = |pieces| text(pieces).replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let scheme = schemes[usize::from(*which) % schemes.len()];
    let [a, b, c, d] = noise;
    // Without `//`; otherwise the text before is no longer the password.
    let after_colon = |pieces| text(pieces).trim_start_matches('/').to_owned();
    match form % 7 {
        0 => format!(
            "{scheme}://{}:{}{SECRET}{}@{}",
            text(a),
            text(b),
            text(c),
            text(d)
        ),
        1 => format!("{scheme}://{}:{SECRET}@{}/{}", plain(a), plain(b), text(c)),
        2 => format!(
            "{scheme}:{}:{}{SECRET}{}@{}",
            plain(a),
            text(b),
            text(c),
            text(d)
        ),
        3 => format!(
            "{}:{}{SECRET}{}@{}",
            plain(a),
            after_colon(b),
            text(c),
            text(d)
        ),
        4 if scheme != "sqlite" => format!("{scheme}://{}:{SECRET}{}", plain(a), text(b)),
        _ => {
            let name = SECRET_OPTIONS[usize::from(*form / 7) % SECRET_OPTIONS.len()];
            let edge = ['?', '&', ';', '#'][usize::from(*form) % 4];
            let place = if edge == '?' {
                plain(a)
            } else {
                format!("{}?{}", plain(a), text(b))
            };
            format!(
                "{scheme}://{place}{edge}{name}={}{SECRET}{}",
                text(c),
                text(d)
            )
        }
    }
}

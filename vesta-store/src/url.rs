//! Store URLs: parsed once, and displayed without their secrets.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use crate::{Kind, OpenError};

const HIDDEN: &str = "***";

/// The URL of a store. `Display` and `Debug` hide its password.
///
/// ```
/// let url: vesta_store::StoreUrl = "etcd://vesta:hunter2@etcd1:2379,etcd2/ids".parse()?;
/// assert_eq!(url.to_string(), "etcd://vesta:***@etcd1:2379,etcd2/ids");
/// # Ok::<(), vesta_store::OpenError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    kind: Kind,
    text: String,
    shown: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The servers, in the order of the URL: exactly one, except that ZooKeeper, etcd and a pool server may have
    /// more, and a MySQL or PostgreSQL socket has none.
    pub(crate) hosts: Vec<Host>,
    /// The decoded path without leading and trailing slashes; no part is empty, `.` or `..`. For
    /// SQLite, the path of the file as typed.
    pub(crate) path: String,
    options: Vec<(String, String)>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Name or address; an IPv6 address in brackets.
    pub(crate) name: String,
    /// Port, if given.
    pub(crate) port: Option<u16>,
}

impl Host {
    /// For PostgreSQL the name may be the encoded path of a socket.
    fn parse(text: &str, kind: Kind) -> Result<Self, String> {
        let encoded = |c| c == '%' && kind == Kind::Postgres;
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c) || encoded(c);
        let url = Url::parse(&format!("{}://{text}", kind.name())).ok();
        let url = url.filter(|_| text.chars().all(plain) && !text.ends_with(':'));
        url.and_then(|url| Some((url.host_str()?.to_owned(), url.port())))
            .filter(|(name, port)| !name.is_empty() && *port != Some(0))
            .map(|(name, port)| Self { name, port })
            .ok_or(
                "each server is written as host or host:port, an IPv6 address in brackets".into(),
            )
    }
}

#[allow(dead_code, reason = "some builds have no backend")]
impl StoreUrl {
    /// The kind of the store.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The file of an SQLite database; `None` for other kinds.
    pub fn file(&self) -> Option<&Path> {
        (self.kind == Kind::Sqlite).then(|| Path::new(&self.path))
    }

    /// The URL as typed, including secrets, for drivers that parse it themselves.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Host and port of the one server that the URL names. `None` if it names another number of servers, no port, or
    /// options about the server: a TLS certificate has to fit the name.
    pub fn one_server(&self) -> Option<String> {
        let [
            Host {
                name,
                port: Some(port),
            },
        ] = &*self.hosts
        else {
            return None;
        };
        let with_tls = ["rediss", "etcds", "vestas"]
            .into_iter()
            .any(|scheme| self.has_scheme(scheme));
        let about_server = |name: &str| {
            ["ssl", "host", "port", "socket", "ca"]
                .iter()
                .any(|part| name.starts_with(part))
        };
        let is_plain = !with_tls && !self.options.iter().any(|(name, _)| about_server(name));
        is_plain.then(|| format!("{name}:{port}"))
    }

    /// The same store by way of another address, such as that of a proxy in front of its
    /// [one server](Self::one_server).
    pub fn by_way_of(&self, address: SocketAddr) -> Option<Self> {
        self.one_server()?;
        let start = self.text.find("//")? + 2;
        let end = self.text[start..]
            .find(['/', '?'])
            .map_or(self.text.len(), |at| start + at);
        let start = self.text[start..end]
            .rfind('@')
            .map_or(start, |at| start + at + 1);
        let mut text = self.text.clone();
        text.replace_range(start..end, &address.to_string());
        text.parse().ok()
    }

    /// True if the URL has this scheme, ignoring case.
    pub(crate) fn has_scheme(&self, scheme: &str) -> bool {
        self.text
            .split(':')
            .next()
            .is_some_and(|own| own.eq_ignore_ascii_case(scheme))
    }

    /// Each server with its port.
    pub(crate) fn servers(&self, default_port: u16) -> Vec<String> {
        let server =
            |Host { name, port }: &Host| format!("{name}:{}", port.unwrap_or(default_port));
        self.hosts.iter().map(server).collect()
    }

    /// Display form `NAME user@host:port,host:port`.
    pub(crate) fn address(&self, name: &str, default_port: u16) -> String {
        let login = self
            .user
            .as_ref()
            .map(|user| format!("{user}@"))
            .unwrap_or_default();
        format!("{name} {login}{}", self.servers(default_port).join(","))
    }

    /// The value of an option.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The error for a part that a backend cannot use; `reason` contains no secret.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> OpenError {
        OpenError::Malformed {
            reason: reason.into(),
            example: self.kind.facts().example,
        }
    }

    fn of_sqlite(text: &str, rest: &str) -> Result<Self, String> {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        let flaw = if path.is_empty() {
            "the path of the database is missing"
        } else if path.contains('?') {
            "the sqlite URL takes no options, and the path no question mark"
        } else if path.contains('\0') {
            "the path of the database contains a NUL"
        } else {
            // A file has no password, but one may have been typed.
            let login = path
                .split_once(':')
                .is_some_and(|(_, after)| after.contains('@'));
            let shown = if login {
                hide_all(text)
            } else {
                text.to_owned()
            };
            return Ok(Self {
                path: path.into(),
                ..Self::empty(Kind::Sqlite, text, shown)
            });
        };
        Err(flaw.into())
    }

    fn empty(kind: Kind, text: &str, shown: String) -> Self {
        let (hosts, options) = (Vec::new(), Vec::new());
        let (text, path) = (text.to_owned(), String::new());
        Self {
            kind,
            text,
            shown,
            user: None,
            password: None,
            hosts,
            path,
            options,
        }
    }

    fn of_server(kind: Kind, text: &str, rest: &str) -> Result<Self, String> {
        let rest = rest
            .strip_prefix("//")
            .ok_or("the URL has no `//` after its scheme")?;
        if rest.contains(char::is_control) {
            return Err("the URL contains a control character".into());
        }
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if tail.contains(['@', '#']) {
            return Err(
                "in a user name, a password or a path, `@`, `/`, `?`, `#` and `:` have to be \
                        written as %40, %2F, %3F, %23 and %3A"
                    .into(),
            );
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
            None => (None, None),
            Some(Ok((user, password))) => (Some(user), Some(password)),
            Some(Err(user)) if kind.is_sql() => (Some(user), None),
            Some(Err(_)) => return Err("the password is missing after the user".into()),
        };
        let hosts = match hosts.split(',').map(|host| Host::parse(host, kind)) {
            _ if hosts.is_empty() && kind.is_sql() => Vec::new(),
            hosts => hosts.collect::<Result<_, _>>()?,
        };
        if hosts.len() > 1 && !matches!(kind, Kind::Zookeeper | Kind::Etcd | Kind::PoolServer) {
            return Err("the URL must name one server".into());
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let options = options_of(kind, query)?;
        let secret = options.iter().any(|(name, _)| name.contains("key"));
        let (before, after) = text.split_at(text.len() - authority.len() - tail.len());
        let after = after.rsplit_once('@').map_or(after, |(_, after)| after);
        let shown_login = match (user, password) {
            (Some(user), Some(_)) => format!("{user}:{HIDDEN}@"),
            (Some(_), None) => format!("{HIDDEN}@"), // one word alone may be a token
            (None, _) => String::new(),
        };
        let shown_after = if secret {
            &after[..after.len() - query.len()]
        } else {
            after
        };
        let shown_query = if secret { HIDDEN } else { "" };
        let shown = format!("{before}{shown_login}{shown_after}{shown_query}");
        Ok(Self {
            user: user
                .map(decode)
                .transpose()?
                .filter(|user| !user.is_empty()),
            password: password
                .map(decode)
                .transpose()?
                .filter(|password| !password.is_empty()),
            hosts,
            path: decode_path(path)?,
            options,
            ..Self::empty(kind, text, shown)
        })
    }
}

/// The scheme, and the text after its colon.
fn scheme_of(text: &str) -> Option<(&str, &str)> {
    // The first colon: a later `://` may be part of a password.
    text.split_once(':').filter(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

fn options_of(kind: Kind, query: &str) -> Result<Vec<(String, String)>, String> {
    if query.contains(';') {
        return Err("options are separated by &; in a value write ; as %3B".into());
    }
    let mut options: Vec<(String, String)> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()).into_owned() {
        let is_known = |known: &str| match known.strip_suffix('[') {
            Some(_) => name.starts_with(known) && name.len() > known.len(),
            None => name == known,
        };
        if !kind.facts().options.split_whitespace().any(is_known) {
            return Err(
                match kind
                    .facts()
                    .options
                    .replace(" options[", "")
                    .replace(' ', ", ")
                {
                    none if none.is_empty() => {
                        "the URL takes no options; in a password write ? as %3F".into()
                    }
                    known => format!("the URL has an unknown option; expected one of {known}"),
                },
            );
        }
        if !name.contains('[') && options.iter().any(|(other, _)| *other == name) {
            return Err(format!("the option {name} is given twice"));
        }
        options.push((name, value));
    }
    Ok(options)
}

fn decode(text: &str) -> Result<String, String> {
    let flaw = "after each % two hexadecimal digits are expected, of UTF-8; a % itself is written \
                as %25";
    let is_digits = |piece: &str| {
        piece
            .get(..2)
            .is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) if text.split('%').skip(1).all(is_digits) => Ok(decoded.into_owned()),
        _ => Err(flaw.into()),
    }
}

fn decode_path(text: &str) -> Result<String, String> {
    let path = text.strip_prefix('/').unwrap_or(text);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() && text.len() < 2 {
        return Ok(String::new());
    }
    let parts = path.split('/').map(decode).collect::<Result<Vec<_>, _>>()?;
    if parts
        .iter()
        .any(|part| matches!(part.as_str(), "" | "." | ".."))
    {
        return Err("a part of the path is empty, `.` or `..`".into());
    }
    Ok(parts.join("/"))
}

impl FromStr for StoreUrl {
    type Err = OpenError;

    /// Parses a URL. An error repeats no part of it except the scheme: in a malformed URL, a
    /// password may be anywhere.
    fn from_str(text: &str) -> Result<Self, OpenError> {
        let Some((scheme, rest)) = scheme_of(text) else {
            return Err(OpenError::NotAUrl {
                typed: redact_foreign(text),
            });
        };
        let Some(kind) = Kind::of_scheme(scheme) else {
            return Err(OpenError::UnknownScheme {
                scheme: scheme.into(),
            });
        };
        let parsed = match kind {
            Kind::Sqlite => Self::of_sqlite(text, rest),
            _ => Self::of_server(kind, text, rest),
        };
        parsed.map_err(|reason| OpenError::Malformed {
            reason,
            example: kind.facts().example,
        })
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

/// Redacts any text that may be the URL of a store. Of a malformed URL, at most the scheme is shown.
///
/// ```
/// assert_eq!(vesta_store::redact("mysql://vesta:hunter2@db/ids"), "mysql://vesta:***@db/ids");
/// assert_eq!(vesta_store::redact("mysql://vesta:hunter2"), "mysql:***");
/// ```
pub fn redact(text: &str) -> String {
    match text.parse::<StoreUrl>() {
        Ok(url) => url.shown,
        Err(OpenError::Malformed { .. }) => hide_all(text),
        Err(_) => redact_foreign(text),
    }
}

fn hide_all(text: &str) -> String {
    let (scheme, _) = scheme_of(text).unwrap_or_default();
    format!("{scheme}:{HIDDEN}")
}

/// Redacts a text that does not name a store: shown if it has no place for a secret.
fn redact_foreign(text: &str) -> String {
    let plain = match Url::parse(text) {
        Ok(url) => url.has_host(),
        Err(_) => !text.contains([':', '=']),
    };
    match scheme_of(text) {
        _ if plain && !text.contains(['@', '?', '#']) => text.to_owned(),
        Some((_, rest)) if rest.starts_with("//") => hide_all(text),
        _ => HIDDEN.to_owned(),
    }
}

#[cfg(test)]
mod tests;

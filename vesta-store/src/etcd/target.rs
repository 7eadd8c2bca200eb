//! What the URL of a store in etcd says.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use crate::OpenError;

const EXAMPLE: &str = "etcd://etcd1:2379,etcd2:2379,etcd3:2379/vesta";
const DEFAULT_PORT: &str = "2379";
const DEFAULT_PREFIX: &str = "vesta";

/// The members of the cluster, the prefix of our keys, and who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Each with its port.
    pub(super) members: Vec<String>,
    /// Without a slash at its ends.
    pub(super) prefix: String,
    pub(super) login: Option<Login>,
    pub(super) tls: Option<Roots>,
}

/// A user of etcd.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// Whom a certificate of a member must come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those that browsers trust.
    Web,
    /// The certificates in this file.
    File(PathBuf),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("etcd ")?;
        if let Some(Login { user, .. }) = &self.login {
            write!(f, "{user}@")?;
        }
        write!(f, "{}/{}", self.members.join(","), self.prefix)
    }
}

impl Target {
    /// Takes a URL apart. No error repeats a part of it: where something is wrong, a password may
    /// stand anywhere.
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        parse(url)
            .map_err(|reason| OpenError::Malformed { reason: reason.into(), example: EXAMPLE })
    }
}

fn parse(url: &str) -> Result<Target, &'static str> {
    // From the first colon: a later `://` may be a part of a password.
    let (scheme, rest) = url
        .split_once(':')
        .and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix("//")?)))
        .ok_or("the members of the cluster are missing")?;
    if rest.contains('#') {
        return Err("the etcd URL contains a #; in a password write it as %23");
    }
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    if path.contains('@') || options.contains('@') {
        return Err("an @ stands behind the members; in a password write / as %2F and ? as %3F");
    }
    let (login, members) = match authority.rsplit_once('@') {
        Some((login, members)) => (Some(parse_login(login)?), members),
        None => (None, authority),
    };
    let members = members.split(',').map(parse_member).collect::<Result<_, _>>()?;
    let ca = parse_options(options)?;
    let tls = match (scheme.eq_ignore_ascii_case("etcds"), ca) {
        (false, None) => None,
        (false, Some(_)) => return Err("the option `ca` is for TLS; begin with etcds://"),
        (true, None) => Some(Roots::Web),
        (true, Some(file)) => Some(Roots::File(file)),
    };
    Ok(Target { members, prefix: parse_prefix(path)?, login, tls })
}

fn parse_login(text: &str) -> Result<Login, &'static str> {
    let (user, password) = text.split_once(':').ok_or("the password is missing after the user")?;
    let (user, password) = (decode(user)?, decode(password)?);
    if user.is_empty() || password.is_empty() {
        return Err("the user or the password is empty");
    }
    Ok(Login { user, password })
}

fn parse_member(text: &str) -> Result<String, &'static str> {
    const FLAW: &str = "each member is written as host or host:port, an IPv6 address in brackets";
    let name_ends = if text.starts_with('[') { text.find(']').ok_or(FLAW)? + 1 } else { 0 };
    let colon = text[name_ends..].find(':').map_or(text.len(), |colon| name_ends + colon);
    let (name, port) = (&text[..colon], text[colon..].strip_prefix(':').unwrap_or(DEFAULT_PORT));
    let named = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.chars().all(is_plain),
    };
    match port.parse::<u16>() {
        Ok(1..) if named && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(format!("{name}:{port}"))
        }
        _ => Err(FLAW),
    }
}

fn parse_prefix(path: &str) -> Result<String, &'static str> {
    let Some(path) = path.strip_prefix('/').filter(|path| !path.is_empty()) else {
        return Ok(DEFAULT_PREFIX.into());
    };
    let prefix = path.strip_suffix('/').unwrap_or(path);
    if prefix.split('/').any(|part| part.is_empty() || !part.chars().all(is_plain)) {
        return Err("the prefix of the keys consists of letters, digits and -._, with single \
                    slashes between its parts");
    }
    Ok(prefix.into())
}

fn parse_options(text: &str) -> Result<Option<PathBuf>, &'static str> {
    let mut ca = None;
    for option in text.split('&').filter(|option| !option.is_empty()) {
        let Some(("ca", file)) = option.split_once('=') else {
            return Err("the only option of the etcd URL is `ca`");
        };
        if file.contains(';') {
            return Err("options are parted by &; in the name of a file write ; as %3B");
        }
        let file = decode(file)?;
        if file.is_empty() || ca.replace(file.into()).is_some() {
            return Err("the option `ca` names one file");
        }
    }
    Ok(ca)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

fn decode(text: &str) -> Result<String, &'static str> {
    const FLAW: &str =
        "after each % two hexadecimal digits are expected; a % itself is written as %25";
    let mut bytes = Vec::new();
    let mut pieces = text.split('%');
    bytes.extend(pieces.next().unwrap_or_default().bytes());
    for piece in pieces {
        let digits = piece.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        bytes.push(digits.and_then(|two| u8::from_str_radix(two, 16).ok()).ok_or(FLAW)?);
        bytes.extend(piece[2..].bytes());
    }
    String::from_utf8(bytes).map_err(|_| FLAW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Target {
        Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let all = parsed("etcds://ann:s3cret@a:1,[::1]:2,c.d_e-f:65535/x/y.z?ca=/etc/ca.pem");
        assert_eq!(
            all,
            Target {
                members: vec!["a:1".into(), "[::1]:2".into(), "c.d_e-f:65535".into()],
                prefix: "x/y.z".into(),
                login: Some(Login { user: "ann".into(), password: "s3cret".into() }),
                tls: Some(Roots::File("/etc/ca.pem".into())),
            }
        );
        let least = Target {
            members: vec!["db:2379".into()],
            prefix: "vesta".into(),
            login: None,
            tls: None,
        };
        for url in ["etcd://db", "etcd://db/", "ETCD://db:2379/vesta", "etcd://db/vesta/?"] {
            assert_eq!(parsed(url), least, "{url}");
        }
        assert_eq!(parsed("etcd://[::1],b").members, ["[::1]:2379", "b:2379"]);
        assert_eq!(parsed("ETCDS://db").tls, Some(Roots::Web));
    }

    #[test]
    fn special_characters_are_written_with_a_percent_sign() {
        let target = parsed("etcds://a%40b:%2F%3f%23%25%3A:@%C3%A9@h?ca=a%20b%26c");
        let login = target.login.unwrap();
        assert_eq!((&*login.user, &*login.password), ("a@b", "/?#%::@é"));
        assert_eq!(target.tls, Some(Roots::File("a b&c".into())));
    }

    #[test]
    fn it_shows_everything_but_the_password() {
        let target = parsed("etcd://ann:hunter2@a:1,b/x");
        assert_eq!(target.to_string(), "etcd ann@a:1,b:2379/x");
        assert_eq!(parsed("etcd://a").to_string(), "etcd a:2379/vesta");
        assert!(!format!("{target:?}").contains("hunter2"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_repeating_it() {
        for url in [
            "etcd:",
            "etcd:h",
            "etcd:u:x://hunter2:1@h",
            "etcd://",
            "etcd:///hunter2",
            "etcd://h,",
            "etcd://,h",
            "etcd://h:0",
            "etcd://h:+1",
            "etcd://h:65536",
            "etcd://h:hunter2",
            "etcd://u:hunter2",
            "etcd://hunter2@h",
            "etcd://u:@h",
            "etcd://:hunter2@h",
            "etcd://u:a/hunter2@h",
            "etcd://u:a?hunter2@h",
            "etcd://u:a#hunter2@h",
            "etcd://u:hunter2%@h",
            "etcd://u:hunter2%2@h",
            "etcd://u:hunter2%+2@h",
            "etcd://u:hunter2%ff@h",
            "etcd://[::1",
            "etcd://[hunter2]",
            "etcd://[::1]hunter2",
            "etcd://h h",
            "etcd://hé",
            "etcd://h//",
            "etcd://h//a",
            "etcd://h/a//b",
            "etcd://h/a b",
            "etcd://h/a%20b",
            "etcd://h?hunter2=1",
            "etcd://h?ca",
            "etcd://h?password=hunter2",
            "etcd://h?ca=/etc/ca.pem",
            "etcds://h?ca=",
            "etcds://h?ca=a&ca=b",
            "etcds://h?CA=a",
            "etcds://h?ca=a;password=hunter2",
            "etcds://h?ca=a;hunter2=b@c",
        ] {
            let error = Target::parse(url).expect_err(url);
            assert!(matches!(error, OpenError::Malformed { .. }), "{url}: {error:?}");
            assert!(!error.to_string().contains("hunter2"), "{url}: {error}");
            assert!(
                error
                    .to_string()
                    .ends_with("; write etcd://etcd1:2379,etcd2:2379,etcd3:2379/vesta")
            );
        }
    }
}

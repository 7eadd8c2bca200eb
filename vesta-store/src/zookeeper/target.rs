//! What the URL of a store in ZooKeeper says.

use std::fmt;

use crate::OpenError;

const EXAMPLE: &str = "zookeeper://zk1:2181,zk2:2181,zk3:2181/vesta";
const DEFAULT_PORT: &str = "2181";

/// The servers, the znode below which everything lies, and who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Each with its port.
    pub(super) hosts: Vec<String>,
    /// Absolute, without a slash at its end; empty if the URL names none.
    pub(super) path: String,
    pub(super) login: Option<Login>,
}

/// A user of ZooKeeper's scheme `digest`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    user: String,
    password: String,
}

impl Login {
    pub(super) fn digest(&self) -> String {
        format!("{}:{}", self.user, self.password)
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZooKeeper ")?;
        if let Some(Login { user, .. }) = &self.login {
            write!(f, "{user}@")?;
        }
        write!(f, "{}{}", self.hosts.join(","), self.path)
    }
}

impl Target {
    /// Takes a URL apart. No error repeats a part of it: where something is wrong, a password may
    /// stand anywhere.
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        parse(url)
            .map_err(|reason| OpenError::Malformed { reason: reason.into(), example: EXAMPLE })
    }

    /// As [`parse`](Self::parse), with a path for a URL without one.
    pub(super) fn with_default_path(url: &str, path: &str) -> Result<Self, OpenError> {
        let mut target = Self::parse(url)?;
        if target.path.is_empty() {
            target.path = path.into();
        }
        Ok(target)
    }
}

fn parse(url: &str) -> Result<Target, &'static str> {
    // From the first colon: a later `://` may be a part of a password.
    let rest = url
        .split_once(':')
        .and_then(|(_, rest)| rest.strip_prefix("//"))
        .ok_or("the servers of ZooKeeper are missing")?;
    if rest.contains(['?', '#']) {
        return Err(
            "the zookeeper URL takes no options; in a password write ? as %3F and # as %23",
        );
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if path.contains('@') {
        return Err("the path of the zookeeper URL contains an @; in a password write / as %2F");
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(parse_login(login)?), hosts),
        None => (None, authority),
    };
    let hosts = hosts.split(',').map(parse_host).collect::<Result<_, _>>()?;
    Ok(Target { hosts, path: parse_path(path)?, login })
}

fn parse_login(text: &str) -> Result<Login, &'static str> {
    let (user, password) = text.split_once(':').ok_or("the password is missing after the user")?;
    let (user, password) = (decode(user)?, decode(password)?);
    if user.is_empty() || password.is_empty() {
        return Err("the user or the password is empty");
    }
    if user.contains(':') {
        return Err("the name of a user of ZooKeeper cannot contain a colon");
    }
    Ok(Login { user, password })
}

fn parse_host(text: &str) -> Result<String, &'static str> {
    const FLAW: &str = "each server is written as host or host:port, an IPv6 address in brackets";
    let name_ends = if text.starts_with('[') { text.find(']').ok_or(FLAW)? + 1 } else { 0 };
    let colon = text[name_ends..].find(':').map_or(text.len(), |colon| name_ends + colon);
    let (name, port) = (&text[..colon], text[colon..].strip_prefix(':').unwrap_or(DEFAULT_PORT));
    let named = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            !name.is_empty() && name.chars().all(allowed)
        }
    };
    match port.parse::<u16>() {
        Ok(port) if named && port != 0 => Ok(format!("{name}:{port}")),
        _ => Err(FLAW),
    }
}

fn parse_path(text: &str) -> Result<String, &'static str> {
    let path = decode(text.strip_suffix('/').unwrap_or(text))?;
    let mut names = path.split('/').skip(1); // what stands before the first slash is empty
    if names.clone().any(|name| !can_be_a_znode(name)) {
        return Err(
            "a name in the path is empty, `.`, `..` or has a character that ZooKeeper refuses",
        );
    }
    if names.next() == Some("zookeeper") {
        return Err("the znode /zookeeper belongs to ZooKeeper itself");
    }
    Ok(path)
}

/// Whether ZooKeeper takes this as the name of one znode.
pub(super) fn can_be_a_znode(name: &str) -> bool {
    let refused = |c: char| {
        matches!(u32::from(c), 0..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..=0xFFFF)
            || c == '/'
    };
    !name.is_empty() && name != "." && name != ".." && !name.contains(refused)
}

/// Replaces `%40` by `@`, and so on.
fn decode(text: &str) -> Result<String, &'static str> {
    const FLAW: &str = "after a % stand two hexadecimal digits; a % itself is written %25";
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        bytes.push(u8::from_str_radix(digits.ok_or(FLAW)?, 16).map_err(|_| FLAW)?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| "what is written with % is no UTF-8 text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        Target::parse(url).expect_err(url).to_string()
    }

    #[test]
    fn a_url_has_servers_a_path_and_perhaps_a_login() {
        for (url, shown) in [
            ("zookeeper://zk1", "ZooKeeper zk1:2181/vesta"),
            ("zookeeper://zk1/", "ZooKeeper zk1:2181/vesta"),
            ("zookeeper://zk1:2182,10.0.0.2/a/b/", "ZooKeeper zk1:2182,10.0.0.2:2181/a/b"),
            ("zookeeper://[::1]:2182,[fe80::1]/a", "ZooKeeper [::1]:2182,[fe80::1]:2181/a"),
            ("ZOOKEEPER://ids:hunter2@zk1/%C3%A4%20b", "ZooKeeper ids@zk1:2181/ä b"),
        ] {
            let target = Target::with_default_path(url, "/vesta").expect(url);
            assert_eq!(target.to_string(), shown);
        }
    }

    #[test]
    fn a_password_may_be_anything_and_never_shows() {
        for (written, meant) in [
            ("hunter2", "hunter2"),
            ("hunter2%40%2F%3a%3F%23%25", "hunter2@/:?#%"),
            ("hunter2@x:y", "hunter2@x:y"),
        ] {
            let target = Target::parse(&format!("zookeeper://ids:{written}@zk1/a")).expect(written);
            let login = target.login.as_ref().expect("a login");
            assert_eq!(login.digest(), format!("ids:{meant}"));
            assert!(!format!("{target} {target:?}").contains("hunter2"));
        }
    }

    #[test]
    fn what_is_malformed_is_refused_without_repeating_it() {
        for (url, reason) in [
            ("zookeeper:zk1", "servers"),
            ("zookeeper://", "host:port"),
            ("zookeeper:///vesta", "host:port"),
            ("zookeeper://zk1,,zk2", "host:port"),
            ("zookeeper://zk1:port", "host:port"),
            ("zookeeper://zk1:0", "host:port"),
            ("zookeeper://zk1:", "host:port"),
            ("zookeeper://::1", "host:port"),
            ("zookeeper://[::1", "host:port"),
            ("zookeeper://[zk1]:2181", "host:port"),
            ("zookeeper://[::1]2181", "host:port"),
            ("zookeeper://ids:hunter2", "host:port"),
            ("zookeeper://ids:hunter2@", "host:port"),
            ("zookeeper://zk 1", "host:port"),
            ("zookeeper://hunter2@zk1", "password is missing"),
            ("zookeeper://:hunter2@zk1", "empty"),
            ("zookeeper://ids:@zk1", "empty"),
            ("zookeeper://i%3Ads:hunter2@zk1", "colon"),
            ("zookeeper://ids:hunter2%4@zk1", "%25"),
            ("zookeeper://ids:hunter2%zz@zk1", "%25"),
            ("zookeeper://ids:hunter2%é@zk1", "%25"),
            ("zookeeper://ids:hunter2%FF@zk1", "UTF-8"),
            ("zookeeper://ids:hun/hunter2@zk1", "%2F"),
            ("zookeeper://ids:hun?hunter2@zk1", "%3F"),
            ("zookeeper://zk1/vesta?timeout=hunter2", "no options"),
            ("zookeeper://zk1/vesta#hunter2", "no options"),
            ("zookeeper://zk1//vesta", "path is empty"),
            ("zookeeper://zk1/vesta//", "path is empty"),
            ("zookeeper://zk1/a/../b", "path is empty, `.`, `..`"),
            ("zookeeper://zk1/a%00", "path is empty, `.`, `..`"),
            ("zookeeper://zk1/zookeeper/config", "belongs to ZooKeeper"),
        ] {
            let said = refusal(url);
            assert!(said.contains(reason), "{url}: {said}");
            assert!(said.ends_with(EXAMPLE), "{url}: {said}");
            assert!(!said.contains("hunter2"), "{url}: {said}");
        }
    }
}

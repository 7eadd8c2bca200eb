//! Showing a URL without its secrets.

use std::ops::Range;

use crate::open::backend_of;

const HIDDEN: &str = "***";

/// What the name of an option contains if its value is a secret.
const SECRET_WORDS: &[&str] = &["pass", "pwd", "secret", "token", "auth", "key", "cred"];

/// The URL of a store as it may be shown: passwords are replaced by `***`. From a malformed URL
/// rather too much is hidden than too little.
///
/// ```
/// let shown = vesta_store::redact("mysql://vesta:hunter2@db:3306/ids?ssl=on&password=hunter3");
/// assert_eq!(shown, "mysql://vesta:***@db:3306/ids?ssl=on&password=***");
/// ```
pub fn redact(url: &str) -> String {
    // From the first colon: a later `://` may be a part of a password.
    let (scheme, body_at) = match url.find(':') {
        Some(colon) if url[colon..].starts_with("://") => (&url[..colon], colon + 3),
        Some(colon) => (&url[..colon], colon + 1),
        None => ("", 0),
    };
    let mut secrets = [user_info(url, scheme, body_at), port(url, scheme, body_at), option(url)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    secrets.sort_by_key(|secret| secret.start);
    let mut shown = String::new();
    let mut at = 0;
    for secret in secrets {
        if secret.start >= at {
            shown.push_str(&url[at..secret.start]);
            shown.push_str(HIDDEN);
        }
        at = at.max(secret.end);
    }
    shown + &url[at..]
}

/// The password in `user:password@host`. A password may itself contain `@`, `/`, `?` or `:` that
/// somebody forgot to encode, so it reaches from the first colon to the last `@`.
fn user_info(url: &str, scheme: &str, body_at: usize) -> Option<Range<usize>> {
    let end = url.rfind('@').filter(|at| *at >= body_at)?;
    match url[body_at..end].find(':') {
        Some(colon) => Some(body_at + colon + 1..end),
        // One word alone may be a token; in a path it is none.
        None => (backend_of(scheme) != Some("sqlite")).then_some(body_at..end),
    }
}

/// What stands where a port belongs but is not one: a password whose host was forgotten.
fn port(url: &str, scheme: &str, body_at: usize) -> Option<Range<usize>> {
    if backend_of(scheme) == Some("sqlite") {
        return None;
    }
    if !url[..body_at].ends_with("://") && backend_of(scheme).is_none() && body_at > 0 {
        return Some(body_at..url.len()); // `name:password`
    }
    let authority = url[body_at..].split(['/', '?', '#']).next().unwrap_or_default();
    let mut at = body_at;
    for host in authority.split(',') {
        let name_ends = if host.starts_with('[') { host.find(']').unwrap_or(0) } else { 0 };
        if let Some(colon) = host[name_ends..].find(':') {
            let port_at = name_ends + colon + 1;
            let port = &host[port_at..];
            if !port.is_empty() && port.parse::<u16>().is_err() {
                let end = url.rfind('@').filter(|end| *end > at + port_at);
                return Some(at + port_at..end.unwrap_or(url.len()));
            }
        }
        at += host.len() + 1;
    }
    None
}

/// Everything from the value of the first secret option on: the value may contain an `&` that
/// somebody forgot to encode.
fn option(url: &str) -> Option<Range<usize>> {
    let is_edge = |c: char| matches!(c, '?' | '&' | ';' | '#');
    let mut at = url.find(is_edge)? + 1;
    loop {
        let piece = url[at..].split(is_edge).next().unwrap_or_default();
        if let Some((name, _)) = piece.split_once('=') {
            let name = name.to_ascii_lowercase();
            // An encoded name may be any.
            if name.contains('%') || SECRET_WORDS.iter().any(|word| name.contains(word)) {
                return Some(at + name.len() + 1..url.len());
            }
        }
        at += piece.len() + 1;
        if at >= url.len() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_url_stays_readable() {
        for (url, shown) in [
            ("mysql://vesta:hunter2@db:3306/ids", "mysql://vesta:***@db:3306/ids"),
            ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0"),
            (
                "postgres://db/ids?sslmode=on&Password=hunter2",
                "postgres://db/ids?sslmode=on&Password=***",
            ),
            ("etcd://a:1,b:2", "etcd://a:1,b:2"),
            ("zookeeper://a:2181,[::1]:2181/vesta", "zookeeper://a:2181,[::1]:2181/vesta"),
            ("sqlite:vesta-data/vesta.db", "sqlite:vesta-data/vesta.db"),
            ("sqlite:C:\\data\\vesta.db", "sqlite:C:\\data\\vesta.db"),
            ("sqlite:///srv/a@b/vesta.db", "sqlite:///srv/a@b/vesta.db"),
            ("vesta.db", "vesta.db"),
            ("", ""),
        ] {
            assert_eq!(redact(url), shown);
        }
    }

    #[test]
    fn a_planted_secret_never_shows() {
        for url in [
            "mysql://u:hunter2@h/d",
            "mysql://u:hunter2@@h/d",
            "mysql://u:@hunter2@h/d",
            "mysql://u:a/hunter2@h/d",
            "mysql://u:a?hunter2@h/d",
            "mysql://u:a#hunter2@h/d",
            "mysql://u:a:hunter2@h/d",
            "mysql://u:hunter2",
            "mysql://u:hunter2/d",
            "mysql://u:99999hunter2",
            "mysql://u@h:hunter2",
            "mysql://h:3306,u:hunter2/d",
            "mysql:u:hunter2@h",
            "mysql:u:hunter2",
            "mysql:u:hunter2://@h",
            "mysql:u:x://hunter2:1@h",
            "mysql:/u:hunter2@h/d",
            "mysql:///u:hunter2@h/d",
            "redis://hunter2@h",
            "redis:hunter2@h",
            "u:hunter2@h/d",
            "u:hunter2",
            "//u:hunter2@h",
            "u@hunter2@h",
            "://u:hunter2@h",
            "sqlite://u:hunter2@h/d",
            "my sql://u:hunter2@h/d",
            "mysql://h/d?password=hunter2",
            "mysql://h/d?PASSWD=hunter2",
            "mysql://h/d?a=b;pwd=hunter2",
            "mysql://h/d?a=b&auth_token=x&hunter2",
            "mysql://h/d?password=x&hunter2=1",
            "mysql://h/d?password=x@hunter2",
            "mysql://h/d?password=hunter2@x",
            "mysql://u:x@h/d?password=x@hunter2",
            "mysql://h/d?pass%77ord=hunter2",
            "mysql://h/d#password=hunter2",
            "mysql://h/d??&&password=hunter2",
            "sqlite:a.db?key=hunter2",
            "sqlite:a.db?password=hunter2",
            "mysql://ü:hunter2@ö/d?é=1&password=hunter2",
            "mysql://[::1:hunter2@h",
            "mysql://[::1]:hunter2",
        ] {
            let shown = redact(url);
            assert!(!shown.contains("hunter2"), "{url} shows as {shown}");
            assert!(shown.contains(HIDDEN), "{url} shows as {shown}");
        }
    }
}

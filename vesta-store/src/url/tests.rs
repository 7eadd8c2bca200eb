use super::*;

fn parsed(text: &str) -> StoreUrl {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_part_is_found() {
    let url = parsed("ETCDS://an%6E:s3%40cret@a:1,[::1]:2,c.d_e-f/x%20/y.z/?ca=/etc/c%26a.pem");
    assert_eq!(url.kind(), Kind::Etcd);
    assert!(url.has_scheme("etcds") && !url.has_scheme("etcd"));
    assert_eq!(
        (url.user.as_deref(), url.password.as_deref()),
        (Some("ann"), Some("s3@cret"))
    );
    let hosts = url.servers(2379);
    assert_eq!(hosts, ["a:1", "[::1]:2", "c.d_e-f:2379"]);
    assert_eq!(url.path, "x /y.z");
    assert_eq!(
        (url.option("ca"), url.option("prefix")),
        (Some("/etc/c&a.pem"), None)
    );

    let least = parsed("redis://:hunter2@cache");
    assert_eq!(
        (least.user.as_deref(), least.password.as_deref()),
        (None, Some("hunter2"))
    );
    assert_eq!(
        (least.hosts.len(), &*least.path, least.option("prefix")),
        (1, "", None)
    );
    assert_eq!(parsed("mysql:///ids?socket=/run/s").hosts, []);
    assert_eq!(parsed("mysql://v@h/ids").user.as_deref(), Some("v"));
    assert_eq!(
        parsed("postgres://%2Frun%2Fpg/ids").hosts[0].name,
        "%2Frun%2Fpg"
    );
}

#[test]
fn two_slashes_after_sqlite_are_not_part_of_the_path() {
    for (rest, path) in [
        ("a/b.db", "a/b.db"),
        ("/a/b.db", "/a/b.db"),
        ("///a/b.db", "/a/b.db"),
        ("//a.db", "a.db"),
        ("C:\\data\\100% ü.db", "C:\\data\\100% ü.db"),
    ] {
        assert_eq!(parsed(&format!("sqlite:{rest}")).path, path);
    }
}

#[test]
fn an_encoded_password_may_be_anything_and_never_shows() {
    for (written, meant) in [
        ("hunter2", "hunter2"),
        ("hunter2%40%2F%3a%3F%23%25", "hunter2@/:?#%"),
        ("hunter2@x:y", "hunter2@x:y"),
        ("hunter2 `é`", "hunter2 `é`"),
    ] {
        let url = parsed(&format!("zookeeper://ids:{written}@zk1/a"));
        assert_eq!(url.password.as_deref(), Some(meant));
        assert_eq!(format!("{url} {url:?}"), {
            let shown = "zookeeper://ids:***@zk1/a";
            format!("{shown} {shown:?}")
        });
    }
}

#[test]
fn an_invalid_url_is_refused_without_quoting_it() {
    for (url, reason) in [
        ("mysql:u:hunter2@h", "no `//`"),
        ("mysql://u:12/hunter2@h/d", "%2F"),
        ("mysql://u:12#hunter2@h/d", "%23"),
        ("mysql://h#hunter2", "%23"),
        (
            "mysql://h/a?hunter2",
            "unknown option; expected one of ssl-mode, ssl-ca",
        ),
        ("mysql://h/d?password=hunter2", "unknown option"),
        ("mysql://h/d?ssl-mode=a&ssl-mode=hunter2", "twice"),
        ("postgres://h/d?options[=hunter2", "unknown option"),
        ("postgres://h/d?password=hunter2", "unknown option"),
        ("mysql://a,b/d", "one server"),
        ("redis://", "each server"),
        ("redis://hunter2@cache", "password is missing"),
        ("redis://c?prefix=a;hunter2", "%3B"),
        ("redis://c?password=hunter2", "expected one of prefix;"),
        ("etcd:///hunter2", "each server"),
        ("etcd://h,", "each server"),
        ("etcd://h:0", "each server"),
        ("etcd://h:", "each server"),
        ("etcd://h:+1", "each server"),
        ("etcd://h:65536", "each server"),
        ("etcd://u:hunter2", "each server"),
        ("etcd://u:hunter2@", "each server"),
        ("etcd://[::1", "each server"),
        ("etcd://[hunter2]", "each server"),
        ("etcd://[::1]hunter2", "each server"),
        ("etcd://::1", "each server"),
        ("etcd://h h", "each server"),
        ("etcd://hé", "each server"),
        ("etcd://h%41", "each server"),
        ("etcd://u:hunter2%@h", "%25"),
        ("etcd://u:hunter2%2@h", "%25"),
        ("etcd://u:hunter2%+2@h", "%25"),
        ("etcd://u:hunter2%ff@h", "UTF-8"),
        ("etcd://h//", "part of the path"),
        ("etcd://h/a//b", "part of the path"),
        ("zookeeper://h/a/../b", "part of the path"),
        ("zookeeper://h/a/%2e%2E", "part of the path"),
        ("zookeeper://h/a?timeout=hunter2", "takes no options"),
        ("zookeeper://h/a\thunter2", "control character"),
        ("sqlite:", "path of the database is missing"),
        ("sqlite://", "path of the database is missing"),
        ("sqlite:a.db?password=hunter2", "takes no options"),
        ("sqlite:a\0b", "NUL"),
    ] {
        let error = url.parse::<StoreUrl>().expect_err(url);
        assert!(
            matches!(error, OpenError::Malformed { .. }),
            "{url}: {error:?}"
        );
        let said = error.to_string();
        assert!(
            said.contains(reason) && said.contains("; write "),
            "{url}: {said}"
        );
        assert!(!said.contains("hunter2"), "{url}: {said}");
    }
}

#[test]
fn the_rest_of_a_url_stays_readable() {
    for (url, shown) in [
        (
            "mysql://vesta:hunter2@db:3306/ids",
            "mysql://vesta:***@db:3306/ids",
        ),
        ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0"),
        ("mysql://hunter2@db/ids", "mysql://***@db/ids"),
        (
            "mysql://u:a@b@db/ids?ssl-key=hunter2&charset=x",
            "mysql://u:***@db/ids?***",
        ),
        (
            "postgres://db/ids?options[a]=b",
            "postgres://db/ids?options[a]=b",
        ),
        ("etcd://a:1,b:2", "etcd://a:1,b:2"),
        (
            "zookeeper://a:2181,[::1]:2181/vesta",
            "zookeeper://a:2181,[::1]:2181/vesta",
        ),
        ("sqlite:vesta-data/vesta.db", "sqlite:vesta-data/vesta.db"),
        ("sqlite:C:\\data\\vesta.db", "sqlite:C:\\data\\vesta.db"),
        ("sqlite:///srv/a@b/vesta.db", "sqlite:///srv/a@b/vesta.db"),
        ("http://collector:4317/v1", "http://collector:4317/v1"),
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
        "http://h/?auth=hunter2",
        "mysql://h/d?password=hunter2",
        "mysql://h/d?PASSWD=hunter2",
        "mysql://h/d?a=b;pwd=hunter2",
        "mysql://h/d?a=b&auth_token=x&hunter2",
        "mysql://h/d?password=x&hunter2=1",
        "mysql://h/d?password=x@hunter2",
        "mysql://h/d?password=hunter2@x",
        "mysql://u:x@h/d?password=x@hunter2",
        "mysql://h/d?pass%77ord=hunter2",
        "mysql://h/d?ssl-ke%79=hunter2",
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

#[test]
fn one_plain_server_may_be_reached_by_another_way() {
    let way = "127.0.0.1:7".parse().expect("an address");
    for (url, moved) in [
        (
            "mysql://a:p%40b@db:3306/x?charset=utf8",
            "mysql://a:p%40b@127.0.0.1:7/x?charset=utf8",
        ),
        (
            "redis://tls:ssl@[::1]:6379/0",
            "redis://tls:ssl@127.0.0.1:7/0",
        ),
        ("etcd://etcd1:2379", "etcd://127.0.0.1:7"),
    ] {
        let by_way = StoreUrl::from_str(url).expect("a URL").by_way_of(way);
        assert_eq!(by_way.expect("it names one").expose(), moved);
    }
    for url in [
        "sqlite:pool.db",
        "etcd://etcd1",
        "zookeeper://a:1,b:2/x",
        "rediss://cache:6379/0",
        "etcds://etcd1:2379",
        "vestas://ids:50051",
        "postgres://db:5432/x?sslmode=verify-full",
        "mysql://db:3306/x?socket=/tmp/s",
    ] {
        let url = StoreUrl::from_str(url).expect("a URL");
        assert_eq!(
            (url.one_server(), url.by_way_of(way)),
            (None, None),
            "{url}"
        );
    }
}

//! Settings of TLS and tokens.

use std::fs;
use std::path::Path;

use vesta_boot::commands::TokenCommand;
use vesta_boot::settings::Values;
use vesta_boot::{Api, Config, Invocation, Scopes};

/// SHA-256 of "abc" and of "abd".
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const ABD: &str = "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9";

fn raw(args: &[&str]) -> Result<Values, String> {
    match Invocation::read("vesta", &[Api::Grpc], args) {
        Ok(Invocation::Run(raw)) => Ok(raw),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn config(args: &[&str]) -> Result<Config, String> {
    Config::check(&raw(args)?).map_err(|error| error.to_string())
}

/// Writes a file with this text into a folder and returns the flag that names it.
fn file(folder: &Path, text: &str) -> [String; 2] {
    let path = folder.join("vesta.toml");
    fs::write(&path, text).expect("a file");
    [
        "--config".to_owned(),
        path.to_str().expect("a plain path").to_owned(),
    ]
}

fn with_file(text: &str) -> Result<(Values, Config), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let args = file(folder.path(), text);
    let raw = raw(&[&args[0], &args[1]])?;
    Config::check(&raw)
        .map(|config| (raw, config))
        .map_err(|error| error.to_string())
}

fn table(name: &str, sha256: &str, scopes: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\nscopes = [{scopes}]\n")
}

const PUBLIC: [&str; 4] = ["--tls-cert", "c.pem", "--tls-key", "k.pem"];
const ADMIN: [&str; 4] = ["--admin-tls-cert", "c.pem", "--admin-tls-key", "k.pem"];

#[test]
fn tls_is_off_without_certificate_and_key() {
    let config = self::config(&[]).expect("right settings");
    assert!(config.tls.is_none() && config.admin_tls.is_none() && config.auth.is_none());

    let text = "[tls]\ncert = \"a\"\nkey = \"b\"\nclient_ca = \"c\"\n[admin]\ntls.cert = \"d\"\n\
        tls.key = \"e\"\n";
    let (raw, config) = with_file(text).expect("right settings");
    let files = config.tls.clone().expect("it is on");
    assert_eq!((files.setting, files.cert.to_str()), ("tls", Some("a")));
    assert_eq!(
        files
            .client_ca
            .and_then(|path| path.to_str().map(str::to_owned))
            .as_deref(),
        Some("c")
    );
    let files = config.admin_tls.clone().expect("it is on");
    assert_eq!(
        (files.setting, files.key.to_str()),
        ("admin.tls", Some("e"))
    );
    assert!(files.client_ca.is_none());
    let printed = config.print(&raw);
    for line in [
        "[tls]",
        "cert = \"a\" ",
        "client_ca = \"c\" ",
        "tls.cert = \"d\" ",
    ] {
        assert!(
            printed.lines().any(|it| it.starts_with(line)),
            "{line} in\n{printed}"
        );
    }
    let again = with_file(&printed).expect("what was printed is a file").1;
    // The printed settings name the pool.
    let named = format!("{config:?}").replace("unnamed_pool: true", "unnamed_pool: false");
    assert_eq!(format!("{again:?}"), named);

    for (args, expected) in [
        (&["--tls-cert", "c"][..], "tls.cert needs tls.key too"),
        (&["--tls-key", "k"], "tls.key needs tls.cert too"),
        (
            &["--tls-client-ca", "a"],
            "tls.client_ca needs tls.cert and tls.key too",
        ),
        (
            &["--admin-tls-cert", "c"],
            "admin.tls.cert needs admin.tls.key too",
        ),
        (
            &[&ADMIN[..], &["--admin-listen", "off"]].concat(),
            "admin.tls is for the admin listener, which is off",
        ),
    ] {
        let said = self::config(args).map(drop).expect_err(expected);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_listener_beyond_loopback_needs_tls_or_allow_plaintext() {
    let open = ["--grpc-listen", "0.0.0.0:5", "--machine-id", "1"];
    let both = [&open[..], &["--admin-listen", "0.0.0.0:6"]].concat();
    for args in [
        &[&open[..], &PUBLIC].concat()[..],
        &[&both[..], &PUBLIC, &ADMIN].concat(),
        &[&both[..], &["--allow-plaintext"]].concat(),
        &[&both[..], &PUBLIC, &["--allow-plaintext"]].concat(),
    ] {
        assert_eq!(config(args).map(drop), Ok(()), "{args:?}");
    }
    for (args, expected) in [
        (
            &open[..],
            "grpc.listen (0.0.0.0:5) is reachable from other hosts and not encrypted; set tls.cert",
        ),
        (
            &[&open[..], &ADMIN].concat(),
            "grpc.listen (0.0.0.0:5) is reachable",
        ),
        (
            &[&both[..], &PUBLIC].concat(),
            "admin.listen (0.0.0.0:6) is reachable from other hosts and not encrypted; set \
             admin.tls.cert and admin.tls.key, or set allow_plaintext = true",
        ),
    ] {
        let said = config(args).map(drop).expect_err(expected);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn tokens_need_tls_beyond_loopback_unless_plaintext_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [flag, path] = file(folder.path(), &table("ci", ABC, "\"generate\""));
    let on_loopback = [flag.as_str(), &path];
    assert!(config(&on_loopback).expect("right settings").auth.is_some());
    let open = [
        &on_loopback[..],
        &["--grpc-listen", "10.0.0.1:5", "--machine-id", "1"],
    ]
    .concat();
    let said = config(&open).map(drop).expect_err("not encrypted");
    assert!(
        said.contains("so tokens could be read in transit; set tls.cert"),
        "{said}"
    );
    for also in [&PUBLIC[..], &["--allow-plaintext"]] {
        assert!(config(&[&open[..], also].concat()).is_ok(), "{also:?}");
    }
}

#[test]
fn tokens_are_tables_of_the_file() {
    let two = table("ci", ABC, "\"read\", \"generate\"")
        + &table("web.1", &ABD.to_uppercase(), "\"metrics\"");
    let (raw, config) = with_file(&two).expect("right settings");
    let auth = config.auth.as_ref().expect("there are some");
    let shown: Vec<_> = auth.tokens().iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(shown, ["ci (generate, read)", "web.1 (metrics)"]);
    assert!(auth.check([&b"Bearer abc"[..]], Scopes::READ).is_ok());
    assert!(auth.check([&b"Bearer abd"[..]], Scopes::METRICS).is_ok());
    assert!(auth.check([&b"Bearer abd"[..]], Scopes::READ).is_err());

    // The digest of a token that is not random would reveal it to a brute-force search.
    let shown = format!("{raw:?} {config:?} {}", config.print(&raw));
    assert!(
        shown.contains("web.1") && shown.contains("sha256 = \"***\""),
        "{shown}"
    );
    assert!(!shown.to_lowercase().contains(&ABC[..8]), "{shown}");
    assert!(!shown.to_lowercase().contains(&ABD[..8]), "{shown}");
    assert!(
        with_file("[auth]\n")
            .expect("right settings")
            .1
            .auth
            .is_none()
    );
}

#[test]
fn an_invalid_token_is_refused_and_not_quoted() {
    let fine = table("ci", ABC, "\"read\"");
    for (text, expected) in [
        (
            table("", ABC, "\"read\""),
            "line 2: name must be 1 to 64 letters",
        ),
        (
            table("s3cret token", ABC, "\"read\""),
            "line 2: name must be 1 to 64 letters",
        ),
        (
            table("ci", "s3cret", "\"read\""),
            "line 3: sha256 must be the SHA-256",
        ),
        (
            table("ci", &ABC[1..], "\"read\""),
            "line 3: sha256 must be the SHA-256",
        ),
        (
            table("ci", ABC, ""),
            "line 4: scopes must be some of generate, read, segments",
        ),
        (
            table("ci", ABC, "\"s3cret\""),
            "line 4: scopes must be some of generate, read, segments",
        ),
        (
            fine.clone() + &table("ci", ABD, "\"read\""),
            "[[auth.tokens]]: `ci` and `ci` have the same name or sha256",
        ),
        (
            fine.clone() + &table("web", ABC, "\"read\""),
            "[[auth.tokens]]: `ci` and `web` have the same name or sha256",
        ),
        (
            fine + "token = \"s3cret\"\n",
            "line 5: unknown field `token`",
        ),
        (
            table("ci", ABC, "\"pool\"") + "namespaces = []\n",
            "line 5: namespaces is empty; leave it out",
        ),
        (
            table("ci", ABC, "\"pool\"") + "namespaces = [\"s3cret name\"]\n",
            "line 5: each of namespaces must be 1 to 64 letters",
        ),
        (
            "[[auth.tokens]]\nname = \"ci\"\n".to_owned(),
            "missing field `sha256`",
        ),
        (
            "[auth]\ntokens = [\"s3cret\"]\n".to_owned(),
            "line 2: invalid type: string",
        ),
    ] {
        let said = with_file(&text).map(|_| ()).expect_err(expected);
        assert!(said.contains(expected), "{text}: {said}");
        assert!(!said.contains("s3cret") && !said.contains('\n'), "{said}");
    }
}

#[test]
fn making_a_token_needs_no_settings() {
    let new = |args: &[&str]| match Invocation::read("vesta", &[Api::Grpc], args) {
        Ok(Invocation::Token(TokenCommand::New { name, scopes }, _)) => {
            Ok((name, scopes.join(" ")))
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let usual = Ok(("ci".to_owned(), "generate read segments serials".to_owned()));
    assert_eq!(new(&["token", "new", "--name", "ci"]), usual);
    let broken = ["--config", "/no/such/file", "token", "new", "--name", "ci"];
    assert_eq!(new(&broken), usual, "nothing is read");
    let some = ["token", "new", "--name", "p", "--scopes", "metrics,admin"];
    assert_eq!(new(&some), Ok(("p".to_owned(), "metrics admin".to_owned())));
    for args in [
        &["token"][..],
        &["token", "new"],
        &["token", "new", "--name", "a", "--scopes=all"],
    ] {
        assert!(new(args).is_err(), "{args:?}");
    }
}

//! TLS files: validation errors, and reloading.

use std::fs;

use vesta_boot::{Protocol, Tls, TlsFiles};
use vesta_intf::UnixMillis;
use vesta_testkit::certificates::{Authority, Usage};

/// 2030-01-01T00:00:00Z.
const NEW_YEAR_2030: UnixMillis = UnixMillis(1_893_456_000_000);

fn load(files: &TlsFiles) -> Result<Tls, String> {
    Tls::load(files, Protocol::Http2).map_err(|error| error.to_string())
}

#[test]
fn valid_files_are_loaded_with_their_expiry() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("one");
    let server = authority.issue(&["a.test"], Usage::ServerAuth, 2030);
    let files = server.write(folder.path(), TlsFiles::new);
    let tls = load(&files).expect("sound files");
    assert_eq!(tls.valid_until(), NEW_YEAR_2030);
    assert!(!tls.needs_client_certificates());
    let tls = load(
        &files
            .clone()
            .client_ca(authority.write(folder.path().join("clients.pem"))),
    )
    .expect("sound files");
    assert!(tls.needs_client_certificates());

    // A chain, and a file with both certificate and key.
    let all = format!("{}{}{}", server.cert, authority.pem(), server.key);
    fs::write(&files.cert, &all).expect("a file");
    let both = TlsFiles::new(&files.cert, &files.cert);
    assert_eq!(
        load(&both).expect("sound files").valid_until(),
        NEW_YEAR_2030
    );

    // Judged by the clients; the server only warns.
    let expired =
        load(&authority.expired().write(folder.path(), TlsFiles::new)).expect("readable files");
    assert_eq!(expired.valid_until(), UnixMillis(1_577_836_800_000));
}

#[test]
fn a_faulty_file_gives_one_sentence_without_its_contents() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("one");
    let (server, other) = (authority.server(), authority.server());
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nczNjcmV0\n\
         -----END ENCRYPTED PRIVATE KEY-----\n";
    let old_encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
         DEK-Info: AES-256-CBC,00\n\nczNjcmV0\n-----END RSA PRIVATE KEY-----\n";
    let no_key = "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----\n";
    let no_cert = "-----BEGIN CERTIFICATE-----\nczNjcmV0\n-----END CERTIFICATE-----\n";
    let no_base64 = "-----BEGIN CERTIFICATE-----\ns3cret!\n-----END CERTIFICATE-----\n";
    let unended = "-----BEGIN CERTIFICATE-----\nczNjcmV0\n";
    for (file, text, expected) in [
        ("cert.pem", None, "tls.cert: cannot read "),
        ("key.pem", None, "tls.key: cannot read "),
        ("clients.pem", None, "tls.client_ca: cannot read "),
        ("cert.pem", Some(""), "tls.cert: no certificate in "),
        (
            "cert.pem",
            Some(server.key.as_str()),
            "tls.cert: no certificate in ",
        ),
        ("cert.pem", Some(no_cert), "tls.cert: a certificate in "),
        ("cert.pem", Some(no_base64), "tls.cert: a certificate in "),
        ("cert.pem", Some(unended), "tls.cert: a certificate in "),
        ("key.pem", Some(""), "tls.key: no private key in "),
        (
            "key.pem",
            Some(server.cert.as_str()),
            "tls.key: no private key in ",
        ),
        ("key.pem", Some(no_key), "tls.key: the private key in "),
        (
            "key.pem",
            Some(encrypted),
            "is encrypted, and its password cannot be entered",
        ),
        (
            "key.pem",
            Some(old_encrypted),
            "is encrypted, and its password cannot be entered",
        ),
        (
            "key.pem",
            Some(other.key.as_str()),
            "does not belong to the certificate in ",
        ),
        ("clients.pem", Some(""), "tls.client_ca: no certificate in "),
        (
            "clients.pem",
            Some(no_cert),
            "tls.client_ca: a certificate in ",
        ),
    ] {
        let files = server
            .write(folder.path(), TlsFiles::new)
            .client_ca(authority.write(folder.path().join("clients.pem")));
        load(&files).expect("sound files");
        match text {
            Some(text) => fs::write(folder.path().join(file), text).expect("a file"),
            None => fs::remove_file(folder.path().join(file)).expect("it was there"),
        }
        let said = load(&files).map(|_| ()).expect_err(expected);
        assert!(said.contains(expected), "{file}: {said}");
        assert!(said.contains(&format!("/{file}")), "{file}: {said}");
        assert!(!said.contains('\n'), "{said}");
        for secret in [
            "s3cret",
            "czNjcmV0",
            server.key.lines().nth(1).expect("a key"),
        ] {
            assert!(!said.contains(secret), "{said}");
        }
    }
}

#[test]
fn new_files_are_loaded_and_bad_ones_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("one");
    let until = |year| authority.issue(&["a.test"], Usage::ServerAuth, year);
    let files = until(2030).write(folder.path(), TlsFiles::new);
    let tls = load(&files).expect("sound files");
    assert!(!tls.reload().expect("nothing has changed"));

    until(2031).write(folder.path(), TlsFiles::new);
    assert!(tls.reload().expect("sound files"));
    let new = tls.valid_until();
    assert!(new > NEW_YEAR_2030);
    assert!(!tls.reload().expect("nothing has changed"));

    // Half-way through a change: the key belongs to another certificate.
    fs::write(&files.key, until(2032).key).expect("a file");
    let said = tls
        .reload()
        .expect_err("they do not go together")
        .to_string();
    assert!(
        said.contains("does not belong to the certificate"),
        "{said}"
    );
    assert!(
        !tls.reload().expect("it was said"),
        "each fault is reported once"
    );
    fs::remove_file(&files.cert).expect("it was there");
    assert!(
        tls.reload()
            .expect_err("it is gone")
            .to_string()
            .contains("cannot read")
    );
    assert!(!tls.reload().expect("it was said"));
    assert_eq!(tls.valid_until(), new, "the old one stays");

    until(2033).write(folder.path(), TlsFiles::new);
    assert!(tls.reload().expect("sound files again"));
    assert!(tls.valid_until() > new);
}

#[test]
fn no_output_shows_a_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Authority::new("one").server();
    let files = server.write(folder.path(), TlsFiles::new);
    let shown = format!("{files:?} {:?}", load(&files).expect("sound files"));
    assert!(shown.contains("key.pem"), "{shown}");
    assert!(
        !shown.contains(server.key.lines().nth(1).expect("a key")),
        "{shown}"
    );
}

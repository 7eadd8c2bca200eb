//! TLS and tokens: what is refused before anything is sent, and what is never shown. Real handshakes
//! are in vesta-server's tests.

use vesta_client::{Builder, Client};
use vesta_testkit::certificates::{Authority, Issued, Usage};

const HTTPS: &str = "https://vesta.internal:50051";

fn builder() -> Builder {
    Client::builder().endpoint(HTTPS)
}

fn refusal(builder: Builder) -> String {
    builder.build().expect_err("must be refused").to_string()
}

/// A certificate and its key.
fn own() -> (String, String) {
    let Issued { cert, key } = Authority::new("one").issue(&["a.test"], Usage::ClientAuth, 4096);
    (cert, key)
}

#[tokio::test]
async fn https_works_with_a_private_authority() {
    let (cert, key) = own();
    let secure = || builder().ca_certificate(cert.clone());
    assert!(secure().build().is_ok());
    assert!(
        secure()
            .server_name("10.0.0.1")
            .bearer_token("t")
            .build()
            .is_ok()
    );
    assert!(
        secure()
            .client_certificate(cert.clone(), key.clone())
            .build()
            .is_ok()
    );
    for address in [
        "https://10.0.0.1:1",
        "https://[2001:db8::1]:1/",
        "https://localhost:1",
    ] {
        assert!(secure().endpoint(address).build().is_ok(), "{address}");
    }
}

#[tokio::test]
async fn bad_tls_options_are_refused_by_name_and_not_shown() {
    let (cert, key) = own();
    let (_, other_key) = own();
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nczNjcmV0\n\
        -----END ENCRYPTED PRIVATE KEY-----\n";
    let damaged = "-----BEGIN CERTIFICATE-----\nczNjcmV0!\n-----END CERTIFICATE-----\n";
    let secure = || builder().ca_certificate(cert.clone());
    for (builder, says) in [
        (
            builder().ca_certificate(""),
            "ca_certificate: it contains no certificate",
        ),
        (
            builder().ca_certificate(key.clone()),
            "ca_certificate: it contains no certificate",
        ),
        (
            builder().ca_certificate(damaged),
            "ca_certificate: it contains a damaged certificate",
        ),
        (
            secure().client_certificate("", key.clone()),
            "client_certificate: it contains no certificate",
        ),
        (
            secure().client_certificate(cert.clone(), cert.clone()),
            "client_certificate: it contains no private key",
        ),
        (
            secure().client_certificate(cert.clone(), encrypted),
            "client_certificate: the private key is encrypted",
        ),
        (
            secure().client_certificate(cert.clone(), other_key.clone()),
            "client_certificate: certificate and key do not match",
        ),
        (
            secure().server_name("no name"),
            "server_name: \"no name\" is neither a DNS name nor",
        ),
        (
            secure().endpoint("http://10.0.0.1:1"),
            "ca_certificate: is for https, but the endpoint is",
        ),
        (
            Client::builder()
                .endpoint("http://127.0.0.1:1")
                .server_name("a"),
            "server_name: is for https, but the endpoint is",
        ),
    ] {
        let said = refusal(builder);
        assert!(said.starts_with(says), "{says}: {said}");
        for secret in [&key, &other_key] {
            assert!(!said.contains(secret.lines().nth(1).unwrap()), "{said}");
        }
        assert!(!said.contains("czNjcmV0"), "{said}");
    }
}

#[tokio::test]
async fn a_token_in_plain_text_stays_on_the_host_unless_allowed() {
    let to = |address: &str| Client::builder().endpoint(address).bearer_token("s3cr3t");
    for address in [
        "http://127.0.0.1:1",
        "http://127.8.9.1:1",
        "http://[::1]:1",
        "http://[::ffff:127.0.0.1]:1",
        "http://localhost:1",
        "http://LOCALHOST.:1",
        "http://vesta.localhost:1",
    ] {
        assert!(to(address).build().is_ok(), "{address}");
    }
    for address in [
        "http://10.0.0.1:1",
        "http://0.0.0.0:1",
        "http://[2001:db8::1]:1",
        "http://vesta.internal:1",
        "http://localhost.example:1",
        "http://127.0.0.1.example:1",
        "http://notlocalhost:1",
    ] {
        let said = refusal(to(address));
        assert!(
            said.starts_with("bearer_token: could be read on its way to \"http://"),
            "{said}"
        );
        assert!(
            said.contains("call allow_plaintext") && !said.contains("s3cr3t"),
            "{said}"
        );
        assert!(to(address).allow_plaintext().build().is_ok(), "{address}");
        assert!(
            Client::builder().endpoint(address).build().is_ok(),
            "{address}"
        );
        let said = refusal(to("http://127.0.0.1:1").endpoint(address));
        assert!(said.starts_with("bearer_token: "), "one is enough: {said}");
    }
    // Not even when an address with a password is refused.
    let said = refusal(to("http://me:pl4nted@10.0.0.1:1"));
    assert!(
        said.contains("without user or password") && !said.contains("pl4nted"),
        "{said}"
    );
}

#[test]
fn no_debug_format_of_a_builder_shows_the_private_key() {
    let (cert, key) = own();
    let builder = builder()
        .client_certificate(cert, key.clone())
        .bearer_token("s3cr3t");
    let shown = format!("{builder:?} {builder:#?}");
    assert!(
        shown.contains("client_certificate: Some([redacted])"),
        "{shown}"
    );
    assert!(
        !shown.contains(key.lines().nth(1).unwrap()) && !shown.contains("s3cr3t"),
        "{shown}"
    );
    let bytes = format!("{:?}", &key.as_bytes()[40..60]);
    assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "{shown}");
}

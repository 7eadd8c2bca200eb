//! Stores that cannot be reached, or that are silent: what is said about them, and what never is.

use std::net::TcpListener;

use crate::support::{Waiting, folder, run, text};

const SECRET: &str = "pl4nted-s3cret";

/// A URL of every store on the network, for a server at this address.
fn urls(address: &str) -> [String; 7] {
    [
        format!("mysql://vesta:{SECRET}@{address}/ids"),
        format!("postgres://vesta:{SECRET}@{address}/ids"),
        format!("redis://:{SECRET}@{address}/0"),
        format!("rediss://vesta:{SECRET}@{address}/0"),
        format!("zookeeper://vesta:{SECRET}@{address}/vesta"),
        format!("etcd://vesta:{SECRET}@{address}"),
        format!("etcds://vesta:{SECRET}@{address}"),
    ]
}

/// Whatever there is to say.
const LEVEL: &str = "trace,zookeeper_client=trace";

/// A loopback address without listener.
const CLOSED: &str = "127.0.0.1:1";

#[test]
fn at_trace_level_no_password_is_shown() {
    // Takes connections, and says nothing: clients get as far as to send what they send first.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = silent
        .local_addr()
        .map(|address| (silent, address.to_string()));
    let (_open, silent) = silent.expect("its address");
    let folder = folder();
    for address in [CLOSED, &silent] {
        for url in urls(address) {
            let env = [("VESTA_MACHINE_STORE", url.as_str())];
            let quick = ["--log-level", LEVEL, "--machine-request-timeout-ms", "300"];
            let output = run(
                folder.path(),
                &[&["store", "show"], &quick[..]].concat(),
                &env,
            );
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(69), "{url}: {said}");
            assert!(said.contains("127.0.0.1"), "{url}: {said}");
            assert!(!said.contains("s3cret"), "{url}: {said}");
        }
    }
}

#[test]
fn a_program_that_waits_shows_no_password_either() {
    let folder = folder();
    for url in urls(CLOSED) {
        let args = ["--machine-store", &url, "--log-level", LEVEL];
        let mut waiting = Waiting::start(folder.path(), &args);
        waiting.until("the store does not answer; trying again");
        let pages =
            ["/readyz", "/status", "/metrics", "/", "/healthz"].map(|path| waiting.get(path));
        assert!(pages[0].1.contains("waiting for "), "{pages:?}");
        let (code, said) = waiting.stop();
        assert_eq!(code, Some(0), "{said}");
        for text in pages
            .iter()
            .map(|page| page.1.as_str())
            .chain([said.as_str()])
        {
            assert!(!text.contains("s3cret"), "{url}: {text}");
        }
    }
}

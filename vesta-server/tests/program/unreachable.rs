//! Unreachable and silent stores: the messages about them, without passwords.

use std::net::TcpListener;

use crate::support::{folder, run, start_waiting, text};

const SECRET: &str = "pl4nted-s3cret";

/// URLs of every networked store, for a server at this address.
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

/// The most verbose log.
const LEVEL: &str = "trace,zookeeper_client=trace";

/// A loopback address without a listener.
const CLOSED: &str = "127.0.0.1:1";

#[test]
fn at_trace_level_no_password_is_shown() {
    // Accepts connections and sends nothing: clients get as far as their first message.
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
fn a_waiting_program_shows_no_password() {
    let folder = folder();
    for url in urls(CLOSED) {
        let args = ["--machine-store", &url, "--log-level", LEVEL];
        let mut waiting = start_waiting(folder.path(), &args);
        waiting.logs("the store does not answer; trying again");
        let pages =
            ["/readyz", "/status", "/metrics", "/", "/healthz"].map(|path| waiting.get(path));
        assert!(pages[0].1.contains("waiting for "), "{pages:?}");
        waiting.signal("-TERM");
        let ended = waiting.end();
        let said = text(&ended.stderr) + &text(&ended.stdout);
        assert_eq!(ended.status.code(), Some(0), "{said}");
        for text in pages
            .iter()
            .map(|page| page.1.as_str())
            .chain([said.as_str()])
        {
            assert!(!text.contains("s3cret"), "{url}: {text}");
        }
    }
}

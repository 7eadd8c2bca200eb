//! Unchanged clients of the Java Vesta and of Leaf: their requests byte by byte, and the exact responses. As with
//! their keep-alive, several requests share a connection.

use std::net::SocketAddr;

use vesta_intf::IdMeta;

use crate::limits::Server;
use crate::segments::leafs;
use crate::support::{Raw, service, service_of};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Headers an HTTP client sends, in its own order, spacing and letter case.
#[derive(Clone, Copy, Debug)]
struct Client(&'static str);

/// `java.net.HttpURLConnection` of Java 8 as it is (its `HttpURLConnection.acceptString`).
const JAVA: Client = Client(
    "User-Agent: Java/1.8.0_151\r\nHost: {}\r\n\
     Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\nConnection: keep-alive\r\n",
);

/// Spring's `RestTemplate.getForObject(url, String.class)` over `HttpURLConnection`, without and with
/// Jackson on its class path.
const REST_TEMPLATE: Client = Client(
    "Accept: text/plain, */*\r\nUser-Agent: Java/1.8.0_292\r\nHost: {}\r\n\
     Connection: keep-alive\r\n",
);
const REST_TEMPLATE_JACKSON: Client = Client(
    "Accept: text/plain, application/json, application/*+json, */*\r\n\
     User-Agent: Java/11.0.2\r\nHost: {}\r\nConnection: keep-alive\r\n",
);

/// The same for `Long.class`, which Jackson reads.
const REST_TEMPLATE_LONG: Client = Client(
    "Accept: application/json, application/*+json\r\nUser-Agent: Java/1.8.0_292\r\n\
     Host: {}\r\nConnection: keep-alive\r\n",
);

/// OkHttp 3 (its `BridgeInterceptor`), and Feign over it.
const OKHTTP: Client = Client(
    "Host: {}\r\nConnection: Keep-Alive\r\nAccept-Encoding: gzip\r\nUser-Agent: okhttp/3.14.9\r\n",
);
const FEIGN: Client = Client(
    "Accept: */*\r\nHost: {}\r\nConnection: Keep-Alive\r\nAccept-Encoding: gzip\r\n\
     User-Agent: okhttp/3.8.1\r\n",
);

/// Apache HttpClient 4.
const APACHE: Client = Client(
    "Host: {}\r\nConnection: Keep-Alive\r\nUser-Agent: Apache-HttpClient/4.5.13 (Java/1.8.0_292)\r\n\
     Accept-Encoding: gzip,deflate\r\n",
);

/// The tool in the instructions of both projects.
const CURL: Client = Client("User-Agent: curl/7.29.0\r\nHost: {}\r\nAccept: */*\r\n");

/// A connection of a client.
struct Speaks {
    client: Client,
    address: SocketAddr,
    line: Raw,
}

impl Client {
    fn to(self, server: &Server) -> Speaks {
        Speaks {
            client: self,
            address: server.address,
            line: Raw::connect(server.address),
        }
    }
}

impl Speaks {
    /// Sends one request; the answer must be 200 with these headers and no others.
    #[track_caller]
    fn gets(&mut self, uri: &str, content_type: &str, cached: bool) -> String {
        let headers = self.client.0.replace("{}", &self.address.to_string());
        self.line
            .send(&format!("GET {uri} HTTP/1.1\r\n{headers}\r\n"));
        let answer = self.line.answer();
        assert_eq!(answer.status, 200, "{uri}: {:?}: {answer:?}", self.client);
        assert_eq!(
            answer.header("content-type"),
            content_type,
            "{uri}: {:?}",
            self.client
        );
        assert_eq!(
            answer.header("content-length"),
            answer.body.len().to_string()
        );
        let mut expected = vec!["content-length", "content-type", "date"];
        if !cached {
            assert_eq!(answer.header("cache-control"), "no-store");
            expected.insert(0, "cache-control");
        }
        // No compression, no chunks, no cookie; the connection stays open.
        assert!(answer.headers.keys().eq(expected), "{uri}: {answer:?}");
        answer.body
    }
}

/// 2026-01-01T00:00:00Z is second 347184000; genMethod 2, machine 1021:
/// 2 * 2^60 + 347184000 * 2^30 + sequence * 2^10 + 1021.
const VESTA_IDS: u64 = 2_678_628_990_637_310_973;

#[test]
fn a_client_of_the_java_vesta_gets_its_four_endpoints() {
    let server = Server::usual(service(), None);
    let clients = [
        JAVA,
        REST_TEMPLATE,
        REST_TEMPLATE_JACKSON,
        REST_TEMPLATE_LONG,
        OKHTTP,
        APACHE,
        CURL,
    ];
    for (n, client) in clients.into_iter().enumerate() {
        let mut client = client.to(&server);
        let first = 2 * n as u64;
        for seq in [first, first + 1] {
            let id = VESTA_IDS + seq * 1024;
            assert_eq!(client.gets("/genid", TEXT, false), id.to_string());
            assert_eq!(
                client.gets(&format!("/expid?id={id}"), JSON, true),
                format!(
                    r#"{{"genMethod":2,"machine":1021,"seq":{seq},"time":347184000,"type":0,"version":0}}"#
                )
            );
        }
        // Examples of the README of the Java Vesta.
        assert_eq!(
            client.gets("/expid?id=2407837855670862845", JSON, true),
            r#"{"genMethod":2,"machine":1021,"seq":0,"time":94990103,"type":0,"version":0}"#
        );
        assert_eq!(
            client.gets("/transtime?time=94990103", TEXT, true),
            "2018-01-04T02:08:23.000Z"
        );
        let parts = "genMethod=2&type=0&machine=1021&time=94990103&version=0&seq=0";
        let made = client.gets(&format!("/makeid?{parts}"), TEXT, true);
        assert_eq!(made, "2407837855670862845");
    }
}

/// 2026-01-01T00:00:00Z is 478390625343 ms after Leaf's epoch; worker 1021:
/// 478390625343 * 2^22 + 1021 * 2^12 + sequence.
const LEAF_IDS: u64 = 2_006_515_713_442_828_288;

#[test]
fn a_client_of_leaf_gets_numbers_and_snowflake_ids() {
    let server = Server::usual(service_of(IdMeta::SNOWFLAKE), Some(leafs()));
    let clients = [
        (JAVA, TEXT),
        (REST_TEMPLATE, TEXT),
        (REST_TEMPLATE_JACKSON, TEXT),
        (REST_TEMPLATE_LONG, JSON),
        (OKHTTP, TEXT),
        (FEIGN, TEXT),
        (APACHE, TEXT),
        (CURL, TEXT),
    ];
    for (n, (client, digits)) in clients.into_iter().enumerate() {
        let mut client = client.to(&server);
        let first = 2 * n as u64;
        for more in [first, first + 1] {
            let number = client.gets("/api/segment/get/leaf-segment-test", digits, false);
            assert_eq!(number, (1 + more).to_string());
            let id = LEAF_IDS + more;
            assert_eq!(
                client.gets("/api/snowflake/get/test", digits, false),
                id.to_string()
            );
            let uri = format!("/decodeSnowflakeId?snowflakeId={id}");
            let decoded = client.gets(&uri, JSON, true);
            // The time in brackets is in the host's time zone.
            let (millis, rest) = decoded.split_once('(').expect("a readable time");
            assert_eq!(millis, r#"{"timestamp":"1767225600000"#);
            let (readable, rest) = rest.split_once(')').expect("its end");
            assert_eq!(
                readable.len(),
                "2026-01-01 00:00:00.000".len(),
                "{readable}"
            );
            assert_eq!(
                rest,
                format!(r#"","sequenceId":"{more}","workerId":"1021"}}"#)
            );
        }
    }
}

/// Negative control: a checker that accepts anything would accept these.
#[test]
fn the_checker_notices_a_wrong_type_and_a_wrong_header() {
    let server = Server::usual(service(), None);
    let caught = |wrong: fn(&mut Speaks)| {
        let mut client = JAVA.to(&server);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wrong(&mut client))).is_err()
    };
    assert!(caught(|client| _ = client.gets("/genid", JSON, false)));
    assert!(caught(|client| _ = client.gets("/genid", TEXT, true)));
    assert!(caught(|client| _ = client.gets("/expid?id=1", JSON, false)));
    assert!(caught(|client| _ = client.gets("/no/such/path", JSON, true)));
    assert!(!caught(|client| _ = client.gets("/genid", TEXT, false)));
}

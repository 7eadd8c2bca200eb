//! docs/REST.md says what the server does.

use actix_web::test::TestRequest;
use vesta_intf::{ErrorKind, IdFormat, IdMeta};
use vesta_rest::app::ENDPOINTS;

use crate::support::{ask, get, service};

const GUIDE: &str = include_str!("../../../docs/REST.md");

#[test]
fn it_names_every_endpoint_and_every_kind_of_error() {
    for endpoint in ENDPOINTS {
        let path = endpoint.path.split("{file").next().unwrap();
        assert!(GUIDE.contains(path), "{path}");
    }
    // What only a server with other modes would answer.
    let elsewhere = [ErrorKind::Unsupported];
    for kind in ErrorKind::all().filter(|kind| !elsewhere.contains(kind)) {
        let row = GUIDE.lines().find(|line| line.contains(&format!("`{}`", kind.name())));
        let row = row.unwrap_or_else(|| panic!("{} is missing", kind.name()));
        assert!(row.contains(&kind.http_status().to_string()), "{row}");
    }
}

#[test]
fn it_names_every_format_with_an_example_and_every_layout() {
    for format in IdFormat::ALL {
        let row = GUIDE.lines().find(|line| line.starts_with(&format!("| `{format}` |")));
        let text = format.encode(2_407_837_855_670_862_845);
        assert!(row.is_some_and(|row| row.ends_with(&format!("| `{text}` |"))), "{format} {text}");
    }
    let (_, layouts) = GUIDE.split_once("### IDs of others").unwrap();
    for meta in IdMeta::all_known() {
        assert!(layouts.contains(&format!("`{}`", meta.name())), "{meta}");
    }
}

#[actix_web::test]
async fn its_examples_are_real() {
    let service = service();
    let mut checked = 0;
    let mut lines = GUIDE.lines();
    while let Some(line) = lines.next() {
        let Some((options, rest)) =
            line.strip_prefix("$ curl ").and_then(|c| c.split_once("http://127.0.0.1:8088"))
        else {
            continue;
        };
        let uri = rest.split(['\'', ' ']).next().unwrap();
        // Different each time, or on each server.
        let varies = ["/genid", "/v1/id", "/v1/ids?count=3", "/v1/layout"].contains(&uri);
        let answer = match rest.split_once(" -d '") {
            Some((_, body)) => {
                let body = body.trim_end_matches('\'').to_owned();
                let request = TestRequest::post().uri(uri).set_payload(body);
                ask(&service, request).await
            }
            None => get(&service, uri).await,
        };
        if options.contains("-i") {
            let status = lines.next().unwrap();
            assert!(
                status.starts_with(&format!("HTTP/1.1 {} ", answer.status)),
                "{line}: {status}"
            );
            for header in lines.by_ref().take_while(|line| !line.is_empty()) {
                let (name, value) = header.split_once(": ").unwrap();
                assert_eq!(answer.header(name), value, "{line}");
            }
        }
        let shown = lines.next().unwrap();
        if varies {
            assert_eq!(answer.status, 200, "{line}");
        } else {
            assert_eq!(shown, answer.body, "{line}");
            checked += 1;
        }
    }
    assert!(checked >= 15, "{checked}");
}

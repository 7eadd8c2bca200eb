//! vesta-rest in place of Tinyid's server: requests of its clients, and the answers of the original, byte
//! for byte.

use std::collections::HashSet;
use std::net::SocketAddr;

use tempfile::TempDir;
use vesta_testkit::folder;
use vesta_testkit::programs::{FREE_PORTS, Program};

use super::databases::{Database, TOKEN, tinyid};
use crate::http::{ask, get, send};
use crate::programs::{command, serve};

/// Makes a database refuse requests; the reverse makes it answer again.
const FAILS: &str = "ALTER TABLE tiny_id_info RENAME COLUMN max_id TO gone";
const WORKS_AGAIN: &str = "ALTER TABLE tiny_id_info RENAME COLUMN gone TO max_id";

fn in_place(database: &Database) -> (Program, TempDir) {
    let folder = folder();
    let flags = ["--compat=tinyid", "--segment-store", &database.url()];
    (serve("vesta-rest", folder.path(), &flags), folder)
}

fn path(name: &str, tag: &str, more: &str) -> String {
    format!("/tinyid/id/{name}?token={TOKEN}&bizType={tag}{more}")
}

/// The body of the answer to a request.
fn simple(to: SocketAddr, name: &str, tag: &str, more: &str) -> String {
    get(to, &path(name, tag, more))
}

#[test]
fn the_answers_match_the_original() {
    let database = tinyid(&[
        ("test", 1, "100000", 1, 0),
        ("other", 1, "100000", 1, 0),
        ("odd", 1, "100000", 2, 1),
        ("three", 1000, "1000", 3, 1),
        ("no_step", 1, "NULL", 1, 0),
        ("no_delta", 1, "1000", 0, 0),
        ("no_remainder", 1, "1000", 3, 3),
    ]);
    let (program, _folder) = in_place(&database);
    let to = program.address();
    let wrong = |name: &str| get(to, &format!("/tinyid/id/{name}?bizType=test&token=wrong"));
    let token_is_error = r#"{"data":null,"code":5,"message":"token is error"}"#;
    for (name, tag, more, expected) in [
        ("nextSegmentIdSimple", "test", "", "1,20001,100001,1,0"),
        (
            "nextSegmentIdSimple",
            "test",
            "",
            "100001,120001,200001,1,0",
        ),
        (
            "nextSegmentId",
            "test",
            "",
            r#"{"data":{"maxId":300001,"loadingId":220001,"currentId":200001,"delta":1,"remainder":0},"code":200,"message":""}"#,
        ),
        (
            "nextSegmentId",
            "three",
            "",
            r#"{"data":{"maxId":2000,"loadingId":1200,"currentId":1000,"delta":3,"remainder":1},"code":200,"message":""}"#,
        ),
        ("nextSegmentIdSimple", "odd", "", "1,20001,100001,2,1"),
        (
            "nextId",
            "other",
            "",
            r#"{"data":[2],"code":200,"message":""}"#,
        ),
        ("nextIdSimple", "other", "", "3"),
        ("nextIdSimple", "other", "&batchSize=3", "4,5,6"),
        (
            "nextId",
            "other",
            "&batchSize=2",
            r#"{"data":[7,8],"code":200,"message":""}"#,
        ),
        (
            "nextId",
            "other",
            "&batchSize=",
            r#"{"data":[9],"code":200,"message":""}"#,
        ),
        (
            "nextId",
            "other",
            "&batchSize=0",
            r#"{"data":[],"code":200,"message":""}"#,
        ),
        (
            "nextId",
            "other",
            "&batchSize=-7",
            r#"{"data":[],"code":200,"message":""}"#,
        ),
        ("nextIdSimple", "other", "&batchSize=0", ""),
        ("nextIdSimple", "three", "&batchSize=3", "2002,2005,2008"),
        ("nextIdSimple", "odd", "&batchSize=2", "100003,100005"),
        (
            "nextId",
            "missing",
            "",
            r#"{"data":null,"code":6,"message":"error query segmentId: can not find biztype:missing"}"#,
        ),
        (
            "nextSegmentId",
            "missing",
            "",
            r#"{"data":null,"code":6,"message":"can not find biztype:missing"}"#,
        ),
        ("nextIdSimple", "missing", "", ""),
        ("nextSegmentIdSimple", "missing", "", ""),
        ("nextId", "unknown", "", token_is_error),
        ("nextId", "", "", token_is_error),
        ("nextSegmentId", "unknown", "", token_is_error),
        ("nextSegmentIdSimple", "unknown", "", ""),
    ] {
        assert_eq!(simple(to, name, tag, more), expected, "{name} {tag} {more}");
    }
    assert_eq!(wrong("nextId"), token_is_error);
    assert_eq!(wrong("nextSegmentId"), token_is_error);
    assert_eq!(wrong("nextIdSimple"), "");
    assert_eq!(get(to, "/tinyid/id/nextId"), token_is_error);
    // Invalid rows give an error of Vesta's own.
    for (tag, needs) in [
        ("no_step", "needs whole numbers: a step above 0"),
        ("no_delta", "needs a delta above 0"),
        (
            "no_remainder",
            "needs a delta above 0, and a remainder below that",
        ),
    ] {
        for name in ["nextId", "nextSegmentId"] {
            let said = simple(to, name, tag, "");
            let needs = format!("the row of tag `{tag}` {needs}");
            assert!(
                said.starts_with(r#"{"data":null,"code":6,"#) && said.contains(&needs),
                "{said}"
            );
        }
        assert_eq!(simple(to, "nextSegmentIdSimple", tag, ""), "");
    }
    let (status, said) = ask(to, "GET", &path("nextId", "test", "&batchSize=ten"));
    assert!(
        status == 400 && said.contains("batchSize must be a whole number, but is `ten`"),
        "{said}"
    );
    let many = simple(to, "nextIdSimple", "test", "&batchSize=100001");
    assert_eq!(
        many.split(',').count(),
        100_000,
        "as many as the original gives"
    );
    let (_, metrics) = program.get("/metrics");
    let refused = metrics.lines().any(|line| {
        line.contains("/tinyid/id/nextId\"")
            && line.contains("UNAUTHENTICATED")
            && !line.ends_with(" 0")
    });
    assert!(refused, "errors count as such: {metrics}");
    let (code, log) = program.stop();
    assert_eq!(code, Some(0));
    assert!(!log.contains(TOKEN) && !log.contains("wrong"), "{log}");
}

#[test]
fn a_failing_database_gives_a_tinyid_error() {
    let database = tinyid(&[("test", 1, "10", 1, 0)]);
    let (program, _folder) = in_place(&database);
    let to = program.address();
    assert_eq!(simple(to, "nextIdSimple", "test", ""), "2");
    database.run(FAILS);
    let said = simple(to, "nextSegmentId", "test", "");
    let why = "the store returned no numbers for tag `test`";
    assert_eq!(
        said,
        format!(r#"{{"data":null,"code":6,"message":"{why}"}}"#)
    );
    assert_eq!(simple(to, "nextSegmentIdSimple", "test", ""), "");
    let mut said = String::new();
    while !said.contains("\"code\":6") {
        said = simple(to, "nextId", "test", "&batchSize=100"); // until the numbers in memory are used up
    }
    assert!(
        said.starts_with(r#"{"data":null,"code":6,"#) && said.contains(why),
        "{said}"
    );
    database.run(WORKS_AGAIN);
    while simple(to, "nextIdSimple", "test", "").is_empty() {}
}

#[test]
fn every_method_and_forms_are_accepted() {
    let database = tinyid(&[("test", 1, "10", 1, 0)]);
    let (program, _folder) = in_place(&database);
    let to = program.address();
    let simple = path("nextIdSimple", "test", "");
    for (number, method) in (2..).zip(["GET", "POST", "PUT", "DELETE", "PATCH"]) {
        assert_eq!(
            ask(to, method, &simple),
            (200, number.to_string()),
            "{method}"
        );
    }
    let form = format!("token={TOKEN}&bizType=test&batchSize=2");
    let posted = send(
        to,
        &format!(
            "POST /tinyid/id/nextIdSimple HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded;charset=UTF-8\r\nContent-Length: {}\r\n\r\n\
             {form}",
            form.len()
        ),
    );
    assert_eq!(posted, (200, "7,8".to_owned()));
}

/// The request of the unmodified client, as recorded with Java 17.
fn recorded(to: SocketAddr, tag: &str) -> String {
    format!(
        "POST /tinyid/id/nextSegmentIdSimple?token={TOKEN}&bizType={tag} HTTP/1.1\r\n\
         Cache-Control: no-cache\r\nPragma: no-cache\r\nUser-Agent: Java/17.0.15\r\nHost: {to}\r\n\
         Accept: text/html, image/gif, image/jpeg, */*; q=0.2\r\nConnection: keep-alive\r\n\
         Content-type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n\r\n"
    )
}

#[test]
fn the_recorded_requests_of_the_java_client_are_answered() {
    let database = tinyid(&[("test", 1, "100000", 1, 0), ("odd", 1, "100000", 2, 1)]);
    let (program, _folder) = in_place(&database);
    let to = program.address();
    for (tag, expected) in [
        ("test", "1,20001,100001,1,0"),
        ("odd", "1,20001,100001,2,1"),
        ("test", "100001,120001,200001,1,0"),
        ("missing", ""),
        ("unknown", ""),
    ] {
        assert_eq!(
            send(to, &recorded(to, tag)),
            (200, expected.to_owned()),
            "{tag}"
        );
    }
}

#[test]
fn without_the_flag_the_error_names_it() {
    let database = tinyid(&[("test", 1, "10", 1, 0)]);
    let folder = folder();
    let url = database.url();
    let flags = ["--segment-store", &url, "--segment-table", "tinyid"];
    let program = serve("vesta-rest", folder.path(), &flags);
    let (status, said) = ask(program.address(), "GET", &path("nextId", "test", ""));
    assert!(status == 501 && said.contains("--compat tinyid"), "{said}");
    assert_eq!(
        get(program.address(), "/v1/segments/test/next"),
        r#"{"id":"2"}"#
    );
}

/// The message of a refused start.
fn refused(args: &[&str]) -> String {
    let folder = folder();
    let args = [args, &FREE_PORTS].concat();
    let output = command("vesta-rest", folder.path(), &args)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn conflicting_settings_are_refused_at_start() {
    let database = tinyid(&[("test", 1, "10", 2, 0)]);
    let said = refused(&["--compat=tinyid"]);
    assert!(
        said.contains("compat = tinyid needs Tinyid's database"),
        "{said}"
    );
    let url = database.url();
    let said = refused(&[
        "--compat=tinyid",
        "--segment-table=leaf",
        "--segment-store",
        &url,
    ]);
    assert!(said.contains("remove segment.table"), "{said}");
    database.run("DROP TABLE tiny_id_token");
    let said = refused(&["--compat=tinyid", "--segment-store", &url]);
    assert!(said.contains("tiny_id_token"), "{said}");
    assert!(
        !said.contains("vesta:vesta") && !said.contains(":***@"),
        "{said}"
    );
}

/// The numbers of an answer.
fn ids(answer: &str) -> Vec<u64> {
    answer
        .split(',')
        .map(|it| it.parse().expect("a number"))
        .collect()
}

/// The numbers of a range that a client issues: `current,loading,max,delta,remainder`.
fn lent(answer: &str) -> Vec<u64> {
    let [current, _, max, delta, remainder] = ids(answer)[..] else {
        panic!("{answer}")
    };
    (current + 1..=max)
        .filter(|it| it % delta == remainder)
        .collect()
}

#[test]
fn one_server_per_database_keeps_to_its_remainder() {
    let databases = [0, 1].map(|it| tinyid(&[("test", 1, "10", 2, it)]));
    let mut seen = HashSet::new();
    for _start in 0..3 {
        let servers = databases.each_ref().map(in_place);
        // Callers ask any of the servers.
        for call in 0..200 {
            let remainder = call % 2;
            let to = servers[remainder].0.address();
            let numbers = match call % 10 {
                0 | 5 => lent(&simple(to, "nextSegmentIdSimple", "test", "")),
                1 | 6 => ids(&simple(to, "nextIdSimple", "test", "&batchSize=7")),
                _ => ids(&simple(to, "nextIdSimple", "test", "")),
            };
            for number in numbers {
                assert_eq!(
                    number % 2,
                    u64::from(remainder % 2 == 1),
                    "{number} of database {remainder}"
                );
                assert!(seen.insert(number), "{number} twice");
            }
        }
    }
    assert!(seen.len() > 3 * 200, "{}", seen.len());
}

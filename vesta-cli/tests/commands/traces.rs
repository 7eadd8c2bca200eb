//! Traces: requests of traced callers reach the collector, and no others do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use tonic::Request;
use tonic::transport::Endpoint;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::{ExpIdRequest, GenIdsRequest};
use vesta_testkit::programs::{FREE_PORTS, Program};

const FREE: &str = "127.0.0.1:0";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector on loopback: its address and what it receives.
fn collector() -> (String, Receiver<ExportTraceServiceRequest>) {
    let listener = TcpListener::bind(FREE).expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(stream.read_line(&mut head).expect("a head") > 0, "{head}");
            }
            let head = head.to_lowercase();
            assert!(head.starts_with("post /v1/traces "), "{head}");
            let length = head.split("content-length: ").nth(1).expect("a length");
            let length = length
                .lines()
                .next()
                .expect("it")
                .parse()
                .expect("a number");
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("a body");
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.get_mut().write_all(answer).expect("it listens");
            let request = ExportTraceServiceRequest::decode(&*body).expect("OTLP");
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

fn serve(folder: &Path, collector: &str, batch: &str) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
    command
        .env_clear()
        .env("VESTA_STATE_DIR", folder)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    command.env(
        "OTEL_RESOURCE_ATTRIBUTES",
        "deployment.environment.name=test",
    );
    // Spans are sent once there are this many, or at the stop.
    command
        .env("OTEL_BSP_SCHEDULE_DELAY", "600000")
        .env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", batch);
    Program::serve(command.arg("serve").args(FREE_PORTS)).expect("it starts")
}

fn get(server: &Program, path: &str, header: &str) -> String {
    ask(server, "GET", path, header)
}

fn ask(server: &Program, method: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("a listener");
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\n{header}\r\n"
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// A call whose trace has these flags.
fn traced<T>(message: T, flags: &str) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("traceparent", traceparent(flags).parse().expect("text"));
    request
}

/// Name, attributes in the order of their names, and whether the span failed.
fn described(span: &Span) -> String {
    let attributes = span.attributes.iter().map(|it| {
        let value = it.value.as_ref().and_then(|it| it.value.as_ref());
        match value {
            Some(Value::StringValue(text)) => format!("{}={text}", it.key),
            Some(Value::IntValue(number)) => format!("{}={number}", it.key),
            other => panic!("{}: {other:?}", it.key),
        }
    });
    let mut words: Vec<_> = attributes.collect();
    words.sort();
    let failed = span
        .status
        .as_ref()
        .is_some_and(|it| it.code() == StatusCode::Error);
    words.extend(failed.then(|| "failed".to_owned()));
    format!("{}: {}", span.name, words.join(" "))
}

#[tokio::test]
async fn only_requests_of_traced_callers_are_traced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (collector, exported) = collector();
    let server = serve(folder.path(), &collector, "99");
    let sampled = format!(
        "traceparent: {}\r\ntracestate: shop=7\r\n",
        traceparent("01")
    );
    let answers = [
        get(&server, "/genid", ""),
        get(
            &server,
            "/genid",
            &format!("traceparent: {}\r\n", traceparent("00")),
        ),
        get(&server, "/genid", "traceparent: nonsense\r\n"),
        get(&server, "/genid", &sampled),
        get(&server, "/v1/ids?count=3", &sampled),
    ];
    assert!(
        answers.iter().all(|answer| answer.contains(" 200 OK")),
        "{answers:?}"
    );
    for (path, code) in [
        ("/v1/ids/7", " 200 "),
        ("/makeid?time=0&seq=0&machine=1024", " 400 "),
        ("/nothing?token=secret", " 404 "),
        ("/v1/segments/a/next", " 501 "),
    ] {
        let answer = get(&server, path, &sampled);
        assert!(answer.contains(code), "{answer}");
    }
    assert!(ask(&server, "MAKE-ID", "/v1/id", &sampled).contains(" 405 "));
    let grpc = format!("http://{}", server.grpc().expect("a listener"));
    let channel = Endpoint::from_shared(grpc)
        .expect("an address")
        .connect()
        .await
        .expect("it");
    let mut ids = IdServiceClient::new(channel);
    for flags in ["00", "01"] {
        ids.exp_id(traced(ExpIdRequest { id: 1 }, flags))
            .await
            .expect("fields");
    }
    ids.gen_ids(traced(GenIdsRequest { count: 0 }, "01"))
        .await
        .expect_err("none");
    // The server's shutdown closes this client's connection too.
    let stopped = tokio::task::spawn_blocking(move || server.stop())
        .await
        .expect("it stops");
    assert_eq!(stopped.0, Some(0));

    let exported = exported.recv().expect("sent at the stop");
    let [of_program] = &exported.resource_spans[..] else {
        panic!("{exported:?}")
    };
    let resource = &of_program.resource.as_ref().expect("a resource").attributes;
    let resource: Vec<_> = resource
        .iter()
        .map(|it| format!("{}={:?}", it.key, it.value))
        .collect();
    for named in [
        "service.name=.*\"vesta\"",
        "vesta.namespace=.*\"default\"",
        "environment.name=.*\"test\"",
    ] {
        let (key, value) = named.split_once(".*").expect("both");
        assert!(
            resource
                .iter()
                .any(|it| it.contains(key) && it.contains(value)),
            "{resource:?}"
        );
    }
    let spans: Vec<_> = of_program
        .scope_spans
        .iter()
        .flat_map(|scope| &scope.spans)
        .collect();
    let seen: Vec<_> = spans
        .iter()
        .map(|span| {
            assert_eq!(hex::encode(&span.trace_id), TRACE);
            assert_eq!(hex::encode(&span.parent_span_id), PARENT);
            assert_eq!(span.kind, i32::from(SpanKind::Server));
            assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
            described(span)
        })
        .collect();
    let http = |line: &str, code: u16, path: &str, route: &str| {
        let (verb, error) = line.split_once(' ').unwrap_or((line, ""));
        let name = if route.is_empty() {
            verb.to_owned()
        } else {
            format!("{verb} {route}")
        };
        let error = if error.is_empty() {
            String::new()
        } else {
            format!("error.type={error} ")
        };
        let route = if route.is_empty() {
            String::new()
        } else {
            format!("http.route={route} ")
        };
        format!(
            "{name}: {error}http.request.method={verb} http.response.status_code={code} {route}\
             url.path={path} url.scheme=http"
        )
    };
    let grpc = |method: &str, code: u16, error: &str| {
        format!(
            "vesta.v1.IdService/{method}: {error}rpc.grpc.status_code={code} rpc.method={method} \
             rpc.service=vesta.v1.IdService rpc.system=grpc"
        )
    };
    let expected = [
        http("GET", 200, "/genid", "/genid"),
        http("GET", 200, "/v1/ids", "/v1/ids"),
        http("GET", 200, "/v1/ids/7", "/v1/ids/{id}"),
        http("GET OUT_OF_RANGE", 400, "/makeid", "/makeid"),
        http("GET NOT_FOUND", 404, "/nothing", ""),
        http(
            "GET UNSUPPORTED",
            501,
            "/v1/segments/a/next",
            "/v1/segments/{tag}/next",
        ) + " failed",
        "HTTP: error.type=INVALID http.request.method=_OTHER http.request.method_original=MAKE-ID \
         http.response.status_code=405 url.path=/v1/id url.scheme=http"
            .to_owned(),
        grpc("ExpId", 0, ""),
        grpc("GenIds", 3, "error.type=OUT_OF_RANGE "),
    ];
    assert_eq!(seen, expected);
    assert_eq!(spans[0].trace_state, "shop=7");
}

#[test]
fn an_unreachable_collector_delays_nothing_and_is_reported_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = TcpListener::bind(FREE)
        .expect("a port")
        .local_addr()
        .expect("an address");
    let server = serve(folder.path(), &format!("http://{gone}"), "2");
    let sampled = format!("traceparent: {}\r\n", traceparent("01"));
    for _ in 0..6 {
        assert!(get(&server, "/genid", &sampled).contains(" 200 OK"));
    }
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    assert_eq!(
        log.matches("the collector does not accept spans").count(),
        1,
        "{log}"
    );
}

//! Requests of arbitrary text: each gets a well-formed answer, and the server never faults.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::http::{Method, Uri};
use actix_web::rt::System;
use actix_web::test::{self, TestRequest};
use actix_web::{App, HttpResponse, web};
use serde_json::Value;
use vesta_boot::Running;
use vesta_intf::{FieldOrder, GenMethod, IdMeta, LayoutSpec, TimeUnit, UnixMillis};
use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStore as _};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_rest::app::configure;
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;
use vesta_service::{LocalIdService, MachineSource};

use crate::serials::serials;
use crate::support::{NOW, running};
use texts::{Changes, damaged, kept};

#[path = "../../../scripts/check/fuzz/texts.rs"]
mod texts;

/// A request in the text of HTTP/1.1 without its version; `None` for text that cannot be sent.
fn request(text: &[u8]) -> Option<TestRequest> {
    let (head, body) = match text.windows(2).position(|pair| pair == b"\n\n") {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &[][..]),
    };
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let line = lines.next()?;
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let method = Method::from_bytes(&line[..blank]).ok()?;
    let uri = Uri::try_from(&line[blank + 1..]).ok()?;
    uri.path_and_query()?;
    let mut request = TestRequest::with_uri(&uri.to_string()).method(method);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            request = request.append_header((name, value));
        }
    }
    Some(request.set_payload(body.to_vec()))
}

/// The layouts under which every request is made: Vesta's, uid-generator's, and one whose time field reaches far beyond
/// any calendar.
fn layouts() -> [IdMeta; 3] {
    let far = LayoutSpec {
        version_bits: 0,
        type_bits: 2,
        gen_method_bits: 0,
        time_bits: 51,
        seq_bits: 11,
        machine_bits: 0,
        order: FieldOrder::TimeSeqMachine,
        unit: TimeUnit::Second,
        epoch: UnixMillis(0),
    };
    let uid = LayoutSpec {
        epoch: UnixMillis(1_735_689_600_000),
        ..*IdMeta::UID.spec()
    };
    [
        IdMeta::MAX_PEAK,
        IdMeta::new(uid).unwrap(),
        IdMeta::new(far).unwrap(),
    ]
}

fn segments() -> Arc<SegmentService> {
    let store = Arc::new(MemorySegmentStore::new());
    for key in ["leaf-segment-test", "a/b <i>"] {
        let tag = NewSegmentTag::new(key, 1_000_000).expect("it is right");
        assert!(store.create(&tag).expect("memory answers"));
    }
    let segments = SegmentService::builder(store).build().expect("a service");
    segments.refresh().expect("memory answers");
    Arc::new(segments)
}

/// Invariants of every response.
async fn check_answer<B: MessageBody>(text: &[u8], response: ServiceResponse<B>) {
    let status = response.status().as_u16();
    let header = response.headers().get(CONTENT_TYPE).cloned();
    let kind = header
        .as_ref()
        .map_or("", |value| value.to_str().expect("it is text"));
    let body = to_bytes(response.into_body()).await.ok().expect("a body");
    let say = || {
        format!(
            "{status} {kind} {body:?} to {}",
            String::from_utf8_lossy(text)
        )
    };
    // 501: not offered by this layout or this server.
    assert!((200..500).contains(&status) || status == 501, "{}", say());
    let json =
        || serde_json::from_slice::<Value>(&body).unwrap_or_else(|e| panic!("{e}: {}", say()));
    match kind {
        "application/problem+json" => {
            let problem = json();
            assert_eq!(problem["status"], status, "{}", say());
            assert!(status >= 400 && problem["detail"].is_string(), "{}", say());
        }
        "application/json" => assert!(status == 200 && !json().is_null(), "{}", say()),
        "text/plain; charset=utf-8" | "text/html; charset=utf-8" => {
            assert!(status == 200 && !body.is_empty(), "{}", say());
            assert!(std::str::from_utf8(&body).is_ok(), "{}", say());
        }
        // The files of the Swagger UI under /docs, and the redirect to it.
        _ if text.windows(5).any(|part| part == b"/docs") => {
            assert!(
                matches!(status, 200 | 301 | 302 | 304 | 307 | 308),
                "{}",
                say()
            );
        }
        _ => panic!("{}", say()),
    }
}

/// Runs a target against one application of each layout, made once. Returns the number of texts and the number of
/// requests among them.
fn with_applications(target: impl FnOnce(&dyn Fn(&[u8]))) -> (u32, u32) {
    let system = System::new();
    let (segments, serials) = (segments(), serials());
    let applications = layouts().map(|layout| {
        let clock = ManualClock::at(NOW);
        let machine = 1021.min(layout.max(vesta_intf::Field::Machine));
        let service = LocalIdService::builder()
            .layout(layout)
            .gen_method(if layout.is_vesta() {
                GenMethod::Rest
            } else {
                GenMethod::Embed
            })
            .machine(MachineSource::Stateless(machine))
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .expect("a service");
        let running = running(Arc::new(service), Some(Arc::clone(&segments)));
        let state = Running {
            serials: Some(Arc::clone(&serials)),
            ..running
        };
        let app = App::new().configure(|app| configure(app, web::Data::new(state)));
        (clock, system.block_on(test::init_service(app)))
    });
    let (all, sent) = (Cell::new(0u32), Cell::new(0u32));
    target(&|text| {
        all.set(all.get() + 1);
        for (clock, application) in &applications {
            clock.advance(Duration::from_secs(1)); // IDs for the next request
            let Some(request) = request(text) else { return };
            sent.set(sent.get() + 1);
            let response = system.block_on(application.call(request.to_request()));
            let response = response.unwrap_or_else(|e| panic!("{e}: {:?}", text));
            system.block_on(check_answer(text, response));
        }
    });
    (all.get(), sent.get())
}

fn inputs() -> Vec<Vec<u8>> {
    kept(env!("CARGO_MANIFEST_DIR"), "requests")
}

#[test]
fn requests_of_arbitrary_text() {
    with_applications(|check| {
        inputs().iter().for_each(|text| check(text));
        let check = AssertUnwindSafe(check);
        bolero::check!()
            .with_iterations(500)
            .for_each(|text: &[u8]| (*check)(text));
    });
}

#[test]
fn damaged_requests() {
    let (all, sent) = with_applications(|check| {
        let (inputs, check) = (inputs(), AssertUnwindSafe(check));
        bolero::check!()
            .with_iterations(vesta_testkit::full_or(20_000, 6_000))
            .with_type()
            .for_each(|(which, changes): &(u16, Changes)| {
                let few = changes
                    .iter()
                    .take(1 + usize::from(which % 3))
                    .copied()
                    .collect();
                (*check)(&damaged(&inputs, *which / 3, &few));
            });
    });
    assert!(
        sent > all,
        "only {sent} of 3 times {all} texts were requests"
    );
}

/// A server that answers 500 to a number out of range, and plain text in place of a problem.
#[test]
fn the_checks_notice_a_faulty_server() {
    let faults: [fn() -> HttpResponse; 3] = [
        || HttpResponse::InternalServerError().finish(),
        || {
            HttpResponse::BadRequest()
                .content_type("text/plain; charset=utf-8")
                .body("no")
        },
        || {
            HttpResponse::Ok()
                .content_type("application/json")
                .body("{")
        },
    ];
    for fault in faults {
        let found = std::panic::catch_unwind(|| {
            System::new().block_on(async {
                let app = App::new().default_service(web::to(move || async move { fault() }));
                let app = test::init_service(app).await;
                let response: ServiceResponse<BoxBody> = app
                    .call(request(b"GET /genid\n").expect("a request").to_request())
                    .await
                    .unwrap();
                check_answer(b"GET /genid\n", response).await;
            });
        });
        assert!(found.is_err());
    }
}

//! Serials over HTTP: issued, parsed and refused.

use std::sync::Arc;

use actix_web::test::TestRequest;
use actix_web::web;
use serde_json::json;
use vesta_boot::{Auth, Metrics, Running, Scopes, Security, Token};
use vesta_intf::{ShuffleKey, UnixMillis};
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_service::testing::{ManualClock, MemoryStore};

use crate::support::{Answer, ask_with, get, running, service};

/// 2026-11-22T12:00 in Shanghai.
const NOON: UnixMillis = UnixMillis(1_795_320_000_000);

/// The key of the shuffled tags, and another one.
fn keys() -> [ShuffleKey; 2] {
    [std::array::from_fn(|i| i as u8), [7; 32]].map(|key| ShuffleKey::new(&key))
}

/// Serials with invoices that begin at 42, coupons, and tags whose keys are missing.
pub(crate) fn serials() -> Arc<SerialService> {
    let [key, other] = keys();
    let service = SerialService::builder(Arc::new(MemoryStore::new()))
        .key("coupons", key.clone())
        .key("mistaken", other)
        .segments(|segments| segments.clock(Arc::new(ManualClock::at(NOON))))
        .build()
        .expect("a service");
    let pattern = |text, reset| Pattern::new(text, reset).expect("a pattern");
    let invoices = pattern("INV-{date:yyMMdd}-{n:6+}{check:damm}", Reset::Day);
    let invoices = NewSerialTag::new("invoices", invoices, Some("Asia/Shanghai"));
    let numbers = |name| NewSerialTag::new(name, pattern("{n:1}", Reset::Never), None);
    let shuffled = |name| {
        let tag = NewSerialTag::new(name, pattern("C{shuffle:8}", Reset::Never), None);
        tag.and_then(|tag| tag.shuffled_with(&key))
    };
    for tag in [
        invoices.and_then(|tag| tag.starting_at(42)?.step(1_000_000)),
        numbers("few"),
        numbers("a/b <i>"),
        shuffled("coupons"),
        shuffled("mistaken"),
        shuffled("lost"),
    ] {
        assert_eq!(
            service
                .create(&tag.expect("it is right"))
                .expect("memory answers"),
            vesta_numbers::Created::New
        );
    }
    Arc::new(service)
}

struct Serials {
    state: web::Data<Running>,
}

fn started() -> Serials {
    let serials = Some(serials());
    Serials {
        state: web::Data::new(Running {
            serials,
            ..running(service(), None)
        }),
    }
}

async fn create(state: &web::Data<Running>, body: serde_json::Value) -> Answer {
    let request = TestRequest::post().uri("/v1/serials").set_json(body);
    let request = request.insert_header(("authorization", "Bearer s3cret"));
    ask_with(state.clone(), request).await
}

/// Serials for a caller whose token has the scopes `admin` and `serials`.
fn with_token() -> web::Data<Running> {
    let token = Token::of_text("admin", "s3cret", Scopes::ADMIN | Scopes::SERIALS);
    let security = Security {
        auth: Some(Auth::new(vec![token])),
        ..Security::default()
    };
    web::Data::new(Running {
        serials: Some(serials()),
        security,
        metrics: Arc::new(Metrics::new(vesta_rest::METHODS).of_tokens(1)),
        ..running(service(), None)
    })
}

#[actix_web::test]
async fn a_caller_with_the_scope_admin_creates_a_tag_once() {
    let state = with_token();
    let bills = json!({
        "tag": "bills", "pattern": "B{date:yy}Q{q}-{n:4}", "reset": "quarter", "zone": "Asia/Shanghai",
        "first": 7, "step": 10, "description": "by the quarter"
    });
    for created in [true, false] {
        let answer = create(&state, bills.clone()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json(), json!({"tag": "bills", "created": created}));
    }
    let mut other = bills.clone();
    other["reset"] = "year".into();
    create(&state, other).await.problem(409, "ALREADY_EXISTS");
    let next = TestRequest::get().uri("/v1/serials/bills/next");
    let next = next.insert_header(("authorization", "Bearer s3cret"));
    let next = ask_with(state.clone(), next).await.json();
    assert_eq!(next, json!({"serial": "B26Q4-0007", "counter": "7"}));
    for (member, value, said) in [
        ("zone", json!(null), "name its time zone"),
        ("first", json!(-1), "does not match its schema"),
        ("unknown", json!(1), "unknown field"),
    ] {
        let mut wrong = bills.clone();
        wrong[member] = value;
        let answer = create(&state, wrong).await;
        assert!(
            answer.status == 400 && answer.body.contains(said),
            "{member}: {answer:?}"
        );
    }
}

#[actix_web::test]
async fn without_tokens_no_caller_creates_a_tag() {
    let state = started().state;
    let answer = create(&state, json!({"tag": "new", "pattern": "{n:6}"})).await;
    assert!(
        answer
            .problem(501, "UNSUPPORTED")
            .contains("set [[auth.tokens]]"),
        "{answer:?}"
    );
    let serials = state.serials.as_ref().expect("they are on");
    assert!(serials.status().iter().all(|tag| tag.segment.key != "new"));
}

impl Serials {
    async fn get(&self, uri: &str) -> Answer {
        ask_with(self.state.clone(), TestRequest::get().uri(uri)).await
    }

    fn issued(&self) -> u64 {
        self.state.metrics.issued().map(|(_, count)| count).sum()
    }
}

#[actix_web::test]
async fn single_and_multiple_serials_are_issued_in_order() {
    let serials = started();
    let uri = "/v1/serials/invoices/next";
    let one = serials.get(uri).await;
    assert_eq!(
        one.body,
        r#"{"serial":"INV-261122-0000427","counter":"42"}"#
    );
    assert_eq!((one.status, one.header("cache-control")), (200, "no-store"));
    let two = serials.get(&format!("{uri}?count=2")).await;
    assert_eq!(two.header("cache-control"), "no-store");
    let [second, third] = [("0000434", "43"), ("0000442", "44")]
        .map(|(text, n)| format!(r#"{{"serial":"INV-261122-{text}","counter":"{n}"}}"#));
    assert_eq!(two.body, format!(r#"{{"serials":[{second},{third}]}}"#));
    let list = serials.get(&format!("{uri}?count=1")).await.json();
    assert_eq!(list["serials"][0]["counter"], "45", "a list, also of one");
    let many = serials.get(&format!("{uri}?count=10000")).await.json();
    let many = many["serials"].as_array().expect("a list").iter();
    assert!(
        many.map(|serial| serial["counter"].clone())
            .eq((46..10_046).map(|n| n.to_string()))
    );
    assert_eq!(serials.issued(), 10_004);
    let odd = serials.get("/v1/serials/a%2Fb%20%3Ci%3E/next").await;
    assert_eq!(
        odd.body, r#"{"serial":"1","counter":"1"}"#,
        "names are decoded"
    );
}

#[actix_web::test]
async fn a_serial_says_what_applies_to_its_pattern() {
    let serials = started();
    let invoice = serials
        .get("/v1/serials/invoices/parse?serial=INV-261122-0000427")
        .await;
    assert_eq!(
        invoice.body,
        r#"{"tag":"invoices","period":"2026-11-22","date":"2026-11-22","counter":"42","check":"damm"}"#
    );
    let coupon = serials.get("/v1/serials/coupons/next").await;
    assert_eq!(coupon.body, r#"{"serial":"C48066486","counter":"1"}"#);
    let coupon = serials
        .get("/v1/serials/coupons/parse?serial=C48066486")
        .await;
    assert_eq!(coupon.body, r#"{"tag":"coupons","counter":"1"}"#);
}

/// Both endpoints of a tag.
fn both(tag: &str) -> [String; 2] {
    ["next", "parse?serial=1"].map(|rest| format!("/v1/serials/{tag}/{rest}"))
}

#[actix_web::test]
async fn without_its_key_a_shuffled_tag_is_501_and_names_fingerprints() {
    let serials = started();
    let [wanted, given] = keys().map(|key| key.fingerprint());
    let given = format!("was given {given}");
    for (tag, but) in [("lost", "no key was given"), ("mistaken", &given)] {
        for uri in both(tag) {
            let answer = serials.get(&uri).await;
            let detail = answer.problem(501, "UNSUPPORTED");
            let said =
                format!("serial tag `{tag}` needs the key with fingerprint {wanted}, but {but}");
            assert_eq!(detail, said, "{uri}");
        }
    }
}

#[actix_web::test]
async fn a_counter_that_is_used_up_for_ever_is_409() {
    let serials = started();
    let uri = "/v1/serials/few/next";
    serials
        .get(&format!("{uri}?count=10"))
        .await
        .problem(409, "USED_UP");
    let serials = started();
    assert_eq!(serials.get(&format!("{uri}?count=9")).await.status, 200);
    let detail = serials.get(uri).await.problem(409, "USED_UP");
    assert!(
        detail.starts_with("tag `few` has no more serials: its counter reached 9"),
        "{detail}"
    );
    assert_eq!(serials.issued(), 9, "refusals are not counted");
}

#[actix_web::test]
async fn without_serials_the_server_answers_501_and_names_the_setting() {
    let off = service();
    for uri in both("invoices") {
        let detail = get(&off, &uri).await.problem(501, "UNSUPPORTED");
        assert!(detail.contains("--serial-store"), "{detail}");
    }
}

#[actix_web::test]
async fn the_documented_examples_are_real_answers() {
    let serials = started();
    let document = serials.get("/openapi.json").await.json();
    let example = |schema| &document["components"]["schemas"][schema]["example"];
    let parameters = &document["paths"]["/v1/serials/{tag}/parse"]["get"]["parameters"];
    let [tag, serial] = [0, 1].map(|i| parameters[i]["example"].as_str().expect("a text"));
    let next = format!("/v1/serials/{tag}/next");
    let parse = format!("/v1/serials/{tag}/parse?serial={serial}");
    assert_eq!(*example("SerialParsed"), serials.get(&parse).await.json());
    assert_eq!(*example("Serial"), serials.get(&next).await.json());
    let two = started().get(&format!("{next}?count=2")).await.json();
    assert_eq!(*example("ManySerials"), two);
}

//! The caller's trace reaches the servers.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use vesta_client::{Builder, Client, Prefetch};

use crate::fake::{Fake, Loopback, Reply, unavailable};

thread_local! {
    /// The trace that this thread works in, as OpenTelemetry keeps it.
    static TRACE: Cell<Option<u64>> = const { Cell::new(None) };
}

fn traced(server: &Loopback) -> Builder {
    let inject = |headers: &mut HashMap<String, String>| {
        if let Some(trace) = TRACE.get() {
            headers.insert(
                "traceparent".to_owned(),
                format!("00-{trace:032x}-00000000000000a1-01"),
            );
            headers.insert("authorization".to_owned(), "Bearer of a trace".to_owned());
            headers.insert("no header".to_owned(), "x".to_owned());
            headers.insert("baggage".to_owned(), "a\nb".to_owned());
        }
    };
    Client::builder()
        .endpoint(server.url())
        .bearer_token("of-the-client")
        .trace(inject)
}

/// The traces of the calls so far, by their last digit.
fn seen(fake: &Arc<Fake>) -> Vec<(&'static str, Option<u32>)> {
    let seen = fake.seen.lock();
    let digit = |trace: &String| trace.as_bytes()[34] as char;
    seen.iter()
        .map(|it| {
            (
                it.call,
                it.traceparent
                    .as_ref()
                    .and_then(|trace| digit(trace).to_digit(10)),
            )
        })
        .collect()
}

#[tokio::test]
async fn each_attempt_of_a_call_has_the_trace_of_its_caller() {
    let fake = Fake::new(7);
    let server = Loopback::start(&fake);
    let client = traced(&server).build().unwrap();
    client.gen_id().await.unwrap();
    fake.next([Reply::Fail(unavailable(None))]);
    TRACE.set(Some(1));
    client.gen_id().await.unwrap();
    TRACE.set(Some(2));
    client.gen_runs(3).await.unwrap();
    TRACE.set(None);
    client.gen_id().await.unwrap();
    let expected = [None, Some(1), Some(1), Some(2), None];
    assert_eq!(
        seen(&fake).into_iter().map(|it| it.1).collect::<Vec<_>>(),
        expected
    );
    let seen = fake.seen.lock();
    assert!(
        seen.iter()
            .all(|it| it.authorization.as_deref() == Some("Bearer of-the-client"))
    );
}

#[test]
fn calls_that_a_thread_waits_for_have_its_trace_and_refills_have_none() {
    let fake = Fake::new(7);
    let server = Loopback::start(&fake);
    let client = traced(&server).build_blocking().unwrap();
    TRACE.set(Some(3));
    client.gen_id().unwrap();
    client.serial("invoices").unwrap().parse("x").unwrap_err();
    std::thread::scope(|threads| threads.spawn(|| client.gen_id().map(drop)).join())
        .unwrap()
        .unwrap();
    let prefetch = Prefetch {
        capacity: 10,
        low_water: 5,
        ..Prefetch::default()
    };
    let prefetching = traced(&server).prefetch(prefetch).build_blocking().unwrap();
    prefetching.gen_id().unwrap();
    let gen_id = |trace| ("GenId", trace);
    let seen: Vec<_> = seen(&fake)
        .into_iter()
        .filter(|it| it.0 != "Parse")
        .collect();
    assert_eq!(
        seen[..3],
        [gen_id(Some(3)), gen_id(None), ("GenRuns", None)]
    );
}

//! Numbers of segment keys.

use std::sync::Arc;

use tokio::time::Instant;
use vesta_client::{Client, ErrorKind, IdRun, Prefetch};

use crate::fake::{Fake, Local, Loopback, Pipe, Reply, ms, unavailable};

const fn run(first: u64, count: u32) -> IdRun {
    IdRun {
        first,
        step: 1,
        count,
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_come_one_by_one_and_in_runs() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .build()
        .unwrap();
    assert_eq!(client.next_id("orders").await.unwrap(), 1);
    assert_eq!(client.next_id("orders").await.unwrap(), 2);
    assert_eq!(client.next_ids("orders", 1).await.unwrap(), [run(3, 1)]);
    assert_eq!(
        client.next_ids("orders", 5).await.unwrap(),
        [run(5, 3), run(9, 2)]
    );
    assert_eq!((client.stats().calls, client.stats().retries), (4, 0));
}

#[test]
fn the_blocking_client_matches_the_asynchronous_one() {
    let fake = Fake::new(1);
    let server = Loopback::start(&fake);
    let client = Client::builder()
        .endpoint(server.url())
        .build_blocking()
        .unwrap();
    assert_eq!(client.next_id("orders").unwrap(), 1);
    assert_eq!(
        client.next_ids("orders", 5).unwrap(),
        [run(2, 3), run(6, 2)]
    );
    assert_eq!(
        client.next_id("ordres").unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_are_not_sent() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .build()
        .unwrap();
    for key in ["", &"k".repeat(129)] {
        assert_eq!(
            client.next_id(key).await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
        assert_eq!(
            client.next_ids(key, 1).await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
    for count in [0, 1_048_577] {
        let error = client.next_ids("orders", count).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
    assert_eq!(fake.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_not_retried_or_blamed_on_the_endpoint() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .build()
        .unwrap();
    let error = client.next_id("ordres").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("`ordres`"), "{error}");
    assert_eq!(fake.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn retries_deadlines_and_other_endpoints_are_those_of_ids() {
    let (down, up) = (Fake::new(1), Fake::new(2));
    let (one, other) = (Pipe::to(&down), Pipe::to(&up));
    down.always(Reply::Fail(unavailable(None)));
    let client = Client::builder()
        .channel("one", one.channel())
        .channel("other", other.channel());
    let client = client.build().unwrap();
    for expected in 1..=20 {
        assert_eq!(client.next_id("orders").await.unwrap(), expected);
    }
    assert!(down.calls() >= 1, "it was its turn");

    let client = Client::builder()
        .channel("other", other.channel())
        .deadline(ms(300));
    let client = client.build().unwrap();
    up.next([Reply::Fail(unavailable(Some(ms(100))))]);
    let start = Instant::now();
    client.next_ids("orders", 9).await.unwrap();
    assert!(start.elapsed() >= ms(100), "{:?}", start.elapsed());
    up.always(Reply::Silence);
    let start = Instant::now();
    let error = client.next_id("orders").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert!(
        (ms(300)..ms(310)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    assert!(up.seen.lock().iter().all(|seen| seen.timeout.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_response_that_could_repeat_a_number_is_refused() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .build()
        .unwrap();
    // Descending runs, and a run with another step.
    for count in [5, 1] {
        fake.next([Reply::Nonsense]);
        let error = client.next_ids("orders", count).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn neither_prefetched_ids_nor_the_local_service_replace_numbers() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .prefetch(Prefetch::default())
        .fallback(Arc::new(Local::default()))
        .deadline(ms(200))
        .build()
        .unwrap();
    pipe.cut();
    let number = client.next_id("orders").await.unwrap_err();
    let serial = client.serial("orders").unwrap().next().await.unwrap_err();
    for error in [number, serial] {
        assert!(matches!(
            error.kind(),
            ErrorKind::Unavailable | ErrorKind::DeadlineExceeded
        ));
    }
    assert_eq!(client.stats().fallback_ids, 0);
}

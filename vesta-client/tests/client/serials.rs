//! Serials of tags.

use tokio::time::Instant;
use vesta_client::{CheckSymbol, Client, ErrorKind, IdError, ParsedSerial, Serial};

use crate::fake::{Fake, Loopback, Pipe, Reply, ms, unavailable};

fn serial(text: &str, n: u64) -> Serial {
    Serial {
        text: text.to_owned(),
        counter: n,
    }
}

fn client(pipe: &Pipe) -> Client {
    Client::builder()
        .channel("pipe", pipe.channel())
        .build()
        .unwrap()
}

/// The server's answer about `INV-261122-0000427`.
fn parsed() -> ParsedSerial {
    ParsedSerial {
        date: Some("2026-11-22".to_owned()),
        period: Some("2026-11-22".to_owned()),
        counter: 42,
        check: Some(CheckSymbol::Damm),
    }
}

#[tokio::test(start_paused = true)]
async fn serials_come_singly_and_in_batches_and_are_parsed() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let orders = client(&pipe).serial("orders").unwrap();
    assert_eq!((orders.name(), fake.calls()), ("orders", 0));
    assert_eq!(
        orders.next().await.unwrap(),
        serial("INV-261122-0000013", 1)
    );
    let many = orders.clone().next_many(2).await.unwrap();
    assert_eq!(
        many,
        [
            serial("INV-261122-0000021", 2),
            serial("INV-261122-0000037", 3)
        ]
    );
    assert_eq!(orders.next().await.unwrap().counter, 4);
    assert_eq!(orders.parse("INV-261122-0000427").await.unwrap(), parsed());
    let seen: Vec<_> = fake
        .seen
        .lock()
        .iter()
        .map(|seen| (seen.call, seen.count))
        .collect();
    assert_eq!(seen, [("Next", 1), ("Next", 2), ("Next", 1), ("Parse", 0)]);
}

#[test]
fn the_blocking_client_matches_the_asynchronous_one() {
    let fake = Fake::new(1);
    let server = Loopback::start(&fake);
    let client = Client::builder()
        .endpoint(server.url())
        .build_blocking()
        .unwrap();
    let orders = client.serial("orders").unwrap();
    drop(client);
    assert_eq!(orders.name(), "orders");
    assert_eq!(orders.next().unwrap(), serial("INV-261122-0000013", 1));
    assert_eq!(
        orders.next_many(2).unwrap()[1],
        serial("INV-261122-0000037", 3)
    );
    assert_eq!(orders.parse("INV-261122-0000427").unwrap(), parsed());
    assert_eq!(
        orders.next_many(0).unwrap_err().kind(),
        ErrorKind::OutOfRange
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_are_not_sent() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = client(&pipe);
    for tag in ["", &"t".repeat(129)] {
        let error = client.serial(tag).unwrap_err();
        assert_eq!(error.to_string(), "tag: it must have 1 to 128 characters");
    }
    let longest = client.serial(&"t".repeat(128)).unwrap();
    for count in [0, 10_001] {
        let error = longest.next_many(count).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("count must be 1 to 10000, but is {count}")
        );
    }
    assert_eq!(fake.calls(), 0);
    let orders = client.serial("orders").unwrap();
    assert_eq!(orders.next_many(10_000).await.unwrap().len(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_serial_is_refused_by_name_and_not_retried() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = client(&pipe);
    let orders = client.serial("orders").unwrap();
    for (typed, says) in [
        (
            "INV-261122-0000428",
            "serial: its check symbol is wrong (damm)",
        ),
        (
            "INV_261122-0000427",
            "serial: character 4 is '_', but must be '-'",
        ),
    ] {
        let error = orders.parse(typed).await.unwrap_err();
        assert!(
            matches!(
                error,
                IdError::Invalid {
                    field: "serial",
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(error.to_string().starts_with(says), "{error}");
    }
    assert_eq!((fake.calls(), client.stats().retries), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tag_and_missing_serials_are_distinct_errors() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = client(&pipe);
    let ordres = client.serial("ordres").unwrap();
    let errors = [
        ordres.next().await.unwrap_err(),
        ordres.parse("1").await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("`ordres`"), "{error}");
    }
    let orders = client.serial("orders").unwrap();
    // A server with serials off, and one of a version without them.
    let off = IdError::Unsupported {
        what: "serials are off".into(),
    };
    fake.next([
        Reply::Fail(off),
        Reply::Status(|| tonic::Status::unimplemented("")),
    ]);
    for _ in 0..2 {
        assert_eq!(
            orders.next().await.unwrap_err().kind(),
            ErrorKind::Unsupported
        );
    }
    assert_eq!((fake.calls(), client.stats().retries), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn an_implausible_response_is_refused() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let orders = client(&pipe).serial("orders").unwrap();
    fake.always(Reply::Nonsense);
    // None, the same one twice, too few; and an unknown check symbol.
    let errors = [
        orders.next().await.unwrap_err(),
        orders.next_many(2).await.unwrap_err(),
        orders.next_many(3).await.unwrap_err(),
        orders.parse("INV-261122-0000427").await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(
            error
                .to_string()
                .starts_with("invalid response from the server"),
            "{error}"
        );
    }
    assert_eq!(fake.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn retries_deadlines_and_other_endpoints_are_those_of_ids() {
    let (down, up) = (Fake::new(1), Fake::new(2));
    let (one, other) = (Pipe::to(&down), Pipe::to(&up));
    down.always(Reply::Fail(unavailable(None)));
    let client = Client::builder()
        .channel("one", one.channel())
        .channel("other", other.channel());
    let orders = client.build().unwrap().serial("orders").unwrap();
    for expected in 1..=20 {
        assert_eq!(orders.next().await.unwrap().counter, expected);
    }
    assert!(down.calls() >= 1, "it was its turn");

    let client = Client::builder()
        .channel("other", other.channel())
        .deadline(ms(300));
    let orders = client.build().unwrap().serial("orders").unwrap();
    let start = Instant::now();
    up.next([Reply::Fail(unavailable(Some(ms(100))))]);
    orders.next_many(9).await.unwrap();
    assert!(start.elapsed() >= ms(100), "{:?}", start.elapsed());
    up.next([Reply::Fail(unavailable(Some(ms(100))))]);
    orders.parse("INV-261122-0000427").await.unwrap();
    assert!(start.elapsed() >= ms(200), "{:?}", start.elapsed());
    up.always(Reply::Silence);
    let start = Instant::now();
    let error = orders.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert!(
        (ms(300)..ms(310)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    assert!(up.seen.lock().iter().all(|seen| seen.timeout.is_some()));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_attempt_is_retried() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .attempt_timeout(ms(100));
    let client = client.build().unwrap();
    fake.next([Reply::Silence]);
    assert_eq!(
        client
            .serial("orders")
            .unwrap()
            .next()
            .await
            .unwrap()
            .counter,
        1
    );
    assert_eq!(
        (fake.calls(), client.stats().calls, client.stats().retries),
        (2, 1, 1)
    );
}

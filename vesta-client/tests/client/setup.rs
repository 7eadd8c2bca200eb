//! Options that a builder refuses, and secrets it never shows.

use std::time::Duration;

use vesta_client::{Builder, Client, ErrorKind, IdError, Prefetch, Retry};

use crate::fake::{Fake, Pipe, Reply};

const TOKEN: &str = "s3cr3t-t0ken";

fn refusal(builder: Builder) -> String {
    builder.build().expect_err("must be refused").to_string()
}

#[tokio::test]
async fn an_unusable_address_is_refused_with_the_expected_form() {
    for (address, says) in [
        (
            "https://10.0.0.1",
            "must be http://host:port or https://host:port",
        ),
        (
            "https://10.0.0.1:50051/ids",
            "must be http://host:port or https://host:port",
        ),
        ("10.0.0.1:50051", "must be http://host:port"),
        ("http://10.0.0.1", "must be http://host:port"),
        ("http://10.0.0.1:50051/ids", "must be http://host:port"),
        ("grpc://10.0.0.1:50051", "must be http://host:port"),
        ("", "must be http://host:port"),
        (
            "http://me:s3cr3t@10.0.0.1:50051",
            "without user or password",
        ),
        (
            "https://me:s3cr3t@10.0.0.1:50051",
            "without user or password",
        ),
    ] {
        let said = refusal(Client::builder().endpoint(address));
        assert!(
            said.starts_with("endpoint: ") && said.contains(says),
            "{address}: {said}"
        );
        assert!(!said.contains("s3cr3t"), "{said}");
    }
    for address in [
        "http://10.0.0.1:50051",
        "http://[::1]:50051/",
        "http://vesta.internal:1",
    ] {
        assert!(
            Client::builder().endpoint(address).build().is_ok(),
            "{address}"
        );
    }
}

#[tokio::test]
async fn options_out_of_range_are_refused_by_name() {
    let with = || Client::builder().endpoint("http://127.0.0.1:1");
    let prefetch = Prefetch::default();
    let retry = Retry::default();
    for (builder, names) in [
        (Client::builder(), "endpoint"),
        (
            Client::builder().endpoints(vec!["http://127.0.0.1:1"; 65]),
            "endpoints",
        ),
        (with().channels_per_endpoint(0), "channels_per_endpoint"),
        (with().channels_per_endpoint(65), "channels_per_endpoint"),
        (with().deadline(Duration::ZERO), "deadline"),
        (with().deadline(Duration::MAX), "deadline"),
        (with().attempt_timeout(Duration::ZERO), "attempt_timeout"),
        (with().connect_timeout(Duration::ZERO), "connect_timeout"),
        (
            with().retry(Retry {
                max_attempts: 0,
                ..retry
            }),
            "retry.max_attempts",
        ),
        (
            with().retry(Retry {
                successes_per_retry: 0,
                ..retry
            }),
            "retry.successes_per_retry",
        ),
        (
            with().prefetch(Prefetch {
                capacity: 0,
                ..prefetch
            }),
            "prefetch.capacity",
        ),
        (
            with().prefetch(Prefetch {
                capacity: 1_048_577,
                ..prefetch
            }),
            "prefetch.capacity",
        ),
        (
            with().prefetch(Prefetch {
                low_water: 10_000,
                ..prefetch
            }),
            "prefetch.low_water",
        ),
        (
            with().prefetch(Prefetch {
                max_age: Duration::ZERO,
                ..prefetch
            }),
            "prefetch.max_age",
        ),
        (with().bearer_token(""), "bearer_token"),
        (with().bearer_token("two words"), "bearer_token"),
    ] {
        let said = refusal(builder);
        assert!(said.starts_with(names), "{names}: {said}");
    }
}

#[test]
fn building_outside_a_runtime_says_what_to_do() {
    let error = Client::builder()
        .endpoint("http://127.0.0.1:1")
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("build_blocking"), "{error}");
}

#[test]
fn the_blocking_builder_passes_refusals_on() {
    let error = Client::builder()
        .endpoint("ftp://x:1")
        .build_blocking()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn the_token_is_sent_and_never_shown() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let builder = Client::builder()
        .channel("pipe", pipe.channel())
        .bearer_token(TOKEN);
    let mut shown = format!("{builder:?} {builder:#?}");
    let client = builder
        .retry(Retry {
            max_attempts: 1,
            ..Retry::default()
        })
        .build()
        .unwrap();
    client.gen_id().await.unwrap();
    let sent = fake.seen.lock()[0].authorization.clone();
    assert_eq!(sent.as_deref(), Some("Bearer s3cr3t-t0ken"));

    // Even if a server repeats it, it does not reach the client's errors.
    fake.next([
        Reply::Status(|| tonic::Status::internal("no such token: s3cr3t-t0ken")),
        Reply::Status(|| tonic::Status::unknown("no such token: s3cr3t-t0ken")),
        Reply::Fail(IdError::NotFound {
            what: "s3cr3t-t0ken".into(),
        }),
    ]);
    for _ in 0..3 {
        let error = client.gen_id().await.unwrap_err();
        shown += &format!("{error} {error:?}");
    }
    shown += &format!("{client:?} {:?}", client.stats());
    assert!(shown.contains("[redacted]"));
    assert!(!shown.contains(TOKEN), "{shown}");
}

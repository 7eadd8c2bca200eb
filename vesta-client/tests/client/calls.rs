//! Single calls: answers, errors, retries and deadlines.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use vesta_client::{Builder, Client, ErrorKind, Id, IdError, IdRun, MakeId, Retry};
use vesta_intf::{NotReady, NotReadyReason};

use crate::fake::{Fake, Loopback, MACHINES, Pipe, Reply, ms, unavailable};

const ONCE: Retry = Retry {
    max_attempts: 1,
    backoff_base: Duration::from_millis(25),
    backoff_cap: Duration::from_secs(1),
    budget: 100,
    successes_per_retry: 10,
};

fn through(pipe: &Pipe) -> Builder {
    Client::builder().channel("pipe", pipe.channel())
}

#[tokio::test]
async fn each_call_returns_its_answer_over_tcp() {
    let fake = Fake::new(7);
    let server = Loopback::start(&fake);
    let client = Client::builder()
        .endpoint(server.url())
        .channels_per_endpoint(2)
        .build()
        .unwrap();
    assert_eq!(client.next::<u64>().await.unwrap(), MACHINES + 7);
    assert_eq!(
        client.gen_ids(2).await.unwrap(),
        [2 * MACHINES + 7, 3 * MACHINES + 7]
    );
    let runs = client.gen_runs(3).await.unwrap();
    let run = |position, count| IdRun {
        first: position * MACHINES + 7,
        step: MACHINES,
        count,
    };
    assert_eq!(runs, [run(4, 2), run(6, 1)]);
    let id = client.exp_id(5 * MACHINES + 3).await.unwrap();
    assert_eq!(
        id,
        Id {
            seq: 5,
            machine: 3,
            ..Id::default()
        }
    );
    let parts = MakeId {
        machine: Some(9),
        ..MakeId::new(0, 5)
    };
    assert_eq!(client.make_id(&parts).await.unwrap(), 5 * MACHINES + 9);
    assert_eq!(
        client.make_id(&MakeId::new(0, 5)).await.unwrap(),
        5 * MACHINES + 7
    );
    let time = client.trans_time(86_400).await.unwrap();
    assert_eq!(time, SystemTime::UNIX_EPOCH + Duration::from_secs(86_400));
    assert_eq!((client.stats().calls, client.stats().last_error), (7, None));
}

#[tokio::test(start_paused = true)]
async fn the_kind_of_an_error_survives_the_wire() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).retry(ONCE).build().unwrap();
    let hold = |why| {
        IdError::NotReady(NotReady {
            retry_after: ms(3),
            why,
        })
    };
    let errors = [
        hold(NotReadyReason::SequenceUsedUp),
        hold(NotReadyReason::AwaitingLease),
        hold(NotReadyReason::ClockBehind),
        IdError::TimeExhausted,
        IdError::Sealed {
            reason: "shut down".into(),
        },
        IdError::DeadlineExceeded,
        IdError::NotFound { what: "key".into() },
        IdError::Unsupported {
            what: "segments".into(),
        },
        IdError::Unauthenticated {
            reason: "no token".into(),
        },
        IdError::PermissionDenied {
            reason: "no scope".into(),
        },
        IdError::invalid("type", "must be 0 or 1"),
        unavailable(Some(ms(5))),
        IdError::Internal {
            reason: "bug".into(),
            source: None,
        },
    ];
    for sent in errors {
        fake.next([Reply::Fail(sent.clone())]);
        let got = client.gen_id().await.unwrap_err();
        assert_eq!(got.kind(), sent.kind());
        assert_eq!(got.retry_after(), sent.retry_after());
    }
    // The numbers of this error stay on the server; its text carries them.
    let range = IdError::OutOfRange {
        field: "machine",
        value: 1024,
        min: 0,
        max: 1023,
    };
    fake.next([Reply::Fail(range)]);
    let got = client.make_id(&MakeId::new(0, 0)).await.unwrap_err();
    assert!(
        got.to_string()
            .contains("machine must be 0 to 1023, but is 1024"),
        "{got}"
    );
}

#[tokio::test(start_paused = true)]
async fn final_errors_are_not_retried() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    for error in [
        IdError::invalid("count", "no"),
        IdError::TimeExhausted,
        IdError::Unauthenticated {
            reason: "no token".into(),
        },
        IdError::PermissionDenied {
            reason: "no scope".into(),
        },
    ] {
        let before = fake.calls();
        fake.next([Reply::Fail(error.clone())]);
        assert_eq!(client.gen_id().await.unwrap_err().kind(), error.kind());
        assert_eq!(fake.calls(), before + 1);
    }
    assert_eq!(client.stats().retries, 0);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_never_earlier_than_the_server_said() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    let hold = IdError::NotReady(NotReady {
        retry_after: ms(300),
        why: NotReadyReason::AwaitingLease,
    });
    fake.next([Reply::Fail(unavailable(Some(ms(700)))), Reply::Fail(hold)]);
    client.gen_id().await.unwrap();
    let at: Vec<Instant> = fake.seen.lock().iter().map(|seen| seen.at).collect();
    assert_eq!(at.len(), 3);
    assert!(
        (ms(700)..ms(730)).contains(&(at[1] - at[0])),
        "{:?}",
        at[1] - at[0]
    );
    assert!(
        (ms(300)..ms(355)).contains(&(at[2] - at[1])),
        "{:?}",
        at[2] - at[1]
    );
    assert_eq!(client.stats().retries, 2);
    let said = client.stats().last_error.unwrap();
    assert!(said.contains("has not yet confirmed"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_delay_beyond_the_deadline_fails_at_once() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).deadline(ms(500)).build().unwrap();
    fake.next([Reply::Fail(unavailable(Some(ms(700))))]);
    let start = Instant::now();
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(ms(700)));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(fake.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_sent_and_kept() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).deadline(ms(400)).build().unwrap();
    fake.always(Reply::Silence);
    let start = Instant::now();
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert!(
        (ms(400)..ms(410)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(fake.calls(), 1);
    let sent = fake.seen.lock()[0].timeout.clone().expect("grpc-timeout");
    let micros: u64 = sent
        .strip_suffix('u')
        .expect("in microseconds")
        .parse()
        .unwrap();
    assert!((390_000..=400_000).contains(&micros), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_until_the_last_attempt() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe)
        .deadline(Duration::from_secs(60))
        .build()
        .unwrap();
    fake.always(Reply::Fail(unavailable(None)));
    let start = Instant::now();
    assert_eq!(
        client.gen_id().await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    assert_eq!(fake.calls(), 10);
    // At most 25 + 50 + … + 800 + 3 * 1000 ms; timers are exact to the millisecond.
    assert!(start.elapsed() <= ms(4575 + 9), "{:?}", start.elapsed());
    assert!(start.elapsed() > ms(100), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn all_calls_share_the_retry_budget() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let retry = Retry {
        budget: 5,
        ..Retry::default()
    };
    let client = through(&pipe)
        .retry(retry)
        .deadline(Duration::from_secs(60))
        .build()
        .unwrap();
    fake.always(Reply::Fail(unavailable(None)));
    for _ in 0..20 {
        client.gen_id().await.unwrap_err();
    }
    assert_eq!(fake.calls(), 20 + 5);
    // Ten successes earn one retry.
    fake.always(Reply::Give);
    for _ in 0..10 {
        client.gen_id().await.unwrap();
    }
    fake.always(Reply::Fail(unavailable(None)));
    client.gen_id().await.unwrap_err();
    assert_eq!(fake.calls(), 25 + 10 + 2);
    assert_eq!(client.stats().retries, 6);
}

#[tokio::test(start_paused = true)]
async fn too_many_ids_are_refused_before_anything_is_sent() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    let refused = |error: IdError, sent, most| match error {
        IdError::OutOfRange {
            field: "count",
            value,
            min: 1,
            max,
        } => {
            assert_eq!((value, max), (sent, most));
        }
        other => panic!("{other:?}"),
    };
    for count in [0, 10_001, u32::MAX] {
        refused(
            client.gen_ids(count).await.unwrap_err(),
            count.into(),
            10_000,
        );
    }
    for count in [0, 1_048_577] {
        refused(
            client.gen_runs(count).await.unwrap_err(),
            count.into(),
            1_048_576,
        );
    }
    assert_eq!(fake.calls(), 0);
    assert_eq!(client.gen_ids(10_000).await.unwrap().len(), 10_000);
    let runs = client.gen_runs(1_048_576).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.count).sum::<u32>(), 1_048_576);
}

#[tokio::test(start_paused = true)]
async fn a_batch_from_runs_that_overlap_ascends() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    fake.overlaps.store(true, Ordering::Relaxed);
    let one = [1, 2, 3].map(|position| position * MACHINES + 1);
    let both = one.into_iter().flat_map(|id| [id, id + 1]);
    assert_eq!(client.gen_ids(6).await.unwrap(), both.collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_response_that_does_not_match_the_request_is_an_error() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    fake.always(Reply::Nonsense);
    for error in [
        client.gen_ids(3).await.unwrap_err(),
        client.gen_runs(3).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(
            error
                .to_string()
                .starts_with("invalid response from the server"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_disturbs_no_other_call() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    fake.next([Reply::Silence]);
    assert!(tokio::time::timeout(ms(10), client.gen_id()).await.is_err());
    assert_eq!(client.gen_id().await.unwrap(), MACHINES + 1);
    assert_eq!(client.stats().last_error, None);
}

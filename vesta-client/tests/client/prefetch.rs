//! Prefetched IDs.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use vesta_client::{Client, ErrorKind, IdError, Prefetch};

use crate::fake::{Fake, Loopback, MACHINES, Pipe, Reply, ms, unavailable};

fn prefetch(capacity: u32, low_water: u32) -> Prefetch {
    Prefetch {
        capacity,
        low_water,
        max_age: Duration::from_secs(10),
    }
}

/// A client whose prefetch buffer is full.
async fn filled(prefetch: Prefetch) -> (Arc<Fake>, Pipe, Client) {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let builder = Client::builder()
        .channel("pipe", pipe.channel())
        .prefetch(prefetch);
    let client = builder.build().unwrap();
    sleep(ms(1)).await;
    assert_eq!(client.stats().prefetched_left, u64::from(prefetch.capacity));
    assert_eq!(fake.seen.lock()[0].call, "GenRuns");
    (fake, pipe, client)
}

fn id(position: u64) -> u64 {
    position * MACHINES + 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_tasks_get_unique_ascending_ids() {
    const EACH: usize = 100_000;
    let fake = Fake::new(1);
    let server = Loopback::start(&fake);
    let prefetch = Prefetch {
        capacity: 5000,
        low_water: 2500,
        ..Prefetch::default()
    };
    let client = Client::builder()
        .endpoint(server.url())
        .prefetch(prefetch)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut ids = Vec::with_capacity(EACH);
                while ids.len() < EACH {
                    ids.push(client.gen_id().await.unwrap());
                }
                ids
            })
        })
        .collect();
    let mut all = HashSet::new();
    for task in tasks {
        let ids = task.await.unwrap();
        assert!(ids.is_sorted_by(|a, b| a < b), "ascending for each task");
        all.extend(ids);
    }
    assert_eq!(all.len(), 8 * EACH);
    let stats = client.stats();
    assert!(stats.prefetched_ids >= 8 * EACH as u64);
    // Hardly any are lost, and calls are as rare as the buffer size allows.
    assert!(stats.prefetched_ids < 8 * EACH as u64 + 10_000, "{stats:?}");
    assert!(fake.calls() <= 8 * EACH / 1000, "{} calls", fake.calls());
}

#[tokio::test(start_paused = true)]
async fn an_id_from_memory_is_ready_at_once_and_in_order() {
    let (fake, _pipe, client) = filled(prefetch(100, 50)).await;
    for position in 1..=40 {
        let mut call = pin!(client.gen_id());
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(got)) if got == id(position)));
    }
    assert_eq!(fake.calls(), 1);
    let stats = client.stats();
    assert_eq!((stats.prefetched_ids, stats.prefetched_left), (40, 60));
}

#[tokio::test(start_paused = true)]
async fn a_refill_starts_below_the_low_water_mark() {
    let (fake, _pipe, client) = filled(prefetch(100, 50)).await;
    for _ in 0..45 {
        client.try_gen_id().unwrap();
    }
    sleep(ms(1)).await;
    assert_eq!(fake.calls(), 1);
    // Noticed in steps of at most a sixteenth of the buffer.
    for _ in 45..60 {
        client.try_gen_id().unwrap();
    }
    sleep(ms(1)).await;
    assert_eq!(fake.calls(), 2);
    let (asked, left) = (fake.seen.lock()[1].count, client.stats().prefetched_left);
    assert_eq!((asked, left), (60, 100));
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_sends_no_requests() {
    let (fake, _pipe, client) = filled(prefetch(100, 50)).await;
    client.gen_id().await.unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(fake.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn expired_ids_are_dropped_and_replaced() {
    let (fake, _pipe, client) = filled(prefetch(100, 50)).await;
    client.gen_id().await.unwrap();
    sleep(ms(9_990)).await;
    assert_eq!(client.gen_id().await.unwrap(), id(2));
    sleep(ms(15)).await;
    let stats = client.stats();
    assert_eq!(
        (stats.stale_ids, stats.prefetched_left, stats.prefetched_ids),
        (98, 0, 2)
    );
    assert_eq!(client.gen_id().await.unwrap(), id(101));
    assert_eq!(fake.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn callers_are_served_from_memory_while_the_server_is_down() {
    let (_fake, pipe, client) = filled(prefetch(100, 50)).await;
    pipe.cut();
    let start = Instant::now();
    for position in 1..=100 {
        assert_eq!(client.gen_id().await.unwrap(), id(position));
        sleep(ms(20)).await;
    }
    assert!(start.elapsed() >= ms(2000));
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("connection refused"), "{error}");
    pipe.mend();
    let start = Instant::now();
    assert_eq!(client.gen_id().await.unwrap(), id(101));
    assert!(start.elapsed() <= ms(2000), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_refill_wakes_all_waiting_callers() {
    let (fake, _pipe, client) = filled(prefetch(20, 0)).await;
    fake.always(Reply::Slow(ms(100)));
    for _ in 0..20 {
        client.try_gen_id().unwrap();
    }
    let start = Instant::now();
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.gen_id().await.unwrap() })
        })
        .collect();
    let mut ids = HashSet::new();
    for task in waiting {
        ids.insert(task.await.unwrap());
    }
    assert_eq!(ids.len(), 50);
    // 20 IDs at a time.
    assert!(
        (ms(300)..ms(310)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(fake.calls(), 1 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_refill_fails_all_waiting_callers() {
    let (fake, _pipe, client) = filled(prefetch(10, 0)).await;
    fake.always(Reply::Fail(IdError::PermissionDenied {
        reason: "no scope".into(),
    }));
    for _ in 0..10 {
        client.try_gen_id().unwrap();
    }
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.gen_id().await.unwrap_err().kind() })
        })
        .collect();
    for task in waiting {
        assert_eq!(task.await.unwrap(), ErrorKind::PermissionDenied);
    }
    assert_eq!(fake.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn refills_from_a_failing_server_back_off() {
    let (fake, _pipe, client) = filled(prefetch(10, 5)).await;
    fake.always(Reply::Fail(IdError::PermissionDenied {
        reason: "no scope".into(),
    }));
    let (start, mut given) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(10) {
        given += u32::from(client.try_gen_id().is_ok());
        sleep(ms(1)).await;
    }
    assert_eq!(given, 10);
    let calls = fake.calls();
    // Pauses of 25 to 50 ms, doubled each time, up to 0.5 to 1 s.
    assert!((10..=27).contains(&calls), "{calls}");
    // Without callers, the server gets no more requests.
    sleep(Duration::from_secs(2)).await;
    let calls = fake.calls();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(fake.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_loses_no_id() {
    let (fake, _pipe, client) = filled(prefetch(10, 0)).await;
    for _ in 0..10 {
        client.try_gen_id().unwrap();
    }
    fake.next([Reply::Slow(ms(100))]);
    assert!(tokio::time::timeout(ms(50), client.gen_id()).await.is_err());
    sleep(ms(60)).await;
    let ids: Vec<u64> = (0..10).map(|_| client.try_gen_id().unwrap()).collect();
    assert_eq!(ids, (11..=20).map(id).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_ends_by_its_deadline() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let builder = Client::builder()
        .channel("pipe", pipe.channel())
        .prefetch(prefetch(10, 5));
    fake.always(Reply::Silence);
    let client = builder.deadline(ms(300)).build().unwrap();
    let start = Instant::now();
    assert_eq!(
        client.gen_id().await.unwrap_err().kind(),
        ErrorKind::DeadlineExceeded
    );
    assert!(
        (ms(300)..ms(310)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_served_in_time_fails_at_once() {
    let (fake, _pipe, client) = filled(prefetch(1, 0)).await;
    client.try_gen_id().unwrap();
    fake.next([Reply::Fail(unavailable(Some(Duration::from_secs(60))))]);
    client.gen_id().await.unwrap_err();
    sleep(Duration::from_secs(20)).await;
    let start = Instant::now();
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
    let left = error.retry_after().unwrap();
    assert!((ms(39_990)..=ms(40_010)).contains(&left), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn try_calls_return_a_delay_or_the_cause() {
    let (fake, _pipe, client) = filled(prefetch(10, 0)).await;
    let mut out = [0; 4];
    assert_eq!(client.try_gen_ids(&mut out).unwrap(), 4);
    assert_eq!(out, [id(1), id(2), id(3), id(4)]);
    let mut out = [0; 100];
    assert_eq!(client.try_gen_ids(&mut out).unwrap(), 6);
    assert_eq!(client.try_gen_ids(&mut []).unwrap(), 0);

    // A refill is in flight.
    fake.next([Reply::Fail(unavailable(Some(Duration::from_secs(4))))]);
    let error = client.try_gen_id().unwrap_err();
    assert_eq!(
        (error.kind(), error.retry_after()),
        (ErrorKind::AwaitingLease, Some(ms(1)))
    );
    // The refill failed: the error says so, with the time left.
    sleep(Duration::from_secs(1)).await;
    let error = client.try_gen_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let left = error.retry_after().unwrap();
    assert!((ms(2990)..=ms(3010)).contains(&left), "{left:?}");
    sleep(left + ms(1)).await;
    assert_eq!(client.try_gen_id().unwrap(), id(11));
}

#[tokio::test(start_paused = true)]
async fn a_batch_comes_from_memory_if_it_has_enough() {
    let (fake, _pipe, client) = filled(prefetch(1000, 100)).await;
    let ids = client.gen_ids(600).await.unwrap();
    assert_eq!(ids, (1..=600).map(id).collect::<Vec<_>>());
    assert_eq!(fake.calls(), 1);
    let ids = client.gen_ids(600).await.unwrap();
    assert_eq!(ids, (1001..=1600).map(id).collect::<Vec<_>>());
    assert_eq!(fake.seen.lock()[1].call, "GenRuns");
    assert_eq!(client.stats().prefetched_left, 400);
}

#[tokio::test(start_paused = true)]
async fn a_batch_over_the_ids_of_two_servers_ascends() {
    let fakes = [Fake::new(1), Fake::new(2)];
    let pipes = [Pipe::to(&fakes[0]), Pipe::to(&fakes[1])];
    let client = Client::builder()
        .channel("one", pipes[0].channel())
        .channel("two", pipes[1].channel())
        .prefetch(prefetch(100, 90))
        .build()
        .unwrap();
    for _ in 0..20 {
        sleep(ms(1)).await;
        let ids = client.gen_ids(30).await.unwrap();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
    assert!(fakes.iter().all(|fake| fake.calls() > 3));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_client_sends_no_more_requests() {
    let (fake, _pipe, client) = filled(prefetch(10, 9)).await;
    fake.always(Reply::Slow(ms(100)));
    client.try_gen_id().unwrap();
    client.try_gen_id().unwrap();
    drop(client);
    sleep(Duration::from_secs(10)).await;
    assert!(fake.calls() <= 2);
    assert_eq!(
        Arc::strong_count(&fake),
        4,
        "the three services of the server, and this test"
    );
}

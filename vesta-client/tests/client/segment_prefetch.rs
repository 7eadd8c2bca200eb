//! Segment numbers from the prefetch buffer.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use vesta_client::{Client, ErrorKind, IdRun, Prefetch, Retry, Segment};

use crate::fake::{Fake, Local, Loopback, Pipe, Reply, ms, unavailable};

fn prefetch(capacity: u32, low_water: u32) -> Prefetch {
    Prefetch {
        capacity,
        low_water,
        max_age: Duration::MAX,
    }
}

/// A client without retries, so that a refill fails at once while the server is down.
fn client(pipe: &Pipe) -> Client {
    let retry = Retry {
        max_attempts: 1,
        ..Retry::default()
    };
    Client::builder()
        .channel("pipe", pipe.channel())
        .retry(retry)
        .build()
        .unwrap()
}

/// A handle whose prefetch buffer is full. The numbers of the fake server have a gap after each run.
async fn filled(prefetch: Prefetch) -> (Arc<Fake>, Pipe, Segment) {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let orders = client(&pipe).segment_with("orders", prefetch).unwrap();
    sleep(ms(1)).await;
    assert_eq!(orders.stats().left, u64::from(prefetch.capacity));
    assert_eq!(fake.seen.lock()[0].call, "NextIds");
    (fake, pipe, orders)
}

const fn run(first: u64, count: u32) -> IdRun {
    IdRun {
        first,
        step: 1,
        count,
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_come_from_memory_one_by_one_and_in_runs() {
    let (fake, _pipe, orders) = filled(prefetch(100, 20)).await;
    assert_eq!(orders.tag(), "orders");
    assert_eq!(orders.next_id().await.unwrap(), 1);
    assert_eq!(orders.try_next_id().unwrap(), 2);
    assert_eq!(orders.next_ids(49).await.unwrap(), [run(3, 48), run(52, 1)]);
    assert_eq!(orders.next_id().await.unwrap(), 53);
    assert_eq!(orders.clone().next_id().await.unwrap(), 54);
    assert_eq!(
        fake.calls(),
        1,
        "the client is gone, and the handle goes on"
    );
    let stats = orders.stats();
    assert_eq!((stats.handed_out, stats.left, stats.stale), (53, 47, 0));
}

#[tokio::test(start_paused = true)]
async fn by_default_a_thousand_numbers_are_kept_and_do_not_expire() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let orders = client(&pipe).segment("orders").unwrap();
    assert_eq!(orders.next_id().await.unwrap(), 1);
    assert_eq!(orders.stats().left, 999);
    sleep(Duration::from_secs(30 * 86_400)).await;
    assert_eq!(orders.next_id().await.unwrap(), 2);
    assert_eq!(fake.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_one_server_strictly_increase_across_refills() {
    let (fake, _pipe, orders) = filled(prefetch(50, 25)).await;
    let mut last = 0;
    for turn in 0..400 {
        let runs = match turn % 5 {
            0 => orders.next_ids(1 + turn % 70).await.unwrap(),
            _ => vec![run(orders.next_id().await.unwrap(), 1)],
        };
        for number in runs.iter().flat_map(IdRun::iter) {
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    }
    assert!(fake.calls() > 10, "{} calls", fake.calls());
}

#[tokio::test(start_paused = true)]
async fn refills_start_at_the_low_water_mark_and_never_when_idle() {
    let (fake, _pipe, orders) = filled(prefetch(100, 50)).await;
    for _ in 0..60 {
        orders.try_next_id().unwrap();
    }
    sleep(ms(1)).await;
    assert_eq!((fake.calls(), orders.stats().left), (2, 100));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(fake.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_the_buffer_takes_one_call() {
    let (fake, _pipe, orders) = filled(prefetch(10, 5)).await;
    assert_eq!(orders.next_id().await.unwrap(), 1);
    let runs = orders.next_ids(1_048_576).await.unwrap();
    assert_eq!(runs[0].first, 2);
    assert_eq!(runs.iter().map(|run| run.count).sum::<u32>(), 1_048_576);
    assert!(runs.is_sorted_by(|one, next| one.first + u64::from(one.count) <= next.first));
    let first = fake.seen.lock()[1].clone();
    assert_eq!(
        (first.call, first.count),
        ("NextIds", 1_048_576),
        "no more than one call can bring"
    );
    for count in [0, 1_048_577] {
        let error = orders.next_ids(count).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
    // Batches that wait together are filled by one refill.
    let calls = fake.calls();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let orders = orders.clone();
            tokio::spawn(async move { orders.next_ids(5000).await.unwrap() })
        })
        .collect();
    let mut all = std::collections::HashSet::new();
    for task in tasks {
        all.extend(task.await.unwrap().iter().flat_map(IdRun::iter));
    }
    assert_eq!(all.len(), 20_000);
    assert!(fake.calls() <= calls + 2, "{} calls", fake.calls() - calls);
}

#[tokio::test(start_paused = true)]
async fn callers_are_served_from_memory_while_the_server_is_down() {
    let (_fake, pipe, orders) = filled(prefetch(100, 50)).await;
    pipe.cut();
    for taken in 0..90 {
        orders.next_id().await.unwrap();
        if taken % 10 == 9 {
            // More than the buffer holds: its numbers are left to other callers.
            let error = orders.next_ids(200).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        }
    }
    let rest = orders.next_ids(10).await.unwrap();
    assert_eq!(rest.iter().map(|run| run.count).sum::<u32>(), 10);
    let error = orders.next_id().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert_eq!(
        orders.try_next_id().unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    pipe.mend();
    assert!(orders.next_id().await.unwrap() > 101);
}

#[tokio::test(start_paused = true)]
async fn deadlines_and_retries_are_those_of_the_client() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    fake.next([Reply::Fail(unavailable(Some(ms(100))))]);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .deadline(ms(300));
    let client = client.build().unwrap();
    let orders = client.segment_with("orders", prefetch(10, 0)).unwrap();
    let start = Instant::now();
    assert_eq!(orders.next_id().await.unwrap(), 1);
    assert!(start.elapsed() >= ms(100), "{:?}", start.elapsed());
    assert_eq!((client.stats().calls, client.stats().retries), (1, 1));
    fake.always(Reply::Silence);
    for _ in 0..9 {
        orders.try_next_id().unwrap();
    }
    for _ in 0..2 {
        let start = Instant::now();
        let error = orders.next_id().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
        assert!(start.elapsed() <= ms(310), "{:?}", start.elapsed());
        let start = Instant::now();
        let error = orders.next_ids(3).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
        assert!(start.elapsed() <= ms(310), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn expired_numbers_are_not_handed_out() {
    let (_fake, _pipe, orders) = filled(Prefetch {
        max_age: Duration::from_secs(10),
        ..prefetch(100, 50)
    })
    .await;
    assert_eq!(orders.next_id().await.unwrap(), 1);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(orders.stats().stale, 99);
    assert!(orders.next_id().await.unwrap() > 101);
}

#[tokio::test(start_paused = true)]
async fn calls_report_an_unknown_key() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = client(&pipe);
    let unknown = client.segment("ordres").unwrap();
    for _ in 0..3 {
        let error = unknown.next_id().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("`ordres`"), "{error}");
    }
    assert_eq!(
        unknown.next_ids(5).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test(start_paused = true)]
async fn impossible_requests_are_refused_before_anything_is_sent() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = client(&pipe);
    for key in ["", &"k".repeat(129)] {
        assert_eq!(client.segment(key).unwrap_err().kind(), ErrorKind::Invalid);
    }
    for wrong in [prefetch(0, 0), prefetch(10, 10), prefetch(1_048_577, 0)] {
        let error = client.segment_with("orders", wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
    sleep(ms(1)).await;
    assert_eq!(fake.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_and_ids_have_separate_buffers() {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let client = Client::builder()
        .channel("pipe", pipe.channel())
        .prefetch(prefetch(10, 5))
        .fallback(Arc::new(Local::default()))
        .deadline(ms(200))
        .build()
        .unwrap();
    let orders = client.segment_with("orders", prefetch(10, 0)).unwrap();
    sleep(ms(1)).await;
    for _ in 0..10 {
        orders.try_next_id().unwrap();
    }
    assert_eq!(client.stats().prefetched_ids, 0);
    pipe.cut();
    let error = orders.next_id().await.unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Unavailable | ErrorKind::DeadlineExceeded
    ));
    assert_eq!(client.stats().fallback_ids, 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_sends_no_more_requests() {
    let (fake, pipe, orders) = filled(prefetch(10, 9)).await;
    let clone = orders.clone();
    drop(orders);
    sleep(ms(1)).await;
    assert_eq!(pipe.connections(), 1);
    fake.always(Reply::Slow(ms(100)));
    clone.try_next_id().unwrap();
    sleep(ms(1)).await;
    drop(clone);
    sleep(ms(1)).await;
    // Its tasks would keep it alive, and the fetching one is in the middle of a call.
    assert_eq!((fake.calls(), pipe.connections()), (2, 0));
}

#[test]
fn the_blocking_handle_matches_and_outlives_its_client() {
    let fake = Fake::new(1);
    let server = Loopback::start(&fake);
    let client = Client::builder()
        .endpoint(server.url())
        .build_blocking()
        .unwrap();
    let orders = client.segment_with("orders", prefetch(100, 20)).unwrap();
    assert_eq!(client.segment("").unwrap_err().kind(), ErrorKind::Invalid);
    let unknown = client.segment("ordres").unwrap();
    assert_eq!(unknown.next_ids(2).unwrap_err().kind(), ErrorKind::NotFound);
    drop((client, unknown));
    assert_eq!(orders.next_id().unwrap(), 1);
    assert_eq!(orders.next_ids(5).unwrap(), [run(2, 5)]);
    assert_eq!(orders.try_next_id().unwrap(), 7);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let orders = orders.clone();
            std::thread::spawn(move || {
                (0..2000)
                    .map(|_| orders.next_id().unwrap())
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut all = std::collections::HashSet::new();
    for thread in threads {
        let numbers = thread.join().unwrap();
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "ascending for each thread"
        );
        all.extend(numbers);
    }
    assert_eq!(all.len(), 8000);
    let runs = orders.next_ids(1000).unwrap();
    assert_eq!(runs.iter().map(|run| run.count).sum::<u32>(), 1000);
    assert!(
        orders.stats().handed_out >= 9007,
        "{orders:?} {:?}",
        orders.stats()
    );
}

//! Fallback to the local service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};
use vesta_client::{Client, ErrorKind, Id, IdError, IdService, MakeId, Prefetch, Retry};

use crate::fake::{Fake, Local, MACHINES, Pipe, Reply, ms};

fn defended(prefetch: Option<Prefetch>) -> (Arc<Fake>, Pipe, Arc<Local>, Client) {
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let local = Arc::new(Local::default());
    let mut builder = Client::builder()
        .channel("pipe", pipe.channel())
        .fallback(Arc::clone(&local) as Arc<dyn IdService>)
        .retry(Retry {
            max_attempts: 3,
            ..Retry::default()
        });
    if let Some(prefetch) = prefetch {
        builder = builder.prefetch(prefetch);
    }
    let client = builder.build().unwrap();
    (fake, pipe, local, client)
}

async fn machine(client: &Client) -> u64 {
    client.gen_id().await.unwrap() % MACHINES
}

#[tokio::test(start_paused = true)]
async fn the_local_service_takes_over_and_hands_back() {
    let (fake, pipe, _local, client) = defended(None);
    assert_eq!(machine(&client).await, 1);

    pipe.cut();
    for _ in 0..1000 {
        assert_eq!(machine(&client).await, Local::MACHINE);
        sleep(ms(1)).await;
    }
    let stats = client.stats();
    assert_eq!((stats.fallback_ids, stats.fallback_switches), (1000, 1));
    assert!(stats.fallback_active);
    assert!(stats.calls <= 4, "{stats:?}");

    pipe.mend();
    let back = Instant::now();
    while machine(&client).await == Local::MACHINE {
        sleep(ms(1)).await;
    }
    assert!(back.elapsed() <= ms(510), "{:?}", back.elapsed());
    let calls = fake.calls();
    assert_eq!(machine(&client).await, 1);
    assert_eq!(fake.calls(), calls + 1);
    assert_eq!(client.stats().fallback_switches, 2);
    assert!(!client.stats().fallback_active);
}

#[tokio::test(start_paused = true)]
async fn the_local_service_covers_every_call_except_make_id() {
    let (_fake, pipe, _local, client) = defended(None);
    pipe.cut();
    let position = |id: &u64| id / MACHINES;
    let ids = client.gen_ids(25).await.unwrap();
    assert_eq!(
        ids.iter().map(position).collect::<Vec<_>>(),
        (1..=25).collect::<Vec<_>>()
    );
    let runs = client.gen_runs(30).await.unwrap();
    assert_eq!((runs.len(), runs[0].count, runs[0].step), (1, 30, MACHINES));
    let id = client.exp_id(3 * MACHINES + 4).await.unwrap();
    assert_eq!(
        id,
        Id {
            seq: 3,
            machine: 4,
            ..Id::default()
        }
    );
    let time = client.trans_time(5).await.unwrap();
    assert_eq!(time, SystemTime::UNIX_EPOCH + Duration::from_secs(5));
    let error = client.make_id(&MakeId::new(1, 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(client.stats().fallback_ids, 55);
    assert_eq!(
        client.gen_ids(10_001).await.unwrap_err().kind(),
        ErrorKind::OutOfRange
    );
}

#[tokio::test(start_paused = true)]
async fn the_local_service_does_not_overrule_a_refusal() {
    let (fake, _pipe, _local, client) = defended(None);
    for error in [
        IdError::Unauthenticated {
            reason: "no token".into(),
        },
        IdError::TimeExhausted,
        IdError::invalid("x", "y"),
    ] {
        fake.next([Reply::Fail(error.clone())]);
        assert_eq!(client.gen_id().await.unwrap_err().kind(), error.kind());
    }
    assert_eq!(client.stats().fallback_switches, 0);
}

#[tokio::test(start_paused = true)]
async fn the_local_service_covers_silent_and_stopped_servers() {
    let (fake, _pipe, _local, client) = defended(None);
    fake.always(Reply::Silence);
    let start = Instant::now();
    assert_eq!(machine(&client).await, Local::MACHINE);
    assert!(
        (ms(3000)..ms(3010)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    let start = Instant::now();
    assert_eq!(machine(&client).await, Local::MACHINE);
    assert_eq!(start.elapsed(), ms(0), "only the first one waits");

    let (fake, _pipe, _local, client) = defended(None);
    fake.always(Reply::Fail(IdError::Sealed {
        reason: "fenced".into(),
    }));
    assert_eq!(machine(&client).await, Local::MACHINE);
}

#[tokio::test(start_paused = true)]
async fn a_not_ready_local_service_is_waited_for() {
    let (_fake, pipe, local, client) = defended(None);
    pipe.cut();
    local.holds.store(5, Ordering::Relaxed);
    assert_eq!(machine(&client).await, Local::MACHINE);
    local.holds.store(u64::MAX, Ordering::Relaxed);
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SequenceUsedUp);
}

#[tokio::test(start_paused = true)]
async fn if_the_local_service_fails_the_servers_are_asked() {
    let (_fake, pipe, local, client) = defended(None);
    local.broken.store(true, Ordering::Relaxed);
    pipe.cut();
    assert_eq!(
        client.gen_id().await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    pipe.mend();
    assert_eq!(machine(&client).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_prefetch_buffer_comes_first_and_the_local_service_last() {
    let prefetch = Prefetch {
        capacity: 10,
        low_water: 5,
        ..Prefetch::default()
    };
    let (_fake, pipe, _local, client) = defended(Some(prefetch));
    sleep(ms(1)).await;
    pipe.cut();
    for _ in 0..10 {
        assert_eq!(machine(&client).await, 1);
    }
    for _ in 0..10 {
        assert_eq!(machine(&client).await, Local::MACHINE);
    }
    assert_eq!(client.try_gen_id().unwrap() % MACHINES, Local::MACHINE);
    pipe.mend();
    let back = Instant::now();
    while machine(&client).await == Local::MACHINE {
        sleep(ms(1)).await;
    }
    assert!(back.elapsed() <= ms(1100), "{:?}", back.elapsed());
    sleep(ms(600)).await;
    machine(&client).await;
    let stats = client.stats();
    assert_eq!((stats.fallback_active, stats.fallback_switches), (false, 2));
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_sends_no_probes() {
    let (fake, pipe, _local, client) = defended(None);
    pipe.cut();
    assert_eq!(machine(&client).await, Local::MACHINE);
    pipe.mend();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(fake.calls(), 0);
    // The next caller is served at once; its probe finds the servers in the meantime.
    assert_eq!(machine(&client).await, Local::MACHINE);
    sleep(ms(1)).await;
    assert_eq!(machine(&client).await, 1);
}

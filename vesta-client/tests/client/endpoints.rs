//! Several servers, some of them down.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use vesta_client::{Builder, Client, ErrorKind};

use crate::fake::{Fake, Loopback, MACHINES, Pipe, Reply, ms, unavailable};

fn two() -> ([Arc<Fake>; 2], [Pipe; 2], Builder) {
    let fakes = [Fake::new(1), Fake::new(2)];
    let pipes = [Pipe::to(&fakes[0]), Pipe::to(&fakes[1])];
    let builder = Client::builder()
        .channel("one", pipes[0].channel())
        .channel("two", pipes[1].channel());
    (fakes, pipes, builder)
}

#[tokio::test(start_paused = true)]
async fn healthy_servers_take_turns() {
    let (fakes, _pipes, builder) = two();
    let client = builder.build().unwrap();
    for _ in 0..10 {
        client.gen_id().await.unwrap();
    }
    assert_eq!([fakes[0].calls(), fakes[1].calls()], [5, 5]);
}

#[tokio::test]
async fn with_one_server_down_every_call_succeeds_over_tcp() {
    let fake = Fake::new(2);
    let up = Loopback::start(&fake);
    let down = Loopback::start(&Fake::new(1)).url();
    let client = Client::builder()
        .endpoint(down)
        .endpoint(up.url())
        .build()
        .unwrap();
    for _ in 0..20 {
        assert_eq!(client.gen_id().await.unwrap() % MACHINES, 2);
    }
    assert_eq!(fake.calls(), 20);
    let retries = client.stats().retries;
    assert!(
        (1..10).contains(&retries),
        "the one that is down is left alone, yet {retries} retries"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_is_used_again() {
    let (fakes, pipes, builder) = two();
    let client = builder.build().unwrap();
    client.gen_id().await.unwrap();
    client.gen_id().await.unwrap();
    pipes[0].cut();
    let start = Instant::now();
    for _ in 0..10 {
        assert_eq!(client.gen_id().await.unwrap() % MACHINES, 2);
    }
    assert_eq!(start.elapsed(), ms(0), "the other one is asked at once");
    assert_eq!(
        client.stats().retries,
        1,
        "the one that is down is left alone"
    );

    pipes[0].mend();
    sleep(ms(101)).await;
    let before = fakes[0].calls();
    for _ in 0..10 {
        client.gen_id().await.unwrap();
    }
    assert!(
        fakes[0].calls() >= before + 4,
        "{before}, {}",
        fakes[0].calls()
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_half_of_the_deadline_once() {
    let (fakes, _pipes, builder) = two();
    let client = builder.build().unwrap();
    fakes[0].always(Reply::Silence);
    let start = Instant::now();
    for _ in 0..10 {
        assert_eq!(client.gen_id().await.unwrap() % MACHINES, 2);
    }
    assert!(
        (ms(1500)..ms(1510)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(fakes[0].calls(), 1);
    let said = client.stats().last_error.unwrap();
    assert_eq!(&*said, "no response from one within 1500 ms");
}

#[tokio::test(start_paused = true)]
async fn the_time_for_one_attempt_can_be_set() {
    let (fakes, _pipes, builder) = two();
    let client = builder.attempt_timeout(ms(50)).build().unwrap();
    fakes[0].always(Reply::Silence);
    let start = Instant::now();
    client.gen_id().await.unwrap();
    client.gen_id().await.unwrap();
    assert!(
        (ms(50)..ms(55)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_deferred_server_is_skipped_while_another_is_healthy() {
    let (fakes, _pipes, builder) = two();
    let client = builder.build().unwrap();
    fakes[0].always(Reply::Fail(unavailable(Some(ms(60_000)))));
    let start = Instant::now();
    for _ in 0..10 {
        assert_eq!(client.gen_id().await.unwrap() % MACHINES, 2);
    }
    assert_eq!(start.elapsed(), ms(0));
    assert_eq!(fakes[0].calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_delay_holds_even_if_another_server_failed() {
    for round in 0..2 {
        let (fakes, pipes, builder) = two();
        let client = builder.build().unwrap();
        // One server answers, the other is down; either may be asked first.
        let (up, down) = (round, 1 - round);
        pipes[down].cut();
        fakes[up].next([Reply::Fail(unavailable(Some(ms(300))))]);
        assert_eq!(client.gen_id().await.unwrap() % MACHINES, 1 + up as u64);
        let seen = fakes[up].seen.lock();
        assert_eq!(seen.len(), 2);
        assert!(
            seen[1].at - seen[0].at >= ms(300),
            "{:?}",
            seen[1].at - seen[0].at
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_lost_during_a_call_is_retried() {
    let (fakes, pipes, builder) = two();
    let client = builder.build().unwrap();
    fakes[0].always(Reply::Silence);
    fakes[1].always(Reply::Silence);
    let call = tokio::spawn(async move { client.gen_id().await });
    sleep(ms(5)).await;
    fakes.iter().for_each(|fake| fake.always(Reply::Give));
    pipes.iter().for_each(Pipe::cut);
    pipes.iter().for_each(Pipe::mend);
    assert!(call.await.unwrap().is_ok());
    assert_eq!(fakes[0].calls() + fakes[1].calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn with_all_servers_down_the_error_names_one_and_the_cause() {
    let (_fakes, pipes, builder) = two();
    let client = builder.build().unwrap();
    pipes.iter().for_each(Pipe::cut);
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let said = error.to_string();
    assert!(
        said.starts_with("no response from one: ") || said.starts_with("no response from two: ")
    );
    assert!(said.ends_with("connection refused"), "{said}");
    pipes[1].mend();
    assert_eq!(
        client.gen_id().await.unwrap() % MACHINES,
        2,
        "a call is never refused untried"
    );
}

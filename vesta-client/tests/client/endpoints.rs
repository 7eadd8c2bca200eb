//! Several servers, some of them down.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use vesta_client::{Builder, Client, ErrorKind, Order, Prefetch};
use vesta_intf::{NotReady, NotReadyReason};

use crate::fake::{Fake, Local, Loopback, MACHINES, Pipe, Reply, ms, unavailable};

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

fn not_holder() -> Reply {
    let (retry_after, why) = (ms(50), NotReadyReason::NotHolder);
    Reply::Fail(NotReady { retry_after, why }.into())
}

#[tokio::test(start_paused = true)]
async fn a_strict_order_follows_the_holder_and_remembers_it() {
    let (fakes, pipes, builder) = two();
    let client = builder.order(Order::Strict).deadline(ms(8_000));
    let client = client.build().unwrap();
    for holder in [0, 1, 0] {
        fakes[holder].always(Reply::Give);
        fakes[1 - holder].always(not_holder());
        let before = fakes[1 - holder].calls();
        for _ in 0..20 {
            client.gen_id().await.unwrap();
        }
        assert!(fakes[1 - holder].calls() <= before + 1, "it is asked once");
    }
    // The holder is gone, and the other one takes over 4 s later.
    pipes[0].cut();
    let (begin, other) = (Instant::now(), fakes[1].clone());
    let takes_over = async {
        sleep(ms(4_000)).await;
        other.always(Reply::Give);
    };
    let (id, ()) = tokio::join!(client.gen_id(), takes_over);
    assert_eq!(id.unwrap() % MACHINES, 2);
    let late = begin.elapsed() - ms(4_000);
    assert!(late <= ms(101), "{late:?}");
    let asked = fakes[1].calls();
    assert!(asked < 120, "{asked} calls to one that stood by for 4 s");
}

#[tokio::test(start_paused = true)]
async fn a_strict_order_tries_until_the_deadline_and_reports_why() {
    let (fakes, _pipes, builder) = two();
    let client = builder.order(Order::Strict).build().unwrap();
    fakes.iter().for_each(|fake| fake.always(not_holder()));
    let begin = Instant::now();
    let error = client.gen_id().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotHolder);
    assert!((ms(2_900)..=ms(3_000)).contains(&begin.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_strict_order_gives_up_a_silent_server_after_a_second() {
    let (fakes, _pipes, builder) = two();
    let client = builder.order(Order::Strict).deadline(ms(8_000));
    let client = client.build().unwrap();
    fakes.iter().for_each(|fake| fake.next([Reply::Silence]));
    let begin = Instant::now();
    client.gen_id().await.unwrap();
    assert!((ms(2_000)..=ms(2_100)).contains(&begin.elapsed()));
}

#[tokio::test]
async fn a_strict_order_refuses_what_would_break_it() {
    let strict = || two().2.order(Order::Strict);
    let local = Arc::new(Local::default());
    for (builder, option) in [
        (strict().prefetch(Prefetch::default()), "prefetch: "),
        (strict().fallback(local), "fallback: "),
    ] {
        let said = builder.build().unwrap_err().to_string();
        assert!(said.starts_with(option), "{said}");
    }
}

/// A client that does not follow the holder finds it, too, however few calls it makes.
#[tokio::test(start_paused = true)]
async fn a_server_that_stands_by_uses_up_no_retry_budget() {
    let (fakes, _pipes, builder) = two();
    let client = builder.build().unwrap();
    fakes[0].always(not_holder());
    for _ in 0..500 {
        assert_eq!(client.gen_id().await.unwrap() % MACHINES, 2);
        sleep(ms(1_000)).await;
    }
}

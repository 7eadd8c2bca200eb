//! A process that forks after it has built a client.

#[path = "../../../vesta-service/tests/fork/forked.rs"]
mod forked;

use std::time::Duration;

use vesta_client::{Client, IdError, Prefetch};

use crate::fake::{Fake, Loopback};
use forked::{forked, is_told};

fn prefetch() -> Prefetch {
    Prefetch {
        capacity: 1000,
        low_water: 500,
        max_age: Duration::MAX,
    }
}

/// The buffers are full, and the ring has a run.
#[test]
fn child_hands_out_no_prefetched_id_and_its_parent_goes_on() {
    let server = Loopback::start(&Fake::new(1));
    let builder = Client::builder()
        .endpoint(server.url())
        .prefetch(prefetch());
    let client = builder.build_blocking().unwrap();
    let orders = client.segment_with("orders", prefetch()).unwrap();
    let first = client.gen_id().unwrap();
    let number = orders.next_id().unwrap();
    let mut owned = Some((client, orders));
    let in_child = forked(|| {
        let (client, orders) = owned.take().unwrap();
        is_told(client.try_gen_id());
        is_told(client.gen_id());
        is_told(client.gen_ids(&mut [0; 5]));
        is_told(client.try_gen_ids(&mut [0; 5]));
        is_told(orders.try_next_id());
        is_told(orders.next_id());
        is_told(orders.next_ids(5));
        is_told(client.exp_id(first));
        drop((client, orders)); // waits for no thread of the parent
    });
    assert!(in_child, "see what the child said");
    let (client, orders) = owned.expect("the child had a copy");
    assert!(client.gen_id().expect("the parent goes on") > first);
    // Possibly not the very next number: a call and a refill may have crossed before the fork.
    assert!(orders.next_id().expect("the parent goes on") > number);
}

#[test]
fn child_takes_no_id_of_an_open_stream() {
    let server = Loopback::start(&Fake::new(1));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = Client::builder().endpoint(server.url()).build().unwrap();
        let mut stream = client.stream(1000).unwrap();
        assert_eq!(stream.fill(&mut [0; 3]).await.unwrap(), 3);
        let mut owned = Some((client, stream));
        let in_child = forked(|| {
            let (client, mut stream) = owned.take().unwrap();
            let now = |call: &mut dyn FnMut() -> Result<(), IdError>| is_told(call());
            now(&mut || poll(stream.fill(&mut [0; 3])).map(drop));
            now(&mut || poll(client.gen_id()).map(drop));
            std::mem::forget((client, stream)); // their runtime belongs to the parent
        });
        assert!(in_child, "see what the child said");
        let (_, mut stream) = owned.expect("the child had a copy");
        assert_eq!(
            stream.fill(&mut [0; 3]).await.expect("the parent goes on"),
            3
        );
    });
}

/// Polls a call once: a refusal never waits.
fn poll<T>(call: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(call).poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

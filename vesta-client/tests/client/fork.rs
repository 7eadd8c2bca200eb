//! A process that forks after it has built a client.

#[path = "../../../vesta-service/tests/fork/forked.rs"]
mod forked;

use std::time::Duration;

use vesta_client::{Client, Prefetch};

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

//! Serials after a fork.

use std::sync::Arc;

use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_service::testing::MemoryStore;

use super::{forked, is_told};

#[test]
fn child_issues_no_serial() {
    let serials = SerialService::builder(Arc::new(MemoryStore::new()))
        .build()
        .unwrap();
    let pattern =
        vesta_numbers::serial::Pattern::new("A-{n:6}", vesta_numbers::serial::Reset::Never)
            .unwrap();
    serials
        .create(&NewSerialTag::new("orders", pattern, None).unwrap())
        .unwrap();
    let orders = serials.tag("orders").unwrap();
    orders.next().unwrap();
    let in_child = forked(|| {
        is_told(orders.try_next());
        is_told(orders.next());
        is_told(orders.next_many(10));
        is_told(serials.tag("orders"));
    });
    assert!(in_child, "see what the child said");
    assert_eq!(orders.next().expect("the parent goes on").counter, 2);
}

//! The reference store passes the conformance suite.

use std::sync::Arc;

use crate::serials;
use vesta_service::lease::KvStore;
use vesta_service::testing::MemoryStore;
use vesta_store::conformance::{Backend, Fixture};

struct Memory;
struct One(Arc<MemoryStore>);

impl Backend for Memory {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(One(Arc::new(MemoryStore::new())))
    }
}

impl Fixture for One {
    fn connect(&self) -> Arc<dyn KvStore> {
        self.0.clone()
    }
}

vesta_store::conformance!(Memory);

#[test]
fn serials_of_three_servers_while_days_months_and_years_end() {
    serials::run_all(&Memory);
}

//! Segment tags in MySQL keep the promises of every database.

use std::sync::Arc;

use vesta_service::SegmentStore;
use vesta_store::segment_conformance::{self, Databases};
use vesta_store::{Options, SegmentTable, open_segments};

use super::Database;

struct Segments(SegmentTable);
struct One(Database, SegmentTable);

impl Databases for Segments {
    fn fresh(&self) -> Box<dyn segment_conformance::Database> {
        Box::new(One(Database::fresh(), self.0))
    }
}

impl segment_conformance::Database for One {
    fn connect(&self) -> Arc<dyn SegmentStore> {
        let options = Options { segment_table: Some(self.1), ..Options::default() };
        open_segments(&self.0.url(), &options).expect("it opens")
    }
}

mod leaf {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Leaf));
}

mod kv {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Kv));
}

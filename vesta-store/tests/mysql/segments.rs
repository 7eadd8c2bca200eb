//! Segment tags in MySQL keep the promises of every database, and those of their own.

use std::sync::Arc;

use vesta_service::{NewSegmentTag, NextRange, SegmentService, SegmentStore};
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

#[test]
fn whole_numbers_of_any_width_are_read_and_a_bad_row_hurts_itself_alone() {
    let database = Database::fresh();
    let store = open_segments(&database.url(), &Options::default()).expect("it opens");
    for key in ["orders", "users"] {
        let tag = NewSegmentTag::new(key, 10).expect("a right tag");
        assert!(store.create(&tag).expect("it answers"));
    }
    let numbers = |end| NextRange::Numbers(end - 10..end);
    let mut end = 1;
    for kind in ["BIGINT UNSIGNED", "INT", "INT UNSIGNED", "SMALLINT", "DECIMAL(20,0)", "BIGINT"] {
        database.ask(&format!(
            "ALTER TABLE leaf_alloc MODIFY max_id {kind} NOT NULL, MODIFY step {kind} NOT NULL"
        ));
        end += 10;
        assert_eq!(store.next_range("orders", 10).expect(kind), numbers(end), "{kind}");
        assert!(store.give_back("orders", end - 3..end).expect(kind), "{kind}");
        end -= 3;
        let tags = store.tags().expect(kind);
        assert_eq!((tags[0].max_id.unsigned_abs(), tags[0].step), (end, 10), "{kind}");
    }
    for kind in ["DOUBLE", "FLOAT", "DECIMAL(20,2)", "VARCHAR(40)"] {
        database.ask(&format!("ALTER TABLE leaf_alloc MODIFY max_id {kind} NOT NULL"));
        let tags = store.tags().expect(kind);
        assert_eq!(tags.len(), 2);
        assert!(tags.iter().all(|tag| tag.max_id == -1), "{kind} loses numbers: {tags:?}");
    }
    database.ask("UPDATE leaf_alloc SET max_id = '1'");
    database.ask("ALTER TABLE leaf_alloc MODIFY max_id BIGINT NULL");
    database.ask("UPDATE leaf_alloc SET max_id = NULL WHERE biz_tag = 'orders'");
    let tags = store.tags().expect("it answers");
    assert_eq!(tags.iter().map(|tag| tag.max_id).collect::<Vec<_>>(), [-1, 1], "null");
    let service = SegmentService::builder(store).build().expect("a service");
    assert!(service.segment("users").and_then(|tag| tag.next()).is_ok());
    assert!(service.segment("orders").and_then(|tag| tag.next()).is_err());
}

mod leaf {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Leaf));
}

mod kv {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Kv));
}

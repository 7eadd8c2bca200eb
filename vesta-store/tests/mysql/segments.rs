//! Segment tags in MySQL keep the promises of every database, and those of their own.

use std::sync::Arc;

use vesta_service::SegmentStore;
use vesta_store::segment_conformance::{self, Databases};
use vesta_store::{Options, SegmentTable, open_segments};

use super::Database;
use super::shared::{self, ColumnTypes};

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

    fn step(&self, wanted: u64) -> u64 {
        if self.1 == SegmentTable::Cosid { 100 } else { wanted }
    }

    fn takes(&self, key: &str) -> bool {
        match self.1 {
            SegmentTable::Tinyid => {
                key.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.~".contains(&it))
            }
            SegmentTable::Cosid => key.chars().count() <= 100,
            SegmentTable::Leaf | SegmentTable::Kv => true,
        }
    }

    fn describes(&self) -> bool {
        matches!(self.1, SegmentTable::Leaf | SegmentTable::Kv)
    }
}

#[test]
fn whole_numbers_of_any_width_are_read_and_a_bad_row_hurts_itself_alone() {
    let database = Database::fresh();
    let types = ColumnTypes {
        whole: &["BIGINT UNSIGNED", "INT", "INT UNSIGNED", "SMALLINT", "DECIMAL(20,0)", "BIGINT"],
        lossy: &["DOUBLE", "FLOAT", "DECIMAL(20,2)", "VARCHAR(40)"],
        both: |kind| {
            format!(
                "ALTER TABLE leaf_alloc MODIFY max_id {kind} NOT NULL, MODIFY step {kind} NOT NULL"
            )
        },
        max_id: |kind| format!("ALTER TABLE leaf_alloc MODIFY max_id {kind} NOT NULL"),
        nullable: &[
            "UPDATE leaf_alloc SET max_id = '1'",
            "ALTER TABLE leaf_alloc MODIFY max_id BIGINT NULL",
        ],
    };
    shared::whole_numbers_of_any_width_are_read(
        &database.url(),
        |sql| _ = database.ask(sql),
        &types,
    );
}

mod leaf {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Leaf));
}

mod tinyid {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Tinyid));
}

mod cosid {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Cosid));
}

mod kv {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Kv));
}

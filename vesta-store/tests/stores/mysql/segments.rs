//! Segment tags in MySQL: conformance suite and further tests.

use std::sync::Arc;

use sqlx::Row as _;
use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentStore, Stride};
use vesta_store::segment_conformance::{self, Databases};
use vesta_store::{Options, SegmentTable, StoreUrl, open_segments, open_tinyid};

use super::Database;
use crate::shared::{self, ColumnTypes};

struct Segments(SegmentTable);
struct One(Database, SegmentTable);

impl Databases for Segments {
    fn fresh(&self) -> Box<dyn segment_conformance::Database> {
        Box::new(One(Database::fresh(), self.0))
    }
}

impl segment_conformance::Database for One {
    fn connect(&self) -> Arc<dyn SegmentStore> {
        opened(&self.0, self.1)
    }

    fn step(&self, wanted: u64) -> u64 {
        if self.1 == SegmentTable::Cosid {
            100
        } else {
            wanted
        }
    }

    fn takes(&self, key: &str) -> bool {
        match self.1 {
            SegmentTable::Tinyid => key
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-_.~".contains(&it)),
            SegmentTable::Cosid => key.chars().count() <= 100,
            SegmentTable::Leaf | SegmentTable::LeafLike { .. } | SegmentTable::Kv => true,
        }
    }

    fn describes(&self) -> bool {
        !matches!(self.1, SegmentTable::Tinyid | SegmentTable::Cosid)
    }
}

#[test]
fn whole_numbers_of_any_width_are_read_and_a_bad_row_affects_no_other() {
    let database = Database::fresh();
    let types = ColumnTypes {
        whole: &[
            "BIGINT UNSIGNED",
            "INT",
            "INT UNSIGNED",
            "SMALLINT",
            "DECIMAL(20,0)",
            "BIGINT",
        ],
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

fn opened(database: &Database, table: SegmentTable) -> Arc<dyn SegmentStore> {
    let options = Options {
        segment_table: Some(table),
        ..Options::default()
    };
    open_segments(&database.url().parse().unwrap(), &options).expect("it opens")
}

/// A database with a Tinyid tag whose row is then changed like this.
fn tinyid(change: &str) -> (Database, Arc<dyn SegmentStore>) {
    let database = Database::fresh();
    let store = opened(&database, SegmentTable::Tinyid);
    let tag = NewSegmentTag::new("orders", 1000).and_then(|tag| tag.starting_at(1001));
    assert!(
        store
            .create(&tag.expect("a right tag"))
            .expect("it answers")
    );
    database.ask(change);
    (database, store)
}

#[test]
fn another_table_with_leafs_columns_is_used_unchanged() {
    let database = Database::fresh();
    database.ask(
        "CREATE TABLE t_leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, \
         step INT NOT NULL, description VARCHAR(256), updated_at TIMESTAMP NOT NULL DEFAULT '2026-01-01')",
    );
    database.ask("INSERT INTO t_leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 2001, 1000)");
    let store = opened(
        &database,
        "leaf:t_leaf_alloc:updated_at".parse().expect("a table"),
    );
    assert!(
        store.describe().ends_with(" (t_leaf_alloc)"),
        "{}",
        store.describe()
    );
    let range = store.next_range("orders", 1000).expect("it answers");
    assert_eq!(range, NextRange::Numbers(2001..3001));
    let row = database.ask(
        "SELECT max_id, CAST(updated_at > '2026-01-01' AS SIGNED) FROM t_leaf_alloc \
         WHERE biz_tag = 'orders'",
    );
    assert_eq!(
        [row[0].get::<i64, _>(0), row[0].get::<i64, _>(1)],
        [3001, 1]
    );
    let other = opened(&database, "leaf:t_leaf_alloc".parse().expect("a table"));
    let said = other.tags().expect_err("it has no such column").to_string();
    assert!(said.contains("update_time"), "{said}");
}

#[test]
fn a_row_of_tinyid_has_the_numbers_of_its_stride() {
    let (database, store) = tinyid("UPDATE tiny_id_info SET delta = 3, remainder = 1");
    let stride = Stride {
        delta: 3,
        remainder: 1,
    };
    let tags = store.tags().expect("it answers");
    assert_eq!(
        (tags[0].max_id, tags[0].step, tags[0].stride),
        (1001, 1000, stride)
    );
    let next = || store.next_range("orders", 1000);
    assert_eq!(
        next().expect("it answers"),
        NextRange::Strided(1001..2001, stride)
    );
    // A range smaller than the stride might contain none of its numbers.
    assert_eq!(
        store.next_range("orders", 1).expect("it answers"),
        NextRange::Strided(2001..2004, stride)
    );
    let row = database.ask("SELECT version FROM tiny_id_info WHERE begin_id = 1000");
    assert_eq!(
        row[0].get::<i64, _>(0),
        3,
        "its own servers detect the change"
    );
    database.ask("UPDATE tiny_id_info SET delta = 2");
    let stride = Stride {
        delta: 2,
        remainder: 1,
    };
    assert_eq!(
        next().expect("it answers"),
        NextRange::Strided(2004..3004, stride)
    );
}

#[test]
fn invalid_foreign_rows_give_no_numbers() {
    for (change, expected) in [
        (
            "UPDATE tiny_id_info SET max_id = -5",
            ((-1, 1000), ["-5", "1000"]),
        ),
        (
            "UPDATE tiny_id_info SET step = NULL",
            ((1001, -1), ["1001", "NULL"]),
        ),
        (
            "UPDATE tiny_id_info SET step = 0",
            ((1001, 0), ["1001", "0"]),
        ),
    ] {
        let (_database, store) = tinyid(change);
        let tags = store.tags().expect("it answers");
        assert_eq!((tags[0].max_id, tags[0].step), expected.0, "{change}");
        assert_eq!(tags[0].shown(), expected.1, "{change}");
    }
    for change in ["delta = 0", "delta = -2", "remainder = 1", "remainder = -1"] {
        let (_database, store) = tinyid(&format!("UPDATE tiny_id_info SET {change}"));
        assert!(
            !store.tags().expect("it answers")[0].stride.is_valid(),
            "{change}"
        );
        let said = store
            .next_range("orders", 10)
            .expect_err("refused")
            .to_string();
        assert!(
            said.contains("the row of tag `orders` needs a delta above 0"),
            "{said}"
        );
    }
    let (_database, store) = tinyid("UPDATE tiny_id_info SET max_id = -5");
    let said = store
        .next_range("orders", 10)
        .expect_err("refused")
        .to_string();
    assert!(
        said.contains("max_id of tag `orders` is negative"),
        "{said}"
    );
}

#[test]
fn tags_that_foreign_tables_cannot_represent_are_refused() {
    let database = Database::fresh();
    let new = |key: &str, step| NewSegmentTag::new(key, step).expect("right for a tag");
    let described = new("a", 100).described_as("b").expect("right for a tag");
    let zero = new("a", 100).starting_at(0).expect("right for a tag");
    for (table, tag, why) in [
        (
            SegmentTable::Tinyid,
            new("a b", 10),
            "use letters, digits, `-`, `_`, `.` and `~`",
        ),
        (SegmentTable::Tinyid, new("\u{8ba2}", 10), "use letters"),
        (
            SegmentTable::Tinyid,
            new(&"a".repeat(64), 10),
            "has at most 63 characters",
        ),
        (
            SegmentTable::Cosid,
            new(&"\u{8ba2}".repeat(101), 100),
            "has at most 100 characters",
        ),
        (SegmentTable::Cosid, new("a", 10), "each tag has one of 100"),
        (
            SegmentTable::Tinyid,
            described.clone(),
            "has no descriptions",
        ),
        (SegmentTable::Cosid, described, "has no descriptions"),
        (
            SegmentTable::Tinyid,
            zero.clone(),
            "the first number in the table tiny_id_info is 1",
        ),
        (
            SegmentTable::Cosid,
            zero,
            "the first number in the table cosid is 1",
        ),
    ] {
        let error = opened(&database, table).create(&tag).expect_err(why);
        assert!(
            error.is_permanent() && error.to_string().contains(why),
            "{error}"
        );
    }
}

#[test]
fn the_tokens_of_tinyid_are_trimmed() {
    let (database, _) =
        tinyid("CREATE TABLE tiny_id_token (token varchar(255), biz_type varchar(63))");
    database
        .ask("INSERT INTO tiny_id_token VALUES (' t1 ', 'orders '), ('t1', 'users'), (NULL, NULL)");
    let url: StoreUrl = database.url().parse().expect("a URL");
    let store = open_tinyid(&url, &Options::default()).expect("it opens");
    let text = |(token, tag): &(&str, &str)| ((*token).to_owned(), (*tag).to_owned());
    let expected: Vec<_> = [("t1", "orders"), ("t1", "users"), ("", "")]
        .iter()
        .map(text)
        .collect();
    assert_eq!(store.tokens().expect("it answers"), expected);
    assert!(
        store.describe().ends_with(" (tiny_id_info)"),
        "{}",
        store.describe()
    );
    database.ask("DROP TABLE tiny_id_token");
    assert!(store.tokens().expect_err("there are none").is_permanent());
}

mod leaf {
    vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Leaf));
}

mod leaf_like {
    vesta_store::segment_conformance!(super::Segments(
        "leaf:t_leaf_alloc:updated_at".parse().unwrap()
    ));
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

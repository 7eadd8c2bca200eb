//! Distribution of the IDs of one machine ID over database partitions.

use vesta_intf::{Id, IdMeta};

use super::databases::Database;

/// 1,000 `max-peak` IDs of one machine ID, of one second or of one second each.
fn ids(in_one_second: bool) -> Vec<u64> {
    let at = |i| {
        if in_one_second {
            (375_276_990, i)
        } else {
            (375_276_990 + i, 0)
        }
    };
    let id = |i| {
        let (time, seq) = at(i);
        Id {
            time,
            seq,
            machine: 470,
            gen_method: 2,
            ..IdMeta::MAX_PEAK.blank()
        }
    };
    (0..1000)
        .map(|i| IdMeta::MAX_PEAK.pack(&id(i)).expect("an ID"))
        .collect()
}

/// Number of partitions or shards that get IDs.
fn filled(database: &mut Database, sql: impl Fn(&str) -> String) -> Vec<usize> {
    let filled = |in_one_second| {
        let values: Vec<_> = ids(in_one_second)
            .iter()
            .map(|id| format!("({id})"))
            .collect();
        database.rows(&sql(&values.join(", "))).len()
    };
    [true, false].map(filled).into()
}

#[test]
fn mysql_partitions_need_an_odd_modulus_or_a_hash() {
    let mut database = Database::of_mysql();
    for (by, count, expected) in [
        ("HASH (id)", 16, [1, 1]),
        ("KEY (id)", 16, [1, 2]),
        ("HASH (id)", 17, [17, 17]),
    ] {
        let found = filled(&mut database, |values| {
            let of = |i| format!("SELECT {i} FROM orders PARTITION (p{i}) HAVING COUNT(*) > 0");
            let each: Vec<_> = (0..count).map(of).collect();
            format!(
                "DROP TABLE IF EXISTS orders; \
                 CREATE TABLE orders (id BIGINT PRIMARY KEY) PARTITION BY {by} PARTITIONS {count}; \
                 INSERT INTO orders VALUES {values}; {}",
                each.join(" UNION ALL ")
            )
        });
        assert_eq!(found, expected, "{by} {count}");
    }
    let found = filled(&mut database, |values| {
        format!(
            "DROP TABLE IF EXISTS orders; CREATE TABLE orders (id BIGINT PRIMARY KEY); \
             INSERT INTO orders VALUES {values}; SELECT DISTINCT CRC32(id) % 16 FROM orders"
        )
    });
    assert_eq!(found, [16, 16]);
}

#[test]
fn postgres_hash_partitions_are_all_filled() {
    let mut database = Database::of_postgres();
    let found = filled(&mut database, |values| {
        let of = |i| {
            format!(
                "CREATE TABLE orders{i} PARTITION OF orders \
                 FOR VALUES WITH (MODULUS 16, REMAINDER {i});"
            )
        };
        format!(
            "DROP TABLE IF EXISTS orders; \
             CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY HASH (id); {} \
             INSERT INTO orders VALUES {values}; SELECT DISTINCT tableoid FROM orders",
            (0..16).map(of).collect::<String>()
        )
    });
    assert_eq!(found, [16, 16]);
}

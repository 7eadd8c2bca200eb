//! CosId's tables in MySQL.

use std::hash::{BuildHasher as _, RandomState};

use crate::mysql::{User, ask, server};

/// A database, and a user with read-only access.
pub(crate) struct Place {
    server: String,
    name: String,
    _user: User,
}

const PASSWORD: &str = "reader";

/// As CosId creates them, without the comments.
const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS cosid_machine (name VARCHAR(100) NOT NULL, namespace VARCHAR(100) NOT NULL, \
     machine_id INTEGER UNSIGNED NOT NULL DEFAULT 0, last_timestamp BIGINT UNSIGNED NOT NULL DEFAULT 0, \
     instance_id VARCHAR(100) NOT NULL DEFAULT '', distribute_time BIGINT UNSIGNED NOT NULL DEFAULT 0, \
     revert_time BIGINT UNSIGNED NOT NULL DEFAULT 0, CONSTRAINT cosid_machine_pk PRIMARY KEY (name), \
     KEY idx_namespace (namespace), KEY idx_instance_id (instance_id)) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS cosid (name VARCHAR(100) NOT NULL, last_max_id BIGINT UNSIGNED NOT NULL DEFAULT 0, \
     last_fetch_time BIGINT UNSIGNED NOT NULL DEFAULT 0, CONSTRAINT cosid_pk PRIMARY KEY (name)) \
     ENGINE = InnoDB",
];

impl Place {
    pub(crate) fn new() -> Self {
        let name = format!("cosid_{:x}", RandomState::new().hash_one("a database"));
        let place = Self {
            _user: User::enter(),
            server: server(),
            name,
        };
        let name = &place.name;
        place.ask(&format!("CREATE DATABASE {name}"));
        place.ask(&format!("CREATE USER {name} IDENTIFIED BY '{PASSWORD}'"));
        place.ask(&format!("GRANT SELECT ON {name}.* TO {name}"));
        place
    }

    fn ask(&self, sql: &str) {
        ask(&self.server, sql);
    }

    /// Creates the tables and adds rows to one.
    fn fill(&self, table: &str, rows: &str) {
        for table in TABLES {
            self.ask(&format!("USE {}; {table}", self.name));
        }
        self.ask(&format!("INSERT INTO {}.{table} VALUES {rows}", self.name));
    }
}

impl super::Place for Place {
    fn url(&self) -> String {
        let (_, place) = self.server.rsplit_once('@').expect("a URL with a password");
        let (address, _) = place.split_once('/').expect("a URL with a database");
        format!("mysql://{0}:{PASSWORD}@{address}/{0}", self.name)
    }

    fn namespace(&self) -> String {
        "shop".into()
    }

    fn hand_out(&self) {
        self.fill(
            "cosid_machine",
            "('shop.00000000', 'shop', 0, 1769832060123, '10.0.0.0:8080', 1769832000000, 0), \
             ('shop.00000001', 'shop', 1, 1769832064000, '10.0.0.9:1234', 1769832064000, 1769832061001), \
             ('shop.00000002', 'shop', 2, 1769832062000, '10.0.0.2:8080', 1769832002000, 1769832062001), \
             ('shop.00000003', 'shop', 3, 1769832063000, '', 1769832003000, 1769832063001), \
             ('shop.00000004', 'shop', 4, 1769832004000, '10.0.0.4:8080', 1769832004000, 0), \
             ('other.00000005', 'other', 5, 1769832004000, '10.0.0.5:8080', 1769832004000, 0)",
        );
    }

    fn count_on(&self) -> bool {
        false
    }

    /// Columns of types that CosId does not use: its own hold numbers only.
    fn damage(&self) -> Vec<String> {
        let row = "UPDATE cosid_machine SET last_timestamp = '2026-01-31' WHERE machine_id =";
        let change = "ALTER TABLE cosid_machine MODIFY last_timestamp VARCHAR(30) NOT NULL";
        self.ask(&format!("USE {}; {change}; {row} 3; {row} 4", self.name));
        vec![
            "shop.00000003 of cosid_machine = \"2026-01-31\"".into(),
            "shop.00000004 of cosid_machine = \"4|2026-01-31\"".into(),
        ]
    }

    fn segments(&self) {
        self.fill(
            "cosid",
            "('shop.order', 2200, 1769832000), ('shop.order@260131', 0, 1769832000), \
             ('shop.eu.item', 15, 1769832000), ('shopx.order', 7, 1769832000), \
             ('namespace.name', 0, 1769832000), ('shop.', 1, 1769832000)",
        );
    }

    fn damage_segment(&self) -> String {
        let change = "ALTER TABLE cosid MODIFY last_max_id DOUBLE NOT NULL";
        self.ask(&format!("USE {}; {change}", self.name));
        self.fill("cosid", "('shop.user', 1.5, 1769832000)");
        "shop.user of cosid = \"1.5\"".into()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.ask(&format!("DROP DATABASE {0}; DROP USER {0}", self.name));
    }
}

//! SQLite passes the conformance suite.

use std::sync::Arc;

use crate::serials;
use rusqlite::Connection;
use tempfile::TempDir;
use vesta_service::lease::KvStore;
use vesta_store::conformance::{Backend, Fixture};

struct Sqlite;
struct Folder(TempDir);

impl Backend for Sqlite {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Folder(
            tempfile::tempdir().expect("a folder for temporary files"),
        ))
    }
}

impl Fixture for Folder {
    fn connect(&self) -> Arc<dyn KvStore> {
        let url = format!("sqlite:{}/vesta.db", self.0.path().display());
        vesta_store::open(&url.parse().unwrap()).expect("it opens")
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        let database = Connection::open(self.0.path().join("vesta.db")).expect("it opens");
        let delete = "DELETE FROM vesta_kv WHERE area = ?1 AND name = ?2";
        database.execute(delete, [area, key]).expect("it is there") == 1
    }
}

vesta_store::conformance!(Sqlite);

#[test]
fn serials_of_three_servers_while_days_months_and_years_end() {
    serials::run_all(&Sqlite);
}

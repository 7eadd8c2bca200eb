//! The stores that tests run on, one a row.

use std::path::Path;

/// A store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Store {
    pub(crate) name: &'static str,
    /// Where the URL of a server comes from; `None` for a store that is a file.
    variable: Option<&'static str>,
}

pub(crate) const SQLITE: Store = Store { name: "sqlite", variable: None };
pub(crate) const MYSQL: Store = Store { name: "mysql", variable: Some("VESTA_TEST_MYSQL") };
pub(crate) const POSTGRES: Store =
    Store { name: "postgres", variable: Some("VESTA_TEST_POSTGRES") };
pub(crate) const REDIS: Store = Store { name: "redis", variable: Some("VESTA_TEST_REDIS") };
pub(crate) const ZOOKEEPER: Store =
    Store { name: "zookeeper", variable: Some("VESTA_TEST_ZOOKEEPER") };
pub(crate) const ETCD: Store = Store { name: "etcd", variable: Some("VESTA_TEST_ETCD") };

impl Store {
    /// Its URL. A store that is a file lies in this folder.
    pub(crate) fn url(&self, folder: &Path) -> String {
        let Some(variable) = self.variable else {
            return format!("{}:{}/vesta.db", self.name, folder.display());
        };
        std::env::var(variable).unwrap_or_else(|_| {
            panic!("set {variable} to the URL of a throw-away server, or run scripts/test.sh")
        })
    }
}

//! The stores on which tests run, one per row.

use std::path::Path;

use vesta_testkit::fleet::store_url;

/// A store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Store {
    pub(crate) name: &'static str,
    /// False if the store is a file.
    is_server: bool,
}

pub(crate) const SQLITE: Store = Store {
    name: "sqlite",
    is_server: false,
};
pub(crate) const MYSQL: Store = Store::server("mysql");
pub(crate) const POSTGRES: Store = Store::server("postgres");
pub(crate) const REDIS: Store = Store::server("redis");
pub(crate) const ZOOKEEPER: Store = Store::server("zookeeper");
pub(crate) const ETCD: Store = Store::server("etcd");
pub(crate) const POOL_SERVER: Store = Store::server("pool_server");

impl Store {
    const fn server(name: &'static str) -> Self {
        let is_server = true;
        Self { name, is_server }
    }

    /// Its URL. A store that is a file is in this folder.
    pub(crate) fn url(&self, folder: &Path) -> String {
        match self.is_server {
            true => store_url(self.name),
            false => format!("{}:{}/vesta.db", self.name, folder.display()),
        }
    }
}

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
pub(crate) const MYSQL: Store = Store {
    name: "mysql",
    is_server: true,
};
pub(crate) const POSTGRES: Store = Store {
    name: "postgres",
    is_server: true,
};
pub(crate) const REDIS: Store = Store {
    name: "redis",
    is_server: true,
};
pub(crate) const ZOOKEEPER: Store = Store {
    name: "zookeeper",
    is_server: true,
};
pub(crate) const ETCD: Store = Store {
    name: "etcd",
    is_server: true,
};

pub(crate) const POOL_SERVER: Store = Store {
    name: "pool_server",
    is_server: true,
};

impl Store {
    /// Its URL. A store that is a file is in this folder.
    pub(crate) fn url(&self, folder: &Path) -> String {
        match self.is_server {
            true => store_url(self.name),
            false => format!("{}:{}/vesta.db", self.name, folder.display()),
        }
    }
}

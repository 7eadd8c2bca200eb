//! etcd keeps the promises of every store.

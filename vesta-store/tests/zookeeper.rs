//! zookeeper keeps the promises of every store.

//! The conformance suite on each store, and the promises of single stores.

#[cfg(all(feature = "redis", feature = "mysql", feature = "zookeeper"))]
mod cosid;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod first_starts;
mod import;
mod memory;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "remote")]
mod network;
mod planted_faults;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod restarts;
mod segments;
mod serials;
#[cfg(feature = "remote")]
#[path = "../processes/stores.rs"]
#[allow(
    dead_code,
    reason = "rows of stores without a network, or left out of this build"
)]
mod servers;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod shared;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "zookeeper")]
#[path = "../workers/mod.rs"]
mod workers;
#[cfg(feature = "zookeeper")]
mod zookeeper;

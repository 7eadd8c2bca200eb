//! Backends, one folder each: connecting and checking (`mod`), the URL (`config`), the functions of
//! the port (`kv`), and error mapping (`errors`).

#[cfg(any(feature = "etcd", feature = "pool-server"))]
mod channel;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
#[cfg(feature = "pool-server")]
pub(crate) mod pool_server;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(feature = "zookeeper")]
pub(crate) mod zookeeper;

/// Message of a server or a driver, stripped of everything else it carries.
#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "etcd",
    feature = "pool-server"
))]
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ServerMessage(String);

/// Decodes the bytes of an entry as text.
#[cfg(any(feature = "redis", feature = "etcd"))]
fn text(entry: &str, bytes: Vec<u8>) -> Result<String, vesta_service::lease::StoreError> {
    String::from_utf8(bytes).map_err(|_| {
        vesta_service::lease::StoreError::permanent(format!("{entry} is damaged: not valid UTF-8"))
    })
}

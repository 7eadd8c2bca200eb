//! The kinds of stores, a folder each: connecting and checking (`mod`), the URL (`config`), the
//! functions of the port (`kv`), and errors as what the caller can do (`errors`).

#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
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

/// The words of a server or a driver, and nothing that they keep beside them.
#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "etcd"
))]
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ServerMessage(String);

/// The text in the bytes of an entry.
#[cfg(any(feature = "redis", feature = "etcd"))]
fn text(entry: &str, bytes: Vec<u8>) -> Result<String, vesta_service::lease::StoreError> {
    String::from_utf8(bytes).map_err(|_| {
        vesta_service::lease::StoreError::permanent(format!("{entry} is damaged: it is not UTF-8"))
    })
}

//! Machine IDs of a legacy system.

use super::cosid;
use super::legacy::Legacy;
#[cfg(feature = "zookeeper")]
use super::{leaf, nodes};
#[cfg(feature = "mysql")]
use crate::backends::mysql;
use crate::foreign_owner::ForeignOwner;
use crate::{OpenError, StoreUrl};

/// Reads the machine IDs that a legacy system has handed out. Changes nothing.
///
/// # Errors
/// As [`open`](crate::open); if no such machine IDs exist, or the system does not use such a store;
/// and for unexpected entries, which are named.
pub fn machine_ids(url: &StoreUrl, legacy: Legacy<'_>) -> Result<Vec<ForeignOwner>, OpenError> {
    match (legacy, url.kind()) {
        #[cfg(feature = "mysql")]
        (Legacy::VestaDb, crate::Kind::Mysql) => mysql::vesta_machine_ids(url),
        #[cfg(feature = "zookeeper")]
        (Legacy::Leaf, crate::Kind::Zookeeper) => leaf::leaf_machine_ids(url),
        #[cfg(feature = "zookeeper")]
        (Legacy::Nodes, crate::Kind::Zookeeper) => nodes::machine_ids(url),
        (
            Legacy::CosId {
                namespace,
                max_machine,
            },
            _,
        ) => cosid::machine_ids(url, namespace, max_machine),
        _ => Err(legacy.not_in(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_a_system_does_not_use_is_refused() {
        let cosid = Legacy::CosId {
            namespace: "shop",
            max_machine: 1023,
        };
        for (legacy, url, said) in [
            (
                Legacy::VestaDb,
                "redis://:hunter2@h",
                "The Java Vesta keeps its data in mysql, not in redis; write mysql://",
            ),
            (
                Legacy::Leaf,
                "mysql://u:hunter2@h/d",
                "Leaf keeps its data in zookeeper, not in mysql; write zookeeper://",
            ),
            (
                Legacy::Nodes,
                "etcd://u:hunter2@h",
                "The other system keeps its data in zookeeper, not in etcd; write zookeeper://",
            ),
            (
                cosid,
                "etcd://u:hunter2@h",
                "CosId keeps its data in redis or mysql or zookeeper, not in etcd; write redis://",
            ),
            (cosid, "sqlite:x.db", "not in sqlite; write"),
        ] {
            let error = machine_ids(&url.parse().unwrap(), legacy)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(said) && !error.contains("hunter2"),
                "{error}"
            );
        }
        let error = cosid::cosid_segments(&"sqlite:x.db".parse().unwrap(), "shop").unwrap_err();
        assert!(error.to_string().contains("not in sqlite"), "{error}");
    }
}

//! Legacy systems whose machine IDs can be taken over, and the stores of each.

use vesta_explain::layouts;
use vesta_service::IdMeta;
#[cfg(feature = "remote")]
use vesta_service::lease::StoreError;

#[cfg(feature = "remote")]
use crate::remote::{Client, Remote};
use crate::{Kind, OpenError, StoreUrl};

/// A legacy system whose machine IDs can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Legacy<'a> {
    /// The Java Vesta, in MySQL.
    VestaDb,
    /// Leaf's snowflake mode, in ZooKeeper.
    Leaf,
    /// A system whose worker IDs are the names of a znode's children.
    Nodes,
    /// CosId, in Redis, MySQL or ZooKeeper.
    CosId {
        /// Its namespace.
        namespace: &'a str,
        /// Largest machine ID of the target layout. Machine IDs known only from CosId's counter end
        /// here: in ZooKeeper the counter keeps growing after all machine IDs are used up.
        max_machine: u64,
    },
}

/// Properties of a legacy system.
struct Facts {
    name: &'static str,
    kinds: &'static [Kind],
    example: &'static str,
    layouts: &'static [IdMeta],
}

impl Legacy<'_> {
    const fn facts(&self) -> Facts {
        match self {
            Legacy::VestaDb => Facts {
                name: "The Java Vesta",
                kinds: &[Kind::Mysql],
                example: "mysql://user:password@host:3306/database",
                layouts: &[],
            },
            Legacy::Leaf => Facts {
                name: "Leaf",
                kinds: &[Kind::Zookeeper],
                example: "zookeeper://host:2181/snowflake/NAME/forever",
                layouts: &[IdMeta::SNOWFLAKE],
            },
            Legacy::Nodes => Facts {
                name: "The other system",
                kinds: &[Kind::Zookeeper],
                example: "zookeeper://host:2181/snowflake/NAME",
                layouts: &[],
            },
            Legacy::CosId { .. } => Facts {
                name: "CosId",
                kinds: &[Kind::Redis, Kind::Mysql, Kind::Zookeeper],
                example: "redis://:password@host:6379/0, mysql://user:password@host:3306/database or \
                          zookeeper://host:2181",
                layouts: &layouts::COSID_LAYOUTS,
            },
        }
    }

    /// The name of the system.
    pub const fn name(&self) -> &'static str {
        self.facts().name
    }

    /// The layouts of its IDs; empty if they are Vesta's own.
    pub const fn layouts(&self) -> &'static [IdMeta] {
        self.facts().layouts
    }

    /// The error for a URL of a store that the system does not use, or that this build cannot open.
    pub(super) fn not_in(&self, url: &StoreUrl) -> OpenError {
        let Facts {
            name,
            kinds,
            example,
            ..
        } = self.facts();
        let kind = url.kind();
        if kinds.contains(&kind) {
            return OpenError::FeatureOff {
                feature: kind.name(),
            };
        }
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        let (kinds, kind) = (kinds.join(" or "), kind.name());
        let reason = format!("{name} keeps its data in {kinds}, not in {kind}");
        OpenError::Malformed { reason, example }
    }
}

/// Queries the store of a legacy system.
#[cfg(feature = "remote")]
#[allow(dead_code, reason = "of some stores none has such data")]
pub(super) fn ask<C: Client, T>(
    url: &StoreUrl,
    question: impl FnOnce(&Remote<C>) -> Result<T, StoreError>,
) -> Result<T, OpenError> {
    let store = Remote::open(
        url,
        &crate::Options::default(),
        crate::options::Purpose::Import,
    )?;
    question(&store).map_err(|source| OpenError::Store {
        store: store.shown().into(),
        source,
    })
}

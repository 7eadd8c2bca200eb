//! The kinds of stores.

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names")]
pub enum Kind {
    Sqlite,
    Mysql,
    Postgres,
    Redis,
    Zookeeper,
    Etcd,
    PoolServer,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Self; 7] = [
        Self::Sqlite,
        Self::Mysql,
        Self::Postgres,
        Self::Redis,
        Self::Zookeeper,
        Self::Etcd,
        Self::PoolServer,
    ];

    /// The kind with this scheme, ignoring case.
    pub(crate) fn of_scheme(scheme: &str) -> Option<Self> {
        let is = |known: &&str| known.eq_ignore_ascii_case(scheme);
        Self::ALL
            .into_iter()
            .find(|kind| kind.facts().schemes.iter().any(is))
    }

    /// The name of the kind and of its cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PoolServer => "pool-server",
            _ => self.facts().schemes[0],
        }
    }

    pub(crate) const fn facts(self) -> Facts {
        match self {
            Self::Sqlite => Facts {
                schemes: &["sqlite"],
                options: "",
                example: "sqlite:PATH, for example sqlite:vesta-data/vesta.db",
                built_in: cfg!(feature = "sqlite"),
            },
            Self::Mysql => Facts {
                schemes: &["mysql", "mariadb"],
                options: "ssl-mode ssl-ca ssl-cert ssl-key socket charset collation timezone \
                          statement-cache-capacity",
                example: "mysql://user:password@host:3306/database",
                built_in: cfg!(feature = "mysql"),
            },
            Self::Postgres => Facts {
                schemes: &["postgres", "postgresql"],
                options: "sslmode sslrootcert sslcert sslkey host hostaddr port dbname user \
                          application_name options options[ statement-cache-capacity",
                example: "postgres://user:password@host:5432/database",
                built_in: cfg!(feature = "postgres"),
            },
            Self::Redis => Facts {
                schemes: &["redis", "rediss"],
                options: "prefix",
                example: "redis://user:password@host:6379/0 or \
                          rediss://:password@host:6379/0?prefix=vesta",
                built_in: cfg!(feature = "redis"),
            },
            Self::Zookeeper => Facts {
                schemes: &["zookeeper"],
                options: "",
                example: "zookeeper://zk1:2181,zk2:2181,zk3:2181/vesta",
                built_in: cfg!(feature = "zookeeper"),
            },
            Self::Etcd => Facts {
                schemes: &["etcd", "etcds"],
                options: "ca",
                example: "etcd://etcd1:2379,etcd2:2379,etcd3:2379/vesta",
                built_in: cfg!(feature = "etcd"),
            },
            Self::PoolServer => Facts {
                schemes: &["vesta", "vestas"],
                options: "ca id",
                example: "vesta://host1:50051,host2:50051 or vestas://:TOKEN@host:50051",
                built_in: cfg!(feature = "pool-server"),
            },
        }
    }

    pub(crate) const fn is_sql(self) -> bool {
        matches!(self, Self::Mysql | Self::Postgres)
    }
}

/// Properties of a kind of store.
pub(crate) struct Facts {
    pub(crate) schemes: &'static [&'static str],
    /// Options after the `?`, separated by spaces. None is a secret, except keys, which are hidden.
    /// A name that ends with `[` stands for all that begin with it.
    pub(crate) options: &'static str,
    pub(crate) example: &'static str,
    /// True if the backend is part of this build.
    pub(crate) built_in: bool,
}

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
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Sqlite, Self::Mysql, Self::Postgres, Self::Redis, Self::Zookeeper, Self::Etcd];

    /// The kind with this scheme, in any case.
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        let is = |known: &&str| known.eq_ignore_ascii_case(scheme);
        Self::ALL.into_iter().find(|kind| kind.schemes().iter().any(is))
    }

    /// The name of the kind and of its cargo feature.
    pub const fn name(self) -> &'static str {
        self.schemes()[0]
    }

    const fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["sqlite"],
            Self::Mysql => &["mysql", "mariadb"],
            Self::Postgres => &["postgres", "postgresql"],
            Self::Redis => &["redis", "rediss"],
            Self::Zookeeper => &["zookeeper"],
            Self::Etcd => &["etcd", "etcds"],
        }
    }

    /// The options behind a `?`, with blanks between them: none is a secret, except for keys, which
    /// are hidden. A name that ends with `[` stands for all that begin with it.
    pub(crate) const fn options(self) -> &'static str {
        match self {
            Self::Mysql => {
                "ssl-mode ssl-ca ssl-cert ssl-key socket charset collation timezone \
                 statement-cache-capacity"
            }
            Self::Postgres => {
                "sslmode sslrootcert sslcert sslkey host hostaddr port dbname user application_name \
                 options options[ statement-cache-capacity"
            }
            Self::Redis => "prefix",
            Self::Etcd => "ca",
            Self::Sqlite | Self::Zookeeper => "",
        }
    }

    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite:PATH, for example sqlite:vesta-data/vesta.db",
            Self::Mysql => "mysql://user:password@host:3306/database",
            Self::Postgres => "postgres://user:password@host:5432/database",
            Self::Redis => {
                "redis://user:password@host:6379/0 or rediss://:password@host:6379/0?prefix=vesta"
            }
            Self::Zookeeper => "zookeeper://zk1:2181,zk2:2181,zk3:2181/vesta",
            Self::Etcd => "etcd://etcd1:2379,etcd2:2379,etcd3:2379/vesta",
        }
    }

    /// True if this build has the backend.
    pub const fn built_in(self) -> bool {
        match self {
            Self::Sqlite => cfg!(feature = "sqlite"),
            Self::Mysql => cfg!(feature = "mysql"),
            Self::Postgres => cfg!(feature = "postgres"),
            Self::Redis => cfg!(feature = "redis"),
            Self::Zookeeper => cfg!(feature = "zookeeper"),
            Self::Etcd => cfg!(feature = "etcd"),
        }
    }

    pub(crate) const fn is_sql(self) -> bool {
        matches!(self, Self::Mysql | Self::Postgres)
    }
}

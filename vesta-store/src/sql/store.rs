//! The ports, over any dialect.

use vesta_service::{
    Cas, Expect, Namespace, NewSegmentTag, NextRange, Record, SegmentTag, StoreError, Timing,
    UnixMillis,
};

use super::client::Client;
use super::dialect::Dialect;
use super::records::{Change, List, Name, Now, OpenNamespace, RaiseFloor, Read, fitted, signed};
use super::segments::{CreateTag, Tags, Take};
use super::worker_nodes::{HOST_CHARS, InsertNode};
use crate::{OpenError, Options};

/// Records in a database that is reached over a network.
pub(crate) struct SqlStore<D: Dialect> {
    client: Client<D>,
    auto_init: bool,
}

impl<D: Dialect> SqlStore<D> {
    pub(crate) fn new(dialect: D, options: &Options) -> Result<Self, OpenError> {
        let limit = options.request_timeout.unwrap_or(Timing::NETWORK.request_timeout);
        Ok(Self { client: Client::for_changes(dialect, limit)?, auto_init: options.auto_init })
    }

    pub(crate) fn describe(&self) -> String {
        self.client.describe()
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing { request_timeout: self.client.limit(), ..Timing::NETWORK }
    }

    pub(crate) fn may_forget(&self) -> bool {
        self.client.may_forget()
    }

    pub(crate) fn open_namespace(
        &self,
        name: &str,
        fingerprint: &str,
    ) -> Result<Namespace, StoreError> {
        let (name, fingerprint) = (Name::new(name)?, fingerprint.into());
        self.client.ask(OpenNamespace { name, fingerprint, create: self.auto_init })
    }

    pub(crate) fn raise_floor(&self, name: &str, floor: u64) -> Result<u64, StoreError> {
        self.client.ask(RaiseFloor { name: Name::new(name)?, floor: signed(floor)? })
    }

    pub(crate) fn list(&self, name: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.client.ask(List { name: Name::new(name)? })
    }

    pub(crate) fn read(&self, name: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.client.ask(Read { name: Name::new(name)?, machine: signed(machine)? })
    }

    pub(crate) fn cas(
        &self,
        name: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        self.client.ask(Change::new(Name::new(name)?, machine, expect, new)?)
    }

    pub(crate) fn now(&self) -> Result<UnixMillis, StoreError> {
        self.client.ask(Now)
    }

    pub(crate) fn insert_node(&self, host: &str, pid: u32) -> Result<u64, StoreError> {
        let (host, port) = (fitted(host, HOST_CHARS), pid.to_string());
        self.client.ask(InsertNode { create: self.auto_init, host, port })
    }

    pub(crate) fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.client.ask(Tags { create: self.auto_init })
    }

    pub(crate) fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.client.ask(Take { key: key.into(), step })
    }

    pub(crate) fn create_tag(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.client.ask(CreateTag { create: self.auto_init, tag: tag.clone() })
    }
}

/// Gives the ports to a public type around a [`SqlStore`].
macro_rules! delegate {
    ($store:ident) => {
        impl ::vesta_service::LeaseStore for $store {
            fn describe(&self) -> String {
                self.0.describe()
            }

            fn timing(&self) -> ::vesta_service::Timing {
                self.0.timing()
            }

            fn open_namespace(
                &self,
                namespace: &str,
                fingerprint: &str,
            ) -> Result<::vesta_service::Namespace, ::vesta_service::StoreError> {
                self.0.open_namespace(namespace, fingerprint)
            }

            fn list(
                &self,
                namespace: &str,
            ) -> Result<Vec<(u64, ::vesta_service::Record)>, ::vesta_service::StoreError> {
                self.0.list(namespace)
            }

            fn read(
                &self,
                namespace: &str,
                machine: u64,
            ) -> Result<Option<::vesta_service::Record>, ::vesta_service::StoreError> {
                self.0.read(namespace, machine)
            }

            fn cas(
                &self,
                namespace: &str,
                machine: u64,
                expect: &::vesta_service::Expect,
                new: &::vesta_service::Record,
            ) -> Result<::vesta_service::Cas, ::vesta_service::StoreError> {
                self.0.cas(namespace, machine, expect, new)
            }

            fn raise_floor(
                &self,
                namespace: &str,
                floor: u64,
            ) -> Result<u64, ::vesta_service::StoreError> {
                self.0.raise_floor(namespace, floor)
            }

            fn may_forget(&self) -> bool {
                self.0.may_forget()
            }

            fn now(
                &self,
            ) -> Result<Option<::vesta_service::UnixMillis>, ::vesta_service::StoreError> {
                self.0.now().map(Some)
            }
        }

        impl ::vesta_service::WorkerNodeStore for $store {
            fn describe(&self) -> String {
                self.0.describe()
            }

            fn insert(&self, host: &str, pid: u32) -> Result<u64, ::vesta_service::StoreError> {
                self.0.insert_node(host, pid)
            }
        }

        impl ::vesta_service::SegmentStore for $store {
            fn describe(&self) -> String {
                self.0.describe()
            }

            fn tags(
                &self,
            ) -> Result<Vec<::vesta_service::SegmentTag>, ::vesta_service::StoreError> {
                self.0.tags()
            }

            fn next_range(
                &self,
                key: &str,
                step: u64,
            ) -> Result<::vesta_service::NextRange, ::vesta_service::StoreError> {
                self.0.next_range(key, step)
            }

            fn create(
                &self,
                tag: &::vesta_service::NewSegmentTag,
            ) -> Result<bool, ::vesta_service::StoreError> {
                self.0.create_tag(tag)
            }
        }

        /// Without the password.
        impl ::std::fmt::Debug for $store {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_tuple(stringify!($store)).field(&self.0.describe()).finish()
            }
        }
    };
}

pub(crate) use delegate;

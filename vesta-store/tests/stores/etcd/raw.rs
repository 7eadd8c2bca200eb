//! The parts of etcd's API that the tests need, defined a second time, so that the field numbers
//! used by the store are checked, too.

use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// etcd, without the store in between.
pub(crate) struct Etcd {
    runtime: Runtime,
    channel: Channel,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes, tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes, tag = "5")]
    value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

impl KeyValue {
    pub(crate) fn key(&self) -> &str {
        std::str::from_utf8(&self.key).expect("text")
    }

    pub(crate) fn value(&self) -> &str {
        std::str::from_utf8(&self.value).expect("text")
    }
}

#[derive(Clone, PartialEq, Message)]
struct Range {
    #[prost(bytes, tag = "1")]
    key: Vec<u8>,
    #[prost(bytes, tag = "2")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Found {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Deleted {
    #[prost(int64, tag = "2")]
    count: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes, tag = "1")]
    key: Vec<u8>,
    #[prost(bytes, tag = "2")]
    value: Vec<u8>,
    #[prost(int64, tag = "3")]
    lease: i64,
}

/// A put operation.
#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(message, optional, tag = "2")]
    put: Option<Put>,
}

#[derive(Clone, PartialEq, Message)]
struct Txn {
    #[prost(message, repeated, tag = "2")]
    success: Vec<Operation>,
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Leased {
    #[prost(int64, tag = "2")]
    id: i64,
}

/// Shared by several requests about users and roles.
#[derive(Clone, PartialEq, Message)]
struct Two {
    #[prost(string, tag = "1")]
    first: String,
    #[prost(string, tag = "2")]
    second: String,
}

/// Read and write access: kind 2.
#[derive(Clone, PartialEq, Message)]
struct Permission {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(bytes, tag = "2")]
    key: Vec<u8>,
    #[prost(bytes, tag = "3")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Permit {
    #[prost(string, tag = "1")]
    role: String,
    #[prost(message, optional, tag = "2")]
    permission: Option<Permission>,
}

/// A response whose contents are not read.
#[derive(Clone, PartialEq, Message)]
struct Nothing {}

impl Etcd {
    pub(crate) fn connect(address: &str) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = runtime.block_on(async { endpoint.connect_lazy() });
        Self { runtime, channel }
    }

    /// Entries whose keys have this prefix, in key order.
    pub(crate) fn below(&self, prefix: &str) -> Vec<KeyValue> {
        let mut range_end = prefix.as_bytes().to_vec();
        *range_end.last_mut().expect("a prefix") += 1;
        let found: Found = self.ask(
            "/etcdserverpb.KV/Range",
            Range {
                key: prefix.into(),
                range_end,
            },
        );
        found.kvs
    }

    /// Deletes a key and returns the number of deleted entries.
    pub(crate) fn delete(&self, key: &str) -> i64 {
        let one = Range {
            key: key.into(),
            range_end: Vec::new(),
        };
        self.ask::<_, Deleted>("/etcdserverpb.KV/DeleteRange", one)
            .count
    }

    pub(crate) fn put(&self, key: &str, value: &str, lease: i64) {
        let put = Put {
            key: key.into(),
            value: value.into(),
            lease,
        };
        let _: Nothing = self.ask("/etcdserverpb.KV/Put", put);
    }

    /// At most 128, etcd's limit.
    pub(crate) fn put_all(&self, all: impl IntoIterator<Item = (String, String)>) {
        let put = |(key, value): (String, String)| Put {
            key: key.into(),
            value: value.into(),
            lease: 0,
        };
        let success = all
            .into_iter()
            .map(|one| Operation {
                put: Some(put(one)),
            })
            .collect();
        let _: Nothing = self.ask("/etcdserverpb.KV/Txn", Txn { success });
    }

    /// Creates a lease of an hour.
    pub(crate) fn lease(&self) -> i64 {
        let leased: Leased = self.ask("/etcdserverpb.Lease/LeaseGrant", Lease { ttl: 3600 });
        leased.id
    }

    pub(crate) fn add_root(&self, password: &str) {
        self.add_user("root", password);
        self.about_users("UserGrantRole", "root", "root");
    }

    pub(crate) fn add_user(&self, name: &str, password: &str) {
        self.about_users("UserAdd", name, password);
    }

    /// Grants a user read and write access to keys with this prefix.
    pub(crate) fn permit(&self, user: &str, prefix: &str) {
        self.about_users("RoleAdd", user, "");
        let mut range_end = prefix.as_bytes().to_vec();
        *range_end.last_mut().expect("a prefix") += 1;
        let permission = Some(Permission {
            kind: 2,
            key: prefix.into(),
            range_end,
        });
        let permit = Permit {
            role: user.into(),
            permission,
        };
        let _: Nothing = self.ask("/etcdserverpb.Auth/RoleGrantPermission", permit);
        self.about_users("UserGrantRole", user, user);
    }

    /// From now on every client must log in, including this one.
    pub(crate) fn enable_users(&self) {
        self.about_users("AuthEnable", "", "");
    }

    fn about_users(&self, method: &str, first: &str, second: &str) {
        let path = format!("/etcdserverpb.Auth/{method}");
        let two = Two {
            first: first.into(),
            second: second.into(),
        };
        let _: Nothing = self.ask(&path, two);
    }

    fn ask<Q, A>(&self, path: &str, question: Q) -> A
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let path = PathAndQuery::try_from(path).expect("a path");
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        let answer = self.runtime.block_on(async {
            grpc.ready().await.expect("a connection");
            let codec = ProstCodec::<Q, A>::default();
            grpc.unary(tonic::Request::new(question), path, codec).await
        });
        answer.expect("an answer").into_inner()
    }
}

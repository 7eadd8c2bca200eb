//! etcd passes the conformance suite, and the keys are as documented.
//!
//! The suite runs on the server named by `VESTA_TEST_ETCD`. Tests that need their own server (with
//! users, with TLS, to kill it) start the program `etcd`.

mod keys;
mod login;
mod members;
mod raw;
mod server;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

use vesta_numbers::segment::SegmentStore;
use vesta_service::lease::{KvStore, StoreError};
use vesta_store::conformance::{Backend, Fixture};
use vesta_store::segment_conformance::{Database, Databases};
use vesta_store::{Options, open_segments};
use vesta_testkit::fleet::store_url;

struct Etcd;

/// A unique prefix.
struct Area {
    members: String,
    prefix: String,
}

impl Area {
    fn new() -> Self {
        let url = store_url("etcd");
        let place = url.strip_prefix("etcd://").expect("etcd://host:port");
        let (members, path) = place.split_once('/').unwrap_or((place, "vesta"));
        let random = RandomState::new().build_hasher().finish();
        Self {
            members: members.into(),
            prefix: format!("{path}/test-{random:016x}"),
        }
    }

    /// The URL with these members instead.
    fn url_over(&self, members: &str) -> String {
        format!("etcd://{members}/{}", self.prefix)
    }

    fn url(&self) -> String {
        self.url_over(&self.members)
    }

    fn store(&self) -> Arc<dyn KvStore> {
        opened(&self.url())
    }

    /// The address of its first member.
    fn address(&self) -> &str {
        self.members.split(',').next().expect("a member")
    }

    fn raw(&self) -> raw::Etcd {
        raw::Etcd::connect(self.address())
    }
}

impl Backend for Etcd {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Area::new())
    }
}

impl Fixture for Area {
    fn connect(&self) -> Arc<dyn KvStore> {
        vesta_store::open(&self.url().parse().unwrap()).expect("it opens")
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        self.raw().delete(&format!("{}/{area}/{key}", self.prefix)) == 1
    }
}

vesta_store::conformance!(Etcd);
vesta_store::segment_conformance!(Etcd);

impl Databases for Etcd {
    fn fresh(&self) -> Box<dyn Database> {
        Box::new(Area::new())
    }
}

impl Database for Area {
    fn connect(&self) -> Arc<dyn SegmentStore> {
        open_segments(&self.url().parse().unwrap(), &Options::default()).expect("it opens")
    }
}

const AREA: &str = "lease/ids";

fn open(url: &str, options: &Options) -> Arc<dyn KvStore> {
    vesta_store::open_with(&url.parse().unwrap(), options).expect("it opens")
}

fn opened(url: &str) -> Arc<dyn KvStore> {
    open(url, &Options::default())
}

/// Makes the change with this number.
fn put(store: &Arc<dyn KvStore>, number: u32) -> Result<bool, StoreError> {
    let old = (number > 1).then(|| (number - 1).to_string());
    store.put_if(AREA, "7", old.as_deref(), &number.to_string())
}

fn get(store: &Arc<dyn KvStore>) -> Result<Option<String>, StoreError> {
    store.get(AREA, "7")
}

/// The message of a permanent error.
fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    let error = answer.expect_err("it is refused");
    assert!(error.is_permanent(), "{error}");
    error.to_string()
}

/// The message of a transient error.
fn unavailable<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    let error = answer.expect_err("it cannot be answered");
    assert!(!error.is_permanent(), "{error}");
    error.to_string()
}

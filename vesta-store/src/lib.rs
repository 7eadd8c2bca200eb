//! The stores that machine IDs are claimed from.
//!
//! ```
//! use vesta_service::{IdService, LocalIdService, MachineSource};
//! # let folder = std::env::temp_dir().join(format!("vesta-doc-store-{}", std::process::id()));
//! # let url = format!("sqlite:{}/vesta.db", folder.display());
//! // let url = "sqlite:vesta-data/vesta.db";
//!
//! let ids = LocalIdService::builder()
//!     .machine(MachineSource::Pool { store: vesta_store::open(&url)?, range: None })
//!     .state_dir(&folder)
//!     .build()?;
//! println!("machine {} made {}", ids.machine(), ids.gen_id()?);
//! # drop(ids); std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each backend is a cargo feature of its name (`sqlite`, which is on by default, `mysql`, `postgres`,
//! `redis`, `zookeeper`, `etcd`), and [`open`] finds it by the scheme of a URL. The feature `testkit` adds the
//! `conformance` suite, which every backend passes unchanged.
#![forbid(unsafe_code)]
#![allow(clippy::duplicate_mod, reason = "one file stands in for every backend that is left out")]

#[cfg(feature = "testkit")]
pub mod conformance;
#[cfg(test)]
mod fuzz;
pub mod import;
mod open;
mod options;
mod redact;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "zookeeper", feature = "etcd"))]
mod runtime;
#[cfg(feature = "testkit")]
pub mod segment_conformance;

#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

#[cfg(not(feature = "etcd"))]
#[path = "off.rs"]
mod etcd;
#[cfg(not(feature = "mysql"))]
#[path = "off.rs"]
mod mysql;
#[cfg(not(feature = "postgres"))]
#[path = "off.rs"]
mod postgres;
#[cfg(not(feature = "redis"))]
#[path = "off.rs"]
mod redis;
#[cfg(not(feature = "sqlite"))]
#[path = "off.rs"]
mod sqlite;
#[cfg(not(feature = "zookeeper"))]
#[path = "off.rs"]
mod zookeeper;

pub use open::{OpenError, open, open_segments, open_with, open_worker_nodes};
pub use options::Options;
pub use redact::redact;

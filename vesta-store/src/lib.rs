//! Stores from which machine IDs are claimed.
//!
//! ```
//! use vesta_service::{IdService, LocalIdService, MachineSource};
//! # let folder = std::env::temp_dir().join(format!("vesta-doc-store-{}", std::process::id()));
//! # let url = format!("sqlite:{}/vesta.db", folder.display());
//! // let url = "sqlite:vesta-data/vesta.db";
//!
//! let ids = LocalIdService::builder()
//!     .machine(MachineSource::Pool { store: vesta_store::open(&url.parse()?)?, range: None })
//!     .state_dir(&folder)
//!     .build()?;
//! println!("machine {} made {}", ids.machine(), ids.gen_id()?);
//! # drop(ids); std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each backend is a cargo feature with its name (`sqlite`, on by default, `mysql`, `postgres`, `redis`,
//! `zookeeper`, `etcd`, `pool_server`), and [`open`] selects it by the scheme of the URL. The feature `testkit` adds the
//! `conformance` suite, which every backend passes unchanged.
#![deny(unsafe_code)] // except for one line in sqlite/lock.rs, justified there

mod backends;
mod column;
#[cfg(feature = "testkit")]
pub mod conformance;
mod error;
mod foreign_owner;
#[cfg(test)]
mod fuzz;
pub mod import;
mod kind;
mod open;
mod options;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "testkit")]
pub mod segment_conformance;
mod tinyid;
mod url;

pub use column::{Column, read_column};
pub use error::OpenError;
pub use kind::Kind;
pub use open::{open, open_segments, open_tinyid, open_with, open_worker_nodes};
pub use options::{Options, SegmentTable};
pub use tinyid::TinyidStore;
pub use url::{StoreUrl, redact};

//! Stores from which machine IDs are claimed.
//!
//! ```no_run
//! use vesta_service::{LocalIdService, MachineSource, VestaId};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let url = "sqlite:/var/lib/shop/vesta.db".parse()?;
//!     let ids = LocalIdService::builder()
//!         .machine(MachineSource::Pool { store: vesta_store::open(&url)?, range: None })
//!         .state_dir("/var/lib/shop")
//!         .build()?;
//!     let id: VestaId = ids.next()?;
//!     println!("machine {} made {id}", ids.machine());
//!     Ok(())
//! }
//! ```
//!
//! Each backend is a cargo feature with its name (`sqlite`, on by default, `mysql`, `postgres`, `redis`,
//! `zookeeper`, `etcd`, `pool-server`), and [`open`] selects it by the scheme of the URL. The feature `testkit` adds the
//! `conformance` suite, which every backend passes unchanged.
#![cfg_attr(docsrs, feature(doc_cfg))]
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

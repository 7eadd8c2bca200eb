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
//! Each backend is a cargo feature; `sqlite` is on by default. The feature `testkit` adds the
//! `conformance` suite, which every backend passes unchanged.
#![forbid(unsafe_code)]

#[cfg(feature = "testkit")]
pub mod conformance;
mod open;
mod redact;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(not(feature = "sqlite"))]
#[path = "sqlite_off.rs"]
mod sqlite;

pub use open::{OpenError, open};
pub use redact::redact;

//! Vesta embedded: 64-bit IDs that never repeat, from inside your own process.
//!
//! ```no_run
//! use vesta_service::{LocalIdService, MachineSource, VestaId};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let ids = LocalIdService::builder()
//!         .machine(MachineSource::Fixed(7)) // no other process may use 7 in this namespace
//!         .state_dir("/var/lib/shop") // keeps the bound across restarts
//!         .build()?;
//!
//!     let id: VestaId = ids.next()?;
//!     println!("{id}, created {}", id.created_at(ids.meta())?);
//!     assert_eq!(ids.exp_id(id)?.machine, 7);
//!     Ok(())
//! }
//! ```
//!
//! The generating path makes one atomic change; it makes no system call, allocates nothing and never
//! talks to a store. Every issued ID is below a bound that was made durable in advance. So IDs do
//! not repeat after a crash, a restart within the same millisecond, a clock step, or when another
//! process gets the machine ID. [Safety](https://github.com/vesta-id/vesta/blob/main/docs/inside/safety.md) has the
//! argument.
//!
//! It needs no async runtime, no network and no database. `vesta-store` provides pools of machine IDs.
//! The [`guide`] has an example for each question; all of `vesta-intf` is available as [`contract`].
//!
//! `vesta-numbers` adds segments and serials.
//!
//! Features: `async` adds asynchronous calls (without a runtime). `serde`, `sqlx`, `diesel` and `utoipa` map a [`VestaId`] to
//! JSON, to tables and to OpenAPI documents.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)] // clock.rs allows two lines and fork.rs one, each with its argument
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::cast_precision_loss
)]

mod build;
mod builder;
pub mod clock;
mod container;
mod error;
mod file_system;
mod fork;
#[cfg(feature = "async")]
mod future;
pub mod global;
pub mod guide;
mod hint;
mod host_guard;
mod id;
pub mod lease;
mod machine;
mod number;
pub mod options;
mod os;
#[cfg(any(loom, shuttle))]
mod races;
mod random;
mod reentry;
mod service;
mod state_dir;
mod status;
mod sync;
pub mod testing;
mod wait;

/// What `vesta-numbers` shares with this crate; not for others, and it may change with any version.
#[doc(hidden)]
pub mod inside {
    pub use crate::clock::AnyClock;
    pub use crate::error::ask_store;
    pub use crate::lease::{Area, Entry, Fields, SCHEMA};
    pub use crate::number::number;
    pub use crate::wait::{LONGEST_PAUSE, Notify, Wait, back_off, retry_pause};

    pub mod fork {
        pub use crate::fork::{AtFork, Process, refusal};
    }
    pub mod os {
        pub use crate::os::{make_folder, private, sync_folder};
    }
    pub mod random {
        pub use crate::random::{u63, u128};
    }
    pub mod sync {
        pub use crate::sync::*;
    }
    #[cfg(any(loom, shuttle))]
    pub mod races {
        pub use crate::races::*;
    }
}

use id::{populator, sequence, ticks};

pub use builder::Builder;
pub use error::BuildError;
pub use machine::MachineSource;
pub use service::LocalIdService;
#[doc(inline)]
pub use vesta_intf as contract;
pub use vesta_intf::{ErrorKind, IdError, IdFormat, IdMeta, IdService, LayoutSpec, VestaId};

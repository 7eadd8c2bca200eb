//! Vesta embedded: 64-bit IDs that never repeat, from inside your own process.
//!
//! ```
//! use vesta_service::{IdService, LocalIdService, MachineSource};
//! # let folder = std::env::temp_dir().join(format!("vesta-doc-{}", std::process::id()));
//!
//! let ids = LocalIdService::builder()
//!     .machine(MachineSource::Fixed(7)) // no other process may use 7 in this namespace
//!     .state_dir(&folder) // where it remembers how far it came
//!     .build()?;
//!
//! let id = ids.gen_id()?;
//! assert_eq!(ids.exp_id(id)?.machine, 7);
//!
//! let mut batch = [0; 1000];
//! ids.gen_ids(&mut batch)?;
//! assert!(batch.is_sorted() && batch[0] > id);
//! # drop(ids); std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The generating path takes one atomic change; it makes no system call, allocates nothing and never
//! talks to a store. What is issued lies below a bound that was made durable before, so that IDs do
//! not repeat after a crash, a restart within the same millisecond, a clock step, or when another
//! process gets the machine ID. The argument is in docs/SAFETY.md.
//!
//! No async runtime, no network and no database is needed. A pool of machine IDs comes from
//! `vesta-store`. Features: `async` implements `AsyncIdService` (without a runtime), `serial` adds
//! [`SerialService`].
#![deny(unsafe_code)] // clock.rs allows two lines and fork.rs one, each with its argument
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::cast_precision_loss
)]

mod backlog;
mod builder;
mod clock;
mod error;
mod file_system;
mod fork;
#[cfg(feature = "async")]
mod future;
pub mod global;
mod held_lease;
mod host_guard;
mod id;
mod lease;
mod machine;
mod os;
#[cfg(all(test, any(loom, shuttle)))]
mod races;
mod random;
mod segment;
#[cfg(all(feature = "serial", not(any(loom, shuttle))))]
mod serial;
mod service;
mod slots;
mod state_dir;
mod status;
mod sync;
mod testing;
mod wait;

use id::{populator, ticks};

pub use builder::{Builder, MAX_BORROW_MILLIS};
pub use clock::{Clock, ClockKind, ClockPair, SystemClock};
pub use error::{BuildError, StoreError};
pub use file_system::check_local;
pub use host_guard::HostGuard;
pub use id::sequence;
pub use lease::{
    Cas, ClaimOrder, Doubt, Event, EventKind, KvStore, Leases, Namespace, Origin, Put, Record,
    Snapshot, Suspicion, Timing,
};
pub use machine::{IpMap, MachineSource, WorkerNodeStore, host_ordinal};
pub use populator::PopulatorKind;
pub use segment::{
    KvSegments, LentRange, NewSegmentTag, NextRange, Segment, SegmentBuilder, SegmentService,
    SegmentStatus, SegmentStore, SegmentTag, Stride,
};
#[cfg(all(feature = "serial", not(any(loom, shuttle))))]
pub use serial::{NewSerialTag, Serial, SerialBuilder, SerialService, SerialStatus, SerialTag};
pub use service::LocalIdService;
pub use state_dir::default_state_dir;
pub use status::{MachineStatus, Status};
pub use testing::{FlakyStore, ManualClock, MemorySegmentStore, MemoryStore};
pub use vesta_intf::{
    AsyncIdService, ErrorKind, GenMethod, Id, IdError, IdMeta, IdRun, IdService, IdType, MakeId,
    NotReady, NotReadyReason, SequenceStart, UnixMillis,
};
pub use wait::Drive;

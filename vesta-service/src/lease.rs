//! Reservation of machine IDs and of their positions.
//!
//! A position is issued only if it lies below a durable **bound**. The bound is kept in a record
//! that changes by compare-and-set alone, and a successor starts at or above it. So uniqueness
//! rests on no clock and on no timeout: docs/inside/safety.md has the argument.
//!
//! ```text
//!  state.rs        survey, claim, hold, extend, release, lost        pure
//!  slot.rs         one machine ID at a time, from claim to seal: carries out what state.rs decides
//!  kv.rs           port: the functions that a store implements
//!  leases.rs       a namespace in such a store; bulk.rs: many changes at once, area.rs: its entries,
//!                  codec.rs: their texts
//!  registry.rs     what a registry accepts from others                  pure
//!  events.rs       events for people; history.rs: past claims
//!  host_state.rs   what this host remembers; state files of fixed machine IDs
//! ```

mod area;
mod bulk;
mod choice;
mod codec;
mod events;
mod history;
mod host_state;
mod kv;
mod leases;
#[cfg(all(test, not(any(loom, shuttle))))]
mod model;
mod record;
mod registry;
mod slot;
mod state;
mod timing;

use crate::error::BuildError;
pub use crate::error::StoreError;
pub use crate::file_system::check_local;
pub use crate::host_guard::HostGuard;
pub use crate::id::sequence;
pub(crate) use area::Area;
pub(crate) use choice::Choice;
pub use choice::ClaimOrder;
pub(crate) use codec::{Entry, Fields, SCHEMA};
use codec::{Marks, Standing};
pub(crate) use events::Journal;
pub use events::{Event, EventKind};
pub use history::Origin;
pub(crate) use host_state::{HostState, Local, Own, StateFolder};
pub use kv::{KvStore, Put, Suspicion};
pub use leases::{Leases, Snapshot};
use leases::{Look, block_of, machines_of};
pub(crate) use record::Amendment;
pub use record::{Cas, Doubt, Namespace, Record, Standby};
pub use registry::{Place, identity};
pub(crate) use slot::{
    HeldLease, HeldLeaseFactory, Keeper, MachineSlot, Reserved, Rounds, Signals, Slots,
};
pub(crate) use state::{CLAIM_TIMEOUT, Plan, USUAL_DOUBTFUL_WINDOW};
pub use timing::Timing;
pub(crate) use timing::{LONGEST_RETRY_AFTER, RETRY_AFTER};

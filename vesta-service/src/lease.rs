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
//!  writer.rs       the server that wrote last: a fail-over, or a second server    pure
//!  pool server.rs     what a pool server accepts from others                  pure
//!  handover.rs     what a change means for another system in the store  pure
//!  identity.rs     whose data a pool server serves, and where its file lies
//!  events.rs       events for people; history.rs: past claims
//!  host_state.rs   what this host remembers; state files of fixed machine IDs
//! ```

mod area;
mod bulk;
mod choice;
mod codec;
mod events;
mod handover;
mod history;
mod host_state;
mod identity;
mod kv;
mod leases;
#[cfg(all(test, not(any(loom, shuttle))))]
mod model;
mod outlook;
mod pool_server;
mod record;
mod secret;
mod slot;
mod state;
mod timing;
mod writer;

use crate::error::BuildError;
pub use crate::error::{StoreError, TWO_STORES};
pub use crate::file_system::check_local;
pub use crate::host_guard::HostGuard;
pub use area::Area;
pub(crate) use choice::Choice;
pub use choice::ClaimOrder;
pub use codec::{Entry, Fields, SCHEMA};
use codec::{Marks, Standing};
pub(crate) use events::Journal;
pub use events::{Event, EventKind};
pub use handover::{Claim, Handover, Release};
pub use history::Origin;
pub(crate) use host_state::{HostState, Local, Own, StateFolder};
pub use identity::{FilePlace, StoreIdentity, adopt, identity, note_older, refusal};
pub use kv::{AT_ONCE, KvStore, Put};
pub(crate) use leases::is_own;
use leases::{BLOCK, BUCKET, Look, block_of};
pub use leases::{Leases, Snapshot};
pub use pool_server::{PROOFS, Place, Refusal, Seen};
pub(crate) use record::{Amendment, check_namespace};
pub use record::{Cas, Doubt, Namespace, Record, Standby};
pub use secret::Secret;
pub(crate) use slot::{
    HeldLease, HeldLeaseFactory, Keeper, MachineSlot, Reserved, Rounds, Signals, Slots,
};
pub(crate) use state::{CLAIM_TIMEOUT, Plan, USUAL_DOUBTFUL_WINDOW};
pub(crate) use timing::LONGEST_RETRY_AFTER;
pub use timing::Timing;
pub use writer::Writer;

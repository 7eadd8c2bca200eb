//! One machine ID at a time, from claim to seal.
//!
//! ```text
//!  home.rs      all slots of a service, and the home slot of each thread
//!  held.rs      the lease in force: takes positions below its bound until it is sealed
//!  machine.rs   one slot: its successive leases and its state
//!  signals.rs   callers wake the keeper; the keeper announces its end
//!  driver.rs    one slot: asks the state machine what is due and carries it out
//!  rounds.rs    all slots: one round of requests for all that is due; rounds/asking.rs: the requests
//!  keeper.rs    the thread that does the rounds, or the caller of `maintain`
//! ```

mod driver;
mod held;
mod home;
mod keeper;
mod machine;
mod rounds;
mod signals;

pub(crate) use held::{HeldLease, HeldLeaseFactory, Reserved};
pub(crate) use home::Slots;
pub(crate) use keeper::Keeper;
pub(crate) use machine::MachineSlot;
pub(crate) use rounds::Rounds;
pub(crate) use signals::Signals;

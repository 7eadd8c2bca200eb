//! One machine ID at a time, from claim to seal.
//!
//! ```text
//!  home.rs      all slots of a service, and which of them a thread's calls use
//!  held.rs      the lease in force: takes positions below its bound, until it is sealed
//!  machine.rs   one slot: its leases one after another, and its state
//!  signals.rs   callers wake the keeper, and it announces its end
//!  driver.rs    one slot: asks the state machine what is due, and carries out what it says
//!  rounds.rs    all slots: asks together for what is due together; rounds/asking.rs: the requests
//!  keeper.rs    the thread of the rounds, or the caller of `maintain`
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
